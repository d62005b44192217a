"""export/frames.py: frames along common normals, of the same motion, and moved moments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from identified_models import random_links, tree

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.rigid_body import link_poses
from robot_dynid.export.frames import CONSTANT_ROUNDING, Frames, rounded
from robot_dynid.robot.inertia import homogeneous
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray

ROBOTS: dict[str, Callable[[], RobotModel]] = {
    **{name: lambda name=name: load_robot(name) for name in (  # type: ignore[misc]
        'ur10e', 'stanford_arm', 'planar_3r', 'tx40')}, 'tree': tree}


def turned(angle: float) -> FloatArray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0, 0.0], [s, c, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0],
                     [0.0, 0.0, 0.0, 1.0]])


def poses(frames: Frames, q: FloatArray) -> FloatArray:
    """Return the poses (n, 4, 4) of the frames in the base at the positions (n,)."""
    found = np.empty((len(q), 4, 4))
    for j, parent in enumerate(frames.parents):
        place = homogeneous(frames.rotations[j], frames.translations[j])
        if frames.turns(j):
            place = place @ turned(q[j] + frames.offsets[j])
        else:
            place[:3, 3] += frames.slides[j] * q[j]
        found[j] = (np.eye(4) if parent < 0 else found[parent]) @ place
    return found


@pytest.mark.parametrize('name', ROBOTS)
def test_frames_move_as_the_links_that_they_are_fixed_to(name: str) -> None:
    robot = ROBOTS[name]()
    frames, q = Frames.of(robot), np.random.default_rng(2).uniform(-2.0, 2.0, robot.n)
    links = link_poses(robot, q[None])
    for j, pose in enumerate(poses(frames, q)):
        own = homogeneous(links.rotations[0, j], links.origins[0, j]) @ frames.links[j]
        np.testing.assert_allclose(pose, own, rtol=0.0, atol=1e-9)
        assert frames.turns(j) is bool(robot.types[j] != PRISMATIC)
        if frames.turns(j):
            np.testing.assert_allclose(frames.links[j][:3, 2], robot.axes[j], rtol=0.0, atol=1e-12)


def test_constants_are_those_of_the_common_normals() -> None:
    """Denavit and Hartenberg's lengths; what lies along an axis is moved to one link."""
    frames = Frames.of(load_robot('ur10e'))
    expected = np.zeros((6, 3))
    expected[[0, 2, 3], [2, 0, 0]] = 0.1807, 0.6127, 0.57155
    expected[[3, 4], [2, 1]] = 0.17415, -0.11985
    np.testing.assert_allclose(frames.translations, expected, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(np.abs(frames.rotations[:, 0]), np.tile([1.0, 0.0, 0.0], (6, 1)),
                               rtol=0.0, atol=1e-9)
    arm = Frames.of(load_robot('stanford_arm'))
    expected = np.zeros((6, 3))
    expected[[1, 3], 1] = -0.1529, -0.6447
    np.testing.assert_allclose(arm.translations, expected, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(arm.slides, np.outer([0, 0, 1, 0, 0, 0], [0.0, -1.0, 0.0]),
                               rtol=0.0, atol=1e-9)
    plane = Frames.of(load_robot('planar_3r'))
    assert plane.translations.tolist() == [[0.0, 0.0, 0.0], [0.36, 0.0, 0.0], [0.36, 0.0, 0.0]]


def two_axes(angle: float, place: str = '0.3 0.2 0.1', last: str = '') -> Frames:
    """Return the frames of two joints about z, then about an axis by an angle off z.

    A third one is about z at the place ``last``.
    """
    axis = f'{np.sin(angle)} 0 {np.cos(angle)}'
    return Frames.of(robot_from_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/>'
        '<axis xyz="0 0 1"/></joint><joint name="k" type="continuous"><parent link="b"/>'
        f'<child link="c"/><origin xyz="{place}"/><axis xyz="{axis}"/></joint>' + (
            '<link name="d"/><joint name="l" type="continuous"><parent link="c"/><child link="d"/>'
            f'<origin xyz="{last}"/><axis xyz="0 0 1"/></joint>' if last else '') + '</robot>'))


@pytest.mark.parametrize(('angle', 'normal'), [(0.5, True), (1.1e-3, True), (0.9e-3, False)])
def test_axes_that_are_nearly_parallel_have_no_common_normal(angle: float, normal: bool) -> None:
    frames = two_axes(angle)
    x = frames.links[0][:3, 0]
    if normal:  # x along y, the foot at 0.1 - 0.3 / tan(angle)
        np.testing.assert_allclose(np.abs(x), [0.0, 1.0, 0.0], rtol=0.0, atol=1e-9)
        foot = 0.1 - 0.3 / np.tan(angle)
        np.testing.assert_allclose(frames.links[0][:3, 3], [0.0, 0.0, foot], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(frames.translations[1], [0.2 * np.sign(x[1]), 0.0, 0.0],
                                   rtol=0.0, atol=1e-6 * abs(foot))
    else:  # x towards the other axis, the origin where it is
        np.testing.assert_allclose(x, np.array([0.3, 0.2, 0.0]) / np.hypot(0.3, 0.2), rtol=0.0,
                                   atol=1e-12)
        assert not frames.links[0][:3, 3].any()


@pytest.mark.parametrize(('last', 'offset', 'first'), [
    ('0.1 0.4 0.0', np.arctan2(0.4, 0.1) - np.arctan2(0.2, 0.3), [1.0, 0.0, 0.0]),
    ('-0.2 0.3 0.0', 0.0, [0.0, -1.0, 0.0]), ('0.6 0.4 0.0', 0.0, [1.0, 0.0, 0.0]),
    ('-0.3 -0.2 0.0', 0.0, [-1.0, 0.0, 0.0])])
def test_a_turn_between_parallel_axes_is_an_offset_unless_it_is_of_quarters(
    last: str, offset: float, first: list[float]
) -> None:
    frames = two_axes(0.0, last=last)
    assert frames.offsets.tolist() == pytest.approx([np.arctan2(0.2, 0.3), offset, 0.0])
    np.testing.assert_allclose(frames.rotations[1][0], first, rtol=0.0, atol=1e-12)


def test_axes_on_one_line_have_any_normal() -> None:
    frames = two_axes(0.0, '0 0 0.4')
    x, z = frames.links[0][:3, 0], frames.links[0][:3, 2]
    assert (abs(x @ z), z.tolist()) == (0.0, [0.0, 0.0, 1.0])
    assert not frames.translations[1].any(), 'moved along both axes'
    assert np.linalg.det(frames.links[0][:3, :3]) == pytest.approx(1.0)


@pytest.mark.parametrize('name', ROBOTS)
def test_moved_moments_give_the_same_gravity_and_are_zero_where_they_were_moved_from(
    name: str
) -> None:
    robot = ROBOTS[name]().with_gravity([0.4, -2.0, -9.0])
    links = random_links(np.random.default_rng(3), robot.n)
    frames = Frames.of(robot)
    moments = frames.moments(links)
    for j, one in enumerate(moments):
        moved = slice(2, 4) if frames.turns(j) else slice(0, 3)
        assert not one[moved, moved].any()
        np.testing.assert_allclose(one, one.T, rtol=0.0, atol=1e-12)

    def potential(q: FloatArray) -> float:
        """Return the potential energy of first moments of the frames."""
        return -sum(float(robot.gravity @ (pose @ one)[:3, 3])
                    for pose, one in zip(poses(frames, q), moments, strict=True))

    q = np.random.default_rng(4).uniform(-1.0, 1.0, robot.n)
    step = 1e-5 * np.eye(robot.n)
    effort = np.array([(potential(q + one) - potential(q - one)) / 2e-5 for one in step])
    still = np.zeros((1, robot.n))
    own = rigid_body.inverse_dynamics(robot, q[None], still, still, links)[0]
    np.testing.assert_allclose(effort, own, rtol=0.0, atol=1e-6 * max(1.0, np.abs(own).max()))


def test_vectors_are_turned_into_the_frames_of_their_links() -> None:
    frames = Frames.of(load_robot('ur10e'))
    vectors = np.array([[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]])
    found = frames.along(vectors, [3, 1])
    for one, vector, link in zip(found, vectors, (3, 1), strict=True):
        np.testing.assert_allclose(frames.links[link][:3, :3] @ one, vector, rtol=1e-12)
    assert frames.along(np.zeros((0, 3)), []).shape == (0, 3)


def test_numbers_near_zero_and_near_the_size_are_rounded() -> None:
    near, far = 0.9 * CONSTANT_ROUNDING, 4.0 * CONSTANT_ROUNDING
    values = 2.0 * np.array([near, -near, far, 1.0 + near, -1.0 + far, -1.0 + near, 0.5])
    assert rounded(values, 2.0).tolist() == [
        0.0, 0.0, values[2], 2.0, values[4], -2.0, 1.0]
    assert rounded(values[2:], 0.0).tolist() == values[2:].tolist()
