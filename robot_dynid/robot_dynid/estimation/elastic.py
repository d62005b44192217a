"""Elastic joints: generalised least squares, or instruments if the encoders are coarse.

The column of a stiffness is the deflection, a small difference of two encoders. If encoder noise
is not small against it, least squares underestimates the stiffness (attenuation). The deflection
that the identified links would cause along the smoothed motion is an instrument without that
noise. The instrumental estimate is used if it differs from least squares by more than chance
(Durbin-Wu-Hausman). Its instruments are then computed anew from it, because stiffnesses that are
far too small put the motors far from their true positions. Source: Young 2011, Recursive
Estimation and Time-Series Analysis, ch. 8 (refined instruments).

A stiffness with weak instruments is left to least squares, which determines it if the effort
follows the deflection: noise in a column reduces its parameter at most by the share of the column
that the effort does not follow. Source: Frisch 1934, Confluence Analysis.
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

#: level of the test of the deflection, and the larger one at which a stiffness counts as biased: a
#: biased value costs more than some precision (Guggenberger 2010)
DEFLECTION_LEVEL, BIASED = 0.05, 0.1
#: least squares determines a stiffness if noise reduces it by at most a tenth, the bias of
#: instruments that count as strong (Staiger, Stock 1997)
FOLLOWED = 0.9
#: maximum number of fits with refined instruments; they stop if no stiffness changes by more than
#: this share of its deviation
INSTRUMENT_ROUNDS, STIFFNESS_SETTLED = 8, 0.1


@dataclass(frozen=True, eq=False)
class DetailsByLeastSquares(CorrelationDetails):
    """Details of an elastic fit by least squares."""

    instruments_taken: bool = False


@dataclass(frozen=True, eq=False)
class DetailsByInstruments(InstrumentDetails):
    """Details of an elastic fit by instrumental variables."""

    instruments_taken: bool = True


@dataclass(frozen=True)
class ElasticJoints(Estimator):
    """The method elastic; rigid robots get generalised least squares."""

    name = 'elastic'
    summary = 'elastic joints with encoders on motors and links'
    seeks_elastic_joints = True

    def read_details(self, content: Mapping[str, Any]) -> Details:
        """Return the details of a model file; raises ValueError or TypeError if they differ."""
        return from_plain(DetailsByInstruments if content.get('instruments_taken')
                          else DetailsByLeastSquares, content)

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; raises DataError if recordings cannot be read again.

        A stiffness whose deflection may be zero is open: its interval is infinite. Kinematic error
        and hysteresis of gears have no instrument, because the links do not cause them: models
        with these keep least squares.
        """
        plain = replace(GeneralisedLeastSquares().fit(experiment), method=self.name)
        if not experiment.model.gears:
            return plain
        joints, deviations = stiffnesses(experiment.model), _deviations(plain)
        chosen = replace(plain, details=DetailsByLeastSquares(**vars(plain.details)))
        if any(isinstance(b, KinematicError | Hysteresis) for b in experiment.model.blocks):
            return mark_undetermined(chosen, joints, (), deviations)
        other, compared = _by_instruments(experiment, plain, joints)
        if least_squares_biased(compared.bias_of_least_squares, other.degrees_of_freedom, joints):
            chosen = replace(other, method=self.name,
                             details=DetailsByInstruments(**vars(compared)))
        share = followed(experiment.information, chosen.values)
        weak = [name for name in compared.left_to_least_squares
                if share[chosen.names.index(name)] < FOLLOWED]
        return mark_undetermined(chosen, joints, weak, deviations)


def _by_instruments(
    experiment: Experiment, plain: Estimate, joints: dict[str, str]
) -> tuple[Estimate, InstrumentDetails]:
    """Return the estimate by instruments, and its comparison with least squares.

    The first instruments come from the `plain` estimate; while the stiffnesses (`own`: joints by
    name) are biased, the next come from the instrumental estimate, until they converge. Encoder
    noise makes gears too soft, never too stiff, so no stiffness is below that of least squares.
    Instruments that no longer show an earlier bias are too weak and discarded.
    """
    places = [plain.names.index(name) for name in joints]
    least = np.abs(plain.values[places])
    bending, taken = plain.values, None
    for _ in range(INSTRUMENT_ROUNDS):
        previous = bending
        estimate, compared = InstrumentalVariables(
            motors=Deflected(experiment.model, previous)).fit_and_compare(experiment)
        biased = least_squares_biased(
            compared.bias_of_least_squares, estimate.degrees_of_freedom, joints)
        if not biased:
            return taken or (estimate, compared)
        taken = estimate, compared
        bending = estimate.values.copy()
        bending[places] = np.maximum(bending[places], least)
        change = np.abs(bending - previous)[places]
        if np.all(change <= STIFFNESS_SETTLED * _deviations(estimate)[places]):
            break
    assert taken is not None
    return taken


