"""Record of an identification: what was chosen, tried and found beside the parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from robot_dynid.estimation import ESTIMATORS, Details
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice
from robot_dynid.estimation.friction_sweeps.friction_curve import CurveSummary
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.prepare import Averaging
from robot_dynid.yaml_text import yaml_text


@dataclass(frozen=True)
class CutoffScore:
    """A cut-off [Hz] that was tried, and its held-out score (less is better)."""

    cutoff: float
    held_out_score: float


@dataclass(frozen=True)
class JointDeflection:
    """Held-out errors [N m] of one joint: after friction, links, and the residual model."""

    joint: str
    used: bool
    note: str
    friction: float
    physics: float
    with_residual: float


@dataclass(frozen=True)
class DeflectionRecord:
    """Residual models of the deflection and their errors.

    ``rounds`` of the ``rounds_tried`` (root mean squares per joint [N m]) were taken; ``loops`` is
    'three' where friction and links were fitted in turn, which took the ``seconds`` of each.
    """

    kind: str = 'none'
    rounds: int = 1
    joints: tuple[JointDeflection, ...] = ()
    rounds_tried: tuple[tuple[float, ...], ...] = ()
    loops: str = 'joint'
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GearRecord:
    """The gear and the encoders of one elastic joint.

    ``stiffness`` [N m/rad], ``damping`` [N m s/rad], ``rotor_inertia`` [kg m^2], each with its
    ``_std``; ``offset`` [rad] by which the motor encoder reads more than that of the link where
    nothing bends the gear; rms and peak ``deflection`` [rad], filtered; ``resolution`` [rad] of
    both encoders, 0 where no step shows, and the ``noise`` [rad] of a single deflection;
    ``attenuation``, the share by which that noise draws the stiffness down in least squares.
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


@dataclass(frozen=True)
class RigidComparison:
    """Held-out errors [N m] of a joint by a rigid and by the elastic model.

    ``matters`` says whether elasticity makes a difference.
    """

    joint: str
    elastic: bool
    rigid_error: float
    elastic_error: float
    matters: bool


@dataclass(frozen=True, eq=False)
class FitRecord:
    """Record of the fit of a model.

    ``recordings`` and ``samples`` of the fit; ``weights_near_reversals`` of every equation;
    ``std_over_textbook``, how many times the deviations exceed those for white residuals;
    ``degrees_of_freedom`` of the deviations; ``refused`` joints with the reason; ``details`` of
    the method. ``recording_digests`` are the SHA-256 of the files of the recordings, empty for
    what came from none; likewise ``robot_digest`` and ``recipe_digest``. What was not looked for
    is empty, or None.
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

    def plain(self) -> dict[str, Any]:
        """Return the record in plain types; what is empty is left out."""
        return {key: value for key, value in to_plain(self).items()
                if value not in (None, [], {}, '')}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], method: str) -> FitRecord:
        """Read what `plain` returned for a model of ``method``.

        Details of a method that is not registered are left out. Raises ValueError, TypeError.
        """
        others = {key: value for key, value in content.items() if key != 'details'}
        record = from_plain(cls, others)
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
