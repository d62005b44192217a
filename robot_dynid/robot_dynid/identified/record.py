"""Record of an identification: choices, trials and results other than parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robot_dynid.document import percent
from robot_dynid.effects.ripple_search import Wave
from robot_dynid.estimation import ESTIMATORS, Details
from robot_dynid.estimation.deflection_fit import DeflectionFit
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice
from robot_dynid.estimation.friction_sweeps import CurveSummary
from robot_dynid.identified.error_law import ErrorLaw
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.prepare import Averaging
from robot_dynid.yaml_text import yaml_text

#: normal quantile of 95 % intervals
NORMAL = 1.96
#: share by which friction differs from day to day on other arms (that of viscous friction of a
#: UR10e over six days, `robot-dynid fleet`), and the degrees of freedom it counts with: arms are
#: unlike by a factor of exp(1 / sqrt(2 * 4)) = 1.4
USUAL_SPREAD, USUAL_FREEDOM = 0.05, 4.0


@dataclass(frozen=True)
class CutoffScore:
    """A cut-off [Hz] that was tried, and its held-out score (smaller is better)."""

    cutoff: float
    held_out_score: float


@dataclass(frozen=True)
class JointDeflection:
    """Held-out errors [N m] of one joint: after friction, links, and the residual model.

    ``kind`` is that of the residual model, if there is one.
    """

    joint: str
    used: bool
    note: str
    friction: float
    physics: float
    with_residual: float
    kind: str = ''


@dataclass(frozen=True)
class DeflectionRecord:
    """Residual models of the deflection and their errors.

    ``rounds`` of the ``rounds_tried`` (root mean squares per joint [N m]) were used; ``loops`` is
    'three' if friction and links were fitted in turn, with the ``seconds`` of each.
    """

    kind: str = 'none'
    rounds: int = 1
    joints: tuple[JointDeflection, ...] = ()
    rounds_tried: tuple[tuple[float, ...], ...] = ()
    loops: str = 'joint'
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GearRecord:
    """Gear and encoders of one elastic joint.

    ``stiffness`` [N m/rad], ``damping`` [N m s/rad], ``rotor_inertia`` [kg m^2], each with its
    ``_std``; ``offset`` [rad] of the motor encoder against that of the link without load; rms and
    peak ``deflection`` [rad], filtered; ``resolution`` [rad] of both encoders, 0 if no step shows,
    and the ``noise`` [rad] of a single deflection; ``attenuation``, the relative bias of the
    stiffness by that noise in least squares; amplitude [rad] of the ``kinematic_error`` and
    friction [N m] of the ``hysteresis``, half the width of the loop, each with its ``_std``: zero
    if not significant.
    """

    joint: str
    stiffness: float
    stiffness_std: float
    offset: float
    offset_std: float
    deflection_rms: float
    deflection_peak: float
    resolution_link: float
    resolution_motor: float
    noise: float
    attenuation: float
    damping: float
    damping_std: float
    rotor_inertia: float
    rotor_inertia_std: float
    kinematic_error: float = 0.0
    kinematic_error_std: float = 0.0
    hysteresis: float = 0.0
    hysteresis_std: float = 0.0


@dataclass(frozen=True)
class MotorEncoder:
    """Calibration of a motor encoder against that of its link, from the training recordings.

    Joint side = motor state / ``factor`` - ``offset`` [rad], whose ``offset_std`` [rad] is the
    variation between recordings; ``noise`` [rad] of a single deflection, including steps of both
    encoders, and ``rate_noise`` [rad/s] of its rate.
    """

    joint: str
    factor: float = 1.0
    offset: float = 0.0
    offset_std: float = 0.0
    noise: float = 0.0
    rate_noise: float = 0.0


@dataclass(frozen=True)
class RigidComparison:
    """Held-out errors [N m] of a joint by a rigid and by the elastic model.

    ``matters`` is True if elasticity reduces the error.
    """

    joint: str
    elastic: bool
    rigid_error: float
    elastic_error: float
    matters: bool


@dataclass(frozen=True)
class JointRipple:
    """Torque ripple of one joint; empty ``waves`` if the recordings show none.

    ``before`` and ``after`` [N m] are the held-out root mean squares of the unfiltered residual,
    without and with the ripple; ``waves`` are sorted, the largest first. ``compliance`` [rad/(N
    m)] is the phase shift per torque, zero if not significant. ``aliased`` waves are not used,
    because others explain the recordings as well.
    """

    joint: str
    before: float
    after: float
    waves: tuple[Wave, ...] = ()
    compliance: float = 0.0
    compliance_std: float = 0.0
    aliased: tuple[Wave, ...] = ()

    @property
    def gain(self) -> float:
        """Share of the variance of ``before`` explained by the ripple."""
        return 1.0 - (self.after / self.before)**2 if self.before > 0.0 else 0.0

    @property
    def stiffness(self) -> tuple[float, float, float] | None:
        """Lower bound, value and upper bound (95 %) of the stiffness [N m/rad] from the phase.

        None if it implies none. Experimental.
        """
        reach = NORMAL * self.compliance_std
        if self.compliance <= reach:
            return None
        return tuple(1.0 / c for c in (  # type: ignore[return-value]
            self.compliance + reach, self.compliance, self.compliance - reach))


@dataclass(frozen=True)
class SlowChange:
    """Slow changes of one joint in the recordings.

    ``warming`` is the reduction of the squared held-out error by friction that warms up, ``slow``
    the reduction of the error at the next sample by tracked coefficients, each also in
    ``deviations`` of chance. They are used if that is significant.
    """

    joint: str
    warming: float
    warming_deviations: float
    slow: float
    slow_deviations: float


@dataclass(frozen=True, eq=False)
class FitRecord:
    """Record of the fit of a model.

    ``recordings`` and ``samples`` of the fit; ``weights_near_reversals`` of every equation;
    ``std_over_textbook``, the ratio of the standard deviations to those for white residuals;
    ``degrees_of_freedom`` of the deviations; ``friction_spread``, by kind of friction, its
    relative variation between recordings, None for a single recording; ``motor_encoders`` of
    joints whose deflection the model uses; ``encoders``, the causes of what both encoders of a
    joint differ by; ``refused`` joints with the reason; ``details`` of the method.
    ``recording_digests`` are the SHA-256 of the recordings, empty without files; likewise
    ``robot_digest`` and ``recipe_digest``. ``left_over`` [N m] is the standard deviation of the
    residual of each joint on motion that was not fitted. ``accepted`` are the kinds of findings
    accepted by the user, ``command`` the words of the command line of the fit, if any.
    ``passbands`` [Hz] are the cut-offs of the motion at which recordings show the effort of each
    equation best, empty if that of the fit suits all; ``error_law`` is the dependence of the error
    on the motion, None with elastic joints. Quantities that were not computed are empty,
    or None.
    """

    recordings: tuple[str, ...] = ()
    samples: int = 0
    weights_near_reversals: tuple[float, ...] = ()
    std_over_textbook: float | None = None
    degrees_of_freedom: float | None = None
    cutoffs_tried: tuple[CutoffScore, ...] = ()
    friction: tuple[AxisChoice, ...] = ()
    effort_lag: Lag | None = None
    averaging: tuple[Averaging, ...] = ()
    friction_curves: tuple[CurveSummary, ...] = ()
    residual: DeflectionRecord | None = None
    gears: tuple[GearRecord, ...] = ()
    rigid_beside: tuple[RigidComparison, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    details: Details = field(default_factory=Details)
    recording_digests: tuple[str, ...] = ()
    robot_digest: str = ''
    recipe_digest: str = ''
    ripple: tuple[JointRipple, ...] = ()
    slow_changes: tuple[SlowChange, ...] = ()
    friction_spread: Mapping[str, float] | None = None
    motor_encoders: tuple[MotorEncoder, ...] = ()
    left_over: tuple[float, ...] = ()
    accepted: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    encoders: tuple[DeflectionFit, ...] = ()
    passbands: tuple[float, ...] = ()
    error_law: ErrorLaw | None = None

    @property
    def spread_sentence(self) -> str:
        """Variation of friction between recordings as a sentence."""
        if self.friction_spread is None:
            return ('unknown from one recording and not covered by the intervals: identify from '
                    'recordings of several days')
        return ', '.join(f'{kind} {percent(share)} %'
                         for kind, share in self.friction_spread.items())

    def daily_spread(
        self, kind: str, axes: int, usual: float = USUAL_SPREAD
    ) -> tuple[float, float]:
        """Return the share by which a ``kind`` of friction differs from day to day, its freedom.

        What the recordings show of so many ``axes``, each less one, moderated by what is
        ``usual``: a few days alone show far too little scatter at times. Source: Smyth, Stat.
        Appl. Genet. Mol. Biol. 2004, 3, 3.
        """
        own = (self.friction_spread or {}).get(kind)
        freedom = 0.0 if own is None else float(max(len(self.recordings) - 1, 0) * axes)
        total = USUAL_FREEDOM + freedom
        square = (USUAL_FREEDOM * usual**2 + freedom * (own or 0.0)**2) / total
        return float(np.sqrt(square)), total

    def plain(self) -> dict[str, Any]:
        """Return the record in plain types, without empty entries."""
        return {key: value for key, value in to_plain(self).items()
                if value not in (None, [], {}, '')}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], method: str) -> FitRecord:
        """Read the result of `plain` for a model of ``method``.

        Details of an unknown method are ignored. Raises ValueError, TypeError.
        """
        others = {key: value for key, value in content.items() if key != 'details'}
        record = from_plain(cls, others, 'record')
        if 'details' not in content or method not in ESTIMATORS:
            return record
        return replace(record, details=ESTIMATORS[method].read_details(content['details']))


def digest_of(content: Any) -> str:
    """Return the SHA-256 of plain values, dataclasses and arrays among them."""
    return hashlib.sha256(yaml_text(to_plain(content)).encode()).hexdigest()


def record_from_provenance(content: Mapping[str, Any], method: str) -> FitRecord:
    """Read the ``provenance`` of a file of format 1, where methods had no entry of their own.

    Raises ValueError, TypeError.
    """
    details = {**content.get('estimator', {}), **{key: content[key] for key in (
        'stages', 'prior_weight', 'certificate') if key in content}}
    others = {key: value for key, value in content.items()
              if key not in (*details, 'estimator', 'quiet')}
    return FitRecord.from_plain({**others, **({'details': details} if details else {})}, method)
