"""Health of the robot from everyday motion: ~/health, ~/calibrate and ~/update_model.

Joint states are gathered as they come, in stretches of a few seconds. A thread of its own reduces
each to information, and follows the parameters of the served model with it. Stretches in which
the monitor saw contact, or could not see, are left out. The served model changes only when
~/calibrate (friction alone) or ~/update_model (all parameters) is called.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from std_srvs.srv import Trigger

from robot_dynid.document import number
from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.identified.caution import after_caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.bag import Topics, decode_topics, log_from_topics
from robot_dynid.io.cdr import JOINT_STATE, WRENCH, Batch
from robot_dynid.io.log import with_wrenches
from robot_dynid.io.mcap import Contents
from robot_dynid.numbers import NumberRange
from robot_dynid.ros.common.messages import Diagnostics
from robot_dynid.ros.common.rclpy_compat import InvalidHandle
from robot_dynid.ros.common.services import ServiceThread
from robot_dynid.ros.identifier.model_services import LATCHED
from robot_dynid.ros.identifier.monitoring import Monitoring
from robot_dynid.ros.recording.session import TOPICS, folder_name
from robot_dynid.settings import require_allowed, setting
from robot_dynid.types import RawLog
from robot_dynid_extras.health.calibration import FrictionSession
from robot_dynid_extras.health.everyday_motion import everyday_motion
from robot_dynid_extras.health.health import Condition, GroupHealth, Health, HealthSettings
from robot_dynid_extras.health.recursive_identification import MEMORY
from robot_dynid_extras.health.updated_model import updated_model

if TYPE_CHECKING:
    from robot_dynid.ros.identifier.node import Identifier

STRETCH = 5_000_000_000  # ns of joint states that are taken together
WAITING = 2  # stretches that may wait for the thread; the next one is left out
LATEST = 600  # s of motion by which friction is calibrated: while warming up, earlier is other
NO_MODEL = 'no model is served: load one (~/load_model) or identify one (~/identify)'
#: why stretches are left out
DISTURBED, RESTED, BUSY = 'contact, or not watched', 'no joint slid', 'the computer was too busy'
UNUSABLE = 'of no use'
Part = TypeVar('Part', Health, FrictionSession)
LEVELS = {Condition.OK: DiagnosticStatus.OK, Condition.CHANGED: DiagnosticStatus.WARN,
          Condition.STALE: DiagnosticStatus.STALE, Condition.UNKNOWN: DiagnosticStatus.STALE}


@dataclass(frozen=True)
class HealthParameters:
    """Parameters of the health; see config/identifier.yaml."""

    health: bool = setting(
        False, text='whether to follow the parameters of the served model in everyday motion')
    health_memory: float = setting(
        HealthSettings.memory, MEMORY, 'time of sliding over which older motion of a joint is '
        'forgotten [s]')
    health_false_alarms: float = setting(
        HealthSettings.false_alarms, NumberRange(1e-6, 1e3), 'false alarms per month')

    def __post_init__(self) -> None:
        require_allowed(self, 'parameter {}')

    def settings(self) -> HealthSettings:
        """Return them as the core takes them; raises UsageError."""
        return HealthSettings(self.health_memory, self.health_false_alarms)


@dataclass
class Stretch:
    """Messages by topic, each with the time [ns] at which it came, from ``begin`` [ns] on.

    ``disturbed`` is the count of the monitor at its begin.
    """

    begin: int
    disturbed: int
    messages: dict[str, list[tuple[int, bytes]]]

    def batches(self) -> dict[str, Batch]:
        """Return the messages by topic."""
        found = {}
        for topic, messages in self.messages.items():
            received, data = zip(*messages, strict=True)
            sizes = np.array([len(one) for one in data], dtype=np.int64)
            found[topic] = Batch(np.array(received, dtype=np.int64),
                                 np.frombuffer(b''.join(data), np.uint8),
                                 np.cumsum(sizes) - sizes, sizes)
        return found


class HealthMonitoring:
    """Follows the parameters of the served model in what the ``identifier`` records.

    ``monitoring`` tells which stretches are of use; models that are replaced are saved in the
    folder of the recordings.
    """

    parameters = HealthParameters

    @classmethod
    def begin(
        cls, identifier: Identifier, parameters: HealthParameters
    ) -> HealthMonitoring | None:
        """Return the part where it is switched on; raises UsageError without the monitor."""
        if not parameters.health:
            return None
        if identifier.monitoring is None:
            raise UsageError('parameter health: needs the monitor, which tells contact from '
                             'change: set monitor to true')
        return cls(identifier, identifier.monitoring, parameters.settings())

    def __init__(
        self, identifier: Identifier, monitoring: Monitoring, settings: HealthSettings
    ) -> None:
        node, robot, recording = identifier, identifier.robot, identifier.recording
        self._node, self._robot, self._folder = node, robot, identifier.folder
        self._models, self._monitoring = identifier.models, monitoring
        self._settings, self._lock = settings, recording.lock
        self._diagnostics = Diagnostics(node, '' if robot is None else robot.name,
                                        '~/health', LATCHED)
        self.health: Health | None = None
        self.session: FrictionSession | None = None
        self.left_out: Counter[str] = Counter()
        self._model: IdentifiedModel | None = None
        self._refusal, self._problem, self._alarms = '', '', frozenset[str]()
        self._stretch: Stretch | None = None
        self._names = {topic: node.resolve_topic_name(topic) for topic in TOPICS}
        self._kinds = dict.fromkeys(self._names.values(), JOINT_STATE)
        if robot is not None:
            self._kinds |= {topic: WRENCH for topic, _ in robot.wrenches}
        self._queue: Queue[Stretch | None] = Queue(WAITING)
        self._following = threading.Lock()
        for topic in (*TOPICS, *(t for t, k in self._kinds.items() if k == WRENCH)):
            recording.listen(topic, partial(self._receive, topic))
        self._services = ServiceThread(node, 'health')
        self._services.offer(Trigger, 'update_model', self._update)
        self._services.offer(Trigger, 'calibrate', self._calibrate)
        self._services.start()
        self._thread = threading.Thread(target=self._run, name='health', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow no more."""
        self._services.close()
        with self._lock:
            self._stretch = None
            while not self._queue.empty():
                self._queue.get_nowait()
        self._queue.put(None)
        self._thread.join()

    def _receive(self, topic: str, data: bytes, received: int, waited: int) -> None:
        """Keep a message; this is all that happens in the thread of the subscriptions."""
        monitoring, stretch = self._monitoring, self._stretch
        if topic == TOPICS[0]:
            stamp = monitoring.stamp
            if stretch is None or not 0 <= stamp - stretch.begin < STRETCH:
                self._hand_over(stretch)
                stretch = self._stretch = Stretch(stamp, monitoring.disturbed, {})
        if stretch is not None:
            name = self._names.get(topic, topic)
            stretch.messages.setdefault(name, []).append((received - waited, data))

    def _hand_over(self, stretch: Stretch | None) -> None:
        """Give a stretch that is whole to the thread."""
        if stretch is None or self._models.model is None:
            return
        if stretch.disturbed != self._monitoring.disturbed:
            self.left_out[DISTURBED] += 1
            stretch.messages.clear()
        try:
            self._queue.put_nowait(stretch)
        except Full:
            self.left_out[BUSY] += 1

    def _run(self) -> None:
        while (stretch := self._queue.get()) is not None:
            try:
                with self._following:
                    self._follow(stretch)
                    self._publish()
            except InvalidHandle:
                return  # the node was destroyed
            except Exception as error:  # it must go on
                self._node.get_logger().error(f'unexpected {type(error).__name__}: {error}')

    def _follow(self, stretch: Stretch) -> None:
        """Follow the parameters in a stretch."""
        model = self._models.model
        if model is not self._model:
            self._begin(model)
        if self.health is None or model is None or not stretch.messages:
            return
        try:
            motion = everyday_motion(model, self._log(stretch, model))
        except DynIdError as error:
            self.left_out[UNUSABLE] += 1
            self._problem = str(error)
            return
        if motion is None:
            self.left_out[RESTED] += 1
            return
        self.health.identification.take(motion)
        if self.session is not None:
            self.session.take(motion)

    def _begin(self, model: IdentifiedModel | None) -> None:
        """Follow another model."""
        self._model, self.health, self.session = model, None, None
        self._refusal, self._problem = '', ''
        self.left_out.clear()
        if model is None:
            return
        try:
            self.health = Health(model, self._settings)
            self.session = FrictionSession(model, LATEST)
        except DynIdError as error:
            self._refusal = str(error)
            self._node.get_logger().warning(f'health: {error}')

    def _log(self, stretch: Stretch, model: IdentifiedModel) -> RawLog:
        """Return a stretch as a recording; raises DataError."""
        batches = stretch.batches()
        contents = Contents(topics={name: self._kinds[name] for name in batches})
        decoded = decode_topics(batches.items(), contents)
        names: dict[str, Any] = {topic: name for topic, name in self._names.items()
                                 if name in batches}
        topics = replace(Topics(), **names)
        return log_from_topics('everyday motion', decoded, model.joints,
                               with_wrenches(topics, self._robot), contents)

    def _publish(self) -> None:
        """Publish the health of all groups, the summary first."""
        judged = () if self.health is None else self.health.judged()
        alarms = frozenset(one.words for one in judged if one.condition is Condition.CHANGED)
        for one in judged:
            if one.words in alarms - self._alarms:
                self._node.get_logger().warning(f'health: {one.words} {one.sentence}')
        self._alarms = alarms
        self._diagnostics.publish(self._summary(judged), *map(status_of, judged))

    def _summary(self, judged: tuple[GroupHealth, ...]) -> DiagnosticStatus:
        status = DiagnosticStatus(name='health', level=DiagnosticStatus.STALE)
        if self.health is None:
            status.message = self._refusal or NO_MODEL
            return status
        found = self.health.identification
        changed = [one.words for one in judged if one.condition is Condition.CHANGED]
        if found.learning:
            status.message = 'no everyday motion yet, or too little to know its noise'
        elif changed:
            status.level = DiagnosticStatus.WARN
            status.message = f'changed: {"; ".join(changed)}'
        else:
            status.level, status.message = DiagnosticStatus.OK, 'as expected'
        values = {'motion followed [s]': f'{found.seconds:.0f}',
                  'false alarms per month': number(self._settings.false_alarms)}
        if found.recent is not None:
            errors = np.sqrt(found.recent.errors / np.maximum(found.recent.samples, 1.0))
            for row, served, followed in zip(
                    found.model.torque_model.robot.row_names, *errors, strict=True):
                values[f'{row} error [N m]'] = (
                    f'{number(served, 3)} as served, {number(followed, 3)} as followed')
        values |= {f'stretches left out: {reason}': str(count)
                   for reason, count in self.left_out.items()}
        if self._problem:
            values['why the last one was of no use'] = self._problem
        status.values = key_values(values)
        return status

    def _update(self, request: Any, response: Any) -> str:
        """Serve the model with the parameters that were found."""
        with self._following:
            health = self._of_served(self.health)
            made = updated_model(health.identification)
            return self._serve(made, made.warnings[-1])

    def _calibrate(self, request: Any, response: Any) -> str:
        """Serve the model with the friction of the session."""
        with self._following:
            calibration = self._of_served(self.session).calibrated()
            if not any(change.used for change in calibration.changes):
                raise DataError(f'{calibration.sentence}; the served model stays')
            made = calibration.model
            return self._serve(made, f'{made.warnings[-1]}: {calibration.sentence}')

    def _of_served(self, part: Part | None) -> Part:
        """Return a part that follows the served model; raises DynIdError where there is none."""
        if part is None or self._models.served() is not self._model:
            raise DataError(self._refusal or 'no everyday motion of the served model yet: '
                            'move the robot, and ask again')
        return part

    def _serve(self, model: IdentifiedModel, changes: str) -> str:
        """Serve a ``model`` in place of the one before, which is saved; return the answer."""
        before = self._kept(self._models.served())
        self._models.serve(model, model.to_yaml())
        answer = after_caution(model, f'serving {model.robot.name} {changes}',
                               f'~/load_model brings back the model before: {before}')
        self._node.get_logger().info(f'health: {answer}')
        return answer

    def _kept(self, model: IdentifiedModel) -> Path:
        """Save the model that is replaced; raises DynIdError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f'{self._folder}: the model before cannot be kept there '
                             f'({error.strerror or error})') from None
        path = self._folder / (f'{folder_name(model.robot.name)}_'
                               f'{datetime.now():%Y-%m-%d_%H-%M-%S}.model.yaml')
        model.save(path)
        return path


def status_of(one: GroupHealth) -> DiagnosticStatus:
    """Return the status of a group of parameters."""
    values = {
        'deviations': number(one.deviations, 3), 'alarm above': number(one.level, 3),
        f'torque in {one.joint} [N m]': (
            f'{number(one.torque, 3)} ({number(one.low, 3)} to {number(one.high, 3)})'),
        'not excited for [s of motion]': number(one.idle, 3)}
    for change in one.changes:
        values[f'{change.words} [{change.unit}]'] = (
            f'{number(change.now)} +- {number(change.std, 2)}, served {number(change.served)}, '
            f'sees changes of {number(change.seen, 2)}')
    return DiagnosticStatus(
        name=f'health: {one.words}', level=LEVELS[one.condition], message=one.sentence,
        values=key_values(values))


def key_values(values: dict[str, str]) -> list[KeyValue]:
    """Return values of a status."""
    return [KeyValue(key=key, value=value) for key, value in values.items()]
