"""Bags written by rosbags itself, for the tests of our readers, and by our writer."""

from pathlib import Path

import numpy as np
from rosbags.rosbag2 import CompressionFormat, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, encode_joint_states

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
