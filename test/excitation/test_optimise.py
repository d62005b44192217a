"""excitation/search/optimise.py: barriers, curvature, starts and steps of the search, by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import block_diag

from robot_dynid.errors import DynIdError
from robot_dynid.excitation.search.basis import BSplineBasis, FourierBasis
from robot_dynid.excitation.search.observation import MotionGradient
from robot_dynid.excitation.search.optimise import (
    Band,
    Curvature,
    Descent,
    LimitBarrier,
    Point,
    Problem,
    clear_poses,
    minimise,
    random_starts,
    search,
)
from robot_dynid.trajectories.bspline import BSplineOptions
from robot_dynid.trajectories.fourier import FourierOptions
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

JOINTS = ('a', 'b')
LIMITS = MotionLimits(JOINTS, np.array([-2.0, -1.0]), np.array([1.0, 2.5]), np.array([3.0, 4.0]),
                      np.array([9.0, 7.0]), np.array([np.nan, 50.0]), np.full(2, np.nan))
BASIS = FourierBasis(JOINTS, FourierOptions(8.0, 3, 2))
MATRIX = np.array([[1.0, 0.2], [-0.3, 1.0], [0.6, 0.7], [0.1, -0.9]])
COEFFICIENTS = np.array([[0.5, -0.4], [0.9, 0.3]])


def two_bands() -> LimitBarrier:
    """Return limits of two joints; one of them has no second limit."""
    return LimitBarrier((
        Band(MATRIX, np.array([0.1, -0.2]), np.array([2.0, 3.0])),
        Band(MATRIX[:3, ::-1], np.zeros(2), np.array([np.inf, 1.5]))))


def shares(coefficients: FloatArray) -> list[FloatArray]:
    """Return the shares of the limits, each (M, n), in loops."""
    first = [[(row @ c - centre) / half for c, centre, half in zip(
        coefficients, (0.1, -0.2), (2.0, 3.0), strict=True)] for row in MATRIX]
    second = [[0.0, (row @ coefficients[1]) / 1.5] for row in MATRIX[:3, ::-1]]
    return [np.array(first), np.array(second)]


def test_the_barrier_is_the_mean_logarithm_of_the_distances() -> None:
    barrier, used = two_bands(), shares(COEFFICIENTS)
    assert barrier.largest(COEFFICIENTS) == pytest.approx(max(np.abs(s).max() for s in used))
    assert barrier.value(COEFFICIENTS) == pytest.approx(
        -sum(np.log((1.0 - s) * (1.0 + s)).sum() / len(s) for s in used))
    assert barrier.value(9.0 * COEFFICIENTS) == barrier.value(-9.0 * COEFFICIENTS) == np.inf


def test_slopes_of_the_barrier_are_those_of_its_values() -> None:
    barrier, step = two_bands(), 1e-5
    gradient, hessian = barrier.slopes(COEFFICIENTS)
    for j, p in np.ndindex(2, 2):
        way = np.zeros((2, 2))
        way[j, p] = step
        ahead, behind = COEFFICIENTS + way, COEFFICIENTS - way
        assert (barrier.value(ahead) - barrier.value(behind)) / (2.0 * step) == pytest.approx(
            gradient[j, p], rel=1e-6)
        bend = (barrier.slopes(ahead)[0] - barrier.slopes(behind)[0]) / (2.0 * step)
        np.testing.assert_allclose(bend[j], hessian[j, p], rtol=1e-6)
        np.testing.assert_allclose(bend[1 - j], 0.0, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('step', [[[0.3, 0.1], [0.2, -0.1]], [[-0.2, 0.5], [0.1, 0.4]],
                                  [[0.0, 0.0], [-0.4, -0.3]]])
def test_the_longest_step_ends_at_a_limit(step: list[list[float]]) -> None:
    barrier, way = two_bands(), np.array(step)
    longest = barrier.longest(COEFFICIENTS, way)
    assert barrier.largest(COEFFICIENTS + longest * way) == pytest.approx(1.0, rel=1e-12)
    assert barrier.largest(COEFFICIENTS + 0.5 * longest * way) < 1.0
    assert barrier.longest(COEFFICIENTS, 0.0 * way) == np.inf


def test_limits_hold_on_the_grid_with_the_margin_of_the_basis() -> None:
    barrier = LimitBarrier.of(BASIS, LIMITS)
    assert len(barrier.bands) == 4
    matrices = BASIS.matrices(BASIS.grid())
    halves = ([1.5, 1.75], [3.0, 4.0], [9.0, 7.0], [np.inf, 50.0])
    for k, (band, matrix, half) in enumerate(zip(barrier.bands, matrices, halves, strict=True)):
        np.testing.assert_array_equal(band.matrix, matrix)
        np.testing.assert_allclose(band.half, BASIS.margin * np.array(half))
        np.testing.assert_allclose(band.centre, [0.0, 0.0] if k else [-0.5, 0.75])
    free = MotionLimits(JOINTS, LIMITS.lower, LIMITS.upper, LIMITS.velocity, LIMITS.acceleration,
                        np.full(2, np.nan), LIMITS.effort)
    assert len(LimitBarrier.of(BASIS, free).bands) == 3


@pytest.mark.parametrize(('harmonics', 'count'), [(3, 200), (8, 200), (9, 204), (12, 276)])
def test_instants_are_those_of_the_coefficients_and_at_least_200(
    harmonics: int, count: int
) -> None:
    basis = FourierBasis(JOINTS, FourierOptions(8.0, harmonics, 2))
    problem = Problem(basis, LIMITS, Distance())
    np.testing.assert_allclose(problem.instants(), 4.0 / count * np.arange(count))
    np.testing.assert_allclose(problem.instants(3), 4.0 / (3 * count) * np.arange(3 * count))


@pytest.mark.parametrize(('step', 'change', 'expected'), [
    # the guess is scaled by the first curvature, by a hundredth to a hundred times
    ([1.0, 0.0], [4.0, 0.0], [4.0, 4.0]), ([1.0, 0.0], [150.0, 0.0], [150.0, 100.0]),
    ([1.0, 0.0], [90.0, 0.0], [90.0, 90.0]), ([0.0, 2.0], [0.0, 0.06], [0.03, 0.03]),
    # no less than a fifth of it is left by an update
    ([1.0, 0.0], [0.001, 0.0], [0.002, 0.01]), ([2.0, 0.0], [-6.0, 0.0], [0.2, 1.0]),
    ([0.0, 0.0], [1.0, 2.0], [1.0, 1.0])])
def test_curvature_is_that_along_a_step(
    step: list[float], change: list[float], expected: list[float]
) -> None:
    curvature = Curvature(np.eye(2))
    curvature.update(np.array(step), np.array(change))
    np.testing.assert_allclose(curvature.matrix, np.diag(expected), atol=1e-12, rtol=1e-12)


def test_curvature_after_several_steps_is_that_of_damped_bfgs() -> None:
    """A guess is scaled once, by the first step along which the gradient rises."""
    curvature = Curvature(np.diag([1.0, 1.0]))
    curvature.update(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    curvature.update(np.array([0.0, 1.0]), np.array([0.0, 3.0]))
    np.testing.assert_allclose(curvature.matrix, np.diag([0.6, 3.0]))
    curvature.update(np.array([0.0, 1.0]), np.array([0.0, 5.0]))
    np.testing.assert_allclose(curvature.matrix, np.diag([0.6, 5.0]))
    step, change = np.array([1.0, -2.0]), np.array([3.0, -1.5])
    curvature.update(step, change)
    np.testing.assert_allclose(curvature.matrix @ step, change)
    np.testing.assert_allclose(np.linalg.det(curvature.matrix), 3.0 * (step @ change) / (
        step @ np.diag([0.6, 5.0]) @ step))
    before = step @ curvature.matrix @ step
    curvature.update(step, -change)
    assert step @ curvature.matrix @ step == pytest.approx(0.2 * before)


@dataclass(frozen=True)
class Distance:
    """The mean square distance (over time) of a motion from a pose [rad]."""

    pose: tuple[float, float] = (0.3, 0.4)

    def __call__(self, motion: Motion) -> tuple[float, MotionGradient]:
        apart = motion.position - np.array(self.pose)
        still = np.zeros_like(apart)
        count = len(apart)
        return float(np.sum(apart**2)) / count, (2.0 * apart / count, still, still)


@dataclass(frozen=True)
class Above:
    """The first joint stays above a ``least`` position; values are ``scale`` times the margin."""

    least: float
    scale: float = 1.0
    name: str = 'above'

    def values(self, motion: Motion) -> FloatArray:
        return self.scale * (motion.position[:, :1] - self.least)

    def worst(self, motion: Motion) -> str:
        return f'{self.name} is {motion.position[:, 0].mean():.3g}'

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        gradient, still = np.zeros((2, *motion.position.shape))
        gradient[:, :1] = self.scale * weights
        return gradient, still, still


def test_a_point_has_the_weighted_sum_of_barriers_as_merit() -> None:
    none = np.zeros((2, 5))
    assert Point(none, 2.0, none, 3.0, none, 5.0).merit(0.1) == pytest.approx(2.8)
    assert Point(none, 2.0, none, np.inf, none, 5.0).merit(0.1) == np.inf
    assert Point(none, np.nan, none, 1.0, none, 5.0).merit(0.1) == np.inf
    problem = Problem(BASIS, LIMITS, Distance(), (Above(-0.6),))
    rest = np.zeros((2, BASIS.size))
    point = Point.at(problem, rest)
    assert point.value == pytest.approx(0.25) and point.constraint_barrier == pytest.approx(
        -np.log(0.6))
    assert point.barrier == problem.barrier.value(rest) > 0.0
    np.testing.assert_allclose(point.slope, np.outer([-0.6, -0.8], np.eye(BASIS.size)[0]),
                               rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(point.constraint_slope[:, 0], [-1.0 / 0.6, 0.0])
    below, outside = rest.copy(), rest.copy()
    below[0, 0], outside[1, 0] = -0.7, 2.6
    assert Point.at(problem, below).value == np.inf
    assert np.isfinite(Point.at(problem, below).barrier)
    assert len(Point.at(problem, below).margins) == 1
    assert Point.at(problem, outside).barrier == np.inf
    assert problem.keeps(rest) and not problem.keeps(below)


@pytest.mark.parametrize(('pose', 'end'), [
    ((0.3, 0.4), (0.3, 0.4)), ((0.3, 9.0), (0.3, 2.5)), ((-5.0, 0.4), (-0.6, 0.4))])
def test_a_search_ends_at_the_optimum_or_just_before_a_limit(
    pose: tuple[float, float], end: tuple[float, float]
) -> None:
    problem = Problem(BASIS, LIMITS, Distance(pose), (Above(-0.6),))
    start = 0.02 * np.arange(2.0 * BASIS.size).reshape(2, -1)
    calls: list[tuple[int, float]] = []
    optimum = minimise(problem, start, lambda *call: bool(calls.append(call)))
    assert optimum.converged
    steps, values = zip(*calls, strict=True)
    assert steps == tuple(range(optimum.iterations)) and values[0] == problem.value(start)[0]
    assert optimum.value < values[0]
    assert optimum.value == pytest.approx(problem.value(optimum.coefficients)[0])
    np.testing.assert_allclose(optimum.coefficients[:, 0], end, rtol=0.0, atol=0.02)
    np.testing.assert_allclose(optimum.coefficients[:, 1:], 0.0, rtol=0.0, atol=0.02)
    stopped = minimise(problem, start, lambda iteration, value: iteration == 2)
    assert (stopped.converged, stopped.iterations) == (False, 2)
    assert stopped.value == values[2]


@pytest.mark.parametrize('constraints', [(), (Above(-4.0),)])
def test_the_first_step_is_that_of_newton_with_a_guess_of_the_curvature(
    constraints: tuple[Above, ...]
) -> None:
    """It gains the square of the slope in the metric of the curvature."""
    problem = Problem(BASIS, LIMITS, Distance((0.25, 0.6)), constraints)
    start = np.outer([-0.5, 0.75], np.eye(BASIS.size)[0]) + 0.01 * np.arange(10.0).reshape(2, -1)
    descent, weight = Descent(problem, start), 3.0
    point = descent.point
    slope, blocks = problem.barrier.slopes(start)
    gradient = (point.slope + weight * (slope + point.constraint_slope)).ravel()
    hessian = block_diag(*blocks) * (0.05 + weight * (1.05 if constraints else 1.0))
    way = -np.linalg.solve(hessian, gradient)
    assert descent.step(weight) == pytest.approx(-gradient @ way, rel=1e-9)
    longest = 0.95 * problem.barrier.longest(start, way.reshape(2, -1))
    moved = (descent.point.coefficients - start).ravel()
    np.testing.assert_allclose(moved, min(1.0, longest) * way, rtol=1e-9)
    assert descent.point.merit(weight) < point.merit(weight)


@pytest.mark.parametrize('least', [-0.02, -0.15, -0.5, -0.9])
def test_steps_that_break_a_constraint_are_cut_where_it_breaks(least: float) -> None:
    """At a tenth to two fifths of them."""
    constraint = Above(least)
    problem = Problem(BASIS, LIMITS, Distance((-30.0, 0.4)), (constraint,))
    start = np.zeros((2, BASIS.size))
    descent, weight = Descent(problem, start), 0.1
    point = descent.point
    slope, blocks = problem.barrier.slopes(start)
    gradient = (point.slope + weight * (slope + point.constraint_slope)).ravel()
    way = -np.linalg.solve(block_diag(*blocks) * (0.05 + 1.05 * weight), gradient).reshape(2, -1)
    length = min(1.0, 0.95 * problem.barrier.longest(start, way))
    assert length * way[0, 0] < least
    while length * way[0, 0] < least:
        length *= np.clip(0.95 * least / (length * way[0, 0]), 0.1, 0.4)
    descent.step(weight)
    moved = descent.point.coefficients - start
    np.testing.assert_allclose(moved, way * length, rtol=1e-6, atol=1e-12)


def test_starts_are_searched_in_turn_and_the_best_is_returned() -> None:
    problem = Problem(BASIS, LIMITS, Distance())
    starts = list(random_starts(problem, 3, np.random.default_rng(6)))
    firsts = [first for first, _ in starts]
    calls: list[tuple[int, int, float]] = []

    def first_only(index: int, iteration: int, value: float) -> bool:
        calls.append((index, iteration, value))
        return iteration >= 1

    found = search(problem, 3, np.random.default_rng(6), first_only)
    assert [row.first for row in found.rows] == firsts
    assert [(row.converged, row.iterations) for row in found.rows] == [(False, 1)] * 3
    values = [row.value for row in found.rows]
    best = int(np.argmin(values))
    np.testing.assert_array_equal(found.start, starts[best][1])
    assert problem.value(found.coefficients)[0] == pytest.approx(values[best])
    least = [np.inf, *np.minimum.accumulate(values)]
    assert calls == [call for k in range(3) for call in (
        (k, 0, least[k]), (k, 0, min(firsts[k], least[k])), (k, 1, least[k + 1]))]
    ended = search(problem, 3, np.random.default_rng(6), lambda index, iteration, value: True)
    assert len(ended.rows) == 1 and ended.rows[0].value == firsts[0]


def test_starts_are_the_best_of_ten_motions_inside_the_limits() -> None:
    problem = Problem(BASIS, LIMITS, Distance())
    generator = np.random.default_rng(3)
    (value, start), = random_starts(problem, 1, generator)
    assert value == problem.value(start)[0] and problem.barrier.largest(start) < 0.99
    again = np.random.default_rng(3)
    again.uniform(size=(300, 2))
    best = np.inf
    for seed in again.integers(2**63, size=10):
        shape = BASIS.random(LIMITS, np.random.default_rng(int(seed)))
        centre = np.outer(LIMITS.centre, np.eye(BASIS.size)[0])
        tried = centre + 0.8 * (shape - centre)
        assert problem.barrier.largest(tried) < 0.99
        best = min(best, problem.value(tried)[0])
    assert value == pytest.approx(best)


def test_a_start_is_halved_until_it_keeps_clear() -> None:
    """The constraint leaves 0.08 rad below the pose; motions swing by half a radian."""
    problem = Problem(BASIS, LIMITS, Distance(), (Above(-0.58, 100.0),))
    ((_, start),) = random_starts(problem, 1, np.random.default_rng(3))
    low = problem.motion(start).position[:, 0].min()
    assert start[0, 0] == pytest.approx(-0.5, abs=0.08) and -0.58 < low < -0.5
    with pytest.raises(DynIdError, match='the constraints allow no motion about any pose'):
        next(random_starts(Problem(BASIS, LIMITS, Distance(), (
            Above(-0.5 - 1e-7, 1e9),)), 1, np.random.default_rng(3)))


@pytest.mark.parametrize(('least', 'scale', 'needed'), [
    # half of the best margin, or half of one where it is larger
    (-1.0, 1.0, None), (-0.95, 1.0, 0.5), (-0.7, 0.1, 0.5), (0.2, 1.0, 0.5), (-0.6, 10.0, None),
    (-0.54, 10.0, 0.05)])
def test_poses_are_the_centre_or_those_with_half_of_the_best_margin(
    least: float, scale: float, needed: float | None
) -> None:
    problem = Problem(BASIS, LIMITS, Distance(), (Above(-1.9), Above(least, scale)))
    poses = clear_poses(problem, np.random.default_rng(1))
    if needed is None:
        np.testing.assert_allclose(poses, [[-0.5, 0.75]])
        return
    spread = np.random.default_rng(1).uniform(-0.9, 0.9, (300, 2))
    every = np.array([-0.5, 0.75]) + np.vstack([np.zeros((1, 2)), spread]) * [1.5, 1.75]
    margin = np.minimum(scale * (every[:, 0] - least), every[:, 0] + 1.9)
    expected = every[margin >= 0.5 * min(margin.max(), 1.0)]
    assert margin[0] < 0.5 * min(margin.max(), 1.0)
    np.testing.assert_allclose(poses, expected)


def test_constraints_that_no_pose_satisfies_are_named() -> None:
    problem = Problem(BASIS, LIMITS, Distance(), (
        Above(-1.0, name='free'), Above(1.1, name='lift'), Above(1.2, name='gap')))
    with pytest.raises(DynIdError) as raised:
        clear_poses(problem, np.random.default_rng(1))
    assert str(raised.value) == (
        'none of 300 random poses satisfies the constraints: at the centre of the position range '
        "lift is -0.5 and gap is -0.5; move the range with option 'limits: {joint: {position: "
        "[lower, upper]}}'")


def test_splines_move_about_a_pose_as_series_do() -> None:
    """Their constant motion has all coefficients alike."""
    basis = BSplineBasis(JOINTS, BSplineOptions(6.0, 5))
    problem = Problem(basis, LIMITS, Distance())
    ((value, start),) = random_starts(problem, 1, np.random.default_rng(3))
    again = np.random.default_rng(3)
    again.uniform(size=(300, 2))
    tried = [LIMITS.centre[:, None] + 0.8 * (basis.random(LIMITS, np.random.default_rng(
        int(seed))) - LIMITS.centre[:, None]) for seed in again.integers(2**63, size=10)]
    best = min(tried, key=lambda one: problem.value(one)[0])
    np.testing.assert_allclose(start, best, rtol=0.0, atol=1e-9)
    assert value == pytest.approx(problem.value(best)[0])
