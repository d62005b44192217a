"""Proofs that motions keep clear, against dense sampling; ways around obstacles."""

from __future__ import annotations

import numpy as np
import pytest
from random_robots import colliding_robot, random_motion
from tolerances import GJK

from robot_dynid.collision.clearance import RESOLUTION, Clearance, prove, travel
from robot_dynid.collision.roadmap import Roadmap, approach
from robot_dynid.collision.scene import build_scene
from robot_dynid.errors import DynIdError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.trajectories.composite import Composite
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Motion, Peaks, QuinticMove
from robot_dynid.types import frozen

POLE = {'centre': [0.9, 0.0, 0.6], 'size': [0.1, 0.1, 1.2]}


def around(**given):
    """Return surroundings from plain data."""
    return surroundings_from_plain(given, 'test')


def dense(scene, trajectory, count=800):
    """Return the least slack and the least distance at that instant, on a dense grid."""
    q = trajectory.sample(np.linspace(0.0, trajectory.duration, count)).position
    distances = scene.distances(q)
    slack = distances - scene.required
    where = np.unravel_index(int(np.argmin(slack)), slack.shape)
    return float(slack[where]), float(distances[where])


@pytest.mark.parametrize('seed', [
    pytest.param(seed, marks=() if seed < 7 else pytest.mark.soak) for seed in range(20)])
def test_prove_agrees_with_distances_on_a_dense_grid(tmp_path, seed):
    rng = np.random.default_rng(seed)
    robot = colliding_robot(tmp_path / 'r.urdf', rng, int(rng.integers(2, 7)),
                            float(rng.choice([0.0, 0.4])))
    scene = build_scene(robot, around(floor=-0.6, keep_out=[POLE]))
    verdicts = []
    for size in (0.02, 0.05, 0.1, 0.4):
        motion = random_motion(robot, rng, size)
        found = prove(scene, motion)
        slack, distance = dense(scene, motion)
        verdicts.append(found.free)
        if found.free:
            assert slack >= -GJK
            assert distance >= found.smallest - RESOLUTION - GJK
        elif scene.pairs:
            pair = scene.pairs.index(found.pair)
            at = scene.distances(motion.sample(found.time).position)[0]
            assert at[pair] == pytest.approx(found.smallest, abs=GJK)
            assert found.smallest <= scene.required[pair] + 1e-4
    if seed == 0:
        assert len(set(verdicts)) == 2  # both kinds occur


def test_a_collision_shorter_than_any_grid_is_found(tmp_path):
    """The end of a rod sweeps past a pin for about a millisecond, between coarse samples."""
    path = tmp_path / 'rod.urdf'
    path.write_text(
        '<robot name="rod"><link name="base"/><link name="rod"><collision>'
        '<origin xyz="0.5 0 0" rpy="0 1.5707963267948966 0"/><geometry>'
        '<capsule radius="0.001" length="0.998"/></geometry></collision></link>'
        '<joint name="turn" type="revolute"><parent link="base"/><child link="rod"/>'
        '<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="9" effort="1"/></joint></robot>')
    pin = {'centre': [1.0009, 0.0, 0.0], 'size': [0.002, 0.002, 0.1]}
    scene = build_scene(load_robot(path), around(keep_out=[pin], clearance=0.0))
    move = QuinticMove(('turn',), frozen([-1.0]), frozen([1.0]), 0.5)
    found = prove(scene, move)
    assert not found.free and found.pair == ('rod', 'keep_out[0]')
    assert found.time == pytest.approx(0.25, abs=1e-3) and -2e-4 < found.smallest < GJK
    assert scene.distances(move.sample(np.arange(0.0, 0.5, 0.02)).position).min() > 0.01
    beside = {**pin, 'centre': [1.0012, 0.0, 0.0]}
    assert prove(
        build_scene(load_robot(path), around(keep_out=[beside], clearance=0.0)), move).free


def test_the_smallest_distance_and_its_time_are_those_of_a_slide(tmp_path):
    path = tmp_path / 'slide.urdf'
    path.write_text(
        '<robot name="slide"><link name="base"/><link name="hand"><collision><geometry>'
        '<sphere radius="0.1"/></geometry></collision></link><joint name="x" type="prismatic">'
        '<parent link="base"/><child link="hand"/><axis xyz="1 0 0"/>'
        '<limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>')
    wall = {'centre': [1.5, 0.0, 0.0], 'size': [1.0, 1.0, 1.0]}
    scene = build_scene(load_robot(path), around(keep_out=[wall], clearance=0.05))
    there = QuinticMove(('x',), frozen([0.0]), frozen([0.8]), 2.0)
    back = QuinticMove(('x',), frozen([0.8]), frozen([-0.5]), 2.0)
    found = prove(scene, Composite((there, back)))
    assert found.free and found.pair == ('hand', 'keep_out[0]')
    assert found.smallest == pytest.approx(0.1, abs=RESOLUTION)
    assert found.time == pytest.approx(2.0, abs=0.15)
    far = QuinticMove(('x',), frozen([0.0]), frozen([0.86]), 2.0)
    near = prove(scene, far)
    assert not near.free
    assert near.smallest < 0.05 + GJK


