"""Guards of a motion: codes, thresholds and tolerances, joint states, efforts, alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.errors import UsageError
from robot_dynid.execution.clocks import Attention, StampClock
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.signals.turns import TURN
from robot_dynid.types import FloatArray


class Code(IntEnum):
    """Outcome of an excitation; the values of the action's result."""

    SUCCESS = 0
    INVALID = -1
    REJECTED = -2
    TRACKING_ERROR = -3
    STALE_STATES = -4
    EFFORT_LIMIT = -5
    CANCELLED = -6
    CONTROLLER_LOST = -7
    ABORTED = -8
    BUSY = -9
    EMERGENCY_STOP = -10
    TEMPERATURE = -11
    NOT_RECORDED = -12
    UNKNOWN_TRAJECTORY = -13
    JOINTS_DIFFER = -14
    LIMIT_BROKEN = -15
    EFFORT_PREDICTED = -16
    COLLISION = -17
    NODE_DELAYED = -18
    TAKEN_OVER = -19
    NOT_CHECKED = -20
    ACCURACY_MET = -21
    OUT_OF_REACH = -22
    SPEED_SCALING = -23


@dataclass(frozen=True)
class Outcome:
    """Code and text: the event, its place, and the remedy."""

    code: Code
    text: str


STOP_ADVICE = 'publish it at 10 Hz or more'
TIMEOUT = NumberRange(1e-3, 3600.0, 's')
TIME = NumberRange(0.0, 3600.0, 's')


#: along the path; all joints decelerate within their limits, off the path where need be; the
#: controller is told to hold at once. From the gentlest to the hardest.
STOPS = ('path', 'limited', 'immediate')
PATH, LIMITED, IMMEDIATE = STOPS


def _stop(default: str, cause: str) -> Any:
    """Return the field of the kind of stop for a cause."""
    return setting(default, STOPS, f'how the robot is stopped {cause}')


