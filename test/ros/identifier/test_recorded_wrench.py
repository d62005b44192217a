"""io/wrenches.py: topics of external wrenches are recorded live, and read back by the worker and
offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')

from geometry_msgs.msg import WrenchStamped
from nodes import Spinner, made
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from robot_dynid import external_torque, load_log, load_robot
from robot_dynid.io.log import with_wrenches
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.excitation.bag_session import ExcitationBag
from robot_dynid.ros.identifier.identification import Recorded, read_recording
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.types import FloatArray, RawLog

COUNT = 40
DEPTH = QoSProfile(depth=1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    link = load_robot('planar_3r').bodies[-1]
    found = tmp_path / 'arm.yaml'
    found.write_text(f'urdf: planar_3r.urdf\neffort_kind: torque\nwrenches: {{/ft: {link}}}\n')
    return found


def publish(node: Any, robot: RobotModel, session: Any) -> tuple[FloatArray, FloatArray]:
    """Publish joint states and wrenches with equal stamps; return positions and wrenches."""
    states, wrenches = (node.create_publisher(kind, topic, DEPTH) for kind, topic in (
        (JointState, 'joint_states'), (WrenchStamped, '/ft')))
    Spinner(node).wait(lambda: all(
        one.get_subscription_count() == 1 for one in (states, wrenches)))
    session.start()
    rng = np.random.default_rng(0)
    q, w = rng.normal(size=(COUNT, robot.n)), rng.normal(size=(COUNT, 6))
    for k in range(COUNT):
        state = JointState(name=list(robot.joints), position=q[k].tolist(), effort=[1.0] * 3)
        wrench = WrenchStamped()
        wrench.header.frame_id = robot.bodies[-1]
        for header in (state.header, wrench.header):
            header.stamp.sec, header.stamp.nanosec = 100, 10_000_000 * k
        for part, values in ((wrench.wrench.force, w[k, :3]), (wrench.wrench.torque, w[k, 3:])):
            part.x, part.y, part.z = values.tolist()
        states.publish(state)
        wrenches.publish(wrench)
    Spinner(node).wait(lambda: session.count('joint_states') == session.count('/ft') == COUNT)
    return q, w


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
def test_the_identifier_records_what_the_robot_yaml_names(path: Path, tmp_path: Path) -> None:
    robot = load_robot(path)
    with made(Identifier, robot=str(path), monitor=False,
              recording_directory=str(tmp_path / 'bags')) as node:
        recording = node.recording
        q, w = publish(node, robot, recording)
        assert recording.recorder is not None
        live = recording.recorder.snapshot(
            robot.joints, with_wrenches(recording.topics(), robot))
        assert recording.stop()[0]
        file = recording.recorder.storage_file
        again = read_recording(Recorded(file, recording.topics()), robot)
        offline = load_log(recording.path, robot)
    expected = external_torque(robot, robot.bodies[-1], q, w)
    for log in (live, again, offline):
        assert isinstance(log, RawLog)
        np.testing.assert_allclose(log.external_torque, expected, atol=1e-12)


@pytest.mark.ros
def test_executions_record_external_wrenches(node: Any, path: Path, tmp_path: Path) -> None:
    robot = load_robot(path)
    tape = ExcitationBag(node, (tmp_path / 'bags', 'arm'), 'controller',
                         [topic for topic, _ in robot.wrenches])
    q, w = publish(node, robot, tape)
    tape.stop()
    found = load_log(tape.path, robot).external_torque
    np.testing.assert_allclose(
        found, external_torque(robot, robot.bodies[-1], q, w), atol=1e-12)
    tape.close()
