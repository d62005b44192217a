"""Checklist before a motion: what was seen of robot and controller, judged item by item.

The caller listens for a while and asks who is there. An item whose facts are missing, because
another one reports why, is left out: every fault shows in one item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

from robot_dynid.execution.clocks import FULL
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

#: s of listening that tell who is silent; a topic that has just been found takes part of that
TELLING = 0.5
#: messages per second below which there are warnings, of joint states and controller state
FEW_STATES, FEW_CONTROLLER_STATES = 50.0, 20.0
#: deviation of the steps between stamps from their median, a part of it, and of how many of them
JITTER, MOST = 0.5, 0.9
#: s that stamps may be behind the clock of the node, or ahead of it
PAST, FUTURE = 0.5, 0.05
#: s that stamps are away from the clock where they are by another one
OTHER_CLOCK = 1.0
#: messages in which an effort that is measured has changed
CHANGES = 20
#: part of its limit above which the effort of gravity is compared, and the factor it may be off
NOTICEABLE, FACTOR = 0.05, 10.0


class Level(IntEnum):
    """Level of an item, as in diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


OK, WARN, ERROR = Level.OK, Level.WARN, Level.ERROR


@dataclass(frozen=True)
class Item:
    """Item of the checklist; ``values`` are what was measured, by name.

    ``message`` says what was found and, behind its last semicolon, what to do; ``code`` is the
    outcome of a motion that is refused for it.
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

    ``limits`` with efforts in the unit of the joint states, or ``no_limits``: why there are none;
    ``blind`` and ``unchecked`` say what is not checked for collisions; ``in_pieces``: a motion is
    sent so, and needs the state of the controller; ``longest`` s of a motion, which takes
    ``bytes_per_second`` on the disk.
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
    """Facts about robot, controller and computer, seen within ``seconds`` up to ``now`` s.

    ``now`` is by the clock of the node, ``sim_time`` whether it follows the topic /clock,
    ``clock_fault`` what is wrong with the pace of that.
    ``states`` came in reliably; ``states_seen`` whether any did. ``controller`` names what is
    looked for. ``commanders`` are other nodes that publish on the controller's topic. ``gravity``
    (n,) is the effort that a model predicts at rest, in the unit of the joint states; ``too_near``
    the pair of bodies in collision. ``unwritable`` says why nothing can be recorded in ``folder``,
    on whose disk ``free`` bytes are left.
    """

    seconds: float
    now: float
    states: tuple[StateMessage, ...] = ()
    states_seen: bool = True
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


def unguarded(settings: GuardSettings, stop_heard: bool, lookahead: float) -> tuple[str, ...]:
    """Return one sentence for every guard that a motion goes without, with what to do about it.

    ``stop_heard``: whether a message of the emergency stop has been received; ``lookahead`` s of
    a motion are sent ahead, 0: all of it at once.
    """
    found = []
    if lookahead == 0.0:
        found.append('the motion is sent whole (lookahead is 0): where this node or its computer '
                     'fails, the robot goes on to its end; set lookahead to 1')
    if settings.effort_fraction == 0.0:
        found.append('efforts are NOT watched (effort_fraction is 0); set it to a part of the '
                     'limits, such as 0.9')
    if not settings.emergency_stop_required and not stop_heard:
        found.append('no emergency stop is heard, nor required; publish the topic emergency_stop, '
                     'and set emergency_stop_required to true')
    return tuple(found)


def quick_items(facts: Facts, wanted: Requirements) -> tuple[Item, ...]:
    """Return the items that a moment is enough for."""
    found = [_controller(facts, wanted), _controller_joints(facts, wanted), _feedback(facts),
             _speed_scaling(facts),
             _joint_states(facts, wanted), _stamps(facts), _clock(facts),
             _effort_known(facts, wanted), _emergency_stop(facts), _temperature(facts, wanted),
             _disk(facts, wanted)]
    return tuple(item for item in found if item is not None)


def all_items(facts: Facts, wanted: Requirements) -> tuple[Item, ...]:
    """Return all items; they want ``facts`` of about a second."""
    found = [_rate('controller state rate', facts.controller_states, facts,
                   (FEW_CONTROLLER_STATES, wanted.guards.controller_timeout,
                    'controller_timeout', Code.CONTROLLER_LOST)),
             _commanders(facts),
             _rate('joint state rate', facts.states, facts,
                   (FEW_STATES, wanted.guards.state_timeout, 'state_timeout', Code.STALE_STATES)),
             _effort(facts, wanted), _limits(facts, wanted), _rest(facts, wanted),
             _collisions(facts, wanted)]
    quick = [item for item in quick_items(facts, wanted) if item.name != 'effort']
    return (*quick, *(item for item in found if item is not None))


def refusal(items: Sequence[Item]) -> Outcome | None:
    """Return the outcome of a motion that is refused for the first error, None without one."""
    wrong = next((item for item in items if item.level is ERROR), None)
    return None if wrong is None else Outcome(wrong.code, f'{wrong.name}: {wrong.message}')


def verdict(items: Sequence[Item]) -> tuple[bool, str]:
    """Return whether no item is an error, and the first error or the number of warnings."""
    wrong, warned = refusal(items), sum(item.level is WARN for item in items)
    if wrong is not None:
        return False, wrong.text
    return True, f'ready: {len(items)} items, {warned or "no"} warning{"s" * (warned != 1)}'


@lru_cache(maxsize=1)
def _states(facts: Facts, joints: tuple[str, ...]) -> JointStates:
    """Return the states after all messages."""
    states = JointStates(joints)
    for message in facts.states:
        states.update(message.arrival, message.names, message.stamp,
                      (message.position, message.velocity, message.effort))
    return states


def _visible(facts: Facts, wanted: Requirements) -> JointStates | None:
    """Return the states where all positions are known."""
    states = _states(facts, wanted.joints)
    return None if states.missing('position') else states


def _too_short(facts: Facts) -> str:
    return f'{1e3 * facts.seconds:.0f} ms of listening were too short to hear'


def _controller(facts: Facts, wanted: Requirements) -> Item:
    name, lost = 'controller', Code.CONTROLLER_LOST
    if not facts.controller_ready:
        return Item(name, ERROR, f'no {facts.controller}; is the controller loaded and '
                    'active, and its name the parameter controller?', code=lost)
    if facts.controller_states:
        return Item(name, OK, f'{facts.controller} is there, and active')
    if facts.controller_publishers and facts.seconds < TELLING:
        return Item(name, ERROR, f'{facts.controller} is there; {_too_short(facts)} '
                    'controller_state, which tells whether it is active; check again', code=lost)
    if facts.controller_publishers:
        return Item(name, ERROR, f'{facts.controller} is there, but no controller_state came '
                    f'in for {facts.seconds:.1f} s: it is not active; activate it (ros2 control '
                    'switch_controllers --activate NAME)', code=lost)
    if wanted.in_pieces:
        return Item(name, ERROR, f'{facts.controller} is there, but nobody publishes '
                    'controller_state, without which a motion cannot be sent in pieces; use a '
                    'joint_trajectory_controller that does', code=lost)
    return Item(name, WARN, f'{facts.controller} is there; nobody publishes controller_state, so '
                'whether it is active is not known')


def _controller_joints(facts: Facts, wanted: Requirements) -> Item | None:
    if not facts.controller_states:
        return None
    name, joints = 'controller joints', facts.controller_states[-1].names
    if sorted(joints) != sorted(wanted.joints):
        return Item(name, ERROR, f'the controller moves {", ".join(joints)}; the robot has '
                    f'{", ".join(wanted.joints)}; give the controller, or the robot YAML, the '
                    'same joints', code=Code.JOINTS_DIFFER)
    order = 'in the order' if joints == wanted.joints else 'in another order than those'
    return Item(name, OK, f'{len(joints)} joints, {order} of the robot')


def _feedback(facts: Facts) -> Item | None:
    if not facts.controller_states:
        return None
    name, last = 'controller feedback', facts.controller_states[-1]
    for quantity, level in (('position', ERROR), ('velocity', WARN)):
        values = np.asarray(getattr(last, quantity), dtype=np.float64)
        if len(values) != len(last.names) or not np.all(np.isfinite(values)):
            return Item(name, level, f'the controller knows no {quantity} of every joint; give '
                        'it that state interface', code=Code.STALE_STATES)
    return Item(name, OK, 'positions and velocities of all joints')


def _speed_scaling(facts: Facts) -> Item | None:
    if not facts.controller_states:
        return None
    name, scaling = 'speed scaling', facts.controller_states[-1].speed_scaling
    values = (('factor', f'{scaling:.4g}'),)
    if abs(scaling - 1.0) <= FULL:
        return Item(name, OK, 'full speed', values)
    if scaling == 0.0:
        return Item(name, ERROR, 'it is 0: the robot is paused, and would begin to move whenever '
                    'it is resumed; resume it at its pendant first', values, Code.SPEED_SCALING)
    if scaling > 1.0:
        return Item(name, ERROR, f'it is {scaling:.4g}: motions would be faster than planned; set '
                    'the speed to 100 %', values, Code.SPEED_SCALING)
    return Item(name, WARN, f'it is {scaling:.4g}: a motion takes {1.0 / scaling:.3g} times as '
                'long, and shows less of the inertias; set the speed to 100 %', values)


def _joint_states(facts: Facts, wanted: Requirements) -> Item:
    name, stale = 'joint states', Code.STALE_STATES
    if not facts.states and facts.states_seen:
        return Item(name, ERROR, 'the recording receives no joint states, which must be '
                    'published reliably', code=Code.NOT_RECORDED)
    states = _states(facts, wanted.joints)
    absent = [joint for joint, at in zip(wanted.joints, states.arrival) if not np.isfinite(at)]
    if absent and facts.seconds < TELLING:
        return Item(name, ERROR, f'{_too_short(facts)} a state of {named(absent)}; check again',
                    code=stale)
    if absent:
        return Item(name, ERROR, f'no state of {named(absent)} came in for '
                    f'{facts.seconds:.1f} s; is the joint state broadcaster active?', code=stale)
    for message in facts.states:
        twice = [joint for joint in wanted.joints if message.names.count(joint) > 1]
        if twice:
            return Item(name, ERROR, f'{named(twice)} occurs twice in a message; have the '
                        'driver name every joint once', code=Code.JOINTS_DIFFER)
    for quantity, level in (('position', ERROR), ('velocity', WARN)):
        missing = states.missing(quantity)
        if missing:
            return Item(name, level, f'the {quantity} of {named(missing)} is not finite, or not '
                        'published; have the driver publish it', code=stale)
    return Item(name, OK, f'positions and velocities of all {len(wanted.joints)} joints')


def _stamps(facts: Facts) -> Item | None:
    if not facts.states:
        return None
    name, stamps = 'stamps', np.array([message.stamp for message in facts.states])
    arrivals = np.array([message.arrival for message in facts.states])
    if not np.any(stamps):
        return Item(name, WARN, 'joint states have no stamps (0); have the driver stamp '
                    'them when they are measured')
    if len(stamps) > 2 and np.all(stamps == stamps[0]):
        return Item(name, ERROR, 'all joint states have the same stamp: what publishes them '
                    'repeats one measurement', code=Code.STALE_STATES)
    if np.any(np.diff(stamps) < 0.0) and len({message.names for message in facts.states}) == 1:
        return Item(name, WARN, 'stamps of joint states go back; do two programs publish '
                    'them?')
    # messages come late, never early; only the last arrival is by a clock that runs otherwise
    age = float(facts.now - stamps[-1] if facts.sim_time else np.min(arrivals - stamps))
    values = (('age [s]', f'{age:.4f}'),)
    if not -FUTURE <= age <= PAST and not _other_clock(facts):
        where = f'{age:.3f} s behind' if age > 0.0 else f'{-age:.3f} s ahead of'
        return Item(name, WARN, f'stamps of joint states are {where} the clock of this '
                    'computer; synchronise the clocks (chrony), or stamp at measuring', values)
    return Item(name, OK, 'stamps increase, by the clock of this node', values)


def _other_clock(facts: Facts) -> bool:
    """Return whether the states are stamped by /clock, which the node does not follow."""
    if facts.sim_time or not facts.clock_publishers or not facts.states:
        return False
    last = facts.states[-1]
    return abs(last.arrival - last.stamp) > OTHER_CLOCK


def _clock(facts: Facts) -> Item:
    if facts.sim_time and not facts.clock_publishers:
        return Item('clock', ERROR, 'use_sim_time is true, but nobody publishes /clock; start '
                    'the simulation, or set use_sim_time to false')
    if _other_clock(facts):
        return Item('clock', ERROR, 'joint states are stamped by /clock, which this node does '
                    'not follow; set use_sim_time to true')
    if facts.clock_fault:
        return Item('clock', ERROR, facts.clock_fault)
    return Item('clock', OK, '/clock' if facts.sim_time else 'that of this computer')


def _rate(name: str, messages: tuple[StateMessage, ...], facts: Facts,
          wanted: tuple[float, float, str, Code]) -> Item | None:
    """Return the item about rate, gaps and jitter; those of the slowest publisher."""
    few, timeout, parameter, code = wanted
    if not messages:
        return None
    worst: Item | None = None
    for names in dict.fromkeys(message.names for message in messages):
        own = [message for message in messages if message.names == names]
        begin, arrivals = facts.now - facts.seconds, [message.arrival for message in own]
        steps = np.diff([message.stamp for message in own])
        gap, rate = float(np.diff([begin, *arrivals, facts.now]).max()), len(own) / facts.seconds
        middle = float(np.median(steps)) if len(steps) else 0.0
        # by what part of their median most steps differ from it; a gap is no jitter
        jitter = 0.0 if middle <= 0.0 else float(
            np.quantile(np.abs(steps - middle), MOST) / middle)
        values = (('rate [Hz]', f'{rate:.1f}'), ('largest gap [s]', f'{gap:.4f}'),
                  ('jitter', f'{jitter:.3f}'))
        item = Item(name, OK, f'{rate:.0f} per second', values)
        if gap > timeout:
            item = Item(name, ERROR, f'a gap of {gap:.3f} s; a motion stops after '
                        f'{timeout:g} s ({parameter}); make the computer or the network less '
                        'busy', values, code)
        elif rate < few:
            item = Item(name, WARN, f'{rate:.1f} per second are few; publish at least '
                        f'{few:g}', values)
        elif jitter > JITTER:
            item = Item(name, WARN, f'steps between stamps scatter by {jitter:.0%} of their '
                        'median; stamp at measuring, in the real-time loop', values)
        if worst is None or item.level > worst.level:
            worst = item
    return worst


def _commanders(facts: Facts) -> Item:
    if facts.commanders:
        return Item('command topic', WARN, f'{", ".join(facts.commanders)} can command the '
                    'controller, too; end what may send a trajectory during the motion')
    return Item('command topic', OK, 'no other node publishes on it')


def _effort_known(facts: Facts, wanted: Requirements) -> Item | None:
    states = _visible(facts, wanted)
    if states is None or wanted.limits is None:
        return None
    guard = EffortGuard(wanted.joints, wanted.limits.effort, wanted.guards)
    faults, missing = guard.preflight(states), states.missing('effort')
    if faults:
        return Item('effort', ERROR, '; '.join(faults))
    if missing:
        return Item('effort', WARN, f'joint states carry no effort of {named(missing)}, and '
                    'efforts are not watched: without any nothing can be identified')
    return Item('effort', OK, 'efforts of all joints')


def _effort(facts: Facts, wanted: Requirements) -> Item | None:
    known = _effort_known(facts, wanted)
    if known is None or known.level is not OK or wanted.limits is None:
        return known
    columns = [np.array([message.effort[message.names.index(joint)] for message in facts.states
                         if joint in message.names]) for joint in wanted.joints]
    mean = np.array([column.mean() for column in columns])
    values = tuple((joint, f'{value:.4g}') for joint, value in zip(wanted.joints, mean))
    frozen_ones = [joint for joint, column in zip(wanted.joints, columns)
                   if len(column) >= CHANGES and np.ptp(column) == 0.0]
    limit = wanted.limits.effort
    fraction = wanted.guards.effort_fraction or 1.0
    above = np.flatnonzero(np.abs(mean) > fraction * limit)
    if above.size:
        i = int(above[0])
        return Item('effort', ERROR, f"effort of joint '{wanted.joints[i]}' is {mean[i]:.4g} "
                    f'at rest, its limit {limit[i]:.4g}; check units and the effort limits of the '
                    'robot', values, Code.EFFORT_LIMIT)
    if not np.any(mean) and len(frozen_ones) == len(columns):
        return Item('effort', ERROR, 'all efforts are exactly 0: they are not measured; have '
                    'the driver publish them', values)
    gravity = np.zeros_like(mean) if facts.gravity is None else facts.gravity
    ratio = np.divide(mean, gravity, out=np.ones_like(mean),
                      where=np.abs(gravity) > NOTICEABLE * limit)
    implausible = np.flatnonzero((ratio < 1.0 / FACTOR) | (ratio > FACTOR))
    if implausible.size:
        i = int(implausible[0])
        return Item('effort', WARN, f"effort of joint '{wanted.joints[i]}' is {mean[i]:.4g} "
                    f'at rest, the model predicts {gravity[i]:.4g}; check effort_kind, drive '
                    'gains and sign, and whether a brake holds the joint', values)
    if frozen_ones:
        return Item('effort', WARN, f'the effort of {named(frozen_ones)} never changes: is it '
                    'measured?', values)
    return Item('effort', OK, 'measured, and as the model predicts it at rest'
                if facts.gravity is not None else 'measured', values)


def _emergency_stop(facts: Facts) -> Item:
    name, alarm = 'emergency stop', facts.alarm
    if alarm is not None and alarm.code is Code.EMERGENCY_STOP:
        return Item(name, ERROR, alarm.text, code=alarm.code)
    if facts.stop_publishers and not facts.stop_heard:
        return Item(name, WARN, 'its topic has a publisher, but no message came in; publish '
                    'it all the time, or latched')
    if facts.stop_heard and not facts.stop_publishers:
        return Item(name, WARN, 'its publisher went away; start it again')
    return Item(name, OK, 'released' if facts.stop_heard else
                'not required, and nobody publishes it')


def _temperature(facts: Facts, wanted: Requirements) -> Item | None:
    alarm = facts.alarm
    if alarm is not None and alarm.code is Code.TEMPERATURE:
        return Item('temperature', ERROR, alarm.text, code=alarm.code)
    if alarm is not None or wanted.guards.temperature_limit == 0.0:
        return None
    return Item('temperature', OK, 'all joints are received, and cool enough')


def _limits(facts: Facts, wanted: Requirements) -> Item | None:
    states = _visible(facts, wanted)
    if wanted.limits is None:
        return Item('limits', ERROR, wanted.no_limits)
    if states is None:
        return None
    outside = outside_limits(states.position, wanted.limits)
    if outside:
        return Item('limits', ERROR, outside)
    return Item('limits', OK, 'known, and the robot stands within them')


def _rest(facts: Facts, wanted: Requirements) -> Item | None:
    states = _visible(facts, wanted)
    if states is None:
        return None
    speed = np.abs(np.nan_to_num(states.speed))
    i = int(np.argmax(speed))
    if speed[i] > wanted.guards.rest_velocity:
        return Item('rest', ERROR, f"joint '{wanted.joints[i]}' moves at {speed[i]:.3g}; wait "
                    'until the robot stands')
    return Item('rest', OK, 'the robot stands')


def _collisions(facts: Facts, wanted: Requirements) -> Item:
    name = 'collision check'
    if wanted.blind:
        level = ERROR if wanted.collision_check_required else WARN
        return Item(name, level, '; '.join(wanted.blind), code=Code.NOT_CHECKED)
    if facts.too_near:
        return Item(name, ERROR, facts.too_near)
    return Item(name, OK, '; '.join(('possible for all links', *wanted.unchecked)))


def _disk(facts: Facts, wanted: Requirements) -> Item:
    name = 'recording'
    if facts.unwritable:
        return Item(name, ERROR, f'{facts.folder}: {facts.unwritable}; give another '
                    'recording_directory', code=Code.NOT_RECORDED)
    values = (('free [MB]', f'{facts.free / 1e6:.0f}'),)
    if facts.free < wanted.bytes_per_second * wanted.longest:
        return Item(name, WARN, f'{facts.folder}: the disk has {facts.free / 1e6:.0f} MB left, '
                    f'the longest motion ({wanted.longest:g} s) may take '
                    f'{wanted.bytes_per_second * wanted.longest / 1e6:.0f} MB; make room', values)
    return Item(name, OK, f'into {facts.folder}', values)
