"""Robots with elastic joints: generalised least squares; instruments where encoders are coarse.

The column of a stiffness is the deflection, the small difference of two encoders. Where their
noise is no longer small beside it, least squares finds stiffness too low (attenuation). The
deflection that the identified links would make along the smoothed motion, over the stiffness, is
an instrument: it has no part of that noise. Where the two estimates of the gears differ by more
than chance (Durbin-Wu-Hausman), that by instruments is taken, with instruments of its own: those
of gears that are many times too soft bend motors far from where they are. Source: Young 2011,
Recursive Estimation and Time-Series Analysis, ch. 8 (refined instruments).

Instruments that are weak for a stiffness leave it to least squares, which knows it where the
effort follows the deflection: noise in a column makes its parameter too small at most by the share
of the column that the effort does not follow. Source: Frisch 1934, Confluence Analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.effects import Hysteresis, KinematicError, RigidLinks
from robot_dynid.effects.gears import STIFFNESS
from robot_dynid.estimation.errors_in_variables.exogeneity import Bias
from robot_dynid.estimation.errors_in_variables.instrumental import (
    InstrumentalVariables,
    InstrumentDetails,
)
from robot_dynid.estimation.estimate import Details, Estimate, Estimator, Status, student_quantile
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.joint_covariance import (
    CorrelationDetails,
    GeneralisedLeastSquares,
)
from robot_dynid.estimation.least_squares import joint_weights, solve_rows, weighted_factor
from robot_dynid.plain import from_plain
from robot_dynid.signals.filters import derivative
from robot_dynid.types import FloatArray, Samples

#: level of the test of the deflection; that at which stiffnesses count as biased is larger:
#: to keep a biased value costs more than to lose some precision (Guggenberger 2010)
DEFLECTION_LEVEL, BIASED = 0.05, 0.1
#: least squares knows a stiffness if noise takes off at most a tenth, which is the bias of
#: instruments that count as strong (Staiger, Stock 1997)
FOLLOWED = 0.9
#: fits by instruments at most, each with those of the one before; they end where no stiffness
#: changes by more than this share of its deviation
INSTRUMENT_ROUNDS, STIFFNESS_SETTLED = 8, 0.1


@dataclass(frozen=True, eq=False)
class DetailsByLeastSquares(CorrelationDetails):
    """Results beyond the parameters where least squares was taken."""

    instruments_taken: bool = False


@dataclass(frozen=True, eq=False)
class DetailsByInstruments(InstrumentDetails):
    """Results beyond the parameters where instrumental variables were taken."""

    instruments_taken: bool = True


@dataclass(frozen=True)
class ElasticJoints(Estimator):
    """The estimator behind the method elastic; rigid robots get generalised least squares."""

    name = 'elastic'
    summary = 'elastic joints with encoders on motors and links'
    seeks_elastic_joints = True

    def read_details(self, content: Mapping[str, Any]) -> Details:
        """Return the details of a model file. Raises ValueError, TypeError where they differ."""
        return from_plain(DetailsByInstruments if content.get('instruments_taken')
                          else DetailsByLeastSquares, content)

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; raises DataError when recordings cannot be read again.

        A stiffness whose deflection may be zero is open: its interval is infinite. Waves and
        hysteresis of gears are not in the deflection that links make, and would have no
        instrument: where the model has them, least squares stays.
        """
        plain = replace(GeneralisedLeastSquares().fit(experiment), method=self.name)
        if not experiment.model.gears:
            return plain
        own, deviations = stiffnesses(experiment.model), _deviations(plain)
        chosen = replace(plain, details=DetailsByLeastSquares(**vars(plain.details)))
        if any(isinstance(b, KinematicError | Hysteresis) for b in experiment.model.blocks):
            return without_undetermined(chosen, own, (), deviations)
        other, compared = _by_instruments(experiment, plain, own)
        if least_squares_biased(compared.bias_of_least_squares, other.degrees_of_freedom, own):
            chosen = replace(other, method=self.name,
                             details=DetailsByInstruments(**vars(compared)))
        share = followed(experiment.information, chosen.values)
        weak = [name for name in compared.left_to_least_squares
                if share[chosen.names.index(name)] < FOLLOWED]
        return without_undetermined(chosen, own, weak, deviations)


def _by_instruments(
    experiment: Experiment, plain: Estimate, own: dict[str, str]
) -> tuple[Estimate, InstrumentDetails]:
    """Return the estimate by instruments beside its comparison with least squares.

    The instruments are of the ``plain`` estimate, and where its stiffnesses, ``own`` by name, are
    biased, of that by instruments, until they stay. Noise of encoders makes gears too soft, never
    too stiff: no motor bends further than least squares says. Instruments that no longer show a
    bias which those before showed are too weak, and not taken.
    """
    places = [plain.names.index(name) for name in own]
    least = np.abs(plain.values[places])
    bending, taken = plain.values, None
    for _ in range(INSTRUMENT_ROUNDS):
        before = bending
        found, compared = InstrumentalVariables(
            motors=Deflected(experiment.model, before)).fit_and_compare(experiment)
        biased = least_squares_biased(
            compared.bias_of_least_squares, found.degrees_of_freedom, own)
        if not biased:
            return taken or (found, compared)
        taken = found, compared
        bending = found.values.copy()
        bending[places] = np.maximum(bending[places], least)
        change = np.abs(bending - before)[places]
        if np.all(change <= STIFFNESS_SETTLED * _deviations(found)[places]):
            break
    assert taken is not None
    return taken


