"""The monitor: ~/predicted_effort, ~/effort_residual, ~/external_torque and ~/contact.

The recording goes first: it has stored a joint state before this sees it. Joint states that have
waited for long are not looked at here, so that the recording catches up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import EffortWriter, JointStateReader
from robot_dynid.monitoring.contact import ContactSettings
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings, Reading
from robot_dynid.ros.common.params import parameter
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.recording import Recording
from robot_dynid.ros.identifier.robot_description import LATCHED
from robot_dynid.types import FloatArray

LATE = 250_000_000  # ns; joint states that have waited longer are left out
DEPTH = 100  # messages that a slow listener may be behind
RECOUNT = 20_000_000  # ns after which listeners are counted again
TOPICS = ('predicted_effort', 'effort_residual', 'external_torque')


@dataclass(frozen=True)
class MonitorParameters:
    """Parameters of the monitor; see config/identifier.yaml."""

    monitor: bool = parameter(True, 'whether to compare joint states with the served model')
    observer_gain: float = parameter(30.0, 'of the momentum observer [1/s]')
    contact_margin: float = parameter(2.0, 'threshold over the noise level without contact')
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
class MonitorStatus:
    """Status for the diagnostics: ``problem``, joints ``touched`` since it was last read."""

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
        self._publishers = [node.create_publisher(JointState, f'~/{t}', DEPTH) for t in TOPICS]
        self._subscribed = [False] * len(TOPICS)
        self._recount = 0
        self._contact = node.create_publisher(Bool, '~/contact', LATCHED)
        self.monitor: Monitor | None = None
        self.status = MonitorStatus()
        self._model: IdentifiedModel | None = None
        self._names: tuple[str, ...] = ()
        self._refusal = ''
        self._contact_sent: bool | None = None
        self._states, self._efforts = JointStateReader(), JointStateReader()
        self._warned: set[str] = set()
        self._latest_effort: bytes | None = None
        self._lock = recording.lock
        recording.listen('joint_states', self.receive)
        recording.listen('effort', self.receive_effort)

    def take_status(self) -> tuple[Monitor | None, MonitorStatus]:
        """Return the monitor and its status since the last call."""
        with self._lock:
            status = self.status
            self.status = MonitorStatus(status.problem, set(), status.reading)
            monitor = self.monitor
        if monitor is not None:
            status.touched |= set(monitor.contact)
        return monitor, status

    def receive(self, data: bytes, received: int, waited: int) -> None:
        """Take a joint state, as it is serialized, ``received`` and having ``waited`` [ns]."""
        model = self._models.model
        if model is None:
            return
        if waited > LATE:
            self.status.dropped += 1
            return
        problem = ''
        try:
            self._take(model, data, received)
        except DynIdError as error:
            problem = str(error)
        except Exception as error:  # the recording must go on
            problem = f'unexpected {type(error).__name__}: {error}'
        if problem and problem not in self._warned:
            self._warned.add(problem)
            self._node.get_logger().warning(f'monitor: {problem}')
        self.status.problem = problem

    def receive_effort(self, data: bytes, received: int, waited: int) -> None:
        """Take a message of the topic ``effort``, which the next joint states go with."""
        self._latest_effort = data

    def _take(self, model: IdentifiedModel, data: bytes, received: int) -> None:
        if model is not self._model:
            self._begin(model)
        if self.monitor is None:
            raise UsageError(self._refusal)
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
            if received > self._recount:
                self._recount = received + RECOUNT
                self._subscribed = [p.get_subscription_count() > 0 for p in self._publishers]
            self._publish(stamp, reading)

    def _begin(self, model: IdentifiedModel) -> None:
        """Follow another model; raises UsageError for parameters that do not fit it."""
        self._model, self.monitor, self._names = model, None, ()
        self.status.reading = None
        self._writer = EffortWriter(model.joints)
        self._origin = self._node.get_clock().now().nanoseconds
        self._send_contact(False)
        try:
            self.monitor = Monitor(model, self._settings)
        except DynIdError as error:
            self._refusal = str(error)
            raise

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
        self.status.reading = reading
        sent = reading.predicted, reading.residual, reading.external
        for publisher, subscribed, values in zip(
                self._publishers, self._subscribed, sent, strict=True):
            if subscribed and values is not None:
                publisher.publish(self._writer(stamp, values))
        contact = bool(reading.contact.any())
        if contact:
            assert self.monitor is not None
            self.status.touched.update(self.monitor.contact)
        self._send_contact(contact)

    def _send_contact(self, contact: bool) -> None:
        if contact != self._contact_sent:
            self._contact_sent = contact
            self._contact.publish(Bool(data=contact))


def _order(names: tuple[str, ...], joints: tuple[str, ...]) -> Any:
    """Return the indices of the model's joints in a message; raises DataError naming a miss."""
    missing = [joint for joint in joints if joint not in names]
    if missing:
        raise DataError(f'joint {", ".join(missing)} of the model is not in the joint states, '
                        f'which have {", ".join(names)}')
    return np.array([names.index(joint) for joint in joints])
