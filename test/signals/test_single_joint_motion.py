"""One detector of single-joint motion: stretches there and back, and the one-way parts of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from robot_dynid.robot.model import PRISMATIC, REVOLUTE
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.single_joint_motion import (
    LOCKED_SHARE,
    MOVING_TRAVEL,
    TRAVEL_WINDOW,
    SingleJointMotion,
    dips,
    least_travel,
    longest,
    moving_seconds,
    single_joint_motions,
    single_joint_stretches,
    stretches,
)
from robot_dynid.types import FloatArray

STEP, LEAST = 0.01, np.full(2, MOVING_TRAVEL)
#: first stamp of the ramps [s]
BEGIN = 50.0


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


def ramps(*legs: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Return time and positions of joint 0 after legs of so many seconds at a speed each."""
    speed = np.concatenate([np.full(round(seconds / STEP), value) for seconds, value in legs])
    own = STEP * np.cumsum(np.append(0.0, speed))
    return BEGIN + STEP * np.arange(len(own)), np.column_stack([own, np.full(len(own), 0.7)])


def motions_of(
    *legs: tuple[float, float], least: FloatArray = LEAST
) -> list[SingleJointMotion]:
    """Return the motions of legs whose torque is the time."""
    time, position = ramps(*legs)
    return single_joint_motions(time, position, np.column_stack([time, 9.0 * time]), least)


