"""robot_dynid_evaluation/stops/account.py: the account of a motion after an event, and the
verdicts on it: both must be able to fail."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from robot_dynid.cli.main import main
from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import Code
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid_evaluation.bench.stops import chosen, row_of, trip_row
from robot_dynid_evaluation.stops.account import (
    FAST,
    Record,
    Track,
    account,
    faithful,
    fast_times,
    motion,
)
from robot_dynid_evaluation.stops.events import EVENTS
from robot_dynid_evaluation.stops.play import Run, bounds

ROBOT = load_robot('planar_3r')
PLAN = motion(ROBOT, 4)
LIMIT = ROBOT.limits.acceleration
BEGIN, EVENT = 100.0, 101.0  # s
LATE = 0.004  # s on the way


def track(period: float, stop: float = np.inf, brake: float = 0.0, end: float = 103.0) -> Track:
    """Return a motion along the plan that comes to rest within ``brake`` s from ``stop`` s on."""
    stamp = np.arange(BEGIN, end, period)
    passed = np.clip(stamp - stop, 0.0, None)
    pace = np.clip(1.0 - passed / brake, 0.0, 1.0) if brake else np.where(passed > 0.0, 0.0, 1.0)
    late = np.minimum(passed, brake)
    at = np.minimum(stamp, stop) - BEGIN + (late - 0.5 * late**2 / brake if brake else 0.0)
    found = PLAN.sample(at)
    return Track(stamp + LATE, stamp, found.position, found.velocity * pace[:, None])


def record(stop: float = np.inf, brake: float = 0.0) -> Record:
    return Record(track(0.002, stop, brake), track(0.02, stop, brake))


judged = partial(account, plan=PLAN, event=EVENT, limit=LIMIT)


def test_a_stop_along_the_path() -> None:
    found = judged(record(EVENT + 0.1, 0.3))
    assert found.rest == pytest.approx(0.4 + LATE, abs=0.006)
    assert found.reaction == pytest.approx(0.1 + LATE, abs=0.06), 'a millimetre radian later'
    assert found.reaction > 0.1
    way = np.abs(np.diff(PLAN.sample(np.linspace(1.0, 1.25, 100)).position, axis=0)).sum(axis=0)
    assert found.travel == pytest.approx(way.max(), abs=0.01)
    speed = np.abs(PLAN.sample([1.1]).velocity[0])
    assert 0.5 < found.acceleration / (speed / 0.3 / LIMIT).max() < 2.0
    assert found.off_path < 1e-6


def test_a_stop_in_one_cycle_is_not_missed_between_two_samples() -> None:
    found = judged(record(EVENT + 0.05))
    speed = np.abs(PLAN.sample([1.05]).velocity[0])
    assert found.arm == pytest.approx((speed / 0.01 / LIMIT).max(), rel=0.1)
    assert found.acceleration == pytest.approx((speed / 0.02 / LIMIT).max(), rel=0.2)
    assert found.rest == pytest.approx(0.05 + LATE, abs=0.005)


def test_a_motion_that_goes_on() -> None:
    found = judged(record())
    assert found.rest == np.inf and found.reaction == np.inf
    assert found.travel > 1.0


def test_a_way_off_the_path_is_seen() -> None:
    seen = record(EVENT, 0.3)
    away = seen.reference.position.copy()
    away[len(away) // 2:, 0] += 0.05
    moved = replace(seen, reference=replace(seen.reference, position=away))
    assert 0.02 < judged(moved).off_path <= 0.05, 'the nearest point of the path is nearer'


def test_faithful_measures_how_far_a_motion_is_off_its_plan() -> None:
    once, followed = motion(ROBOT, 1), track(0.01, end=BEGIN + 2.4)
    assert faithful(followed, once) == pytest.approx((0.0, 0.0), abs=1e-6)
    followed.velocity[50] += 0.02
    followed.position[70] += 0.03
    assert faithful(followed, once) == pytest.approx((0.03, 0.02), abs=1e-6)


def test_a_robot_that_is_not_seen_any_more() -> None:
    gone = Record(track(0.002, end=EVENT - 0.01), track(0.02, end=EVENT - 0.01))
    found = judged(gone)
    assert np.isnan([found.rest, found.reaction, found.off_path]).all()


def test_the_motion_is_fast_when_events_happen_and_within_the_limits() -> None:
    limits, peaks = motion_limits(ROBOT), PLAN.peaks()
    assert np.all(peaks.velocity <= 0.51 * limits.velocity)
    assert np.all(peaks.acceleration <= 0.51 * limits.acceleration)
    speed = np.abs(PLAN.sample(fast_times(PLAN, np.random.default_rng(0), 50)).velocity)
    assert np.all((speed / peaks.velocity).max(axis=1) > FAST)


STOPPED = Run(reaction=0.01, rest=0.3, travel=0.2, acceleration=0.9, arm=1.0, off_path=0.0,
              told=0.4, code=Code.CANCELLED, text='cancelled')


@pytest.mark.parametrize(('changes', 'kept'), [
    ({}, True), ({'rest': 1.3}, False), ({'rest': np.inf}, False), ({'rest': np.nan}, False),
    ({'acceleration': np.nan}, True), ({'acceleration': np.nan, 'arm': 1.2}, False),
    ({'code': Code.ABORTED}, False), ({'code': None}, False), ({'acceleration': 1.2}, False)])
def test_verdict_of_a_stop(changes: dict[str, float], kept: bool) -> None:
    bound = bounds({})(EVENTS['cancel'])
    runs = [STOPPED, replace(STOPPED, **changes)]
    assert row_of(EVENTS['cancel'], runs, [], bound, 0)['kept'] is kept


def test_verdict_of_none_and_of_a_motion_that_ended_before() -> None:
    assert row_of(EVENTS['cancel'], [], [], 1.0, 0)['kept'] is False
    row = row_of(EVENTS['cancel'], [STOPPED], ['no motion: stale'], 1.0, 0)
    assert (row['kept'], row['wrong'], row['ratio']) == (False, ['no motion: stale'], 0.3)


def test_verdict_of_a_motion_that_shall_go_on() -> None:
    event, on = EVENTS['kill-client'], replace(STOPPED, reaction=np.inf, rest=np.inf, code=None)
    assert row_of(event, [on], [], 1.0, 0)['kept'] is True
    assert row_of(event, [replace(on, reaction=0.2)], [], 1.0, 0)['kept'] is False


@pytest.mark.parametrize(('trips', 'motions', 'load', 'kept'), [
    (0, 100, 0, True), (1, 400, 0, False), (0, 10, 8, True), (1, 100, 8, False),
    (3, 400, 8, True), (4, 400, 8, False)])
def test_verdict_of_false_trips(trips: int, motions: int, load: int, kept: bool) -> None:
    assert trip_row(['late'] * trips, motions, 0.0, load)['kept'] is kept


def test_events_are_chosen_by_name() -> None:
    assert chosen('', EVENTS) == list(EVENTS)
    assert chosen('stale,nan', EVENTS) == ['stale', 'nan']
    with pytest.raises(UsageError, match="no event 'fire'; choose from kill-node"):
        chosen('fire', list(EVENTS))


@pytest.mark.parametrize(('option', 'value', 'words'), [
    ('--events', 'fire', "no event 'fire'"), ('--repeat', '0', 'at least 1, got 0'),
    ('--load', 'heavy', "numbers such as 0,8, got 'heavy'"), ('--face', 'left', "got 'left'")])
def test_wrong_options_are_named(
    option: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {'--events': 'nan', '--repeat': '1', '--load': '0', '--face': 'topic'}
    given = [text for pair in {**good, option: value}.items() for text in pair]
    assert main(['bench', 'stops', *given]) == 2
    assert words in capsys.readouterr().err


def test_regressor_benchmark_refuses_options_of_stops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['bench', 'regressor', '--repeat', '3']) == 2
    assert 'benchmark regressor has no option --repeat' in capsys.readouterr().err