@dataclass(frozen=True)
class GuardSettings:
    """Thresholds of the live guards; times in s.

    ``tracking_window`` is how far the robot may lag or lead in time; ``effort_fraction`` of the
    effort limit is allowed, ``effort_samples`` consecutive states above it trip the guard, 0
    switches it off; ``rest_velocity`` rad/s (m/s) counts as standing still. ``stop_time`` is the
    longest duration of a decelerating stop, 0 makes every stop a hard one; ``join_time`` is the
    time for the controller to switch between motions while moving. ``emergency_stop_timeout`` is
    the longest silence of an emergency stop that is required or published regularly, 0 for one
    published on changes only. ``temperature_limit`` in degrees C, 0 switches this guard off.
    """

    state_timeout: float = setting(
        0.1, TIMEOUT, 'longest silence of the joint states, s')
    controller_timeout: float = setting(
        0.2, TIMEOUT, 'longest silence of the controller state, s')
    feedback_timeout: float = setting(
        0.5, TIMEOUT, 'longest silence of the feedback of the action, s')
    acceptance_timeout: float = setting(
        2.0, TIMEOUT, 'longest wait for the answer to a goal, s')
    result_timeout: float = setting(
        1.0, TIMEOUT, 'longest wait for the result after the end of a motion, s')
    cancel_timeout: float = setting(
        0.05, TIMEOUT,
        'a cancel request that is not confirmed in this time is followed by a hold, s')
    stop_timeout: float = setting(
        1.0, TIMEOUT, 'a stop that is not confirmed in this time is reported as such, s')
    tracking_window: float = setting(
        0.05, TIME, 'by how much the robot may lag or lead in time, s')
    effort_fraction: float = setting(
        0.9, NumberRange(0.0, 1.0), 'allowed share of the effort limits; 0: not watched')
    effort_samples: int = setting(
        2, NumberRange(1, 10_000, whole=True),
        'consecutive states with an effort above what is allowed')
    rest_velocity: float = setting(
        0.05, NumberRange(0.0, 1e3, 'rad/s or m/s'),
        'speed below which a joint is at rest, rad/s or m/s')
    stop_time: float = setting(
        1.0, TIME, 'longest time a decelerating stop may take, s; 0: every stop is immediate')
    join_time: float = setting(
        0.1, TIME, 'time for the controller to switch to another motion while moving, s')
    emergency_stop_required: bool = setting(
        False, text='whether an emergency stop must be received before a motion')
    emergency_stop_timeout: float = setting(
        0.5, TIME,
        'longest silence of an emergency stop that is published regularly, s; 0: it is published '
        'on changes only')
    temperature_limit: float = setting(
        0.0, NumberRange(0.0, 1e3, 'deg C'),
        'temperature of a joint at which it is stopped, degrees C; 0: not watched')
    temperature_timeout: float = setting(
        5.0, TIMEOUT, 'longest silence of the temperature of a joint, s')

    stop_cancelled: str = _stop(PATH, 'when the goal is cancelled')
    stop_emergency: str = _stop(PATH, 'by an emergency stop')
    stop_temperature: str = _stop(PATH, 'when a joint is too hot')
    stop_stale: str = _stop(LIMITED, 'when joint states are stale')
    stop_controller_lost: str = _stop(LIMITED, 'when the controller is silent')
    stop_taken_over: str = _stop(LIMITED, 'when another client commands it')
    stop_effort: str = _stop(IMMEDIATE, 'when an effort is too large')
    stop_tracking: str = _stop(IMMEDIATE, 'when the tracking error is too large')

    def __post_init__(self) -> None:
        require_allowed(self, 'guard {}')

    def stop_for(self, code: Code) -> str:
        """Return the kind of stop for a cause; LIMITED for most causes without a setting.

        A controller that steps between points (REJECTED) would execute a deceleration as one step.
        """
        if code in STOP_OF:
            return str(getattr(self, STOP_OF[code]))
        return {Code.NODE_DELAYED: PATH, Code.REJECTED: IMMEDIATE}.get(code, LIMITED)


#: setting of the kind of stop by cause
STOP_OF = {
    Code.CANCELLED: 'stop_cancelled', Code.EMERGENCY_STOP: 'stop_emergency',
    Code.TEMPERATURE: 'stop_temperature', Code.STALE_STATES: 'stop_stale',
    Code.CONTROLLER_LOST: 'stop_controller_lost', Code.TAKEN_OVER: 'stop_taken_over',
    Code.EFFORT_LIMIT: 'stop_effort', Code.TRACKING_ERROR: 'stop_tracking'}


@dataclass(frozen=True, eq=False)
class Tolerances:
    """Allowed position errors per joint, (n,) rad (m).

    ``start`` before a motion; ``tracking`` of the live guard; ``path`` and ``goal`` are asked of
    the controller, ``goal_time`` s is granted for reaching the goal.
    """

    start: FloatArray
    tracking: FloatArray
    path: FloatArray
    goal: FloatArray
    goal_time: float = 1.0

    def __post_init__(self) -> None:
        for name in ('start', 'tracking', 'path', 'goal'):
            if not np.all(getattr(self, name) > 0.0) or not np.all(
                np.isfinite(getattr(self, name))
            ):
                raise UsageError(f'tolerance {name} must be positive for every joint: 0 would '
                                 'mean unchecked')
        if not 0.0 < self.goal_time < np.inf:
            raise UsageError(f'tolerance goal_time must be positive, got {self.goal_time}')


#: s over which positions are differenced: single messages differ by encoder steps
SPEED_SPAN = 0.05
#: s for which the controller's feedback replaces missing joint states, in which no
#: effort is watched: a joint_state_broadcaster on a busy computer is silent for as long
BRIDGED = 0.3
SILENT = 0.05  # s without joint states after which it does
ABSURD = 1e100  # rad, rad/s, N m (SI of a slider): such a number, as an infinite one, is unknown


