"""One detector of single-joint motion: stretches there and back, and the one-way parts of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from robot_dynid.signals.single_joint_motion import (
    LOCKED_SHARE,
    MOVING_TRAVEL,
    TRAVEL_WINDOW,
    moving_seconds,
    single_joint_motions,
    single_joint_stretches,
)
from robot_dynid.types import FloatArray

STEP, LEAST = 0.01, np.full(2, MOVING_TRAVEL)


def swing(amplitude: float, other: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return time (N,) s and positions (N, 2) rad: rest, joint 0 swings twice in 4 s, rest.

    Joint 1 swings along with the share ``other`` of it.
    """
    time = np.arange(0.0, 8.0, STEP)
    phase = np.clip((time - 2.0) / 4.0, 0.0, 1.0)
    own = amplitude * np.sin(4.0 * np.pi * phase) * np.sin(np.pi * phase) ** 2
    return time, np.column_stack([own, other * own])


def test_a_swing_is_one_stretch_of_the_joint_that_moves() -> None:
    time, position = swing(0.5)
    ((joint, rows),) = single_joint_stretches(time, position, LEAST)
    assert joint == 0
    assert time[rows.start] == pytest.approx(2.0, abs=TRAVEL_WINDOW)
    assert time[rows.stop - 1] == pytest.approx(6.0, abs=TRAVEL_WINDOW)
    motions = single_joint_motions(time, position, np.zeros_like(position), LEAST)
    assert {m.joint for m in motions} == {0}
    signs = [np.sign(m.speed) for m in motions]
    assert len(signs) > 2 and all(a != b for a, b in pairwise(signs))
    for motion in motions:
        assert time[rows.start] - STEP <= motion.start <= time[rows.stop - 1]


def test_single_joint_stretches_and_motions_have_the_same_thresholds() -> None:
    """Nothing is found where the other joint travels too far, nor below the least travel."""
    for other, found in ((0.9 * LOCKED_SHARE, True), (1.1 * LOCKED_SHARE, False)):
        time, position = swing(0.5, other)
        assert bool(list(single_joint_stretches(time, position, LEAST))) is found
        motions = single_joint_motions(time, position, np.zeros_like(position), LEAST)
        assert any(m.seconds > TRAVEL_WINDOW for m in motions) is found
    time, position = swing(0.4 * MOVING_TRAVEL)
    assert not list(single_joint_stretches(time, position, LEAST))
    assert list(single_joint_stretches(time, position, 0.1 * LEAST))


def test_a_single_row_takes_no_time() -> None:
    time, least = 5.0 + 0.01 * np.arange(101), np.full(1, 1e-4)
    assert moving_seconds(time, time[:, None], least) == pytest.approx(1.0, rel=0.02)
    assert moving_seconds(time[:1], time[:1, None], least) == 0.0
