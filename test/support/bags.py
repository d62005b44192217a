"""Bags written by rosbags, by our writer, and record by record; a disk without room for them.

rosbags writes joint states and messages of any type: ROS 2 in mcap and sqlite3, and ROS 1. mcap
files made record by record have every checksum or none, and what is wrong with them.
Source: MCAP format specification, version 0.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lz4.frame
import numpy as np
import pytest
from rosbags.rosbag1 import Writer as Rosbag1Writer
from rosbags.rosbag2 import CompressionFormat, StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import zstd
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robot_dynid.io import bag_writer
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, encode_joint_states
from robot_dynid.types import FloatArray

STORE = get_typestore(Stores.ROS2_HUMBLE)
PLUGINS = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}
FILES = {'mcap': '.mcap', 'sqlite3': '.db3'}
START = 1_700_000_000_000_000_000


def message(names, stamp, position, velocity=(), effort=(), frame='base'):
    """Return one JointState as rosbags knows it."""
    types = STORE.types
    time = types['builtin_interfaces/msg/Time'](*divmod(int(stamp), 10**9))
    header = types['std_msgs/msg/Header'](time, frame)
    numbers = [np.array(part, dtype=np.float64) for part in (position, velocity, effort)]
    return types[JOINT_STATE](header, list(names), *numbers)


def raw(names, stamp, position, velocity=(), effort=(), frame='base', little_endian=True):
    made = message(names, stamp, position, velocity, effort, frame)
    return bytes(STORE.serialize_cdr(made, JOINT_STATE, little_endian=little_endian))


def write_topics(path, topics, storage='mcap', compression=None):
    """Write {topic: [(received, cdr)]} with rosbags itself."""
    writer = Writer(path, version=9, storage_plugin=PLUGINS[storage])
    if compression is not None:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        for name, messages in topics.items():
            kind = JOINT_STATE
            if name == '/chatter':
                kind = 'std_msgs/msg/String'
            connection = writer.add_connection(name, kind, typestore=STORE)
            for received, data in messages:
                writer.write(connection, received, data)
    return path


def motion(count=400, joints=2, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, joints))


def states(names=('a', 'b'), count=400, period=2_000_000, offset=0, seed=3):
    """Return messages of one publisher, the value of joint j being its column of ``motion``."""
    values = motion(count, len(names), seed)
    stamps = START + offset + period * np.arange(count)
    return [
        (int(t) + 100_000, raw(names, t, row, 2 * row, 3 * row))
        for t, row in zip(stamps, values, strict=True)
    ], values


def storage_file(folder):
    return next(f for f in Path(folder).iterdir() if f.suffix in ('.mcap', '.db3'))


def write_bag(path, log, start=10**18):
    """Write a recording as a bag; its time 0 becomes ``start`` (ns).

    Joint states go to /joint_states, motor states and joint torques (if any) to /motor_states and
    /joint_torques.
    """
    stamps = start + np.round(log.time * 1e9).astype(np.int64)
    topics = {'/joint_states': (log.position, log.velocity, log.effort)}
    if log.motor_position is not None or log.motor_velocity is not None:
        topics['/motor_states'] = (log.motor_position, log.motor_velocity, None)
    if log.joint_torque is not None:
        topics['/joint_torques'] = (None, None, log.joint_torque)
    with BagWriter(path) as bag:
        for name, values in topics.items():
            topic = bag.add_topic(name, JOINT_STATE)
            for stamp, data in zip(
                stamps.tolist(), encode_joint_states(log.joints, stamps, values), strict=True
            ):
                bag.write(topic, stamp, data)


POINT = 'trajectory_msgs/JointTrajectoryPoint'
POINTS = 'trajectory_msgs/MultiDOFJointTrajectoryPoint'
DYNAMIC = 'control_msgs/msg/DynamicJointState'
CONTROLLER = 'control_msgs/msg/JointTrajectoryControllerState'
FRANKA, FRANKA_ROBOT = 'franka_msgs/msg/FrankaState', 'franka_msgs/msg/FrankaRobotState'
LBR = 'lbr_fri_idl/msg/LBRState'
ARRAY = 'std_msgs/msg/Float64MultiArray'
MOTORS = 'my_msgs/msg/MotorStates'
HEADER = 'std_msgs/Header header\n'


def points(*names: str) -> str:
    """Return the definition of a controller's state with points of these names."""
    return (HEADER + 'string[] joint_names\n' + ''.join(f'{POINT} {name}\n' for name in names)
            + 'string[] multi_dof_joint_names\n'
            + ''.join(f'{POINTS} multi_dof_{name}\n' for name in names))


#: states of trajectory controllers of several releases of ROS 2, and of ROS 1
CONTROLLERS = {
    'galactic': points('desired', 'actual', 'error'),
    'humble': points('reference', 'feedback', 'error', 'output', 'desired', 'actual'),
    'iron': points('reference', 'feedback', 'error', 'output'),
    'jazzy': points('reference', 'feedback', 'error', 'output') + 'float64 speed_scaling_factor\n',
    'ros1': HEADER + 'string[] joint_names\n' + ''.join(
        f'{POINT} {name}\n' for name in ('desired', 'actual', 'error'))}
