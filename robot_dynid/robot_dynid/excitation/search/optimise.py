"""Interior-point search for the coefficients of a motion, from random starts within all limits.

It minimises f(C) + mu (b(C) + h(C)) for falling mu, with the barriers b of the limits and h of the
constraints. The Hessian of b is exact, a block per joint; those of h and f are approximated by
damped BFGS updates from exact gradients (Nocedal, Wright, Numerical Optimization, 2006, procedure
18.2 and section 19.3). Steps that leave the limits are cut before anything is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.search.basis import Basis, Matrices, motion_of
from robot_dynid.excitation.search.constraints import (
    Constraint,
    constraint_barrier,
    constraint_values,
    inside,
    share_inside,
)
from robot_dynid.excitation.search.objective import Objective
from robot_dynid.excitation.search.observation import MotionGradient
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

#: instants of the objective per free coefficient of a joint, and their least number; constraints
#: are imposed on twice as many, and checked on twenty times as many at the end
INSTANTS_EACH, INSTANTS_LEAST = 12, 200
#: weights of the barriers; the last one keeps the optimum about 1 % off the limits
WEIGHTS = (0.1, 0.01, 1e-3, 1e-4)
#: expected gain (logarithmic) below which a search has converged
CONVERGED_GAIN = 1e-4
#: share of the distance to the nearest limit that a step may go; Armijo's share; cuts of a step
LIMIT_REACH, SUFFICIENT, CUTS = 0.95, 1e-4, 10
#: range of the factor that shortens a step which is too long, where constraints break by linear
#: interpolation of their values
CUT = (0.1, 0.4)
#: first guess of the Hessian of f relative to that of b, and bounds of its correction
GUESS, CORRECTION = 0.05, (1e-2, 1e2)
#: Powell's damping: least curvature of a BFGS update relative to the previous one
DAMPING = 0.2
#: random motions per start, of which the best is improved
MOTIONS_PER_START = 10
#: share of the limits that a start uses, and the most halvings of it
FILLED, HALVINGS = 0.8, 12
#: random centre poses tried if the centre of the ranges violates the constraints
START_POSES = 300

#: returns True if a start ends, from its number, the iteration and the best value so far
Terminate = Callable[[int, int, float], bool]


@dataclass(frozen=True, eq=False)
class Band:
    """|phi(t_m) C_j - centre_j| <= half_j on the grid: one kind of limit of all joints.

    ``matrix`` (M, P); ``centre``, ``half`` (n,), infinite where there is no limit.
    """

    matrix: FloatArray
    centre: FloatArray
    half: FloatArray

    def share(self, coefficients: FloatArray) -> FloatArray:
        """Return the share used of the limit (M, n), -1 to 1 inside it."""
        return np.asarray((self.matrix @ coefficients.T - self.centre) / self.half)


@dataclass(frozen=True, eq=False)
class LimitBarrier:
    """-mean_t sum_j log(1 - share^2), summed over position, velocity, acceleration, jerk."""

    bands: tuple[Band, ...]

    @classmethod
    def of(cls, basis: Basis, limits: MotionLimits) -> LimitBarrier:
        """Return the barrier on the grid of a basis, with its margin for the instants in between.
