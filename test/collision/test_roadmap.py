"""collision/roadmap.py: links between poses, shortest ways, and poses too near to something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid.collision.roadmap import Roadmap, approach, check_pose
from robot_dynid.collision.scene import Scene, build_scene
from robot_dynid.errors import DynIdError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import FloatArray


def move(start: FloatArray, goal: FloatArray) -> QuinticMove:
    """Return a move of whatever duration."""
    return QuinticMove(tuple('ab'[:len(start)]), start, goal, 1.0)


def roadmap(poses: Any, velocity: Any, allowed: Callable[[FloatArray], Any] | None = None,
            straight: Callable[[FloatArray, FloatArray], QuinticMove | None] = move,
            **more: Any) -> Roadmap:
    """Return a roadmap of poses that are all allowed, but for those of ``allowed``."""
    everywhere = allowed or (lambda some: np.ones(len(some), dtype=bool))
    return Roadmap(np.array(velocity), np.array(poses, dtype=float), everywhere, straight, **more)


@pytest.mark.parametrize(('count', 'moves'), [(13, 1), (14, 2)])
def test_a_pose_is_linked_to_its_twelve_neighbours(count: int, moves: int) -> None:
    poses = np.arange(float(count))[:, None]
    way = roadmap(poses, [0.1]).shortest_path(poses[0], poses[-1])
    assert len(way) == moves and way[-1].goal == [count - 1.0]
    outside = roadmap(poses[:-1], [0.1])  # as poses that join later
    assert len(outside.shortest_path(poses[0], poses[-1])) == moves


@pytest.mark.parametrize(('detour', 'stops'), [(5.45, 2), (5.55, 3)])
def test_the_shortest_way_is_the_fastest_with_a_second_per_stop(
    detour: float, stops: int
) -> None:
    """Of the slowest joint; the straight way through two poses takes ten seconds and three."""
    velocity = np.array([2.0, 0.5])
    poses = velocity * np.array([[0.0, 0.0], [10.0, 0.0], [5.0, -detour], [3.0, 0.0], [7.0, 0.0]])
    ways = ({0, 2}, {2, 1}, {0, 3}, {3, 4}, {4, 1})

    def straight(start: FloatArray, goal: FloatArray) -> QuinticMove | None:
        ends = {int(np.flatnonzero((poses == end).all(axis=1))[0]) for end in (start, goal)}
        return move(start, goal) if ends in ways else None

    found = roadmap(poses, velocity, None, straight).shortest_path(poses[0], poses[1])
    assert len(found) == stops
    through = [2] if stops == 2 else [3, 4]
    np.testing.assert_array_equal([one.start for one in found], poses[[0, *through]])
    np.testing.assert_array_equal([one.goal for one in found], poses[[*through, 1]])


@pytest.mark.parametrize(('low', 'high', 'linked'), [
    (0.0515, 0.0535, False), (0.04, 0.0515, True), (0.946, 0.9483, False), (0.95, 0.96, True)])
def test_links_are_free_at_twenty_configurations(low: float, high: float, linked: bool) -> None:
    """At nineteenths of the way, 0.0526 to 0.9474, from pose to pose."""
    found = roadmap([[0.0, 1.0], [1.0, 3.0]], [1.0, 1.0], lambda some: ~(
        (some[:, 0] > low) & (some[:, 0] < high)))
    assert len(found.shortest_path(found.poses[0], found.poses[1])) == int(linked)


def test_groups_of_poses_are_kept_apart_by_what_is_not_allowed() -> None:
    """Of poses in collision none is used, of the others the first ones."""
    def allowed(some: FloatArray) -> Any:
        return np.abs(some[:, 0] - 2.0) > 0.5

    poses = [[0.0], [1.9], [3.0], [0.7], [1.3], [4.0], [0.2]]
    found = roadmap(poses, [0.5], allowed)
    assert found.poses.ravel().tolist() == [0.0, 3.0, 0.7, 1.3, 4.0, 0.2]
    assert [found.reachable(np.array([x])) for x in (0.7, 3.0, 1.0, 4.5)] == [
        True, False, True, False]
    assert found.shortest_path(np.array([0.0]), np.array([4.0])) == ()
    assert found.nearest_reached(np.array([0.2]), np.array([4.0])) == [1.3]
    assert found.nearest_reached(np.array([3.0]), np.array([0.4])) == [3.0]
    assert roadmap(poses, [0.5], allowed, max_poses=3).poses.ravel().tolist() == [0.0, 3.0, 0.7]


SLIDE = """<robot name="slide"><link name="base"/><link name="hand"><collision><geometry>
<sphere radius="0.1"/></geometry></collision></link><joint name="x" type="prismatic">
<parent link="base"/><child link="hand"/><axis xyz="1 0 0"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>"""


def slide(folder: Path, wall: float, clearance: float) -> Scene:
    """Return a ball of 0.1 m that slides between x = -2 and 2 m, and a wall at ``wall`` and on."""
    (folder / 'slide.urdf').write_text(SLIDE)
    box = {'centre': [wall + 0.3, 0.0, 0.0], 'size': [0.6, 1.0, 1.0]}
    return build_scene(load_robot(folder / 'slide.urdf'), surroundings_from_plain(
        {'keep_out': [box], 'clearance': clearance}, 'test'))


@pytest.mark.parametrize(('pose', 'message'), [
    (0.349, ''),
    (0.37, 'goal pose too near: hand and keep_out[0] are 30.0 mm apart (at least 50.0 mm are '
     "required); jog them apart, or set 'clearance: 0.027'"),
    (0.42, 'goal pose in collision: hand and keep_out[0] overlap by 20.0 mm; jog them apart, or '
     'correct floor, keep_out or environment')])
def test_a_pose_too_near_is_named_with_millimetres(
    tmp_path: Path, pose: float, message: str
) -> None:
    scene, said = slide(tmp_path, 0.5, 0.05), ''
    try:
        check_pose(scene, np.array([pose]), 'goal')
    except DynIdError as error:
        said = str(error)
    assert said == message


def test_a_way_that_is_not_found_is_told_with_what_is_on_the_straight_one(tmp_path: Path) -> None:
    scene = slide(tmp_path, 0.5, 0.05)
    limits = motion_limits(scene.robot, {'x': {'acceleration': 5.0}})
    with pytest.raises(DynIdError) as caught:
        approach(scene, np.array([-1.0]), np.array([1.5]), limits)
    before, _, rest = str(caught.value).partition('{x: ')
    nearest, _, after = rest.partition('}')
    assert before == (
        'no collision-free path to the goal found among 1600 random poses: on the straight move '
        'hand and keep_out[0] collide; jog the robot closer to the goal (nearest pose reached: ')
    assert after == ') or widen the position limits'
    assert 0.33 < float(nearest) <= 0.35