class JointStates:
    """The latest state of every joint, whatever the order and number of messages.

    ``position``, ``velocity``, ``effort`` (n,), NaN where never received; ``arrival`` (n,) s, by
    the receiver's clock, as is ``measured`` s, the time of measurement of the latest message.
    ``speed`` (n,) is the velocity, or if joint states lack it the difference of positions over
    SPEED_SPAN. ``turning`` (n,) joints may be reported without whole turns.
    """

    def __init__(self, joints: tuple[str, ...], turning: NDArray[np.bool_] | None = None) -> None:
        n = len(joints)
        self.joints = joints
        self._turn = np.where(False if turning is None else turning, TURN, np.inf)
        self.position, self.velocity, self.effort = (np.full(n, np.nan) for _ in range(3))
        self.arrival = np.full(n, -np.inf)
        self.measured = self.bridged = -np.inf
        self._clock = StampClock()
        self.speed = np.full(n, np.nan)
        self._anchor, self._anchored = np.full(n, np.nan), np.full(n, -np.inf)
        self._stamp = np.full(n, -np.inf)
        self._names: tuple[str, ...] = ()
        self._rows = self._columns = np.empty(0, dtype=np.intp)

    def update(self, now: float, names: Sequence[str], stamp: float,
               values: tuple[ArrayLike, ArrayLike, ArrayLike]) -> bool:
        """Use a message received ``now``; return False if it has nothing new of a joint.

        ``values`` are position [rad, m], velocity and effort, each (m,) for the m ``names`` or
        empty; ``stamp`` s is the message's own time (0: none), a repeated one is ignored.
        """
        if tuple(names) != self._names:
            self._names = tuple(names)
            pairs = [(i, self._names.index(joint)) for i, joint in enumerate(self.joints)
                     if joint in self._names]
            self._rows, self._columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        if not len(self._rows) or (stamp > 0.0 and np.all(self._stamp[self._rows] == stamp)):
            return False
        for stored, value in zip((self.position, self.velocity, self.effort), values):
            received = np.asarray(value, dtype=np.float64)
            good = len(received) == len(self._names)
            taken = received[self._columns] if good else np.nan
            stored[self._rows] = np.where(np.abs(taken) < ABSURD, taken, np.nan)
        self.measured = self._clock.time(now, stamp)
        self._note_speed(self.measured, self._rows)
        self.arrival[self._rows] = now
        self._stamp[self._rows] = stamp
        return True

    def bridge(self, now: float, measured: float, position: FloatArray, velocity: FloatArray
               ) -> bool:
        """Use the controller's measurements, (n,) each, while joint states are missing.

        ``measured`` s is their time, ``now`` that of arrival; False if they are not needed or not
        new.
        """
        age = self.oldest(now)[1]
        if measured <= self.measured or not SILENT < age < np.inf \
                or not np.all(np.isfinite(position)):
            return False
        self.measured, self.bridged = measured, now
        self.position[:], self.velocity[:] = position, velocity
        self._note_speed(measured, np.arange(len(self.joints)))
        return True

    def near(self, position: FloatArray) -> FloatArray:
        """Return the positions (n,), by whole turns nearest to ``position`` where they turn."""
        turns = np.rint((position - self.position) / self._turn)
        return self.position + np.where(turns == 0.0, 0.0, turns * TURN)

    def oldest(self, now: float) -> tuple[str, float]:
        """Return the joint with the oldest state, and its age, s."""
        i = int(np.argmin(self.arrival))
        return self.joints[i], now - float(self.arrival[i])

    def missing(self, quantity: str) -> tuple[str, ...]:
        """Return the joints whose ``quantity`` (position, velocity, effort) is not finite."""
        bad = ~np.isfinite(getattr(self, quantity))
        return tuple(self.joints[i] for i in np.flatnonzero(bad))

    def _note_speed(self, now: float, rows: NDArray[np.intp]) -> None:
        due = rows[now - self._anchored[rows] >= SPEED_SPAN]
        travelled = self.near(self._anchor)[due] - self._anchor[due]
        self.speed[due] = travelled / (now - self._anchored[due])
        self._anchor[due], self._anchored[due] = self.position[due], now
        measured = rows[np.isfinite(self.velocity[rows])]
        self.speed[measured] = self.velocity[measured]


