"""signals/alignment.py: a clock that is set back splits a recording; rows that come late do not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import regular, smooth_recording

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import clock_steps
from robot_dynid.signals.prepare import repair

TIME = regular()


def changed(rows: object, values: object) -> np.ndarray:
    """Return regular stamps with others in some rows."""
    time = TIME.copy()
    time[rows] = values
    return time


@pytest.mark.parametrize(('time', 'rows'), [
    (TIME, []),
    (changed([100, 101], TIME[[101, 100]]), []),
    (changed(slice(1500, 1503), TIME[1490]), []),
    (changed(2000, 1e4), []), (changed(-1, 1e6), []), (changed(700, np.nan), []),
    (np.repeat(TIME, 2), []),
    (changed(slice(2500, None), TIME[2500:] - 0.5), [2500]),
    (changed(slice(2500, None), TIME[2500:] - 0.003), [2500]),
    (changed(slice(1000, 1500), TIME[1000:1500] + 5.0), [1500]),
    (np.concatenate([TIME, TIME, TIME]), [5000, 10000]),
    (np.concatenate([changed(1000, 0.5), TIME]), [5000]),
])
def test_rows_at_which_the_clock_was_set_back(time: np.ndarray, rows: list[int]) -> None:
    assert clock_steps(time).tolist() == rows


def test_stamps_with_much_jitter_are_of_one_clock() -> None:
    jitter = np.random.default_rng(0).normal(size=len(TIME))
    for size in (0.002, 0.004):
        assert not len(clock_steps(TIME + size * jitter))


@pytest.mark.parametrize('back', [0.5, None])
def test_every_part_is_kept_and_none_is_spliced(back: float | None) -> None:
    robot, log = load_robot('planar_3r'), smooth_recording(TIME)
    half = len(TIME) // 2
    time = TIME.copy()
    time[half:] -= TIME[half] if back is None else back
    found = repair(robot, replace(log, time=time))
    assert [len(part.time) for part in found.parts] == [half, len(TIME) - half]
    for part, rows in zip(found.parts, (slice(0, half), slice(half, None)), strict=True):
        assert np.array_equal(part.position, log.position[rows])
    assert found.parts[1].time[0] > found.parts[0].time[-1]
    assert any('the clock goes back 1 time(s)' in note for note in found.notes)
