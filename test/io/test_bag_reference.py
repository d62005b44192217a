"""io/bag.py: the reference of a trajectory controller comes out of a bag, and instruments take it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import PLUGINS, START, raw
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robot_dynid.io.bag import read_bag
from robot_dynid.io.cdr import CONTROLLER_STATE, JOINT_STATE
from robot_dynid.types import FloatArray, RawLog

MESSAGES = Path(__file__).parents[2] / 'tools' / 'ros_env' / 'control_msgs' / 'msg'
STORE = get_typestore(Stores.ROS2_HUMBLE)
STORE.register(get_types_from_msg(
    (MESSAGES / 'JointTrajectoryControllerState.msg').read_text(), CONTROLLER_STATE))
NAMES = ('a', 'b', 'c')
COUNT, PERIOD = 500, 2_000_000
TIME = START + PERIOD * np.arange(COUNT)
POSITION = np.sin(1e-9 * (TIME - START)[:, None] * [1.0, 2.0, 3.0])


def point(positions: Any) -> Any:
    types, none = STORE.types, np.zeros(0)
    return types['trajectory_msgs/msg/JointTrajectoryPoint'](
        np.array(positions, dtype=np.float64, order='C'), none, none, none,
        types['builtin_interfaces/msg/Duration'](0, 0))


def state(stamp: int, names: tuple[str, ...], reference: Any, rest: int) -> bytes:
    """Return a controller state; ``rest`` numbers are in its other points."""
    types = STORE.types
    header = types['std_msgs/msg/Header'](
        types['builtin_interfaces/msg/Time'](*divmod(int(stamp), 10**9)), '')
    empty = types['trajectory_msgs/msg/MultiDOFJointTrajectoryPoint'](
        [], [], [], types['builtin_interfaces/msg/Duration'](0, 0))
    made = types[CONTROLLER_STATE](
        header, list(names), point(reference), *(point(np.full(rest, 7.0)) for _ in range(3)),
        [], *(empty for _ in range(4)), 1.0)
    return bytes(STORE.serialize_cdr(made, CONTROLLER_STATE))


def bag(path: Path, controllers: dict[str, list[tuple[int, bytes]]], storage: str = 'mcap'
        ) -> RawLog:
    """Write joint states and the states of controllers with rosbags, and read them with ours."""
    with Writer(path, version=9, storage_plugin=PLUGINS[storage]) as writer:
        topic = writer.add_connection('/joint_states', JOINT_STATE, typestore=STORE)
        for stamp, row in zip(TIME, POSITION, strict=True):
            writer.write(topic, int(stamp), raw(NAMES, stamp, row, row, row))
        for name, messages in controllers.items():
            topic = writer.add_connection(name, CONTROLLER_STATE, typestore=STORE)
            for stamp, data in messages:
                writer.write(topic, stamp, data)
    return read_bag(path, NAMES)


def states(stamps: FloatArray, values: FloatArray, names: tuple[str, ...] = NAMES
           ) -> list[tuple[int, bytes]]:
    """Return messages whose other points change their length on the way."""
    return [(int(t), state(int(t), names, row, len(names) if k % 7 else 0))
            for k, (t, row) in enumerate(zip(stamps, values, strict=True))]


@pytest.mark.parametrize('storage', list(PLUGINS))
def test_read_bag_reads_the_reference_joint_by_joint(tmp_path: Path, storage: str) -> None:
    ahead = POSITION + 0.01
    log = bag(tmp_path / 'bag', {'/arm/controller_state': states(
        TIME, ahead[:, ::-1], NAMES[::-1])}, storage)
    np.testing.assert_array_equal(log.reference_position, ahead)
    np.testing.assert_array_equal(log.position, POSITION)
    assert ('reference_position taken from topic /arm/controller_state, joined by equal stamps'
            in log.findings)


def test_a_slower_reference_is_interpolated_and_unknown_before_its_begin(tmp_path: Path) -> None:
    stamps = TIME[10::10]
    log = bag(tmp_path / 'bag', {'/arm/controller_state': states(stamps, POSITION[10::10])})
    assert log.reference_position is not None
    assert np.isnan(log.reference_position[:10]).all()
    inside = slice(10, 491)
    # between two points 20 ms apart a line is off by at most (3 rad/s)^2 (20 ms)^2 / 8
    np.testing.assert_allclose(log.reference_position[inside], POSITION[inside],
                               rtol=0.0, atol=4.6e-4)


TWO = ('reference_position: 2 controllers (/one/controller_state, /two/controller_state) have all '
       'joints; none was read')


@pytest.mark.parametrize(('controllers', 'told'), [
    ({'/one/controller_state': NAMES, '/two/controller_state': NAMES}, (TWO,)),
    ({'/one/controller_state': NAMES[:2]}, ()),  # that of another group of joints: no news
])
def test_read_bag_takes_the_reference_only_of_one_controller_of_all_joints(
    tmp_path: Path, controllers: dict[str, tuple[str, ...]], told: tuple[str, ...]
) -> None:
    log = bag(tmp_path / 'bag', {topic: states(TIME, POSITION[:, :len(names)], names)
                                 for topic, names in controllers.items()})
    assert log.reference_position is None
    assert log.findings == told


@pytest.mark.parametrize('messages', [
    [(int(t), state(int(t), NAMES, [], 3)) for t in TIME],
    states(TIME + 3600 * 10**9, POSITION),
    [(int(t), b'\0\1\0\0broken') for t in TIME],
])
def test_without_values_for_these_times_there_is_none(
    tmp_path: Path, messages: list[tuple[int, bytes]]
) -> None:
    log = bag(tmp_path / 'bag', {'/arm/controller_state': messages})
    assert log.reference_position is None
    np.testing.assert_array_equal(log.position, POSITION)
