"""What the excitation node writes into its bag can be read by strict readers, too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')

from builtin_interfaces.msg import Duration
from nodes import Spinner
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.errors import DataError
from robot_dynid.io.bag import read_bag
from robot_dynid.io.recording_names import by_purpose, custom_data
from robot_dynid.ros.common import listener
from robot_dynid.ros.excitation.bag_session import ExcitationBag, serialized

KIND = 'trajectory_msgs/msg/JointTrajectory'


@pytest.mark.parametrize('joints', [1, 3, 6, 7])
@pytest.mark.parametrize('points', [0, 1, 2, 100])
@pytest.mark.parametrize('segment', ['', 'hold', 'excitation', 'Läufe'])
def test_a_trajectory_is_written_without_a_rest(joints: int, points: int, segment: str) -> None:
    message = JointTrajectory(joint_names=[f'joint_{10**i}' for i in range(joints)])
    message.header.frame_id = segment
    for i in range(points):
        values = [float(i + j) for j in range(joints)]
        message.points.append(JointTrajectoryPoint(
            positions=values, velocities=values, accelerations=values if i % 3 else [],
            time_from_start=Duration(sec=i, nanosec=i)))
    data = serialized(message)
    assert deserialize_message(data, JointTrajectory) == message
    read = get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr(data, KIND)
    assert read.header.frame_id == segment
    assert [list(p.positions) for p in read.points] == [list(p.positions) for p in message.points]
    assert [p.time_from_start.nanosec for p in read.points] == list(range(points))


@pytest.mark.ros
def test_a_motion_is_not_begun_where_the_disk_has_no_room_for_it(
    node: Any, tmp_path: Path
) -> None:
    tape = ExcitationBag(node, (tmp_path, 'arm'), 'controller')
    with pytest.raises(DataError, match=r'disk has \d+ MB left, a recording of 1000000000000 s'):
        tape.begin(1e12)
    assert not tape.running and not list(tmp_path.iterdir())
    path = tape.begin(1.0)
    assert tape.finish() == (True, ''), 'nothing was commanded'
    assert not path.exists()
    path = tape.begin(1.0)
    (path / 'notes').write_text('of somebody else')
    tape.finish()
    assert [left.name for left in path.iterdir()] == ['notes']
    path = tape.begin(1.0)
    assert path.parent == tmp_path
    tape.put('move', JointTrajectory(joint_names=['a']))
    tape.put('hold', JointTrajectory(joint_names=['a']))
    tape.close()
    with Reader(path) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
        assert counts['/listening/sent'] == 2
        sent = [get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr(data, KIND).header.frame_id
                for c, _, data in reader.messages() if c.topic == '/listening/sent']
    assert sent == ['move', 'hold']


@pytest.mark.ros
def test_the_bag_of_the_motion_to_judge_by_is_named_after_that_of_the_fit(
    node: Any, tmp_path: Path
) -> None:
    tape = ExcitationBag(node, (tmp_path, 'arm.v2'), 'controller')
    fit = None
    for purpose in ('fit', 'validation', 'validation'):
        path = tape.begin(1.0, purpose, fit)
        tape.put('move', JointTrajectory(joint_names=['a']))
        tape.finish()
        assert custom_data(path)['purpose'] == purpose
        fit = fit or path
    paths = sorted(tmp_path.iterdir())
    assert [path.name.removeprefix(fit.name) for path in paths] == [
        '', '_2_validation', '_validation']
    alone = tape.begin(1.0, 'validation')
    assert alone.name.endswith('_validation')
    tape.close()
    assert by_purpose([str(path) for path in paths]) == (
        [str(fit)], [str(path) for path in paths[1:]])


@pytest.mark.ros
def test_states_under_way_when_a_motion_ends_are_recorded(
    node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = ExcitationBag(node, (tmp_path, 'arm'), 'controller')
    publisher = node.create_publisher(JointState, 'joint_states', 1000)
    Spinner(node).wait(lambda: publisher.get_subscription_count() == 1)
    path = tape.begin(1.0)
    tape.put('move', JointTrajectory(joint_names=['a']))
    take, until = listener.take, time.monotonic() + 0.1
    monkeypatch.setattr(
        listener, 'take', lambda *given: take(*given) if time.monotonic() > until else None)
    for k in range(50):
        publisher.publish(JointState(name=['a'], position=[float(k)]))
    assert tape.finish() == (True, f'recorded in {path}')
    tape.close()
    assert len(read_bag(path).position) == 50
