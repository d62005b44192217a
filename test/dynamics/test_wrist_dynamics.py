"""dynamics/wrist.py: what a sensor may be, and where its six joints are in the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.dynamics.rigid_body import inverse_dynamics, link_poses
from robot_dynid.dynamics.wrist import WristSensor, with_rest, with_sensor
from robot_dynid.errors import UsageError
from robot_dynid.robot.inertia import homogeneous, rotation_about
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, Link
from robot_dynid.robot.robot_file import load_robot

BODY = np.array([2.0, 0.1, 0.0, 0.2, 0.5, 0.0, 0.5, 0.0, 0.0, 0.5])
SENSOR = WristSensor('arm', 'hash', 'link_3', BODY, np.arange(6.0), np.eye(3), -1)


@pytest.mark.parametrize(('off', 'refused'), [(0.9e-6, False), (1.1e-6, True)])
def test_rotations_and_bodies_of_a_sensor_are_such_but_for_rounding(
    off: float, refused: bool
) -> None:
    """Columns a millionth from perpendicular, eigenvalues of a body a millionth below zero."""
    turned, light = np.eye(3), np.zeros(10)
    turned[0, 1], light[0] = off, -off
    for change, message in (({'rotation': turned}, 'rotation is not a rotation matrix'),
                            ({'parameters': light}, 'parameters are not those of a body')):
        if refused:
            with pytest.raises(UsageError, match=message):
                replace(SENSOR, **change)
        else:
            replace(SENSOR, **change)
    replace(SENSOR, rotation=(1.0 - 1e-7) * np.eye(3), sign=1)
    for wrong in ({'rotation': np.diag([1.0, 1.0, -1.0])}, {'sign': 0}, {'sign': 2}):
        with pytest.raises(UsageError, match=r'must be 1 or -1|is not a rotation matrix'):
            replace(SENSOR, **wrong)


def test_six_joints_at_the_frame_of_a_link_feel_what_it_carries() -> None:
    arm = load_robot('planar_3r')
    place = homogeneous(rotation_about([0.6, 0.0, 0.8], 0.9), [0.1, 0.2, 0.3])
    robot = replace(arm, links=(*arm.links, Link('tool', 1, place, np.zeros(10), False)))
    found = with_sensor(robot, 'tool', BODY)
    assert found.n == 9 and found.types.tolist()[3:] == 3 * [PRISMATIC] + 3 * [REVOLUTE]
    assert found.parents.tolist() == [-1, 0, 1, 1, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(found.axes[3:], [*np.eye(3), *np.eye(3)])
    np.testing.assert_array_equal(found.nominal[:8], [*robot.nominal, *np.zeros((5, 10))])
    np.testing.assert_array_equal(found.nominal[8], BODY)
    assert not with_sensor(robot, 'tool').nominal[3:].any()
    carrier = found.links[-1]
    assert (carrier.body, carrier.name) == (8, found.bodies[-1])
    np.testing.assert_array_equal(carrier.placement, np.eye(4))
    assert not np.any(carrier.parameters) and len(carrier.parameters) == 10
    np.testing.assert_array_equal(found.translations[3:], [[0.1, 0.2, 0.3], *np.zeros((5, 3))])
    q = np.array([[0.3, -0.7, 0.4]])
    assert with_rest(q).tolist() == [[0.3, -0.7, 0.4, *6 * [0.0]]]
    still = np.zeros((1, 9))
    weight = inverse_dynamics(found, with_rest(q), still, still)[0, 3:]
    up = -(link_poses(robot, q).rotations[0, 1] @ place[:3, :3]).T @ robot.gravity
    np.testing.assert_allclose(weight, [*BODY[0] * up, *np.cross(BODY[1:4], up)], atol=1e-12,
                               rtol=1e-9)
