"""excitation/search/constraints.py: values, barrier and steps of constraints, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.excitation.search.constraints import (
    EffortLimits,
    KeepClear,
    constraint_barrier,
    constraint_values,
    inside,
    share_inside,
)
from robot_dynid.excitation.search.observation import MotionGradient
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

POSITION = np.array([[0.1, 0.5, -0.3], [-0.4, 0.2, 0.7]])
MOTION = Motion(POSITION, 2.0 * POSITION, -POSITION, 0.0 * POSITION)
STIFFNESS = np.array([10.0, 4.0, 3.0])


class Springs:
    """Efforts of springs and dampers: k (q + 0.1 qd + 0.01 qdd)."""

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return STIFFNESS * (q + 0.1 * qd + 0.01 * qdd)

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        spread = weights * STIFFNESS
        return spread, 0.1 * spread, 0.01 * spread


def limited(*limits: float) -> EffortLimits:
    inverse: Any = Springs()
    return EffortLimits(inverse, ('a', 'b', 'c'), np.array(limits))


def test_efforts_are_within_their_limits_by_the_square_of_the_share() -> None:
    limits = limited(5.0, np.nan, -9.0)
    share = 1.19 * POSITION * STIFFNESS / [5.0, np.nan, -9.0]
    np.testing.assert_allclose(limits.values(MOTION), 1.0 - share[:, [0, 2]]**2)
    weights = np.array([[0.3, -0.7], [1.1, 0.2]])
    position, velocity, acceleration = limits.pullback(MOTION, weights)
    expected = np.zeros((2, 3))
    expected[:, [0, 2]] = -2.0 * weights * share[:, [0, 2]] * [2.0, -1.0 / 3.0]
    np.testing.assert_allclose(position, expected)
    np.testing.assert_allclose(velocity, 0.1 * expected)
    np.testing.assert_allclose(acceleration, 0.01 * expected)


@pytest.mark.filterwarnings('error')
def test_the_effort_that_uses_most_of_its_limit_is_named() -> None:
    assert limited(9.0, np.nan, 2.0).worst(MOTION) == "joint 'c' needs 2.499, its limit is 2"
    assert limited(4.0, np.nan, 2.4).worst(MOTION) == "joint 'a' needs 4.76, its limit is 4"


def test_the_barrier_is_the_mean_logarithm_over_time() -> None:
    constraints = limited(5.0, 30.0, 9.0), limited(7.0, np.nan, 8.0)
    values = constraint_values(constraints, MOTION)
    assert [one.shape for one in values] == [(2, 3), (2, 2)] and inside(values)
    value, gradient = constraint_barrier(constraints, MOTION, values)
    assert value == pytest.approx(-sum(np.log(one).sum() for one in values) / 2.0)
    expected = sum(one.pullback(MOTION, -0.5 / v)[0]
                   for one, v in zip(constraints, values, strict=True))
    np.testing.assert_allclose(gradient[0], expected)
    np.testing.assert_allclose(gradient[1], 0.1 * gradient[0])


def test_values_end_with_the_first_violated_constraint() -> None:
    good, bad = limited(5.0, 30.0, 9.0), limited(4.0, 30.0, 9.0)
    assert [len(constraint_values(order, MOTION)) for order in (
        (good, bad, good), (bad, good), (good, good))] == [2, 1, 2]
    assert not inside(constraint_values((good, bad, good), MOTION))
    assert inside(()) and not inside([np.array([[1.0, 0.0]])])


def test_a_step_is_cut_where_the_first_value_reaches_zero() -> None:
    start = [np.array([[1.0, 0.5]]), np.array([[2.0], [0.9]])]
    assert share_inside(start, [np.array([[-3.0, 0.1]]), np.array([[-0.5], [0.2]])]) == 0.25
    assert share_inside(start, [np.array([[0.3, 0.1]]), np.array([[-0.5], [0.2]])]) == 0.8
    assert share_inside(start, [np.array([[0.3, 0.1]]), np.array([[0.5], [-0.1]])]) == 0.9
    assert share_inside(start, [np.array([[0.3, 0.1]]), np.array([[0.5], [0.1]])]) == 1.0
    assert share_inside(start, [np.array([[-3.0, -0.5]]), np.array([[0.5], [0.1]])]) == 0.25
    assert share_inside(start, [np.array([[1.0, 0.0]])]) == 1.0
    assert share_inside(start, [np.array([[np.nan, 1.0]])]) == 0.0


class Bodies:
    """Three pairs of bodies whose distances are given, with the rates 1, 2, 3 of each."""

    pairs = (('hand', 'table'), ('arm', 'wall'), ('arm', 'post'))
    required = np.array([0.02, 0.03, 0.01])
    largest = np.array([1.0, 0.044, 0.2])

    def __init__(self, distance: FloatArray, measured: FloatArray) -> None:
        self.distance, self.measured = distance, measured.astype(bool)
        self.reaches: list[FloatArray] = []

    def nearest(self, q: FloatArray, reach: FloatArray) -> SimpleNamespace:
        self.reaches.append(reach)
        return SimpleNamespace(distance=self.distance, measured=self.measured)

    def rates(self, q: FloatArray, near: object, which: tuple[FloatArray, FloatArray]
              ) -> FloatArray:
        rows, columns = which
        return np.outer(1.0 + columns + 10.0 * rows, [1.0, 0.0, -2.0])


DISTANCE = np.array([[0.035, 0.0345, 0.5], [0.021, 0.0325, 0.045]])
MEASURED = np.array([[1, 1, 0], [1, 1, 1]])
#: five millimetres, or a quarter of what is left up to the largest distance
CLEARANCES = np.array([0.025, 0.0335, 0.015])
#: four centimetres, or half of what is left
RANGES = np.array([0.04, 0.00525, 0.04])


def kept_clear() -> tuple[KeepClear, Any]:
    scene: Any = Bodies(DISTANCE, MEASURED)
    return KeepClear(scene), scene


def test_pairs_are_far_apart_a_range_beyond_their_clearance() -> None:
    """s (2 - s) with s = (distance - clearance) / range, 2 s below the clearance."""
    clear, scene = kept_clear()
    np.testing.assert_allclose(clear.clearances, CLEARANCES)
    np.testing.assert_allclose(clear.ranges, RANGES)
    share = np.minimum((DISTANCE - CLEARANCES) / RANGES, 1.0)
    assert share[0, 2] == 1.0 and (share[1] < [0.0, 0.0, 1.0]).all()
    expected = np.where(share > 0.0, share * (2.0 - share), 2.0 * share)
    np.testing.assert_allclose(clear.values(MOTION), expected)
    clear.values(MOTION)
    assert len(scene.reaches) == 1, 'the same positions are not searched again'
    np.testing.assert_allclose(scene.reaches[0], CLEARANCES + RANGES)
    clear.values(Motion(2.0 * POSITION, POSITION, POSITION, POSITION))
    assert len(scene.reaches) == 2


def test_slopes_of_clearances_are_those_of_near_pairs() -> None:
    clear, _ = kept_clear()
    weights = np.array([[0.3, -0.7, 0.9], [1.1, 0.2, -0.4]])
    position, velocity, acceleration = clear.pullback(MOTION, weights)
    share = np.minimum((DISTANCE - CLEARANCES) / RANGES, 1.0)
    slope = 2.0 * np.where(share > 0.0, 1.0 - share, 1.0) / RANGES * (MEASURED * (share < 1.0))
    rates = 1.0 + np.arange(3) + 10.0 * np.arange(2)[:, None]
    expected = np.outer((weights * slope * rates).sum(axis=1), [1.0, 0.0, -2.0])
    np.testing.assert_allclose(position, expected)
    assert not velocity.any() and not acceleration.any()


def test_the_pair_nearest_to_its_required_distance_is_named() -> None:
    clear, _ = kept_clear()
    assert clear.worst(MOTION) == (
        'hand and table come within 0.021 m, the clearance is 0.02 m')
