"""ros/identifier/monitoring.py: the monitor of the identifier with motor states: its topics, and
motor states that are odd."""

from __future__ import annotations

import array
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from elastic_arms import ARM, moved, recorded, watched_model
from learned_deflection import GMR, model_with, recording
from nodes import Spinner
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from tolerances import SAME_FORMULA

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.deflected_observer import GEAR, GEAR_SPREAD, SPREAD
from robot_dynid.monitoring.monitor import MonitorSettings, observer_of
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.observer import EXTERNAL, PREDICTED
from robot_dynid.ros.identifier.messages import contact_diagnosis
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.monitoring import (
    MOTOR_TOPICS,
    TOPICS,
    Monitoring,
    MonitorParameters,
)
from robot_dynid.ros.recording.session import Recording
from robot_dynid.types import RawLog

pytestmark = pytest.mark.ros


@cache
def log() -> RawLog:
    return recorded(moved(0, 2.0))


@cache
def model() -> IdentifiedModel:
    return watched_model([log()])


def state(stamp: int, names: tuple[str, ...] = ARM.joints, **values: Any) -> bytes:
    """Return a joint or motor state as the middleware hands it over."""
    message = JointState(name=list(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    for name, row in values.items():
        setattr(message, name, array.array('d', np.asarray(row, dtype=np.float64).tolist()))
    return bytes(serialize_message(message))


class Stage:
    """A monitor of a model in a bare node that follows a recording row by row."""

    def __init__(self, node: Any, folder: Path, own: IdentifiedModel, log: RawLog) -> None:
        self.node, self.recording = node, Recording(node, folder, 'arm', (), 1000)
        self.models, self.log = ModelServices(node, own.robot), log
        self.models.serve(own, own.to_yaml())
        self.monitoring = Monitoring(
            node, self.recording, self.models, MonitorParameters().settings())
        self.begin = node.get_clock().now().nanoseconds
        self.latest: dict[str, JointState] = {}
        self.spinner = Spinner(node)

    def listen(self) -> None:
        """Listen to all topics of the monitor."""
        for topic in (*TOPICS, *MOTOR_TOPICS):
            self.node.create_subscription(
                JointState, f'~/{topic}', lambda m, topic=topic: self.latest.update({topic: m}), 1)
        names = [self.node.resolve_topic_name(f'~/{t}') for t in (*TOPICS, *MOTOR_TOPICS)]
        self.spinner.wait(lambda: all(map(self.node.count_subscribers, names)))

    def stamp(self, k: int) -> int:
        """Return the stamp of a row."""
        return int(self.begin + round(1e9 * self.log.time[k]))

    def joints(self, k: int) -> None:
        """Take the joint state of a row."""
        one = self.log
        assert one.velocity is not None and one.effort is not None
        self.monitoring.receive(state(
            self.stamp(k), one.joints, position=one.position[k], velocity=one.velocity[k],
            effort=one.effort[k]), self.stamp(k), 0)

    def motors(self, data: bytes | int) -> None:
        """Take a motor state, or that of a row with its joints turned round."""
        one = self.log
        assert one.motor_position is not None and one.motor_velocity is not None
        if isinstance(data, int):
            data = state(self.stamp(data), one.joints[::-1],
                         position=one.motor_position[data][::-1],
                         velocity=one.motor_velocity[data][::-1])
        self.monitoring.receive_motors(data, self.begin, 0)

    def diagnosis(self) -> tuple[str, dict[str, str]]:
        """Return message and values of the diagnostics."""
        found = contact_diagnosis('contact', *self.monitoring.take_status())
        return found.message, {item.key: item.value for item in found.values}


    def follow(self, sent: list[str], count: int) -> tuple[str, dict[str, str]]:
        """Take so many rows, wait for the last on topics ``sent``, return the diagnosis."""
        self.listen()
        for k in range(count):
            if k == count - 1:
                self.diagnosis()  # of the beginning
            self.joints(k)
            self.motors(k)
        found, last = self.diagnosis(), self.stamp(count - 1)

        def there() -> bool:
            stamps = [m.header.stamp for name in sent if (m := self.latest.get(name))]
            return [s.sec * 10**9 + s.nanosec for s in stamps] == [last] * len(sent)

        self.spinner.wait(there)
        return found

    def close(self) -> None:
        """End all parts."""
        for part in (self.monitoring, self.recording, self.models):
            part.close()


@pytest.fixture
def stage(node: Any, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(node, tmp_path, model(), log())
    yield made
    made.close()


def test_topics_have_what_a_recording_gives(stage: Stage) -> None:
    """Joints are taken by their names; gears of elastic joints, no learned deviation."""
    count = 400
    message, values = stage.follow([*TOPICS, *MOTOR_TOPICS[1:]], count)
    assert MOTOR_TOPICS[0] not in stage.latest
    whole = observer_of(model(), MonitorSettings()).along(monitor_input(model(), log()))
    for topic, row in (('predicted_effort', PREDICTED), ('external_torque', EXTERNAL),
                       ('gear_torque', GEAR), ('gear_torque_std', GEAR_SPREAD)):
        np.testing.assert_allclose(
            stage.latest[topic].effort, whole[count - 1, row], rtol=1e3 * SAME_FORMULA,
            atol=1e-4)  # stamps are in ns
        assert tuple(stage.latest[topic].name) == ARM.joints
    assert message == 'no contact'
    assert values['joint_1 predicted with deflection'] == 'yes'
    torque, _, deviation = values['joint_2 gear torque [N m]'].partition(' +- ')
    assert float(torque) == pytest.approx(whole[count - 1, GEAR, 1], abs=1e-3)
    assert float(deviation) == pytest.approx(whole[count - 1, GEAR_SPREAD, 1], abs=1e-3)


def test_the_deviation_of_what_was_learned_is_told(node: Any, tmp_path: Path) -> None:
    own, part = model_with(GMR), recording(4, 1.0)
    stage = Stage(node, tmp_path, own, part)
    try:
        _, values = stage.follow([*TOPICS, MOTOR_TOPICS[0]], 200)
    finally:
        stage.close()
    whole = observer_of(own, MonitorSettings()).along(monitor_input(own, part))
    np.testing.assert_allclose(
        stage.latest[MOTOR_TOPICS[0]].effort, whole[199, SPREAD], rtol=1e-3)
    np.testing.assert_allclose(
        stage.latest['predicted_effort'].effort, whole[199, PREDICTED], rtol=1e-3, atol=1e-3)
    assert not set(MOTOR_TOPICS[1:]) & set(stage.latest)
    told = values['joint_2 deviation of the learned effort [N m]']
    assert float(told) == pytest.approx(whole[199, SPREAD, 1], abs=1e-3)
    assert 'joint_1 deviation of the learned effort [N m]' not in values


@pytest.mark.parametrize(('data', 'words'), [
    (b'\0\1\0\0nonsense', 'not a sensor_msgs/msg/JointState message'),
    (state(1, ('a', 'b'), position=[0.0, 1.0]), 'motor states are of a, b only'),
    (state(1, velocity=[0.0, 1.0]), 'motor states carry no position'),
    (state(1, position=[0.0]), 'do not match their names'),
    (state(1, ()), 'motor states are of  only'),
    (state(1, ARM.joints[:1], position=[1e300]), ''),
    (state(1, position=[np.nan, np.inf], velocity=[np.nan, 0.0]), ''),
], ids=['nonsense', 'other joints', 'no position', 'lengths', 'no joint', 'huge', 'not finite'])
def test_odd_motor_states_are_told_and_survived(stage: Stage, data: bytes, words: str) -> None:
    for k in range(100):
        stage.joints(k)
        stage.motors(k)
    stage.motors(data)
    assert words in stage.diagnosis()[0]
    for k in range(100, 103):
        stage.joints(k)
        stage.motors(k)
    message, values = stage.diagnosis()
    assert message == 'no contact', message
    assert values['unusable motor states'] in '01'


def test_motor_states_that_end_are_told_and_done_without(stage: Stage) -> None:
    for k in range(120):
        stage.joints(k)
        if k < 80:
            stage.motors(k)
    message, values = stage.diagnosis()
    assert 'joint_1, joint_2: no motor states of the last 0.03 s' in message
    assert values['joint_1 predicted with deflection'] == 'no'
    assert 'joint_1 gear torque [N m]' not in values
