"""Doctor on a running system: each fault is named by its own diagnosis, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import closed_form_gear
import numpy as np
import pytest
from live_systems import Spoil, arrays, system

from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import DataError
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis, verdict
from robot_dynid.setting_up.live import (
    Live,
    Stream,
    encoder_diagnoses,
    gains_of_size,
    live_diagnoses,
    names_diagnosis,
    recording_diagnoses,
    renaming,
)
from robot_dynid.types import RawLog, take

UR = load_robot('ur10e')
TORQUE = replace(UR, drive=replace(UR.drive, kind='torque', gains=None, gear_ratios=None))
PREFIXED = tuple(f'left_{joint}' for joint in UR.joints)
OTHERS = tuple(f'joint_a{i + 1}' for i in range(UR.n))
WALL = UR.with_gravity(np.array([9.81, 0.0, 0.0]))

MISSTATED = UR.with_nominal(UR.nominal * np.where(np.outer(
    np.arange(UR.n) == 2, np.arange(10) > 3), 1e6, 1.0))


def times(name: str, factor: Any) -> Spoil:
    """Return what multiplies a channel."""
    def spoil(data: dict[str, Any]) -> None:
        data[name] = data[name] * factor
    return spoil


def without(name: str) -> Spoil:
    """Return what leaves a channel out."""
    return lambda data: data.update({name: None})


def of_another(robot: RobotModel, moving: bool) -> Spoil:
    """Return what gives the efforts of another robot."""
    return lambda data: data.update(effort=arrays(robot, moving)['effort'])


def without_gravity(data: dict[str, Any]) -> None:
    data['effort'] = data['effort'] - rigid_body.gravity_effort(TORQUE.rigid, data['position'])


def late(data: dict[str, Any]) -> None:
    data['stamp'] = data['stamp'] - 2.0


def jitter(data: dict[str, Any]) -> None:
    steps = np.random.default_rng(1).uniform(0.1, 1.9, len(data['stamp']))
    data['stamp'] = data['arrival'] - 0.2 + 8e-3 * np.cumsum(steps - 1.0)


def thinned(every: int) -> Spoil:
    """Return what keeps every so many messages."""
    def spoil(data: dict[str, Any]) -> None:
        for name, values in data.items():
            data[name] = values[::every]
    return spoil


def changed(live: Live, **facts: Any) -> Live:
    """Return a system with other facts."""
    return replace(live, facts=replace(live.facts, **facts))


def beside(live: Live, *streams: Stream) -> Live:
    """Return a system with the joints of the robot on other topics, too."""
    return replace(live, others=tuple(replace(one, names=UR.joints) for one in streams))


def silent(live: Live, **seen: Any) -> Live:
    """Return a system of which no joint states came in."""
    empty = changed(live, states=(), controller_ready=False, controller_states=(),
                    controller_publishers=0)
    return replace(empty, log=None, publishers=(), **seen)


#: set-up, the robot as it is stated, the diagnosis that names the fault, its level, words of it
BROKEN: dict[str, tuple[Callable[[], Live], RobotModel, str, Any, str]] = {
    'positions in degrees': (
        lambda: system(UR, times('position', 180.0 / np.pi), moving=True), UR, 'position_unit',
        ERROR, 'degrees'),
    'positions in degrees, at rest': (
        lambda: system(UR, times('position', 180.0 / np.pi)), UR, 'position_unit', ERROR,
        'degrees'),
    'mA taken for N m': (
        lambda: system(TORQUE, times('effort', 1000.0 / np.asarray(UR.drive.gains)), moving=True),
        TORQUE, 'effort_scale', ERROR, 'times too large'),
    'mA taken for N m, at rest': (
        lambda: system(TORQUE, times('effort', 1000.0 / np.asarray(UR.drive.gains))), TORQUE,
        'effort_scale', ERROR, 'times too large'),
    'negated efforts': (
        lambda: system(UR, times('effort', -1.0), moving=True), UR, 'effort_sign', ERROR,
        'negated'),
    'mounted on a wall': (
        lambda: system(UR, of_another(WALL, True), moving=True), UR, 'gravity', ERROR,
        'state gravity: [9.81, 0, 0] in the robot YAML'),
    'mounted on a wall, at rest': (
        lambda: system(UR, of_another(WALL, False)), UR, 'gravity', WARN,
        'the base looks mounted on a wall, its x axis down'),
    'names with a prefix': (
        lambda: system(UR, names=PREFIXED), UR, 'joint names', ERROR, "the prefix 'left_'"),
    'other names': (
        lambda: system(UR, names=OTHERS), UR, 'joint names', ERROR, 'it has joint_a1, joint_a2'),
    'no effort': (
        lambda: system(UR, without('effort')), UR, 'effort', ERROR, 'carry no effort'),
    'a low rate': (
        lambda: system(UR, thinned(10)), UR, 'joint state rate', WARN, 'publish at least 50'),
    'a gap at every message': (
        lambda: system(UR, thinned(100)), UR, 'joint state rate', ERROR, 'a gap of'),
    'jitter': (
        lambda: system(UR, jitter), UR, 'joint state rate', WARN, 'scatter by'),
    'stamps in the past': (
        lambda: system(UR, late), UR, 'stamps', WARN, 'behind the clock of this computer'),
    'no controller': (
        lambda: replace(changed(system(UR), controller_ready=False, controller_states=(),
                                controller_publishers=0), controllers=('scaled',)),
        UR, 'controller', ERROR, 'there is scaled: give --controller scaled'),
    'an inactive controller': (
        lambda: changed(system(UR), controller_states=()), UR, 'controller', ERROR,
        'activate it (ros2 control switch_controllers'),
    'use_sim_time without /clock': (
        lambda: replace(system(UR), sleeping=('/driver',)), UR, 'clock', ERROR,
        'nobody publishes /clock'),
    'another domain': (
        lambda: silent(system(UR), environment={'ROS_DOMAIN_ID': '7'}), UR, 'joint states', ERROR,
        'nobody publishes /joint_states in ROS_DOMAIN_ID 7'),
    'another topic': (
        lambda: silent(system(UR), others=(Stream('/left/joint_states'),)), UR, 'joint states',
        ERROR, 'give --topic /left/joint_states'),
    'a copy at a low rate': (
        lambda: replace(beside(system(UR, thinned(5)), Stream(
            '/franka_robot_state_broadcaster/desired_joint_states', 1000.0, efforts=True),
            Stream('/franka_robot_state_broadcaster/measured_joint_states', 1000.0, efforts=True,
                   reliable=False), Stream('/left', 900.0, efforts=True),
            Stream('/franka/joint_states', 500.0, efforts=True)),
            publishers=('/joint_state_publisher',)), UR, 'other joint states', WARN,
        '25 messages per second with efforts, copies by joint_state_publisher with stamps of '
        'their own; /franka/joint_states has the same joints, 500 per second with efforts; give '
        '--topic /franka/joint_states (or /left), and joint_states:=/franka/joint_states'),
    'efforts elsewhere': (
        lambda: beside(system(UR, without('effort')), Stream('/arm/joint_states', 50.0),
                       Stream('/xarm/joint_states', 20.0, efforts=True)), UR,
        'other joint states', WARN, 'without efforts; /xarm/joint_states has the same joints, 20'),
    'efforts of 0': (
        lambda: system(UR, times('effort', 0.0)), UR, 'effort', ERROR,
        'all efforts are exactly 0'),
    'no controller at all': (
        lambda: changed(system(UR), controller_ready=False, controller_states=(),
                        controller_publishers=0), UR, 'controller', ERROR,
        'ros2 run controller_manager spawner joint_trajectory_controller; docs/drivers.md'),
    'torque without gravity': (
        lambda: system(TORQUE, without_gravity, moving=True), TORQUE, 'gravity', ERROR,
        'state effort_kind: gravity_compensated_torque'),
    'currents taken for torque': (
        lambda: system(TORQUE, times('effort', 1.0 / np.asarray(UR.drive.gains)), moving=True),
        TORQUE, 'effort_scale', ERROR, 'they look like currents [A]'),
    'best effort': (
        lambda: replace(system(UR), best_effort=('/driver',)), UR, 'quality of service', WARN,
        'as best effort'),
    'two publishers': (
        lambda: replace(system(UR), publishers=('/driver', '/joint_state_publisher')), UR,
        'publishers', WARN, 'stop all but one'),
    'links in another unit': (
        lambda: system(UR, moving=True), MISSTATED, 'inertials', WARN,
        'inertia looks like'),
    'unreadable': (
        lambda: replace(system(UR), log=None, unreadable='no usable messages'), UR, 'recording',
        ERROR, 'no usable messages'),
}
#: what follows from a fault and is said beside it
CONSEQUENCES = {'another domain': {'controller'}, 'another topic': {'controller'},
                'a gap at every message': {'time_unit'}}


def off(found: list[Diagnosis]) -> dict[str, Diagnosis]:
    """Return what is not in order, by name."""
    return {one.name: one for one in found if one.level is not OK}


@pytest.mark.parametrize('moving', [True, False], ids=['moving', 'at rest'])
def test_live_diagnoses_report_nothing_when_the_system_is_in_order(moving: bool) -> None:
    found = live_diagnoses(UR, system(UR, moving=moving))
    beside = {'collision check'}  # the bench knows no shapes
    assert not set(off(found)) - beside, off(found)
    assert ('the robot moved' in found[-1].what) == moving
    assert {'joint names', 'controller', 'clock', 'effort', 'limits', 'stamps'} <= {
        one.name for one in found}


@pytest.mark.parametrize('setup', BROKEN)
def test_the_fault_is_named_and_nothing_else(setup: str) -> None:
    made, robot, name, level, words = BROKEN[setup]
    found = off(live_diagnoses(robot, made()))
    assert set(found) == {name} | (CONSEQUENCES.get(setup, set()) & set(found)), found
    one = found[name]
    assert one.level is level and words in f'{one.what}; {one.remedy}', one
    assert one.where and one.remedy, 'what, where, what to do'


JOINT_STATES = '/joint_states'
ACTIVATE = 'activate the joint_state_broadcaster (ros2 control list_controllers), start the ' \
    'driver, and check that the simulation is not paused'
STOP = 'stop all but one, or give one a separate topic (joint_state_publisher is for robots ' \
    'without a driver)'
SAME_JOINTS = 'shoulder_pan_joint: left_shoulder_pan_joint, shoulder_lift_joint: ' \
    'left_shoulder_lift_joint'
BUSY = Stream('/a', 5.0), Stream('/b', 9.0), Stream('/c', 99.0, reliable=False)


@pytest.mark.parametrize(('made', 'place', 'what', 'remedy'), [
    (lambda: silent(system(UR)), JOINT_STATES, 'nobody publishes /joint_states in ROS_DOMAIN_ID '
     '0, discovery range SUBNET', 'start the driver, in the same ROS_DOMAIN_ID; if it runs on '
     'another computer, set ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET on both'),
    (lambda: silent(system(UR), others=BUSY), JOINT_STATES, 'nobody publishes /joint_states in '
     'ROS_DOMAIN_ID 0, discovery range SUBNET; joint states are on /b, /a, /c',
     'give --topic /b, or remap it'),
    (lambda: replace(silent(system(UR)), publishers=('/driver',)), JOINT_STATES,
     '/driver publishes /joint_states, but no message was received for 5.0 s', ACTIVATE),
    (lambda: replace(system(UR), publishers=('/driver', '/other')), JOINT_STATES,
     '/driver and /other publish it', STOP),
    (lambda: replace(system(UR), publishers=('/driver', '/driver')), JOINT_STATES,
     '/driver and /driver publish it, one of them more than once', STOP),
    (lambda: replace(system(UR), best_effort=('/a', '/b')), JOINT_STATES, '/a and /b publish it '
     'as best effort, so lost messages are not sent again, but counted', 'set the publisher to '
     'reliable if possible; docs/drivers.md says how'),
    (lambda: replace(system(UR), sleeping=('/driver', '/other')), '/driver, /other',
     'use_sim_time is true, but nobody publishes /clock: its time stands still at 0',
     'start the simulation, or set use_sim_time to false there'),
    (lambda: system(UR, names=PREFIXED), JOINT_STATES, f"joints are named with the prefix "
     f"'left_' ({SAME_JOINTS})", 'give the URDF the same names (prefix or tf_prefix of its '
     "xacro), or start the driver without the prefix 'left_'"),
    (lambda: beside(system(UR, without('effort')), Stream('/arm', 20.0, efforts=True)),
     JOINT_STATES, '125 messages per second without efforts; /arm has the same joints, 20 per '
     'second with efforts', 'give --topic /arm, and joint_states:=/arm to the launch files'),
    (lambda: beside(system(UR), Stream('/arm', 200.0, efforts=True)), JOINT_STATES,
     '125 messages per second with efforts; /arm has the same joints, 200 per second with '
     'efforts', 'give --topic /arm, and joint_states:=/arm to the launch files'),
    (lambda: replace(changed(system(UR), controller_ready=False, controller_states=(),
                             controller_publishers=0), controllers=('first', 'second')),
     'joint_trajectory_controller', 'no action server joint_trajectory_controller', 'there are '
     'first and second: give --controller first, and the node the parameter controller')])
def test_a_fault_has_a_place_a_sentence_and_a_remedy(
    made: Callable[[], Live], place: str, what: str, remedy: str
) -> None:
    found = off(live_diagnoses(UR, made()))
    assert (place, what, remedy) in [(one.where, one.what, one.remedy) for one in found.values()]


@pytest.mark.parametrize(('seen', 'level', 'what'), [
    (('abc',), OK, 'all 3 joints'), (('a', 'bc'), OK, 'all 3 joints'),
    (('bca',), OK, 'all 3 joints, in another order (columns go by name)'),
    (('axb', 'yac'), OK, 'all 3 joints; x, y are left out'),
    (('ab',), ERROR, 'c is not there; it has a, b'),
    (('',), ERROR, 'a, b and c are not there; it has no names')])
def test_joint_names_are_those_of_all_messages(
    seen: tuple[str, ...], level: Any, what: str
) -> None:
    message = system(UR).facts.states[0]
    found = names_diagnosis(
        ('a', 'b', 'c'), [replace(message, names=tuple(names)) for names in seen], '/here')
    assert (found.name, found.level, found.where) == ('joint names', level, '/here')
    assert found.what == what and bool(found.remedy) is (level is ERROR)


@pytest.mark.parametrize(('travel', 'moved'), [(0.018, False), (0.022, True)])
def test_a_robot_moved_if_a_joint_travels_two_hundredths(travel: float, moved: bool) -> None:
    def shaken(data: dict[str, Any]) -> None:
        count = len(data['stamp'])
        data['position'][:, 3] += travel * np.arange(count) / (count - 1.0)

    assert ('the robot moved' in live_diagnoses(UR, system(UR, shaken))[-1].what) is moved


@pytest.mark.parametrize(('seen', 'words'), [
    (('left_a', 'left_b', 'left_tool'), "the prefix 'left_'"),
    (('a_joint', 'b_joint'), "the suffix '_joint'"), (('left_a', 'right_b'), ''), ((), '')])
def test_renaming_recognises_one_prefix_or_suffix(seen: tuple[str, ...], words: str) -> None:
    assert renaming(('a', 'b'), seen)[0] == words
    if words.startswith('the prefix'):
        assert renaming(seen[:2], ('a', 'b')) == (f'{words} left out', ['a', 'b'])


def test_gravity_is_compared_with_the_effort_of_a_robot_that_stands_still() -> None:
    for moving in (True, False):
        live = system(UR, moving=moving)
        told = live_diagnoses(UR, changed(live, gravity=100.0 * live.facts.gravity))
        assert ('effort' in off(told)) != moving


def test_topics_that_are_no_better_are_not_named() -> None:
    rate = len(system(UR).facts.states) / system(UR).facts.seconds
    for one in (Stream('/left', 1.4 * rate, efforts=True), Stream('/left', 1000.0),
                Stream('/left', 1000.0, efforts=True, reliable=False),
                Stream('/a/external_torque_broadcaster/joint_states', 1000.0, efforts=True)):
        assert 'other joint states' not in off(live_diagnoses(UR, beside(system(UR), one))), one
    some = replace(system(UR), others=(Stream('/left', 1e3, UR.joints[1:], efforts=True),))
    assert 'other joint states' not in off(live_diagnoses(UR, some)), 'a joint is missing'


def test_a_joint_that_rests_where_its_driver_wraps_stands_still() -> None:
    def at_the_seam(data: dict[str, Any]) -> None:
        side = np.random.default_rng(0).choice([-1.0, 1.0], len(data['stamp']))
        data['position'][:, 5] = side * (np.pi - 1e-4)

    assert 'stood still' in live_diagnoses(UR, system(UR, at_the_seam))[-1].what


def test_a_recording_that_the_gate_cannot_take_is_told() -> None:
    live = system(UR)
    broken = replace(live, log=replace(live.log, effort=np.full_like(live.log.effort, np.nan)))
    with pytest.raises(DataError):
        from robot_dynid.setting_up.live import gate_findings

        gate_findings(UR, replace(live.log, effort=None))
    assert live_diagnoses(UR, broken)


def test_the_verdict_counts_and_names_the_worst() -> None:
    some = [Diagnosis('a', OK, 'x', 'good'), Diagnosis('b', WARN, 'x', 'so so'),
            Diagnosis('c', ERROR, 'x', 'bad')]
    assert verdict(some[:1]) == '1 checks, all ok'
    assert verdict(some) == '3 checks: 1 error, 1 warning; first: c: bad'


def test_a_recording_that_cannot_be_read_is_told_with_a_remedy(tmp_path: Path) -> None:
    header = 'time,position.joint_1,position.joint_2'
    (empty, silent) = (tmp_path / name for name in ('empty.csv', 'silent.csv'))
    empty.write_text(f'{header}\n')
    silent.write_text(f'{header}\n0.0,1.0,2.0\n0.1,1.0,2.0\n')
    told = list(recording_diagnoses(load_robot('elastic_2r'), [str(empty), str(silent)]))
    assert [(one.name, one.level, one.where, one.what, one.remedy) for one in told] == [
        ('recording', ERROR, str(empty), 'has no rows of numbers below its header',
         'correct the recording, or use another one'),
        ('recording', ERROR, str(silent), 'holds no effort',
         'record JointState.effort, or name a topic that carries it')]


def geared(*elastic: int, change: Callable[[RawLog], RawLog] = lambda log: log
           ) -> list[tuple[Any, str, str]]:
    """Return level, place and text of what is told of the encoders of an arm with a soft gear.

    Its first motor does not turn with its joint. Joints with these numbers are called elastic.
    """
    robot, log = closed_form_gear.arm(), closed_form_gear.recording()
    assert log.motor_position is not None
    log = replace(log, motor_position=log.motor_position[:, [1, 1]])
    robot = replace(robot, drive=replace(robot.drive, elastic=elastic))
    return [(one.level, one.where, f'{one.what}; {one.remedy}')
            for one in encoder_diagnoses(robot, change(log))]


def test_encoders_of_elastic_joints_are_told_by_whether_they_fit() -> None:
    ((level, where, text),) = geared(1)
    assert (level, where) == (OK, 'gear')
    assert text == ('those of joint_2 follow their joints in size and sign; motor states on the '
                    'joint side do not show whether gear_ratios are right; ')
    ((level, _, text),) = geared(1, change=lambda log: replace(
        log, motor_position=log.motor_position * 40.0))
    assert level is OK and 'in size and sign; joint_2: ' in text and 'joint side' not in text
    refused, other = geared(0)
    assert refused[:2] == (ERROR, 'gear of joint_1') and 'from elastic_joints' in refused[2]
    assert other == (WARN, 'gear', 'joint_2 has motor positions, too; name them in elastic_joints '
                     'if their gears deflect')
    assert [one[:2] for one in geared(0, 1)] == [(ERROR, 'gear of joint_1')]
    assert geared() == [other]


def test_missing_motor_positions_are_told_of_an_elastic_joint_only() -> None:
    ((level, where, text),) = geared(1, change=lambda log: replace(log, motor_position=None))
    assert (level, where) == (ERROR, 'gear') and text.startswith('no motor positions of joint_2;')
    assert geared(change=lambda log: replace(log, motor_position=None)) == []


def test_drive_gains_give_currents_the_size_of_the_torque_of_the_links(tmp_path: Path) -> None:
    """Two recordings by the true gains, one by 10 times those, one too short, one not readable."""
    ones = replace(UR, drive=replace(UR.drive, gains=np.ones(UR.n), gear_ratios=None))
    gains, data = np.array([8.0, 9.0, 12.0, 11.0, 14.0, 10.0]), arrays(UR, True)
    currents = data['effort'] * UR.torque_factors / gains
    log = RawLog('log', UR.joints, data['stamp'], data['position'], data['velocity'], currents)
    paths = [tmp_path / f'{name}.csv' for name in ('first', 'second', 'far', 'short', 'missing')]
    for path, one in zip(paths, (log, log, replace(log, effort=0.1 * currents), replace(
            take(log, slice(0, 300)), effort=100.0 * currents[:300])), strict=False):
        write_csv(path, one)
    found = gains_of_size(ones, [str(path) for path in paths])
    assert found is not None and list(found) == list(UR.joints)
    # the links do not show that of the last joint, which gets the median of fifteen others
    assert list(found.values()) == pytest.approx([*gains[:5], 12.0], rel=0.02)
    assert gains_of_size(ones, [str(path) for path in paths[3:]]) is None
