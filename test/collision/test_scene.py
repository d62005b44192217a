"""Scenes: which bodies are kept apart, gradients of distances, what is said not to be checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chains import chain
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import colliding_robot
from robot_descriptions import own_robots
from tiers import COSTLY
from tolerances import DISTANCE_GRADIENT, GJK

from robot_dynid.collision.distance import NarrowPhase
from robot_dynid.collision.scene import Scene, build_scene
from robot_dynid.collision.scene_pairs import layout
from robot_dynid.collision.shapes import BASE, Shape
from robot_dynid.dynamics.rigid_body import LinkPoses
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.excitation.search.constraints import KeepClear
from robot_dynid.robot.inertia import homogeneous, parameters_from_com, rotation_about
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Motion

seeds = st.integers(0, 2**32 - 1)
NOWHERE = LinkPoses(np.zeros((1, 0, 3, 3)), np.zeros((1, 0, 3)))  # all shapes are at rest
WALL = {'centre': [1.0, 0.0, 0.5], 'size': [0.2, 4.0, 1.0]}
GANTRY = """<robot name="gantry"><link name="base">{base}</link><link name="a">{a}</link>
    <link name="b">{b}</link><link name="c">{c}</link><link name="hand">{hand}</link>
    <joint name="x" type="prismatic"><parent link="base"/><child link="a"/>
        <origin xyz="0 0 1"/><axis xyz="1 0 0"/>
        <limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
    <joint name="y" type="prismatic"><parent link="a"/><child link="b"/>
        <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
    <joint name="z" type="prismatic"><parent link="b"/><child link="c"/>
        <axis xyz="0 0 1"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
    <joint name="hold" type="fixed"><parent link="c"/><child link="hand"/>
        <origin xyz="0 0 -0.3"/></joint></robot>"""


def ball(radius=0.1, xyz='0 0 0'):
    """Return a <collision> of a sphere."""
    return (f'<collision><origin xyz="{xyz}"/><geometry><sphere radius="{radius}"/></geometry>'
            '</collision>')


@pytest.fixture
def gantry(tmp_path):
    """Return a function that reads a robot of three slides with the given shapes."""
    def read(**shapes):
        path = tmp_path / 'gantry.urdf'
        path.write_text(GANTRY.format(**{'base': '', 'a': '', 'b': '', 'c': '', 'hand': '',
                                         **shapes}))
        return load_robot(path)
    return read


def around(**given):
    """Return surroundings from plain data."""
    return surroundings_from_plain(given, 'test')


def test_distances_of_balls_on_slides_are_those_of_their_centres(gantry):
    robot = gantry(base=ball(), a=ball(), c=ball(0.2), hand=ball(0.05))
    found = build_scene(robot, around(floor=0.0, keep_out=[WALL]))
    q = np.array([[0.5, -0.3, 0.2], [-1.0, 1.0, -0.4]])
    x, y, z = q.T
    expected = {
        ('a', 'c'): np.minimum(np.hypot(y, z) - 0.3, np.hypot(y, z - 0.3) - 0.15),
        ('c', 'base'): np.minimum(np.sqrt(x**2 + y**2 + (z + 1.0)**2) - 0.3,
                                  np.sqrt(x**2 + y**2 + (z + 0.7)**2) - 0.15),
        ('c', 'floor'): np.minimum(0.8 + z, 0.65 + z),
    }
    table = dict(zip(found.pairs, found.distances(q).T))
    for pair, value in expected.items():
        assert table[pair] == pytest.approx(value, abs=GJK)
    assert table['a', 'keep_out[0]'][0] == pytest.approx(0.3, abs=GJK)
    assert ('a', 'base') not in table  # joined by one joint
    assert found.always_separated == (('a', 'floor'), ('b', 'floor'))  # at one height
    assert found.checked == (
        '6 pairs of bodies, 10 mm apart',
        '2 more pairs keep this clearance in every configuration',
        'b: no collision shape; rods along the axes and a sphere of equal inertia are checked '
        'against floor and boxes')
    assert 'b without collision shape' in ' '.join(found.unchecked)


def test_links_fixed_to_a_body_belong_to_it_and_pairs_may_be_ignored(gantry):
    robot = gantry(base=ball(), a=ball(), c=ball())
    assert ('a', 'c') in build_scene(robot).pairs
    assert ('a', 'c') not in build_scene(robot, around(ignore_pairs=[['hand', 'a']])).pairs
    with pytest.raises(UsageError, match=r"no body 'd'; valid: a, b, base, c, floor, hand"):
        build_scene(robot, around(ignore_pairs=[['a', 'd']]))


def test_pairs_that_always_touch_are_listed_and_tight_ones_keep_what_they_can(gantry):
    always = build_scene(gantry(base=ball(), a=ball(), b=ball(), c=ball(9.0)))
    assert set(always.always_touching) == {('a', 'c'), ('c', 'base')}
    assert always.checked == (
        '0 pairs of bodies, 10 mm apart',
        '1 more pairs keep this clearance in every configuration',
        'not checked because they always touch: a and c, c and base')
    tight = build_scene(gantry(a=ball(), c=ball(), base=ball()), around(clearance=10.0))
    assert np.all(tight.required <= 0.5 * tight.largest)
    assert tight.checked[:-1] == (f'{len(tight.pairs)} pairs of bodies, 10000 mm apart', *(
        f'{first} and {second} are always close: clearance {500.0 * largest:.2g} mm'
        for (first, second), largest in zip(tight.pairs, tight.largest)))
    np.testing.assert_allclose(tight.required, 0.5 * tight.largest)


def test_robots_without_shapes_are_kept_off_the_floor_by_their_axes():
    robot = load_robot('planar_3r')
    from_screws = robot.__class__(**{**vars(robot), 'source': ''})
    found = build_scene(from_screws, around(floor=-1.0))
    assert {pair[1] for pair in found.pairs} == {'floor'}
    assert 'no collision shapes' in found.unchecked[0]
    assert found.blind == found.unchecked
    shaped = build_scene(robot)
    assert shaped.blind == () and 'floor NOT checked' in shaped.unchecked[0]
    assert any('rods along the axes' in text for text in found.checked)
    down = {pair[0]: value for pair, value in
            zip(found.pairs, found.distances(np.array([[0.0, 0.0, 0.0]]))[0])}
    ends = build_scene(robot, around(floor=-1.0))
    exact = {pair[0]: value for pair, value in
             zip(ends.pairs, ends.distances(np.zeros((1, 3)))[0]) if pair[1] == 'floor'}
    assert set(down) == set(exact)
    for body, value in down.items():
        assert abs(value - exact[body]) < 0.3


@settings(max_examples=COSTLY)
@given(seeds, st.integers(2, 6), st.sampled_from([0.0, 0.5]))
def test_gradients_are_those_of_differences(tmp_path_factory, seed, moving, branching):
    rng = np.random.default_rng(seed)
    robot = colliding_robot(tmp_path_factory.mktemp('drawn') / 'r.urdf', rng, moving, branching)
    found = build_scene(robot, around(floor=-0.5, keep_out=[WALL]))
    q, step = rng.uniform(-1.0, 1.0, (4, robot.n)), 1e-3
    near = found.nearest(q, np.inf)
    assert near.measured.all()
    apart = near.distance > 0.01  # inside each other the deepest direction jumps
    steps = [[found.distances(q + k * e) for k in (-step, step)] for e in np.eye(robot.n)]
    rows = np.arange(len(q))
    for column in range(len(found.pairs)):
        gradient = found.rates(q, near, (rows, np.full(len(q), column)))
        here = near.distance[:, column]
        for j, (before, after) in enumerate(steps):
            ahead, back = after[:, column] - here, here - before[:, column]
            smooth = apart[:, column] & (np.abs(ahead - back) < 0.02 * step)
            central = (0.5 * (ahead + back) / step)[smooth]
            assert np.allclose(gradient[smooth, j], central, atol=DISTANCE_GRADIENT)


def test_far_pairs_are_bounded_from_below_and_near_ones_exact():
    robot = load_robot('ur10e')
    found, limits = build_scene(robot), motion_limits(robot)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (100, robot.n))
    exact, quick = found.distances(q), found.nearest(q, 0.05)
    assert np.all(quick.distance <= exact + GJK)
    assert np.array_equal(quick.distance < 0.05, exact < 0.05)
    assert 0.05 < quick.measured.mean() < 0.8
    assert np.allclose(quick.distance[exact < 0.05], exact[exact < 0.05], atol=GJK)


def test_the_constraint_has_the_sign_of_the_slack_and_its_own_gradient():
    robot = load_robot('seven_axis')
    kept = KeepClear(build_scene(robot))
    assert np.all(kept.clearances
                  >= kept.scene.required) and np.all(kept.clearances < kept.scene.largest)
    limits, rng = motion_limits(robot), np.random.default_rng(1)
    q = rng.uniform(limits.lower, limits.upper, (80, robot.n))
    still = np.zeros_like(q)
    values = kept.values(Motion(q, still, still, still))
    assert np.array_equal(values < 0.0, kept.scene.distances(q) < kept.clearances)
    assert values.max() == 1.0 and values.min() < -1.0
    weights = rng.uniform(size=values.shape) * ((values > 0.1) & (values < 0.9))
    gradient, *rest = kept.pullback(Motion(q, still, still, still), weights)
    assert not np.any(rest)
    step = 1e-3
    for j in range(robot.n):
        e = step * np.eye(robot.n)[j]
        up, down = (np.sum(weights * kept.values(Motion(q + s * e, still, still, still)), axis=1)
                    for s in (1, -1))
        off = np.abs((up - down) / (2 * step) - gradient[:, j])
        assert np.median(off) < 1e-3 and np.quantile(off, 0.9) < 0.05 * np.abs(gradient).max()


@pytest.mark.parametrize('name', own_robots())
def test_build_scene_has_no_collision_at_mid_range_of_shared_robots(name):
    robot = load_robot(name)
    found = build_scene(robot)
    assert found.distances(motion_limits(robot).centre[None]).min(initial=np.inf) > 0.0
    assert not [pair for pair in found.always_touching if 'floor' not in pair]


def test_shapes_that_cannot_be_read_are_named(gantry):
    with pytest.raises(RobotError, match=r"link 'a' collision: mesh file no.stl is missing"):
        build_scene(gantry(
            a='<collision><geometry><mesh filename="no.stl"/></geometry></collision>'))
    with pytest.raises(RobotError, match=r"link 'a' collision: is a <plane>, not one of box, "):
        build_scene(gantry(a='<collision><geometry><plane/></geometry></collision>'))
    with pytest.raises(UsageError, match=r'must all be \(N, 3\), are \(1, 2\)'):
        build_scene(gantry(a=ball(), c=ball())).distances(np.zeros((1, 2)))


@pytest.mark.parametrize('name', ['ur10e', 'tx40', 'puma560'])
def test_pairs_that_never_come_near_are_left_out_and_stay_apart(name, monkeypatch):
    robot = load_robot(name)
    found = build_scene(robot)
    monkeypatch.setattr(Scene, 'always_apart', lambda single: False)
    every = build_scene(robot)
    assert found.always_separated
    assert set(found.always_separated) | set(found.pairs) == set(every.pairs)
    lower, upper = robot.limits.lower, robot.limits.upper
    q = np.random.default_rng(7).uniform(lower, upper, (2000, robot.n))
    table = dict(zip(every.pairs, every.nearest(q, every.required).distance.T))
    required = dict(zip(every.pairs, every.required))
    for pair in found.always_separated:
        assert table[pair].min() >= required[pair]
    for pair, column in zip(found.pairs, found.nearest(q, found.required).distance.T):
        assert np.array_equal(column < required[pair], table[pair] < required[pair])


@settings(max_examples=60)
@given(seeds, st.floats(0.0, 0.3), st.sampled_from(['cylinder', 'capsule', 'sphere', 'box']))
def test_a_turn_changes_no_distance_by_more_than_the_swing(seed, tilt, kind):
    rng = np.random.default_rng(seed)
    frame = homogeneous(rotation_about([1.0, 0.0, 0.0], tilt), rng.normal(size=3) * 0.1 * tilt)
    shape = Shape('a', BASE, kind, frame, *{
        'box': (np.array([0.1, 0.2, 0.3]),), 'sphere': (np.zeros(3), 0.0, 0.2),
        'cylinder': (np.array([0.0, 0.0, 0.3]), 0.1),
        'capsule': (np.array([0.0, 0.0, 0.3]), 0.0, 0.1)}[kind])
    probe = Shape('b', BASE, 'sphere', homogeneous(np.eye(3), rng.normal(size=3) * 0.5),
                  np.zeros(3), ball=0.01)
    turn = float(rng.uniform(-1.0, 1.0))
    turned = replace(shape, placement=homogeneous(rotation_about([0.0, 0.0, 1.0], turn),
                                                  np.zeros(3)) @ frame)
    before, after = (NarrowPhase((body, probe), np.array([[0, 1]]))(
        NOWHERE, np.zeros(1, int), np.zeros(1, int)).distance[0]
        for body in (shape, turned))
    swing = shape.swing(np.array([0.0, 0.0, 1.0]))
    if min(before, after) > 0.0:
        assert abs(after - before) <= swing * abs(turn) + GJK
    if kind != 'box' and tilt == 0.0:
        assert swing == 0.0


def test_a_body_without_shape_is_rods_to_its_joints_and_a_ball_of_its_inertia():
    centre = np.array([0.1, 0.02, -0.03])
    ball = parameters_from_com(0.5, centre, 0.4 * 0.5 * 0.1**2 * np.eye(3))
    places = [[0.0, 0.0, 0.4], [0.3, 0.0, 0.0], [0.1, 0.2, -0.5]]
    robot = chain([0, 0, 0], 3 * [np.eye(3)], places, 3 * [[0.0, 0.0, 1.0]],
                  [ball, 0.0 * ball, ball])
    found = layout(robot, around(floor=-2.0, keep_out=[WALL]))
    kinds = [(shape.owner, shape.kind) for shape in found.shapes]
    assert kinds == [
        ('1', 'sphere'), ('1', 'capsule'), ('1', 'sphere'),
        ('2', 'sphere'), ('2', 'capsule'), ('3', 'sphere'), ('3', 'sphere'),
        ('keep_out[0]', 'box'), ('floor', 'halfspace')]
    for shape, child in ((found.shapes[1], 1), (found.shapes[4], 2)):
        end = robot.translations[child]
        ends = [shape.placement[:3, 3] + sign * shape.edges[2] * shape.placement[:3, 2]
                for sign in (-1.0, 1.0)]
        np.testing.assert_allclose(ends, [np.zeros(3), end], rtol=0.0, atol=1e-12)
        turn = shape.placement[:3, :3]
        np.testing.assert_allclose(turn.T @ turn, np.eye(3), rtol=0.0, atol=1e-12)
        assert np.linalg.det(turn) == pytest.approx(1.0)
        assert shape.ball == 0.0 and not shape.edges[:2].any()
    for shape in (found.shapes[2], found.shapes[6]):
        assert shape.ball == pytest.approx(0.1)
        np.testing.assert_allclose(shape.placement[:3, 3], centre, rtol=0.0, atol=1e-12)
    assert [shape.ball for shape in found.shapes if shape.kind == 'sphere'].count(0.0) == 3
    names = {pair.names for pair in found.pairs}  # never with one another, which are no bodies
    assert names == {(link, other) for link in robot.bodies for other in ('keep_out[0]', 'floor')}
    assert found.stand_ins == robot.bodies and len(found.blind) == 1
    assert found.unchecked == found.blind
    assert len(layout(robot, around(keep_out=[WALL])).unchecked) == 2


SLIDE = """<robot name="slide"><link name="base"/><link name="hand">{}</link>
    <joint name="x" type="prismatic"><parent link="base"/><child link="hand"/><axis xyz="1 0 0"/>
    <limit lower="-3" upper="1" velocity="1" effort="1"/></joint></robot>"""


def block(x, y=0.0, size=0.1):
    """Return a cube about (x, y, 0)."""
    return {'centre': [x, y, 0.0], 'size': [size] * 3}


@pytest.mark.parametrize(('boxes', 'apart'), [
    ([block(1.201), block(-3.201)], [True, True]), ([block(1.199), block(-3.199)], [False] * 2),
    ([block(-0.4, 0.201), block(-0.4, 0.199)], [True, False]),
    ([block(-1.6, -0.201), block(-1.6, -0.199)], [True, False])])
def test_a_pair_is_left_out_where_it_keeps_its_clearance_in_all_of_the_range(
        tmp_path, boxes, apart):
    """A ball of 0.1 m from -3 to 1 m, cubes with edges of 0.1 m, 50 mm apart or not."""
    path = tmp_path / 'slide.urdf'
    path.write_text(SLIDE.format(ball()))
    found = build_scene(load_robot(path), around(keep_out=boxes, clearance=0.05))
    assert [('hand', f'keep_out[{i}]') in found.always_separated for i in range(2)] == apart
    assert len(found.pairs) == 2 - sum(apart)


def test_a_pair_with_three_joints_between_is_never_left_out(gantry):
    found = build_scene(gantry(b=ball(), c=ball()), around(floor=-50.0))
    assert set(found.always_separated) == {('a', 'floor'), ('b', 'floor')}
    assert ('c', 'floor') in found.pairs


WRIST = """<robot name="wrist"><link name="base"/><link name="a"/><link name="b"/><link name="c">
    {shape}</link>
    <joint name="turn" type="{kind}"><parent link="base"/><child link="a"/>
        <origin xyz="0 0 1"/><axis xyz="0 0 1"/>{limit}</joint>
    <joint name="lift" type="prismatic"><parent link="a"/><child link="b"/>
        <origin xyz="0.6 0 2"/><axis xyz="0 0 1"/>
        <limit lower="-0.2" upper="0.7" velocity="1" effort="1"/></joint>
    <joint name="roll" type="continuous"><parent link="b"/><child link="c"/>
        <origin xyz="0.3 0.4 0.5"/><axis xyz="1 0 0"/></joint></robot>"""
LIMIT = '<limit lower="{0}" upper="{1}" velocity="1" effort="1"/>'


def wrist(folder, xyz, kind='continuous', limit=''):
    """Return a robot that turns, lifts and rolls a ball of 0.1 m."""
    path = folder / 'wrist.urdf'
    path.write_text(WRIST.format(shape=ball(0.1, xyz), kind=kind, limit=limit))
    return load_robot(path)


def test_levers_are_those_of_the_stretched_chain(tmp_path):
    """Of roll the distance of the ball from its axis; of turn all that lies between."""
    found = build_scene(wrist(tmp_path, '0.4 0.3 0'), around(keep_out=[block(9.0)]))
    column = found.pairs.index(('c', 'keep_out[0]'))
    levers = found.levers(np.array([9.0, 0.7, 9.0]))[:, column]
    np.testing.assert_allclose(levers, [0.6 + np.sqrt(0.5) + 0.6 + 0.7, 1.0, 0.3], rtol=1e-12)


@pytest.mark.parametrize(('offset', 'apart'), [(0.9e-5, True), (1.1e-5, False)])
def test_a_lever_of_a_hundredth_of_a_millimetre_does_not_count(tmp_path, offset, apart):
    """Pairs with more than two joints that move them are not checked over all of their range."""
    found = build_scene(wrist(tmp_path, f'0.4 {offset} 0'), around(floor=-1.0))
    assert (('c', 'floor') in found.always_separated) is apart


@pytest.mark.parametrize(('kind', 'limit', 'x', 'apart'), [
    ('continuous', '', -1.0, False), ('revolute', LIMIT.format(-9, 9), -1.0, False),
    ('revolute', LIMIT.format(-2, 1), -1.0, True), ('revolute', LIMIT.format(-2, 1), 1.0, False),
    ('revolute', LIMIT.format(-3, 3), -1.1, False), ('continuous', '', -1.3, True)])
def test_a_joint_that_may_turn_more_than_once_is_checked_over_one_turn(
        tmp_path, kind, limit, x, apart):
    """The ball is up to 1.083 m from the axis of turn, wherever roll turns it."""
    block_x = {'centre': [x, 0.0, 3.5], 'size': [0.02, 0.1, 2.0]}
    found = build_scene(wrist(tmp_path, '0.1 0 0', kind, limit),
                        around(keep_out=[block_x], clearance=0.05))
    assert (('c', 'keep_out[0]') in found.always_separated) is apart


def test_gradients_of_balls_are_the_directions_from_centre_to_centre(gantry, tmp_path):
    found = build_scene(gantry(base=ball(), c=ball(0.2)))
    q = np.array([[0.5, -0.3, 0.2], [-1.0, 1.0, -0.4]])
    near, rows = found.nearest(q, np.inf), np.arange(2)
    column = found.pairs.index(('c', 'base'))
    apart = q + np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(
        found.rates(q, near, (rows, np.full(2, column))),
        apart / np.linalg.norm(apart, axis=1, keepdims=True), atol=1e-6, rtol=1e-6)
    wall = {'centre': [2.0, 0.0, 3.5], 'size': [2.0, 20.0, 20.0]}
    turning = build_scene(wrist(tmp_path, '0 0 0'), around(keep_out=[wall]))
    q = np.array([[0.4, 0.1, 0.3]])
    near = turning.nearest(q, np.inf)
    column = turning.pairs.index(('c', 'keep_out[0]'))
    assert near.distance[0, column] == pytest.approx(
        0.9 - 0.9 * np.cos(0.4) + 0.4 * np.sin(0.4), abs=GJK)
    np.testing.assert_allclose(
        turning.rates(q, near, (np.array([0]), np.array([column]))),
        [[0.9 * np.sin(0.4) + 0.4 * np.cos(0.4), 0.0, 0.0]], atol=1e-6, rtol=1e-6)
