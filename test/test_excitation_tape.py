"""What the excitation node writes into its bag can be read by strict readers, too."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy')

from builtin_interfaces.msg import Duration
from rclpy.serialization import deserialize_message
from rosbags.typesys import Stores, get_typestore
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.ros.excitation_tape import serialized

KIND = 'trajectory_msgs/msg/JointTrajectory'


@pytest.mark.parametrize('joints', [1, 3, 6, 7])
@pytest.mark.parametrize('points', [0, 1, 2, 100])
@pytest.mark.parametrize('segment', ['', 'hold', 'excitation', 'Läufe'])
def test_a_trajectory_is_written_without_a_rest(joints: int, points: int, segment: str) -> None:
    message = JointTrajectory(joint_names=[f'joint_{10**i}' for i in range(joints)])
    message.header.frame_id = segment
    for i in range(points):
        values = [float(i + j) for j in range(joints)]
        message.points.append(JointTrajectoryPoint(
            positions=values, velocities=values, accelerations=values if i % 3 else [],
            time_from_start=Duration(sec=i, nanosec=i)))
    data = serialized(message)
    assert deserialize_message(data, JointTrajectory) == message
    read = get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr(data, KIND)
    assert read.header.frame_id == segment
    assert [list(p.positions) for p in read.points] == [list(p.positions) for p in message.points]
    assert [p.time_from_start.nanosec for p in read.points] == list(range(points))
