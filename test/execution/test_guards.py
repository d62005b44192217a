"""Joint states as they come, and the settings of the guards."""

from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import (
    PATH,
    STOP_OF,
    Alarms,
    Code,
    EffortGuard,
    GuardSettings,
    GuardUse,
    JointStates,
    Outcome,
    Tolerances,
    named,
)

JOINTS = ('shoulder', 'elbow')


def test_joint_states_in_parts_any_order_and_repeated():
    states = JointStates(JOINTS)
    assert not states.update(1.0, ['gripper'], 1.0, ([0.1], [], []))
    assert states.update(2.0, ['gripper', 'elbow'], 1.0, ([0.1, 0.2], [], [3.0, 4.0]))
    assert states.position[1] == 0.2 and states.effort[1] == 4.0
    assert states.missing('position') == ('shoulder',)
    assert states.oldest(2.0) == ('shoulder', np.inf)
    assert states.update(2.1, JOINTS, 1.1, ([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]))
    assert not states.update(2.2, JOINTS, 1.1, ([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]))
    assert states.oldest(2.2)[1] == pytest.approx(0.1)
    assert states.update(2.3, JOINTS, 0.0, ([1.0], [0.0, 0.0], [1.0, 1.0]))
    assert states.missing('position') == JOINTS, 'a field of the wrong length is no measurement'


def test_a_stamp_repeated_within_the_first_second_of_a_clock_is_ignored():
    states = JointStates(JOINTS)
    assert [states.update(now, JOINTS, stamp, ([now, 0.0], [], [])) for now, stamp in (
        (1.0, 0.5), (1.1, 0.5), (1.2, 0.0), (1.3, 0.0))] == [True, False, True, True]


def test_joints_published_apart_with_one_stamp_are_all_news():
    states = JointStates(JOINTS)
    assert states.update(1.0, ['shoulder'], 5.0, ([0.1], [], []))
    assert states.update(1.1, ['elbow'], 5.0, ([0.2], [], []))
    assert states.update(1.2, JOINTS[::-1], 6.0, ([0.4, 0.3], [], []))
    assert list(states.position) == [0.3, 0.4]
    assert states.update(1.3, ['shoulder'], 7.0, ([0.5], [], []))
    assert states.update(1.4, JOINTS, 7.0, ([0.5, 0.6], [], [])), 'the elbow is news'
    assert list(states.position) == [0.5, 0.6]
    assert states.oldest(1.5) == ('shoulder', pytest.approx(0.1))
    states.update(1.6, ['elbow'], 8.0, ([0.6], [], []))
    assert states.oldest(2.0) == ('shoulder', pytest.approx(0.6))


def test_speed_comes_from_positions_where_there_is_no_velocity():
    """Over 50 ms: an encoder step of 1e-3 rad per message of 1 ms is no speed of 1 rad/s."""
    states = JointStates(JOINTS)
    for i in range(201):
        now = 5.0 + 1e-3 * i
        position = [0.3 * 1e-3 * i, 1e-3 * (i % 2)]
        assert states.update(now, JOINTS, now, (position, [np.nan, np.nan], []))
    assert states.speed[0] == pytest.approx(0.3)
    assert abs(states.speed[1]) <= 0.02
    states.update(6.0, JOINTS, 6.0, ([0.1, 0.0], [0.7, np.nan], []))
    assert states.speed[0] == 0.7, 'a measured velocity counts at once'


@pytest.mark.parametrize('begins', [0.0, 0.011, 0.024, 0.037, 0.049])
def test_a_joint_that_runs_away_is_seen_at_its_speed_within_an_eighth_of_a_second(begins):
    states = JointStates(('a',))
    for i in range(600):
        now = 5.0 + 1e-3 * i
        states.update(now, ('a',), now, ([max(0.0, 1e-3 * i - 0.4 - begins)], [], []))
        if 1e-3 * i > 0.4 + begins + 0.12:
            assert states.speed[0] == pytest.approx(1.0)


