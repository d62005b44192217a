"""The monitor: ~/predicted_effort, ~/effort_residual, ~/external_torque and ~/contact.

~/contact_markers shows external torque in RViz.

Recording has priority: it stores a joint state before the monitor sees it. Joint states that have
waited too long are skipped here, so that the recording catches up.

Unknown is not free: false on ~/contact means that every joint is watched and none is in contact.
It is true without a model, before the first joint states, while they are missing or unusable, and
while any joint is blind. A separate thread ensures that, whatever the node waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import MarkerArray

from robot_dynid.document import joints_named
from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import EffortWriter, JointStateReader
from robot_dynid.monitoring.monitor import GAIN, Monitor, MonitorSettings, Reading
from robot_dynid.monitoring.observer import (
    CONTACT_TORQUE,
    DURATION,
    MARGIN,
    RELEASE,
    ContactSettings,
)
from robot_dynid.ros.common.rclpy_compat import InvalidHandle
from robot_dynid.ros.identifier.messages import (
    EVERY,
    MonitorStatus,
    blind_sentence,
    contact_markers,
)
from robot_dynid.ros.identifier.model_services import LATCHED, ModelServices
from robot_dynid.ros.recording.session import MOTORS, Recording
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

LATE_STATES = 250_000_000  # ns; joint states that have waited longer are skipped
SILENCE = 0.25  # s without usable joint states after which no joint is watched
WATCH_PERIOD = 0.05  # s between checks of the watchdog
LOG_PERIOD = 1.0  # s between messages of one kind about it
NO_MODEL = 'no model is loaded: load one (~/load_model) or identify one (~/identify)'
NO_STATES = f'no joint states for {SILENCE:g} s: check that the driver runs, and the topic'
LEFT_OUT = (f'joint states have waited in the node for more than {1e-9 * LATE_STATES:g} s and are '
            'left out: reduce the load of the processor')
LISTED_CHARACTERS = 200  # characters of the names in a foreign message
LISTENER_DEPTH = 100  # messages by which a slow listener may lag
PROBLEMS_LOGGED = 20  # different problems that are logged; diagnostics state the latest one
RECOUNT = 20_000_000  # ns after which listeners are counted again
MARKER_PERIOD_NS = 50_000_000  # ns between markers for RViz
TOPICS = ('predicted_effort', 'effort_residual', 'external_torque')
#: of models that use motor states: deviation of what residual models expect, torque of the gears
#: of elastic joints and its deviation
MOTOR_TOPICS = ('predicted_effort_std', 'gear_torque', 'gear_torque_std')
MARKERS = 'contact_markers'


@dataclass(frozen=True)
class MonitorParameters:
    """Parameters of the monitor; see config/identifier.yaml."""

    monitor: bool = setting(True, text='whether to compare joint states with the served model')
    observer_gain: float = setting(30.0, GAIN, 'gain of the momentum observer [1/s]')
    contact_margin: float = setting(2.0, MARGIN, 'threshold over the noise level without contact')
    contact_thresholds: tuple[float, ...] = setting(
        (), CONTACT_TORQUE, 'thresholds in motion [N m], one or one per joint, instead of the '
        'margin')
    contact_release: float = setting(
        0.6, RELEASE, 'share of the threshold below which contact ends')
    contact_duration: float = setting(0.005, DURATION, 'time contact must last, or be absent [s]')

    def settings(self) -> MonitorSettings:
        """Return them as the monitor takes them; raises UsageError."""
        return MonitorSettings(self.observer_gain, ContactSettings(
            self.contact_margin, self.contact_release, self.contact_duration,
            self.contact_thresholds))


class Monitoring:
    """Applies the model of ``models`` to the joint states that ``recording`` receives.

    The latest message of the topic ``effort``, if used, replaces the field of that name.
    """

    def __init__(self, node: Node, recording: Recording, models: ModelServices,
                 settings: MonitorSettings) -> None:
        self._node, self._models, self._settings = node, models, settings
        self._publishers = {
            topic: node.create_publisher(JointState, f'~/{topic}', LISTENER_DEPTH)
            for topic in (*TOPICS, *MOTOR_TOPICS)}
        self._publishers[MARKERS] = node.create_publisher(
            MarkerArray, f'~/{MARKERS}', LISTENER_DEPTH)
        self._subscribed, self._marked = set[str](), 0
        self._without: tuple[str, ...] = ()
        self._recount = 0
        self._contact = node.create_publisher(Bool, '~/contact', LATCHED)
        self.monitor: Monitor | None = None
        self.status = MonitorStatus()
        self._model: IdentifiedModel | None = None
        self._refused = np.zeros(0, dtype=bool)
        #: joint states so far unusable, or with a joint in contact or blind; stamp [ns]
        #: of the last usable one
        self.disturbed, self.stamp = 0, 0
        self._refusal = ''
        self._contact_sent: bool | None = None
        self._warned: set[str] = set()
        self._latest_effort: bytes | None = None
        self._effort_received = 0
        self._lock = recording.lock
        self._seen = -np.inf  # time of the last usable joint state, on the monotonic clock
        self._reason = ''  # why those since then were unusable
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
        """Stop watching."""
        self._ended.set()
        self._watchdog.join()

    @property
    def blind(self) -> dict[str, str]:
        """Reasons by name of the joints that are not watched now; key EVERY for all joints."""
        if self._models.model is None:
            return {EVERY: NO_MODEL}
        if self.monitor is None or self._models.model is not self._model or \
                time.monotonic() - self._seen > SILENCE:
            return {EVERY: self._reason or NO_STATES}
        return self.monitor.blind

    def _watch(self) -> None:
        """Report that the robot is not watched while no usable joint state arrives."""
        while not self._ended.wait(WATCH_PERIOD):
            held = self._lock.acquire(timeout=SILENCE)  # a hanging callback must not block it
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
            log.warning(f'monitor: {blind_sentence(blind)}', throttle_duration_sec=LOG_PERIOD)
        else:
            log.info('monitor: every joint is watched', throttle_duration_sec=LOG_PERIOD)
        if EVERY in blind and self.monitor is not None:
            nothing = np.full(len(self.monitor.model.joints), np.nan)
            self._publishers['external_torque'].publish(
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
        """Take a serialized joint state, with the times ``received`` and ``waited`` [ns]."""
        model = self._models.model
        if model is None:
            return
        if waited > LATE_STATES:
            self.status.dropped += 1
            self.disturbed += 1
            self._reason = LEFT_OUT
            return
        self.status.problem = problem = self._guarded(lambda: self._take(model, data, received))
        self._reason = problem or self._reason
        self.disturbed += bool(problem)

    def _guarded(self, take: Callable[[], None]) -> str:
        """Take a message and return its problem, which is logged once."""
        problem = ''
        try:
            take()
        except DynIdError as error:
            problem = str(error)
        except Exception as error:  # the recording must go on
            problem = f'unexpected {type(error).__name__}: {error}'
        if problem and problem not in self._warned and len(self._warned) < PROBLEMS_LOGGED:
            self._warned.add(problem)
            self._node.get_logger().warning(f'monitor: {problem}')
        return problem

    def receive_motors(self, data: bytes, received: int, waited: int) -> None:
        """Take a motor state, which applies to the joint states stamped later."""
        monitor = self.monitor
        if monitor is not None and monitor.follows_motors:
            self.status.motor_problem = self._guarded(
                lambda: self._take_motors(monitor, data, received))

    def _take_motors(self, monitor: Monitor, data: bytes, received: int) -> None:
        stamp, values = self._motors(data)
        if self._motors.others:
            raise DataError(f'motor states are {self._motors.others}: remap the topic')
        if 'position' not in values:
            raise DataError('the motor states carry no position')
        monitor.take_motors(((stamp or received) - self._origin) * 1e-9, values['position'],
                            values.get('velocity'))

    def receive_effort(self, data: bytes, received: int, waited: int) -> None:
        """Take a message of the topic ``effort``, which applies to the next joint states."""
        self._latest_effort, self._effort_received = data, received

    def _take(self, model: IdentifiedModel, data: bytes, received: int) -> None:
        if model is not self._model:
            self._begin(model)
        if self.monitor is None:
            raise UsageError(self._refusal)
        stamp, values = self._states(data)
        if self._states.others:  # another robot on the same topic
            self._reason = (f'joint states are {self._states.others}: load the model of this '
                            'robot, or remap the topic')
            return
        self._states.require_all()
        stamp = stamp or received
        effort = self._measured(values, received)
        if 'position' not in values:
            raise DataError('the joint states carry no position')
        reading = self.monitor((stamp - self._origin) * 1e-9, values['position'],
                               values.get('velocity'), effort)
        if reading is None:
            self.disturbed += 1
            self._reason = self.monitor.problem or self._reason
        else:
            self._seen, self._reason, self.stamp = time.monotonic(), '', stamp
            if received > self._recount:
                self._recount = received + RECOUNT
                self._subscribed = {topic for topic, publisher in self._publishers.items()
                                    if publisher.get_subscription_count()}
            self._publish(stamp, reading, self.monitor)
            if reading.deflected is not None and not reading.unseen.all():
                self._log_motors(self.monitor.without_motors)

    def _begin(self, model: IdentifiedModel) -> None:
        """Change to another model; raises UsageError for parameters that do not fit it."""
        self._model, self.monitor, self._without = model, None, ()
        self._states, self._efforts, self._motors = (OrderedStates(model.joints) for _ in range(3))
        self._refused = np.isin(model.joints, model.not_identified)
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

    def _measured(self, values: dict[str, FloatArray], received: int) -> FloatArray:
        """Return the effort (n,) of the topic ``effort``, or of the joint states."""
        if self._latest_effort is not None:
            age = received - self._effort_received
            if age > LATE_STATES:
                raise DataError(f'no messages on topic effort for {1e-9 * age:.3g} s: check its '
                                'publisher, or take effort out of optional_topics')
            _, other = self._efforts(self._latest_effort)
            self._efforts.require_all()
            if 'effort' not in other:
                raise DataError('the messages on topic effort carry no effort')
            return other['effort']
        if 'effort' not in values:
            raise DataError('the joint states carry no effort: nothing to compare the model with; '
                            'publish effort, or name the topic effort in optional_topics')
        return values['effort']

    def _publish(self, stamp: int, reading: Reading, monitor: Monitor) -> None:
        self.status.reading = reading
        external = np.where(reading.unseen, np.nan, reading.external)
        sent = dict(zip(TOPICS, (reading.predicted, reading.residual, external), strict=True))
        if reading.deflected is not None:
            sent |= {'gear_torque': reading.gear, 'gear_torque_std': reading.gear_spread} if (
                monitor.model.elastic_joints) else {'predicted_effort_std': reading.spread}
        for topic, values in sent.items():
            if topic in self._subscribed and values is not None:
                self._publishers[topic].publish(self._writer(stamp, values))
        if MARKERS in self._subscribed and abs(stamp - self._marked) >= MARKER_PERIOD_NS:
            self._marked = stamp
            self._publishers[MARKERS].publish(contact_markers(
                monitor.model.robot, external, monitor.contact, stamp))
        if not reading.free:
            self.disturbed += bool((reading.contact | (reading.blind & ~self._refused)).any())
            self.status.touched.update(monitor.contact)
            self.status.blind.update(monitor.blind)
        self._send_contact(not reading.free)

    def _log_motors(self, without: tuple[str, ...]) -> None:
        """Log which joints lack motor states, at every change."""
        if without == self._without:
            return
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


class OrderedStates:
    """Joint states of a topic in the order of ``joints``, NaN for joints that they lack.

    ``others`` describes their joints if they have none of these.
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._read, self._joints = JointStateReader(), joints
        self._names: tuple[str, ...] | None = None
        self.others = ''

    def __call__(self, data: bytes) -> tuple[int, dict[str, FloatArray]]:
        """Return the stamp [ns], and by name the values (n,) of a message."""
        names, stamp, values = self._read(data)
        if names is not self._names:
            self._names = names
            self._absent = np.array([joint not in names for joint in self._joints])
            self._places = np.array([names.index(joint) if joint in names else 0
                                     for joint in self._joints], dtype=np.int64)
            self.others = f'of {", ".join(names)[:LISTED_CHARACTERS]} only, the model of ' \
                f'{", ".join(self._joints)}' if self._absent.all() else ''
        if self.others:
            return stamp, values
        ordered = {name: column[self._places] for name, column in values.items()}
        if self._absent.any():
            for column in ordered.values():
                column[self._absent] = np.nan
        return stamp, ordered

    def require_all(self) -> None:
        """Raise DataError naming a joint that the messages lack."""
        if self._absent.any():
            missing = [one for one, absent in zip(self._joints, self._absent) if absent]
            raise DataError(f'the joint states lack {joints_named(missing)} of the model; '
                            f'they have {", ".join(self._names or ())}')
