"""estimation/friction_sweeps.py: friction from sweeps: eq. 8 in closed form, coloured noise,
outliers, bad sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import huber
from single_joint_recordings import (
    GRAVITY,
    JOINTS,
    OFFSET,
    SPEEDS,
    SWEEP_STEP,
    coloured,
    coulomb,
    swept,
)

from robot_dynid.estimation.friction_sweeps import (
    HUBER,
    Sweeps,
    friction_by_joint,
    friction_of_joint,
    huber_location,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.single_joint_motion import (
    MOVING_TRAVEL,
    dips,
    longest,
    single_joint_motions,
)
from robot_dynid.types import FloatArray

LEAST = np.full(len(JOINTS), MOVING_TRAVEL)


def sweeps(time: FloatArray, position: FloatArray, torque: FloatArray) -> Sweeps:
    return friction_by_joint(JOINTS, single_joint_motions(time, position, torque, LEAST))['a']


def test_half_the_difference_is_friction_and_half_the_sum_gravity_with_the_offset() -> None:
    found = sweeps(*swept())
    assert found.notes == ()
    assert [p.speed for p in found.points] == pytest.approx(SPEEDS, rel=1e-6)
    expected = coulomb(np.array(SPEEDS))
    assert [p.friction for p in found.points] == pytest.approx(expected, rel=1e-5)
    slowest = found.points[0]
    assert slowest.even == pytest.approx(GRAVITY * np.cos(0.2) + OFFSET, rel=1e-2)


def test_gravity_cancels_in_every_pose_and_pairs_stay_in_theirs() -> None:
    found = sweeps(*swept(poses=(0.0, 1.0)))
    assert all(p.pairs == 2 for p in found.points)
    expected = coulomb(np.array(SPEEDS))
    assert [p.friction for p in found.points] == pytest.approx(expected, rel=1e-5)


def test_intervals_hold_for_coloured_noise() -> None:
    time, position, torque = swept()
    rng = np.random.default_rng(5)
    inside, widths = [], []
    for _ in range(100):
        seen = np.round(position / 1e-5) * 1e-5
        for p in sweeps(time, seen, torque + coloured(torque.shape, rng)).points:
            inside.append(abs(p.friction - coulomb(p.speed)) <= p.half_width)
            widths.append(p.std)
    share = float(np.mean(inside))
    print(f'\npoints inside their 95 % interval, coloured noise, 100 seeds: {100 * share:.1f} %')  # noqa: T201
    # 600 intervals: +- 0.9 % by chance; batches of 100 ms forget most of the colour.
    assert 0.92 <= share <= 0.98
    assert len(inside) == 600


def test_outliers_move_the_friction_by_little() -> None:
    time, position, torque = swept()
    rng = np.random.default_rng(2)
    noisy = torque + 0.1 * rng.standard_normal(torque.shape)
    spoilt = noisy.copy()
    hit = rng.random(len(time)) < 0.02
    spoilt[hit, 0] += 80.0
    for clean, dirty in zip(sweeps(time, position, noisy).points,
                            sweeps(time, position, spoilt).points, strict=True):
        assert abs(dirty.friction - clean.friction) < 0.03
        assert dirty.std < 5.0 * clean.std


def test_the_location_is_where_hubers_loss_is_least() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(2.0, 0.3, 400), rng.normal(9.0, 1.0, 30)])
    found, influence = huber_location(values)
    scale = float(np.median(np.abs(values - np.median(values)))) / 0.6745
    best = minimize_scalar(lambda c: huber(HUBER * scale, values - c).sum(), (1.5, 2.5),
                           tol=1e-12)
    assert found == pytest.approx(best.x, abs=1e-6)
    assert abs(influence.mean()) < 1e-8
    assert np.abs(influence).max() < 3.0 * scale


def test_a_speed_with_friction_that_depends_on_the_pose_is_told_and_has_a_wide_band() -> None:
    time, position, torque = swept(speeds=(0.2, 0.4, 0.8), poses=(0.0, 1.0))
    rng = np.random.default_rng(1)
    torque = torque + 0.05 * rng.standard_normal(torque.shape)
    velocity = np.gradient(position[:, 0], SWEEP_STEP)
    torque[:, 0] += np.where(position[:, 1] > 0.5, np.sign(np.round(velocity, 3)), 0.0)
    found = sweeps(time, position, torque)
    assert len(found.notes) == 3
    assert 'a at 0.2 has different friction in different poses' in found.notes[0]
    assert all(p.half_width > 1.0 for p in found.points)


def test_sweeps_note_names_joint_speed_and_side_of_one_way_motion() -> None:
    time, position, torque = swept(speeds=(0.4, 0.8))
    peak = int(np.argmax(position[:, 0]))  # the top of the last sweep
    rows = slice(0, peak)
    found = sweeps(time[rows], position[rows], torque[rows])
    assert [p.speed for p in found.points] == pytest.approx([0.4], rel=1e-6)
    assert len(found.notes) == 1
    assert found.notes[0].startswith('a at 0.8 has constant speed forward only')


def test_sweeps_that_are_too_short_are_named() -> None:
    parts = [swept(speeds=(0.2, 0.4)), swept(speeds=(0.8,), plateau=0.15)]
    position, torque = (np.concatenate([p[i] for p in parts]) for i in (1, 2))
    position[len(parts[0][0]):, 0] += parts[0][1][-1, 0] - parts[1][1][0, 0]
    found = sweeps(np.arange(len(position)) * SWEEP_STEP, position, torque)
    assert [p.speed for p in found.points] == pytest.approx([0.2, 0.4], rel=1e-6)
    assert len(found.notes) == 1
    assert 'moves forward and backward at 0.' in found.notes[0]
    assert 'at least 0.4 s of constant speed' in found.notes[0]


def test_sticking_is_told_and_its_speed_left_out() -> None:
    time, position, torque = swept(speeds=(0.05, 0.4), plateau=2.0)
    slow = time < 5.2
    own = position[slow, 0]
    position[slow, 0] = np.round(own / 0.02) * 0.02 + 1e-3 * np.tanh(
        (own - np.round(own / 0.02) * 0.02) / 1e-3)
    found = sweeps(time, position, torque)
    assert [p.speed for p in found.points] == pytest.approx([0.4], rel=1e-6)
    assert any('moves in jerks (stick-slip); this speed is omitted' in note
               for note in found.notes)
    assert all(note.startswith('a at 0.0') for note in found.notes)


def test_motion_that_never_keeps_its_speed_says_nothing() -> None:
    time = np.arange(0.0, 20.0, SWEEP_STEP)
    position = np.stack([np.sin(time), np.zeros_like(time)], axis=1)
    assert friction_by_joint(JOINTS, single_joint_motions(time, position, position, LEAST)) == {}
    both = np.stack([np.sin(time), np.sin(1.3 * time)], axis=1)
    assert friction_by_joint(JOINTS, single_joint_motions(time, both, both, LEAST)) == {}
    assert single_joint_motions(time[:20], both[:20], both[:20], LEAST) == []
    assert friction_of_joint('a', []).points == ()


def test_the_motor_of_a_coupled_axis_is_told_from_the_other() -> None:
    robot = load_robot('tx40')
    motors = np.random.default_rng(0).standard_normal((50, robot.n))
    assert robot.drive.coupling is not None
    effort = motors @ robot.drive.coupling
    assert not np.allclose(effort, motors)
    np.testing.assert_allclose(robot.motor_torque(effort), motors, rtol=0.0, atol=1e-12)


def test_runs_and_dips() -> None:
    assert longest(np.array([False, True, True, False, True])) == (1, 3)
    assert longest(np.zeros(3, dtype=bool)) == (0, 0)
    assert dips(np.array([0.0, 1.0, 0.2, 1.0, 0.5, 1.0, 0.1, 0.1, 2.0])) == [2, 6]
    assert dips(np.array([0.0, 1.0, 0.4, 1.0])) == []