"""
        matrices, still = basis.matrices(basis.grid()), np.zeros(len(limits.joints))
        ranges = ((limits.centre, limits.half_range), (still, limits.velocity),
                  (still, limits.acceleration), (still, limits.jerk))
        return cls(tuple(
            Band(matrix, centre, np.where(np.isnan(half), np.inf, basis.margin * half))
            for matrix, (centre, half) in zip(matrices, ranges, strict=True)
            if not np.all(np.isnan(half))))

    def largest(self, coefficients: FloatArray) -> float:
        """Return the largest share used of any limit by ``coefficients`` (n, P)."""
        return max(float(np.max(np.abs(band.share(coefficients)))) for band in self.bands)

    def value(self, coefficients: FloatArray) -> float:
        """Return the barrier at ``coefficients`` (n, P), infinite outside."""
        value = 0.0
        for band in self.bands:
            share = band.share(coefficients)
            if np.max(np.abs(share)) >= 1.0:
                return float('inf')
            value -= float(np.sum(np.log1p(-(share**2)))) / len(share)
        return value

    def slopes(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient (n, P) and Hessian, a block (n, P, P) per joint."""
        n, size = coefficients.shape
        gradient, hessian = np.zeros((n, size)), np.zeros((n, size, size))
        for band in self.bands:
            share = band.share(coefficients)
            inside = 1.0 / (1.0 - share**2)
            gradient += (2.0 * share * inside / band.half).T @ band.matrix / len(share)
            curved = 2.0 * inside * (2.0 * inside - 1.0) / band.half**2 / len(share)
            for j in range(n):
                hessian[j] += band.matrix.T @ (curved[:, j, None] * band.matrix)
        return gradient, hessian

    def longest(self, coefficients: FloatArray, step: FloatArray) -> float:
        """Return the largest factor of ``step`` (n, P) that stays inside."""
        longest = float('inf')
        for band in self.bands:
            share, way = band.share(coefficients), (band.matrix @ step.T) / band.half
            slack = np.where(way > 0.0, 1.0 - share, 1.0 + share)
            with np.errstate(divide='ignore'):
                longest = min(longest, float(np.min(slack / np.abs(way))))
        return longest


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective over the coefficients of ``basis``, within ``limits`` and constraints."""

    basis: Basis
    limits: MotionLimits
    objective: Objective
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def barrier(self) -> LimitBarrier:
        """The barrier of the limits."""
        return LimitBarrier.of(self.basis, self.limits)

    def instants(self, density: int = 1) -> FloatArray:
        """Return equidistant instants (T,) of the span."""
        count = density * max(INSTANTS_LEAST, INSTANTS_EACH * self.basis.size)
        return np.linspace(0.0, self.basis.span, count, endpoint=False)

    def motion(self, coefficients: FloatArray) -> Motion:
        """Return the motion of coefficients (n, P) at the instants of the objective."""
        return motion_of(self._matrices, coefficients)

    def value(self, coefficients: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient (n, P)."""
        value, gradient = self.objective(self.motion(coefficients))
        return value, _coefficient_gradient(self._matrices, gradient)

    def keeps(self, coefficients: FloatArray) -> bool:
        """Return True if the motion of ``coefficients`` (n, P) satisfies all constraints."""
        return inside(constraint_values(
            self.constraints, motion_of(self._fine_matrices, coefficients)))

    def constraint_barrier(
        self, coefficients: FloatArray
    ) -> tuple[float, FloatArray, tuple[FloatArray, ...]]:
        """Return the barrier of the constraints, its gradient (n, P), and their values (T, m).

        If a constraint is violated, the barrier is infinite and the values after it are omitted.
        """
        none = np.zeros(coefficients.shape)
        if not self.constraints:
            return 0.0, none, ()
        motion = motion_of(self._fine_matrices, coefficients)
        values = constraint_values(self.constraints, motion)
        if not inside(values):
            return float('inf'), none, values
        value, gradient = constraint_barrier(self.constraints, motion, values)
        return value, _coefficient_gradient(self._fine_matrices, gradient), values

    @cached_property
    def _matrices(self) -> Matrices:
        return self.basis.matrices(self.instants())

    @cached_property
    def _fine_matrices(self) -> Matrices:
        return self.basis.matrices(self.instants(2))


