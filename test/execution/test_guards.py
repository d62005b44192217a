"""Joint states as they come, and the settings of the guards."""

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import (
    Alarms,
    EffortGuard,
    GuardSettings,
    GuardUse,
    JointStates,
    Tolerances,
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


def test_settings_are_checked():
    with pytest.raises(UsageError, match='state_timeout'):
        GuardSettings(state_timeout=0.0)
    with pytest.raises(UsageError, match='effort_fraction'):
        GuardSettings(effort_fraction=1.2)
    with pytest.raises(UsageError, match='tolerance path must be positive'):
        Tolerances(np.ones(2), np.ones(2), np.array([0.1, 0.0]), np.ones(2))


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
