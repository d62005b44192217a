"""The monitor: ~/predicted_effort, ~/effort_residual, ~/external_torque and ~/contact.

The recording goes first: its callback only hands the joint states on. A thread works on them, and
where it cannot keep up the oldest are dropped, here and nowhere else.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.identified.contact import ContactSettings
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.monitor import Monitor, MonitorSettings, Reading
from robot_dynid.io.effort_message import EffortWriter, JointStateReader
from robot_dynid.ros.identifier_services import ModelServices
from robot_dynid.ros.params import parameter
from robot_dynid.ros.recording import Recording
from robot_dynid.ros.robot_description import LATCHED
from robot_dynid.types import FloatArray

WAITING = 250  # joint states; a thread that is farther behind follows the present instead
DEPTH = 100  # messages that a slow listener may be behind
PATIENCE = 1.0  # s the thread may take to end


@dataclass(frozen=True)
class MonitorParameters:
    """Parameters of the monitor; see config/identifier.yaml."""

    monitor: bool = parameter(True, 'whether to compare joint states with the served model')
    observer_gain: float = parameter(30.0, 'of the momentum observer [1/s]')
    contact_margin: float = parameter(2.0, 'threshold over the level of quiet motion')
    contact_thresholds: tuple[float, ...] = parameter(
        (), 'thresholds in motion [N m], one or one per joint, instead of the margin')
    contact_release: float = parameter(0.6, 'share of the threshold below which contact ends')
    contact_duration: float = parameter(0.005, 'that contact must last, and be gone [s]')

    def settings(self) -> MonitorSettings:
        """Return them as the monitor takes them; raises UsageError."""
        return MonitorSettings(self.observer_gain, ContactSettings(
            self.contact_margin, self.contact_release, self.contact_duration,
            self.contact_thresholds))


@dataclass
class Seen:
    """What diagnostics tell: ``problem`` in words, joints ``touched`` since the last look."""

    problem: str = ''
    touched: set[str] = field(default_factory=set)
    reading: Reading | None = None
    dropped: int = 0


class Monitoring:
    """Follows the joint states that ``recording`` receives with the model of ``models``.

    With the topic ``effort``, its latest message takes the place of the field of that name.
    """

    def __init__(self, node: Node, recording: Recording, models: ModelServices,
                 settings: MonitorSettings) -> None:
        self._node, self._models, self._settings = node, models, settings
        self._publishers = {name: node.create_publisher(JointState, f'~/{name}', DEPTH)
                            for name in ('predicted_effort', 'effort_residual',
                                         'external_torque')}
        self._contact = node.create_publisher(Bool, '~/contact', LATCHED)
        self.monitor: Monitor | None = None
        self.seen = Seen()
        self._model: IdentifiedModel | None = None
        self._names: tuple[str, ...] = ()
        self._refused = ''
        self._told: bool | None = None
        self._states, self._efforts = JointStateReader(), JointStateReader()
        self._said: set[str] = set()
        self._waiting: deque[tuple[bytes, int]] = deque(maxlen=WAITING)
        self._latest_effort: bytes | None = None
        self._heard = self._taken = 0
        self._wake, self._stop = threading.Event(), threading.Event()
        recording.listen('joint_states', self._hear)
        recording.listen('effort', self._hear_effort)
        self._thread = threading.Thread(target=self._run, name='monitor', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout=PATIENCE)

    def look(self) -> tuple[Monitor | None, Seen]:
        """Return the monitor and what was seen since the last look."""
        seen, self.seen = self.seen, Seen(self.seen.problem, set(), self.seen.reading)
        monitor = self.monitor
        if monitor is not None:
            seen.touched |= set(monitor.contact)
        return monitor, seen

    def _hear(self, data: bytes, received: int) -> None:
        if self._models.model is not None:
            self._heard += 1
            self._waiting.append((data, received))
            self._wake.set()

    def _hear_effort(self, data: bytes, received: int) -> None:
        self._latest_effort = data

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            while self._waiting and not self._stop.is_set():
                data, received = self._waiting.popleft()
                try:
                    self._take(data, received)
                    problem = ''
                except DynIdError as error:
                    problem = str(error)
                except Exception as error:  # a dead thread would go unseen
                    problem = f'unexpected {type(error).__name__}: {error}'
                if problem and problem not in self._said:
                    self._said.add(problem)
                    self._node.get_logger().warning(f'monitor: {problem}')
                self.seen.problem = problem

    def _take(self, data: bytes, received: int) -> None:
        self._count_dropped()
        model = self._models.model
        if model is None:
            return
        if model is not self._model:
            self._begin(model)
        if self.monitor is None:
            raise UsageError(self._refused)
        names, stamp, values = self._states(data)
        if names is not self._names:
            if not set(names) & set(model.joints):
                return  # another robot on the same topic
            self._order = _order(names, model.joints)
            self._names = names
        stamp = stamp or received
        effort = self._measured(values, model.joints)
        velocity = values.get('velocity')
        if 'position' not in values:
            raise DataError('the joint states carry no position')
        reading = self.monitor(
            (stamp - self._origin) * 1e-9, values['position'][self._order],
            None if velocity is None else velocity[self._order], effort)
        if reading is not None:
            self._publish(stamp, reading)

    def _begin(self, model: IdentifiedModel) -> None:
        """Follow another model; raises UsageError for parameters that do not fit it."""
        self._model, self.monitor, self._names = model, None, ()
        self.seen.reading = None
        self._writer = EffortWriter(model.joints)
        self._origin = self._node.get_clock().now().nanoseconds
        self._tell(False)
        try:
            self.monitor = Monitor(model, self._settings)
        except DynIdError as error:
            self._refused = str(error)
            raise

    def _count_dropped(self) -> None:
        self._taken += 1
        behind = self._heard - len(self._waiting)
        if behind > self._taken:
            self.seen.dropped += behind - self._taken
            self._taken = behind

    def _measured(self, values: dict[str, FloatArray], joints: tuple[str, ...]) -> FloatArray:
        """Return the effort (n,) of the topic ``effort``, or of the joint states."""
        if self._latest_effort is not None:
            names, _, other = self._efforts(self._latest_effort)
            if 'effort' not in other:
                raise DataError('the messages on topic effort carry no effort')
            return other['effort'][_order(names, joints)]
        if 'effort' not in values:
            raise DataError('the joint states carry no effort: nothing to compare the model with; '
                            'publish effort, or name the topic effort in optional_topics')
        return values['effort'][self._order]

    def _publish(self, stamp: int, reading: Reading) -> None:
        self.seen.reading = reading
        for name, values in (('predicted_effort', reading.predicted),
                             ('effort_residual', reading.residual),
                             ('external_torque', reading.external)):
            publisher = self._publishers[name]
            if values is not None and publisher.get_subscription_count():
                publisher.publish(self._writer(stamp, values))
        if reading.contact.any():
            assert self._model is not None
            self.seen.touched.update(np.array(self._model.joints)[reading.contact].tolist())
        self._tell(bool(reading.contact.any()))

    def _tell(self, contact: bool) -> None:
        if contact != self._told:
            self._told = contact
            self._contact.publish(Bool(data=contact))


def _order(names: tuple[str, ...], joints: tuple[str, ...]) -> Any:
    """Return where the joints of the model are in a message; raises DataError naming a miss."""
    missing = [joint for joint in joints if joint not in names]
    if missing:
        raise DataError(f'joint {", ".join(missing)} of the model is not in the joint states, '
                        f'which have {", ".join(names)}')
    return np.array([names.index(joint) for joint in joints])