def _coefficient_gradient(matrices: Matrices, gradient: MotionGradient) -> FloatArray:
    """Return the gradient (n, P) in the coefficients for a gradient in the motion."""
    parts = [g.T @ matrix for g, matrix in zip(gradient, matrices)]
    return np.asarray(parts[0] + parts[1] + parts[2])


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients with all values and gradients; ``value`` is that of the objective."""

    coefficients: FloatArray
    value: float
    slope: FloatArray
    constraint_barrier: float
    constraint_slope: FloatArray
    barrier: float
    margins: tuple[FloatArray, ...] = ()

    @classmethod
    def at(cls, problem: Problem, coefficients: FloatArray) -> Point:
        """Evaluate everything at ``coefficients`` (n, P), the objective only inside."""
        barrier = problem.barrier.value(coefficients)
        outside = np.zeros(coefficients.shape)
        if not np.isfinite(barrier):
            return cls(coefficients, np.inf, outside, np.inf, outside, barrier)
        constraint_barrier, constraint_slope, margins = problem.constraint_barrier(coefficients)
        if not np.isfinite(constraint_barrier):
            return cls(coefficients, np.inf, outside, constraint_barrier, outside, barrier,
                       margins)
        value, slope = problem.value(coefficients)
        return cls(coefficients, value, slope, constraint_barrier, constraint_slope, barrier,
                   margins)

    def merit(self, weight: float) -> float:
        """Return the objective plus the weighted barriers."""
        total = self.value + weight * (self.barrier + self.constraint_barrier)
        return total if np.isfinite(total) else float('inf')


@dataclass(frozen=True, eq=False)
class Optimum:
    """The end of a search: ``converged`` or stopped after ``iterations``."""

    coefficients: FloatArray
    value: float
    converged: bool
    iterations: int


def minimise(
    problem: Problem, start: FloatArray, terminate: Callable[[int, float], bool]
) -> Optimum:
    """Search from ``start`` (n, P), which satisfies everything.

    ``terminate`` is called before every step with iteration and value, and ends the search if
    True.
    """
    descent = Descent(problem, start)
    iterations, weight, settled = 0, WEIGHTS[0], False
    for weight in WEIGHTS:
        settled = False
        while not settled:
            if terminate(iterations, descent.point.value):
                return descent.end(False, iterations)
            gain = descent.step(weight)
            settled = gain < max(CONVERGED_GAIN, 0.1 * weight)
            iterations += 1
    return descent.end(settled, iterations)


class Descent:
    """The state of a search: the point and the curvature estimates."""

    def __init__(self, problem: Problem, start: FloatArray) -> None:
        self.problem = problem
        self.point = Point.at(problem, start)
        _, curvature = problem.barrier.slopes(start)
        guess = GUESS * np.asarray(block_diag(*curvature))
        self._value, self._rest = Curvature(guess), Curvature(guess)

    def end(self, converged: bool, iterations: int) -> Optimum:
        """Return the current point of the search."""
        return Optimum(self.point.coefficients, self.point.value, converged, iterations)

    def step(self, weight: float) -> float:
        """Take one step; return its expected gain, 0 if none was possible."""
        point, shape = self.point, self.point.coefficients.shape
        slope, curvature = self.problem.barrier.slopes(point.coefficients)
        gradient = (point.slope + weight * (slope + point.constraint_slope)).ravel()
        hessian = self._value.matrix + weight * np.asarray(block_diag(*curvature))
        if self.problem.constraints:
            hessian = hessian + weight * self._rest.matrix
        try:
            way = -cho_solve(cho_factor(hessian), gradient)
        except LinAlgError:
            return 0.0
        gain = float(-gradient @ way)
        accepted = self._along(way.reshape(shape), weight, gain)
        if accepted is None:
            return 0.0
        moved = (accepted.coefficients - point.coefficients).ravel()
        self._value.update(moved, (accepted.slope - point.slope).ravel())
        self._rest.update(moved, (accepted.constraint_slope - point.constraint_slope).ravel())
        self.point = accepted
        return gain

    def _along(self, way: FloatArray, weight: float, gain: float) -> Point | None:
        """Return a sufficiently better point along ``way`` (n, P), None if there is none."""
        point, merit = self.point, self.point.merit(weight)
        length = min(1.0, LIMIT_REACH * self.problem.barrier.longest(point.coefficients, way))
        for _ in range(CUTS):
            trial = Point.at(self.problem, point.coefficients + length * way)
            if trial.merit(weight) <= merit - SUFFICIENT * length * gain:
                return trial
            reach = LIMIT_REACH * share_inside(point.margins, trial.margins)
            length *= float(np.clip(reach, *CUT)) if reach < LIMIT_REACH else CUT[1]
        return None


class Curvature:
    """A positive definite approximation of a Hessian."""

    def __init__(self, guess: FloatArray) -> None:
        self.matrix = guess
        self._fresh = True

    def update(self, step: FloatArray, change: FloatArray) -> None:
        """Update with the ``change`` (k,) of the gradient along a ``step`` (k,): damped BFGS."""
        along = self.matrix @ step
        predicted, observed = float(step @ along), float(step @ change)
        if not predicted > 0.0:
            return
        if self._fresh and observed > 0.0:  # the guess has the right directions, not the scale
            factor = float(np.clip(observed / predicted, *CORRECTION))
            self.matrix = factor * self.matrix
            along, predicted = factor * along, factor * predicted
            self._fresh = False
        if observed < DAMPING * predicted:
            mixed = (1.0 - DAMPING) * predicted / (predicted - observed)
            change = mixed * change + (1.0 - mixed) * along
        self.matrix = (self.matrix - np.outer(along, along) / predicted
                       + np.outer(change, change) / float(step @ change))


@dataclass(frozen=True)
class StartRow:
    """One start: its logarithmic objective at the beginning and at the end."""

    first: float
    value: float
    converged: bool
    iterations: int


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best coefficients (n, P), the ``start`` (n, P) they came from, and all starts."""

    coefficients: FloatArray
    start: FloatArray
    rows: tuple[StartRow, ...]


