"""Robots whose URDF comes over a topic, or as a parameter."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')

import rclpy
from nodes import destroy
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
    files = described.RobotFiles(node, described.RobotParameters(name))
    robot = files.robot
    destroy(sender)
    assert not described.differences(files.read_again(), robot), 'nobody is there any more'
    assert (robot.joints, robot.drive.kind) == (UR10E.joints, kind), 'effort kind is not guessed'
    assert source_text(robot) == URDF, 'also for collisions and exports'


@pytest.mark.parametrize('robot', ['', 'robot_description'])
def test_the_parameter_robot_description_comes_before_the_topic(node: Any, robot: str) -> None:
    given = described.RobotParameters(robot, robot_description=URDF)
    assert described.RobotFiles(node, given).robot.joints == UR10E.joints


ARM = """
urdf: urdf/planar_3r.urdf
gravity: [0.0, 0.0, {gravity}]
joints: [{joints}]
limits: {{joint_1: {{acceleration: {acceleration}}}}}
scene: {{keep_out: [{{centre: [{x}, 0, 0], size: [1, 1, 1]}}]}}
"""
FIRST = {'gravity': -9.81, 'joints': 'joint_1, joint_2, joint_3', 'acceleration': 8.0, 'x': 4.0}


@pytest.mark.parametrize(('change', 'names'), [
    ({}, ()), ({'gravity': -1.62}, ('gravity',)),
    ({'acceleration': 0.5}, ('limits.acceleration',)),
    ({'x': 3.0, 'acceleration': 9.0}, ('limits.acceleration', 'surroundings.keep_out.centre')),
])
def test_differences_names_what_changed_in_the_robot_files(
    node: Any, change: dict[str, float], names: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text(ARM.format(**FIRST))
    files = described.RobotFiles(node, described.RobotParameters(str(path)))
    before = files.robot
    path.write_text(f'# a comment\n{ARM.format(**FIRST | change)}')
    assert described.differences(before, files.read_again()) == names
    assert not described.differences(files.robot, load_robot(path))


def test_other_joints_need_a_new_start(node: Any, tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text(ARM.format(**FIRST))
    files = described.RobotFiles(node, described.RobotParameters(str(path)))
    path.write_text(ARM.format(**FIRST | {'joints': 'joint_1, joint_2'}))
    with pytest.raises(RobotError, match=r'arm\.yaml has changed since the node started \(joints, '
                                         r'types\): restart the node'):
        files.read_again()
    assert len(files.robot.joints) == 3


def test_urdf_on_topic_waits_and_logs_while_no_urdf_comes(
    node: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(described, 'WAITING_REPORT', 0.2)
    publisher = node.create_publisher(String, 'robot_description', LATCHED)
    later = threading.Timer(1.0, publisher.publish, [String(data='<robot/>')])
    later.start()
    assert described.urdf_on_topic(node, 'robot_description') == '<robot/>'
    reports = capfd.readouterr().err.count('no URDF on /robot_description for')
    assert 1 <= reports <= 5, 'one per 0.2 s'