def _deviations(estimate: Estimate) -> FloatArray:
    """Return the deviations (b,) of all base parameters, of those not excited, too."""
    return np.asarray(np.sqrt(np.diag(estimate.covariance)))


def followed(information: Information, values: FloatArray) -> FloatArray:
    """Return the share (b,) of each column that the effort follows, the others given.

    It is the squared partial correlation of column and effort, by ``values`` (b,). One column with
    noise: its parameter is between the value of least squares and that over the share.
    """
    tall = weighted_factor(information, joint_weights(information))
    unexplained = float(np.sum((tall[:, -1] - tall[:, :-1] @ values) ** 2))
    spread = unexplained * np.sum(solve_rows(tall).root ** 2, axis=1)
    return np.asarray(values**2 / np.maximum(values**2 + spread, 1e-300))


@dataclass(frozen=True, eq=False)
class Deflected:
    """Puts motors where the links of parameters ``values`` (b,) would bend them to."""

    model: TorqueModel
    values: FloatArray

    def __call__(self, samples: Samples) -> Samples:
        """Return ``samples`` with other motors, whose motion is a function of the links'."""
        return samples.with_motion(self._bent)

    def _bent(self, samples: Samples) -> Samples:
        model = self.model
        n, elastic = model.robot.n, [gear.joint for gear in model.gears]
        links = np.where(model.base_of(RigidLinks), self.values, 0.0)
        bends = model.effort(replace(samples, stamps=None), links)[:, elastic]
        for place, gear in enumerate(model.gears):
            stiffness = self.values[model.reduction.names.index(gear.parameter(STIFFNESS))]
            bends[:, place] /= max(abs(stiffness), 1e-12)
        signals = [signal.copy() for signal in (samples.position, samples.velocity,
                                                samples.acceleration)]
        for rows in samples.segments:
            bend = bends[rows]
            step = float(samples.time[rows.start + 1] - samples.time[rows.start]) \
                if len(bend) > 1 else 1.0
            for signal in signals:
                signal[rows, n:] = signal[rows][:, elastic] + bend
                bend = derivative(bend, step)
        position, velocity, acceleration = signals
        return replace(samples, position=position, velocity=velocity, acceleration=acceleration)


def stiffnesses(model: TorqueModel) -> dict[str, str]:
    """Return the joints of the stiffnesses among the base parameters, by name."""
    found = {gear.parameter(STIFFNESS): model.robot.joints[gear.joint] for gear in model.gears}
    return {name: joint for name, joint in found.items() if name in model.reduction.names}


def least_squares_biased(
    bias: Sequence[Bias], degrees: int, own: dict[str, str]
) -> bool:
    """Return whether any stiffness by least squares and by instruments differs beyond chance.

    BIASED is the level for all gears together (Bonferroni). Chance is that of motions, too: where
    encoders are precise, the two differ by what the model lacks, which repeats with the motion.
    """
    rows = [row for row in bias if row.name in own]
    bound = student_quantile(1.0 - 0.5 * BIASED / max(len(rows), 1), degrees)
    return any(abs(row.bias) > bound * row.std for row in rows)


def undetermined(
    estimate: Estimate, own: Iterable[str], weak: Sequence[str] = (),
    least: FloatArray | float = 0.0,
) -> tuple[str, ...]:
    """Return the stiffnesses whose interval of the compliance 1/K holds zero, or nearly so.

    ``own`` are all stiffnesses. The deflection that is seen must follow that of the model, or the
    effort (else the stiffness is ``weak``), and bear torque (K is above zero): else a stiffer gear
    explains the data as well. ``least`` (b,) are deviations that none is below but by rounding.
    """
    factor = student_quantile(1.0 - 0.5 * DEFLECTION_LEVEL, estimate.degrees_of_freedom)
    deviation = np.maximum(_deviations(estimate), least)
    told = dict(zip(estimate.names, estimate.values > factor * deviation, strict=True))
    return tuple(name for name in own
                 if name in weak or name in estimate.not_excited or not told[name])


def without_undetermined(
    estimate: Estimate, own: dict[str, str], weak: Sequence[str], least: FloatArray
) -> Estimate:
    """Name the stiffnesses that are `undetermined` in status and warnings.

    ``least`` (b,) are the deviations by least squares; no instruments have smaller ones.
    """
    lost = undetermined(estimate, own, weak, least)
    if not lost:
        return estimate
    names = tuple(n for n in estimate.names if n in lost or n in estimate.not_excited)
    warnings = [f'{name} of joint {own[name]} is not distinguishable from infinity: take the '
                'joint as rigid (leave it out of elastic_joints), or load it more'
                for name in lost]
    return replace(estimate, not_excited=names, status=Status.NOT_EXCITED,
                   warnings=(*estimate.warnings, *warnings))
