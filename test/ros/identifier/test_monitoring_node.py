"""ros/identifier/monitoring.py: the monitor inside the identifier, over real DDS: topics, contact,
bad joint states."""

from __future__ import annotations

import array
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from identifier_stage import PATIENCE, ROBOT, Client, Data
from monitored import external_torque
from nodes import running
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import MarkerArray

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import EffortWriter, JointStateReader, encode_joint_states
from robot_dynid.monitoring.monitor import Monitor
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.ros.identifier.model_services import LATCHED

TOPICS = ('predicted_effort', 'effort_residual', 'external_torque')
NAMES = tuple(f'joint_{i}' for i in range(1, 8))
AGAIN = 2.0  # s without a look at a joint state


class Listener(Client):
    """A client that also keeps what the monitor publishes."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[str, list[JointState]] = {topic: [] for topic in TOPICS}
        self.contact: list[bool] = []
        self.markers: list[MarkerArray] = []
        self.node.create_subscription(
            MarkerArray, 'identifier/contact_markers', self.markers.append, 100)
        for topic, messages in self.heard.items():
            self.node.create_subscription(
                JointState, f'identifier/{topic}', messages.append, 5000)
        self.node.create_subscription(
            Bool, 'identifier/contact', lambda m: self.contact.append(m.data), LATCHED)

    def state(self, stamp: float, **fields: Any) -> None:
        """Publish one joint state."""
        message = JointState(name=fields.pop('name', list(NAMES)))
        message.header.stamp.sec = int(stamp)
        message.header.stamp.nanosec = int(1e9 * (stamp - int(stamp)))
        for name, values in fields.items():
            setattr(message, name, array.array('d', np.asarray(values, dtype=float).tolist()))
        self.sent = message.header.stamp
        self.states.publish(message)

    def follow(self, stamp: float, **fields: Any) -> None:
        """Publish a joint state, again where a busy node left it out, until it was looked at."""
        torque = self.heard['external_torque']
        while True:
            self.state(stamp, **fields)
            given = time.monotonic() + AGAIN
            while time.monotonic() < given:
                self.executor.spin_once(timeout_sec=0.02)
                if torque and torque[-1].header.stamp == self.sent:
                    return

    def statuses(self) -> dict[str, dict[str, str]]:
        """Return the statuses of the contact that have come, by message, with their values."""
        found = {}
        while self.diagnostics:
            status = self.diagnostics.pop(0).status[-1]
            found[status.message] = {v.key: v.value for v in status.values} | {
                'level': str(int.from_bytes(status.level, 'little'))}
        return found

    def said(self, words: str) -> dict[str, str]:
        """Wait for a status of the contact that says ``words``; return its values.

        Statuses are taken in the order of their arrival: each call goes on after the last found.
        """
        found: dict[str, str] = {}

        def there() -> bool:
            while self.diagnostics and not found:
                status = self.diagnostics.pop(0).status[-1]
                if words in status.message:
                    found.update({v.key: v.value for v in status.values})
                    found['level'] = str(int.from_bytes(status.level, 'little'))
            return bool(found)

        self.wait(there)
        return found


@pytest.fixture(scope='module')
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(tmp_path_factory.mktemp('data'))


@pytest.fixture
def client(ros_domain: int, data: Data) -> Iterator[Listener]:
    parameters = {'robot': ROBOT, 'recording_directory': data.folder / 'recordings',
                  'files_directory': data.folder}
    with running('identifier', parameters) as node:
        user = Listener()
        user.wait(lambda: user.states.get_subscription_count() == 1)
        yield user
        user.close()
    assert 'unexpected' not in node.output, node.output


@pytest.mark.ros
def test_topics_show_what_the_monitor_computes(client: Listener, data: Data) -> None:
    assert client.said('no model is loaded')['level'] == '2'
    assert client.call('load_model', path=str(data.model_file)).success
    log, order = data.log, [3, 0, 6, 1, 5, 2, 4]
    names = [NAMES[i] for i in order]
    assert log.velocity is not None
    assert log.effort is not None
    for k in range(1000):
        client.follow(1000.0 + log.time[k], name=names, position=log.position[k, order],
                      velocity=log.velocity[k, order], effort=log.effort[k, order])
    client.wait(lambda: len(client.heard['effort_residual']) > 900)
    whole = external_torque(data.model, monitor_input(data.model, data.log), 30.0)
    last = [m for m in client.heard['external_torque'] if np.isfinite(m.effort).all()][-1]
    assert tuple(last.name) == NAMES
    assert len(whole) == len(log.time)
    row = round((last.header.stamp.sec - 1000 + 1e-9 * last.header.stamp.nanosec) * 500.0)
    np.testing.assert_allclose(last.effort, whole[row], atol=1e-3)
    late = slice(row - 15, row - 4)  # about the delay of the low-pass of 20 ms
    qdd = np.gradient(log.velocity, log.time, axis=0)[late]
    own = data.model.inverse(log.position[late], log.velocity[late], qdd).mean(axis=0)
    assert np.abs(own).max() > 50.0
    for topic, expected in (('predicted_effort', own),
                            ('effort_residual', log.effort[late].mean(axis=0) - own)):
        # efforts change by up to 1 N m within the 20 ms over which the low-pass has its weights
        np.testing.assert_allclose(client.heard[topic][-1].effort, expected, atol=1.0)
    client.wait(lambda: len(client.markers) > 10)
    frames = [one.header.frame_id for one in client.markers[-1].markers]
    assert frames == list(data.model.robot.bodies)
    assert client.contact[:2] == [True, False], 'unknown before the first joint states'
    assert not [d for d in client.diagnostics if 'contact: joint' in d.status[-1].message]


@pytest.mark.ros
def test_contact_is_told_at_once_and_stays_in_the_diagnostics(
    client: Listener, data: Data
) -> None:
    assert client.call('load_model', path=str(data.model_file)).success
    said: dict[str, dict[str, str]] = {}
    for k in range(20_000):
        phase, wave = 0.003 * k, np.full(7, 0.3)
        q, qd, qdd = wave * np.sin(phase), 1.5 * wave * np.cos(phase), -2.25 * wave * np.sin(phase)
        effort = data.model.inverse(q, qd, qdd)
        if 1200 <= k % 2000 < 1300:
            effort[1] -= 8.0
        client.state(1000.0 + 0.002 * k, position=q, velocity=qd, effort=effort)
        if k % 25 == 0:  # joint states go on as fast as their stamps
            client.spin(0.05)
            said |= client.statuses()
            if {'contact: joint_2', 'no contact'} <= set(said) and not client.contact[-1]:
                break
    assert client.contact[:4] == [True, False, True, False], 'unknown, free, touched, free'
    values = said['contact: joint_2']
    assert (values['level'], values['joint_2'], values['joint_1']) == ('1', 'contact', 'free')
    assert (said['no contact']['level'], said['no contact']['joint_2']) == ('0', 'free')
    client.wait(lambda: client.contact[-1])
    # a hold-up of this test during a contact is told as both
    client.wait(lambda: client.said('no joint states')['joint_2'].startswith(
        'blind: no joint states for'))


@pytest.mark.ros
def test_bad_joint_states_are_named_and_survived(client: Listener, data: Data) -> None:
    assert client.call('load_model', path=str(data.model_file)).success
    zeros, bad = np.zeros(7), np.full(7, np.nan)
    hold = data.model.gravity(zeros)
    client.state(5.0, position=zeros, velocity=zeros)
    assert client.said('carry no effort')['level'] == '2'
    client.state(5.1, name=list(NAMES[:-1]), position=zeros[1:], effort=zeros[1:])
    client.said('the joint states lack joint joint_7 of the model; they have joint_1, joint_2')
    client.state(5.1, name=list(NAMES), position=zeros[1:], effort=zeros)
    client.said('do not match their names')
    client.state(5.2, name=['gripper'], position=[0.0])
    slow = 'too slow for an observer gain of 30 1/s: lower it to'
    end = time.monotonic() + PATIENCE
    for k in count():
        client.state(6.0 + 0.05 * k, position=bad if k % 5 == 0 else zeros, effort=hold)
        client.spin(0.005)
        said = [int(values['skipped joint states']) for message, values in
                client.statuses().items() if slow in message]
        if said and said[-1] >= 40:
            break
        assert time.monotonic() < end, 'waited in vain'
    client.state(1.0, position=zeros, velocity=zeros, effort=hold)
    client.wait(lambda: client.said('too slow')['restarts'] != '0')
    assert client.call('forward_dynamics', position=zeros, velocity=zeros, effort=zeros).success


def test_reader_and_writer_agree_with_the_batch_format() -> None:
    rng = np.random.default_rng(0)
    values = tuple(rng.normal(size=(3, 7)) for _ in range(3))
    stamps = np.array([1, 10**12 + 5, -3])
    reader = JointStateReader()
    for k, message in enumerate(encode_joint_states(NAMES, stamps, values)):
        names, stamp, found = reader(message)
        assert (names, stamp) == (NAMES, stamps[k])
        for name, array_ in zip(('position', 'velocity', 'effort'), values, strict=True):
            np.testing.assert_array_equal(found[name], array_[k])
    written = EffortWriter(NAMES)(int(stamps[1]), values[2][1])
    names, stamp, found = reader(written)
    assert (names, stamp, list(found)) == (NAMES, stamps[1], ['effort'])
    np.testing.assert_array_equal(found['effort'], values[2][1])
    with pytest.raises(DataError, match='cut off'):
        reader(written[:30])


def test_levels_come_with_an_identified_model(data: Data) -> None:
    assert Monitor(data.model).levels is not None
