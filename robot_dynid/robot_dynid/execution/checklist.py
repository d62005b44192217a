"""Checklist before a motion: facts about robot and controller, judged item by item.

The caller listens for a while and queries the nodes present. An item without facts is left out if
another item states the reason: every fault shows in one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from robot_dynid.document import listed, subject
from robot_dynid.execution.clocks import PACE_TOLERANCE
from robot_dynid.execution.guards import (
    Code,
    EffortGuard,
    GuardSettings,
    JointStates,
    Outcome,
    named,
)
from robot_dynid.execution.plan import outside_limits
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray

#: s of listening that prove silence; part of it passes until a new topic is connected
TELLING = 0.5
#: messages per second of joint states and controller state below which a warning is given
FEW_STATES, FEW_CONTROLLER_STATES = 50.0, 20.0
#: allowed jitter of the stamps, a share of their median interval, and the quantile it is taken at
STAMP_JITTER, MOST_STAMPS = 0.5, 0.9
#: s that stamps may be behind the clock of the node, or ahead of it
PAST, FUTURE = 0.5, 0.05
#: difference of stamps and clock [s] above which they are from another clock
OTHER_CLOCK = 1.0
#: number of messages in which a measured effort must have changed
CHANGES = 20
#: share of its limit above which the effort of gravity is compared, and the allowed factor
NOTICEABLE, FACTOR = 0.05, 10.0


class Level(IntEnum):
    """Level of an item, as in diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


OK, WARN, ERROR = Level.OK, Level.WARN, Level.ERROR


@dataclass(frozen=True)
class Item:
    """Item of the checklist; ``values`` are the measured numbers by name.

    ``message`` is the finding and, after its last semicolon or colon, the remedy; ``code`` is the
    outcome of a motion refused for it.
    """

    name: str
    level: Level
    message: str
    values: tuple[tuple[str, str], ...] = ()
    code: Code = Code.INVALID

    @property
    def parts(self) -> tuple[str, str]:
        """The finding, and the remedy, empty for none."""
        what, parted, remedy = self.message.rpartition('; ')
        if not parted:
            what, parted, remedy = self.message.rpartition(': ')
        return (what, remedy) if parted and self.level is not Level.OK else (self.message, '')


@dataclass(frozen=True)
class StateMessage:
    """A message of joint states or of the controller's state, whose feedback it holds.

    ``arrival`` s by the clock of the node, ``stamp`` s its own; position [rad, m], velocity,
    effort: one number for each of the ``names``, or none. ``speed_scaling`` is the time of a
    motion of the controller per real time.
    """

    arrival: float
    stamp: float
    names: tuple[str, ...]
    position: Sequence[float] = ()
    velocity: Sequence[float] = ()
    effort: Sequence[float] = ()
    speed_scaling: float = 1.0


