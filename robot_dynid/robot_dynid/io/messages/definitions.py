"""Definitions of message types, from the bag, from common types, or from installed ROS packages.

ROS 1 bags, mcap files and sqlite3 files of ROS 2 Iron and later contain the definitions of their
types; older sqlite3 files do not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import read_text

JOINT_STATE = 'sensor_msgs/msg/JointState'
CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'
DYNAMIC_JOINT_STATE = 'control_msgs/msg/DynamicJointState'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
FRANKA_ROBOT_STATE = 'franka_msgs/msg/FrankaRobotState'
FRANKA_STATE = 'franka_msgs/msg/FrankaState'
#: longest text of a definition that is parsed [bytes]; that of a Franka state has 12 kB
DEFINITION_BYTES = 1 << 18
#: environment variable with the prefixes of ROS packages
PREFIXES = 'AMENT_PREFIX_PATH'
_POINT = 'trajectory_msgs/JointTrajectoryPoint'
_POINTS = 'trajectory_msgs/MultiDOFJointTrajectoryPoint'
#: common types in bags without definitions, in the layout of ROS 2 Humble, the last release whose
#: recorder wrote none. Source: ros-controls/control_msgs, branch humble (2e31e467); other types
#: are in the stores of rosbags
COMMON = {
    JOINT_STATE: 'std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n'
                 'float64[] effort\n',
    WRENCH: 'std_msgs/Header header\ngeometry_msgs/Wrench wrench\n',
    DYNAMIC_JOINT_STATE: 'std_msgs/Header header\nstring[] joint_names\n'
                         'control_msgs/InterfaceValue[] interface_values\n',
    'control_msgs/msg/InterfaceValue': 'string[] interface_names\nfloat64[] values\n',
    CONTROLLER_STATE: 'std_msgs/Header header\nstring[] joint_names\n' + ''.join(
        f'{_POINT} {name}\n'
        for name in ('reference', 'feedback', 'error', 'output', 'desired', 'actual'))
    + 'string[] multi_dof_joint_names\n' + ''.join(
        f'{_POINTS} multi_dof_{name}\n'
        for name in ('reference', 'feedback', 'error', 'output', 'desired', 'actual')),
    _POINT.replace('/', '/msg/'): 'float64[] positions\nfloat64[] velocities\nfloat64[] '
    'accelerations\nfloat64[] effort\nbuiltin_interfaces/Duration time_from_start\n',
    # its first fields. Source: frankarobotics/franka_ros2, branches humble (43357d15) and jazzy
    FRANKA_ROBOT_STATE: 'std_msgs/Header header\nfloat64[12] is_cartesian\nfloat64[14] is_joint\n'
    'sensor_msgs/JointState measured_joint_state\nsensor_msgs/JointState desired_joint_state\n'
    'sensor_msgs/JointState measured_joint_motor_state\n',
    'std_msgs/msg/Header': 'builtin_interfaces/Time stamp\nstring frame_id\n',
    'builtin_interfaces/msg/Time': 'int32 sec\nuint32 nanosec\n',
    'builtin_interfaces/msg/Duration': 'int32 sec\nuint32 nanosec\n',
    'geometry_msgs/msg/Wrench': 'geometry_msgs/Vector3 force\ngeometry_msgs/Vector3 torque\n',
    'geometry_msgs/msg/Vector3': 'float64 x\nfloat64 y\nfloat64 z\n',
}
#: types always read by COMMON, because they never changed
FIXED = (JOINT_STATE, WRENCH)
#: name of a field, and its type as the parser of rosbags gives it
FieldList = Sequence[tuple[str, Any]]


class Definitions:
    """Fields of message types, preferably as defined in the bag; ``ros1``: messages of ROS 1."""

    def __init__(self, ros1: bool = False) -> None:
        self.ros1 = ros1
        self._texts: dict[str, tuple[str, bytes]] = {}
        self._fields: dict[str, FieldList] = {}
        self.presumed: set[str] = set()  # types read by COMMON

    def add(self, kind: str, encoding: str, text: bytes) -> None:
        """Add the definition of a type and of its nested types; the first of a name counts."""
        kind = kind.replace('/', '/msg/') if kind.count('/') == 1 else kind
        if 0 < len(text) <= DEFINITION_BYTES:
            self._texts.setdefault(kind, (encoding, text))

    def fields(self, kind: str) -> FieldList:
        """Return the fields of a type; raises DataError if it is undefined."""
        if kind not in self._fields:
            self._parse(kind)
        return self._fields[kind]

    def _parse(self, kind: str) -> None:
        if kind in self._texts and (self.ros1 or kind not in FIXED):
            encoding, text = self._texts[kind]
            try:
                self._take(_parsed(kind, text.decode('utf-8', 'replace'), encoding))
            except DataError:
                if kind not in COMMON:
                    raise
        if kind not in self._fields and kind in COMMON:
            self.presumed.add(kind)
            self._take(_parsed(kind, COMMON[kind]))
        if kind not in self._fields:
            self._take(_stored(kind) or _installed(kind))
        if kind not in self._fields:
            package = kind.partition('/')[0]
            raise DataError(
                f'the bag does not hold the definition of {clipped(kind)}, as bags of ROS 2 '
                f'Humble and older in sqlite3; source a workspace with {clipped(package)}, or '
                'convert the bag to mcap there (ros2 bag convert), which stores definitions')

    def _take(self, types: Mapping[str, FieldList]) -> None:
        for name, fields in types.items():
            self._fields.setdefault(name, fields)


def _parsed(kind: str, text: str, encoding: str = 'ros2msg') -> dict[str, FieldList]:
    """Return the fields of all types in a text. Raises DataError where it cannot be parsed."""
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    lines = [line for line in text.splitlines() if not line.startswith(('=', 'IDL:', '#'))]
    try:
        types = get_types_from_idl('\n'.join(lines)) if encoding == 'ros2idl' else \
            get_types_from_msg(text, kind)
    except Exception as error:  # any error of parsing untrusted text
        raise DataError(f'the definition of {clipped(kind)} in the bag cannot be parsed '
                        f'({type(error).__name__})') from None
    return {name: fields for name, (_, fields) in types.items()}


def _stored(kind: str) -> dict[str, FieldList]:
    """Return the fields of a type known to rosbags, else nothing."""
    from rosbags.typesys import Stores, get_typestore

    stored = get_typestore(Stores.ROS2_HUMBLE).fielddefs.get(kind)
    return {} if stored is None else {kind: stored[1]}


def _installed(kind: str) -> dict[str, FieldList]:
    """Return the fields of a type of an installed ROS package, else nothing."""
    package, _, name = kind.partition('/msg/')
    for prefix in os.environ.get(PREFIXES, '').split(os.pathsep):
        file = Path(prefix) / 'share' / package / 'msg' / f'{name}.msg'
        if prefix and name.isidentifier() and package.isidentifier() and file.is_file():
            return _parsed(kind, read_text(file, DataError))
    return {}
