"""Columns and topics of external wrenches: read, joined, refused with one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import STORE
from rosbags.rosbag2 import StoragePlugin, Writer
from wrist_plant import write_pushed

from robot_dynid import DataError, RawLog, RobotModel, external_torque, load_log, load_robot
from robot_dynid.io.cdr import JOINT_STATE, WRENCH, encode_joint_states
from robot_dynid.io.csv import read_wrenches, write_csv
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.types import FloatArray

TOPIC = '/ft/wrench'
ROBOT = 'urdf: planar_3r.urdf\neffort_kind: torque\nwrenches: {/ft/wrench: LINK}\n'


@pytest.fixture
def arm() -> RobotModel:
    return load_robot('planar_3r')


def run(arm: RobotModel, rows: int = 60, step: float = 0.01) -> tuple[RawLog, FloatArray]:
    """Return a recording, and wrenches (T, 6) at its stamps."""
    time = step * np.arange(rows)
    position = np.sin(time[:, None] + np.arange(arm.n))
    wrench = np.cos(np.outer(time, np.arange(1.0, 7.0))) * 10.0
    return RawLog('run', arm.joints, time, position, np.cos(time[:, None] + np.arange(arm.n)),
                  np.ones((rows, arm.n))), wrench


def test_columns_become_torque_on_the_joints(arm: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(arm)
    link = arm.bodies[1]
    path = write_pushed(tmp_path / 'a.csv', log, link, wrench)
    found = load_log(path, arm)
    expected = external_torque(arm, link, log.position, wrench)
    assert found.external_torque is not None
    np.testing.assert_allclose(found.external_torque, expected, rtol=0.0, atol=1e-6)
    assert not any('not used' in text for text in found.findings)
    other = write_pushed(tmp_path / 'b.csv', log, f'{link}@{arm.base_link}', wrench)
    turned = load_log(other, arm).external_torque
    np.testing.assert_allclose(
        turned, external_torque(arm, link, log.position, wrench, arm.base_link),
        rtol=0.0, atol=1e-6)


def test_wrenches_and_torque_add_up(arm: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(arm)
    more = np.sin(log.position)
    path = write_pushed(tmp_path / 'a.csv', replace(log, external_torque=more), arm.bodies[0],
                        wrench)
    once = write_pushed(tmp_path / 'b.csv', log, arm.bodies[0], wrench)
    alone = load_log(once, arm).external_torque
    assert alone is not None
    np.testing.assert_allclose(load_log(path, arm).external_torque, alone + more,
                               rtol=0.0, atol=1e-6)
    both = write_pushed(tmp_path / 'c.csv', log, arm.bodies[0], wrench)
    head, rest = both.read_text().split('\n', 1)
    names = [f'wrench.{arm.bodies[2]}.{c}' for c in ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')]
    rows = '\n'.join(f'{line},1,2,3,4,5,6' for line in rest.splitlines())
    both.write_text(f'{head},{",".join(names)}\n{rows}\n')
    second = external_torque(
        arm, arm.bodies[2], log.position, np.tile(np.arange(1.0, 7.0), (60, 1)))
    np.testing.assert_allclose(load_log(both, arm).external_torque, alone + second,
                               rtol=0.0, atol=1e-6)


def test_long_tables_have_the_wrench_in_every_piece(
    arm: RobotModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, wrench = run(arm)
    path = write_pushed(tmp_path / 'a.csv', log, arm.bodies[2], wrench)
    expected = load_log(path, arm).external_torque
    monkeypatch.setattr('robot_dynid.files.DIGEST_BYTES', 1000)
    np.testing.assert_allclose(load_log(path, arm).external_torque, expected)
    lost = write_pushed(tmp_path / 'b.csv', log, arm.bodies[2], np.full_like(wrench, np.nan))
    with pytest.raises(DataError, match=r'b.csv: the wrench has no value'):
        load_log(lost, arm)


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('.LINK.fx', '.hand.fx', 'wrench.hand lacks fy, fz, tx, ty, tz: a wrench has fx, fy'),
    ('LINK', 'hand', "columns wrench.hand.*: 'hand' is no moving link: choose one of"),
    ('LINK', 'LINK@world', "columns wrench.LINK@world.*: 'world' is no moving link"),
    ('wrench.LINK.tz', 'old.LINK.tz', 'wrench.LINK lacks tz'),
    ('.fx', '.Fx', r'column wrench.LINK.Fx: a wrench has the columns wrench.<link>.<component>'),
])
def test_wrong_columns_are_named(
    arm: RobotModel, tmp_path: Path, old: str, new: str, message: str
) -> None:
    link = arm.bodies[1]
    log, wrench = run(arm)
    path = write_pushed(tmp_path / 'a.csv', log, link, wrench)
    head, rest = path.read_text().split('\n', 1)
    changed = head.replace(old.replace('LINK', link), new.replace('LINK', link))
    assert changed != head
    path.write_text(f'{changed}\n{rest}')
    with pytest.raises(DataError) as caught:
        load_log(path, arm)
    assert message.replace('LINK', link) in str(caught.value) and str(path) in str(caught.value)


def test_a_wrench_without_numbers_is_refused(arm: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(arm)
    path = write_pushed(tmp_path / 'a.csv', log, arm.bodies[1], np.full_like(wrench, np.nan))
    with pytest.raises(DataError, match=r'a.csv: the wrench has no value at the time of any'):
        load_log(path, arm)


def test_a_state_without_a_wrench_is_named(arm: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(arm)
    path = write_pushed(tmp_path / 'a.csv', log, arm.bodies[1], wrench)
    found = read_wrenches(path, arm, log.position)
    assert found is not None
    np.testing.assert_allclose(found, external_torque(arm, arm.bodies[1], log.position, wrench),
                               rtol=0.0, atol=1e-6)
    wrench[7, 2] = wrench[9, 0] = np.nan
    path = write_pushed(tmp_path / 'b.csv', log, arm.bodies[1], wrench)
    with pytest.raises(DataError, match=r'b\.csv: state 8: the wrench is not finite'):
        read_wrenches(path, arm, log.position)
    write_csv(tmp_path / 'c.csv', log)
    assert read_wrenches(tmp_path / 'c.csv', arm, log.position) is None


def wrench_messages(stamps: FloatArray, wrench: FloatArray, frame: str) -> list[tuple[int, bytes]]:
    """Return messages (time of receipt [ns], CDR) as rosbags writes them."""
    kinds = STORE.types
    found = []
    for stamp, values in zip((10**18 + np.round(stamps * 1e9).astype(np.int64)).tolist(), wrench,
                             strict=True):
        vector = kinds['geometry_msgs/msg/Vector3']
        header = kinds['std_msgs/msg/Header'](
            kinds['builtin_interfaces/msg/Time'](*divmod(stamp, 10**9)), frame)
        message = kinds[WRENCH](header, kinds['geometry_msgs/msg/Wrench'](
            vector(*values[:3]), vector(*values[3:])))
        found.append((stamp, bytes(STORE.serialize_cdr(message, WRENCH))))
    return found


def bag(folder: Path, log: RawLog, *topics: tuple[str, list[tuple[int, bytes]]]) -> Path:
    """Write a bag of joint states and wrenches, by time of receipt."""
    stamps = 10**18 + np.round(log.time * 1e9).astype(np.int64)
    states = encode_joint_states(log.joints, stamps, (log.position, log.velocity, log.effort))
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        joints = writer.add_connection('/joint_states', JOINT_STATE, typestore=STORE)
        messages = [(int(t), joints, data) for t, data in zip(stamps, states, strict=True)]
        for name, own in topics:
            connection = writer.add_connection(name, WRENCH, typestore=STORE)
            messages += [(t, connection, data) for t, data in own]
        for received, connection, data in sorted(messages, key=lambda m: m[0]):
            writer.write(connection, received, data)
    return folder


@pytest.fixture
def with_topic(tmp_path: Path, arm: RobotModel) -> RobotModel:
    path = tmp_path / 'planar_3r.yaml'
    path.write_text(ROBOT.replace('LINK', arm.bodies[-1]))
    return load_robot(path)


@pytest.mark.parametrize('frame', ['LINK', 'tool0_controller', ''])
def test_a_topic_is_brought_to_the_joint_states(
    with_topic: RobotModel, tmp_path: Path, frame: str
) -> None:
    log, _ = run(with_topic)
    link = with_topic.bodies[-1]
    stamps = np.arange(-0.02, 0.7, 0.004) + 1e-3
    wrench = np.outer(stamps, np.arange(1.0, 7.0)) + 3.0  # between stamps it is linear
    path = bag(tmp_path / 'bag', log, (
        TOPIC, wrench_messages(stamps, wrench, frame.replace('LINK', link))))
    found = load_log(path, with_topic)
    at = np.outer(log.time, np.arange(1.0, 7.0)) + 3.0
    np.testing.assert_allclose(
        found.external_torque, external_torque(with_topic, link, log.position, at),
        rtol=0.0, atol=1e-9)
    assert any('read as that of' in text for text in found.findings) == (
        frame == 'tool0_controller')
    assert load_log(path, load_robot('planar_3r')).external_torque is None


def test_a_silent_topic_leaves_no_number(with_topic: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(with_topic)
    heard = (log.time < 0.2) | (log.time > 0.4)
    path = bag(tmp_path / 'bag', log, (
        TOPIC, wrench_messages(log.time[heard], wrench[heard], with_topic.bodies[-1])))
    torque = load_log(path, with_topic).external_torque
    assert torque is not None
    assert np.array_equal(np.isfinite(torque).all(axis=1), heard)


@pytest.mark.parametrize(('name', 'frames', 'message'), [
    ('/other', ('LINK',), 'no WrenchStamped messages on topic /ft/wrench of'),
    (TOPIC, ('BASE',), 'has wrenches in the frame BASE, and the robot YAML says LINK'),
    (TOPIC, ('LINK', 'flange'), 'has wrenches in several frames, LINK, flange'),
])
def test_wrong_topics_are_named(
    with_topic: RobotModel, tmp_path: Path, name: str, frames: tuple[str, ...], message: str
) -> None:
    def named(text: str) -> str:
        return text.replace('LINK', with_topic.bodies[-1]).replace('BASE', with_topic.base_link)

    log, wrench = run(with_topic)
    messages = [one for i, frame in enumerate(frames) for one in wrench_messages(
        log.time[i::len(frames)], wrench[i::len(frames)], named(frame))]
    path = bag(tmp_path / 'bag', log, (name, messages))
    with pytest.raises(DataError) as caught:
        load_log(path, with_topic)
    assert named(message) in str(caught.value)


def test_wrenches_at_other_times_are_refused(with_topic: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(with_topic)
    path = bag(tmp_path / 'bag', log, (
        TOPIC, wrench_messages(log.time + 5.0, wrench, with_topic.bodies[-1])))
    with pytest.raises(DataError, match='the wrench has no value at the time of any position'):
        load_log(path, with_topic)


def test_models_know_the_topics(with_topic: RobotModel) -> None:
    again = robot_from_plain(robot_to_plain(with_topic), 'model.yaml')
    assert again.wrenches == ((TOPIC, with_topic.bodies[-1]),)
    plain = robot_to_plain(replace(with_topic, wrenches=()))
    assert 'wrenches' not in plain and robot_from_plain(plain, 'm.yaml').wrenches == ()


def test_readings_of_a_sensor_are_read_as_they_are(arm: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(arm)
    sensor = replace(arm, wrench_sensor=TOPIC)
    path = bag(tmp_path / 'bag', log, (TOPIC, wrench_messages(log.time, wrench, 'ft_frame')))
    found = load_log(path, sensor)
    np.testing.assert_allclose(found.wrench, wrench)
    assert (found.wrench_frame, found.external_torque) == ('ft_frame', None)
    with pytest.raises(DataError, match=r'no WrenchStamped messages on topic /ft; topics with '
                                        'wrenches: /ft/wrench'):
        load_log(path, replace(arm, wrench_sensor='/ft'))
    write_csv(tmp_path / 'run.csv', replace(log, wrench=wrench, wrench_frame='ft'))
    sensor = replace(arm, wrench_sensor='ft')
    again = load_log(tmp_path / 'run.csv', sensor)
    np.testing.assert_array_equal(again.wrench, wrench)
    part = load_log(f'{tmp_path / "run.csv"}[0.2:0.4]', sensor)
    np.testing.assert_array_equal(part.wrench, wrench[(log.time >= 0.2) & (log.time < 0.4)])


def test_what_is_wrong_with_readings_of_a_sensor_is_named(arm: RobotModel, tmp_path: Path) -> None:
    log, wrench = run(arm)
    by_topic, by_name = replace(arm, wrench_sensor=TOPIC), replace(arm, wrench_sensor='ft')
    half = len(log.time) // 2
    path = bag(tmp_path / 'bag', log, (TOPIC, [
        *wrench_messages(log.time[:half], wrench[:half], 'one'),
        *wrench_messages(log.time[half:], wrench[half:], 'other')]))
    with pytest.raises(DataError, match=r'/ft/wrench has wrenches in several frames, one, other'):
        load_log(path, by_topic)
    path = bag(tmp_path / 'nan', log, (TOPIC, wrench_messages(log.time, np.nan * wrench, 'one')))
    with pytest.raises(DataError, match='the wrench has no value at the time of any position'):
        load_log(path, by_topic)

    part = wrench.copy()
    part[3, 1] = np.nan
    for number, values in enumerate((part, np.nan * wrench)):
        write_csv(tmp_path / f'{number}.csv', replace(
            log, effort=None, wrench=values, wrench_frame='ft'))
    findings = load_log(tmp_path / '0.csv', by_name).findings
    assert any(text.startswith('wrench: NaN values: fy 1; first at t = ') for text in findings)
    assert not any('effort: not recorded' in text for text in findings)
    with pytest.raises(DataError, match='the wrench has no value at the time of any position'):
        load_log(tmp_path / '1.csv', by_name)