def _deviations(estimate: Estimate) -> FloatArray:
    """Return the standard deviations (b,) of all base parameters, including unexcited ones."""
    return np.asarray(np.sqrt(np.diag(estimate.covariance)))


def followed(information: Information, values: FloatArray) -> FloatArray:
    """Return the squared partial correlation (b,) of each column with the effort.

    `values` (b,) are the parameters. A parameter whose only error is noise in its column lies
    between its least-squares value and that value over this share.
    """
    tall = weighted_factor(information, joint_weights(information))
    unexplained = float(np.sum((tall[:, -1] - tall[:, :-1] @ values) ** 2))
    spread = unexplained * np.sum(solve_rows(tall).root ** 2, axis=1)
    return np.asarray(values**2 / np.maximum(values**2 + spread, 1e-300))


@dataclass(frozen=True, eq=False)
class Deflected:
    """Computes motor positions at which links with parameters `values` (b,) deflect the gears."""

    model: TorqueModel
    values: FloatArray

    def __call__(self, samples: Samples) -> Samples:
        """Return `samples` with motors whose motion is a function of the motion of the links."""
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
    """Return the joints of the stiffnesses among the base parameters, by parameter name."""
    joints = {gear.parameter(STIFFNESS): model.robot.joints[gear.joint] for gear in model.gears}
    return {name: joint for name, joint in joints.items() if name in model.reduction.names}


def least_squares_biased(
    bias: Sequence[Bias], degrees: int, joints: dict[str, str]
) -> bool:
    """Return True if any stiffness by least squares and by instruments differs beyond chance.

    BIASED is the level for all gears together (Bonferroni). The deviations include the scatter
    between motions: with precise encoders the two estimates differ by what the model lacks.
    """
    rows = [row for row in bias if row.name in joints]
    bound = student_quantile(1.0 - 0.5 * BIASED / max(len(rows), 1), degrees)
    return any(abs(row.bias) > bound * row.std for row in rows)


def undetermined(
    estimate: Estimate, stiffness_names: Iterable[str], weak: Sequence[str] = (),
    least: FloatArray | float = 0.0,
) -> tuple[str, ...]:
    """Return the stiffnesses whose compliance 1/K may be zero.

    `own` are all stiffnesses by name, `weak` those without instruments and without an effort that
    follows the deflection: a stiffer gear explains the data as well. `least` (b,) are lower bounds
    of the deviations.
    """
    factor = student_quantile(1.0 - 0.5 * DEFLECTION_LEVEL, estimate.degrees_of_freedom)
    deviation = np.maximum(_deviations(estimate), least)
    determined = dict(zip(estimate.names, estimate.values > factor * deviation, strict=True))
    return tuple(name for name in stiffness_names
                 if name in weak or name in estimate.not_excited or not determined[name])


def mark_undetermined(
    estimate: Estimate, joints: dict[str, str], weak: Sequence[str], least: FloatArray
) -> Estimate:
    """Return the estimate with the `undetermined` stiffnesses marked in status and warnings.

    `least` (b,) are the deviations by least squares, which instruments cannot improve on.
    """
    open_names = undetermined(estimate, joints, weak, least)
    if not open_names:
        return estimate
    names = tuple(n for n in estimate.names if n in open_names or n in estimate.not_excited)
    warnings = [f'{name} of joint {joints[name]} is not distinguishable from infinity: make the '
                'joint rigid (omit it from elastic_joints), or load it more'
                for name in open_names]
    return replace(estimate, not_excited=names, status=Status.NOT_EXCITED,
                   warnings=(*estimate.warnings, *warnings))