@pytest.mark.parametrize(('name', 'allowed', 'refused'), [
    ('state_timeout', 1e-3, 0.9e-3), ('stop_timeout', 3600.0, 3601.0), ('stop_time', 0.0, -0.001),
    ('stop_time', 3600.0, 3601.0), ('effort_fraction', 0.0, -0.01), ('effort_fraction', 1.0, 1.01),
    ('effort_samples', 1, 0), ('effort_samples', 10_000, 10_001), ('rest_velocity', 0.0, -0.01),
    ('rest_velocity', 1e3, 1001.0), ('temperature_limit', 0.0, -1.0),
    ('temperature_limit', 1e3, 1001.0)])
def test_settings_of_guards_are_in_their_range(name: str, allowed: Any, refused: Any) -> None:
    assert getattr(GuardSettings(**{name: allowed}), name) == allowed
    with pytest.raises(UsageError, match=f'guard {name} must be'):
        GuardSettings(**{name: refused})


def test_guards_are_set_as_documented_unless_told() -> None:
    timeouts = {'state': 0.1, 'controller': 0.2, 'feedback': 0.5, 'acceptance': 2.0, 'result': 1.0,
                'cancel': 0.05, 'stop': 1.0, 'emergency_stop': 0.5, 'temperature': 5.0}
    assert GuardSettings() == GuardSettings(
        **{f'{name}_timeout': seconds for name, seconds in timeouts.items()},
        tracking_window=0.05, effort_fraction=0.9, effort_samples=2, rest_velocity=0.05,
        stop_time=1.0, join_time=0.1, emergency_stop_required=False, temperature_limit=0.0)


@pytest.mark.parametrize('name', ['start', 'tracking', 'path', 'goal'])
@pytest.mark.parametrize('wrong', [0.0, np.nan, np.inf])
def test_tolerances_are_positive_numbers(name: str, wrong: float) -> None:
    given = {key: np.array([0.1, 0.2]) for key in ('start', 'tracking', 'path', 'goal')}
    assert Tolerances(**given).goal_time == 1.0
    with pytest.raises(UsageError, match=f'tolerance {name} must be positive for every joint'):
        Tolerances(**{**given, name: np.array([0.1, wrong])})
    if wrong in (0.0, np.inf):
        with pytest.raises(UsageError, match=f'tolerance goal_time must be positive, got {wrong}'):
            Tolerances(**given, goal_time=wrong)
    assert Tolerances(**given, goal_time=0.01).goal_time == 0.01


def test_a_joint_that_turns_over_goes_on() -> None:
    states = JointStates(JOINTS, np.array([True, False]))
    for k in range(40):
        turned = 3.0 + 0.01 * k
        shown = turned - 2.0 * np.pi * (turned > np.pi)
        states.update(1.0 + 0.01 * k, JOINTS, 1.0 + 0.01 * k, ([shown, turned], [], []))
        assert np.allclose(states.near(np.full(2, turned + 0.1)), turned)
    assert np.allclose(states.speed, 1.0)
    assert np.allclose(states.near(np.array([3.3 - 4.0 * np.pi, 0.0])), [3.39 - 4.0 * np.pi, 3.39])


def test_the_feedback_of_the_controller_stands_in_only_for_states_that_do_not_come() -> None:
    states = JointStates(JOINTS)
    here, there, still = np.zeros(2), np.ones(2), np.zeros(2)
    assert not states.bridge(9.9, 9.9, there, still), 'nothing was ever received'
    states.update(10.0, JOINTS, 5.0, (here, still, [1.0, 2.0]))
    assert not states.bridge(10.04, 10.04, there, still)
    assert not states.bridge(10.06, 10.06, np.array([np.nan, 1.0]), still)
    assert not states.bridge(10.06, 9.99, there, still), 'it is older'
    assert states.bridge(10.06, 10.055, there, still)
    assert np.array_equal(states.position, there) and np.array_equal(states.effort, [1.0, 2.0])
    assert (states.measured, states.bridged) == (10.055, 10.06)
    assert states.oldest(10.06)[1] == pytest.approx(0.06), 'joint states are as old as they are'


