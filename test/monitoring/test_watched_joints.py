"""What the monitor cannot see it calls blind, with the reason: from state to state and along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from monitored import model_of, motion

from robot_dynid.cli.main import main
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.io.csv import write_csv
from robot_dynid.monitoring import contact_events as search
from robot_dynid.monitoring.contact_events import ContactEvents, contact_events
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings, Reading, levels_of
from robot_dynid.monitoring.monitor_input import MonitorInput, monitor_input
from robot_dynid.monitoring.observer import ContactSettings
from robot_dynid.monitoring.watched_joints import (
    BEGUN,
    NO_LEVEL,
    OBSERVER_CONSTANTS,
    REASONS,
    REFUSED,
    UNUSABLE,
    WATCHED,
    TrainedRange,
    blind_codes,
    blind_times,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

STEP = 0.002
SETTINGS = MonitorSettings(contact=ContactSettings(thresholds=(50.0,)))
#: states within which the observer settles, and one for rounding
SETTLED = round(OBSERVER_CONSTANTS / SETTINGS.gain / STEP) + 1
POSE = np.array([0.3, -0.5, 0.8])
RANGES = Trained({'position': np.outer(np.ones(3), [-1.5, 1.5]),
                  'velocity': np.outer(np.ones(3), [-2.0, 2.0])})


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    return replace(model_of(load_robot('planar_3r')), trained=RANGES)


@dataclass
class Follower:
    """A monitor that follows an arm at rest; keywords say what is wrong with the states."""

    model: IdentifiedModel
    settings: MonitorSettings = SETTINGS

    def __post_init__(self) -> None:
        self.monitor, self.time = Monitor(self.model, self.settings), 0.0
        self.hold = self.model.inverse(POSE[None], np.zeros((1, 3)), np.zeros((1, 3)))[0]
        self.free: list[bool | None] = []
        self.reading: Reading | None = None

    def __call__(self, count: int, q: FloatArray = POSE, qd: FloatArray | None = None,
                 effort: FloatArray | None = None, step: float = STEP) -> None:
        self.free = []
        for _ in range(count):
            self.time += step
            self.reading = reading = self.monitor(self.time, q, np.zeros(3) if qd is None else qd,
                                                  self.hold if effort is None else effort)
            self.free.append(None if reading is None else reading.free)


def with_value(values: FloatArray, joint: int, value: float) -> FloatArray:
    """Return a copy with another value for one joint."""
    changed = values.copy()
    changed[joint] = value
    return changed


#: faults of single joints: how states show them, and words of the reason
FAULTS: dict[str, tuple[Callable[[Follower], None], str]] = {
    'effort is NaN': (lambda f: f(60, effort=with_value(f.hold, 1, np.nan)), 'are NaN'),
    'effort is impossible': (lambda f: f(60, effort=with_value(f.hold, 1, 1e9)), 'are NaN'),
}


@pytest.mark.parametrize('name', FAULTS)
def test_a_joint_at_fault_is_blind_and_the_others_are_watched(
    model: IdentifiedModel, name: str
) -> None:
    follow, (fault, words) = Follower(model), FAULTS[name]
    follow(SETTLED)
    assert (follow.monitor.blind, follow.free[-1]) == ({}, True)
    fault(follow)
    assert list(follow.monitor.blind) == [model.joints[1]]
    assert words in follow.monitor.blind[model.joints[1]]
    assert follow.free[-1] is False, 'unknown is not free'
    follow(SETTLED - 3)
    assert list(follow.monitor.blind) == [model.joints[1]], 'the observer has to settle'
    follow(3)
    assert (follow.monitor.blind, follow.free[-1]) == ({}, True)


@pytest.mark.parametrize('state', [
    {'q': with_value(POSE, 1, 1.7)}, {'qd': with_value(np.zeros(3), 1, -2.3)}],
    ids=['position', 'velocity'])
def test_a_joint_outside_the_trained_ranges_is_watched_with_a_warning(
    model: IdentifiedModel, state: dict[str, Any]
) -> None:
    follow = Follower(model)
    follow(SETTLED)
    assert not follow.monitor.advice()
    follow(1, **state)
    assert 'joint_2: position or velocity exceeds' in follow.monitor.advice()[0]
    assert not follow.monitor.blind
    follow(1)
    assert not follow.monitor.advice()


def test_short_faults_of_the_effort_are_bridged(model: IdentifiedModel) -> None:
    """Like states that do not come: within 0.1 s the observer knows enough of them."""
    follow = Follower(model)
    follow(SETTLED)
    follow(45, effort=with_value(follow.hold, 1, np.nan))
    assert (follow.monitor.blind, set(follow.free)) == ({}, {True})


def test_a_joint_that_never_had_an_effort_is_never_watched(model: IdentifiedModel) -> None:
    follow = Follower(model, replace(SETTINGS, gain=150.0))
    for count in (15, 2 * SETTLED):  # the others have settled before 0.1 s are over
        follow(count, effort=with_value(follow.hold, 1, np.nan))
        assert list(follow.monitor.blind) == [model.joints[1]]


def test_a_joint_that_is_watched_shows_what_was_there_before(model: IdentifiedModel) -> None:
    follow, push = Follower(model), np.array([1.0, -2.0, 4.0])
    follow.hold = follow.hold - push
    while not (follow.free and follow.free[-1]):
        follow(1)
        assert follow.reading is not None
    assert (follow.reading.external / push > 0.94).all()


#: faults of all joints, from which no state is of use, or the observer has to begin anew
LOSSES: dict[str, tuple[Callable[[Follower], None], str]] = {
    'pause': (lambda f: f(1, step=0.3), 'no joint states received'),
    'time back': (lambda f: f(1, step=-3.0), 'stamps went back by 3 s'),
}


@pytest.mark.parametrize('name', LOSSES)
def test_monitor_is_blind_after_a_loss_until_the_observer_has_settled(
    model: IdentifiedModel, name: str
) -> None:
    follow, (loss, words) = Follower(model), LOSSES[name]
    follow(SETTLED)
    loss(follow)
    assert set(follow.monitor.blind) == set(model.joints)
    assert all(words in reason for reason in follow.monitor.blind.values())
    assert follow.free == [False]
    follow(SETTLED)
    assert (follow.monitor.blind, follow.free[-1]) == ({}, True)


@pytest.mark.parametrize(('states', 'words'), [
    ({'q': np.full(3, np.nan)}, 'position, velocity or effort is NaN'),
    ({'qd': np.full(3, np.nan)}, 'position, velocity or effort is NaN'),
    ({'effort': np.full(3, np.nan)}, 'position, velocity or effort is NaN'),
    ({'q': with_value(POSE, 2, 1e9)}, 'joint_3: position'),
    ({'step': 0.0}, 'stamps repeat'),
    ({'step': np.nan}, 'the stamp is not finite'),
])
def test_states_of_no_use_are_none_and_say_why(
    model: IdentifiedModel, states: dict[str, FloatArray], words: str
) -> None:
    follow = Follower(model)
    follow(SETTLED)
    follow(1, **states)  # type: ignore[arg-type]
    assert follow.free == [None]
    assert words in follow.monitor.problem


def test_models_that_cannot_watch_a_joint_say_so(model: IdentifiedModel) -> None:
    follow = Follower(replace(model, not_identified=('joint_2',)))
    follow(2 * SETTLED)
    assert 'not identified: check' in follow.monitor.blind.pop('joint_2')
    assert follow.free[-1] is False
    assert follow.reading is not None
    for values in (follow.reading.predicted, follow.reading.residual):
        assert values is not None
        assert np.isnan(values).tolist() == [False, True, False]
    follow = Follower(model, MonitorSettings())
    follow(2 * SETTLED)
    assert set(follow.monitor.blind) == set(model.joints)
    assert 'no noise levels' in follow.monitor.blind['joint_1']


def test_whole_turns_are_no_other_position(model: IdentifiedModel) -> None:
    states = np.zeros((2, 2, 3))
    states[1, 0] = [2.0 * np.pi, -4.0 * np.pi, np.pi]
    found = TrainedRange(model).outside(states)
    np.testing.assert_array_equal(found, [[False] * 3, [False, False, True]])


def damaged(model: IdentifiedModel, seed: int) -> RawLog:
    """Return a recording with a gap and stretches without effort of random lengths."""
    rng = np.random.default_rng(seed)
    log = motion(model.robot, 3000, seed)
    assert log.effort is not None
    effort = log.effort.copy()
    for _ in range(12):
        first, joint = rng.integers(2900), rng.integers(3)
        effort[first:first + rng.integers(1, 120), joint] = np.nan
    effort[:100, 0] = effort[1500:1520, 1] = np.nan
    time = log.time.copy()
    time[1500:] += 0.3
    return replace(log, time=time, effort=effort)


@pytest.mark.parametrize('seed', range(3))
def test_states_one_by_one_are_the_recording(model: IdentifiedModel, seed: int) -> None:
    model = replace(model, not_identified=('joint_3',), trained=Trained(
        {'position': np.outer(np.ones(3), [-0.8, 0.9]),
         'velocity': np.outer(np.ones(3), [-2.0, 4.0])}))
    log, monitor = damaged(model, seed), Monitor(model, SETTINGS)
    single = []
    for k in range(len(log.time)):
        reading = monitor(log.time[k], log.position[k], log.velocity[k], log.effort[k])
        reasons = [monitor.blind.get(joint, REASONS[WATCHED]) for joint in model.joints]
        single.append([REASONS.index(one) if one in REASONS else BEGUN for one in reasons])
        assert reading is not None and (reading.blind == (np.array(single[-1]) != WATCHED)).all()
    moving = levels_of(model, SETTINGS).without.moving
    whole = blind_codes(model, moving, SETTINGS.gain, monitor_input(model, log))
    assert 0.1 < (whole[:, :2] != WATCHED).mean() < 0.9
    assert (whole[:, 2] != WATCHED).all()
    np.testing.assert_array_equal(single, whole)


def events(model: IdentifiedModel, log: RawLog) -> ContactEvents:
    """Return what is found in one recording of 2 s."""
    return contact_events(model, [log], SETTINGS)[0]


def still(model: IdentifiedModel, count: int = 1000) -> RawLog:
    """Return a recording of the arm at rest that is held by its own model."""
    effort = model.inverse(POSE[None], np.zeros((1, 3)), np.zeros((1, 3)))[0]
    rest = np.tile(POSE, (count, 1))
    return RawLog('rest', model.joints, STEP * np.arange(count), rest, np.zeros_like(rest),
                  np.tile(effort, (count, 1)))


def test_a_whole_recording_is_watched(model: IdentifiedModel) -> None:
    found = events(model, still(model))
    assert found.watched
    np.testing.assert_allclose(
        found.blind_seconds(model.joints), OBSERVER_CONSTANTS / SETTINGS.gain, rtol=0.0, atol=STEP)


def test_blind_time_is_told_with_its_reason(model: IdentifiedModel) -> None:
    """Stretches of 0.4 s, from each of which the observer has to settle."""
    log, settling = still(model), OBSERVER_CONSTANTS / SETTINGS.gain
    at = slice(400, 600)
    effort, position = log.effort.copy(), log.position.copy()
    effort[at, 0], position[at, 2] = np.nan, np.nan
    time = log.time.copy()
    time[500:] += 0.7
    back, repeated = time.copy(), log.time.copy()
    back[500:] -= 0.9
    repeated[500:600] = repeated[499]
    bridged = 0.1
    for changed, lost, reason in (
            ({'effort': effort}, (0.4 - bridged + settling, 0.0, 0.0), REASONS[2]),
            ({'position': position}, (0.4 - bridged + settling,) * 3, REASONS[2]),
            ({'time': time}, (0.7 + settling,) * 3, 'no joint states received: check the'),
            ({'time': back}, (0.2 + settling,) * 3, 'no joint states received: check the'),
            ({'time': repeated}, (0.2 + settling,) * 3, 'no joint states received: check the')):
        found = events(model, replace(log, **changed))
        assert not found.watched
        np.testing.assert_allclose(
            np.array(found.blind_seconds(model.joints)) - settling, lost,
            rtol=0.0, atol=3.0 * STEP)
        assert any(one.reason.startswith(reason) for one in found.blind)
        for one in found.blind:
            rows = (found.time > one.start) & (found.time < one.stop)
            assert one.stop > one.start
            assert rows.any() or 'joint states' in one.reason or 'stamps' in one.reason


def test_blind_joints_have_no_torque_without_contact(model: IdentifiedModel) -> None:
    found = events(replace(model, not_identified=('joint_2',)), still(model))
    assert np.isnan(found.without_contact).tolist() == [False, True, False]
    assert [one.seconds for one in found.blind if one.joint == 'joint_2'] == [
        pytest.approx(999 * STEP)]


def test_the_command_says_how_long_it_was_blind(
    model: IdentifiedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str]
) -> None:
    original = contact_events
    monkeypatch.setattr(search, 'contact_events', lambda m, logs, _: original(m, logs, SETTINGS))
    log = still(model)
    write_csv(tmp_path / 'rest.csv', log)
    assert log.effort is not None
    effort = log.effort.copy()
    effort[400:600, 0] = np.nan
    write_csv(tmp_path / 'gap.csv', replace(log, effort=effort))
    model.save(tmp_path / 'm.yaml')
    assert main(['contact', str(tmp_path / 'm.yaml'), str(tmp_path / 'gap.csv')]) == 1
    assert 'its values are NaN' in ' '.join(capsys.readouterr().out.split())
    for refused, code in (((), 0), (('joint_2',), 1)):
        replace(model, not_identified=refused).save(tmp_path / 'm.yaml')
        assert main(['contact', str(tmp_path / 'm.yaml'), str(tmp_path / 'rest.csv')]) == code
        out = ' '.join(capsys.readouterr().out.split())
        assert ('not identified: check' in out) == bool(refused)
        assert ('joint_2 was blind for a while' in out) == bool(refused)


def at_rest(steps: list[float], missing: tuple[int, ...] = ()) -> MonitorInput:
    """Return an arm at rest; a step of zero begins a segment, the middle joint lacks efforts."""
    time = np.cumsum(np.where(np.array(steps) > 0.0, steps, 0.5))
    rows = np.zeros((len(steps), 3))
    mask = np.zeros(rows.shape, dtype=bool)
    mask[list(missing), 1] = True
    starts = tuple(k for k, step in enumerate(steps) if not step)
    return MonitorInput(time, rows, rows, rows, starts, missing=mask,
                        pauses=((7.0, 8.0, 'a pause'),))


def test_a_joint_is_watched_three_time_constants_after_it_began(model: IdentifiedModel) -> None:
    """Of a gain of 30 1/s a tenth of a second; efforts may lack for as long."""
    given = at_rest([0.0, *[0.015] * 20, 0.0, *[0.015] * 20], missing=tuple(range(30, 37)))
    codes = blind_codes(model, np.array([1.0, 1.0, np.nan]), 30.0, given)
    begun = [k in range(7) or k in range(21, 28) for k in range(42)]
    assert (codes[:, 0] == BEGUN).tolist() == begun and set(codes[:, 0]) == {BEGUN, WATCHED}
    assert set(codes[:, 2]) == {NO_LEVEL}
    # 7 states without effort after that of row 29 are 0.105 s old at the last of them
    late = [k in range(36, 42) for k in range(42)]
    assert (codes[:, 1] == UNUSABLE).tolist() == late
    bridged = at_rest([0.0, *[0.015] * 20], missing=tuple(range(10, 16)))
    assert (blind_codes(model, np.ones(3), 30.0, bridged)[10:] == WATCHED).all()
    refused = replace(model, not_identified=(model.joints[1],))
    assert set(blind_codes(refused, np.full(3, np.nan), 30.0, given)[:, 1]) == {REFUSED}


def test_blind_times_begin_and_end_with_their_states(model: IdentifiedModel) -> None:
    given = at_rest([0.0, *[0.015] * 9])
    codes = np.full((10, 3), WATCHED)
    codes[:3, 0], codes[8:, 0], codes[4:6, 1], codes[6, 1] = BEGUN, UNUSABLE, BEGUN, NO_LEVEL
    found = blind_times(model.joints, given, codes)
    a, b, c = model.joints
    time = given.time
    assert [(one.joint, one.start, one.stop, one.reason, one.begins) for one in found] == [
        (a, time[0], time[3], REASONS[BEGUN], True), (b, time[4], time[6], REASONS[BEGUN], False),
        (b, time[6], time[7], REASONS[NO_LEVEL], False),
        (a, time[8], time[9], REASONS[UNUSABLE], False),
        *((joint, 7.0, 8.0, 'a pause', False) for joint in (a, b, c))]
    events = ContactEvents('run', time, codes, codes, codes, (), time, time, time, (), found)
    assert events.blind_seconds(model.joints) == pytest.approx((1.06, 1.045, 1.0))
    assert not events.watched and replace(events, blind=found[:1]).watched


@pytest.mark.parametrize(('row', 'value', 'outside'), [
    (0, 1.5 * 1.09, False), (0, 1.5 * 1.11, True), (0, 1.6 - 2.0 * np.pi, False),
    (1, -2.0 * 1.09, False), (1, -2.0 * 1.11, True), (1, 2.0 * np.pi, True)])
def test_trained_ranges_are_widened_by_a_twentieth_of_their_width(
    model: IdentifiedModel, row: int, value: float, outside: bool
) -> None:
    """Positions count without whole turns, velocities do not."""
    state = np.zeros((2, 3))
    state[row, 2] = value
    assert TrainedRange(model).outside(state).tolist() == [False, False, outside]
    shifted = Trained({'position': np.outer(np.ones(3), [1.0, 3.0])})
    beside = TrainedRange(replace(model, trained=shifted))
    for angle, off in ((0.91, False), (0.89, True), (3.09, False), (3.11, True)):
        assert beside.outside(np.array([[angle] * 3, [9.0] * 3])).tolist() == [off] * 3
