"""Robots whose URDF comes over a topic, or as a parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')

import rclpy
from in_process import destroy
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from robot_dynid.errors import RobotError
from robot_dynid.robot.locate import find
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text
from robot_dynid.ros.common import described_robot as described

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FILE = find('urdf/ur10e.urdf')
assert FILE is not None
URDF, UR10E = FILE.read_text(), load_robot(FILE)


@pytest.mark.parametrize('form', ['parameter robot', 'robot YAML'])
def test_the_urdf_comes_over_the_latched_topic(node: Any, form: str, tmp_path: Path) -> None:
    sender = rclpy.create_node('robot_state_publisher', context=node.context)
    sender.create_publisher(String, '/cell1/robot_description', LATCHED).publish(String(data=URDF))
    name, kind = '/cell1/robot_description', ''
    if form == 'robot YAML':
        name, kind = str(tmp_path / 'arm.yaml'), 'torque'
        Path(name).write_text(
            '{urdf: {topic: /cell1/robot_description}, effort_kind: torque, limits: '
            '{elbow_joint: {velocity: 1.0}}}')
    robot = described.described_robot(node, described.RobotParameters(name))
    destroy(sender)
    assert (robot.joints, robot.drive.kind) == (UR10E.joints, kind), 'effort kind is not guessed'
    assert source_text(robot) == URDF, 'also for collisions and exports'


@pytest.mark.parametrize('robot', ['', 'robot_description'])
def test_the_parameter_robot_description_comes_before_the_topic(node: Any, robot: str) -> None:
    given = described.RobotParameters(robot, robot_description=URDF)
    assert described.described_robot(node, given).joints == UR10E.joints


def test_silence_is_told(node: Any) -> None:
    with pytest.raises(RobotError, match=r'no URDF came on /robot_description within 0.2 s'):
        described.urdf_on_topic(node, 'robot_description', 0.2)
