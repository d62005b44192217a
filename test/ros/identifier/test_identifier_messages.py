"""ros/identifier/messages.py: diagnostics, messages of models and payloads, number by number."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('visualization_msgs')
pytest.importorskip('robot_dynid_interfaces')

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from monitored import model_of
from tolerances import SAME_FORMULA

from robot_dynid.estimation.payload import PayloadEstimate, PayloadStatus
from robot_dynid.identification.payload import PayloadResult
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings, Reading
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.messages import (
    SILENT_TOPIC,
    MonitorStatus,
    blind_sentence,
    contact_diagnosis,
    contact_markers,
    diagnosis,
    model_message,
    payload_message,
)
from robot_dynid.ros.recording.channel import TopicStatistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
ROBOT = load_robot('planar_3r')


@dataclass
class Recorded:
    """What the diagnostics read of a recording and of its recorder."""

    findings: tuple[str, ...] = ()
    intact: bool = True
    running: bool = True
    received: int = 7
    path: Path = Path('bags/arm_1')
    there: bool = True

    @property
    def recorder(self) -> Any:
        return self if self.there else None


def topics(age: float = 0.25, lost: tuple[int, int] = (0, 0)) -> tuple[TopicStatistics, ...]:
    return (TopicStatistics('/joint_states', 499.96, 0.00432, age, lost[0]),
            TopicStatistics('/effort', 99.44, 0.0123456, 0.0206, lost[1]))


def told(status: DiagnosticStatus) -> dict[str, str]:
    return {value.key: value.value for value in status.values}


def partial(*joints: str) -> IdentifiedModel:
    """Return a model that refuses ``joints``."""
    model = model_of(ROBOT)
    return replace(model, not_identified=joints)


def test_the_status_of_the_identifier_tells_every_number() -> None:
    status = diagnosis('arm', topics(), Recorded(), model_of(ROBOT), '')
    assert (status.name, status.level, status.message) == ('arm', OK, 'ready')
    assert told(status) == {
        'model': 'planar_3r', 'not identified': '', 'recording': 'yes', 'recorded messages': '7',
        'recorded to': 'bags/arm_1', 'identification': 'none',
        '/joint_states rate [Hz]': '500.0', '/joint_states largest gap [s]': '0.0043',
        '/joint_states age [s]': '0.250', '/joint_states lost messages': '0',
        '/effort rate [Hz]': '99.4', '/effort largest gap [s]': '0.0123',
        '/effort age [s]': '0.021', '/effort lost messages': '0'}
    bare = told(diagnosis('arm', topics(), Recorded(running=False, there=False), None, 'fit'))
    assert {key: bare[key] for key in list(bare)[:6]} == {
        'model': 'none', 'not identified': '', 'recording': 'no', 'recorded messages': '0',
        'recorded to': '', 'identification': 'fit'}


@pytest.mark.parametrize(('given', 'level', 'message'), [
    ({'stage': 'fit'}, OK, 'identifying: fit'),
    ({'age': 0.99 * SILENT_TOPIC}, OK, 'ready'),
    ({'age': 1.01}, WARN, 'no messages on /joint_states'),
    ({'age': 1.01, 'stage': 'fit'}, WARN, 'no messages on /joint_states'),
    ({'lost': (0, 3), 'age': 2.0}, WARN, '3 messages of /effort were lost: reduce the load of the '
     'computer or the network'),
    ({'lost': (2, 3)}, WARN, '2 messages of /joint_states were lost: reduce the load of the '
     'computer or the network'),
    ({'findings': ('disk full', 'more'), 'intact': True, 'lost': (2, 0)}, WARN, 'disk full'),
    ({'findings': ('disk full', 'more'), 'intact': False}, ERROR, 'disk full'),
])
def test_the_status_of_the_identifier_tells_the_worst(
    given: dict[str, Any], level: bytes, message: str
) -> None:
    recorded = Recorded(given.get('findings', ()), given.get('intact', True))
    status = diagnosis('arm', topics(given.get('age', 0.25), given.get('lost', (0, 0))), recorded,
                       None, given.get('stage', ''))
    assert (status.level, status.message) == (level, message)


def test_the_status_of_the_identifier_cautions_of_refused_joints_at_the_worst_level() -> None:
    model = partial('joint_2')
    warned = diagnosis('arm', topics(), Recorded(), model, '')
    assert warned.level == WARN
    assert warned.message.startswith('joint joint_2 is refused: the data gives no model')
    assert warned.message.endswith('; ready')
    assert told(warned)['not identified'] == 'joint_2'
    bad = diagnosis('arm', topics(), Recorded(('disk full',), intact=False), model, '')
    assert bad.level == ERROR and bad.message.endswith('; disk full')


def reading(**changes: Any) -> Reading:
    still = np.zeros(3, dtype=bool)
    return Reading(**{
        'predicted': np.array([1.0, 2.0, 3.0]), 'residual': np.array([0.1, 0.2, 0.3]),
        'external': np.array([0.12345, -2.5, 4.0]), 'claimed': np.array([0.5, -0.25, 1.0]),
        'threshold': np.array([2.0, 3.0, 4.0]), 'contact': still, 'blind': still, 'unseen': still,
        'viscous_scale': np.array([1.1, 0.95, 0.805]), 'dry_scale': np.array([1.2, 0.9, 0.7]),
        **changes})


def test_the_status_of_contact_tells_thresholds_about_what_friction_claims() -> None:
    monitor = Monitor(model_of(ROBOT), MonitorSettings(gain=40.0))
    status = contact_diagnosis('contact', monitor, MonitorStatus(
        touched={'joint_3', 'joint_1'}, dropped=5,
        reading=reading(unseen=np.array([False, True, False]))))
    assert (status.name, status.level, status.message) == (
        'contact', WARN, 'contact: joint_1, joint_3')
    assert told(status) == {
        'joint_1': 'contact', 'joint_2': 'free', 'joint_3': 'contact',
        'joint_1 external torque [N m]': '0.123', 'joint_1 thresholds [N m]': '-1.500, 2.500',
        'joint_2 external torque [N m]': 'nan', 'joint_2 thresholds [N m]': '-3.250, 2.750',
        'joint_3 external torque [N m]': '4.000', 'joint_3 thresholds [N m]': '-3.000, 5.000',
        'delay of the residual [s]': '0.0000', 'delay of the external torque [s]': '0.0250',
        'skipped joint states': '0', 'restarts': '0',
        'joint states dropped since the last report': '5'}


@pytest.mark.parametrize(('status', 'level', 'message', 'joints'), [
    ({}, OK, 'no contact', ('free', 'free', 'free')),
    ({'blind': {'joint_2': 'slow'}, 'touched': {'joint_1'}}, ERROR,
     'contact: joint_1; blind: joint_2: slow', ('contact', 'blind: slow', 'free')),
    ({'blind': {'all joints': 'no states'}, 'touched': {'joint_1'}, 'problem': 'no states'}, ERROR,
     'contact: joint_1; blind: all joints: no states',
     ('contact', 'blind: no states', 'blind: no states')),
    ({'problem': 'late', 'motor_problem': 'odd'}, WARN, 'late; odd', ('free', 'free', 'free')),
    ({'blind': {'joint_3': 'slow'}, 'problem': 'late'}, ERROR, 'blind: joint_3: slow; late',
     ('free', 'free', 'blind: slow')),
])
def test_the_status_of_contact_tells_who_is_blind_and_why(
    status: dict[str, Any], level: bytes, message: str, joints: tuple[str, ...]
) -> None:
    found = contact_diagnosis('contact', Monitor(model_of(ROBOT)),
                              MonitorStatus(**status, reading=reading()))
    assert (found.level, found.message) == (level, message)
    values = told(found)
    assert tuple(values[joint] for joint in ROBOT.joints) == joints
    assert ('joint_1 external torque [N m]' in values) is ('all joints' not in str(status))


def test_the_status_of_contact_without_a_monitor_is_an_error() -> None:
    found = contact_diagnosis('contact', None, MonitorStatus(blind={'all joints': 'no model'}))
    assert (found.level, found.message, list(found.values)) == (
        ERROR, 'blind: all joints: no model', [])


def test_the_status_of_contact_tells_the_torque_of_gears() -> None:
    """Numbers of gears where there are some, with a deviation that is unknown left out."""
    nan = math.nan
    read = reading(deflected=np.array([True, False, True]), spread=np.array([0.5, nan, 0.25]),
                   gear=np.array([nan, 7.0, -8.0]), gear_spread=np.array([nan, 0.75, 0.125]))
    values = told(contact_diagnosis(
        'contact', Monitor(model_of(ROBOT)), MonitorStatus(reading=read)))
    chosen = {key: value for key, value in values.items()
              if 'gear' in key or 'deflection' in key or 'learned' in key or 'motor' in key}
    assert chosen == {
        'joint_1 predicted with deflection': 'yes', 'joint_2 predicted with deflection': 'no',
        'joint_3 predicted with deflection': 'yes',
        'joint_1 deviation of the learned effort [N m]': '0.500',
        'joint_3 deviation of the learned effort [N m]': '0.250',
        'joint_2 gear torque [N m]': '7.000 +- 0.750',
        'joint_3 gear torque [N m]': '-8.000 +- 0.125', 'unusable motor states': '0'}


def test_blind_joints_are_grouped_by_reason() -> None:
    assert blind_sentence({'a': 'slow', 'b': 'still', 'c': 'slow'}) == (
        'blind: a, c: slow; b: still')


def test_the_message_of_a_model_carries_its_numbers() -> None:
    model = partial('joint_2')
    message = model_message(model, 'text of the file', Time(sec=3, nanosec=7))
    assert (message.robot, message.robot_hash) == ('planar_3r', model.robot.hash())
    assert message.header.frame_id == model.robot.base_link
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (3, 7)
    assert (list(message.joint_names), list(message.not_identified)) == (
        list(model.joints), ['joint_2'])
    assert (list(message.names), list(message.labels)) == (list(model.names), list(model.labels))
    assert (list(message.values), list(message.std)) == (list(model.values), list(model.std))
    assert message.yaml == 'text of the file'


def estimate(**changes: Any) -> PayloadEstimate:
    com = np.array([0.1, -0.2, 0.3])
    inertia = np.array([[0.5, 0.01, 0.02], [0.01, 0.6, -0.03], [0.02, -0.03, 0.7]])
    parameters = parameters_from_com(2.5, com, inertia)
    return replace(PayloadEstimate(
        parameters, np.ones(10), 2.5, 0.04, 0.0, com, np.array([0.01, 0.02, 0.03]), inertia,
        np.ones((3, 3)), np.full(4, 9.0), np.ones(3), PayloadStatus.OK, ('mxy',), (), 1.0, False),
        **changes)


@pytest.mark.parametrize(('changes', 'mass_std', 'com_std', 'determined'), [
    ({}, 0.04, [0.01, 0.02, 0.03], True),
    ({'mass_std': np.inf}, math.nan, [0.01, 0.02, 0.03], False),
    ({'centre_of_mass_std': np.array([0.01, np.inf, 0.03])}, 0.04, [0.01, math.nan, 0.03], False),
])
def test_the_message_of_a_payload_has_no_number_that_is_unknown(
    changes: dict[str, Any], mass_std: float, com_std: list[float], determined: bool
) -> None:
    body = estimate(**changes)
    message = payload_message(PayloadResult(body, ROBOT, 'flange', 10, (), ()))
    assert (message.frame, message.determined, list(message.not_excited)) == (
        'flange', determined, ['mxy'])
    assert message.mass == 2.5
    np.testing.assert_equal(message.mass_std, mass_std)
    np.testing.assert_array_equal(message.centre_of_mass, body.centre_of_mass)
    np.testing.assert_array_equal(message.centre_of_mass_std, com_std)
    expected = body.inertia.ravel() if determined else np.full(9, np.nan)
    np.testing.assert_allclose(message.inertia, expected, rtol=SAME_FORMULA)


def test_arrows_without_a_limit_and_without_contact_have_a_size_and_a_colour() -> None:
    robot = replace(ROBOT, limits=replace(ROBOT.limits, effort=np.array([np.inf, 50.0, 20.0])))
    first, second, _ = contact_markers(
        robot, np.array([25.0, 25.0, 5.0]), {'joint_2'}, 2_000_000_009).markers
    lengths = [math.hypot(end.x, end.y, end.z) for _, end in (first.points, second.points)]
    assert lengths == pytest.approx([0.25, 0.5], rel=1e-12)  # of 100 N m where no limit is known
    assert first.pose.orientation.w == 1.0 and first.color.a == 1.0
    assert (first.scale.x, first.scale.y) == (0.02, 0.04)
    assert first.color.g > first.color.r and second.color.r > second.color.g
