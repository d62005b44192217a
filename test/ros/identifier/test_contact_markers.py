"""ros/identifier/messages.py: arrows of external torque for RViz."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('visualization_msgs')

from visualization_msgs.msg import Marker

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.messages import ARROW_LENGTH, TOUCHED, contact_markers


def test_arrows_lie_on_the_axes_of_joints_in_the_frames_of_their_links() -> None:
    robot = load_robot('tx40')
    torque = np.array([1.0, -2.0, 0.0, 0.5, np.nan, 0.1])
    found = contact_markers(robot, torque, ('joint_2',), 3_000_000_007).markers
    assert [one.header.frame_id for one in found] == list(robot.bodies)
    assert [one.action for one in found] == [
        Marker.DELETE if np.isnan(value) else Marker.ADD for value in torque]
    assert len({(one.ns, one.id) for one in found}) == robot.n
    for j, one in enumerate(found):
        assert (one.header.stamp.sec, one.header.stamp.nanosec) == (3, 7)
        if one.action == Marker.ADD:
            begin, end = one.points
            assert (begin.x, begin.y, begin.z) == (0.0, 0.0, 0.0)
            np.testing.assert_allclose(
                [end.x, end.y, end.z],
                ARROW_LENGTH * torque[j] / robot.limits.effort[j] * robot.axes[j], rtol=1e-12)
            red = (one.color.r, one.color.g, one.color.b) == pytest.approx(TOUCHED)
            assert red == (robot.joints[j] == 'joint_2')
