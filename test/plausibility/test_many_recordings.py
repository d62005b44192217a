"""plausibility/gate.py: many recordings are compared with each other, and all together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import recording

from robot_dynid.plausibility import content
from robot_dynid.plausibility.excerpt import sample_excerpts
from robot_dynid.plausibility.gate import Chosen, examine, plausible_recordings
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.types import RawLog

ROBOT = load_robot('planar_3r')
LOGS = [recording(ROBOT, seed, 5.0) for seed in (0, 1, 2)]
LOGS.append(replace(LOGS[1], source='copy of the second'))


def test_copies_are_left_out_whatever_is_compared_at_once(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    different, warnings = plausible_recordings(ROBOT, LOGS)
    assert len(different) == 3 and 'copy of the second' in warnings[0]
    monkeypatch.setattr(content, 'DIGESTS_AT_ONCE', content.SKETCH)
    again, others = plausible_recordings(ROBOT, LOGS)
    assert others == warnings
    assert [one.source for one in again] == [one.source for one in different]


def test_a_short_recording_has_its_rows_beside_long_ones() -> None:
    long, short = (examine(ROBOT, recording(ROBOT, 3, seconds)).rows for seconds in (60.0, 2.0))
    assert len(long) > 100 and 10 < len(short) < 40
    parts = [long, short, long, long]
    rows = sample_excerpts(parts, 100)
    assert 50 < len(rows) <= 100 and np.isin(short.torque[:, 0], rows.torque[:, 0]).all()
    shortest = examine(ROBOT, recording(ROBOT, 3, 1.2)).rows
    orders = [long, long, long, shortest], [shortest, long, long, long]
    assert len({len(sample_excerpts(order, 100)) for order in orders}) == 1
    few = sample_excerpts(parts, 3)
    assert len(few) == 4 and few.torque[1, 0] == short.torque[0, 0]


def test_digests_are_compared_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them counts once, whichever turn it is of."""
    monkeypatch.setattr(content, 'DIGESTS_AT_ONCE', content.SKETCH)
    for first, count, pairs in ((1, 25, [(0, 1)]), (0, 25, [(0, 1)]), (1, 15, []), (0, 15, [])):
        shared = np.arange(first, first + 2 * count, 2, dtype=np.uint64)
        own = [np.append(shared, np.uint64(1000 + i)) for i in range(2)]
        assert content.candidates(2, own.__getitem__) == pairs


def test_names_of_chosen_recordings_are_those_of_their_files() -> None:
    time = np.arange(3.0)
    logs = [RawLog(f'{i}.csv', ('a',), time, time[:, None]) for i in range(4)]
    chosen = Chosen(logs, (3, 1))
    assert chosen.sources == ('3.csv', '1.csv') and chosen[0] is logs[3]
    stored = Chosen(Parts(tuple(logs)), (2, 0))
    assert stored.sources == ('2.csv', '0.csv')