@pytest.mark.parametrize('half', [1e-3, 0.05, 0.7])
def test_travel_bounds_the_motion_about_an_instant(half):
    robot = load_robot('ur10e')
    motion = random_motion(robot, np.random.default_rng(0), 0.5)
    middles = np.linspace(half, motion.duration - half, 40)
    bound = travel(motion.sample(middles), half, motion.peaks())
    around_them = (middles[:, None] + np.linspace(-half, half, 101)).ravel()
    q = motion.sample(around_them).position.reshape(40, 101, -1)
    gone = np.abs(q - motion.sample(middles).position[:, None]).max(axis=1)
    assert np.all(gone <= bound * (1.0 + 1e-9) + 1e-12)
    assert np.median(gone / bound) > 0.3
    still = Peaks(*(np.full(robot.n, np.inf) for _ in range(5)))
    assert np.all(np.isinf(travel(motion.sample(middles), half, still)))


@pytest.fixture(scope='module')
def pole():
    """Return the UR10e behind a pole, its slow limits and poses on both sides."""
    robot = load_robot('ur10e')
    scene = build_scene(robot, around(floor=0.0, keep_out=[POLE]))
    rest = np.array([-0.5, 0.2, 0.2, 0.3, 0.0])
    return scene, motion_limits(robot).scaled(1.0, 0.2), np.r_[0.9, rest], np.r_[-0.9, rest]


def test_ways_lead_straight_or_around_and_are_proven(pole):
    scene, limits, start, goal = pole
    assert not prove(scene, QuinticMove(limits.joints, start, goal, 10.0)).free
    way = approach(scene, start, goal, limits)
    assert len(way) > 1
    assert np.array_equal(way[0].start, start) and np.array_equal(way[-1].goal, goal)
    whole = Composite(way)
    assert prove(scene, whole).free and dense(scene, whole)[0] >= -GJK
    peaks = whole.peaks()
    assert np.all(peaks.velocity <= limits.velocity)
    assert np.all(peaks.acceleration <= limits.acceleration)
    assert len(approach(scene, start, start + 0.05, limits)) == 1
    again = approach(scene, start, goal, limits)
    assert [move.goal.tolist() for move in again] == [move.goal.tolist() for move in way]


def test_ends_in_collision_are_named_with_millimetres(pole):
    scene, limits, start, goal = pole
    inside = start.copy()
    inside[0] = 0.0
    depth = -1e3 * scene.distances(inside[None]).min()
    assert depth > 1.0
    with pytest.raises(DynIdError, match=rf'start pose in collision: \w+ and keep_out\[0\] overlap'
                                         rf' by {depth:.1f} mm; jog'):
        approach(scene, inside, goal, limits)
    with pytest.raises(DynIdError, match='goal pose in collision'):
        approach(scene, goal, inside, limits)
    near = build_scene(scene.robot, around(floor=0.0, clearance=0.2))
    with pytest.raises(DynIdError, match=r"start pose too near: .* mm apart \(at .* set 'clear"):
        approach(near, start * [1, 0.2, 1, 1, 1, 1], goal, limits)


@pytest.mark.parametrize('blocked', [1, 3])
def test_a_way_goes_around_a_move_that_is_refused(blocked):
    """The straight one of three is refused in both directions, or all are."""
    poses = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.2]])
    asked = []

    def straight(start, goal):
        ends = {tuple(start), tuple(goal)}
        asked.append(ends)
        free = blocked < 3 and tuple(poses[2]) in ends
        return QuinticMove(('a', 'b'), start, goal, 1.0) if free else None

    roadmap = Roadmap(np.ones(2), poses, lambda some: np.ones(len(some), dtype=bool), straight)
    way = roadmap.shortest_path(poses[0], poses[1])
    assert [(tuple(move.start), tuple(move.goal)) for move in way] == ([] if blocked == 3 else [
        ((0.0, 0.0), (0.5, 0.2)), ((0.5, 0.2), (1.0, 0.0))])
    back = roadmap.shortest_path(poses[1], poses[0])
    assert [tuple(move.start) for move in back] == ([] if blocked == 3 else [
        (1.0, 0.0), (0.5, 0.2)])
    assert len(asked) == len({frozenset(ends) for ends in asked}), 'each move is proven once'


