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
from robot_dynid.signals.parts import PART_MARGIN, Parts
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import RawLog, Samples

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


def test_short_recordings_stay_as_they_are(robot: RobotModel) -> None:
    log = recording(robot, 20.0)
    logs = Parts((log,))
    assert not logs.cut
    assert logs[0] is log
    assert logs.uncut('this')[0] is log


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
