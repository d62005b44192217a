"""ros/excitation/node.py: the emergency stop is heard whatever its type and its publisher promise,
and nobody is warned of that."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip('rclpy')

from lifecycle_msgs.msg import State, TransitionDescription
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import Alarms, GuardSettings
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.excitation.node import AlarmTopics, stop_state
from robot_dynid.ros.excitation.settings import ExcitationSettings

pytestmark = pytest.mark.ros
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
KEEPING, BEST_EFFORT = DurabilityPolicy.TRANSIENT_LOCAL, ReliabilityPolicy.BEST_EFFORT
PUBLISHERS = {
    'latched': QoSProfile(depth=1, durability=KEEPING),
    'reliable': QoSProfile(depth=10),  # as `ros2 topic pub`
    'best effort': QoSProfile(depth=10, reliability=BEST_EFFORT),
    'latched best effort': QoSProfile(depth=1, durability=KEEPING, reliability=BEST_EFFORT),
}


ROBOT = ExcitationSettings(robot='any')


class Ears:
    """Alarms that hear the topics of a node, which has the publisher, of a stop ``before``."""

    def __init__(self, node: Any, qos: QoSProfile, *, before: Any = None,
                 settings: ExcitationSettings = ROBOT) -> None:
        self.alarms, self.news = Alarms(('joint_1',), GuardSettings()), list[bool]()
        self.publisher = node.create_publisher(type(before or Bool()), 'emergency_stop', qos)
        if before:
            self.publisher.publish(before)
            time.sleep(0.2)
        self.listener = Listener(node)
        self.topics = AlarmTopics(
            node, self.alarms, lambda: self.news.append(True), self.listener, settings)
        self.executor = SingleThreadedExecutor(context=node.context)
        self.executor.add_node(node)

    def hear(self, *, repeated: bool, pressed: bool = True) -> None:
        """Listen until a pressed emergency stop is heard, published once or again and again."""
        self.listener.start()
        end = time.monotonic() + PATIENCE
        while self.alarms.pressed is not pressed:
            assert time.monotonic() < end, 'not heard'
            if repeated:
                self.publisher.publish(Bool(data=True))
            self.topics.check_publishers()
            self.executor.spin_once(timeout_sec=0.05)
        for _ in range(5):  # events of the middleware come with the executor
            self.executor.spin_once(timeout_sec=0.05)
        self.listener.close()


@pytest.mark.parametrize('kind', PUBLISHERS)
def test_every_publisher_is_heard_and_neither_side_warns(
    node: Any, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ears = Ears(node, PUBLISHERS[kind])
    ears.hear(repeated=True)
    assert ears.alarms.present
    assert ears.news
    told = capfd.readouterr().err
    assert 'New publisher discovered' not in told
    assert 'New subscription discovered' not in told


def test_alarm_topics_hear_what_a_latched_publisher_sent_before(node: Any) -> None:
    ears = Ears(node, PUBLISHERS['latched'], before=Bool(data=True))
    ears.hear(repeated=False)


@pytest.mark.parametrize(('state', 'pressed'), [(1, False), (2, False), (3, True), (0, True)])
def test_alarm_topics_read_the_states_of_a_driver(
    node: Any, state: int, pressed: bool
) -> None:
    safety = TransitionDescription(goal_state=State(id=state))  # in place of SafetyMode of a UR
    ears = Ears(node, PUBLISHERS['latched'], before=safety, settings=ExcitationSettings(
        robot='any', emergency_stop_type='lifecycle_msgs/msg/TransitionDescription',
        emergency_stop_field='goal_state.id', emergency_stop_released=(1, 2)))
    ears.hear(repeated=False, pressed=pressed)
    assert ears.news == [True] * pressed


@pytest.mark.parametrize(('kind', 'field', 'named'), [
    ('nowhere_msgs/msg/SafetyMode', 'mode', "emergency_stop_type: 'nowhere_msgs/msg/SafetyMode' "
     'is not installed'), ('std_msgs/msg/Bol', 'data', 'emergency_stop_type'),
    ('', '', 'emergency_stop_type'), ('std_srvs/srv/SetBool', 'data', 'emergency_stop_type'),
    ('std_msgs/msg/Bool', 'mode', "std_msgs/msg/Bool has no whole number or bool 'mode'"),
    ('std_msgs/msg/Float64', 'data', 'emergency_stop_field'),
    ('std_msgs/msg/Bool', '', 'emergency_stop_field')])
def test_stop_state_names_a_type_or_field_that_cannot_be_read(
    kind: str, field: str, named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        stop_state(ExcitationSettings(
            robot='any', emergency_stop_type=kind, emergency_stop_field=field))


def test_a_publisher_that_goes_is_missed(node: Any) -> None:
    ears = Ears(node, PUBLISHERS['reliable'])
    ears.hear(repeated=True)
    node.destroy_publisher(ears.publisher)
    end = time.monotonic() + PATIENCE
    while ears.alarms.present:
        assert time.monotonic() < end, 'not missed'
        ears.topics.check_publishers()
