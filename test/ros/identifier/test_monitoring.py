"""The topics of the monitor against closed formulas: a robot at rest that is held or pushed."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from monitored import model_of, motion
from nodes import Spinner
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from tolerances import SAME_FORMULA

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings
from robot_dynid.monitoring.observer import ContactSettings
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.monitoring import TOPICS, Monitoring, MonitorParameters
from robot_dynid.ros.recording.session import Recording

pytestmark = pytest.mark.ros

STEP = 2_000_000  # ns
POSE, PUSH = np.array([0.3, -0.5, 0.8]), np.array([1.0, -2.0, 4.0])
STILL = np.zeros(3)


def state(stamp: int, joints: tuple[str, ...], order: list[int], **fields: Any) -> bytes:
    """Return a joint state as the middleware hands it over, its joints in ``order``."""
    message = JointState(name=[joints[i] for i in order])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    for name, values in fields.items():
        setattr(message, name, array.array('d', values[order].tolist()))
    return bytes(serialize_message(message))


@dataclass
class Stage:
    """A monitor in a bare node, and the last message on each of its topics."""

    node: Any
    folder: Path
    model: IdentifiedModel

    def __post_init__(self) -> None:
        self.recording = Recording(self.node, self.folder, 'arm', ('effort',), 1000)
        self.models = ModelServices(self.node, self.model.robot)
        self.models.serve(self.model, self.model.to_yaml())
        self.latest: dict[str, JointState] = {}
        self.ends: list[Callable[[], None]] = []
        self.hold = self.model.inverse(POSE[None], STILL[None], STILL[None])[0]
        self.spinner = Spinner(self.node)
        self.begin = self.node.get_clock().now().nanoseconds

    def monitoring(self, parameters: MonitorParameters) -> Monitoring:
        """Return a monitor that is listened to."""
        made = Monitoring(self.node, self.recording, self.models, parameters.settings())
        self.ends.append(made.close)
        for topic in TOPICS:
            self.node.create_subscription(
                JointState, f'~/{topic}', lambda m, topic=topic: self.latest.update({topic: m}), 1)
        names = [self.node.resolve_topic_name(f'~/{topic}') for topic in TOPICS]
        self.spinner.wait(lambda: all(map(self.node.count_publishers, names))
                          and all(map(self.node.count_subscribers, names)))
        return made

    def published(self, stamp: int) -> dict[str, np.ndarray[Any, Any]]:
        """Return the efforts on every topic once those of ``stamp`` have come."""
        def there() -> bool:
            stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
                      for m in self.latest.values()]
            return stamps == [stamp] * len(TOPICS)

        self.spinner.wait(there)
        assert all(tuple(m.name) == self.model.joints for m in self.latest.values())
        return {topic: np.array(m.effort) for topic, m in self.latest.items()}


@pytest.fixture
def stage(node: Any, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(node, tmp_path, model_of(load_robot('planar_3r')))
    yield made
    for end in (*made.ends, made.recording.close, made.models.close):
        end()


@pytest.mark.parametrize('apart', [False, True], ids=['one topic', 'topic effort'])
def test_at_rest_the_model_holds_the_arm_and_the_residual_is_what_pushes(
    stage: Stage, apart: bool
) -> None:
    """Every topic gets its own values, whatever the order of the joints in the messages."""
    monitoring = stage.monitoring(MonitorParameters())
    joints, own, other = stage.model.joints, [2, 0, 1], [1, 2, 0]
    measured = stage.hold + PUSH
    for stamp in range(stage.begin, stage.begin + 700 * STEP, STEP):
        if apart:
            monitoring.receive_effort(state(stamp, joints, other, effort=measured), stamp, 0)
        effort = stage.hold if apart else measured  # those of the field are to be replaced
        monitoring.receive(
            state(stamp, joints, own, position=POSE, velocity=STILL, effort=effort), stamp, 0)
    found = stage.published(stamp)
    for topic, expected in (('predicted_effort', stage.hold), ('effort_residual', PUSH),
                            ('external_torque', -PUSH)):
        np.testing.assert_allclose(found[topic], expected, rtol=1e-6, atol=25.0 * SAME_FORMULA)


def test_moving_joints_are_followed_in_whatever_order_they_come(stage: Stage) -> None:
    """What the same monitor makes of arrays in the order of the model is the expectation."""
    monitoring, direct = stage.monitoring(MonitorParameters()), Monitor(stage.model)
    log = motion(stage.model.robot, 20)
    for k, row in enumerate(zip(log.position, log.velocity, log.effort, strict=True)):
        position, velocity, effort = row
        monitoring.receive(state(stage.begin + k * STEP, stage.model.joints, [2, 0, 1],
                               position=position, velocity=velocity, effort=effort), 0, 0)
        expected = direct(k * STEP * 1e-9, *row)
    _, status = monitoring.take_status()
    assert status.reading is not None
    np.testing.assert_allclose(status.reading.external, expected.external, rtol=1e-4)


def test_a_model_with_another_order_of_joints_takes_the_joints_by_their_names(
    stage: Stage
) -> None:
    """The messages stay as they are while another model is served."""
    monitoring, robot = stage.monitoring(MonitorParameters()), stage.model.robot
    other = model_of(replace(robot, joints=tuple(robot.joints[i] for i in (2, 0, 1))))
    for served, order in ((stage.model, [0, 1, 2]), (other, [1, 2, 0])):
        stage.models.serve(served, served.to_yaml())
        for k in range(51):
            stamp = stage.begin + k * STEP
            monitoring.receive(state(stamp, served.joints, order, position=POSE, velocity=STILL,
                                   effort=stage.hold + PUSH), stamp, 0)
        _, status = monitoring.take_status()
        assert status.reading is not None
        risen = 1.0 - np.exp(-MonitorParameters().observer_gain * 0.1)
        np.testing.assert_allclose(status.reading.external, -risen * PUSH, rtol=1e-9)


@pytest.mark.parametrize('observer_gain', [10.0, 40.0])
def test_external_torque_rises_with_the_time_constant_of_the_gain(
    stage: Stage, observer_gain: float
) -> None:
    monitoring = stage.monitoring(MonitorParameters(observer_gain=observer_gain))
    for k in range(51):
        stamp = stage.begin + k * STEP
        monitoring.receive(state(stamp, stage.model.joints, [0, 1, 2], position=POSE,
                               velocity=STILL, effort=stage.hold + PUSH), stamp, 0)
    _, status = monitoring.take_status()
    assert status.reading is not None
    risen = 1.0 - np.exp(-observer_gain * 0.1)
    np.testing.assert_allclose(status.reading.external, -risen * PUSH, rtol=1e-9)


def test_every_parameter_reaches_its_setting() -> None:
    given = MonitorParameters(
        observer_gain=11.0, contact_margin=2.5, contact_thresholds=(3.0, 4.0, 5.0),
        contact_release=0.7, contact_duration=0.02)
    assert given.settings() == MonitorSettings(gain=11.0, contact=ContactSettings(
        margin=2.5, thresholds=(3.0, 4.0, 5.0), release=0.7, duration=0.02))


def test_joint_states_that_have_waited_for_long_are_left_out(stage: Stage) -> None:
    monitoring = stage.monitoring(MonitorParameters())
    for k, waited in enumerate((0, 0, 300_000_000, 0)):
        stamp = stage.begin + k * STEP
        monitoring.receive(state(stamp, stage.model.joints, [0, 1, 2], position=POSE,
                               velocity=STILL, effort=stage.hold), stamp, waited)
    _, status = monitoring.take_status()
    assert status.dropped == 1
    assert monitoring.take_status()[1].dropped == 0, 'reported once'
