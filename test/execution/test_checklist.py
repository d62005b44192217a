"""Checklist: every fault is found by its own item, and what is in order is left alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS

from robot_dynid.execution.checklist import (
    Facts,
    Item,
    Level,
    Requirements,
    StateMessage,
    all_items,
    quick_items,
    refusal,
    unguarded,
    verdict,
)
from robot_dynid.execution.guards import Code, GuardSettings, Outcome

NOW, SECONDS, PERIOD = 1000.0, 1.0, 0.01
AT = np.arange(NOW - SECONDS + 0.5 * PERIOD, NOW, PERIOD)
NOISE = np.random.default_rng(0).normal(0.0, 0.1, (len(AT), 2))
WANTED = Requirements(JOINTS, GuardSettings(), LIMITS, longest=600.0, bytes_per_second=4e6)


def messages(names: tuple[str, ...] = JOINTS[::-1]) -> tuple[StateMessage, ...]:
    """Return what a driver publishes that is in order."""
    return tuple(StateMessage(float(at), float(at) - 0.001, names, (0.2, -0.1), (0.0, 0.0),
                              tuple(np.array([8.0, 30.0]) + noise))
                 for at, noise in zip(AT, NOISE))


FACTS = Facts(SECONDS, NOW, messages(), controller='action server c', folder='/bags',
              controller_states=messages(JOINTS), gravity=np.array([28.0, 9.0]), free=1e12)
Change = Callable[[StateMessage], StateMessage]


def states(change: Change, which: slice = slice(None)) -> Facts:
    """Return the facts with joint states changed, all or some."""
    found = list(FACTS.states)
    found[which] = [change(message) for message in found[which]]
    return replace(FACTS, states=tuple(found))


def controller(change: Change) -> Facts:
    """Return the facts with states of the controller changed."""
    return replace(FACTS, controller_states=tuple(map(change, FACTS.controller_states)))


def efforts(*values: float) -> Facts:
    """Return the facts with these efforts of elbow and shoulder at all times."""
    return states(lambda m: replace(m, effort=values))


NAN = float('nan')
UNTOLD = replace(FACTS, controller_states=(), controller_publishers=0)
UNKNOWN = replace(LIMITS, effort=np.array([NAN, 9.0]))
PRESSED = Outcome(Code.EMERGENCY_STOP, 'the emergency stop is pressed')
HOT = Outcome(Code.TEMPERATURE, 'it is hot')
OFF = GuardSettings(effort_fraction=0.0)
W, E = Level.WARN, Level.ERROR
#: facts, requirements, and the one item that is not in order
FAULTS: dict[str, tuple[Facts, Requirements, str, Level, Code, str]] = {
    'absent': (replace(FACTS, controller_ready=False), WANTED, 'controller', E,
               Code.CONTROLLER_LOST, 'no action server c: load and activate the controller'),
    'inactive': (replace(FACTS, controller_states=()), WANTED, 'controller', E,
                 Code.CONTROLLER_LOST, 'sent no controller_state for 1.0 s: it is not active'),
    'controller hardly listened to': (
        replace(FACTS, controller_states=(), seconds=0.02), WANTED, 'controller', E,
        Code.CONTROLLER_LOST, 'action server c is there; 20 ms were too short to receive '
                              'controller_state, which shows whether it is active: check again'),
    'no controller state': (UNTOLD, WANTED, 'controller', E, Code.CONTROLLER_LOST,
                            'does not publish controller_state, which motions sent in pieces ne'),
    'sent whole': (UNTOLD, replace(WANTED, in_pieces=False), 'controller', W, Code.INVALID,
                   'does not publish controller_state, so it may be inactive'),
    'other joints': (controller(lambda m: replace(m, names=('shoulder', 'wrist'))), WANTED,
                     'controller joints', E, Code.JOINTS_DIFFER, 'moves shoulder, wrist; the'),
    'twice in the controller': (
        controller(lambda m: replace(m, names=('shoulder', 'shoulder'))), WANTED,
        'controller joints', E, Code.JOINTS_DIFFER, 'moves shoulder, shoulder'),
    'no feedback': (controller(lambda m: replace(m, position=())), WANTED, 'controller feedback',
                    E, Code.STALE_STATES, 'lacks the position of some joint'),
    'no velocity fed back': (controller(lambda m: replace(m, velocity=(NAN, 0.0))), WANTED,
                             'controller feedback', W, Code.STALE_STATES, 'lacks the velocity'),
    'slow controller': (replace(FACTS, controller_states=FACTS.controller_states[::10]), WANTED,
                        'controller state rate', W, Code.INVALID, '10.0 per second are too few'),
    'gap of the controller': (
        replace(FACTS, controller_states=FACTS.controller_states[:40]
                + FACTS.controller_states[70:]), WANTED, 'controller state rate', E,
        Code.CONTROLLER_LOST, 'a gap of 0.310 s; a motion stops after 0.2 s (controller_timeout)'),
    'slower': (controller(lambda m: replace(m, speed_scaling=0.5)), WANTED, 'speed scaling', W,
               Code.SPEED_SCALING, 'it is 0.5: a motion takes 2 times as long'),
    'paused at the pendant': (
        controller(lambda m: replace(m, speed_scaling=0.0)), WANTED, 'speed scaling', E,
        Code.SPEED_SCALING, 'would move as soon as it is resumed; resume it'),
    'faster': (controller(lambda m: replace(m, speed_scaling=1.2)), WANTED, 'speed scaling', E,
               Code.SPEED_SCALING, 'it is 1.2: motions would be faster than planned'),
    'another commander': (replace(FACTS, commanders=('/rqt',)), WANTED, 'command topic', W,
                          Code.INVALID, '/rqt can command the controller, too: stop'),
    'not recorded': (replace(FACTS, states=()), WANTED, 'joint states', E, Code.NOT_RECORDED,
                     'although they are published'),
    'best effort': (replace(FACTS, best_effort=('motoros2',)), WANTED, 'joint states', W,
                    Code.INVALID, 'motoros2 publishes them as best effort, so'),
    'no states': (replace(FACTS, states=(), states_seen=False), WANTED, 'joint states', E,
                  Code.STALE_STATES, "received no state of joints 'shoulder', 'elbow' "
                                     'for 1.0 s'),
    'states hardly listened to': (
        replace(FACTS, states=(), states_seen=False, seconds=0.02), WANTED, 'joint states', E,
        Code.STALE_STATES, "20 ms were too short to receive a state of joints 'shoulder', "
                           "'elbow'; check again"),
    'joint missing': (states(lambda m: replace(m, names=('elbow', 'wrist'))), WANTED,
                      'joint states', E, Code.STALE_STATES, 'received no state of joint '
                                                            "'shoulder'"),
    'joint twice': (states(lambda m: StateMessage(
        m.arrival, m.stamp, ('elbow', 'elbow', 'shoulder'), (0.1, 0.1, 0.1), (0.0, 0.0, 0.0),
        (*m.effort, m.effort[1]))), WANTED, 'joint states', E, Code.JOINTS_DIFFER,
        "joint 'elbow' occurs twice"),
    'position NaN': (states(lambda m: replace(m, position=(0.0, NAN)), slice(-1, None)), WANTED,
                     'joint states', E, Code.STALE_STATES, "the position of joint 'shoulder'"),
    'no velocity': (states(lambda m: replace(m, velocity=())), WANTED, 'joint states', W,
                    Code.STALE_STATES, 'the velocity of joints'),
    'slow states': (replace(FACTS, states=FACTS.states[::5]), WANTED, 'joint state rate', W,
                    Code.INVALID, '20.0 per second are too few: publish at least 50'),
    'gap': (replace(FACTS, states=FACTS.states[:40] + FACTS.states[55:]), WANTED,
            'joint state rate', E, Code.STALE_STATES,
            'a gap of 0.160 s; a motion stops after 0.1 s (state_timeout)'),
    'ended': (replace(FACTS, states=FACTS.states[:70]), WANTED, 'joint state rate', E,
              Code.STALE_STATES, 'a gap of 0.305 s'),
    'begun late': (replace(FACTS, states=FACTS.states[40:]), WANTED, 'joint state rate', E,
                   Code.STALE_STATES, 'a gap of 0.405 s'),
    'jitter': (states(lambda m: replace(m, stamp=m.stamp - 0.0095), slice(0, None, 2)), WANTED,
               'joint state rate', W, Code.INVALID, 'intervals between stamps scatter by'),
    'no stamps': (states(lambda m: replace(m, stamp=0.0)), WANTED, 'stamps', W, Code.INVALID,
                  'no stamps (0)'),
    'one stamp': (states(lambda m: replace(m, stamp=NOW - 0.5)), WANTED, 'stamps', E,
                  Code.STALE_STATES, 'the same stamp'),
    'back': (states(lambda m: replace(m, stamp=m.stamp - 0.02), slice(50, 51)), WANTED, 'stamps',
             W, Code.INVALID, 'stamps of joint states go back'),
    'past': (states(lambda m: replace(m, stamp=m.stamp - 0.6)), WANTED, 'stamps', W, Code.INVALID,
             '0.601 s behind the clock of this computer'),
    'future': (states(lambda m: replace(m, stamp=m.stamp + 0.3)), WANTED, 'stamps', W,
               Code.INVALID, '0.299 s ahead of the clock'),
    'behind /clock': (
        replace(states(lambda m: replace(m, stamp=m.stamp - 2.0)), sim_time=True,
                clock_publishers=1), WANTED, 'stamps', W, Code.INVALID, 's behind the clock'),
    'no /clock': (replace(FACTS, sim_time=True), WANTED, 'clock', E, Code.INVALID,
                  'use_sim_time is true, but nobody publishes /clock'),
    'slow clock': (replace(FACTS, sim_time=True, clock_publishers=1, clock_fault='too slow'),
                   WANTED, 'clock', E, Code.INVALID, 'too slow'),
    'other clock': (
        replace(states(lambda m: replace(m, stamp=m.stamp - 900.0)), clock_publishers=1), WANTED,
        'clock', E, Code.INVALID, 'set use_sim_time to true'),
    'no effort': (efforts(), WANTED, 'effort', E, Code.INVALID,
                  "joint states carry no effort of joints 'shoulder', 'elbow'"),
    'effort NaN': (efforts(9.0, NAN), WANTED, 'effort', E, Code.INVALID,
                   "no effort of joint 'shoulder'"),
    'no effort watched': (efforts(), replace(WANTED, guards=OFF), 'effort', W, Code.INVALID,
                          'efforts are not watched: without any nothing can be identified'),
    'limit unknown': (FACTS, replace(WANTED, limits=UNKNOWN), 'effort', E, Code.INVALID,
                      "the effort limit of joint 'shoulder' is unknown"),
    'effort above': (efforts(9.0, 95.0), WANTED, 'effort', E, Code.EFFORT_LIMIT,
                     "effort of joint 'shoulder' is 95 at rest, above its limit 100"),
    'effort zero': (efforts(0.0, 0.0), WANTED, 'effort', E, Code.INVALID, 'exactly 0'),
    'effort frozen': (efforts(9.0, 28.0), WANTED, 'effort', W, Code.INVALID, 'never changes'),
    'effort in mNm': (states(lambda m: replace(m, effort=tuple(np.array(m.effort) / 20.0))),
                      WANTED, 'effort', W, Code.INVALID, 'at rest, the model predicts 28'),
    'effort reversed': (states(lambda m: replace(m, effort=tuple(-np.array(m.effort)))), WANTED,
                        'effort', W, Code.INVALID, 'check effort_kind, drive gains and sign'),
    'pressed': (replace(FACTS, alarm=PRESSED, stop_heard=True, stop_publishers=1), WANTED,
                'emergency stop', E, Code.EMERGENCY_STOP, 'is pressed'),
    'stop not heard': (replace(FACTS, stop_publishers=1), WANTED, 'emergency stop', W,
                       Code.INVALID, 'but no message was received: publish it'),
    'stop gone': (replace(FACTS, stop_heard=True), WANTED, 'emergency stop', W, Code.INVALID,
                  'its publisher is gone: start it'),
    'hot': (replace(FACTS, alarm=HOT), WANTED, 'temperature', E, Code.TEMPERATURE, 'it is hot'),
    'no limits': (FACTS, replace(WANTED, limits=None, no_limits='limits are missing'), 'limits', E,
                  Code.INVALID, 'limits are missing'),
    'outside': (states(lambda m: replace(m, position=(0.2, 2.5))), WANTED, 'limits', E,
                Code.INVALID, "joint 'shoulder' stands at 2.5, outside its limits -2 to 2"),
    'moving': (states(lambda m: replace(m, velocity=(0.3, 0.0))), WANTED, 'rest', E, Code.INVALID,
               "joint 'elbow' moves at 0.3"),
    'blind': (FACTS, replace(WANTED, blind=('hand without shape',)), 'collision check', W,
              Code.NOT_CHECKED, 'hand without shape'),
    'blind, required': (FACTS, replace(WANTED, blind=('hand',), collision_check_required=True),
                        'collision check', E, Code.NOT_CHECKED, 'hand'),
    'collision': (replace(FACTS, too_near='this pose in collision'), WANTED, 'collision check', E,
                  Code.INVALID, 'this pose in collision'),
    'unwritable': (replace(FACTS, unwritable='it is not a folder'), WANTED, 'recording', E,
                   Code.NOT_RECORDED, '/bags: it is not a folder; give another'),
    'disk': (replace(FACTS, free=1e9), WANTED, 'recording', W, Code.INVALID,
             'the disk has 1000 MB left, the longest motion (600 s) may take 2400 MB'),
}
#: items that a moment is not enough for
SLOW = {'controller state rate', 'command topic', 'joint state rate', 'limits', 'rest',
        'collision check'}
MEASURED = {'effort above', 'effort zero', 'effort frozen', 'effort in mNm', 'effort reversed'}


def off(items: tuple[Item, ...]) -> list[str]:
    return [item.name for item in items if item.level is not Level.OK]


@pytest.mark.parametrize('fault', FAULTS)
def test_a_fault_shows_in_its_own_item_and_no_other(fault: str) -> None:
    facts, wanted, name, level, code, words = FAULTS[fault]
    items = all_items(facts, wanted)
    assert off(items) == [name], [item for item in items if item.level is not Level.OK]
    (item,) = (item for item in items if item.name == name)
    assert (item.level, item.code if level is E else code) == (level, code)
    assert words in item.message
    refused = refusal(items)
    assert verdict(items)[0] is (refused is None) is (level is W)
    assert refused is None or refused == Outcome(code, f'{name}: {item.message}')
    quick = quick_items(facts, wanted)
    assert off(quick) == ([] if name in SLOW or fault in MEASURED else [name])


def test_checklist_reports_nothing_when_the_system_is_in_order() -> None:
    items = all_items(FACTS, WANTED)
    assert off(items) == []
    assert verdict(items) == (True, f'ready: {len(items)} items, no warnings')
    assert len({item.name for item in items}) == len(items) == 16
    heard = replace(FACTS, stop_heard=True, stop_publishers=1)
    cool = replace(WANTED, guards=GuardSettings(temperature_limit=80.0))
    assert off(all_items(heard, cool)) == []
    assert len(all_items(heard, cool)) == 17
    assert {item.name for item in items} == {item.name for item in quick_items(FACTS, WANTED)
                                             } | SLOW


def test_joints_that_come_in_several_messages_are_judged_each_by_its_own() -> None:
    """Neither their stamps nor their rates are those of one publisher."""
    halves = [replace(message, stamp=message.stamp - 0.004 * k, names=(message.names[k],),
                      position=(message.position[k],), velocity=(0.0,),
                      effort=(message.effort[k],))
              for message in FACTS.states for k in (0, 1)]
    facts = replace(FACTS, states=tuple(halves))
    assert off(all_items(facts, WANTED)) == []
    slow = tuple(m for i, m in enumerate(halves) if m.names == ('elbow',) or i % 12 == 1)
    assert off(all_items(replace(facts, states=slow), WANTED)) == ['joint state rate']


@pytest.mark.parametrize('factor', [0.1, 10.0])
def test_simulated_time_may_run_at_another_speed(factor: float) -> None:
    """Then only the last message has arrived at the time that the clock shows now."""
    other = states(lambda m: replace(m, stamp=NOW - factor * (NOW - m.stamp)))
    assert off(all_items(replace(other, sim_time=True, clock_publishers=1), WANTED)) == []


def test_a_gap_is_no_jitter() -> None:
    """One message that comes late scatters no others; its gap is judged by its length."""
    late = [replace(m, stamp=m.stamp + 0.05, arrival=m.arrival + 0.05)
            for m in FACTS.states[60:-5]]
    assert off(all_items(replace(FACTS, states=(*FACTS.states[:60], *late)), WANTED)) == []


def test_guards_that_a_motion_goes_without_are_named() -> None:
    assert unguarded(GuardSettings(), True, 1.0) == ()
    assert unguarded(GuardSettings(emergency_stop_required=True), False, 1.0) == ()
    (stop,) = unguarded(GuardSettings(), False, 1.0)
    assert stop.startswith('no emergency stop is received or required: publish')
    assert 'emergency_stop_required' in stop
    (effort,) = unguarded(GuardSettings(effort_fraction=0.0), True, 1.0)
    assert effort.startswith('efforts are NOT watched') and 'effort_fraction' in effort
    (whole,) = unguarded(GuardSettings(), True, 0.0)
    assert whole.startswith('the motion is sent as a whole (lookahead is 0)')


def at_rate(rate: float) -> tuple[StateMessage, ...]:
    """Return joint states of one second at so many per second, without a gap at its ends."""
    first = FACTS.states[0]
    times = NOW - SECONDS + (np.arange(round(rate)) + 0.5) / rate
    return tuple(replace(first, arrival=float(at), stamp=float(at) - 0.001,
                         effort=(8.0 + 0.1 * k % 0.7, 30.0 - 0.1 * k % 0.3))
                 for k, at in enumerate(times))


def aged(seconds: float) -> Facts:
    """Return the facts with states stamped so long before they came."""
    return states(lambda m: replace(m, stamp=m.arrival - seconds))


def jittered(share: float) -> Facts:
    """Return the facts with steps between stamps that differ by a share of the longer ones."""
    early = share / (2.0 - share) * PERIOD
    return states(lambda m: replace(m, stamp=m.stamp - early), slice(0, None, 2))


def unchanged(count: int) -> Facts:
    """Return the facts with so many messages, all with one effort of the elbow."""
    found = [replace(m, effort=(8.0, m.effort[1])) for m in FACTS.states[-count:]]
    return replace(FACTS, states=tuple(found))


def weighing(predicted: float, measured: float = 8.0) -> Facts:
    """Return the facts with another effort of the elbow, measured, and predicted at rest."""
    found = states(lambda m: replace(m, effort=(measured + m.effort[0] - 8.0, m.effort[1])))
    return replace(found, gravity=np.array([28.0, predicted]))


@pytest.mark.parametrize(('name', 'inside', 'beyond'), [
    ('joint state rate', replace(FACTS, states=at_rate(51.0)),
     replace(FACTS, states=at_rate(49.0))),
    ('controller state rate', replace(FACTS, controller_states=at_rate(21.0)),
     replace(FACTS, controller_states=at_rate(19.0))),
    ('stamps', aged(0.49), aged(0.51)), ('stamps', aged(-0.049), aged(-0.051)),
    ('joint state rate', jittered(0.49), jittered(0.51)),
    ('effort', unchanged(19), unchanged(20)),
    ('effort', weighing(79.0), weighing(81.0)),
    ('effort', weighing(6.05, 60.0), weighing(5.95, 60.0)),
    ('effort', weighing(-0.049 * LIMITS.effort[1]), weighing(-0.051 * LIMITS.effort[1])),
    ('speed scaling', controller(lambda m: replace(m, speed_scaling=0.9991)),
     controller(lambda m: replace(m, speed_scaling=0.9989))),
    ('recording', replace(FACTS, free=2.41e9), replace(FACTS, free=2.39e9)),
])
def test_a_warning_begins_at_its_threshold(name: str, inside: Facts, beyond: Facts) -> None:
    level = {item.name: item.level for item in all_items(inside, WANTED)}
    assert level[name] is Level.OK
    level = {item.name: item.level for item in all_items(beyond, WANTED)}
    assert level[name] is Level.WARN


def test_items_carry_what_was_measured() -> None:
    values = {item.name: dict(item.values) for item in all_items(FACTS, WANTED)}
    assert values['joint state rate'] == {
        'rate [Hz]': '100.0', 'largest gap [s]': '0.0100', 'jitter': '0.000'}
    assert values['stamps'] == {'age [s]': '0.0010'}
    assert values['recording'] == {'free [MB]': '1000000'}
    assert values['speed scaling'] == {'factor': '1'}
    assert [float(value) for value in values['effort'].values()] == pytest.approx(
        [30.0, 8.0], abs=0.05)
    slow = {item.name: item.message for item in all_items(
        controller(lambda m: replace(m, speed_scaling=0.4)), WANTED)}['speed scaling']
    assert 'a motion takes 2.5 times as long' in slow
    assert 'the longest motion (600 s) may take 2400 MB' in {
        item.name: item.message
        for item in all_items(replace(FACTS, free=1e9), WANTED)}['recording']


@pytest.mark.parametrize(('message', 'level', 'parts'), [
    ('a: b; c', W, ('a: b', 'c')), ('a: b', E, ('a', 'b')), ('a', W, ('a', '')),
    ('a: b; c', Level.OK, ('a: b; c', ''))])
def test_an_item_ends_with_its_remedy(message: str, level: Level, parts: tuple[str, str]) -> None:
    assert Item('x', level, message).parts == parts


def test_the_verdict_counts_warnings() -> None:
    good, warned = Item('a', Level.OK, 'x'), Item('b', W, 'y')
    assert verdict((good, warned)) == (True, 'ready: 2 items, 1 warning')
    assert verdict((good, warned, warned)) == (True, 'ready: 3 items, 2 warnings')
    worst = Item('c', E, 'z', (), Code.COLLISION)
    assert verdict((warned, worst, Item('d', E, 'w'))) == (False, 'c: z')
    assert refusal((warned, worst)) == Outcome(Code.COLLISION, 'c: z')


@pytest.mark.parametrize('change', [
    {'names': ('shoulder', 'wrist')}, {'velocity': (NAN, 0.0)}, {'speed_scaling': 0.5}])
def test_the_last_state_of_the_controller_counts(change: dict[str, object]) -> None:
    *before, last = FACTS.controller_states
    for found, count in (((*before, replace(last, **change)), 1),
                         ((*before[:-1], replace(last, **change), last), 0)):
        assert len(off(quick_items(replace(FACTS, controller_states=found), WANTED))) == count


@pytest.mark.parametrize(('seconds', 'short'), [(0.49, True), (0.5, False)])
def test_silence_is_proven_by_half_a_second(seconds: float, short: bool) -> None:
    deaf = replace(FACTS, controller_states=(), states=(), states_seen=False, seconds=seconds)
    texts = {item.name: item.message for item in quick_items(deaf, WANTED)}
    assert ['ms were too short' in texts[name] for name in ('controller', 'joint states')] == [
        short] * 2


@pytest.mark.parametrize(('behind', 'other'), [(0.99, False), (1.01, True)])
def test_stamps_of_another_clock_are_a_second_away(behind: float, other: bool) -> None:
    facts = replace(aged(behind), clock_publishers=1)
    assert off(quick_items(facts, WANTED)) == ['clock' if other else 'stamps']


@pytest.mark.parametrize(('count', 'repeated'), [(2, False), (3, True)])
def test_one_stamp_repeated_is_that_of_three_messages(count: int, repeated: bool) -> None:
    facts = replace(FACTS, states=tuple(replace(m, stamp=NOW - 0.01) for m in FACTS.states[
        -count:]))
    (item,) = (item for item in quick_items(facts, WANTED) if item.name == 'stamps')
    assert ('all joint states have the same stamp' in item.message) is repeated


@pytest.mark.parametrize(('effort', 'above'), [(99.0, False), (101.0, True)])
def test_an_effort_that_is_not_watched_is_above_its_limit_all_the_same(
        effort: float, above: bool) -> None:
    facts = replace(states(lambda m: replace(m, effort=(m.effort[0], effort + 0.01 * (
        m.effort[1] - 30.0)))), gravity=None)
    items = all_items(facts, replace(WANTED, guards=OFF))
    assert off(items) == (['effort'] if above else [])


def test_the_order_of_the_joints_of_the_controller_is_told() -> None:
    for change, words in ((JOINTS, 'in the order'), (JOINTS[::-1], 'in another order than those')):
        facts = controller(lambda m, names=change: replace(m, names=names))  # type: ignore[misc]
        texts = {item.name: item.message for item in quick_items(facts, WANTED)}
        assert texts['controller joints'] == f'2 joints, {words} of the robot'


def test_facts_are_those_of_a_controller_at_full_speed_unless_told() -> None:
    facts, wanted = Facts(1.0, 2.0), Requirements(JOINTS, OFF, None)
    assert (facts.controller_publishers, facts.stop_publishers, facts.clock_publishers) == (
        1, 0, 0)
    assert StateMessage(0.0, 0.0, ()).speed_scaling == 1.0
    assert (wanted.longest, wanted.bytes_per_second, wanted.in_pieces) == (600.0, 0.0, True)
