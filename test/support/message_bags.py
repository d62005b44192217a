"""Bags with messages of any type, written by rosbags: ROS 2 in mcap and sqlite3, and ROS 1."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from bags import PLUGINS, START
from rosbags.rosbag1 import Writer as Rosbag1Writer
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robot_dynid.types import FloatArray

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
