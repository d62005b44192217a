"""io/bag.py: every kind of message that tells states of joints is read as the recording it was
made of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bags import (
    ARRAY,
    CONTROLLER,
    CONTROLLERS,
    DEFINITIONS,
    DYNAMIC,
    FRANKA,
    FRANKA_ROBOT,
    LBR,
    MOTORS,
    Messages,
    header,
    joint_states,
    made,
    stamps,
    store_of,
    write,
)
from mcap.writer import Writer as McapWriter

from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.robot.model import FieldPaths, TopicFields
from robot_dynid.robot.topics import topics_from_options
from robot_dynid.types import RawLog

NAMES = tuple(f'joint{k}' for k in range(1, 8))
COUNT = 40
TIME = stamps(COUNT)
STORAGES = ('mcap', 'sqlite3')


def table(seed: int, joints: int = 7) -> Any:
    return np.random.default_rng(seed).normal(size=(COUNT, joints))


POSITION, VELOCITY, EFFORT, THETA, DTHETA = map(table, range(5))
STORE = store_of(DEFINITIONS)


def named(*words: str) -> Topics:
    roles: dict[str, Any] = dict(topics_from_options(words))
    return Topics(**roles)


def require_close(found: Any, values: Any) -> None:
    np.testing.assert_allclose(found, values, rtol=1e-12)


def require_same(log: RawLog, **channels: Any) -> None:
    np.testing.assert_allclose(log.time, 2e-3 * np.arange(COUNT), rtol=0.0, atol=1e-12)
    for name, values in channels.items():
        found: Any = getattr(log, name)
        if values is None:
            assert found is None, name
        else:
            np.testing.assert_array_equal(found, values, err_msg=name)


def dynamic(names: tuple[str, ...], fields: Any) -> Messages:
    """Return dynamic joint states; ``fields`` gives the labelled values of a joint and row."""
    return DYNAMIC, [(t, made(
        STORE, DYNAMIC, header=header(t), joint_names=list(names), interface_values=[
            {'interface_names': list(fields(k, i)), 'values': list(fields(k, i).values())}
            for i in range(len(names))])) for k, t in enumerate(TIME)]


@pytest.mark.parametrize('storage', [*STORAGES, 'sqlite3 without definitions'])
def test_dynamic_joint_states(tmp_path: Path, storage: str) -> None:
    names = ('force_sensor', *NAMES[::-1], 'finger')

    def fields(k: int, i: int) -> dict[str, float]:
        if i == 0:
            return {'force.x': 1.0, 'force.y': 2.0}
        if i == 8:
            return {'position': 0.1}
        j = 7 - i
        pairs = [('effort', EFFORT[k, j]), ('position', POSITION[k, j]),
                 ('velocity', VELOCITY[k, j])]
        return dict(pairs if i % 2 else pairs[::-1])  # in another order for each joint

    path = write(tmp_path / 'b', {'/dynamic_joint_states': dynamic(names, fields)}, STORE,
                 storage.partition(' ')[0], 'without' not in storage)
    log = read_bag(path, NAMES)
    require_same(log, position=POSITION, velocity=VELOCITY, effort=EFFORT, motor_position=None)
    assert log.findings == ('joint states are taken from topic /dynamic_joint_states',)


def test_values_of_other_names_in_dynamic_joint_states(tmp_path: Path) -> None:
    messages = dynamic(NAMES, lambda k, i: {
        'position': POSITION[k, i], 'motor_current': EFFORT[k, i], 'brake': 1.0})
    path = write(tmp_path / 'b', {'/dynamic_joint_states': messages}, STORE)
    (told,) = [one for one in read_bag(path, NAMES).findings if 'not recorded' in one]
    option = "'effort={topic: /dynamic_joint_states, effort: motor_current}'"
    assert f'/dynamic_joint_states (motor_current): --topic {option}' in told
    log = read_bag(path, NAMES, named(option.strip("'")))
    require_same(log, position=POSITION, effort=EFFORT)
    log = read_bag(path, NAMES, named('{topic: /dynamic_joint_states, effort: {field: '
                                      'motor_current, unit: mA}}'))
    require_close(log.effort, 1e-3 * EFFORT)
    with pytest.raises(DataError, match='no value torque; it has position, motor_current, brake'):
        read_bag(path, NAMES, named('effort={topic: /dynamic_joint_states, effort: torque}'))


def franka_state(store: Any) -> Messages:
    return FRANKA, [(t, made(
        store, FRANKA, header=header(t), q=POSITION[k], dq=VELOCITY[k], tau_J=EFFORT[k],
        theta=THETA[k], dtheta=DTHETA[k], q_d=np.ones(7), robot_mode=2,
        errors={'joint_reflex': k % 2})) for k, t in enumerate(TIME)]


@pytest.mark.parametrize('storage', [*STORAGES, 'ros1', 'ros1 bz2', 'ros1 lz4'])
def test_state_of_franka(tmp_path: Path, storage: str) -> None:
    store = store_of(DEFINITIONS, ros1=storage.startswith('ros1'))
    path = write(tmp_path / 'b', {'/franka_state_controller/franka_states': franka_state(store)},
                 store, storage)
    log = read_bag(path, NAMES)
    require_same(log, position=POSITION, velocity=VELOCITY, effort=EFFORT,
                 motor_position=THETA, motor_velocity=DTHETA)
    assert any('in the order of the joints joint1, joint2' in one for one in log.findings)
    with pytest.raises(DataError, match='have 7 numbers, and the robot 6 joints'):
        read_bag(path, NAMES[:6])


@pytest.mark.parametrize(('storage', 'definitions'), [
    ('mcap', True), ('sqlite3', True), ('sqlite3', False)])
def test_robot_state_of_franka(tmp_path: Path, storage: str, definitions: bool) -> None:
    names, order = list(NAMES[::-1]), slice(None, None, -1)
    messages = [(t, made(
        STORE, FRANKA_ROBOT, header=header(t), measured_joint_state={
            'header': header(t), 'name': names, 'position': POSITION[k, order],
            'velocity': VELOCITY[k, order], 'effort': EFFORT[k, order]},
        desired_joint_state={'name': names, 'position': np.ones(7)},
        measured_joint_motor_state={
            'name': names, 'position': THETA[k, order], 'velocity': DTHETA[k, order]},
        tau_ext_hat_filtered={'name': names, 'effort': np.ones(7)}))
        for k, t in enumerate(TIME)]
    path = write(tmp_path / 'b', {'/franka_robot_state_broadcaster/robot_state': (
        FRANKA_ROBOT, messages)}, STORE, storage, definitions)
    require_same(read_bag(path, NAMES), position=POSITION, velocity=VELOCITY, effort=EFFORT,
                 motor_position=THETA, motor_velocity=DTHETA)
    both = write(tmp_path / 'c', {
        '/joint_states': joint_states(STORE, TIME, NAMES, POSITION, None, EFFORT),
        '/robot_state': (FRANKA_ROBOT, messages)}, STORE, storage)
    log = read_bag(both, NAMES, named('motor_states=/robot_state'))
    require_same(log, position=POSITION, effort=EFFORT, motor_position=THETA,
                 motor_velocity=DTHETA)
    log = read_bag(both, NAMES, named(
        "effort={topic: /robot_state, effort: 'desired_joint_state.position'}"))
    require_same(log, position=POSITION, effort=np.ones((COUNT, 7)), motor_position=None)


def controller(
    store: Any, kind: str, release: str, effort: Any, names: tuple[str, ...] = NAMES
) -> Messages:
    there = CONTROLLERS[release]
    reference = 'reference' if 'reference' in there else 'desired'
    return kind, [(t, made(
        store, kind, header=header(t), joint_names=list(names),
        **{reference: {'positions': POSITION[k] + 1.0, 'velocities': VELOCITY[k]}},
        **({'output': {'effort': effort[k]}} if 'output' in there else {})))
        for k, t in enumerate(TIME)]


@pytest.mark.parametrize(('storage', 'definitions', 'release'), [
    *((*storage, release) for release in CONTROLLERS if release != 'ros1'
      for storage in (('mcap', True), ('sqlite3', True), ('sqlite3', False))),
    ('ros1', True, 'ros1')])
def test_reference_and_effort_of_a_controller(
    tmp_path: Path, storage: str, definitions: bool, release: str
) -> None:
    store = store_of({CONTROLLER: CONTROLLERS[release]}, ros1=storage == 'ros1')
    path = write(tmp_path / 'b', {
        '/joint_states': joint_states(store, TIME, NAMES, POSITION, VELOCITY),
        '/arm/controller_state': controller(store, CONTROLLER, release, EFFORT)},
        store, storage, definitions)
    log = read_bag(path, NAMES)
    # without definitions, messages of Humble can be read whole, of others only what comes first
    whole = definitions or release == 'humble'
    effort = EFFORT if 'output' in CONTROLLERS[release] and whole else None
    require_same(log, position=POSITION, velocity=VELOCITY, reference_position=POSITION + 1.0,
                 effort=effort)
    assert any('what it commands, not what is measured' in one for one in log.findings) == (
        effort is not None)


def test_effort_of_joint_states_comes_before_that_of_a_controller(tmp_path: Path) -> None:
    store = store_of({CONTROLLER: CONTROLLERS['jazzy']})
    states = joint_states(store, TIME, NAMES, POSITION, VELOCITY, EFFORT)
    output = controller(store, CONTROLLER, 'jazzy', EFFORT + 1.0)
    log = read_bag(write(tmp_path / 'b', {'/joint_states': states, '/a/state': output}, store),
                   NAMES)
    require_same(log, effort=EFFORT)
    zero = joint_states(store, TIME, NAMES, POSITION, VELOCITY, 0.0 * EFFORT)
    log = read_bag(write(tmp_path / 'c', {'/joint_states': zero, '/a/state': output}, store),
                   NAMES)
    require_same(log, effort=EFFORT + 1.0)
    log = read_bag(write(tmp_path / 'd', {
        '/joint_states': zero, '/a/state': output, '/b/state': output}, store), NAMES)
    require_same(log, effort=0.0 * EFFORT)
    assert any(one.startswith('effort: 2 controllers (/a/state, /b/state)')
               for one in log.findings)


def lbr(store: Any) -> Messages:
    return LBR, [(t + 5_000_000, made(
        store, LBR, measured_joint_position=POSITION[k], measured_torque=EFFORT[k],
        external_torque=EFFORT[k] + 9.0, time_stamp_sec=int(t) // 10**9,
        time_stamp_nano_sec=int(t) % 10**9)) for k, t in enumerate(TIME)]


@pytest.mark.parametrize('storage', STORAGES)
def test_read_bag_reads_any_message_by_the_paths_of_its_fields(
    tmp_path: Path, storage: str
) -> None:
    path = write(tmp_path / 'b', {'/lbr/state': lbr(STORE)}, STORE, storage)
    given = '{topic: /lbr/state, position: measured_joint_position, effort: measured_torque'
    log = read_bag(path, NAMES, named(f'{given}}}'))
    require_same(log, position=POSITION, effort=EFFORT, velocity=None)
    assert any('have no header stamp' in one for one in log.findings)
    log = read_bag(path, NAMES, named(
        f'{given}, stamp: [time_stamp_sec, time_stamp_nano_sec]}}'))
    require_same(log, position=POSITION, effort=EFFORT)
    assert not any('have no header stamp' in one for one in log.findings)
    with pytest.raises(DataError, match=r"give --topic '\{topic: /lbr/state, position: "
                       'measured_joint_position, effort: measured_torque, stamp: '
                       r'\[time_stamp_sec, time_stamp_nano_sec\]'):
        read_bag(path, NAMES)
    with pytest.raises(DataError, match=r'no field torque with numbers; it has .*torque \(7\)'):
        read_bag(path, NAMES, named('{topic: /lbr/state, position: torque}'))
    with pytest.raises(DataError, match='is of type lbr_fri_idl/msg/LBRState: select its fields'):
        read_bag(path, NAMES, named('/lbr/state'))
    with pytest.raises(DataError, match='the robot 5 joints'):
        read_bag(path, NAMES[:5], named(f'{given}}}'))


def test_a_type_that_nobody_defines_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / 'b', {'/lbr/state': lbr(STORE)}, STORE, 'sqlite3', False)
    topics = named('{topic: /lbr/state, position: measured_joint_position}')
    with pytest.raises(DataError, match=r'does not hold the definition of lbr_fri_idl/msg/LBRState'
                       '.*ros2 bag convert'):
        read_bag(path, NAMES, topics)
    with pytest.raises(DataError, match=r'/lbr/state: .*does not hold the definition'):
        read_bag(path, NAMES)
    package = tmp_path / 'share' / 'lbr_fri_idl' / 'msg'
    package.mkdir(parents=True)
    (package / 'LBRState.msg').write_text(DEFINITIONS[LBR].replace('{n}', '7'))
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    require_same(read_bag(path, NAMES, topics), position=POSITION)


IDL = """================================================================================
IDL: lbr_fri_idl/msg/LBRState
#include "nothing.idl"
module lbr_fri_idl { module msg {
  typedef double double__7[7];
  @verbatim (language="comment", text="state of an arm")
  struct LBRState {
    int8 session_state; int8 quality;
    double__7 measured_joint_position; double__7 measured_torque; double__7 external_torque;
    uint32 time_stamp_nano_sec; uint32 time_stamp_sec;
  };
}; };
"""


def test_definitions_in_idl(tmp_path: Path) -> None:
    """As packages have them that are made of .idl files."""
    with (tmp_path / 'b.mcap').open('wb') as file:
        writer: Any = McapWriter(file)
        writer.start('ros2', 'test')
        channel = writer.register_channel('/lbr/state', 'cdr', writer.register_schema(
            LBR, 'ros2idl', IDL.encode()))
        for received, message in lbr(STORE)[1]:
            writer.add_message(channel, int(received), bytes(STORE.serialize_cdr(message, LBR)),
                               int(received))
        writer.finish()
    require_same(read_bag(tmp_path / 'b.mcap', NAMES, named(
        '{topic: /lbr/state, position: measured_joint_position, effort: measured_torque}')),
        position=POSITION, effort=EFFORT)


@pytest.mark.parametrize('count', [5, 6])
@pytest.mark.parametrize('profile', ['ros2', 'ros1'])
def test_a_message_without_fields_takes_a_byte_in_ros_2_alone(
    profile: str, count: int, tmp_path: Path
) -> None:
    """Constants are no fields. With five bytes more the doubles begin at the eighth byte."""
    rule = '=' * 80
    text = (f'std_msgs/Empty nothing\nmy_msgs/Two two\nuint8[{count}] bytes\nfloat64[7] position\n'
            f'{rule}\nMSG: std_msgs/Empty\nuint8 CONSTANT=3\n{rule}\nMSG: my_msgs/Two\nuint8 a\n'
            'uint8 b\n')
    begin = bytes([7] * (2 + count)) if profile == 'ros1' else (
        b'\0\1\0\0' + bytes([7] * (3 + count)).ljust(8 if count == 5 else 16, b'\0'))
    kind, encoding = ('my_msgs/Own', 'ros1') if profile == 'ros1' else ('my_msgs/msg/Own', 'cdr')
    with (tmp_path / 'b.mcap').open('wb') as file:
        writer: Any = McapWriter(file)
        writer.start(profile, 'test')
        channel = writer.register_channel('/own', encoding, writer.register_schema(
            kind, f'{profile}msg', text.encode()))
        for t, row in zip(TIME.tolist(), POSITION, strict=True):
            writer.add_message(channel, t, begin + row.tobytes(), t)
        writer.finish()
    log = read_bag(tmp_path / 'b.mcap', NAMES, named('{topic: /own, position: position}'))
    np.testing.assert_array_equal(log.position, POSITION)


@pytest.mark.parametrize(('encoding', 'text'), [
    ('ros2msg', b'float64[ broken'), ('ros2idl', b'module broken {')])
def test_a_definition_that_cannot_be_parsed_is_presumed_where_the_type_is_known(
    encoding: str, text: bytes
) -> None:
    known, other = Definitions(), Definitions()
    known.add(FRANKA_ROBOT, encoding, text)
    other.add('my_msgs/msg/Own', encoding, text)
    names = [name for name, _ in known.fields(FRANKA_ROBOT)]
    assert names[0] == 'header' and 'measured_joint_state' in names
    assert known.presumed == {FRANKA_ROBOT}
    with pytest.raises(DataError, match='my_msgs/msg/Own in the bag cannot be parsed'):
        other.fields('my_msgs/msg/Own')


def test_messages_in_messages_and_parts_of_arrays(tmp_path: Path) -> None:
    angle = POSITION.astype(np.float32)
    motors = MOTORS, [(t + 7, made(
        STORE, MOTORS, stamp=1e-9 * (t - TIME[0]), mode='x' * (k % 3), states=[
            {'name': f'm{i}', 'angle': angle[k, i], 'torques': [EFFORT[k, i], 5.0]}
            for i in range(7)])) for k, t in enumerate(TIME)]
    stacked = ARRAY, [(t, made(STORE, ARRAY, data=np.r_[POSITION[k], EFFORT[k], 8.0]))
                      for k, t in enumerate(TIME)]
    path = write(tmp_path / 'b', {'/motors': motors, '/stacked': stacked}, STORE)
    log = read_bag(path, NAMES, named(
        "{topic: /motors, position: 'states[].angle', stamp: stamp, names: robot}"))
    require_same(log, position=angle)
    log = read_bag(path, NAMES, named(
        "{topic: /stacked, position: 'data[0:7]', effort: 'data[7:14]'}"))
    require_same(log, position=POSITION, effort=EFFORT)
    log = read_bag(path, NAMES[:2], named(
        "{topic: /stacked, position: ['data[1]', 'data[-2]']}"))
    require_same(log, position=np.column_stack([POSITION[:, 1], EFFORT[:, 6]]))
    log = read_bag(path, ('m6', 'm0'), named(
        '{topic: /motors, position: states.angle, names: states.name}'))
    require_same(log, position=angle[:, [6, 0]])
    with pytest.raises(DataError, match=r'has no field states.label with names; it has'):
        read_bag(path, NAMES, named('{topic: /motors, position: states.angle, '
                                    'names: states.label}'))


def test_effort_of_another_topic(tmp_path: Path) -> None:
    states = joint_states(STORE, TIME, NAMES, POSITION, VELOCITY)
    torques = ARRAY, [(t, made(STORE, ARRAY, data=EFFORT[k])) for k, t in enumerate(TIME)]
    path = write(tmp_path / 'b', {'/joint_states': states, '/torques': torques}, STORE)
    (told,) = [one for one in read_bag(path, NAMES).findings if 'not recorded' in one]
    assert told.endswith('it may be on: /torques (data): --topic effort=/torques')
    require_same(read_bag(path, NAMES, named('effort=/torques')), effort=EFFORT)
    alone = write(tmp_path / 'c', {'/joint_states': states}, STORE)
    (told,) = [one for one in read_bag(alone, NAMES).findings if 'not recorded' in one]
    assert 'no other topic has as many numbers as joints' in told


@pytest.mark.parametrize('storage', ['ros1', 'ros1 bz2', 'ros1 lz4'])
def test_joint_states_of_ros_1(tmp_path: Path, storage: str) -> None:
    store = store_of(ros1=True)
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        store, TIME, NAMES[::-1], POSITION[:, ::-1], VELOCITY[:, ::-1], EFFORT[:, ::-1])},
        store, storage)
    log = read_bag(path, NAMES)
    require_same(log, position=POSITION, velocity=VELOCITY, effort=EFFORT)
    assert log.findings == ()


def test_messages_of_ros_1_in_mcap(tmp_path: Path) -> None:
    """As mcap convert makes them of a bag of ROS 1."""
    store = store_of(DEFINITIONS, ros1=True)
    with (tmp_path / 'b.mcap').open('wb') as file:
        writer: Any = McapWriter(file)
        writer.start('ros1', 'mcap')
        for topic, (kind, messages) in {
                '/joint_states': joint_states(store, TIME, NAMES, POSITION, VELOCITY),
                '/franka_states': franka_state(store)}.items():
            text, _ = store.generate_msgdef(kind, ros_version=1)
            schema = writer.register_schema(kind.replace('/msg/', '/'), 'ros1msg', text.encode())
            channel = writer.register_channel(topic, 'ros1', schema)
            for received, message in messages:
                writer.add_message(channel, int(received), bytes(store.serialize_ros1(
                    message, kind)), int(received))
        writer.finish()
    log = read_bag(tmp_path / 'b.mcap', NAMES, named('effort=/franka_states'))
    require_same(log, position=POSITION, velocity=VELOCITY, effort=EFFORT)


def test_a_chunk_of_ros_1_that_unpacks_to_far_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(ros1=True)
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        store, TIME, NAMES, POSITION, VELOCITY, EFFORT)}, store, 'ros1 bz2')
    monkeypatch.setattr('robot_dynid.io.messages.rosbag1.CHUNK_BYTES', 1000)
    with pytest.raises(DataError, match='it unpacks to more than 1000 bytes'):
        read_bag(path, NAMES)


@pytest.mark.parametrize(('damage', 'told'), [
    (lambda data: data[:len(data) // 2], 'rosbag reindex b.bag'),
    (lambda data: data[:-9], 'rosbag reindex b.bag'),
    (lambda data: data.replace(b'index_pos=', b'index_pos=' + bytes(8), 1)[:len(data)],
     'rosbag reindex'),
    (lambda data: b'#ROSBAG V1.2\n' + data, 'not a ROS 1 bag of version 2.0'),
    (lambda data: b'', 'b.bag: empty, or not'),
])
def test_damaged_bags_of_ros_1_say_what_to_do(tmp_path: Path, damage: Any, told: str) -> None:
    store = store_of(ros1=True)
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        store, TIME, NAMES, POSITION, VELOCITY, EFFORT)}, store, 'ros1')
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=told):
        read_bag(path, NAMES)


def test_a_damaged_chunk_of_ros_1_is_told(tmp_path: Path) -> None:
    store = store_of(ros1=True)
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        store, TIME, NAMES, POSITION, VELOCITY, EFFORT)}, store, 'ros1 bz2')
    data = bytearray(path.read_bytes())
    data[data.index(b'BZh') + 40] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match='a chunk is damaged'):
        read_bag(path, NAMES)


@pytest.mark.parametrize(('there', 'note'), [
    ([f'left_{name}' for name in NAMES], r'left_{joint}'),
    ([f'ur10e/{name}' for name in NAMES], r'ur10e/{joint}'),
    ([f'{name}_l' for name in NAMES], r'{joint}_l'),
    ([name.removeprefix('joint') for name in NAMES], 'without joint'),
])
def test_read_bag_removes_one_prefix_or_suffix_of_all_joint_names(
    tmp_path: Path, there: list[str], note: str
) -> None:
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        STORE, TIME, [*there, 'finger'], np.c_[POSITION, POSITION[:, 0]], None,
        np.c_[EFFORT, EFFORT[:, 0]])}, STORE)
    log = read_bag(path, NAMES)
    require_same(log, position=POSITION, effort=EFFORT)
    assert log.findings == (f'topic /joint_states: joints are named {note} there',)


def test_two_prefixes_are_asked_about(tmp_path: Path) -> None:
    names = [f'{side}_{name}' for side in ('left', 'right') for name in NAMES]
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        STORE, TIME, names, np.c_[POSITION, VELOCITY], None, np.c_[EFFORT, EFFORT])}, STORE)
    with pytest.raises(DataError, match=r"match in 2 ways, left_\{joint\}, right_\{joint\}; "
                       r"select.*: --topic \"\{topic: /joint_states, names: 'left_\{joint\}'\}\""):
        read_bag(path, NAMES)
    log = read_bag(path, NAMES, named("{topic: /joint_states, names: 'right_{joint}'}"))
    require_same(log, position=VELOCITY)


def test_joints_of_a_pattern_come_before_others_of_the_robots_names(tmp_path: Path) -> None:
    names = [*NAMES, *(f'right_{name}' for name in NAMES)]
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        STORE, TIME, names, np.c_[POSITION, VELOCITY])}, STORE)
    require_same(read_bag(path, NAMES), position=POSITION)
    require_same(read_bag(path, NAMES, named("{topic: /joint_states, names: 'right_{joint}'}")),
                 position=VELOCITY)


def test_read_bag_removes_no_prefix_when_a_joint_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        STORE, TIME, [f'left_{name}' for name in NAMES[:6]], POSITION[:, :6])}, STORE)
    with pytest.raises(DataError, match=r'no joints joint1, .* and joint7; it has left_joint1'):
        read_bag(path, NAMES)


def test_joint_states_without_names_are_taken_in_order_only_when_told(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/joint_states': joint_states(
        STORE, TIME, [], POSITION, VELOCITY, EFFORT)}, STORE)
    with pytest.raises(DataError, match=r"order: --topic '\{topic: /joint_states, names: "):
        read_bag(path, NAMES)
    topics = named('{topic: /joint_states, names: robot}')
    log = read_bag(path, NAMES, topics)
    require_same(log, position=POSITION, velocity=VELOCITY, effort=EFFORT)
    assert any('in the order of the joints joint1' in one for one in log.findings)
    with pytest.raises(DataError, match='have 7 numbers, and the robot 6 joints'):
        read_bag(path, NAMES[:6], topics)
    with pytest.raises(DataError, match='read it with a robot'):
        read_bag(path)


def test_the_topic_with_joints_and_effort_is_taken_and_named(tmp_path: Path) -> None:
    bare = joint_states(STORE, TIME, NAMES, POSITION + 1.0)
    whole = joint_states(STORE, TIME, NAMES, POSITION, VELOCITY, EFFORT)
    other = joint_states(STORE, TIME, ('a', 'b'), POSITION[:, :2], None, EFFORT[:, :2])
    path = write(tmp_path / 'b', {
        '/joint_states': bare, '/franka/joint_states': whole, '/gripper/joint_states': other,
        '/joint_commands': whole}, STORE)
    log = read_bag(path, NAMES)
    require_same(log, position=POSITION, velocity=VELOCITY, effort=EFFORT)
    assert log.findings == ('joint states are taken from topic /franka/joint_states, because '
                            '/joint_states has no effort',)
    with pytest.raises(DataError, match=r'several JointState topics.*: /l with joint1.*; /r with '
                       r'joint1.*--topic /l'):
        read_bag(write(tmp_path / 'c', {'/l': whole, '/r': whole, '/x': bare}, STORE), NAMES)
    log = read_bag(tmp_path / 'c', NAMES, Topics('/r'))
    require_same(log, position=POSITION)
    log = read_bag(path, NAMES, named('/franka/joint_states'))
    assert log.findings == ('joint states are taken from topic /franka/joint_states',)
    log = read_bag(write(tmp_path / 'd', {'/joint_states': other, '/arm': bare}, STORE), NAMES)
    require_same(log, position=POSITION + 1.0, effort=None)
    assert log.findings[0] == ('joint states are taken from topic /arm, because /joint_states has '
                               'other joints')


@pytest.mark.parametrize(('rows', 'ratio'), [
    (slice(None, None, 4), 4.0), (slice(None, None, 2), 0.0),
    (slice(2, None, 2), COUNT / (COUNT // 2 - 1))])
def test_another_topic_with_the_same_joints_more_than_twice_as_often_is_named(
    tmp_path: Path, rows: slice, ratio: float
) -> None:
    slow = joint_states(STORE, TIME[rows], NAMES, POSITION[rows], None, EFFORT[rows])
    fast = joint_states(STORE, TIME, NAMES, POSITION, VELOCITY, EFFORT)
    path = write(tmp_path / 'b', {'/joint_states': slow, '/franka/joint_states': fast}, STORE)
    log = read_bag(path, NAMES)
    np.testing.assert_array_equal(log.position, POSITION[rows])
    assert log.findings == ((f'topic /franka/joint_states has the same joints {ratio:.3g} times '
                             'as often: --topic /franka/joint_states takes it',) if ratio else ())


def test_rows_of_a_gripper_on_the_same_topic_are_told(tmp_path: Path) -> None:
    kind, arm = joint_states(STORE, TIME, NAMES, POSITION, VELOCITY, EFFORT)
    _, gripper = joint_states(STORE, TIME + 500_000, ('finger',), POSITION[:, :1])
    mixed = sorted((*arm, *gripper), key=lambda one: one[0])
    log = read_bag(write(tmp_path / 'b', {'/joint_states': (kind, mixed)}, STORE), NAMES)
    require_same(log, position=POSITION, effort=EFFORT)
    assert log.findings == (f'/joint_states: {COUNT} messages have none of the joints, but '
                            'finger, and were left out',)


def test_units_and_factors_of_fields(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/lbr/state': lbr(STORE)}, STORE)
    log = read_bag(path, NAMES, named(
        '{topic: /lbr/state, position: {field: measured_joint_position, unit: deg}, effort: '
        '{field: measured_torque, unit: mN m, factor: [1, -1, 1, 1, 1, 1, 2]}}'))
    require_close(log.position, np.deg2rad(POSITION))
    require_close(log.effort, 1e-3 * EFFORT * [1, -1, 1, 1, 1, 1, 2])
    for field, told in (('unit: Nm', "unit 'Nm': choose one of angle, length"),
                        ('unit: mile', 'choose one of'), ('factor: no', 'factor'),
                        ('sign: 1', 'must be the path of a field')):
        with pytest.raises(UsageError, match=told):
            named(f'{{topic: /a, position: {{field: q, {field}}}}}')
    with pytest.raises(DataError, match='3 factors'):
        read_bag(path, NAMES, named('{topic: /lbr/state, position: {field: '
                                    'measured_joint_position, factor: [1, 2, 3]}}'))


@pytest.mark.parametrize('stamped', ['states', 'efforts'])
def test_topics_with_and_without_stamps_are_brought_to_one_clock(
    tmp_path: Path, stamped: str
) -> None:
    """As in a simulation, whose stamps begin at zero, messages without a header are received."""
    simulated = TIME - TIME[0] + 10**9
    late = 3_000_000
    states = joint_states(STORE, simulated if stamped == 'states' else 0 * TIME, NAMES, POSITION)
    efforts = joint_states(STORE, simulated, NAMES, None, None, EFFORT) \
        if stamped == 'efforts' else (ARRAY, [(t, made(STORE, ARRAY, data=EFFORT[k]))
                                              for k, t in enumerate(TIME)])
    path = write(tmp_path / 'b', {
        name: (kind, [(t + late, message) for t, (_, message) in zip(TIME, messages, strict=True)])
        for name, (kind, messages) in (('/joint_states', states), ('/tau', efforts))}, STORE)
    require_same(read_bag(path, NAMES, named('effort=/tau')), position=POSITION, effort=EFFORT)


def test_read_bag_reads_several_channels_from_one_topic(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/lbr/state': lbr(STORE)}, STORE)
    log = read_bag(path, NAMES, named(
        '{topic: /lbr/state, position: measured_joint_position}',
        'effort={topic: /lbr/state, effort: measured_torque}',
        'joint_torques={topic: /lbr/state, effort: external_torque}'))
    require_same(log, position=POSITION, effort=EFFORT, joint_torque=EFFORT + 9.0)


def test_paths_of_python(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/lbr/state': lbr(STORE)}, STORE)
    log = read_bag(path, NAMES, Topics(TopicFields('/lbr/state', (
        ('position', FieldPaths(('measured_joint_position',))),))))
    require_same(log, position=POSITION)
    assert SimpleNamespace(joints=NAMES).joints == log.joints


def test_a_new_kind_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robot_dynid.io.messages import kinds

    monkeypatch.setitem(kinds.MESSAGE_KINDS, LBR, kinds.Kind(channels={
        'position': ('measured_joint_position',), 'effort': ('measured_torque',)}))
    path = write(tmp_path / 'b', {'/lbr/state': lbr(STORE)}, STORE)
    monkeypatch.setattr('robot_dynid.io.storage.bag_batches.__defaults__', (tuple(
        kinds.MESSAGE_KINDS),))
    require_same(read_bag(path, NAMES), position=POSITION, effort=EFFORT)


def test_commands_are_taken_only_when_they_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/joint_commands': joint_states(
        STORE, TIME, NAMES, POSITION, VELOCITY, EFFORT)}, STORE)
    with pytest.raises(DataError, match=r'named like commands; .*: --topic /joint_comm'):
        read_bag(path, NAMES)
    require_same(read_bag(path, NAMES, named('/joint_commands')), position=POSITION)


#: fields of a driver, torques among them whose names end like those of positions
DOOSAN = store_of({'dsr_msgs2/msg/RobotState': ''.join(f'float64[7] {name}\n' for name in (
    'target_posj', 'external_torque', 'current_posj', 'current_velj', 'actual_ejt', 'actual_jts',
    'actual_mc'))})


@pytest.mark.parametrize(('topics', 'told'), [
    ({'/joint_states': joint_states(STORE, (), NAMES, None)},
     '/joint_states has no messages: record while the driver runs'),
    ({'/x': (ARRAY, [(TIME[0], made(STORE, ARRAY, data=np.ones(7)))])},
     '/x has 7 numbers in data'),
    ({'/x': ('std_msgs/msg/String', [(TIME[0], made(STORE, 'std_msgs/msg/String'))])},
     'record the JointState topic of the driver'),
    ({'/state': ('dsr_msgs2/msg/RobotState', [
        (TIME[0], made(DOOSAN, 'dsr_msgs2/msg/RobotState'))])},
     r"--topic '\{topic: /state, position: current_posj, velocity: current_velj, "
     r"effort: actual_jts\}'"),
    ({'/motors': (MOTORS, [(TIME[0], made(STORE, MOTORS, states=[
        {'name': name, 'angle': 1.0} for name in NAMES]))])},
     r"--topic '\{topic: /motors, position: states\[\].angle, names: states\[\].name\}'"),
])
def test_bags_without_joint_states_say_what_is_there(
    tmp_path: Path, topics: Any, told: str
) -> None:
    path = write(tmp_path / 'b', topics, DOOSAN if '/state' in topics else STORE)
    with pytest.raises(DataError, match=f'no JointState messages; topics are.*{told}.*'
                       f'robot-dynid topics .*b lists all fields'):
        read_bag(path, NAMES)


def test_a_joint_without_a_value_has_none(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/dynamic_joint_states': dynamic(NAMES, lambda k, i: {
        'position': POSITION[k, i], **({'effort': EFFORT[k, i]} if i else {})})}, STORE)
    log = read_bag(path, NAMES)
    require_same(log, position=POSITION, effort=np.c_[np.full(COUNT, np.nan), EFFORT[:, 1:]])


def test_a_single_joint_has_a_prefix_only_up_to_a_mark(tmp_path: Path) -> None:
    for name, matches in (('left_axis', True), ('taxis', False)):
        path = write(tmp_path / name, {'/joint_states': joint_states(
            STORE, TIME, (name,), POSITION[:, :1])}, STORE)
        if matches:
            require_same(read_bag(path, ('axis',)), position=POSITION[:, :1])
        else:
            with pytest.raises(DataError, match='no joint axis; it has taxis'):
                read_bag(path, ('axis',))


def test_an_effort_topic_of_zeros_is_not_replaced_by_what_a_controller_commands(
    tmp_path: Path
) -> None:
    store = store_of({CONTROLLER: CONTROLLERS['jazzy']})
    path = write(tmp_path / 'b', {
        '/joint_states': joint_states(store, TIME, NAMES, POSITION),
        '/tau': joint_states(store, TIME, NAMES, None, None, 0.0 * EFFORT),
        '/a/state': controller(store, CONTROLLER, 'jazzy', EFFORT)}, store)
    require_same(read_bag(path, NAMES, named('effort=/tau')), effort=0.0 * EFFORT)


def test_the_field_with_as_many_numbers_as_joints_is_the_effort(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {
        '/joint_states': joint_states(STORE, TIME, NAMES[:2], POSITION[:, :2]),
        '/motors': (MOTORS, [(t, made(STORE, MOTORS, states=[
            {'angle': 9.0, 'torques': EFFORT[k, :2]}])) for k, t in enumerate(TIME)])}, STORE)
    require_same(read_bag(path, NAMES[:2], named('effort=/motors')), effort=EFFORT[:, :2])
    log = read_bag(path, NAMES[:1], named("effort={topic: /motors, effort: 'states.torques[-1]'}"))
    require_same(log, effort=EFFORT[:, 1:2])


def test_messages_without_joints_are_no_states(tmp_path: Path) -> None:
    path = write(tmp_path / 'b', {'/joint_states': joint_states(STORE, TIME, (), None)}, STORE)
    with pytest.raises(DataError, match='has no messages with joints'):
        read_bag(path)
    with pytest.raises(DataError, match=r'no joints joint1, .*; its messages name no joints$'):
        read_bag(path, NAMES)
