"""robot_dynid_extras/health/node_part.py: stretches, statuses and services, without a node."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from diagnostic_msgs.msg import DiagnosticStatus
from everyday_arm import EverydayArm, known_model

from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import encode_joint_states
from robot_dynid.types import RawLog
from robot_dynid_extras.health import node_part
from robot_dynid_extras.health.health import Change, Condition, GroupHealth
from robot_dynid_extras.health.node_part import (
    HealthMonitoring,
    HealthParameters,
    Stretch,
    status_of,
)

MODEL = known_model()
STATES, MOTORS = 'joint_states', 'motor_states'


class Node:
    """An identifier with a monitor, that serves a model; what is published and said is kept."""

    def __init__(self, folder: Path, model: IdentifiedModel | None) -> None:
        self.robot, self.folder, self.listeners = MODEL.robot, folder, dict[str, Any]()
        self.recording = SimpleNamespace(lock=threading.Lock(),
                                         listen=self.listeners.__setitem__)
        self.monitoring: Any = SimpleNamespace(stamp=0, disturbed=0)
        self.models = SimpleNamespace(model=model, served=lambda: self.models.model,
                                      serve=self.serve)
        self.published, self.said = list[dict[str, Any]](), list[str]()
        self.offers: dict[str, Callable[[Any, Any], str]] = {}
        self.free = threading.Event()
        self.free.set()

    def serve(self, model: IdentifiedModel, text: str) -> None:
        assert IdentifiedModel.from_yaml(text).names == model.names
        self.models.model = model

    def resolve_topic_name(self, name: str) -> str:
        return f'/arm/{name}'

    def get_logger(self) -> Any:
        return SimpleNamespace(warning=self.said.append, info=self.said.append,
                               error=self.said.append)

    def publish(self, *statuses: DiagnosticStatus) -> None:
        self.published.append({one.name: one for one in statuses})
        self.free.wait(10.0)

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for the thread."""
        end = time.monotonic() + 20.0
        while not condition():
            assert time.monotonic() < end, (self.published[-1:], self.said)
            time.sleep(0.002)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    made = Node(tmp_path / 'bags', MODEL)
    services = SimpleNamespace(offer=lambda kind, name, answer: made.offers.update({name: answer}),
                               start=lambda: None, close=lambda: None)
    monkeypatch.setattr(node_part, 'ServiceThread', lambda *_: services)
    monkeypatch.setattr(node_part, 'Diagnostics', lambda *_: made)
    yield made


def begun(node: Node, **parameters: Any) -> HealthMonitoring:
    """Return the part of a node."""
    identifier: Any = node
    found = HealthMonitoring.begin(identifier, HealthParameters(health=True, **parameters))
    assert found is not None
    return found


def hear(node: Node, seconds: float, data: bytes = b'x', topic: str = STATES) -> None:
    """Let a message come in, stamped so many seconds from the begin."""
    node.monitoring.stamp = round(1e9 * seconds)
    node.listeners[topic](data, 1_000_000_000 + node.monitoring.stamp, 7)


def moved(node: Node, monkeypatch: pytest.MonkeyPatch, arm: EverydayArm, begin: int, count: int
          ) -> None:
    """Let an arm move for so many stretches, a message each."""
    monkeypatch.setattr(node_part, 'everyday_motion', lambda model, log: arm.stretch())
    monkeypatch.setattr(node_part, 'log_from_topics', lambda *_: None)
    monkeypatch.setattr(node_part, 'decode_topics', lambda *_: None)
    for k in range(begin, begin + count + 1):
        before = len(node.published)
        hear(node, 5.0 * k)
        if k > begin or begin:
            node.until(lambda before=before: len(node.published) > before)


