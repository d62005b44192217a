"""excitation/search/constraints.py: values, barrier and steps of constraints, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robot_dynid.excitation.search.constraints import (
    EffortLimits,
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
    assert share_inside(start, [np.array([[1.0, 0.0]])]) == 1.0
    assert share_inside([np.zeros((1, 1))], [np.zeros((1, 1))]) == 0.0
    assert share_inside(start, [np.array([[np.nan, 1.0]])]) == 0.0