def test_the_largest_used_part_of_every_limit_is_noted_until_it_is_taken() -> None:
    use = GuardUse(('a', 'b'))
    use.note('effort', np.array([0.2, np.nan]))
    use.note('effort', np.array([0.1, 0.9]))
    use.note('age of joint states', 0.5)
    use.note('age of joint states', 0.3)
    assert use.take() == {'effort of a': 0.2, 'effort of b': 0.9, 'age of joint states': 0.5}
    assert use.take() == {}


def test_guards_note_what_they_judge() -> None:
    use = GuardUse(('a', 'b'))
    settings = GuardSettings(effort_fraction=0.5)
    guard = EffortGuard(('a', 'b'), np.array([10.0, 20.0]), settings, use)
    assert guard.check(np.array([-4.0, 11.0])) is None  # once is not believed
    assert use.take() == {'effort of a': pytest.approx(0.8), 'effort of b': pytest.approx(1.1)}
    alarms = Alarms(('a', 'b'), GuardSettings(
        temperature_limit=50.0, emergency_stop_required=True, emergency_stop_timeout=2.0))
    alarms.use = use
    alarms.note_emergency_stop(9.0, False)
    for joint, temperature in (('a', 25.0), ('b', 60.0)):
        alarms.note_temperature(10.0, joint, temperature)
    assert alarms.check(10.0) is not None
    assert use.take() == {'temperature of a': 0.5, 'temperature of b': 1.2,
                          'age of the emergency stop': 0.5}


def test_the_code_of_a_result_is_that_of_the_interface() -> None:
    action = pytest.importorskip('robot_dynid_interfaces.action')
    for code in Code:
        assert getattr(action.Excite.Result, code.name) == code.value


def test_kinds_of_stops_without_a_setting() -> None:
    gentle = GuardSettings(**dict.fromkeys(STOP_OF.values(), PATH))
    kinds = {code: gentle.stop_for(code) for code in Code}
    assert {code for code, kind in kinds.items() if kind == 'immediate'} == {Code.REJECTED}
    assert {code for code, kind in kinds.items() if kind == PATH} == {*STOP_OF, Code.NODE_DELAYED}
    defaults = GuardSettings()
    assert {name: getattr(defaults, name) for name in STOP_OF.values()} == {
        'stop_cancelled': 'path', 'stop_emergency': 'path', 'stop_temperature': 'path',
        'stop_stale': 'limited', 'stop_controller_lost': 'limited', 'stop_taken_over': 'limited',
        'stop_effort': 'immediate', 'stop_tracking': 'immediate'}


@pytest.mark.parametrize(('number', 'known'), [(0.9e100, True), (-0.9e100, True), (1e100, False),
                                               (-1e100, False), (np.inf, False)])
def test_numbers_from_1e100_on_are_unknown(number: float, known: bool) -> None:
    states = JointStates(JOINTS)
    states.update(1.0, JOINTS, 1.0, ([number, 0.5], [], []))
    assert states.missing('position') == (() if known else ('shoulder',))


@pytest.mark.parametrize(('step', 'speed'), [(0.049, np.nan), (0.051, 0.2 / 0.051)])
def test_positions_are_differenced_over_50_ms(step: float, speed: float) -> None:
    states = JointStates(('a',))
    for k in range(2):
        states.update(1.0 + step * k, ('a',), 0.0, ([0.2 * k], [], []))
    np.testing.assert_allclose(states.speed, [speed], rtol=1e-9)