def test_messages_of_five_seconds_are_a_recording(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their stamps, from the first one on; the last one begins the next stretch."""
    logs: list[RawLog] = []
    monkeypatch.setattr(node_part, 'everyday_motion', lambda model, log: logs.append(log))
    health = begun(node)
    stamps = np.round(np.arange(0.0, 5.5, 0.25) * 1e9).astype(np.int64)
    values = [np.outer(np.arange(len(stamps)), [1.0, 2.0, 3.0]) + k for k in (0.1, 0.2, 0.3)]
    for stamp, data in zip(stamps, encode_joint_states(MODEL.joints, stamps, values),
                           strict=True):
        hear(node, 1e-9 * stamp, data)
    hear(node, 2.0, encode_joint_states(MODEL.joints, stamps[:1], [
        value[:1] for value in values])[0])  # a clock goes back
    node.until(lambda: len(logs) == 2)
    first, second = logs
    np.testing.assert_allclose(first.time - first.time[0], 0.25 * np.arange(20))
    for own, value in zip((first.position, first.velocity, first.effort), values, strict=True):
        np.testing.assert_allclose(own, value[:20])
    assert len(second.time) == 2 and second.position[0, 0] == pytest.approx(20.1)
    node.until(lambda: health.left_out['no joint slid'] == 2)
    health.close()
    assert node.published[-1]['health'].message.startswith('no everyday motion yet')


def test_messages_by_topic_have_their_places() -> None:
    found = Stretch(5, 0, {'/a': [(7, b'abc'), (9, b'de')], '/b': [(8, b'f')]}).batches()
    own = found['/a']
    assert own.buffer.tobytes() == b'abcde'
    assert [one.tolist() for one in (own.received, own.starts, own.sizes)] == [
        [7, 9], [0, 3], [3, 2]]
    assert set(found) == {'/a', '/b'}


def test_stretches_that_are_disturbed_of_no_use_or_too_many_are_left_out(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two may wait while the thread is busy."""
    def useless(model: object, log: object) -> None:
        raise DataError('a gap of 3 s')

    monkeypatch.setattr(node_part, 'everyday_motion', useless)
    monkeypatch.setattr(node_part, 'log_from_topics', lambda *_: None)
    monkeypatch.setattr(node_part, 'decode_topics', lambda *_: None)
    health = begun(node)
    hear(node, 0.0)
    hear(node, 5.0)
    node.until(lambda: len(node.published) == 1)
    node.monitoring.disturbed = 1
    hear(node, 10.0)
    node.until(lambda: len(node.published) == 2)
    assert dict(health.left_out) == {'contact, or not watched': 1, 'of no use': 1}
    values = {one.key: one.value for one in node.published[1]['health'].values}
    assert values['stretches left out: of no use'] == '1'
    assert values['why the last one was of no use'] == 'a gap of 3 s'
    assert values['motion followed [s]'] == '0' and values['false alarms per month'] == '0.1'
    node.free.clear()
    for k in range(3, 9):
        hear(node, 5.0 * k)
        if k == 3:
            node.until(lambda: len(node.published) == 3)
    assert health.left_out['the computer was too busy'] == 3
    node.free.set()
    node.until(lambda: len(node.published) == 5)
    health.close()
    hear(node, 60.0)
    assert len(node.published) == 5


def test_the_summary_says_what_changed_and_how_well_motion_is_predicted(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = begun(node, health_false_alarms=0.5, health_memory=60.0)
    arm = EverydayArm(MODEL, MODEL.values, noise=0.1)
    moved(node, monkeypatch, arm, 0, 3)
    status = node.published[-1]['health']
    assert (status.level, status.message) == (
        DiagnosticStatus.STALE, 'no everyday motion yet, or too little to know its noise')
    moved(node, monkeypatch, arm, 4, 10)
    status = node.published[-1]['health']
    assert (status.level, status.message) == (DiagnosticStatus.OK, 'as expected')
    values = {one.key: one.value for one in status.values}
    assert values['motion followed [s]'] == '70' and values['false alarms per month'] == '0.5'
    assert re.fullmatch(r'0\.\d+ as served, 0\.\d+ as followed', values['joint_2 error [N m]'])
    assert not node.said
    moved(node, monkeypatch, arm.scaled(('fv2', 'fc2'), 1.5), 15, 14)
    status = node.published[-1]['health']
    assert (status.level, status.message) == (DiagnosticStatus.WARN, 'changed: joint_2: friction')
    [words] = node.said  # once
    assert words.startswith('health: joint_2: friction changed: ')
    assert set(node.published[-1]) == {'health', *(
        f'health: {one.words}' for one in health.health.groups)}  # type: ignore[union-attr]
    served, answer = node.models.model, node.offers['update_model'](None, None)
    [kept] = node.folder.glob('planar_3r_*.model.yaml')
    assert answer.startswith('serving planar_3r updated on line from 145 s of everyday motion')
    assert answer.endswith(f'~/load_model brings back the model before: {kept}')
    np.testing.assert_array_equal(IdentifiedModel.load(kept).values, served.values)
    made = node.models.model
    place = made.names.index('fv2')
    assert made.values[place] / served.values[place] == pytest.approx(1.5, rel=0.1)
    assert node.said[-1] == f'health: {answer}'
    for name in ('update_model', 'calibrate'):
        with pytest.raises(DynIdError, match='no everyday motion of the served model yet'):
            node.offers[name](None, None)
    health.close()


def test_friction_of_the_session_is_served_where_it_predicts_better(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by the last ten minutes; where none is used the model stays."""
    health = begun(node)
    arm = EverydayArm(MODEL, MODEL.values, noise=0.1)
    moved(node, monkeypatch, arm.scaled(('fv2', 'fc2'), 1.04), 0, 4)
    served, answer = node.models.model, node.offers['calibrate'](None, None)
    assert re.match(r'serving planar_3r friction calibrated by 20 s of motion: .*joint_2 viscous',
                    answer)
    assert node.models.model is not served
    moved(node, monkeypatch, arm, 5, 4)
    session: Any = health.session
    stretch = arm.stretch()
    for _ in range(119):
        session.take(stretch)
    calibrated = session.calibrated()
    assert calibrated.seconds == pytest.approx(600.0)  # of more than that
    session.calibrated = lambda: SimpleNamespace(
        changes=[SimpleNamespace(used=False)], sentence='nothing', model=calibrated.model)
    with pytest.raises(DataError, match=r'^nothing; the served model stays$'):
        node.offers['calibrate'](None, None)
    health.close()


def test_without_a_model_or_its_covariance_that_is_said(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.models.model = replace(MODEL, correlation_factor=None)
    health = begun(node)
    hear(node, 0.0)
    hear(node, 5.0)
    node.until(lambda: node.published)
    status = node.published[-1]['health']
    assert status.level == DiagnosticStatus.STALE and 'no covariance' in status.message
    assert [text for text in node.said if text.startswith('health: ')] == [
        f'health: {status.message}']
    with pytest.raises(DataError, match='no covariance'):
        node.offers['update_model'](None, None)
    node.models.model = None
    hear(node, 10.0)
    time.sleep(0.02)
    assert len(node.published) == 1
    health.close()


def test_health_needs_the_monitor_and_is_off_by_itself(tmp_path: Path) -> None:
    identifier: Any = SimpleNamespace(monitoring=None)
    assert HealthMonitoring.begin(identifier, HealthParameters()) is None
    with pytest.raises(UsageError, match='parameter health: needs the monitor'):
        HealthMonitoring.begin(identifier, HealthParameters(health=True))
    assert HealthParameters().settings() == HealthParameters(False, 120.0, 0.1).settings()
    own = HealthParameters(True, 60.0, 0.5).settings()
    assert (own.memory, own.false_alarms) == (60.0, 0.5)
    for wrong in ({'health_memory': 29.0}, {'health_false_alarms': 1.1e3},
                  {'health_false_alarms': 0.9e-6}):
        with pytest.raises(UsageError, match=f'parameter {next(iter(wrong))}'):
            HealthParameters(**wrong)


@pytest.mark.parametrize(('condition', 'level'), [
    (Condition.OK, DiagnosticStatus.OK), (Condition.CHANGED, DiagnosticStatus.WARN),
    (Condition.STALE, DiagnosticStatus.STALE), (Condition.UNKNOWN, DiagnosticStatus.STALE)])
def test_the_status_of_a_group_holds_all_numbers(condition: Condition, level: bytes) -> None:
    change = Change('fc1', 'dry friction', 'N m', 5.25, 3.125, 0.512, 5.0, 1.234)
    one = GroupHealth('joint_1: friction', condition, 3.4567, 2.5432, 'joint_2', 0.23456,
                      0.12345, 0.34567, (change,), 87.65)
    found = status_of(one)
    assert (found.name, found.level, found.message) == (
        'health: joint_1: friction', level, one.sentence)
    assert {own.key: own.value for own in found.values} == {
        'deviations': '3.46', 'alarm above': '2.54',
        'torque in joint_2 [N m]': '0.235 (0.123 to 0.346)',
        'not excited for [s of motion]': '87.7',
        'dry friction [N m]': '3.125 +- 0.51, served 5.25, sees changes of 1.2'}
