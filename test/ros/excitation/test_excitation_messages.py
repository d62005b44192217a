"""ros/excitation/messages.py, checklist.py: feedback, diagnostics and facts, number by number."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('visualization_msgs')
pytest.importorskip('control_msgs')
pytest.importorskip('robot_dynid_interfaces')

from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.serialization import serialize_message
from rclpy.time import Time
from sensor_msgs.msg import JointState

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.execution.checklist import Facts, Item, Level
from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.execution.sampled import sampled
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.excitation.checklist import (
    controller_state,
    gravity_effort,
    joint_state,
    limits_of_states,
    position_of,
    read_messages,
)
from robot_dynid.ros.excitation.messages import (
    diagnosis,
    feedback_message,
    path_marker,
    status_of,
)
from robot_dynid.ros.recording.channel import TopicStatistics
from robot_dynid.trajectories.limits import motion_limits, quintic_move

ROBOT = load_robot('planar_3r')
POSE = np.array([0.3, -0.5, 0.8])


@dataclass
class Moving:
    """What messages read of an execution; ``use`` is its own record of the limits used."""

    asked: Any = None

    @property
    def phase(self) -> Any:
        return SimpleNamespace(value='moving')

    @property
    def use(self) -> Any:
        return SimpleNamespace(take=lambda: {'effort of a': 0.4567, 'clearance': 0.1})

    def doing(self, now: float) -> tuple[str, float]:
        return 'excitation', 0.25

    def remaining(self, now: float) -> float:
        return 10.0 - now

    def tracking_error(self, now: float) -> np.ndarray:
        return np.array([0.1, -0.2])


def states_of(age: float) -> JointStates:
    states, now = JointStates(('a', 'b')), time.monotonic()
    for joint, since in (('a', 0.0), ('b', age)):
        states.update(now - since, (joint,), 0.0, ([0.0], [0.0], [0.0]))
    return states


def test_feedback_of_a_motion_counts_what_follows_it() -> None:
    moving: Any = Moving()
    message = feedback_message(4.0, moving, ('design', 0.5), 3.5)
    assert (message.segment, message.fraction, message.remaining) == ('excitation', 0.25, 9.5)
    assert list(message.tracking_error) == [0.1, -0.2]
    assert feedback_message(4.0, moving, ('design', 0.5)).remaining == 6.0
    planned = feedback_message(4.0, None, ('design', 0.5), 3.5)
    assert (planned.segment, planned.fraction, planned.remaining) == ('design', 0.5, 0.0)
    assert list(planned.tracking_error) == []


def test_the_status_of_a_motion_tells_every_number() -> None:
    moving: Any = Moving()
    lost = (TopicStatistics('/joint_states', 500.0, 0.01, 0.02, 3),
            TopicStatistics('/effort', 500.0, 0.01, 0.02, 4))
    status = diagnosis(moving, states_of(0.5), Outcome(Code.COLLISION, 'near'), True, lost)
    assert (status.name, status.level, status.message) == (
        'execution', DiagnosticStatus.OK, 'excitation: moving')
    values = {value.key: value.value for value in status.values}
    assert float(values.pop('age of joint states [s]')) == pytest.approx(0.5, abs=0.05)
    assert values == {
        'controller': 'present', 'last outcome': 'COLLISION', '/joint_states lost messages': '3',
        '/effort lost messages': '4', 'effort of a [part of its limit]': '0.457',
        'clearance [part of its limit]': '0.100'}
    idle = diagnosis(None, states_of(0.5), None, False, ())
    assert [(value.key, value.value) for value in idle.values if 'age' not in value.key] == [
        ('controller', 'absent'), ('last outcome', 'none')]


@pytest.mark.parametrize(('age', 'message'), [
    (0.8, 'ready'), (1.3, "no recent state of joint 'b'")])
def test_joint_states_are_recent_for_a_second(age: float, message: str) -> None:
    assert diagnosis(None, states_of(age), None, True, ()).message == message


def test_an_item_becomes_a_status_of_its_level_on_one_line() -> None:
    status = status_of(Item('clock', Level.WARN, 'late\nby far', (('delay [s]', '0.2'),)))
    assert (status.name, status.level, status.message) == (
        'clock', DiagnosticStatus.WARN, r'late\nby far')
    assert [(value.key, value.value) for value in status.values] == [('delay [s]', '0.2')]


def test_the_path_of_the_tip_ends_where_the_motion_ends() -> None:
    limits = motion_limits(ROBOT).scaled(1.0, 0.5)
    points = sampled(quintic_move(ROBOT.joints, (np.zeros(3), POSE), limits), 20.0)
    marker = path_marker(ROBOT, points, Time(seconds=3, nanoseconds=7), 2)
    assert len(marker.points) == len(points.time), 'few points are not thinned'
    assert (marker.ns, marker.id, marker.header.stamp.sec, marker.header.stamp.nanosec) == (
        'excitation', 2, 3, 7)
    assert marker.pose.orientation.w == 1.0 and marker.scale.x == 0.005 and marker.color.a == 1.0


def driven(kind: str, gains: tuple[float, ...] = (2.0, -4.0, 0.5)) -> RobotModel:
    return replace(ROBOT, drive=Drive(kind, np.array(gains)))


def test_gravity_is_in_the_unit_of_the_joint_states() -> None:
    still = np.zeros((1, 3))
    torque = inverse_dynamics(ROBOT, POSE[None, :], still, still)[0]
    assert np.abs(torque[0]) > 1.0
    np.testing.assert_allclose(gravity_effort(ROBOT, POSE), torque, rtol=1e-12)
    np.testing.assert_allclose(
        gravity_effort(driven('current'), POSE), torque / [2.0, -4.0, 0.5], rtol=1e-12)
    assert gravity_effort(driven('gravity_compensated_torque', (1.0,) * 3), POSE) is None


def test_gravity_is_unknown_where_the_description_lacks_links() -> None:
    nominal = np.array(ROBOT.nominal)
    nominal[2] = 0.0
    known = gravity_effort(ROBOT.with_nominal(nominal), POSE)
    assert known is not None and np.isnan(known[2])
    assert gravity_effort(ROBOT.with_nominal(np.zeros_like(nominal)), POSE) is None


def test_limits_of_the_states_are_those_of_the_current() -> None:
    limits, reason = limits_of_states(driven('current'))
    assert limits is not None and reason == ''
    np.testing.assert_allclose(
        limits.effort, ROBOT.limits.effort / [2.0, 4.0, 0.5], rtol=1e-12)
    unlimited = replace(ROBOT, limits=replace(ROBOT.limits, velocity=np.full(3, np.nan)))
    none, reason = limits_of_states(unlimited)
    assert none is None and 'velocity' in reason


def state(*values: float, names: tuple[str, ...] = ROBOT.joints) -> bytes:
    message = JointState(name=list(names), position=list(values),
                         velocity=[10.0 * value for value in values],
                         effort=[-value for value in values])
    message.header.stamp.sec, message.header.stamp.nanosec = 5, 250_000_000
    return bytes(serialize_message(message))


def test_messages_keep_their_fields_and_get_the_clock_of_the_node() -> None:
    (found,) = read_messages(joint_state, [(2_000_000_000, state(1.0, 2.0, 3.0)), (1, b'\0')],
                             500_000_000)
    assert (found.arrival, found.stamp, found.names) == (2.5, 5.25, ROBOT.joints)
    assert [list(values) for values in (found.position, found.velocity, found.effort)] == [
        [1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [-1.0, -2.0, -3.0]]
    message = JointTrajectoryControllerState(joint_names=['b', 'a'])
    message.header.stamp.sec = 7
    message.feedback.positions, message.feedback.velocities = [1.0, 2.0], [3.0, 4.0]
    message.reference.positions = [9.0, 9.0]
    read = controller_state(bytes(serialize_message(message)), 1.5)
    assert (read.arrival, read.stamp, read.names) == (1.5, 7.0, ('b', 'a'))
    assert (list(read.position), list(read.velocity)) == ([1.0, 2.0], [3.0, 4.0])


def facts(*taken: bytes) -> Facts:
    arrived = [(10**9 * k, data) for k, data in enumerate(taken)]
    return Facts(
        seconds=1.0, now=1.0, states=read_messages(joint_state, arrived), best_effort=(),
        controller='arm', controller_ready=True, controller_states=(), controller_publishers=0,
        commanders=(), stop_publishers=0, sim_time=False, clock_publishers=0, folder='/', free=1e9,
        unwritable='')


def test_the_pose_is_that_of_the_last_ten_messages() -> None:
    first, last = state(9.0, names=ROBOT.joints[2:]), state(1.0, 2.0, names=ROBOT.joints[:2])
    found = position_of(facts(first, *[last] * 9), ROBOT.joints)
    assert found is not None
    assert list(found) == [1.0, 2.0, 9.0]
    assert position_of(facts(first, *[last] * 10), ROBOT.joints) is None
    assert position_of(facts(state(1.0, math.nan, 2.0)), ROBOT.joints) is None