def test_the_effort_guard_names_the_joint_and_its_numbers() -> None:
    limits = np.array([10.0, 20.0])
    guard = EffortGuard(JOINTS, limits, GuardSettings(effort_fraction=0.5, effort_samples=3))
    over = np.array([1.0, -10.5])
    assert [guard.check(over) for _ in range(2)] == [None, None]
    assert guard.check(np.array([5.0, -10.0])) is None, 'at what is allowed it is not above'
    assert [guard.check(over) for _ in range(2)] == [None, None]
    assert guard.check(over) == Outcome(
        Code.EFFORT_LIMIT, "effort of joint 'elbow' is -10.5, more than the allowed 10 (limit 20)")
    assert guard.check(np.array([np.nan, 1.0])) == Outcome(
        Code.STALE_STATES, "the effort of joint 'shoulder' is not finite")
    blind = EffortGuard(JOINTS, np.array([np.nan, 20.0]), GuardSettings())
    states = JointStates(JOINTS)
    states.update(1.0, JOINTS, 1.0, ([0.0, 0.0], [0.0, 0.0], [1.0, np.nan]))
    advice = 'or set effort_fraction to 0 to move without this guard'
    assert blind.preflight(states) == (
        f"the effort limit of joint 'shoulder' is unknown; give it in the robot YAML, {advice}",
        f"joint states carry no effort of joint 'elbow'; have the driver publish it, {advice}")
    off = EffortGuard(JOINTS, limits, GuardSettings(effort_fraction=0.0))
    assert (off.preflight(states), off.check(np.full(2, 1e9))) == ((), None)


def alarms(**settings: Any) -> Alarms:
    return Alarms(JOINTS, GuardSettings(**settings))


def test_a_required_emergency_stop_says_what_is_wrong_with_it() -> None:
    stop = alarms(emergency_stop_required=True, emergency_stop_timeout=0.5)
    heard = [stop.check(10.0)]
    stop.note_emergency_stop(10.0, False)
    assert stop.check(10.49) is None
    heard.append(stop.check(10.51))
    stop.present = False
    heard.append(stop.check(10.1))
    stop.note_emergency_stop(10.2, True)
    heard.append(stop.check(10.2))
    advice = 'publish it at 10 Hz or more'
    assert heard == [Outcome(Code.EMERGENCY_STOP, text) for text in (
        'the emergency stop is required, but no message of it was received; '
        f'{advice} on the topic emergency_stop',
        'the emergency stop is required, but sent no message for 0.510 s (limit 0.5 s); '
        f'{advice}, or set emergency_stop_timeout to 0 for a publisher that publishes changes '
        'only', 'the emergency stop is required, but its publisher is gone',
        'the emergency stop is pressed')]


@pytest.mark.parametrize(('since', 'begun', 'watched'), [
    (9.0, 10.0, True), (9.6, 10.0, False), (9.0, 10.6, False)])
def test_an_emergency_stop_is_watched_that_came_regularly_for_its_timeout(
    since: float, begun: float, watched: bool
) -> None:
    stop = alarms(emergency_stop_timeout=0.5)
    for now in np.arange(since, 10.01, 0.1):
        stop.note_emergency_stop(float(now), False)
    assert stop.begin(begun) is None
    found = stop.check(11.5)
    assert (found is not None) is watched
    assert found is None or 'was published regularly when the motion began' in found.text


def test_a_hot_or_silent_joint_is_named() -> None:
    hot = alarms(temperature_limit=60.0, temperature_timeout=5.0)
    hot.note_temperature(10.0, 'elbow', 60.0)
    found = hot.check(11.0)
    assert found is not None and found.text.startswith("no temperature of joint 'shoulder' within "
                                                       'the last 5 s; publish it')
    hot.note_temperature(11.0, 'shoulder', 20.0)
    hot.note_temperature(11.0, 'gripper', 99.0)
    assert hot.check(14.9) is None
    found = hot.check(15.1)
    assert found is not None and "joint 'elbow'" in found.text and found.code is Code.TEMPERATURE
    hot.note_temperature(12.0, 'elbow', 60.25)
    assert hot.check(12.0) == Outcome(
        Code.TEMPERATURE, "joint 'elbow' is at 60.2 degrees C (limit 60): let it cool down")


@pytest.mark.parametrize(('joints', 'text'), [
    (('a',), "joint 'a'"), (('a', 'b'), "joints 'a', 'b'")])
def test_joints_are_named_in_quotes(joints: tuple[str, ...], text: str) -> None:
    assert named(joints) == text
