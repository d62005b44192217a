"""Identification of the ten parameters of a payload."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.estimation.estimate import student_quantile
from robot_dynid.estimation.feasible.body import TEN, Body, fit_body, informative, without
from robot_dynid.estimation.information import FILTERED, Batch, Information
from robot_dynid.estimation.least_squares import (
    RANK_TOLERANCE,
    batch_covariance,
    joint_weights,
    residual_noise,
    solve,
)
from robot_dynid.estimation.uncertainty.between_recordings import (
    deviations,
    leave_one_out,
    stretches,
)
from robot_dynid.robot.inertia import PARAMETERS, com_from_parameters
from robot_dynid.types import FloatArray

M, MX, IXX = 0, 1, 4
#: indices of the six moments (xx, xy, yy, xz, yz, zz) in a matrix
SIX = ((0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2))
#: first moments in the moments about the centre of mass: Ixx does not contain mx, and so on
NEEDED = ((1, 2), (0, 1), (0, 2), (0, 2), (1, 2), (0, 1))
#: coefficients below this are omitted from the text of a direction
WRITTEN_COEFFICIENT = 0.05
CONFIDENCE = 0.95


class PayloadStatus(Enum):
    """Outcome of a fit; the value is the advice."""

    OK = 'the data determines every parameter of the payload'
    NOT_EXCITED = ('the motion does not excite every parameter of the payload; turn the last '
                   'joints through most of their range, at different speeds, while others move')
    NO_PAYLOAD = ('the mass is zero within its interval: check that the payload is attached, and '
                  'that the recording is the one with it')


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """Physically consistent payload, in the frame of the link that carries it.

    `parameters` (10,) standard parameters; `mass` [kg], `centre_of_mass` (3,) [m], `inertia` (3,
    3) about it in the axes of the frame [kg m^2]; each with its standard deviation, infinite if
    the data does not determine it; `mass_std_gains` [kg] is the part from the drive gains.
    `degrees_of_freedom` (4,) are those of mass and centre of mass. `noise` (n,) residual deviation
    of each joint [N m]; `not_excited` parameters and `directions` combinations of them without
    information; `constrained` if least squares alone would be inconsistent, by `least_eigenvalue`
    of its pseudo-inertia in units of the payload.
    """

    parameters: FloatArray
    parameters_std: FloatArray
    mass: float
    mass_std: float
    mass_std_gains: float
    centre_of_mass: FloatArray
    centre_of_mass_std: FloatArray
    inertia: FloatArray
    inertia_std: FloatArray
    degrees_of_freedom: FloatArray
    noise: FloatArray
    status: PayloadStatus
    not_excited: tuple[str, ...]
    directions: tuple[str, ...]
    least_eigenvalue: float
    constrained: bool

    @property
    def margins(self) -> FloatArray:
        """Factors (4,) from deviations to half-widths of 95 % intervals: mass, centre of mass."""
        return np.array([student_quantile(0.5 + CONFIDENCE / 2.0, degrees)
                         for degrees in self.degrees_of_freedom])


def fit_payload(
    information: Information, reach: FloatArray, gains_std: FloatArray | float = 0.0
) -> PayloadEstimate:
    """Estimate a payload from `information` whose last ten parameters are those of the payload.

    The parameters before, such as a change of friction, are nuisance parameters. `reach` (n, 10)
    [N m] is the effort of each parameter of value one in a motion at about 1 rad/s. Deviations
    come from leaving out long stretches of time, and from `gains_std` (n,), the relative
    deviations of the drive gains. Raises DataError for a negative mass, and for too little data.
    """
    weights = joint_weights(information)
    _require_mass(information, weights)
    body = _fitted(information, weights, information.total.factors)
    batches = information.grouped(stretches(len(information.batches))).batches
    changed = [_described(_fitted(information, weights, factors).values)
               for factors in leave_one_out(batches)]
    scatter, freedom = deviations(changed), len(batches) - 1
    gains = _of_gains(information, weights, body, np.broadcast_to(gains_std, len(weights)))
    spread = np.hypot(scatter, gains)
    not_excited, directions = _open(information, weights, reach)
    determined = _determined(not_excited)
    values = np.where(determined, _described(body.values), np.nan)
    std = np.where(determined, spread, np.inf)
    seen = values[TEN] > student_quantile(0.5 + CONFIDENCE / 2.0, freedom) * scatter[TEN]
    status = PayloadStatus.NOT_EXCITED if not_excited else PayloadStatus.OK
    if determined[TEN] and not seen:
        status = PayloadStatus.NO_PAYLOAD
        values[TEN + 1:], std[TEN + 1:] = np.nan, np.inf
    return PayloadEstimate(
        parameters=body.values, parameters_std=std[:TEN], mass=float(values[TEN]),
        mass_std=float(std[TEN]), mass_std_gains=float(gains[TEN]),
        centre_of_mass=values[TEN + 1:TEN + 4], centre_of_mass_std=std[TEN + 1:TEN + 4],
        inertia=_square(values[TEN + 4:]), inertia_std=_square(std[TEN + 4:]),
        degrees_of_freedom=_freedom(scatter, spread, freedom)[TEN:TEN + 4],
        noise=residual_noise(information, solve(information, weights).values), status=status,
        not_excited=not_excited, directions=directions, least_eigenvalue=body.least_eigenvalue,
        constrained=body.active,
    )


def _of_gains(
    information: Information, weights: FloatArray, body: Body, gains_std: FloatArray
) -> FloatArray:
    """Return the deviations (20,) that come from the drive gains.

    A wrong gain scales the effort of its joint. The errors may be common, as of one current
    sensor, or independent, as of motors: the larger effect counts.
    """
    nominal = _described(body.values)
    moved = np.zeros((len(gains_std), len(nominal)))
    for joint in np.flatnonzero(gains_std):
        scale = np.ones(len(gains_std))
        scale[joint] += gains_std[joint]
        other = _fitted(information, weights, information.total.factors, scale)
        moved[joint] = _described(other.values) - nominal
    return np.asarray(np.maximum(np.abs(moved.sum(axis=0)), np.linalg.norm(moved, axis=0)))


def _freedom(scatter: FloatArray, spread: FloatArray, freedom: int) -> FloatArray:
    """Return the degrees of freedom of `spread`, of which `scatter` has `freedom`.

    Source: Welch 1947; Satterthwaite 1946.
    """
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.where(scatter < spread, freedom * (spread / scatter) ** 4, float(freedom))


def _require_mass(information: Information, weights: FloatArray) -> None:
    """Raise DataError for too few samples, or a significantly negative mass."""
    count, parameters = len(information.batches), len(information.names)
    if count < 2 or information.samples < parameters:
        raise DataError(f'{information.samples} usable samples are too few for {parameters} '
                        'parameters: record a longer motion')
    solution = solve(information, weights)
    covariance, freedom = batch_covariance(information, weights, solution)
    index = len(information.names) - TEN
    mass, std = float(solution.values[index]), float(np.sqrt(covariance[index, index]))
    if mass < -student_quantile(0.5 + CONFIDENCE / 2.0, freedom) * std:
        raise DataError(f'the mass of the payload is negative ({mass:.4g} +- {std:.2g} kg): check '
                        'that the recordings with and without it are not exchanged, and the '
                        'signs of effort and gravity')


def _fitted(
    information: Information, weights: FloatArray, factors: tuple[FloatArray, ...],
    scale: FloatArray | float = 1.0,
) -> Body:
    """Return the best consistent body; joints have `weights` (n,), effort is scaled by (n,)."""
    return fit_body(equations(information, weights, factors, len(information.names) - TEN, scale))


def equations(
    information: Information, weights: FloatArray, factors: tuple[FloatArray, ...], others: int,
    scale: FloatArray | float = 1.0,
) -> FloatArray:
    """Return equations (11, 11) ``[A, y]`` of the last ten parameters, the others eliminated."""
    batch = Batch(factors, information.samples)
    width = len(information.names)
    columns = [*range(width), width + FILTERED]
    rows = [w * information.expanded(j, batch)[:, columns] for j, w in enumerate(weights)]
    for row, factor in zip(rows, np.broadcast_to(scale, len(rows)), strict=True):
        row[:, -1] *= factor
    return without(np.vstack(rows), others)


def _described(parameters: FloatArray) -> FloatArray:
    """Return (20,): the parameters, then mass, centre of mass and six moments about it."""
    numbers = np.full(20, np.nan)
    numbers[:TEN], numbers[TEN] = parameters, parameters[M]
    if parameters[M] > 0.0:
        _, com, inertia = com_from_parameters(parameters)
        numbers[TEN + 1:TEN + 4], numbers[TEN + 4:] = com, inertia[SIX]
    return numbers


def _square(six: FloatArray) -> FloatArray:
    matrix = np.empty((3, 3))
    matrix[SIX] = matrix[SIX[::-1]] = six
    return matrix


def _open(
    information: Information, weights: FloatArray, reach: FloatArray
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parameters and the combinations that the data does not determine.

    A parameter is also open if it could explain, within its deviation, all measured effort in a
    motion at 1 rad/s.
    """
    solution = solve(information, weights)
    others = len(information.names) - TEN
    covariance, _ = batch_covariance(information, weights, solution)
    std = np.sqrt(np.diag(covariance))[others:]
    size = information.size()[np.argmax(reach, axis=0)]
    open_indices = {i - others for i in solution.open_columns if i >= others}
    open_indices |= {int(i) for i in np.flatnonzero(std * reach.max(axis=0) > size)}
    design = equations(information, weights, information.total.factors, others)[:, :TEN]
    return tuple(PARAMETERS[i] for i in sorted(open_indices)), _silent(design)


def _silent(equations_of_ten: FloatArray) -> tuple[str, ...]:
    """Return the combinations (n,) of parameters without information, as text."""
    design, names = informative(equations_of_ten), np.array(PARAMETERS)
    norms = np.linalg.norm(design, axis=0)
    shown = norms > 0.0
    _, s, vt = np.linalg.svd(design[:, shown] / norms[shown])
    directions = names[~shown].tolist()
    for row in vt[s <= RANK_TOLERANCE * s.max(initial=0.0)] / norms[shown]:
        row = row / row[np.argmax(np.abs(row))]
        text = ' '.join(f'{value:+.3g} {name}' for value, name in zip(
            row, names[shown], strict=True) if abs(value) > WRITTEN_COEFFICIENT)
        directions.append(text.removeprefix('+').removeprefix('1 '))
    return tuple(directions)


def _determined(not_excited: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return a mask (20,) of the determined numbers."""
    parameters = np.array([name not in not_excited for name in PARAMETERS])
    com = parameters[MX:IXX] & parameters[M]
    moments = parameters[IXX:] & [all(com[list(axes)]) for axes in NEEDED]
    return np.concatenate([parameters, parameters[[M]], com, moments])