class GuardUse:
    """Used share of the limit of every guard, the largest since the last reading; 1: a stop.

    ``joints`` are those of the shares (n,).
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._joints = joints
        self._parts: dict[str, Any] = {}

    def note(self, guard: str, part: ArrayLike) -> None:
        """Record the share of a limit, one or one per joint (n,), that is used now."""
        self._parts[guard] = np.fmax(self._parts.get(guard, 0.0), part)

    def take(self) -> dict[str, float]:
        """Return the largest shares since the last call by guard and joint."""
        parts, self._parts = self._parts, {}
        return {guard if not np.ndim(part) else f'{guard} of {self._joints[i]}': float(value)
                for guard, part in parts.items() for i, value in enumerate(np.atleast_1d(part))}


class EffortGuard:
    """Trips when an effort stays above the allowed share of its limit.

    ``limits`` (n,) in the unit of the joint states' effort; ``use`` records the used share.
    """

    def __init__(
        self, joints: tuple[str, ...], limits: FloatArray, settings: GuardSettings,
        use: GuardUse | None = None,
    ) -> None:
        self._use = use or GuardUse(joints)
        self.enabled = settings.effort_fraction > 0.0
        self._joints = joints
        self._allowed = settings.effort_fraction * limits
        self._limits = limits
        self._needed = settings.effort_samples
        self._count = np.zeros(len(joints), dtype=np.int64)

    def preflight(self, states: JointStates) -> tuple[str, ...]:
        """Return the reasons why this guard cannot work; empty if it can."""
        if not self.enabled:
            return ()
        advice = 'or set effort_fraction to 0 to move without this guard'
        unknown = [self._joints[i] for i in np.flatnonzero(~np.isfinite(self._limits))]
        silent = states.missing('effort')
        faults = []
        if unknown:
            faults.append(f'the effort limit of {named(unknown)} is unknown; give it in the robot '
                          f'YAML, {advice}')
        if silent:
            faults.append(f'joint states carry no effort of {named(silent)}; have the driver '
                          f'publish it, {advice}')
        return tuple(faults)

    def check(self, effort: FloatArray) -> Outcome | None:
        """Return the reason to stop, from the efforts (n,) of a new state."""
        if not self.enabled:
            return None
        if not np.all(np.isfinite(effort)):
            joint = self._joints[int(np.argmin(np.isfinite(effort)))]
            return Outcome(Code.STALE_STATES, f"the effort of joint '{joint}' is not finite")
        above = np.abs(effort) > self._allowed
        self._use.note('effort', np.abs(effort) / self._allowed)
        self._count = np.where(above, self._count + 1, 0)
        if not np.any(self._count >= self._needed):
            return None
        i = int(np.argmax(self._count))
        return Outcome(
            Code.EFFORT_LIMIT,
            f"effort of joint '{self._joints[i]}' is {effort[i]:.4g}, more than the allowed "
            f'{self._allowed[i]:.4g} (limit {self._limits[i]:.4g})')


class Alarms:
    """Latest states of the emergency stop and of the joint temperatures; times in s.

    ``pressed`` is None until a message of the emergency stop was received, ``present`` whether its
    topic has a publisher. ``temperature`` (n,) degrees C, NaN until one was received. Ages are
    those of ``attention``; ``use`` records the used share of the limits.
    """

    def __init__(self, joints: tuple[str, ...], settings: GuardSettings) -> None:
        self.pressed: bool | None = None
        self.present = True
        self.attention, self.use = Attention(), GuardUse(joints)
        self.temperature = np.full(len(joints), np.nan)
        self._received = np.full(len(joints), -np.inf)
        self._joints, self._settings = joints, settings
        self._heard = self._regular_since = -np.inf
        self._watched = settings.emergency_stop_required

    def note_emergency_stop(self, now: float, pressed: bool) -> None:
        """Note a message of the emergency stop."""
        if self._age(now) > self._settings.emergency_stop_timeout:
            self._regular_since = now
        self._heard, self.pressed = now, pressed

    def note_temperature(self, now: float, joint: str, temperature: float) -> None:
        """Record the temperature of a joint in degrees C; ignore other names."""
        if joint in self._joints:
            i = self._joints.index(joint)
            self.temperature[i], self._received[i] = temperature, now

    def begin(self, now: float) -> Outcome | None:
        """Return the reason not to begin a motion, or None.

        An emergency stop that was published regularly until now, for at least its timeout, must
        not fall silent during the motion either, whether it is required or not.
        """
        timeout = self._settings.emergency_stop_timeout
        regular = self._age(now) <= timeout <= self._heard - self._regular_since
        self._watched = self._settings.emergency_stop_required or (timeout > 0.0 and regular)
        return self.check(now)

    def check(self, now: float) -> Outcome | None:
        """Return the reason not to move, or None."""
        return self._emergency(now) or self._overheated(now)

    def _age(self, now: float) -> float:
        return self.attention.age(self._heard, now)

    def _emergency(self, now: float) -> Outcome | None:
        required, timeout = (
            self._settings.emergency_stop_required, self._settings.emergency_stop_timeout)
        why = 'is required' if required else 'was published regularly when the motion began'
        if self.pressed:
            return Outcome(Code.EMERGENCY_STOP, 'the emergency stop is pressed')
        if not self._watched:
            return None
        if self.pressed is None:
            return Outcome(Code.EMERGENCY_STOP, f'the emergency stop {why}, but no message '
                           f'of it was received; {STOP_ADVICE} on the topic emergency_stop')
        if not self.present:
            return Outcome(Code.EMERGENCY_STOP, f'the emergency stop {why}, but its publisher is '
                           'gone')
        if timeout > 0.0:
            self.use.note('age of the emergency stop', self._age(now) / timeout)
        if 0.0 < timeout < self._age(now):
            return Outcome(
                Code.EMERGENCY_STOP, f'the emergency stop {why}, but sent no message for '
                f'{self._age(now):.3f} s (limit {timeout:g} s); {STOP_ADVICE}'
                + (', or set emergency_stop_timeout to 0 for a publisher that publishes changes '
                   'only' if required else ''))
        return None

    def _overheated(self, now: float) -> Outcome | None:
        limit = self._settings.temperature_limit
        if limit <= 0.0:
            return None
        ages = np.array([self.attention.age(at, now) for at in self._received])
        overdue = ages > self._settings.temperature_timeout
        unknown = np.flatnonzero(overdue | ~np.isfinite(self.temperature))
        silent = [self._joints[i] for i in unknown]
        if silent:
            return Outcome(
                Code.TEMPERATURE, f'no temperature of {named(silent)} within the last '
                f'{self._settings.temperature_timeout:g} s; publish it with the name of the joint '
                'as frame_id, or set temperature_limit to 0 to move without this guard')
        self.use.note('temperature', self.temperature / limit)
        if not np.any(self.temperature > limit):
            return None
        i = int(np.argmax(self.temperature))
        return Outcome(
            Code.TEMPERATURE, f"joint '{self._joints[i]}' is at {self.temperature[i]:.1f} degrees "
            f'C (limit {limit:g}): let it cool down')


def named(joints: Sequence[str]) -> str:
    """Return the joints as text: joint 'a', or joints 'a', 'b'."""
    listed = ', '.join(f"'{joint}'" for joint in joints)
    return f'joint {listed}' if len(joints) == 1 else f'joints {listed}'
