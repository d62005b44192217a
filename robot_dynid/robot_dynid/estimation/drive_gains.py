"""Drive gains from a payload of known mass.

The measured current of joint j is ``i_j = k_j X_j x`` with k_j = 1 / gain, X_j the regressor of
arm and payload and x their parameters. All noise is in the current, so weighted least squares over
k and x is the total least-squares solution of ``X x - diag(gain) i = 0`` with an exact X; the
known mass fixes its scale. Least squares with the current among the regressors would bias the
gains towards zero. Gains are positive by construction (their logarithms are fitted), and the
payload is physically consistent.

Source: Gautier, Briot, Global identification of joint drive gains and dynamic parameters of
robots, ASME J. Dyn. Sys., Meas., Control 136, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.estimation.estimate import student_quantile
from robot_dynid.estimation.feasible.body import TEN, fit_body, without
from robot_dynid.estimation.information import FILTERED, Batch, Information
from robot_dynid.estimation.least_squares import rounding, solve_rows
from robot_dynid.estimation.uncertainty.between_recordings import deviations, leave_one_out
from robot_dynid.numbers import LENGTH, MASS
from robot_dynid.robot.inertia import com_from_parameters
from robot_dynid.settings import require_allowed, setting
from robot_dynid.types import FloatArray

#: a gain is determined if its relative standard deviation is below this
DETERMINED = 0.03
#: Gauss-Newton steps of the fit, and of a fit without one batch, which starts from it
NEWTON_STEPS, STEPS_LEFT_OUT, GAINS_SETTLED = 60, 2, 1e-9
#: a step is halved at most this often; then the point is taken as the minimum
HALVINGS = 12
#: largest change of the logarithm of a gain in one step
GAIN_STEP = 0.5
GAIN_WEIGHT_ROUNDS = 4


class GainStatus(Enum):
    """Outcome of a fit; the value is the advice."""

    OK = 'the data determines the gain of every joint'
    NOT_DETERMINED = ('the gains of some joints are not determined; load these joints with the '
                      'payload: a heavier one, further out, in a faster motion')
    NOT_CONVERGED = ('the fit did not converge, so the gains must not be used; check that mass, '
                     'recordings and robot belong together')


@dataclass(frozen=True)
class KnownLoad:
    """A weighed payload: `mass` [kg] and, optionally, `centre_of_mass` [m] in the frame of `link`.

    An empty `link` is the last one. Raises UsageError unless the mass is positive.
    """

    mass: float
    centre_of_mass: tuple[float, float, float] | None = setting(None, LENGTH)
    link: str = ''

    def __post_init__(self) -> None:
        MASS.read(self.mass, 'known mass')
        require_allowed(self, 'known {}')

    @property
    def fixed(self) -> FloatArray:
        """The first one or four standard parameters (1,) or (4,): kg, kg m."""
        centre = self.centre_of_mass or ()
        return np.array([self.mass, *(self.mass * c for c in centre)])


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Drive gains (n,) [N m per unit of the measured effort], on the joint side.

    `estimates` (n,) even if uncertain; `relative_std` (n,) standard deviations of their
    logarithms, infinite without information; `determined` (n,); `centre_of_mass` (3,) [m] of the
    payload; `noise` (n,) residual deviation in the measured unit.
    """

    estimates: FloatArray
    relative_std: FloatArray
    determined: NDArray[np.bool_]
    degrees_of_freedom: int
    centre_of_mass: FloatArray
    noise: FloatArray
    status: GainStatus

    @property
    def values(self) -> FloatArray:
        """The determined gains (n,); NaN for the others."""
        return np.where(self.determined, self.estimates, np.nan)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds (n,) of the confidence intervals."""
        factor = student_quantile(0.5 + level / 2.0, self.degrees_of_freedom)
        with np.errstate(over='ignore'):
            reach = np.exp(factor * self.relative_std)
        return self.estimates / reach, self.estimates * reach


@dataclass(frozen=True, eq=False)
class _Point:
    """Logarithms of the reciprocal gains of all groups, and parameters (arm, then payload)."""

    logarithms: FloatArray
    parameters: FloatArray


@dataclass(frozen=True, eq=False)
class _Problem:
    """The constants of the iteration; ``groups`` (n,) index of the gain of each joint."""

    information: Information
    groups: NDArray[np.int64]
    load: KnownLoad

    @property
    def arm(self) -> int:
        """Number of parameters of the arm, without the payload."""
        return len(self.information.names) - TEN

    def rows(self, factors: Sequence[FloatArray]) -> list[FloatArray]:
        """Return ``[X_j, i_j]`` of every joint."""
        width = len(self.information.names)
        batch, columns = Batch(tuple(factors), 0), [*range(width), width + FILTERED]
        return [self.information.expanded(j, batch)[:, columns] for j in range(len(factors))]

    def prediction(self, row: FloatArray, joint: int, point: _Point) -> FloatArray:
        """Return the current of one joint."""
        scale = np.exp(point.logarithms[self.groups[joint]])
        return np.asarray(scale * (row[:, :-1] @ point.parameters))

    def linearised(
        self, rows: Sequence[FloatArray], weights: FloatArray, point: _Point
    ) -> FloatArray:
        """Return ``[d/d logarithms, d/d parameters | target]``, arm before payload.

        Solving it gives the parameters themselves, and changes of the logarithms.
        """
        count = len(point.logarithms)
        parts = []
        for joint, row in enumerate(rows):
            scale = np.exp(point.logarithms[self.groups[joint]])
            slopes = np.zeros((len(row), count))
            slopes[:, self.groups[joint]] = self.prediction(row, joint, point)
            parts.append(weights[joint] * np.hstack([slopes, scale * row[:, :-1], row[:, -1:]]))
        return np.vstack(parts)

    def solve(self, tall: FloatArray) -> tuple[FloatArray, float]:
        """Return the best parameters, with a consistent payload, and the norm of the residual."""
        others = tall.shape[1] - 1 - TEN
        payload = fit_body(without(tall, others), self.load.fixed).values
        target = tall[:, -1] - tall[:, others:-1] @ payload
        rest = solve_rows(np.column_stack([tall[:, :others], target])).values
        return (np.concatenate([rest, payload]),
                float(np.linalg.norm(target - tall[:, :others] @ rest)))

    def at(
        self, rows: Sequence[FloatArray], weights: FloatArray, logarithms: FloatArray
    ) -> tuple[_Point, float]:
        """Return the best parameters for given gains, and the norm of the weighted residual."""
        start = _Point(logarithms, np.zeros(self.arm + TEN))
        values, residual = self.solve(self.linearised(rows, weights, start)[:, len(logarithms):])
        return _Point(logarithms, values), residual


def fit_drive_gains(
    information: Information, load: KnownLoad, groups: NDArray[np.int64] | None = None
) -> DriveGains:
    """Estimate drive gains from the `information` about arm and payload (its last ten parameters).

    Its effort is the measured signal in any unit, of motions with and without the payload. Joints
    with the same number in `groups` (n,) share one gain; None: all differ. Raises DataError for
    too little data.
    """
    n = len(information.structure)
    if len(information.batches) < 2 or information.samples < len(information.names):
        raise DataError(f'{information.samples} usable samples are too few for '
                        f'{len(information.names)} parameters: record longer motions')
    numbers = np.arange(n) if groups is None else groups
    problem = _Problem(information, numbers, load)
    rows = problem.rows(information.total.factors)
    weights = _weights(information, np.zeros(n))
    logarithms = _start(problem, rows, weights)
    for _ in range(GAIN_WEIGHT_ROUNDS):
        point, converged = _descended(problem, rows, weights, logarithms, NEWTON_STEPS)
        logarithms = point.logarithms
        noise = _noise(problem, rows, point)
        weights = _weights(information, noise)
    changed = []
    for factors in leave_one_out(information.batches):
        other = problem.rows(factors)
        nearby, _ = _descended(problem, other, weights, logarithms, STEPS_LEFT_OUT)
        changed.append(nearby.logarithms)
    spread = np.where(_open(problem, rows, weights, point), np.inf, deviations(changed))[numbers]
    determined = spread < DETERMINED
    status = GainStatus.OK if determined.all() else GainStatus.NOT_DETERMINED
    _, centre, _ = com_from_parameters(point.parameters[-TEN:])
    return DriveGains(np.exp(-point.logarithms[numbers]), spread, determined & converged,
                      len(information.batches) - 1, centre, noise,
                      status if converged else GainStatus.NOT_CONVERGED)


def _weights(information: Information, noise: FloatArray) -> FloatArray:
    """Return the inverse of the noise (n,), or of the effort of joints whose noise is unknown."""
    size = np.where(noise > 0.0, noise, information.size(FILTERED))
    return np.asarray(1.0 / np.maximum(size, rounding(information)))


def _noise(problem: _Problem, rows: Sequence[FloatArray], point: _Point) -> FloatArray:
    samples = problem.information.samples
    energy = [np.sum((row[:, -1] - problem.prediction(row, j, point)) ** 2)
              for j, row in enumerate(rows)]
    return np.asarray(np.sqrt(np.array(energy) / samples))


def _start(
    problem: _Problem, rows: Sequence[FloatArray], weights: FloatArray
) -> FloatArray:
    """Return the logarithms of the least-squares solution of ``X x - diag(gain) i = 0``.

    Gains that are not positive there are replaced by the median.
    """
    fixed, count = problem.load.fixed, int(problem.groups.max()) + 1
    parts = []
    for j, row in enumerate(rows):
        currents = np.zeros((len(row), count))
        currents[:, problem.groups[j]] = -row[:, -1]
        parts.append(weights[j] * np.hstack([currents, row[:, :-1]]))
    tall = np.vstack(parts)
    given = count + problem.arm + np.arange(len(fixed))
    gains = solve_rows(np.column_stack([
        np.delete(tall, given, axis=1), -tall[:, given] @ fixed])).values[:count]
    typical = float(np.median(gains[gains > 0.0])) if np.any(gains > 0.0) else 1.0
    return np.asarray(-np.log(np.where(gains > 0.0, gains, typical)))


def _descended(
    problem: _Problem, rows: Sequence[FloatArray], weights: FloatArray, logarithms: FloatArray,
    steps: int,
) -> tuple[_Point, bool]:
    """Return the point after Gauss-Newton steps in the gains, and True if they have converged.

    The parameters are solved for after every step; a step is halved until the residual falls.
    """
    point, residual = problem.at(rows, weights, logarithms)
    for _ in range(steps):
        values, _ = problem.solve(problem.linearised(rows, weights, point))
        change = np.clip(values[:len(logarithms)], -GAIN_STEP, GAIN_STEP)
        for _ in range(HALVINGS):
            tried, less = problem.at(rows, weights, point.logarithms + change)
            if less <= residual:
                break
            change = 0.5 * change
        else:
            return point, True
        gained, point, residual = residual - less, tried, less
        if np.max(np.abs(change)) < GAINS_SETTLED or gained < GAINS_SETTLED * residual:
            return point, True
    return point, False


def _open(
    problem: _Problem, rows: Sequence[FloatArray], weights: FloatArray, point: _Point
) -> NDArray[np.bool_]:
    """Return a mask (groups,) of the gains that the equations do not determine."""
    count = len(point.logarithms)
    given = count + problem.arm + np.arange(len(problem.load.fixed))
    solution = solve_rows(np.delete(problem.linearised(rows, weights, point), given, axis=1))
    return np.isin(np.arange(count), solution.open_columns)
