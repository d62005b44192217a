"""effects/links.py: rigid links and bodies attached to them: words, and the link that carries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects.links import AttachedBody, RigidLinks
from robot_dynid.errors import UsageError
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.inertia import move_parameters
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

#: standard parameters of a body, no two alike
BODY = np.array([2.0, 0.3, -0.2, 0.5, 0.4, 0.01, 0.6, -0.02, 0.03, 0.7])


def forked() -> RobotModel:
    """Return an arm whose second and third joint both follow the first."""
    robot = load_robot('planar_3r')
    return replace(robot, parents=np.array([-1, 0, 0]))


def test_words_of_a_link_name_mass_first_moments_and_inertia() -> None:
    robot = load_robot('planar_3r')
    found = list(RigidLinks(robot).words)[10:20]
    about, entry = 'moment of inertia about the', 'of the inertia matrix'
    frame = ', at the origin of its frame'
    words = ['mass', *(f'mass times {axis} of its centre of mass' for axis in 'xyz'),
             f'{about} x axis{frame}', f'entry xy {entry}{frame}', f'{about} y axis{frame}',
             f'entry xz {entry}{frame}', f'entry yz {entry}{frame}', f'{about} z axis{frame}']
    assert [one.words for one in found] == words
    assert [one.unit for one in found] == ['kg'] + ['kg m'] * 3 + ['kg m^2'] * 6
    assert {one.part for one in found} == {robot.bodies[1]}
    assert [one.name for one in found] == [f'{name}2' for name in (
        'm', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')]


def test_a_body_is_on_the_last_link_of_a_chain_and_must_be_named_on_a_tree() -> None:
    robot = load_robot('planar_3r')
    assert (AttachedBody.on(robot).link, AttachedBody.on(robot).joint) == (robot.bodies[2], 2)
    tree = forked()
    with pytest.raises(UsageError) as refused:
        AttachedBody.on(tree)
    assert str(refused.value) == (
        f'{tree.name} has several last links ({robot.bodies[1]}, {robot.bodies[2]}): name the one '
        'that carries the payload')
    body = AttachedBody.on(tree, robot.bodies[1])
    assert body.joint == 1 and body.carriers.tolist() == [True, True, False]
    np.testing.assert_array_equal(body.placement, np.eye(4))


def test_a_body_is_on_no_link_that_is_unknown() -> None:
    robot = load_robot('planar_3r')
    with pytest.raises(UsageError) as refused:
        AttachedBody.on(robot, 'lamp')
    assert str(refused.value).startswith(
        f"no joint of {robot.name} moves a link 'lamp', so it carries no payload: choose one of "
        f'{robot.bodies[0]}, {robot.bodies[1]}, {robot.bodies[2]}')


def effort(robot: RobotModel, links: FloatArray, at: tuple[FloatArray, ...]) -> FloatArray:
    return rigid_body.inverse_dynamics(robot, *at, links)


@pytest.mark.parametrize('joint', [0, 1, 2])
def test_columns_of_a_body_are_what_it_adds_to_the_effort(joint: int) -> None:
    robot = load_robot('stanford_arm')
    turned = np.eye(4)
    turned[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    turned[:3, 3] = 0.1, -0.2, 0.3
    body = AttachedBody(robot, 'tool', joint, turned)
    samples = random_states(robot, 7, np.random.default_rng(1))
    at = (samples.position, samples.velocity, samples.acceleration)
    links = np.arange(10.0 * robot.n).reshape(robot.n, 10)
    loaded = links.copy()
    loaded[joint] += move_parameters(BODY, turned)
    expected = effort(robot, loaded, at) - effort(robot, links, at)
    found = np.einsum('npk,p->kn', body.columns(samples), BODY)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
