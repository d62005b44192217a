"""estimation/feasible/bounds.py: bounding ellipsoids from the collision primitives of a URDF: they
hold the bodies, and bind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from feasible_recordings import assert_real, recorded
from hypothesis import given, settings
from hypothesis import strategies as st
from robot_descriptions import own_robots
from tolerances import SAME_FORMULA, SOLVER

from robot_dynid.errors import UsageError
from robot_dynid.estimation.feasible.bounds import (
    COLLISION,
    Bounds,
    LinkBounds,
    limits_of,
    resolve_collision,
)
from robot_dynid.estimation.feasible.simultaneous import Feasible
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.robot.inertia import (
    com_from_parameters,
    homogeneous,
    move_parameters,
    parameters_from_com,
    rotation_from_rpy,
)
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

COLLIDES = Bounds((('arm', LinkBounds(ellipsoid=COLLISION)),))
BOX = '<box size="0.2 0.4 0.6"/>'
TURN = np.array([0.3, -0.7, 1.1])
PLACE = np.array([0.1, -0.2, 0.3])
#: second moments over the squares of the half lengths of uniform bodies, and least ellipsoids
UNIFORM = {
    BOX: (np.array([0.1, 0.2, 0.3]), np.full(3, 1.0 / 3.0), np.sqrt([3.0, 3.0, 3.0])),
    '<sphere radius="0.2"/>': (np.full(3, 0.2), np.full(3, 0.2), np.ones(3)),
    '<cylinder radius="0.1" length="0.5"/>': (
        np.array([0.1, 0.1, 0.25]), np.array([0.25, 0.25, 1.0 / 3.0]), np.sqrt([1.5, 1.5, 3.0])),
}


def collision(geometry, xyz=PLACE, rpy=TURN):
    """Return a <collision> of one primitive."""
    place = ' '.join(map(str, xyz)), ' '.join(map(str, rpy))
    return (f'<collision><origin xyz="{place[0]}" rpy="{place[1]}"/>'
            f'<geometry>{geometry}</geometry></collision>')


INERTIAL = ('<inertial><origin xyz="0.3 0.5 -0.4"/><mass value="2"/><inertia ixx="0.01" ixy="0" '
            'ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>')


@pytest.fixture
def robot_of(tmp_path):
    """Return a function that reads a robot with one arm and a hand fixed to it."""
    def read(arm, hand=''):
        path = tmp_path / 'one.urdf'
        path.write_text(f"""<robot name="one"><link name="base"/><link name="arm">{arm}</link>
            <link name="hand">{hand}</link>
            <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/>
                <origin rpy="1 0 0"/><axis xyz="0 0 1"/></joint>
            <joint name="hold" type="fixed"><parent link="arm"/><child link="hand"/>
                <origin xyz="0 0 1" rpy="0 1.5707963267948966 0"/></joint></robot>""")
        return load_robot(path)
    return read


def ellipsoid_of(robot, name='arm'):
    """Return the ellipsoid of a link from its collision primitives."""
    bounds = Bounds(((name, LinkBounds(ellipsoid=COLLISION)),))
    return resolve_collision(bounds, robot).of(name).ellipsoid


def reach(ellipsoid, points):
    """Return how far out points (k, 3) are, the surface at one."""
    own = (points - np.array(ellipsoid.centre)) @ np.array(ellipsoid.rotation)
    return np.linalg.norm(own / ellipsoid.radii, axis=1)


@pytest.mark.parametrize('geometry', UNIFORM)
def test_ellipsoid_of_a_primitive_is_minimal_and_admits_a_uniform_body(robot_of, geometry):
    half, share, factor = UNIFORM[geometry]
    found = ellipsoid_of(robot_of(collision(geometry)))
    assert found.radii == pytest.approx(half * factor, rel=SAME_FORMULA)
    assert found.centre == pytest.approx(PLACE, rel=SAME_FORMULA)
    second = share * half**2
    body = move_parameters(
        parameters_from_com(2.0, np.zeros(3), 2.0 * np.diag(second.sum() - second)),
        homogeneous(rotation_from_rpy(TURN), PLACE))
    inside = 2.0 * (1.0 - np.sum(second / (half * factor)**2))
    assert inside > 0.0
    assert found.row @ body == pytest.approx(inside, rel=SAME_FORMULA)


def test_a_capsule_has_the_ellipsoid_of_the_cylinder_around_it(robot_of):
    found = ellipsoid_of(robot_of(collision('<capsule radius="0.1" length="0.4"/>')))
    assert found.radii == pytest.approx(np.sqrt([1.5, 1.5, 3.0]) * [0.1, 0.1, 0.3],
                                        rel=SAME_FORMULA)


def test_several_primitives_have_the_ellipsoid_of_their_box_with_fixed_links(robot_of):
    quarter = (0.0, np.pi / 2.0, 0.0)
    arm = (collision('<cylinder radius="0.1" length="0.8"/>', (0.4, 0.0, 0.0), quarter)
           + collision('<capsule radius="0.1" length="0.2"/>', (0.0, 0.3, 0.0), quarter))
    # z of the hand is x of the arm: the box reaches from 0.85 to 1.15 along z of the arm
    hand = collision('<box size="0.3 0.1 0.1"/>', (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    found = ellipsoid_of(robot_of(arm, hand))
    low, high = np.array([-0.2, -0.1, -0.1]), np.array([0.8, 0.4, 1.15])
    assert found.centre == pytest.approx((low + high) / 2.0, rel=SAME_FORMULA)
    assert found.radii == pytest.approx(np.sqrt(3.0) * (high - low) / 2.0, rel=SAME_FORMULA)


def test_the_box_of_a_slanted_cylinder_touches_it(robot_of):
    slanted = collision('<cylinder radius="0.1" length="0.4"/>', rpy=(np.pi / 4.0, 0.0, 0.0))
    half = np.array([0.1, 0.3 / np.sqrt(2.0), 0.3 / np.sqrt(2.0)])
    found = ellipsoid_of(robot_of(slanted + slanted))
    assert found.radii == pytest.approx(np.sqrt(3.0) * half, rel=SAME_FORMULA)


angles = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
shapes = st.lists(st.tuples(st.sampled_from([*UNIFORM, '<capsule radius="0.1" length="0.4"/>']),
                            angles, angles), min_size=1, max_size=3)


@settings(max_examples=60)
@given(shapes)
def test_every_point_of_every_primitive_is_inside(tmp_path_factory, drawn):
    text = ''.join(collision(*one) for one in drawn)
    path = tmp_path_factory.mktemp('drawn') / 'one.urdf'
    path.write_text(f'<robot name="one"><link name="base"/><link name="arm">{text}</link>'
                    '<joint name="turn" type="continuous"><parent link="base"/>'
                    '<child link="arm"/></joint></robot>')
    found = ellipsoid_of(load_robot(path))
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    points[:1000] = np.sign(points[:1000])
    for geometry, xyz, rpy in drawn:
        own = _inside(geometry, points)
        assert np.all(reach(found, own @ rotation_from_rpy(rpy).T + xyz) <= 1.0 + SAME_FORMULA)


def _inside(geometry, points):
    """Return points (k, 3) of a primitive, from some of the cube, its corners and edges."""
    if geometry in UNIFORM:
        half, _, factor = UNIFORM[geometry]
        dimension = np.round(3.0 / factor**2)
        unit = points.copy()
        for d in (2, 3):
            disc = dimension == d
            if disc.any():
                size = np.linalg.norm(unit[:, disc], axis=1, keepdims=True)
                unit[:, disc] /= np.maximum(size, 1.0)
        return unit * half
    ball = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    return 0.1 * ball + np.sign(points) * [0.0, 0.0, 0.2]


@pytest.fixture
def outside(robot_of):
    """Return a recording of an arm whose true centre of mass is outside its box."""
    robot = robot_of(INERTIAL + collision('<box size="0.2 0.2 0.2"/>', (0.1, 0.0, 0.0)))
    return recorded(robot, robot.nominal, np.random.default_rng(0), noise=0.05, count=800)


def test_a_centre_outside_is_moved_in(outside):
    bounds = resolve_collision(COLLIDES, outside.model.robot)
    free = Feasible(prior_weight=1e-3).fit(outside.experiment)
    bound = Feasible(prior_weight=1e-3, bounds=bounds).fit(outside.experiment)
    assert_real(outside.model, bound, np.random.default_rng(1))
    centres = np.array([com_from_parameters(e.standard[:10])[1] for e in (free, bound)])
    before, after = reach(bounds.of('arm').ellipsoid, centres)
    assert before > 1.0
    assert after <= 1.0 + SOLVER
    assert 'bounding ellipsoid of arm' in bound.certificate.active


def test_recipes_ask_for_ellipsoids_from_collision_shapes(outside):
    recipe = recipe_from_dict({
        'cutoff': 20.0, 'ramp_width': 0.05, 'effort_lag': 0.0, 'prior_weight': 1e-3,
        'bounds': {'links': {'arm': {'ellipsoid': 'collision'}}}})
    assert recipe.estimator_for('feasible').bounds == COLLIDES
    robot = replace(outside.model.robot, drive=Drive('torque'))
    samples = outside.samples
    log = RawLog('arm', robot.joints, samples.time, samples.position, effort=samples.effort)
    estimate = identify(robot, [log], 'feasible', recipe).estimate
    assert 'bounding ellipsoid of arm' in estimate.certificate.active


# the published centre of mass of link_5 of the Stanford arm is not in the cylinder we drew for it
@pytest.mark.parametrize('name', sorted({*own_robots()} - {'stanford_arm'}))
def test_links_of_the_shared_robots_have_their_centres_inside(name):
    robot = load_robot(name)
    centres = {body: com_from_parameters(link)[1]
               for body, link in zip(robot.bodies, robot.nominal) if link[0] > 0.0}
    assert centres
    for body, centre in centres.items():
        assert reach(ellipsoid_of(robot, body), centre[None]) <= 1.0, body


MESH = collision('<mesh filename="arm.stl"/>')


@pytest.mark.parametrize(('arm', 'hand', 'message'), [
    (MESH, '', r"link 'arm' collision: is a <mesh>, not one of box, .* give ellipsoid: \{centre"),
    (collision(BOX), MESH, "ellipsoid of arm .* link 'hand' collision: is a <mesh>"),
    ('<collision/>', '', "link 'arm' collision: is nothing"),
    ('', '', "link 'arm': has no <collision>"),
    (collision(BOX), INERTIAL, "link 'hand': has mass, but no <collision>"),
    (collision('<box size="1 2"/>'), '', "link 'arm' collision box size: expected 3 finite"),
    (collision('<sphere radius="0"/>'), '', 'sphere radius.* must be positive'),
    (collision('<cylinder radius="1"/>'), '', 'cylinder length: is missing'),
    (collision(BOX, rpy=(0, 0)), '', 'collision origin rpy: expected 3 finite'),
])
def test_resolve_collision_refuses_links_without_a_primitive(robot_of, arm, hand, message):
    robot = robot_of(arm, hand)
    with pytest.raises(UsageError, match=message) as caught:
        resolve_collision(COLLIDES, robot)
    assert 'bounds: no ellipsoid of arm' in str(caught.value)


def test_wrong_bounds_of_collision_ellipsoids_are_refused(robot_of, tmp_path):
    robot = robot_of(collision(BOX))
    with pytest.raises(UsageError, match="bounds: arm: ellipsoid is 'hull': give centre and"):
        recipe_from_dict({'bounds': {'links': {'arm': {'ellipsoid': 'hull'}}}})
    with pytest.raises(UsageError, match='the ellipsoid of arm has no numbers yet: with_coll'):
        limits_of(COLLIDES, robot, 10)
    (tmp_path / 'one.urdf').unlink()
    with pytest.raises(UsageError, match=r'cannot be read .* give ellipsoid'):
        resolve_collision(COLLIDES, robot)
    screws = tmp_path / 'screws.yaml'
    screws.write_text('effort_kind: torque\nscrews:\n'
                      '- {name: joint_1, axis: [0, 0, 1], origin: [0, 0, 0]}\n')
    robot = load_robot(screws)
    with pytest.raises(UsageError, match='has no <collision>; give ellipsoid'):
        ellipsoid_of(robot, robot.bodies[0])
    recipe = Recipe(estimator={'bounds': Bounds((('hand', LinkBounds(ellipsoid=COLLISION)),))})
    with pytest.raises(UsageError, match='moves no link hand'):
        identify(robot, [RawLog('empty', robot.joints, np.zeros(0), np.zeros((0, 1)))],
                 'feasible', recipe)