def test_legs_of_constant_speed_are_motions_one_way() -> None:
    """Speeds are of a tenth of a second, so motion shows 40 ms before and after it."""
    there, back = motions_of((1.0, 0.0), (2.0, 0.2), (1.0, 0.0), (4.0, -0.1), (1.0, 0.0))
    for motion, speed, begin, seconds, path in (
            (there, 0.2, 1.0, 2.0, (0.0, 0.4)), (back, -0.1, 4.0, 4.0, (0.4, 0.0))):
        assert (motion.joint, motion.jerky, motion.steady) == (0, False, True)
        assert motion.speed == pytest.approx(speed, rel=1e-9)
        assert motion.start == pytest.approx(BEGIN + begin - 0.04)
        assert motion.seconds == pytest.approx(seconds + 0.08)
        np.testing.assert_allclose(motion.path, path, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(motion.pose, [np.mean(path), 0.7], rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(np.diff(motion.position), speed * STEP)
        # without half a window at either end of it
        assert motion.torque[0] == pytest.approx(BEGIN + begin + 0.1)
        assert motion.torque[-1] == pytest.approx(BEGIN + begin + seconds - 0.1)
        assert len(motion.position) == len(motion.torque) == round((seconds - 0.2) / STEP) + 1


@pytest.mark.parametrize(('speed', 'moves'), [(1.8e-3, False), (2.2e-3, True), (-2.2e-3, True)])
def test_two_thousandths_of_a_radian_per_second_are_no_standstill(
    speed: float, moves: bool
) -> None:
    found = motions_of((1.0, 0.0), (3.0, speed), (1.0, 0.0), least=np.full(2, 1e-5))
    assert [motion.speed for motion in found] == pytest.approx([speed] * moves)


@pytest.mark.parametrize(('faster', 'seconds'), [(1.027, 1.3), (1.037, 0.78), (0.973, 1.3),
                                                 (0.963, 0.78)])
def test_a_steady_speed_varies_by_three_hundredths(faster: float, seconds: float) -> None:
    """The first part is longer and typical; averages of a tenth of a second reach beyond it."""
    (motion,) = motions_of((1.0, 0.0), (0.8, 0.2), (0.6, 0.2 * faster), (1.0, 0.0))
    assert np.ptp(motion.torque) == pytest.approx(seconds - 0.1, abs=0.021)


@pytest.mark.parametrize(('legs', 'steady'), [
    # a fifth of a second, without windows of a tenth at the ends
    (((0.38, 0.2),), False), (((0.42, 0.2),), True),
    # a quarter of the motion
    (tuple((0.6, 0.12 + 0.02 * k) for k in range(3)), True),
    (tuple((0.6, 0.12 + 0.02 * k) for k in range(5)), False)])
def test_a_steady_stretch_lasts_and_is_a_share_of_its_motion(
    legs: tuple[tuple[float, float], ...], steady: bool
) -> None:
    (motion,) = motions_of((1.0, 0.0), *legs, (1.0, 0.0))
    assert motion.steady is steady
    if not steady:
        assert motion.speed > 0.0 and len(motion.torque) == 0
        back = motions_of((1.0, 0.0), *((seconds, -speed) for seconds, speed in legs), (1.0, 0.0))
        assert back[0].speed == pytest.approx(-motion.speed)


@pytest.mark.parametrize(('steps', 'steady'), [(18, False), (19, True)])
def test_a_steady_stretch_of_few_rows_per_second_has_sixteen(steps: int, steady: bool) -> None:
    """At 20 Hz: without one row for each speed and window at both ends."""
    time = 0.05 * np.arange(100)
    own = 0.01 * np.clip(np.arange(100.0) - 40.0, 0.0, steps)
    position = np.column_stack([own, 0.0 * own])
    (motion,) = single_joint_motions(time, position, position, LEAST)
    assert motion.steady is steady and len(motion.position) == 16 * steady


def test_a_joint_that_sticks_moves_in_jerks_at_its_mean_speed() -> None:
    """From three parts on; twice it is two motions, and after half a second of rest as many."""
    (stuck,) = motions_of((1.0, 0.0), *[(0.15, 0.2), (0.3, 0.0)] * 5, (1.0, 0.0))
    assert stuck.jerky and not stuck.steady and len(stuck.torque) == 0
    (thrice,) = motions_of((1.0, 0.0), *[(0.15, 0.2), (0.3, 0.0)] * 3, (1.0, 0.0))
    assert thrice.jerky
    assert stuck.speed == pytest.approx(0.15 * 0.2 * 5 / (5 * 0.45 - 0.3 + 0.1), rel=0.02)
    assert len(motions_of((1.0, 0.0), *[(0.15, 0.2), (0.3, 0.0)] * 2, (1.0, 0.0))) == 2
    apart = motions_of((1.0, 0.0), *[(0.15, 0.2), (0.7, 0.0)] * 5, (1.0, 0.0))
    assert len(apart) == 5 and not any(one.jerky for one in apart)


def test_seconds_of_motion_are_those_of_travel_within_half_a_second() -> None:
    """A joint at 0.2 rad/s travels the least in 0.05 s, so motion begins 0.2 s before it."""
    time, position = ramps((1.0, 0.0), (2.0, 0.2), (1.0, 0.0))
    assert moving_seconds(time, position, LEAST) == pytest.approx(2.4, abs=0.021)
    assert moving_seconds(time[:1], position[:1], LEAST) == 0.0
    assert moving_seconds(time[:90], position[:90], LEAST) == pytest.approx(0.1, abs=0.11)
    assert moving_seconds(time[150:152], 9.0 * position[150:152], LEAST) == pytest.approx(0.02)
    ((joint, rows),) = single_joint_stretches(time, 1.05 * position, LEAST)
    # 2.1 mrad each row: five of them within 25 rows to either side
    assert (joint, rows) == (0, slice(80, 321))
    assert list(single_joint_stretches(time[:2], 9.0 * position[150:152], LEAST)) == [
        (0, slice(0, 2))]
    ((_, rows),) = single_joint_stretches(time, position, LEAST)
    swapped = list(single_joint_stretches(time, position[:, ::-1], LEAST))
    assert swapped == [(1, rows)]
    assert not list(single_joint_stretches(time[:1], position[:1], LEAST))


@pytest.mark.parametrize(('way', 'alone', 'found'), [
    ('+++', '...', [(0, 3)]), ('0++0', '....', [(1, 3)]), ('++--', '....', [(0, 2), (2, 4)]),
    ('+00+', '....', [(0, 4)]), ('+000+', '.....', [(0, 1), (4, 5)]),
    ('+00-', '....', [(0, 1), (3, 4)]), ('+++', '.x.', [(0, 1), (2, 3)]),
    ('+00', '...', [(0, 1)]), ('000', '...', []), ('-0-', '...', [(0, 3)]), ('++', 'xx', [])])
def test_stretches_of_one_direction_with_short_pauses(
    way: str, alone: str, found: list[tuple[int, int]]
) -> None:
    signs = np.array([{'+': 1.0, '-': -1.0, '0': 0.0}[one] for one in way])
    mask = np.array([one == '.' for one in alone])
    assert list(stretches(signs, mask, 2)) == found


def test_a_slide_travels_less_than_a_joint_that_turns() -> None:
    robot = load_robot('planar_3r')
    slide = replace(robot, types=np.array([REVOLUTE, PRISMATIC, REVOLUTE], dtype=np.int8))
    assert least_travel(slide).tolist() == [0.01, 0.002, 0.01]


def test_dips_are_below_three_tenths_of_the_peaks_on_both_sides() -> None:
    for depth, found in ((0.29, [2]), (0.31, [])):
        assert dips(np.array([0.0, 1.0, depth, 1.2])) == found
        assert dips(np.array([0.0, 1.2, depth, 1.0])) == found
        assert dips(np.array([0.1, 1.0, depth, 2.0, 3.0 * depth])) == found
    assert longest(np.array([True, True, False, True, True, True])) == (3, 6)
    assert longest(np.array([True, True, False, True, True])) == (0, 2)
