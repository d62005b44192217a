"""What is kept of many recordings to compare them: on the disk, and the same as in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_recordings import recording

from robot_dynid.plausibility import content
from robot_dynid.plausibility.excerpt import joined, spread, thinned
from robot_dynid.plausibility.gate import examine, plausible_recordings
from robot_dynid.robot.robot_file import load_robot

ROBOT = load_robot('planar_3r')
LOGS = [recording(ROBOT, seed, 5.0) for seed in (0, 1, 2)]
LOGS.append(replace(LOGS[1], source='copy of the second'))


def test_copies_are_left_out_whatever_is_compared_at_once(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, said = plausible_recordings(ROBOT, LOGS)
    assert len(kept) == 3 and 'copy of the second' in said[0]
    monkeypatch.setattr(content, 'AT_ONCE', content.KEPT)
    again, told = plausible_recordings(ROBOT, LOGS)
    assert told == said and [one.source for one in again] == [one.source for one in kept]


def test_rows_are_spread_over_recordings() -> None:
    rows = [examine(ROBOT, log).rows for log in LOGS[:3]]
    for most in (10, 37, 10_000):
        ours = spread([len(one) for one in rows], rows, most)
        np.testing.assert_array_equal(ours.torque, thinned(joined(rows), most).torque)


def test_digests_are_compared_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them counts once, whichever turn it is of."""
    monkeypatch.setattr(content, 'AT_ONCE', content.KEPT)
    for first, count, pairs in ((1, 25, [(0, 1)]), (0, 25, [(0, 1)]), (1, 15, []), (0, 15, [])):
        shared = np.arange(first, first + 2 * count, 2, dtype=np.uint64)
        own = [np.append(shared, np.uint64(1000 + i)) for i in range(2)]
        assert content.candidates(2, own.__getitem__) == pairs