#: definitions of other types, shortened where there is more of the same
DEFINITIONS = {
    DYNAMIC: HEADER + 'string[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n',
    'control_msgs/msg/InterfaceValue': 'string[] interface_names\nfloat64[] values\n',
    FRANKA: HEADER + 'float64[6] cartesian_collision\nfloat64[7] q\nfloat64[7] q_d\n'
    'float64[7] dq\nfloat64[7] theta\nfloat64[7] dtheta\nfloat64[7] tau_J\nfloat64[7] tau_J_d\n'
    'float64 time\nuint8 ROBOT_MODE_OTHER=0\nuint8 robot_mode\nfranka_msgs/Errors errors\n',
    FRANKA_ROBOT: '### Default parts of the message\n' + HEADER
    + 'CollisionIndicators collision_indicators\n'
    'sensor_msgs/JointState measured_joint_state\nsensor_msgs/JointState desired_joint_state\n'
    'sensor_msgs/JointState measured_joint_motor_state\nfloat64[7] ddq_d\n'
    'sensor_msgs/JointState tau_ext_hat_filtered\ngeometry_msgs/WrenchStamped k_f_ext_hat_k\n'
    'geometry_msgs/PoseStamped o_t_ee\nfloat64 time\nErrors current_errors\n',
    'franka_msgs/msg/CollisionIndicators': ''.join(
        f'geometry_msgs/Vector3 is_cartesian_{what}\n' for what in (
            'linear_collision', 'angular_collision', 'linear_contact', 'angular_contact'))
    + 'float64[7] is_joint_collision\nfloat64[7] is_joint_contact\n',
    'franka_msgs/msg/Errors': 'bool joint_reflex\nbool cartesian_reflex\nbool power_limit\n',
    LBR: 'int8 session_state\nint8 quality\nfloat64[{n}] measured_joint_position\n'
    'float64[{n}] measured_torque\nfloat64[{n}] external_torque\nuint32 time_stamp_nano_sec\n'
    'uint32 time_stamp_sec\n',
    MOTORS: 'float64 stamp\nstring mode\nmy_msgs/Motor[] states\n',
    'my_msgs/msg/Motor': 'string name\nbool on\nfloat32 angle\nfloat64[2] torques\n'}


def store_of(*definitions: Mapping[str, str], joints: int = 7, ros1: bool = False) -> Any:
    """Return a store of rosbags with the types of definitions."""
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    for one in definitions:
        for kind, text in one.items():
            store.register(get_types_from_msg(text.replace('{n}', str(joints)), kind))
    return store


def made(store: Any, kind: str, **given: Any) -> Any:
    """Return a message with fields that are given, the others zero or empty."""
    values = {}
    for name, (node, what) in store.fielddefs[kind][1]:
        value = given.get(name)
        if node == 2:
            value = value if hasattr(value, '__msgtype__') else made(store, what, **(value or {}))
        elif node == 1:
            value = ('' if what[0] == 'string' else 0) if value is None else value
        else:
            (inner, of), count = what
            size = count if node == 3 else 0
            if inner == 2:
                value = [made(store, of, **one) for one in value or [{}] * size]
            elif of[0] == 'string':
                value = list(value or [''] * size)
            else:
                value = np.array(np.zeros(size) if value is None else value,
                                 dtype={'byte': 'u1', 'char': 'u1'}.get(of[0], of[0]))
        values[name] = value
    return store.types[kind](**values)


def header(stamp: int, frame: str = '') -> dict[str, Any]:
    """Return the fields of a header."""
    sec, nanosec = divmod(int(stamp), 10**9)
    return {'stamp': {'sec': sec, 'nanosec': nanosec}, 'frame_id': frame}


Messages = tuple[str, Sequence[tuple[int, Any]]]


def write(
    path: Path, topics: Mapping[str, Messages], store: Any, storage: str = 'mcap',
    definitions: bool = True,
) -> Path:
    """Write {topic: (type, [(received, message)])}; ``storage`` may be ros1.

    Without ``definitions`` an sqlite3 file is as recorders before ROS 2 Iron wrote it.
    """
    ros1 = storage.startswith('ros1')
    path = path.with_suffix('.bag') if ros1 else path
    writer: Any = Rosbag1Writer(path) if ros1 else Writer(
        path, version=9, storage_plugin=PLUGINS[storage])
    if ros1 and storage != 'ros1':
        writer.set_compression(writer.CompressionFormat[storage.partition(' ')[2].upper()])
    serialize = store.serialize_ros1 if ros1 else store.serialize_cdr
    with writer:
        for name, (kind, messages) in topics.items():
            topic = writer.add_connection(name, kind, typestore=store)
            for received, message in messages:
                writer.write(topic, int(received), serialize(message, kind))
    if not definitions:
        with closing(sqlite3.connect(path / f'{path.name}.db3')) as base:
            base.execute('DROP TABLE message_definitions')
            base.execute('UPDATE schema SET schema_version = 3')
            base.commit()
    return path


def stamps(count: int, period: int = 2_000_000) -> Any:
    """Return times [ns]."""
    return START + period * np.arange(count)