@one_blas_thread()
def search(
    problem: Problem, starts: int, generator: np.random.Generator, terminate: Terminate
) -> SearchResult:
    """Improve ``starts`` random motions, each until ``terminate`` ends it; return the best.

    No further start begins if ``terminate`` ends it before its first iteration. Raises DynIdError
    if no pose satisfies the constraints.
    """
    best: tuple[float, FloatArray, FloatArray] | None = None
    rows: list[StartRow] = []
    for index, (first, start) in enumerate(random_starts(problem, starts, generator)):
        least_value = best[0] if best is not None else float('inf')
        if terminate(index, 0, least_value) and best is not None:
            break

        def ends(iteration: int, value: float, index: int = index,
                 least: float = least_value) -> bool:
            return terminate(index, iteration, min(value, least))

        optimum = minimise(problem, start, ends)
        rows.append(StartRow(first, optimum.value, optimum.converged, optimum.iterations))
        if best is None or optimum.value < best[0]:
            best = (optimum.value, optimum.coefficients, start)
    assert best is not None
    return SearchResult(best[1], best[2], tuple(rows))


def random_starts(
    problem: Problem, count: int, generator: np.random.Generator
) -> Iterator[tuple[float, FloatArray]]:
    """Yield objective and coefficients (n, P) of ``count`` starts that satisfy everything.

    Each is the best of MOTIONS_PER_START random motions, which depend on the generator only.
    Raises DynIdError if no pose satisfies the constraints.
    """
    poses = clear_poses(problem, generator)
    for seeds in generator.integers(2**63, size=(count, MOTIONS_PER_START)):
        yield _best_candidate(problem, poses, seeds)


def clear_poses(problem: Problem, generator: np.random.Generator) -> FloatArray:
    """Return centre poses (K, n) well inside the constraints, only the centre if it is.

    The centre of the ranges gives the joints the largest range. If its margin is less than half of
    the best of some random poses, all poses with more replace it.
    """
    limits = problem.limits
    spread = generator.uniform(-0.9, 0.9, (START_POSES, len(limits.joints)))
    poses = limits.centre + np.vstack([np.zeros(len(limits.joints)), spread]) * limits.half_range
    resting = _resting(poses)
    margins = np.min([np.full(len(poses), np.inf), *(
        np.min(constraint.values(resting), axis=1, initial=np.inf)
        for constraint in problem.constraints)], axis=0)
    largest = float(np.max(margins))
    if largest <= 0.0:
        middle = _resting(poses[:1])
        causes = ' and '.join(c.worst(middle) for c in problem.constraints
                             if np.any(c.values(middle) <= 0.0))
        raise DynIdError(
            f'none of {START_POSES} random poses satisfies the constraints: at the centre of the '
            f'position range {causes}; move the range with option '
            "'limits: {joint: {position: [lower, upper]}}'")
    clear = poses[margins >= 0.5 * min(largest, 1.0)]
    return poses[:1] if margins[0] >= 0.5 * min(largest, 1.0) else clear


def _resting(poses: FloatArray) -> Motion:
    still = np.zeros(poses.shape)
    return Motion(poses, still, still, still)


def _best_candidate(
    problem: Problem, poses: FloatArray, seeds: FloatArray
) -> tuple[float, FloatArray]:
    """Return value and coefficients (n, P) of the best random motion about ``poses``."""
    candidates = []
    for seed in seeds:
        generator = np.random.default_rng(int(seed))
        shape = problem.basis.random(problem.limits, generator)
        start = _inside(problem, poses[generator.integers(len(poses))], shape)
        candidates.append((problem.value(start)[0], start))
    return min(candidates, key=lambda pair: pair[0])


def _inside(problem: Problem, pose: FloatArray, shape: FloatArray) -> FloatArray:
    """Return ``shape`` (n, P) moved to a pose and shrunk until it satisfies everything."""
    position = problem.basis.matrices(problem.basis.grid())[0]
    constant = np.linalg.lstsq(position, np.ones(len(position)), rcond=None)[0]  # constant one
    about = np.outer(problem.limits.centre, constant)
    size, rest = FILLED, np.outer(pose, constant)
    for _ in range(HALVINGS):
        start = rest + size * (shape - about)
        if problem.barrier.largest(start) < 0.99 and problem.keeps(start):
            return start
        size *= 0.5
    raise DynIdError('the constraints allow no motion about any pose that satisfies them; '
                     "move the range with option 'limits: {joint: {position: [lower, upper]}}'")
