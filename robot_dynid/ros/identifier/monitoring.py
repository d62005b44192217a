"""The monitor: ~/predicted_effort, ~/effort_residual, ~/external_torque and ~/contact.

~/contact_markers shows external torque in RViz.

The recording goes first: it has stored a joint state before this sees it. Joint states that have
waited for long are not looked at here, so that the recording catches up.

Unknown is not free: false on ~/contact says that every joint is watched and none is in contact. It
is true without a model, before the first joint states, while they do not come or are of no use,
and while any joint is blind. A thread of its own sees to that, whatever the node waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import MarkerArray

from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import EffortWriter, JointStateReader
from robot_dynid.monitoring.contact import DURATION, MARGIN, RELEASE, THRESHOLD, ContactSettings
from robot_dynid.monitoring.monitor import GAIN, Monitor, MonitorSettings, Reading
from robot_dynid.ros.common.rclpy_compat import InvalidHandle
from robot_dynid.ros.identifier.contact_markers import contact_markers
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.recording import MOTORS, Recording
from robot_dynid.ros.identifier.robot_description import LATCHED
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

LATE = 250_000_000  # ns; joint states that have waited longer are left out
SILENCE = 0.25  # s without joint states of use after which no joint is watched
WATCH_PERIOD = 0.05  # s between looks of the watchdog
LOG_PERIOD = 1.0  # s between messages of one kind about it
EVERY = 'all joints'
NO_MODEL = 'no model is loaded: load one (~/load_model) or identify one (~/identify)'
NO_STATES = f'no joint states for {SILENCE:g} s: check that the driver runs, and the topic'
LEFT_OUT = (f'joint states have waited in the node for more than {1e-9 * LATE:g} s and are left '
            'out: relieve the processor')
LISTED = 200  # characters of the names in a foreign message
DEPTH = 100  # messages that a slow listener may be behind
WARNINGS = 20  # different problems that are logged; diagnostics tell the latest one
RECOUNT = 20_000_000  # ns after which listeners are counted again
MARKED = 50_000_000  # ns between markers for RViz
TOPICS = ('predicted_effort', 'effort_residual', 'external_torque')
#: of models that use motor states: deviation of what residual models expect, torque of the gears
#: of elastic joints and its deviation
MOTOR_TOPICS = ('predicted_effort_std', 'gear_torque', 'gear_torque_std')


@dataclass(frozen=True)
class MonitorParameters:
    """Parameters of the monitor; see config/identifier.yaml."""

    monitor: bool = setting(True, text='whether to compare joint states with the served model')
    observer_gain: float = setting(30.0, GAIN, 'of the momentum observer [1/s]')
    contact_margin: float = setting(2.0, MARGIN, 'threshold over the noise level without contact')
    contact_thresholds: tuple[float, ...] = setting(
        (), THRESHOLD, 'thresholds in motion [N m], one or one per joint, instead of the margin')
    contact_release: float = setting(
        0.6, RELEASE, 'share of the threshold below which contact ends')
    contact_duration: float = setting(0.005, DURATION, 'that contact must last, and be gone [s]')

    def settings(self) -> MonitorSettings:
        """Return them as the monitor takes them; raises UsageError."""
        return MonitorSettings(self.observer_gain, ContactSettings(
            self.contact_margin, self.contact_release, self.contact_duration,
            self.contact_thresholds))


@dataclass
class MonitorStatus:
    """Status for the diagnostics.

    Since it was last read joints were ``touched``, or ``blind`` for the reason given, EVERY for
    all of them; ``problem`` is that of the latest joint state, ``motor_problem`` that of the
    latest motor state.
    """

    problem: str = ''
    motor_problem: str = ''
    touched: set[str] = field(default_factory=set)
    blind: dict[str, str] = field(default_factory=dict)
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
        self._motor_publishers = [
            node.create_publisher(JointState, f'~/{t}', DEPTH) for t in MOTOR_TOPICS]
        self._markers = node.create_publisher(MarkerArray, '~/contact_markers', DEPTH)
        self._markers_subscribed, self._marked = False, 0
        self._subscribed = [False] * len(TOPICS)
        self._motors_subscribed = [False] * len(MOTOR_TOPICS)
        self._motors, self._motor_names = JointStateReader(), tuple[str, ...]()
        self._own, self._theirs = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._without: tuple[str, ...] = ()
        self._recount = 0
        self._contact = node.create_publisher(Bool, '~/contact', LATCHED)
        self.monitor: Monitor | None = None
        self.status = MonitorStatus()
        self._model: IdentifiedModel | None = None
        self._names: tuple[str, ...] = ()
        self._refused = np.zeros(0, dtype=bool)
        #: joint states so far of no use, or in which a joint was in contact or blind; stamp [ns]
        #: of the last one of use
        self.disturbed, self.stamp = 0, 0
        self._refusal = ''
        self._contact_sent: bool | None = None
        self._states, self._efforts = JointStateReader(), JointStateReader()
        self._warned: set[str] = set()
        self._latest_effort: bytes | None = None
        self._effort_received = 0
        self._lock = recording.lock
        self._seen = -np.inf  # when the last joint state of use came, on the monotonic clock
        self._reason = ''  # why those since then were of no use
        self._was_blind: set[str] | None = None
        self._ended = threading.Event()
        self._send_contact(True)
        recording.listen('joint_states', self.receive)
        recording.listen('effort', self.receive_effort)
        recording.listen(MOTORS, self.receive_motors)
        node.context.on_shutdown(self._ended.set)
        self._watchdog = threading.Thread(target=self._watch, name='watchdog', daemon=True)
        self._watchdog.start()

    def close(self) -> None:
        """Watch no more."""
        self._ended.set()
        self._watchdog.join()

    @property
    def blind(self) -> dict[str, str]:
        """Reasons of joints that are not watched now, by name, EVERY for all of them."""
        if self._models.model is None:
            return {EVERY: NO_MODEL}
        if self.monitor is None or self._models.model is not self._model or \
                time.monotonic() - self._seen > SILENCE:
            return {EVERY: self._reason or NO_STATES}
        return self.monitor.blind

    def _watch(self) -> None:
        """Tell that the robot is not watched when nothing of use comes in."""
        while not self._ended.wait(WATCH_PERIOD):
            held = self._lock.acquire(timeout=SILENCE)  # a callback that hangs must not hold it up
            try:
                self._look()
            except InvalidHandle:
                return  # the node was destroyed
            except Exception as error:  # it must go on
                self._node.get_logger().error(f'unexpected {type(error).__name__}: {error}')
            finally:
                if held:
                    self._lock.release()

    def _look(self) -> None:
        blind = self.blind
        if blind:
            self.status.blind.update(blind)
            self._send_contact(True)
        if set(blind) == self._was_blind:
            return
        self._was_blind, log = set(blind), self._node.get_logger()
        if blind:
            log.warning(f'monitor: {told(blind)}', throttle_duration_sec=LOG_PERIOD)
        else:
            log.info('monitor: every joint is watched', throttle_duration_sec=LOG_PERIOD)
        if EVERY in blind and self.monitor is not None:
            nothing = np.full(len(self.monitor.model.joints), np.nan)
            self._publishers[-1].publish(
                self._writer(self._node.get_clock().now().nanoseconds, nothing))

    def take_status(self) -> tuple[Monitor | None, MonitorStatus]:
        """Return the monitor and its status since the last call."""
        with self._lock:
            status = self.status
            self.status = MonitorStatus(
                status.problem, status.motor_problem, set(), {}, status.reading)
            monitor = self.monitor
            status.blind.update(self.blind)
        if monitor is not None and EVERY not in status.blind:
            status.touched |= set(monitor.contact)
        return monitor, status

    def receive(self, data: bytes, received: int, waited: int) -> None:
        """Take a joint state, as it is serialized, ``received`` and having ``waited`` [ns]."""
        model = self._models.model
        if model is None:
            return
        if waited > LATE:
            self.status.dropped += 1
            self.disturbed += 1
            self._reason = LEFT_OUT
            return
        self.status.problem = problem = self._guarded(lambda: self._take(model, data, received))
        self._reason = problem or self._reason
        self.disturbed += bool(problem)

    def _guarded(self, take: Callable[[], None]) -> str:
        """Take a message and return what is wrong with it, which is logged once."""
        problem = ''
        try:
            take()
        except DynIdError as error:
            problem = str(error)
        except Exception as error:  # the recording must go on
            problem = f'unexpected {type(error).__name__}: {error}'
        if problem and problem not in self._warned and len(self._warned) < WARNINGS:
            self._warned.add(problem)
            self._node.get_logger().warning(f'monitor: {problem}')
        return problem

    def receive_motors(self, data: bytes, received: int, waited: int) -> None:
        """Take a motor state, which goes with the joint states stamped later."""
        monitor = self.monitor
        if monitor is not None and monitor.follows_motors:
            self.status.motor_problem = self._guarded(
                lambda: self._take_motors(monitor, data, received))

    def _take_motors(self, monitor: Monitor, data: bytes, received: int) -> None:
        names, stamp, values = self._motors(data)
        if names is not self._motor_names:
            self._motor_names, joints = names, monitor.model.joints
            shared = [joint for joint in joints if joint in names]
            self._own = np.array([joints.index(joint) for joint in shared], dtype=np.int64)
            self._theirs = np.array([names.index(joint) for joint in shared], dtype=np.int64)
        if not len(self._own):
            raise DataError(f'motor states are of {", ".join(names)[:LISTED]} only, the model of '
                            f'{", ".join(monitor.model.joints)}: remap the topic')
        if 'position' not in values:
            raise DataError('the motor states carry no position')
        motors = {}
        for name in ('position', 'velocity'):
            if name in values:
                motors[name] = np.full(len(monitor.model.joints), np.nan)
                motors[name][self._own] = values[name][self._theirs]
        monitor.take_motors(((stamp or received) - self._origin) * 1e-9, motors['position'],
                            motors.get('velocity'))

    def receive_effort(self, data: bytes, received: int, waited: int) -> None:
        """Take a message of the topic ``effort``, which the next joint states go with."""
        self._latest_effort, self._effort_received = data, received

    def _take(self, model: IdentifiedModel, data: bytes, received: int) -> None:
        if model is not self._model:
            self._begin(model)
        if self.monitor is None:
            raise UsageError(self._refusal)
        names, stamp, values = self._states(data)
        if names is not self._names:
            if not set(names) & set(model.joints):
                self._reason = (  # another robot on the same topic
                    f'joint states are of {", ".join(names)[:LISTED]} only, the model of '
                    f'{", ".join(model.joints)}: load the model of this robot, or remap the topic')
                return
            self._order = _order(names, model.joints)
            self._names = names
        stamp = stamp or received
        effort = self._measured(values, model.joints, received)
        velocity = values.get('velocity')
        if 'position' not in values:
            raise DataError('the joint states carry no position')
        reading = self.monitor(
            (stamp - self._origin) * 1e-9, values['position'][self._order],
            None if velocity is None else velocity[self._order], effort)
        if reading is None:
            self.disturbed += 1
            self._reason = self.monitor.problem or self._reason
        else:
            self._seen, self._reason, self.stamp = time.monotonic(), '', stamp
            if received > self._recount:
                self._recount = received + RECOUNT
                self._subscribed = [p.get_subscription_count() > 0 for p in self._publishers]
                self._markers_subscribed = self._markers.get_subscription_count() > 0
                if self.monitor.follows_motors:
                    self._motors_subscribed = [
                        p.get_subscription_count() > 0 for p in self._motor_publishers]
            self._publish(stamp, reading)
            if reading.deflected is not None:
                self._publish_deflection(stamp, reading, self.monitor)

    def _begin(self, model: IdentifiedModel) -> None:
        """Follow another model; raises UsageError for parameters that do not fit it."""
        self._model, self.monitor, self._names = model, None, ()
        self._refused = np.isin(model.joints, model.not_identified)
        self._motor_names, self._without = (), ()
        self._seen, self._reason = -np.inf, ''
        self.status.reading, self.status.motor_problem = None, ''
        self._writer = EffortWriter(model.joints)
        self._origin = self._node.get_clock().now().nanoseconds
        self._send_contact(True)
        try:
            self.monitor = Monitor(model, self._settings)
        except DynIdError as error:
            self._refusal = str(error)
            raise

    def _measured(self, values: dict[str, FloatArray], joints: tuple[str, ...], received: int
                  ) -> FloatArray:
        """Return the effort (n,) of the topic ``effort``, or of the joint states."""
        if self._latest_effort is not None:
            age = received - self._effort_received
            if age > LATE:
                raise DataError(f'no messages on topic effort for {1e-9 * age:.3g} s: check its '
                                'publisher, or take effort out of optional_topics')
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
        external = np.where(reading.unseen, np.nan, reading.external)
        sent = reading.predicted, reading.residual, external
        for publisher, subscribed, values in zip(
                self._publishers, self._subscribed, sent, strict=True):
            if subscribed and values is not None:
                publisher.publish(self._writer(stamp, values))
        if self._markers_subscribed and abs(stamp - self._marked) >= MARKED:
            assert self.monitor is not None
            self._marked = stamp
            self._markers.publish(contact_markers(
                self.monitor.model.robot, external, self.monitor.contact, stamp))
        if not reading.free:
            assert self.monitor is not None
            self.disturbed += bool((reading.contact | (reading.blind & ~self._refused)).any())
            self.status.touched.update(self.monitor.contact)
            self.status.blind.update(self.monitor.blind)
        self._send_contact(not reading.free)

    def _publish_deflection(self, stamp: int, reading: Reading, monitor: Monitor) -> None:
        """Publish what the motor states tell, and say when there are none or again some."""
        assert reading.spread is not None
        assert reading.gear is not None
        assert reading.gear_spread is not None
        sent = reading.spread, reading.gear, reading.gear_spread
        for publisher, subscribed, values, learned in zip(
                self._motor_publishers, self._motors_subscribed, sent, (True, False, False),
                strict=True):
            if subscribed and learned != bool(monitor.model.elastic_joints):
                publisher.publish(self._writer(stamp, values))
        without = monitor.without_motors
        if reading.unseen.all():  # the observer begins: motor states may, too
            return
        if without != self._without:
            self._without, log = without, self._node.get_logger()
            if without:
                log.warning(f'monitor: no motor states of {", ".join(without)}: predicted without '
                            'their deflection', throttle_duration_sec=LOG_PERIOD)
            else:
                log.info('monitor: predicted with deflection', throttle_duration_sec=LOG_PERIOD)

    def _send_contact(self, contact: bool) -> None:
        if contact != self._contact_sent:
            self._contact_sent = contact
            self._contact.publish(Bool(data=contact))


def told(blind: Mapping[str, str]) -> str:
    """Return in one sentence which joints are blind, and why: those of one reason together."""
    joints: dict[str, list[str]] = {}
    for joint, reason in blind.items():
        joints.setdefault(reason, []).append(joint)
    return 'blind: ' + '; '.join(
        f'{", ".join(names)}: {reason}' for reason, names in joints.items())


def _order(names: tuple[str, ...], joints: tuple[str, ...]) -> Any:
    """Return the indices of the model's joints in a message; raises DataError naming a miss."""
    missing = [joint for joint in joints if joint not in names]
    if missing:
        raise DataError(f'joint {", ".join(missing)} of the model is not in the joint states, '
                        f'which have {", ".join(names)}')
    return np.array([names.index(joint) for joint in joints])