@dataclass(frozen=True, eq=False)
class Requirements:
    """Requirements of a motion on robot, controller and computer.

    ``limits`` with efforts in the unit of the joint states, or ``no_limits``: the reason for their
    absence; ``blind`` and ``unchecked`` name what is not checked for collisions; ``in_pieces``: a
    motion is sent in pieces, and needs the state of the controller; ``longest`` s of a motion,
    which takes ``bytes_per_second`` on the disk.
    """

    joints: tuple[str, ...]
    guards: GuardSettings
    limits: MotionLimits | None
    no_limits: str = ''
    blind: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    collision_check_required: bool = False
    in_pieces: bool = True
    longest: float = 600.0
    bytes_per_second: float = 0.0


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about robot, controller and computer, observed within ``seconds`` up to ``now`` s.

    ``now`` is by the clock of the node, ``sim_time`` whether it follows the topic /clock,
    ``clock_fault`` the fault of the pace of that clock. ``states`` were received for recordings;
    ``states_seen`` whether any was; ``best_effort`` names the nodes that publish them so.
    ``controller`` is the name sought. ``commanders`` are other nodes that publish on the
    controller's topic. ``gravity`` (n,) is the effort that a model predicts at rest, in the unit
    of the joint states; ``too_near`` the pair of bodies in collision. ``unwritable`` states why
    nothing can be recorded in ``folder``, on whose disk ``free`` bytes are left.
    """

    seconds: float
    now: float
    states: tuple[StateMessage, ...] = ()
    states_seen: bool = True
    best_effort: tuple[str, ...] = ()
    controller: str = ''
    controller_ready: bool = True
    controller_states: tuple[StateMessage, ...] = ()
    controller_publishers: int = 1
    commanders: tuple[str, ...] = ()
    alarm: Outcome | None = None
    stop_heard: bool = False
    stop_publishers: int = 0
    sim_time: bool = False
    clock_publishers: int = 0
    clock_fault: str = ''
    gravity: FloatArray | None = None
    too_near: str = ''
    folder: str = ''
    unwritable: str = ''
    free: float = np.inf


Values = tuple[tuple[str, str], ...]
#: level, message, measured values, code of a motion refused for it
Finding = tuple[Level, str] | tuple[Level, str, Values] | tuple[Level, str, Values, Code]
Findings = Iterator[Finding]


def unguarded(settings: GuardSettings, stop_heard: bool, lookahead: float) -> tuple[str, ...]:
    """Return one sentence for every missing guard of a motion, with the remedy.

    ``stop_heard``: whether a message of the emergency stop has been received; ``lookahead`` s of a
    motion are sent ahead, 0: all of it at once.
    """
    texts = []
    if lookahead == 0.0:
        texts.append('the motion is sent as a whole (lookahead is 0), so the robot completes it '
                     'even if this node or its computer fails: set lookahead to 1')
    if settings.effort_fraction == 0.0:
        texts.append('efforts are NOT watched (effort_fraction is 0): set it to a share of the '
                     'limits, such as 0.9')
    if not settings.emergency_stop_required and not stop_heard:
        texts.append('no emergency stop is received or required: publish the topic '
                     'emergency_stop, and set emergency_stop_required to true')
    return tuple(texts)


def quick_items(facts: Facts, wanted: Requirements) -> tuple[Item, ...]:
    """Return the items that need only a moment."""
    return _items(facts, wanted, QUICK)


def all_items(facts: Facts, wanted: Requirements) -> tuple[Item, ...]:
    """Return all items; they need ``facts`` of about a second."""
    quick = {rule: name for rule, name in QUICK.items() if name != 'effort'}
    return _items(facts, wanted, quick | THOROUGH)


def _items(
    facts: Facts, wanted: Requirements, rules: Mapping[Callable[[_Checks], Findings], str],
) -> tuple[Item, ...]:
    """Return the item of every rule: its first finding, none if another item states the reason."""
    checks = _Checks(facts, wanted)
    return tuple(Item(name, *finding) for rule, name in rules.items()
                 if (finding := next(rule(checks), None)) is not None)


def refusal(items: Sequence[Item]) -> Outcome | None:
    """Return the outcome of a motion refused for the first error, or None."""
    wrong = next((item for item in items if item.level is ERROR), None)
    return None if wrong is None else Outcome(wrong.code, f'{wrong.name}: {wrong.message}')


def verdict(items: Sequence[Item]) -> tuple[bool, str]:
    """Return whether no item is an error, and the first error or the number of warnings."""
    wrong, warned = refusal(items), sum(item.level is WARN for item in items)
    if wrong is not None:
        return False, wrong.text
    return True, f'ready: {len(items)} items, {warned or "no"} warning{"s" * (warned != 1)}'


class _Checks:
    """The rules of all items, each yields its findings by priority: the first one counts."""

    def __init__(self, facts: Facts, wanted: Requirements) -> None:
        self.facts, self.wanted = facts, wanted
        self.states = JointStates(wanted.joints)
        for message in facts.states:
            self.states.update(message.arrival, message.names, message.stamp,
                               (message.position, message.velocity, message.effort))
        self.visible = not self.states.missing('position')
        self.too_short = f'{1000.0 * facts.seconds:.0f} ms were too short to receive'

    def controller(self) -> Findings:
        facts, name, lost = self.facts, self.facts.controller, Code.CONTROLLER_LOST
        if not facts.controller_ready:
            yield (ERROR, f'no {name}: load and activate the controller, or correct the parameter '
                   'controller', (), lost)
        if facts.controller_states:
            yield OK, f'{name} is there, and active'
        if facts.controller_publishers and facts.seconds < TELLING:
            yield (ERROR, f'{name} is there; {self.too_short} controller_state, which shows '
                   'whether it is active: check again', (), lost)
        if facts.controller_publishers:
            yield (ERROR, f'{name} is there, but sent no controller_state for {facts.seconds:.1f} '
                   's: it is not active; activate it (ros2 control switch_controllers --activate '
                   'NAME)', (), lost)
        if self.wanted.in_pieces:
            yield (ERROR, f'{name} is there, but does not publish controller_state, which motions '
                   'sent in pieces need: use a joint_trajectory_controller that does', (), lost)
        yield (WARN, f'{name} is there, but does not publish controller_state, so it may be '
               'inactive')

    def controller_joints(self) -> Findings:
        if not self.facts.controller_states:
            return
        joints, wanted = self.facts.controller_states[-1].names, self.wanted.joints
        if sorted(joints) != sorted(wanted):
            yield (ERROR, f'the controller moves {", ".join(joints)}; the robot has '
                   f'{", ".join(wanted)}; give the controller, or the robot YAML, the same joints',
                   (), Code.JOINTS_DIFFER)
        order = 'in the order' if joints == wanted else 'in another order than those'
        yield OK, f'{len(joints)} joints, {order} of the robot'

    def feedback(self) -> Findings:
        if not self.facts.controller_states:
            return
        last = self.facts.controller_states[-1]
        for quantity, level in (('position', ERROR), ('velocity', WARN)):
            values = np.asarray(getattr(last, quantity), dtype=np.float64)
            if len(values) != len(last.names) or not np.all(np.isfinite(values)):
                yield (level, f'the controller lacks the {quantity} of some joint: give it that '
                       'state interface', (), Code.STALE_STATES)
        yield OK, 'positions and velocities of all joints'

    def speed_scaling(self) -> Findings:
        if not self.facts.controller_states:
            return
        scaling = self.facts.controller_states[-1].speed_scaling
        values = (('factor', f'{scaling:.4g}'),)
        if abs(scaling - 1.0) <= PACE_TOLERANCE:
            yield OK, 'full speed', values
        if scaling == 0.0:
            yield (ERROR, 'it is 0: the robot is paused, and would move as soon as it is resumed; '
                   'resume it at its pendant first', values, Code.SPEED_SCALING)
        if scaling > 1.0:
            yield (ERROR, f'it is {scaling:.4g}: motions would be faster than planned; set the '
                   'speed to 100 %', values, Code.SPEED_SCALING)
        yield (WARN, f'it is {scaling:.4g}: a motion takes {1.0 / scaling:.3g} times as long and '
               'excites the inertias less; set the speed to 100 %', values)

    def joint_states(self) -> Findings:
        facts, joints, stale = self.facts, self.wanted.joints, Code.STALE_STATES
        if not facts.states and facts.states_seen:
            yield (ERROR, 'the recording receives no joint states, although they are published; '
                   'check again', (), Code.NOT_RECORDED)
        absent = [joint for joint, at in zip(joints, self.states.arrival) if not np.isfinite(at)]
        if absent and facts.seconds < TELLING:
            yield ERROR, f'{self.too_short} a state of {named(absent)}; check again', (), stale
        if absent:
            yield (ERROR, f'received no state of {named(absent)} for {facts.seconds:.1f} s: '
                   'activate the joint state broadcaster', (), stale)
        for names in dict.fromkeys(message.names for message in facts.states):
            twice = [joint for joint in joints if names.count(joint) > 1]
            if twice:
                yield (ERROR, f'{named(twice)} occurs twice in a message; have the driver name '
                       'every joint once', (), Code.JOINTS_DIFFER)
        for quantity, level in (('position', ERROR), ('velocity', WARN)):
            missing = self.states.missing(quantity)
            if missing:
                yield (level, f'the {quantity} of {named(missing)} is not finite, or not '
                       'published; have the driver publish it', (), stale)
        if facts.best_effort:
            yield (WARN, f'{subject(facts.best_effort, "publishes", "publish")} them as best '
                   'effort, so lost messages are not sent again: make the publisher reliable if '
                   'possible')
        yield OK, f'positions and velocities of all {len(joints)} joints'

    def stamps(self) -> Findings:
        facts = self.facts
        if not facts.states:
            return
        stamps, arrivals = (np.array([getattr(message, name) for message in facts.states])
                            for name in ('stamp', 'arrival'))
        if not np.any(stamps):
            yield (WARN, 'joint states have no stamps (0); have the driver stamp them when they '
                   'are measured')
        if len(stamps) > 2 and np.all(stamps == stamps[0]):
            yield (ERROR, 'all joint states have the same stamp: their publisher repeats one '
                   'measurement', (), Code.STALE_STATES)
        if np.any(np.diff(stamps) < 0.0) and len({m.names for m in facts.states}) == 1:
            yield WARN, 'stamps of joint states go back: stop all publishers but one'
        # messages are late, never early; only the last arrival is by a clock that runs differently
        age = float(facts.now - stamps[-1] if facts.sim_time else np.min(arrivals - stamps))
        values = (('age [s]', f'{age:.4f}'),)
        if not -FUTURE <= age <= PAST and not self.other_clock:
            where = f'{age:.3f} s behind' if age > 0.0 else f'{-age:.3f} s ahead of'
            yield (WARN, f'stamps of joint states are {where} the clock of this computer; '
                   'synchronise the clocks (chrony), or stamp them when they are measured', values)
        yield OK, 'stamps increase, by the clock of this node', values

    @property
    def other_clock(self) -> bool:
        """Whether the states are stamped by /clock, which the node does not follow."""
        facts = self.facts
        return bool(not facts.sim_time and facts.clock_publishers and facts.states and abs(
            facts.states[-1].arrival - facts.states[-1].stamp) > OTHER_CLOCK)

    def clock(self) -> Findings:
        facts = self.facts
        if facts.sim_time and not facts.clock_publishers:
            yield (ERROR, 'use_sim_time is true, but nobody publishes /clock; start the '
                   'simulation, or set use_sim_time to false')
        if self.other_clock:
            yield (ERROR, 'joint states are stamped by /clock, which this node does not follow; '
                   'set use_sim_time to true')
        if facts.clock_fault:
            yield ERROR, facts.clock_fault
        yield OK, '/clock' if facts.sim_time else 'that of this computer'

    def controller_state_rate(self) -> Findings:
        return self._rate(self.facts.controller_states, FEW_CONTROLLER_STATES,
                          'controller_timeout', Code.CONTROLLER_LOST)

    def joint_state_rate(self) -> Findings:
        return self._rate(self.facts.states, FEW_STATES, 'state_timeout', Code.STALE_STATES)

    def _rate(self, messages: Sequence[StateMessage], few: float, parameter: str, code: Code
              ) -> Findings:
        """Yield the findings about rate, gaps and jitter; that of the worst publisher first."""
        timeout, seconds = getattr(self.wanted.guards, parameter), self.facts.seconds
        findings: list[Finding] = []
        for names in dict.fromkeys(message.names for message in messages):
            sent = [message for message in messages if message.names == names]
            arrivals, steps = [m.arrival for m in sent], np.diff([m.stamp for m in sent])
            gap = float(np.diff([self.facts.now - seconds, *arrivals, self.facts.now]).max())
            rate, middle = len(sent) / seconds, float(np.median(steps)) if len(steps) else 0.0
            # by what part of their median most steps differ from it; a gap is no jitter
            jitter = 0.0 if middle <= 0.0 else float(
                np.quantile(np.abs(steps - middle), MOST_STAMPS) / middle)
            values = (('rate [Hz]', f'{rate:.1f}'), ('largest gap [s]', f'{gap:.4f}'),
                      ('jitter', f'{jitter:.3f}'))
            if gap > timeout:
                findings.append((
                    ERROR, f'a gap of {gap:.3f} s; a motion stops after {timeout:g} s '
                    f'({parameter}); make the computer or the network less busy', values, code))
            elif rate < few:
                findings.append((WARN, f'{rate:.1f} per second are too few: publish at least '
                                 f'{few:g} (`robot-dynid doctor` names faster topics)', values))
            elif jitter > STAMP_JITTER:
                findings.append((WARN, f'intervals between stamps scatter by {jitter:.0%} of '
                                 'their median: stamp in the real-time loop', values))
            else:
                findings.append((OK, f'{rate:.0f} per second', values))
        yield from sorted(findings, key=lambda finding: -finding[0])

    def commanders(self) -> Findings:
        if self.facts.commanders:
            yield (WARN, f'{listed(self.facts.commanders)} can command the controller, too: '
                   'stop what may send a trajectory during the motion')
        yield OK, 'no other node publishes on it'

    def effort_known(self) -> Findings:
        wanted = self.wanted
        if not self.visible or wanted.limits is None:
            return
        guard = EffortGuard(wanted.joints, wanted.limits.effort, wanted.guards)
        faults, missing = guard.preflight(self.states), self.states.missing('effort')
        if faults:
            yield ERROR, '; '.join(faults)
        if missing:
            yield (WARN, f'joint states carry no effort of {named(missing)}, and efforts are not '
                   'watched: without any nothing can be identified')
        yield OK, 'efforts of all joints'

    def effort(self) -> Findings:
        facts, wanted = self.facts, self.wanted
        unusable = next(self.effort_known(), None)
        if unusable is None or unusable[0] is not OK or wanted.limits is None:
            yield from self.effort_known()
            return
        columns = [np.array([message.effort[message.names.index(joint)]
                             for message in facts.states if joint in message.names])
                   for joint in wanted.joints]
        mean, limit = np.array([column.mean() for column in columns]), wanted.limits.effort
        values = tuple((joint, f'{value:.4g}') for joint, value in zip(wanted.joints, mean))
        frozen_ones = [joint for joint, column in zip(wanted.joints, columns)
                       if len(column) >= CHANGES and np.ptp(column) == 0.0]
        for i in np.flatnonzero(np.abs(mean) > (wanted.guards.effort_fraction or 1.0) * limit):
            yield (ERROR, f"effort of joint '{wanted.joints[i]}' is {mean[i]:.4g} at rest, above "
                   f'its limit {limit[i]:.4g}: check units and the effort limits of the '
                   'robot', values,
                   Code.EFFORT_LIMIT)
        if not np.any(mean) and len(frozen_ones) == len(columns):
            yield (ERROR, 'all efforts are exactly 0: they are not measured; have the driver '
                   'publish them', values)
        gravity = np.zeros_like(mean) if facts.gravity is None else facts.gravity
        ratio = np.divide(mean, gravity, out=np.ones_like(mean),
                          where=np.abs(gravity) > NOTICEABLE * limit)
        for i in np.flatnonzero((ratio < 1.0 / FACTOR) | (ratio > FACTOR)):
            yield (WARN, f"effort of joint '{wanted.joints[i]}' is {mean[i]:.4g} at rest, the "
                   f'model predicts {gravity[i]:.4g}; check effort_kind, drive gains and sign, '
                   'and whether a brake holds the joint', values)
        if frozen_ones:
            yield (WARN, f'the effort of {named(frozen_ones)} never changes: check that the '
                         'driver measures it',
                   values)
        yield (OK, 'measured' if facts.gravity is None else
               'measured, and as the model predicts it at rest', values)

    def emergency_stop(self) -> Findings:
        facts, alarm = self.facts, self.facts.alarm
        if alarm is not None and alarm.code is Code.EMERGENCY_STOP:
            yield ERROR, alarm.text, (), alarm.code
        if facts.stop_publishers and not facts.stop_heard:
            yield (WARN, 'its topic has a publisher, but no message was received: publish it '
                   'continuously, or latched')
        if facts.stop_heard and not facts.stop_publishers:
            yield WARN, 'its publisher is gone: start it again'
        yield OK, 'released' if facts.stop_heard else 'not required, and nobody publishes it'

    def temperature(self) -> Findings:
        alarm = self.facts.alarm
        if alarm is not None and alarm.code is Code.TEMPERATURE:
            yield ERROR, alarm.text, (), alarm.code
        if alarm is None and self.wanted.guards.temperature_limit > 0.0:
            yield OK, 'received for all joints, and below the limit'

    def limits(self) -> Findings:
        if self.wanted.limits is None:
            yield ERROR, self.wanted.no_limits
        elif self.visible:
            outside = outside_limits(self.states.position, self.wanted.limits)
            if outside:
                yield ERROR, outside
            yield OK, 'known, and the robot stands within them'

    def rest(self) -> Findings:
        if not self.visible:
            return
        speed = np.abs(np.nan_to_num(self.states.speed))
        i = int(np.argmax(speed))
        if speed[i] > self.wanted.guards.rest_velocity:
            yield (ERROR, f"joint '{self.wanted.joints[i]}' moves at {speed[i]:.3g}; wait until "
                   'it stands still')
        yield OK, 'the robot stands'

    def collisions(self) -> Findings:
        wanted = self.wanted
        if wanted.blind:
            level = ERROR if wanted.collision_check_required else WARN
            yield level, '; '.join(wanted.blind), (), Code.NOT_CHECKED
        elif self.facts.too_near:
            yield ERROR, self.facts.too_near
        yield OK, '; '.join(('possible for all links', *wanted.unchecked))

    def recording(self) -> Findings:
        facts, needed = self.facts, self.wanted.bytes_per_second * self.wanted.longest
        if facts.unwritable:
            yield (ERROR, f'{facts.folder}: {facts.unwritable}; give another '
                   'recording_directory', (), Code.NOT_RECORDED)
        values = (('free [MB]', f'{facts.free / 1e6:.0f}'),)
        if facts.free < needed:
            yield (WARN, f'{facts.folder}: the disk has {facts.free / 1e6:.0f} MB left, the '
                   f'longest motion ({self.wanted.longest:g} s) may take {needed / 1e6:.0f} MB: '
                   'free space', values)
        yield OK, f'into {facts.folder}', values


#: names of the items by their rules, in their order: those that a moment is enough for, and those
#: that want about a second
QUICK: dict[Callable[[_Checks], Findings], str] = {
    _Checks.controller: 'controller', _Checks.controller_joints: 'controller joints',
    _Checks.feedback: 'controller feedback', _Checks.speed_scaling: 'speed scaling',
    _Checks.joint_states: 'joint states', _Checks.stamps: 'stamps', _Checks.clock: 'clock',
    _Checks.effort_known: 'effort', _Checks.emergency_stop: 'emergency stop',
    _Checks.temperature: 'temperature', _Checks.recording: 'recording'}
THOROUGH: dict[Callable[[_Checks], Findings], str] = {
    _Checks.controller_state_rate: 'controller state rate', _Checks.commanders: 'command topic',
    _Checks.joint_state_rate: 'joint state rate', _Checks.effort: 'effort',
    _Checks.limits: 'limits', _Checks.rest: 'rest', _Checks.collisions: 'collision check'}