def test_travel_is_the_least_of_the_bounds_by_velocity_acceleration_and_jerk():
    """Each of them is the least for one of three joints."""
    motion = Motion(*(np.array([values]) for values in (
        [0.0, 0.0, 0.0], [-2.0, 0.0, -1.0], [0.0, 0.0, -4.0], [0.0, 0.0, 0.0])))
    peaks = Peaks(*(np.array(values) for values in (
        [-1.0] * 3, [1.0] * 3, [1.0, 9.0, 9.0], [8.0, 3.0, 50.0], [1e3, 1e3, 6.0])))
    for half in (0.5, 0.1):
        assert travel(motion, half, peaks)[0] == pytest.approx([
            half, 0.5 * 3.0 * half**2, half + 0.5 * 4.0 * half**2 + half**3])


class Steady:
    """A joint that moves from -0.1 rad at constant ``speed`` rad/s; ``asked`` are the instants."""

    joints = ('a',)

    def __init__(self, duration, speed):
        self.duration, self.speed, self.asked = duration, speed, []

    def sample(self, time):
        self.asked.append(time)
        none = np.zeros((len(time), 1))
        return Motion(-0.1 + self.speed * time[:, None], self.speed + none, none, none)

    def peaks(self):
        return Peaks(*(np.array([value]) for value in (
            -0.1, -0.1 + self.speed * self.duration, self.speed, 0.0, 0.0)))


class Pairs:
    """Two pairs with slack of their own at every position, and levers of 1 and 2 m/rad."""

    pairs, required = (('a', 'b'), ('a', 'c')), np.array([0.05, 0.02])
    checked, unchecked = ('both',), ('floor',)

    def __init__(self, *slack):
        self.slack, self.travel = slack, None

    def levers(self, travel):
        self.travel = travel.tolist()
        return np.array([[1.0, 2.0]])

    def nearest(self, q, far):
        class Near:
            distance = self.required + np.column_stack([slack(q[:, 0]) for slack in self.slack])
            measured = np.ones((len(q), 2), dtype=bool)
        return Near


def far(q):
    return 9.0 + 0.0 * q


def test_a_motion_is_halved_from_tenths_of_a_second_until_it_changes_no_millimetre():
    """A tenth of at most 0.1 s changes a distance by 0.0875 m; 2^-7 of that are 0.7 mm."""
    steady, scene = Steady(0.35, 2.0), Pairs(lambda q: 0.05 + 0.0 * q, far)
    found = prove(scene, steady)
    assert found == Clearance(True, pytest.approx(0.1), ('a', 'b'), pytest.approx(0.04375),
                              ('both',), ('floor',))
    half = 0.35 / 8.0
    first = half * np.array([1.0, 3.0, 5.0, 7.0])
    np.testing.assert_allclose(steady.asked[0], first)
    np.testing.assert_allclose(steady.asked[1], np.r_[first - 0.5 * half, first + 0.5 * half])
    assert len(steady.asked) == 8 and scene.travel == pytest.approx([0.6])
    short = Steady(0.05, 0.1)
    assert prove(Pairs(far, far), short).free and short.asked[0] == pytest.approx([0.025])


@pytest.mark.parametrize(('slack', 'free'), [(0.9e-5, True), (0.5e-5, False)])
def test_a_pair_is_too_near_where_a_hundredth_of_a_millimetre_of_motion_decides(slack, free):
    """Halved travel is 1.2e-5 and 0.6e-5 m, for the second pair with twice the lever as well."""
    assert prove(Pairs(lambda q: slack + 0.0 * q, far), Steady(0.05, 1.2e-5 / 0.025)).free is free
    assert prove(Pairs(far, lambda q: slack + 0.0 * q), Steady(0.05, 0.6e-5 / 0.025)).free is free


def test_the_smallest_distance_is_found_to_a_millimetre_with_its_pair_and_instant():
    scene = Pairs(far, lambda q: 0.03 + 0.7 * np.abs(q - 0.3217))
    found = prove(scene, Steady(1.0, 1.0))
    assert found.free and found.pair == ('a', 'c')
    assert 0.05 <= found.smallest <= 0.051
    assert found.smallest == pytest.approx(0.05 + 0.7 * abs(found.time - 0.4217), rel=1e-9)
    nothing = Pairs(far, far)
    nothing.pairs = ()
    assert prove(nothing, Steady(1.0, 1.0)) == Clearance(
        True, np.inf, ('', ''), 0.0, (), ('floor',))
