"""Robots from screw data: frames, twists, and the same dynamics as from a URDF."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from robot_descriptions import own_robots
from scipy.linalg import expm
from slow_dynamics import inverse_dynamics as slow_dynamics
from slow_dynamics import poses
from tolerances import SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import RigidLinks
from robot_dynid.errors import DynIdError, RobotError
from robot_dynid.reduction import reduce_numeric
from robot_dynid.robot import screws
from robot_dynid.robot.inertia import (
    adjoint,
    move_parameters,
    parameters_from_pseudo_inertia,
    skew,
)
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.types import FloatArray

number = st.floats(-2.0, 2.0, allow_subnormal=False)
vectors = hnp.arrays(np.float64, 3, elements=number)
quick = settings(max_examples=60)

PLANAR = """
screws:
  - {name: a, axis: [-1, 0, 0], origin: [0, 0, 0], mass: 20, com: [0.2, 0, 0], inertia: {izz: 1}}
  - {name: b, axis: [-1, 0, 0], origin: [0.12, 0, 0.36], mass: 10, com: [0.2, 0, 0]}
  - {name: c, type: continuous, axis: [-2.0, 0, 0], origin: [0.2425, 0, 0], mass: 5}
tip_link: c_link
base_link: frame
effort_kind: torque
limits: {a: {position: [-1, 1], velocity: 2}}
"""


@quick
@given(vectors.filter(lambda s: np.linalg.norm(s) > 1e-6))
def test_link_frame_has_its_z_axis_along_the_screw(axis: FloatArray) -> None:
    rotation = screws.rotation_to(axis)
    direction = axis / np.linalg.norm(axis)
    assert np.allclose(rotation[:, 2], direction, atol=1e-12)
    assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.isclose(np.linalg.det(rotation), 1.0)
    # It is the least rotation: it turns by the angle between z and the axis, no further.
    assert np.isclose((np.trace(rotation) - 1.0) / 2.0, direction[2], atol=1e-9)


@pytest.mark.parametrize('axis', [(0, 0, 3), (0, 0, -2), (1e-9, 0, 1), (0, 1e-9, -1),
                                  (1e-200, 0, -1), (1, 0, 0), (0, -1, 0)])
def test_parallel_and_antiparallel_axes(axis: tuple[float, float, float]) -> None:
    rotation = screws.rotation_to(axis)
    assert np.allclose(rotation[:, 2], axis / np.linalg.norm(axis), atol=1e-15)
    assert np.allclose(rotation.T @ rotation, np.eye(3), atol=1e-15)
    assert np.isclose(np.linalg.det(rotation), 1.0)


@quick
@given(hnp.arrays(np.float64, 6, elements=number), st.floats(-3.0, 3.0))
def test_exponential_is_the_matrix_exponential(twist: FloatArray, q: float) -> None:
    if 0.0 < np.linalg.norm(twist[:3]) < 1e-3:
        return
    bracket = np.zeros((4, 4))
    bracket[:3, :3], bracket[:3, 3] = skew(twist[:3]), twist[3:]
    assert np.allclose(screws.exponential(twist, q), expm(bracket * q), atol=1e-9)


def test_inverse_of_a_transform() -> None:
    frame = screws.link_frame([1.0, -2.0, 0.5], [0.3, 0.1, -0.7])
    assert np.allclose(screws.inverse(frame) @ frame, np.eye(4), atol=1e-15)


def twist(entry: Screw) -> FloatArray:
    """Return the unit twist (6,) of a joint in the base frame: (s, p x s), prismatic (0, s)."""
    direction = np.asarray(entry.axis) / np.linalg.norm(entry.axis)
    if entry.kind == 'prismatic':
        return np.concatenate([np.zeros(3), direction])
    return np.concatenate([direction, np.cross(entry.origin, direction)])


def as_screws(robot: RobotModel) -> tuple[list[Screw], list[FloatArray]]:
    """Describe a robot by screws; also return screw-aligned from own link frames."""
    entries, changes = [], []
    for j, own in enumerate(poses(robot, np.zeros(robot.n))):
        axis, origin = own[:3, :3] @ robot.axes[j], own[:3, 3]
        change = screws.inverse(screws.link_frame(axis, origin)) @ own
        parent = int(robot.parents[j])
        entries.append(Screw(
            robot.joints[j], 3.0 * axis, origin,
            'prismatic' if robot.types[j] == PRISMATIC else 'revolute',
            move_parameters(robot.nominal[j], change),
            '' if parent < 0 else robot.joints[parent], robot.bodies[j],
        ))
        changes.append(change)
    return entries, changes


@pytest.mark.parametrize('name', own_robots())
def test_screws_give_the_dynamics_of_the_urdf(name: str) -> None:
    robot = load_robot(name)
    entries, changes = as_screws(robot)
    other = robot_from_screws(name, entries).with_gravity(robot.gravity)
    q, v, a = np.random.default_rng(0).normal(size=(3, 20, robot.n))
    expected = rigid_body.inverse_dynamics(robot, q, v, a)
    found = rigid_body.inverse_dynamics(other, q, v, a)
    assert other.joints == robot.joints and other.bodies == robot.bodies
    assert np.array_equal(other.types, robot.types)
    assert np.abs(found - expected).max() < SAME_FORMULA * np.abs(expected).max()
    for ours, theirs, change in zip(poses(other, q[0]), poses(robot, q[0]), changes):
        assert np.allclose(ours @ change, theirs, atol=SAME_FORMULA)


@pytest.mark.parametrize('name', own_robots())
def test_product_of_exponentials_gives_the_poses(name: str) -> None:
    robot = load_robot(name)
    entries, _ = as_screws(robot)
    other = robot_from_screws(name, entries)
    twists = np.array([twist(e) for e in entries])
    q = np.random.default_rng(1).normal(size=robot.n)
    for j, pose in enumerate(poses(other, q)):
        home = screws.link_frame(entries[j].axis, entries[j].origin)
        motions = map(screws.exponential, twists[:j + 1], q[:j + 1])
        found = reduce(np.matmul, motions, np.eye(4)) @ home
        assert np.allclose(found, pose, atol=1e-12)
        own = [0, 0, 0, 0, 0, 1] if entries[j].kind == 'prismatic' else [0, 0, 1, 0, 0, 0]
        assert np.allclose(adjoint(home) @ own, twists[j], atol=1e-12)


def random_bodies(rng: np.random.Generator, n: int) -> FloatArray:
    """Return standard parameters (n, 10) of bodies with positive density."""
    spread = rng.normal(size=(n, 4, 6))
    return np.array([parameters_from_pseudo_inertia(s @ s.T) for s in spread])


def test_screw_has_no_limits_unless_they_are_given() -> None:
    limits = Screw('a', [0, 0, 1], [0, 0, 0]).limits
    assert limits.shape == (4,) and np.isnan(limits).all()


def test_branches_name_their_parent() -> None:
    robot = robot_from_screws('tree', [
        Screw('trunk', [0, 0, 1], [0, 0, 0]),
        Screw('left', [0, 1, 0], [0, 1, 0]),
        Screw('right', [0, 1, 0], [0, -1, 0], parent='trunk'),
    ])
    parents = {j: int(p) for j, p in zip(robot.joints, robot.parents)}
    trunk = robot.index('trunk')
    assert parents == {'trunk': -1, 'left': trunk, 'right': trunk}


def test_two_joints_may_share_a_frame() -> None:
    robot = robot_from_screws('wrist', [
        Screw('a', [0, 0, 1], [0, 0, 0]), Screw('b', [0, 0, 1], [0, 0, 0], 'prismatic')])
    assert np.allclose(robot.rotations, np.eye(3))
    assert np.allclose(robot.translations, 0.0)


def test_a_spherical_wrist_has_three_frames_at_one_point() -> None:
    """Coincident origins: the dynamics and the minimal set of three crossing axes."""
    rng = np.random.default_rng(3)
    robot = robot_from_screws('wrist', [
        Screw('roll', [1, 0, 0], [1, 0, 0.5]), Screw('pitch', [0, 1, 0], [1, 0, 0.5]),
        Screw('yaw', [0, 0, 1], [1, 0, 0.5])]).with_nominal(random_bodies(rng, 3))
    q, v, a = rng.normal(size=(3, 3))
    expected = slow_dynamics(robot, q, v, a)
    found = rigid_body.inverse_dynamics(robot, q[None], v[None], a[None])[0]
    assert np.abs(found - expected).max() < SAME_FORMULA * np.abs(expected).max()
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    assert (len(reduction.pivots), reduction.gap > 1e6) == (17, True)


def test_the_same_screw_twice_is_two_turns_about_one_axis() -> None:
    """Coincident frames: only the inertias about the axis and the outer weight can be told."""
    twice = [Screw('a', [0, 1, 0], [0, 0, 1]), Screw('b', [0, 1, 0], [0, 0, 1])]
    robot = robot_from_screws('twice', twice)
    labels = reduce_numeric(robot, (RigidLinks(robot),)).labels
    assert labels == ('mx1', 'my1', 'Izz1', 'mx2', 'my2', 'Izz2')
    mass = rigid_body.mass_matrix(robot, np.zeros((1, 2)), random_bodies(np.random.default_rng(0),
                                                                      2))
    assert np.linalg.eigvalsh(mass[0])[0] > 0.0


def test_a_chain_without_revolute_joints_shows_masses_only() -> None:
    robot = robot_from_screws('gantry', [
        Screw(name, axis, [0, 0, 0], 'prismatic')
        for name, axis in (('x', [1, 0, 0]), ('y', [0, 1, 0]), ('z', [0, 0, 1]))])
    assert reduce_numeric(robot, (RigidLinks(robot),)).labels == ('m1', 'm2', 'm3')
    bodies = random_bodies(np.random.default_rng(1), 3)
    carried = np.cumsum(bodies[::-1, 0])[::-1]
    mass = rigid_body.mass_matrix(robot, np.ones((1, 3)), bodies)
    assert np.allclose(mass[0], np.diag(carried))


def test_the_planar_arm_of_the_paper(tmp_path: Path) -> None:
    path = tmp_path / 'planar.yaml'
    path.write_text(PLANAR)
    robot = load_robot(path)
    assert (robot.name, robot.base_link) == ('planar', 'frame')
    assert robot.joints == ('a', 'b', 'c')
    # Table 1 and the labels of table 3: 0.36 m along the x axis of link 1, then back along that of
    # link 2: m1 rcx1 + 0.36 m2 + 0.36 m3 keeps its sign in the text, m2 rcx2 - 0.36 m3 lost it.
    assert np.allclose(robot.translations, [[0, 0, 0], [0.36, 0, -0.12], [-0.36, 0, -0.1225]])
    assert np.allclose(robot.rotations[1:], np.eye(3), atol=1e-15)
    assert np.allclose(robot.axes, [[0.0, 0.0, 1.0]] * 3)
    assert np.allclose(robot.nominal[0, [0, 1, 4, 6, 9]], [20.0, 4.0, 0.0, 0.8, 1.8])
    assert (robot.limits.lower[0], robot.limits.velocity[0]) == (-1.0, 2.0)


#: link frames of axes, by hand: columns are the frame's x, y and z in the base frame
FRAMES = {
    (0, 0, -1): np.diag([1.0, -1.0, -1.0]),  # half a turn about x, not about y
    (0, 0, 1): np.eye(3),
    (1, 0, 0): np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
    (0, -1, 0): np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
}


@pytest.mark.parametrize('axis', FRAMES)
def test_centre_and_inertia_are_those_of_masses_in_the_documented_frame(
    tmp_path: Path, axis: tuple[int, int, int]
) -> None:
    """Four point masses on the second link: their weight and kinetic energy, without screws."""
    masses = np.array([1.0, 2.0, 0.5, 1.5])
    points = np.array([[0.1, 0.2, 0.3], [-0.2, 0.1, 0.4], [0.3, -0.1, 0.0], [0.0, 0.4, -0.2]])
    centre = masses @ points / masses.sum()
    away = points - centre
    inertia = np.einsum('k,kij->ij', masses, np.einsum('kl,kl->k', away, away)[:, None, None]
                        * np.eye(3) - away[:, :, None] * away[:, None, :])
    moments = {f'i{"xyz"[i]}{"xyz"[j]}': float(inertia[i, j]) for i in range(3)
               for j in range(i, 3)}
    path = tmp_path / 'robot.yaml'
    gravity = [0.0, 0.0, -9.81]
    path.write_text(yaml.safe_dump({'effort_kind': 'torque', 'gravity': gravity, 'screws': [
        {'name': 'a', 'axis': [0, 1, 0], 'origin': [0, 0, 0]},
        {'name': 'b', 'axis': list(axis), 'origin': [0.5, 0.0, 0.2], 'mass': 5.0,
         'com': centre.tolist(), 'inertia': moments}]}))
    robot = load_robot(path)
    there = np.array([0.5, 0.0, 0.2]) + points @ FRAMES[axis].T
    slopes = np.stack([np.cross([0.0, 1.0, 0.0], there),
                       np.cross(axis, there - [0.5, 0.0, 0.2])])  # m/rad of joints a and b
    still = np.zeros((1, 2))
    weight = 9.81 * np.einsum('k,jk->j', masses, slopes[:, :, 2])
    assert np.allclose(rigid_body.gravity_effort(robot, still), weight, atol=1e-12)
    energy = np.einsum('k,ikx,jkx->ij', masses, slopes, slopes)
    assert np.allclose(rigid_body.mass_matrix(robot, still, robot.nominal), energy, atol=1e-12)


def test_a_joint_may_be_called_base() -> None:
    """Its link is base_link; the frame that does not move is then the world."""
    named, other = (robot_from_screws('arm', [Screw(first, [0, 0, 1], [0, 0, 0]),
                                              Screw('arm', [0, 1, 0], [0, 0, 0.3])])
                    for first in ('base', 'turn'))
    assert (named.base_link, named.bodies) == ('world', ('base_link', 'arm_link'))
    assert (other.base_link, other.bodies) == ('base_link', ('turn_link', 'arm_link'))
    assert robot_from_screws('arm', [Screw('base', [0, 0, 1], [0, 0, 0])],
                             base_link='pedestal').base_link == 'pedestal'


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('axis: [-2.0, 0, 0]', 'axis: [0, 0, 0]', "screw 'c': its axis has zero length; give"),
    ('axis: [-2.0, 0, 0]', 'axis: [1, 0]', r'screws\[2\] \(c\): axis must be a list of 3 finite'),
    ('axis: [-2.0, 0, 0]', 'axis: [.nan, 0, 0]', r'screws\[2\] \(c\): axis must be a list of 3'),
    ('origin: [0, 0, 0]', 'origin: [0, 0, x]', r'screws\[0\] \(a\): origin must be a list'),
    (', origin: [0, 0, 0]', '', r'screws\[0\] \(a\): origin is missing'),
    ('name: c', 'name: b', "screw 'b': this name is used twice"),
    ('type: continuous', 'link: b_link', "link 'b_link' is used twice; name it otherwise"),
    ('type: continuous', 'link: frame', "link 'frame' is used twice; name it otherwise"),
    ('name: c', 'name: c, parent: d', "screw 'c': parent 'd' is not a joint listed before it"),
    ('type: continuous', 'type: planar', "screw 'c': joint type 'planar'; use one of revolute"),
    ('mass: 5', 'mass: 0', r'screws\[2\] \(c\): mass must be positive, is 0'),
    ('mass: 5', 'mass: heavy', r"\(c\): mass must be a finite number, is 'heavy'"),
    ('mass: 10, ', '', r'screws\[1\] \(b\): com and inertia need mass'),
    ('{izz: 1}', '{zz: 1}', r'screws\[0\] \(a\): inertia must be a mapping of ixx'),
    ('mass: 5', 'weight: 5', r'screws\[2\] \(c\): unknown key weight; use name, type'),
    ('tip_link: c_link', 'urdf: x.urdf', 'give either urdf: FILE or screws: LIST'),
    ('tip_link: c_link', 'tip_link: d', "no link 'd'; there are frame, a_link"),
])
def test_bad_screws_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / 'robot.yaml'
    assert old in PLANAR
    path.write_text(PLANAR.replace(old, new, 1))
    with pytest.raises(DynIdError, match=message) as caught:
        load_robot(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize('content', ['screws: []', 'screws: {a: 1}', 'screws: [1]'])
def test_screws_must_be_a_list_of_joints(tmp_path: Path, content: str) -> None:
    path = tmp_path / 'robot.yaml'
    path.write_text(content)
    with pytest.raises(RobotError, match=r'must be a (list|mapping)'):
        load_robot(path)
