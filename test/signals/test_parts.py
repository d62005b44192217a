"""Long recordings in parts: every row once, with what filters need around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import ENDS

from robot_dynid.errors import DataError
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals import parts
from robot_dynid.signals.parts import PART_MARGIN, Parts, Stretch, find_glances
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import RawLog, Samples, take

STEP = 0.004


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    return load_robot('planar_3r')


def recording(robot: RobotModel, seconds: float = 120.0, rest: tuple[float, float] = (0.0, 0.0)
              ) -> RawLog:
    """Return a smooth motion with effort, at rest for so many seconds before and after it."""
    time = np.arange(round((seconds + sum(rest)) / STEP)) * STEP
    t = np.clip(time - rest[0], 0.0, seconds)
    ramp = np.clip(np.minimum(t, seconds - t) / 2.0, 0.0, 1.0)[:, None]
    envelope = ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp**2)
    rates = np.array([1.3, 2.1, 3.7])
    position = envelope * np.sin(np.outer(t, rates))
    return RawLog('long', robot.joints, time, position, np.gradient(position, STEP, axis=0),
                  position + 0.3 * np.cos(np.outer(t, rates)))


def cut(log: RawLog, rows: int = 5000) -> Parts:
    return Parts((log,), rows, rows)


def joined(robot: RobotModel, logs: Parts, settings: Preprocessing) -> list[Samples]:
    return [prepare(robot, repair(robot, log), settings) for log in logs]


def test_parts_give_the_samples_of_one_piece(robot: RobotModel) -> None:
    log = recording(robot)
    settings = Preprocessing(8.0, decimate=False)
    whole = prepare(robot, repair(robot, log), settings)
    pieces = joined(robot, cut(log), settings)
    assert len(pieces) == 6
    np.testing.assert_allclose(np.concatenate([p.time for p in pieces]), whole.time,
                               rtol=0.0, atol=1e-9)
    for name, bound in zip(('position', 'velocity', 'acceleration', 'effort'), (*ENDS, ENDS[0]),
                           strict=True):
        apart = np.concatenate([getattr(p, name) for p in pieces]) - getattr(whole, name)
        assert np.abs(apart).max() < bound
    assert [p.began for p in pieces] == [0.0] * 6
    assert pieces[3].elapsed[0] == pieces[3].time[0]


def test_rest_before_and_after_is_left_out_and_within_stays(
    robot: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, 'GLANCE', 500)
    log = recording(robot, rest=(70.0, 90.0))
    still = (log.time > 120.0) & (log.time < 130.0)
    position = log.position.copy()
    position[still] = position[np.flatnonzero(still)[0]]
    log = replace(log, position=position, velocity=None)
    settings = Preprocessing(8.0, decimate=False)
    logs = cut(log, 2000)
    time = np.concatenate([s.time for s in joined(robot, logs, settings)])
    whole = prepare(robot, repair(robot, log), settings)
    assert abs(time[0] - whole.time[0]) < 2.0
    assert abs(time[-1] - whole.time[-1]) < 2.0
    inside = (time > 121.0) & (time < 129.0)
    assert inside.sum() == np.sum((whole.time > 121.0) & (whole.time < 129.0)) > 1900


def test_a_clock_that_is_set_back_begins_another_recording(
    robot: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, 'GLANCE', 1000)
    log = recording(robot)
    row = 12_345
    time = log.time.copy()
    time[row:] -= 30.0
    time[500] = 1e6  # a wild stamp is not a step of the clock
    logs = cut(replace(log, time=time))
    ends = [s for s in logs.stretches if s.stop in (row, s.high)]
    assert any(s.stop == row for s in ends)
    assert any(s.start == row for s in logs.stretches)
    rows = sum(int(np.sum(one.part.own(one.time))) for one in logs if one.part is not None)
    assert rows >= len(time) - 1


def test_parts_are_of_about_45000_rows_of_recordings_of_more_than_80000(
    robot: RobotModel
) -> None:
    def count(rows: int) -> int:
        zeros = np.zeros((rows, robot.n))
        return len(Parts.of([RawLog('run', robot.joints, np.arange(float(rows)), zeros)]))

    assert [count(rows) for rows in (80_000, 80_001, 112_499, 112_501)] == [1, 2, 2, 3]


def test_short_recordings_stay_as_they_are(robot: RobotModel) -> None:
    log = recording(robot, 20.0)
    logs = Parts((log,))
    assert not logs.cut
    assert logs[0] is log
    assert logs.uncut('this')[0] is log
    assert logs.stretches == (Stretch(0, 0, 5000, 0, 5000, cut=False),)


def test_an_excerpt_is_spread_over_the_motion(robot: RobotModel) -> None:
    log = recording(robot, 300.0, rest=(200.0, 0.0))
    found = Parts((log,), 5000, 5000).excerpt(10_000)
    begins = [one.part.start for one in found if one.part is not None]
    own = sum(int(np.sum(one.part.own(one.time))) for one in found if one.part is not None)
    assert 9_000 <= own <= 10_000
    assert min(begins) < 280.0 and max(begins) > 420.0
    assert all(b > 150.0 for b in begins if np.isfinite(b))
    most = 10_000 // len(found) + 2 * (PART_MARGIN / STEP + 1)
    assert all(len(one.time) <= most for one in found)


def test_uncut_refuses_a_recording_longer_than_one_piece(
    robot: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, 'WHOLE_ROWS', 1000)
    with pytest.raises(DataError, match=r'payload needs a recording in one piece.*cut it'):
        Parts((recording(robot, 20.0),)).uncut('payload')


def test_an_excerpt_has_its_share_of_short_recordings(robot: RobotModel) -> None:
    """Long ones are in pieces, of which one without any counts as many as fill its rows."""
    long, short = recording(robot), replace(recording(robot, 20.0), source='short')
    logs = Parts((long, short), 6000, 6000)
    found = logs.excerpt(2000)
    whole = [log for log in found if log.source == 'short']
    assert len(whole) == 1 and len(whole[0].time) == 5000
    assert all(log.part is not None for log in found if log.source != 'short')
    assert len(found) >= 2


STAMPS = 50.0 + 0.004 * np.arange(60_000)


def long_log(robot: RobotModel, share: float = 0.021, size: float = 0.5) -> RawLog:
    """Return 240 s in which two of six pieces move, and one by a ``share`` of their travel."""
    position = np.zeros((60_000, robot.n))
    position[22_000:38_000, 1] = size * np.sin(0.01 * np.arange(16_000))
    position[41_000:42_000, 0] = size * share * np.sin(0.01 * np.arange(1000))
    position[:, 0] += position[:, 1]
    position[50_000:] = np.nan  # which is no motion
    return RawLog('run', robot.joints, STAMPS, position, effort=1.0 + position)


@pytest.mark.parametrize(('share', 'moving', 'high'), [
    (0.019, (20_000, 30_000), 50_000), (0.021, (20_000, 30_000, 40_000), 60_000)])
def test_a_glance_ends_a_piece_after_the_last_that_moves_by_two_hundredths(
    robot: RobotModel, share: float, moving: tuple[int, ...], high: int
) -> None:
    log = long_log(robot, share)
    (found,) = find_glances(log, 59_999)
    assert (found.low, found.high, found.moving) == (10_000, high, moving)
    assert found.step == pytest.approx(0.004) and found.began == STAMPS[10_000]
    assert find_glances(log, 60_000) == ()
    for time, step in ((STAMPS[::2].repeat(2), 0.008), (np.zeros(60_000), 1.0)):
        assert [one.step for one in find_glances(replace(log, time=time), 9)] == [
            pytest.approx(step)]


@pytest.mark.parametrize(('size', 'moving'), [(0.45e-3, 6), (0.55e-3, 2)])
def test_a_recording_that_travels_less_than_a_millimetre_is_at_rest_and_whole(
    robot: RobotModel, size: float, moving: int
) -> None:
    (found,) = find_glances(long_log(robot, 0.0, size), 1000)
    assert len(found.moving) == moving
    assert (found.low, found.high) == ((0, 60_000) if moving == 6 else (10_000, 50_000))


def test_parts_are_of_equal_length_with_four_seconds_on_both_sides(robot: RobotModel) -> None:
    logs = Parts((replace(long_log(robot, 0.0), findings=('one', 'two')),), 9000, 1000,
                 accepted=('gravity',))
    assert [(one.start, one.stop, one.low, one.high) for one in logs.stretches] == [
        (first, first + 10_000, 10_000, 50_000) for first in range(10_000, 50_000, 10_000)]
    assert (len(logs), logs.owners, logs.rows, logs.cut) == (4, (0,) * 4, 60_000, True)
    assert logs.findings == {'run': ('one', 'two')}
    assert [len(group) for group in logs.by_recording] == [4]
    first, second, third, last = logs[:]
    for log, low, high in ((first, 10_000, 21_000), (second, 19_000, 31_000),
                           (third, 29_000, 41_000), (last, 39_000, 50_000)):
        np.testing.assert_array_equal(log.time, STAMPS[low:high])
        assert log.findings == () and log.accepted == ('gravity',)
        assert log.part is not None and log.part.began == STAMPS[10_000]
    assert second.source == 'run, 130 to 170 s' and last.source == 'run, 210 to 249.996 s'
    ends = [(log.part.start, log.part.stop) for log in logs if log.part is not None]
    np.testing.assert_allclose(ends, [
        (-np.inf, 130.0), (130.0, 170.0), (170.0, 210.0), (210.0, np.inf)])


@pytest.mark.parametrize(('rows', 'starts', 'length'), [
    (1000, [20_000, 40_000], 500), (6000, [20_000, 30_000, 40_000], 2000),
    (7999, [20_000, 30_000, 40_000], 2666), (90_000, [20_000, 30_000, 40_000], 7500)])
def test_an_excerpt_is_of_even_stretches_of_eight_seconds_at_least(
    robot: RobotModel, rows: int, starts: list[int], length: int
) -> None:
    """Two to twelve of them; where three pieces move, three at most are different."""
    found = Parts((long_log(robot, 0.03),), 9000, 1000).excerpt(rows)
    assert [log.time[1000] for log in found] == pytest.approx([STAMPS[one] for one in starts])
    assert {len(log.time) for log in found} == {length + 2000}


def test_recordings_too_long_for_one_piece_are_refused_with_their_rows(
    robot: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Parts((long_log(robot), replace(take(long_log(robot), slice(0, 50)), source='short')))
    assert logs.uncut('payload').longest == 1_000_000
    chosen = logs.select([False, True])
    assert chosen.sources == ('short',) and not chosen.cut and chosen.rows == 50
    assert [log.source for log in logs[-1:]] == ['short'] and logs[0].source == 'run'
    monkeypatch.setattr('robot_dynid.signals.parts.WHOLE_ROWS', 60_000)
    assert len(Parts(logs.recordings, 200_000, 1000)) == len(logs.uncut('payload')) == 2
    monkeypatch.setattr('robot_dynid.signals.parts.WHOLE_ROWS', 59_999)
    with pytest.raises(DataError) as raised:
        logs.uncut('payload')
    assert str(raised.value) == (
        'run: payload needs a recording in one piece, and 60000 rows are too many: cut it into '
        'recordings of at most 59999 rows (ros2 bag convert), or give a shorter one')