def joint_states(
    store: Any, time: Any, names: Sequence[str], position: FloatArray | None,
    velocity: FloatArray | None = None, effort: FloatArray | None = None,
) -> Messages:
    """Return messages of joint states."""
    kind = 'sensor_msgs/msg/JointState'
    return kind, [(t, made(store, kind, header=header(t), name=list(names), **{
        key: values[k] for key, values in (
            ('position', position), ('velocity', velocity), ('effort', effort))
        if values is not None})) for k, t in enumerate(time)]


MAGIC = b'\x89MCAP0\r\n'
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    '': bytes, 'lz4': lz4.frame.compress, 'zstd': zstd.compress}
Stamped = Sequence[tuple[int, bytes]]


@dataclass(frozen=True)
class Style:
    """How a file is written; ``chunk`` is the number of messages in one, 0: no chunks."""

    compression: str = ''
    chunk: int = 100
    checksums: bool = True
    index: bool = True


def mcap_record(op: int, body: bytes) -> bytes:
    """Return a record."""
    return struct.pack('<BQ', op, len(body)) + body


def mcap_text(value: str) -> bytes:
    """Return a string with its length."""
    data = value.encode()
    return struct.pack('<I', len(data)) + data


def chunk_of(records: bytes, times: tuple[int, int], compression: str = '',
             checksum: int | None = None, claimed: int | None = None) -> bytes:
    """Return a chunk; ``claimed`` is the uncompressed size it states, the true one by default."""
    packed = COMPRESS[compression](records)
    checksum = zlib.crc32(records) if checksum is None else checksum
    claimed = len(records) if claimed is None else claimed
    return mcap_record(6, struct.pack('<QQQI', *times, claimed, checksum) + mcap_text(compression)
                       + struct.pack('<Q', len(packed)) + packed)


def announced(topic: str = '/joint_states', kind: str = JOINT_STATE, channel: int = 1) -> bytes:
    """Return schema and channel of a topic."""
    schema = struct.pack('<H', channel) + mcap_text(kind) + mcap_text('ros2msg') + mcap_text('')
    return mcap_record(3, schema) + mcap_record(
        4, struct.pack('<HH', channel, channel) + mcap_text(topic) + mcap_text('cdr')
        + struct.pack('<I', 0))


def mcap_message(received: int, data: bytes, channel: int = 1) -> bytes:
    """Return a message."""
    return mcap_record(5, struct.pack('<HIQQ', channel, 0, received, received) + data)


def mcap_file(messages: Stamped, style: Style = Style()) -> bytes:
    """Return a whole file of one topic."""
    head = announced()
    out = MAGIC + mcap_record(1, mcap_text('ros2') + mcap_text('test'))
    index = b''
    chunks = 0
    if not style.chunk:
        out += head + b''.join(mcap_message(*one) for one in messages)
    for start in range(0, len(messages) if style.chunk else 0, max(style.chunk, 1)):
        part = messages[start:start + style.chunk]
        records, rows = (b'' if start else head), b''
        for received, data in part:
            rows += struct.pack('<QQ', received, len(records))
            records += mcap_message(received, data)
        times = min(t for t, _ in part), max(t for t, _ in part)
        chunk = chunk_of(records, times, style.compression, None if style.checksums else 0)
        place, at = len(out), len(out) + len(chunk)
        rows = mcap_record(7, struct.pack('<HI', 1, len(rows)) + rows) if style.index else b''
        out += chunk + rows
        offsets = struct.pack('<HQ', 1, at) if style.index else b''
        index += mcap_record(
            8, struct.pack('<QQQQI', *times, place, len(chunk), len(offsets)) + offsets
            + struct.pack('<Q', len(rows)) + mcap_text(style.compression)
            + struct.pack('<QQ', len(chunk) - 49 - len(style.compression), len(records)))
        chunks += 1
    out += mcap_record(15, struct.pack('<I', zlib.crc32(out) if style.checksums else 0))
    times = (min(t for t, _ in messages), max(t for t, _ in messages)) if messages else (0, 0)
    statistics = struct.pack('<QHIIIIQQIHQ', len(messages), 1, 1, 0, 0, chunks, *times, 10, 1,
                             len(messages))
    start = len(out)
    summary = head + index + mcap_record(11, statistics)
    footer = struct.pack('<BQQQ', 2, 20, start, 0)
    checksum = zlib.crc32(summary + footer) if style.checksums else 0
    return out + summary + footer + struct.pack('<I', checksum) + MAGIC


@contextmanager
def full_disk(folder: Path, room: int = 0) -> Iterator[None]:
    """Let recordings below ``folder`` grow by ``room`` bytes in all; the last write is cut."""
    left, pwrite = [room], os.pwrite

    def limited(descriptor: int, data: bytes, offset: int) -> int:
        if not Path(f'/proc/self/fd/{descriptor}').resolve().is_relative_to(folder.resolve()):
            return pwrite(descriptor, data, offset)
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = pwrite(descriptor, data[:left[0]], offset)
        left[0] -= done
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_writer.os, 'pwrite', limited)
        yield
