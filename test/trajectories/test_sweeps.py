"""estimation/friction_sweeps.py: friction from sweeps: eq. 8 in closed form, coloured noise,
outliers, bad sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
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
    pair_stretches,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.single_joint_motion import (
    MOVING_TRAVEL,
    SingleJointMotion,
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


ROWS = np.linspace(0.0, 1.0, 20)


def stretch(speed: float, start: float = 0.0, position: FloatArray = ROWS,
            torque: FloatArray | float = 0.0, **others: object) -> SingleJointMotion:
    """Return a motion of the first of two joints at constant speed."""
    values = {'joint': 0, 'seconds': 1.0, 'path': (5.0, 6.0), 'jerky': False,
              'pose': np.zeros(2), **others}
    return SingleJointMotion(speed=speed, start=start, position=position,
                             torque=torque + np.zeros(len(position)), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(('pair', 'back'), [
    (True, stretch(-0.951)),
    (False, stretch(-0.949)),  # the speeds differ by more than 5 %
    (True, stretch(-1.0, pose=np.array([9.0, 0.1]))),
    (False, stretch(-1.0, pose=np.array([0.0, 0.101]))),  # the other joint is elsewhere
    (True, stretch(-1.0, position=ROWS + 0.5)),
    (False, stretch(-1.0, position=ROWS + 0.51)),  # less than half is common
    (True, stretch(-1.0, position=ROWS - 0.5)),
    (False, stretch(-1.0, position=ROWS - 0.51)),
    (True, stretch(-1.0, position=0.5 + 4.0 * ROWS)),
    (False, stretch(-1.0, position=0.51 + 4.0 * ROWS)),
    (True, stretch(-1.0, position=0.75 + 0.5 * ROWS)),
    (False, stretch(-1.0, position=0.76 + 0.5 * ROWS)),
    (False, stretch(1.0)),
])
def test_pairs_are_of_one_speed_pose_and_range(pair: bool, back: SingleJointMotion) -> None:
    there = stretch(1.0)
    pairs, alone = pair_stretches([there, back])
    assert (len(pairs), alone) == ((1, []) if pair else (0, [there, back]))


def test_a_pair_is_of_the_way_back_that_is_nearest_in_time_over_common_positions() -> None:
    there = stretch(1.0, 5.0, np.array([-1.0, 0.0, 0.5, 1.0, 2.0]),
                    np.array([9.0, 4.0, 5.0, 6.0, 9.0]))
    far = stretch(-1.0, 1.0)
    near = stretch(-0.98, 6.0, np.array([1.0, 0.25, 0.0]), np.array([2.0, 0.5, 0.0]))
    (pair,), alone = pair_stretches([there, far, near])
    assert alone == [far]
    assert pair.speed == pytest.approx(0.99, rel=1e-12)
    np.testing.assert_allclose(pair.difference, [2.0, 2.0, 2.0])
    np.testing.assert_allclose(pair.half_sum, [2.0, 3.0, 4.0])


#: ten and ten rows of mean zero; the means of its five batches are 0.5, -0.5, and 0 three times
RIPPLE = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0] + 6 * [1.0, -1.0])
BATCH_MEANS = np.array([0.5, -0.5, 0.0, 0.0, 0.0])


def two_passes(apart: float, ripple: float = 1.0) -> list[SingleJointMotion]:
    """Return passes with friction of 3 N m -+ `apart`, and even torques of 4 and 6 N m."""
    return [stretch(way, start + (way < 0.0), torque=even + way * (3.0 + side + ripple * RIPPLE))
            for start, side, even in ((0.0, -apart, 4.0), (50.0, apart, 6.0))
            for way in (1.0, -1.0)]


@pytest.mark.parametrize('apart', [0.55, 0.58])  # either side of a p-value of 0.001
def test_passes_that_differ_by_more_than_their_noise_widen_the_interval(apart: float) -> None:
    found = friction_of_joint('a', two_passes(apart))
    (point,) = found.points
    groups = [BATCH_MEANS - apart, BATCH_MEANS + apart]
    unlike = bool(stats.f_oneway(*groups).pvalue < 1e-3)
    scattered = np.mean(groups, axis=1) if unlike else np.ravel(groups)
    assert unlike == (apart > 0.56)
    assert (point.speed, point.friction, point.even) == pytest.approx((1.0, 3.0, 5.0))
    assert (point.degrees, point.pairs) == (1 if unlike else 9, 2)
    assert point.std == pytest.approx(stats.sem(scattered), rel=1e-9)
    assert point.half_width == pytest.approx(stats.t.ppf(0.975, point.degrees) * point.std)
    assert found.notes == unlike * (
        'a at 1 has different friction in different poses, perhaps because of the load; the '
        'interval is that of the mean',)


def test_passes_without_noise_are_not_compared() -> None:
    found = friction_of_joint('a', two_passes(0.5, ripple=0.0))
    assert found.notes == () and found.points[0].degrees == 9
    (one,) = friction_of_joint('a', two_passes(0.0)[:2]).points
    assert (one.degrees, one.pairs, one.even) == (4, 1, 4.0)
    assert one.std == pytest.approx(stats.sem(BATCH_MEANS), rel=1e-9)


def test_points_are_of_speeds_within_five_percent_slowest_first() -> None:
    speeds = (2.0, 1.06, 1.0, 1.04)
    found = friction_of_joint('a', [
        stretch(way * v, 10.0 * k, torque=way * v, pose=np.array([0.0, k])) for k, v in
        enumerate(speeds) for way in (1.0, -1.0)])
    assert [p.speed for p in found.points] == pytest.approx([1.02, 1.06, 2.0])
    assert [p.pairs for p in found.points] == [2, 1, 1]


SHORT = np.empty(0)


def short(speed: float, start: float = 0.0, **others: object) -> SingleJointMotion:
    return stretch(speed, start, SHORT, **others)


NEVER_STEADY = 'a moves forward and backward at 1 without constant speed; at least 0.4 s of ' \
    'constant speed are needed'
ONE_WAY = 'a at 2 has constant speed {} only; friction needs the way back over the same ' \
    'positions at the same speed'


@pytest.mark.parametrize(('motions', 'notes'), [
    ([stretch(2.0, jerky=True), stretch(-2.05, jerky=True)],
     ['a at 2 moves in jerks (stick-slip); this speed is omitted']),
    ([stretch(2.0), stretch(2.01)], [ONE_WAY.format('forward')]),
    ([stretch(-2.0)], [ONE_WAY.format('backward')]),
    ([stretch(2.0), stretch(-2.0), stretch(2.0, pose=np.ones(2))], []),
    ([short(1.0), short(-1.0, 3.0, path=(9.0, 6.0))], [NEVER_STEADY]),  # turns back after 2 s
    ([short(1.0), short(-1.0, 3.01, path=(9.0, 6.0))], []),
    ([short(1.0), short(-1.0, 0.0, path=(9.0, 6.0))], []),
    ([short(1.0), short(-1.0, 3.0, path=(9.0, 6.01))], []),  # not to where it began
    ([short(1.0), short(-1.0, 3.0, path=(9.0, 3.99))], []),
    ([short(1.0), short(-0.9, 3.0, path=(9.0, 6.0))], []),
    ([short(1.0, seconds=0.2), short(-1.0, 2.0, seconds=0.2)], [NEVER_STEADY]),
    ([short(1.0, seconds=0.19), short(-1.0, 2.0)], []),
    ([short(1.0), short(-1.0, 2.0, jerky=True)],
     ['a at 1 moves in jerks (stick-slip); this speed is omitted']),
    ([stretch(1.0), stretch(-1.0), short(1.0, 5.0), short(-1.0, 7.0)], []),
])
def test_notes_say_which_speeds_are_left_out_and_why(
    motions: list[SingleJointMotion], notes: list[str]
) -> None:
    assert list(friction_of_joint('a', motions).notes) == notes


def test_outliers_count_as_huber_has_it() -> None:
    assert huber_location(np.array([1.0, 1.0, 1.0, 5.0]))[0] == 1.0  # most are alike
    values = np.array([-1.0, 0.0, 1.0, 100.0])
    found, influence = huber_location(values)
    bound = 1.345 * 1.0 / 0.6745  # the median deviation from the median, 0.5, is one
    assert found == pytest.approx(bound / 3.0, rel=1e-9)  # where 3 c is the bound of the outlier
    inside = 0.75
    np.testing.assert_allclose(influence, np.array([*(values[:3] - found), bound]) / inside)
