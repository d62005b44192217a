"""dynamics/rollout.py: steps, limits and what is told of motions that leave them or stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.dynamics.rollout import Rollout, limit_table, step_count
from robot_dynid.robot.robot_file import load_robot

JOINTS = ('a', 'b', 'c')


@pytest.mark.parametrize(('dt', 'count'), [
    (1e-4, 1), (1e-3, 1), (1.001e-3, 2), (2e-3, 2), (0.0125, 13), (0.1, 100)])
def test_samples_are_divided_into_steps_of_a_millisecond_at_most(dt: float, count: int) -> None:
    assert step_count(dt) == count


def test_limits_that_are_not_known_are_infinite() -> None:
    limits = replace(load_robot('planar_3r').limits, lower=np.array([-1.5, np.nan, -np.inf]),
                     upper=np.array([np.nan, 2.5, 3.5]))
    np.testing.assert_array_equal(
        limit_table(limits), [[-1.5, -np.inf, -np.inf], [np.inf, 2.5, 3.5]])


def test_events_of_pieces_are_those_that_come_first() -> None:
    """Motions 1 to 4 of five, in a piece that begins at sample 20; the last had some at 0."""
    whole, piece = Rollout.empty(JOINTS, (5, 40, 3)), Rollout.empty(JOINTS, (4, 10, 3))
    assert whole.position.shape == whole.velocity.shape == (5, 40, 3) and not whole.warnings
    assert whole.motor_position is whole.motor_velocity is None
    whole.limit_step[[1, 4]], whole.limit_joint[[1, 4]] = [7, 0], [2, 1]
    whole.stop_step[4], whole.stop_cause[4] = 0, 2
    piece.limit_step[:], piece.limit_joint[:] = [3, -1, 0, 5], [1, -1, 2, 2]
    piece.stop_step[:], piece.stop_cause[:] = [-1, 4, 6, 5], [0, 1, 2, 1]
    whole.take_events(piece, slice(1, 5), 20)
    assert whole.limit_step.tolist() == [-1, 7, -1, 20, 0]
    assert whole.limit_joint.tolist() == [-1, 2, -1, 2, 1]
    assert whole.stop_step.tolist() == [-1, -1, 24, 26, 0]
    assert whole.stop_cause.tolist() == [0, 0, 1, 2, 2]
    outside, stopped = whole.warnings
    assert outside == '3 of 5 motions exceed the joint limits, first at c in motion 1, sample 7'
    assert stopped.startswith('3 of 5 motions stop, the first in motion 2, sample 24: the ')


def test_motors_of_elastic_joints_are_apart_and_others_turn_with_theirs() -> None:
    rng = np.random.default_rng(0)
    whole = replace(Rollout.empty(JOINTS, (2, 4, 5)), position=rng.normal(size=(2, 4, 5)),
                    velocity=rng.normal(size=(2, 4, 5)))
    found = whole.of_joints((2, 0))
    for name in ('position', 'velocity'):
        values = getattr(whole, name)
        np.testing.assert_array_equal(getattr(found, name), values[..., :3])
        np.testing.assert_array_equal(getattr(found, f'motor_{name}'), values[..., [4, 1, 3]])
    position, velocity = found
    assert position is found.position and velocity is found.velocity
