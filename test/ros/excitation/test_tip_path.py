"""ros/excitation/messages.py: the way of the tip as a line for RViz."""

import numpy as np
import pytest

pytest.importorskip('visualization_msgs')

from rclpy.time import Time
from visualization_msgs.msg import Marker

from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.execution.sampled import sampled
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.excitation.messages import PATH_POINTS, path_marker
from robot_dynid.trajectories.limits import motion_limits, quintic_move

pytestmark = pytest.mark.ros


@pytest.mark.parametrize('name', ['ur10e', 'seven_axis'])  # the tool of the latter is away
def test_the_tip_is_at_the_end_of_the_chain(name: str) -> None:
    pinocchio = pytest.importorskip('pinocchio')
    robot = load_robot(name)
    model = pinocchio.buildModelFromUrdf(robot.source)
    data, tip = model.createData(), model.getFrameId(robot.links[-1].name)
    base = model.getFrameId(robot.base_link)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (20, robot.n))
    for row, place in zip(q, tip_positions(robot, q)):
        pinocchio.framesForwardKinematics(model, data, row)
        expected = data.oMf[base].actInv(data.oMf[tip]).translation
        assert np.allclose(place, expected, atol=1e-9)


def test_a_long_motion_is_a_line_of_few_points_in_the_frame_of_the_base() -> None:
    robot = load_robot('planar_3r')
    limits = motion_limits(robot).scaled(1.0, 0.01)
    points = sampled(quintic_move(robot.joints, (np.zeros(3), np.ones(3)), limits), 400.0)
    assert len(points.time) > PATH_POINTS
    marker = path_marker(robot, points, Time())
    assert marker.header.frame_id == robot.base_link and marker.type == Marker.LINE_STRIP
    assert 0.4 * PATH_POINTS < len(marker.points) <= PATH_POINTS
    tip = tip_positions(robot, points.position[:1])[0]
    none = path_marker(robot, None, Time(), 1)
    assert (none.action, none.id, none.ns) == (Marker.DELETE, 1, marker.ns) and marker.id == 0
    assert np.allclose([marker.points[0].x, marker.points[0].y, marker.points[0].z], tip)
