"""excitation/planned/planner.py: what pieces of motion may exceed, and moves between poses."""

from __future__ import annotations

import numpy as np
import pytest
from motion_constraints import Post, box

from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import FloatArray

LIMITS = box(2, effort=[10.0, 4.0], velocity=[2.0, 3.0], acceleration=100.0)
START = np.array([0.1, -0.2])


def of_position(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return efforts of springs, which are largest at the end of a move."""
    return q * [3.0, 2.0]


def of_velocity(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return efforts of dampers."""
    return qd * [3.0, 2.0]


def move(*goal: float) -> QuinticMove:
    return QuinticMove(LIMITS.joints, START, np.array(goal), 2.0)


@pytest.mark.parametrize(('goal', 'words'), [
    ((3.2, 1.93), None), ((1.0, -1.93), None),
    ((1.0, -1.95), "joint 'joint_1' needs an effort of 3.9, more than 97% of the allowed 4"),
    ((3.26, 0.0), "joint 'joint_0' needs an effort of 9.78, more than 97% of the allowed 10"),
    ((3.4, 2.2), "joint 'joint_1' needs an effort of 4.4, more than 97% of the allowed 4"),
    ((4.4, 2.2), "joint 'joint_0' needs an effort of 13.2, more than 97% of the allowed 10")])
def test_the_effort_that_exceeds_its_limit_by_the_largest_share_is_named(
    goal: tuple[float, float], words: str | None
) -> None:
    planner = Planner(DesignCriteria(inverse=of_position), LIMITS)
    assert planner.overloaded(move(*goal)) == planner.broken(move(*goal)) == words
    assert Planner(DesignCriteria(), LIMITS).overloaded(move(*goal)) is None
    pose = np.array([goal, (0.0, 0.0)])
    assert planner.allowed(pose).tolist() == [words is None, True]
    open_ended = Planner(DesignCriteria(inverse=of_position), box(2, effort=[10.0, np.nan]))
    assert (open_ended.overloaded(move(*goal)) is None) is (goal[0] * 3.0 < 9.7)


def test_constraints_and_proofs_that_a_move_breaks_are_in_words() -> None:
    post = Post((0.5, 0.3), 0.1)
    planner = Planner(DesignCriteria(constraints=(Post((9.0, 9.0), 0.1), post), proof=post.proof),
                      LIMITS)
    through = move(0.9, 0.8)
    assert planner.blocked(through) == planner.broken(through)
    assert str(planner.blocked(through)).startswith('distance from the post is only -0.')
    assert str(planner.unproven(through)).startswith('hand and post come as near as -0.')
    assert str(planner.unproven(through)).endswith(' s')
    past = move(0.9, -0.8)
    assert planner.blocked(past) is planner.unproven(past) is planner.broken(past) is None
    poses = np.vstack([np.tile([0.5, 0.3], (4001, 1)), [[0.9, 0.8], [0.5, 0.41], [0.5, 0.39]]])
    assert planner.allowed(poses).tolist() == [False] * 4001 + [True, True, False]


@pytest.mark.parametrize(('limit', 'share'), [(100.0, 0.5), (1.6, 0.25), (0.7, 0.1), (0.2, None)])
def test_moves_take_half_of_the_speed_or_less_if_the_effort_is_too_large(
    limit: float, share: float | None
) -> None:
    """A quintic is fastest in the middle, at 15 / 8 of its mean speed: 3 N m s/rad * share * 2."""
    limits = box(2, effort=[limit, np.nan], velocity=[2.0, 3.0], acceleration=100.0)
    planner = Planner(DesignCriteria(inverse=of_velocity), limits)
    goal = np.array([1.3, 0.3])
    found, reason = planner.straight(START, goal)
    if share is None:
        assert found is None and str(reason).startswith("joint 'joint_0' needs an effort of 0.599")
        return
    assert found is not None and reason is None
    assert found.duration == pytest.approx(15.0 / 8.0 * 1.2 / (2.0 * share), rel=2e-3)
    assert planner.moves(START, goal)[0].duration == found.duration
    assert planner.moves(goal, goal) == ()


def test_pieces_are_joined_by_moves_where_poses_differ() -> None:
    planner = Planner(DesignCriteria(), LIMITS)
    goal = np.array([0.7, 0.4])
    rest, other = planner.rest(START, 1.5), planner.rest(goal, 0.5)
    assert (rest.duration, rest.joints) == (1.5, LIMITS.joints)
    np.testing.assert_array_equal(rest.sample(0.7).position, [START])
    joined = planner.joined([rest, planner.rest(START, 0.25), other])
    between = 15.0 / 8.0 * 0.6 / 1.0
    assert joined.duration == pytest.approx(1.5 + 0.25 + between + 0.5, rel=2e-3)
    np.testing.assert_allclose(joined.sample(joined.duration).position, [goal])
    expected = np.random.default_rng(2).uniform(LIMITS.lower, LIMITS.upper)
    np.testing.assert_array_equal(planner.somewhere(np.random.default_rng(2)), expected)
