"""ros/identifier/monitoring.py: whatever keeps the node from watching ends in an error and in
contact, never in 'no contact'."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from diagnostic_msgs.msg import DiagnosticStatus
from monitored import model_of
from nodes import Spinner
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from robot_dynid.effects.slow_changes import Adaptation, Warming
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.monitoring.monitor import Monitor
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier import monitoring as module
from robot_dynid.ros.identifier.messages import contact_diagnosis
from robot_dynid.ros.identifier.model_services import LATCHED, ModelServices
from robot_dynid.ros.identifier.monitoring import Monitoring, MonitorParameters
from robot_dynid.ros.recording.session import Recording

pytestmark = pytest.mark.ros

STEP, SILENCE = 2_000_000, 0.3  # ns; s, in which a busy machine gets round to some states
POSE, STILL, NAN = np.array([0.3, -0.5, 0.8]), np.zeros(3), np.full(3, np.nan)
PARAMETERS = MonitorParameters(contact_thresholds=(50.0,))
MODEL = replace(model_of(load_robot('planar_3r')), trained=Trained(
    {'position': np.outer(np.ones(3), [-1.5, 1.5]), 'velocity': np.outer(np.ones(3), [-2, 2])}))
HOLD = MODEL.inverse(POSE[None], STILL[None], STILL[None])[0]


@dataclass
class Stage:
    """A monitor whose joint states the test makes, and what it says."""

    node: Any
    folder: Path
    parameters: MonitorParameters = PARAMETERS
    model: IdentifiedModel | None = MODEL

    def __post_init__(self) -> None:
        self.recording = Recording(self.node, self.folder, 'arm', ('effort',), 1000)
        self.models = ModelServices(self.node, MODEL.robot)
        if self.model is not None:
            self.models.serve(self.model, '')
        self.contact: list[bool] = []
        self.torque: list[JointState] = []
        self.node.create_subscription(
            Bool, '~/contact', lambda m: self.contact.append(m.data), LATCHED)
        self.node.create_subscription(JointState, '~/external_torque', self.torque.append, 100)
        self.spinner = Spinner(self.node)
        self.stamp = self.node.get_clock().now().nanoseconds
        self.monitoring = Monitoring(
            self.node, self.recording, self.models, self.parameters.settings())

    def close(self) -> None:
        """End its threads."""
        self.monitoring.close()
        self.recording.close()

    def state(self, names: tuple[str, ...] = MODEL.joints, step: int = STEP, waited: int = 0,
              **fields: Any) -> None:
        """Hand over one joint state; it is that of the arm at rest but for ``fields``."""
        self.stamp += step
        message = JointState(name=list(names))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self.stamp, 10**9)
        given = {'position': POSE, 'velocity': STILL, 'effort': HOLD} | fields
        for name, values in given.items():
            setattr(message, name, array.array('d', np.asarray(values)[:len(names)].tolist()))
        with self.recording.lock:
            self.monitoring.receive(bytes(serialize_message(message)), self.stamp, waited)

    def until(self, condition: Callable[[], bool], feed: Callable[[], None]) -> None:
        """Hand over joint states until the condition holds."""
        def there() -> bool:
            for _ in range(5):
                feed()
            return condition()

        self.spinner.wait(there)

    def diagnosis(self) -> DiagnosticStatus:
        """Return the status of the contact since the last call."""
        return contact_diagnosis('contact', *self.monitoring.take_status())

    def unknown_torque(self) -> tuple[int, ...]:
        """Return the joints whose external torque is NaN in the last message."""
        return tuple(np.flatnonzero(np.isnan(self.torque[-1].effort)).tolist())

    def blind_joints(self) -> tuple[int, ...]:
        """Return the joints that are said to be blind since the last call, as an error."""
        status = self.diagnosis()
        values = {value.key: value.value for value in status.values}
        assert status.level == DiagnosticStatus.ERROR
        assert 'blind' in status.message and 'no contact' not in status.message
        assert self.monitoring.monitor is not None
        names = self.monitoring.monitor.model.joints
        return tuple(k for k in range(3) if values[names[k]].startswith('blind'))

    def watched(self) -> None:
        """Wait until the arm is watched, and make sure that it is said."""
        def free() -> bool:
            status = self.diagnosis()
            said = status.level == DiagnosticStatus.OK, status.message
            return said == (True, 'no contact') and self.contact[-1:] == [False]

        self.until(free, self.state)


@pytest.fixture
def stage(node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(module, 'SILENCE', SILENCE)
    monkeypatch.setattr(module, 'WATCH_PERIOD', 0.01)
    made = Stage(node, tmp_path)
    yield made
    made.close()


def changed(values: Any, value: float) -> Any:
    """Return the values with another one for the second joint."""
    return np.where([False, True, False], value, values)


def serve(**changes: Any) -> Callable[[Stage], None]:
    """Return what serves a changed model, and goes on with good states."""
    def run(stage: Stage) -> None:
        if stage.models.model is MODEL:
            stage.models.serve(replace(MODEL, **changes), '')
        stage.state()

    return run


def stale_effort(stage: Stage) -> None:
    """Let the topic effort fall silent while joint states go on."""
    if stage.monitoring.status.problem == '':
        data = JointState(name=list(MODEL.joints), effort=array.array('d', HOLD))
        stage.monitoring.receive_effort(bytes(serialize_message(data)), stage.stamp - 10**9, 0)
    stage.state()


OTHERS = tuple(f'other_{k}' for k in range(3))
#: what happens to the joint states, words of the reason, and the joints it is about
CAUSES: dict[str, tuple[Callable[[Stage], None], str, tuple[int, ...]]] = {
    'position NaN': (lambda s: s.state(position=NAN), 'is NaN', (0, 1, 2)),
    'velocity NaN': (lambda s: s.state(velocity=NAN), 'is NaN', (0, 1, 2)),
    'effort NaN': (lambda s: s.state(effort=NAN), 'is NaN', (0, 1, 2)),
    'one effort NaN': (lambda s: s.state(effort=changed(HOLD, np.nan)), 'are NaN', (1,)),
    'impossible': (lambda s: s.state(position=changed(POSE, 1e9)), 'exceeds the', (0, 1, 2)),
    'constant stamps': (lambda s: s.state(step=0), 'stamps repeat or go back', (0, 1, 2)),
    'time goes back': (lambda s: s.state(step=-10**9), 'stamps went back by 1 s', (0, 1, 2)),
    'too slow': (lambda s: s.state(step=10**9), 'no joint states received', (0, 1, 2)),
    'unknown names': (lambda s: s.state(OTHERS), 'other_0, other_1, other_2 only', (0, 1, 2)),
    'a joint is missing': (lambda s: s.state(MODEL.joints[:2]), 'joint joint_3 of', (0, 1, 2)),
    'no effort': (lambda s: s.state(effort=[]), 'carry no effort', (0, 1, 2)),
    'no position': (lambda s: s.state(position=[]), 'carry no position', (0, 1, 2)),
    'lengths differ': (lambda s: s.state(effort=[1.0]), 'do not match', (0, 1, 2)),
    'silence': (lambda s: None, 'no joint states for', (0, 1, 2)),
    'waited': (lambda s: s.state(waited=300_000_000), 'have waited in the node', (0, 1, 2)),
    'no message': (lambda s: s.monitoring.receive(b'\0\1', 0, 0), '', (0, 1, 2)),
    'effort topic silent': (stale_effort, 'no messages on topic effort for', (0, 1, 2)),
    'refused joint': (serve(not_identified=('joint_2',)), 'not identified', (1,)),
    'another model': (serve(robot=replace(MODEL.robot, joints=OTHERS)),
                      'joint states are of joint_1, joint_2, joint_3 only', (0, 1, 2)),
}


@pytest.mark.parametrize('name', CAUSES)
def test_monitoring_reports_unwatched_joints_as_error_and_contact(stage: Stage, name: str) -> None:
    cause, words, joints = CAUSES[name]
    stage.watched()
    stage.until(lambda: stage.contact[-1], lambda: cause(stage))
    stage.diagnosis()
    stage.until(lambda: words in stage.diagnosis().message, lambda: cause(stage))
    stage.until(lambda: stage.blind_joints() == joints, lambda: cause(stage))
    assert stage.contact[-1] is True
    stage.until(lambda: stage.unknown_torque() == joints, lambda: cause(stage))
    if stage.models.model is not MODEL:
        stage.models.serve(MODEL, '')
    stage.monitoring.receive_effort(bytes(serialize_message(JointState(
        name=list(MODEL.joints), effort=array.array('d', HOLD)))), 2**62, 0)
    stage.watched()


def test_before_the_first_joint_state_and_without_a_model_nothing_is_free(
    node: Any, tmp_path: Path
) -> None:
    stage = Stage(node, tmp_path, model=None)
    stage.spinner.wait(lambda: stage.contact == [True])
    status = stage.diagnosis()
    assert (status.level, 'no model is loaded' in status.message) == (DiagnosticStatus.ERROR, True)
    stage.models.serve(MODEL, '')
    status = stage.diagnosis()
    assert (status.level, 'no joint states' in status.message) == (DiagnosticStatus.ERROR, True)
    assert stage.contact == [True]
    stage.watched()
    assert stage.contact[:2] == [True, False]
    stage.close()


@pytest.mark.parametrize(('parameters', 'words'), [
    (MonitorParameters(), 'the model has no noise levels'),
    (MonitorParameters(contact_thresholds=(1.0, 2.0)), '2 contact thresholds for 3 joints')])
def test_settings_that_cannot_watch_are_an_error(
    node: Any, tmp_path: Path, parameters: MonitorParameters, words: str
) -> None:
    stage = Stage(node, tmp_path, parameters)
    stage.until(lambda: words in stage.diagnosis().message, stage.state)
    assert stage.diagnosis().level == DiagnosticStatus.ERROR
    stage.spinner.wait(lambda: stage.contact == [True])
    stage.close()


def test_a_callback_that_hangs_is_no_way_to_fail_open(stage: Stage) -> None:
    stage.watched()
    with stage.recording.lock:
        stage.spinner.wait(lambda: stage.contact[-1])
    stage.watched()


def test_the_diagnostics_tell_how_much_friction_there_is() -> None:
    warming = Warming(np.ones(1), 1.0, np.array([0.25, -0.1]), np.zeros((2, 1)), np.zeros(2),
                      np.zeros((2, 1)), np.zeros(1))
    model = MODEL.with_learnt('adaptation', (None, Adaptation(warming), None))
    for served, told in ((model, ('125.0', '90.0')), (MODEL, (None, None))):
        monitor = Monitor(served)
        reading = monitor(0.0, POSE, STILL, HOLD)
        status = contact_diagnosis('contact', monitor, module.MonitorStatus(reading=reading))
        values = {value.key: value.value for value in status.values}
        assert tuple(values.get(f'joint_2 {kind} friction [% of the model]')
                     for kind in ('viscous', 'dry')) == told
