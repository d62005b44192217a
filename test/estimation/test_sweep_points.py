"""Points of friction from sweeps (`estimation.friction_sweeps`): pairs, deviations, notes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from robot_dynid.estimation.friction_sweeps import (
    SpeedPoint,
    friction_by_joint,
    friction_of_joint,
    huber_location,
    pair_stretches,
)
from robot_dynid.signals.single_joint_motion import SingleJointMotion

POSE = (0.0, 0.7, -0.4)


def sweep(speed, start, ends=(0.1, 1.4), count=27, friction=0.0, noise=(), pose=POSE, joint=1,
          seconds=1.5, jerky=False, path=None):
    """Return a stretch from `ends` to each other, with torque 5 + 3 q + `friction` + `noise`."""
    position = np.linspace(*ends, count) if count else np.empty(0)
    if speed < 0.0:
        position = position[::-1]
    torque = 5.0 + 3.0 * position + friction + (np.asarray(noise) if len(noise) else 0.0)
    return SingleJointMotion(joint, speed, start, seconds, path or ends[::int(np.sign(speed))],
                             jerky, np.array(pose), position, torque)


def test_torque_of_a_pair_is_compared_at_equal_positions():
    """Backward from 1.2 to 0.2 on another grid: forward samples within, borders included."""
    there = sweep(0.5, 0.0, (0.1, 1.4), 14, friction=2.0)
    back = sweep(-0.52, 3.0, (0.2, 1.2), 8, friction=-1.4)
    (pair,), alone = pair_stretches([there, back])
    assert alone == []
    assert pair.speed == pytest.approx(0.51)
    assert pair.difference == pytest.approx(np.full(11, 1.7))
    assert pair.half_sum == pytest.approx(5.3 + 3.0 * np.linspace(0.2, 1.2, 11))


@pytest.mark.parametrize(('change', 'fits'), [
    ({'speed': -0.5 / 0.951}, True), ({'speed': -0.5 / 0.949}, False),
    ({'speed': -0.5 * 0.951}, True), ({'speed': -0.5 * 0.949}, False), ({'speed': 0.5}, False),
    ({'pose': (0.1, 9.0, -0.4)}, True), ({'pose': (0.101, 0.7, -0.4)}, False),
    ({'pose': (0.0, 0.7, -0.499)}, True), ({'pose': (0.0, 0.7, -0.501)}, False),
    ({'ends': (0.74, 3.0)}, True), ({'ends': (0.76, 3.0)}, False),
    ({'ends': (-2.0, 0.76)}, True), ({'ends': (-2.0, 0.74)}, False),
    ({'ends': (1.2, 1.58)}, True), ({'ends': (1.22, 1.6)}, False)])
def test_stretches_pair_at_one_speed_and_pose_over_half_of_the_shorter(change, fits):
    there, back = sweep(0.5, 0.0), sweep(**{'speed': -0.5, 'start': 2.0, **change})
    pairs, alone = pair_stretches([there, back])
    assert len(pairs) == fits and alone == ([] if fits else [there, back])


def test_stretches_pair_at_the_very_limits_and_not_without_speed():
    there = sweep(20.0, 0.0, (0.0, 1.0))
    assert len(pair_stretches([there, sweep(-19.0, 1.0, (0.5, 3.0))])[0]) == 1
    assert pair_stretches([sweep(0.0, 0.0, path=(0.1, 0.1))]) == ([], [])


def test_a_stretch_pairs_with_the_backward_one_nearest_in_time_once():
    """The second one gets the one before it; the third one stays alone."""
    backs = [sweep(-0.5, start, friction=-f) for start, f in ((2.0, 0.2), (13.0, 1.4), (50.0, 7))]
    theres = [sweep(0.5, start, friction=2.0) for start in (10.0, 12.0, 45.0, 46.0)]
    pairs, alone = pair_stretches([*theres, *backs])
    assert [p.difference[0] for p in pairs] == pytest.approx([1.7, 1.1, 4.5])
    assert alone == [theres[3]]


@pytest.mark.parametrize('seed', range(4))
def test_location_and_influence_are_hubers(seed):
    rng = np.random.default_rng(seed)
    values = np.append(3.0 + 0.2 * rng.standard_normal(40), [9.0, 4.1, 7.0])
    scale = stats.median_abs_deviation(values) / 0.6745
    limit = 1.345 * scale
    centre = brentq(lambda c: np.clip(values - c, -limit, limit).sum(), 2.0, 5.0, xtol=1e-14)
    location, influence = huber_location(values)
    assert location == pytest.approx(centre, abs=1e-9 * scale)
    residual = values - location
    inside = np.mean(np.abs(residual) <= limit)
    assert influence == pytest.approx(np.clip(residual, -limit, limit) / inside, rel=1e-4)


def test_location_of_values_that_are_mostly_equal_is_theirs():
    location, influence = huber_location(np.array([1.5, 1.5, 1.5, 2.0, 5.0]))
    assert location == 1.5 and influence.tolist() == [0.0, 0.0, 0.0, 0.5, 3.5]


def noisy_pairs(shift, count=2, seed=7):
    """Return pairs at about 0.5 whose differences scatter by 0.1; the last is off by `shift`."""
    rng = np.random.default_rng(seed)
    motions, values = [], []
    for k in range(count):
        noise = 0.2 * rng.standard_normal(23 + 2 * k)
        off = 1.7 + (k == count - 1) * shift
        motions += [sweep(0.5, 10.0 * k, friction=2 * off + 0.4, noise=noise, count=len(noise)),
                    sweep(-0.502 - 0.004 * k, 10.0 * k + 3, friction=-0.4, count=len(noise))]
        values.append(off + 0.4 + 0.5 * noise)
    return motions, values


def point_of(values):
    """Return location, influence of batches (pairs, 5), and p-value that pairs differ."""
    location, influence = huber_location(np.concatenate(values))
    ends = np.cumsum([0, *map(len, values)])
    means = np.array([[influence[a:b][np.arange(b - a) * 5 // (b - a) == k].mean()
                       for k in range(5)] for a, b in pairwise(ends)])
    return location, means, stats.f_oneway(*means).pvalue if len(means) > 1 else 1.0


@pytest.mark.parametrize('count', [1, 2, 3])
@pytest.mark.parametrize('pvalue', [1.15e-3, 0.87e-3])
def test_deviation_of_friction_is_that_of_batches_or_of_unlike_pairs(count, pvalue):
    shift = 0.0 if count == 1 else brentq(
        lambda s: np.log(point_of(noisy_pairs(s, count)[1])[2] / pvalue), 0.0, 1.0)
    motions, values = noisy_pairs(shift, count)
    location, means, _ = point_of(values)
    unlike = count > 1 and pvalue < 1e-3
    batches = means.mean(axis=1) if unlike else means.ravel()
    found = friction_of_joint('elbow', motions)
    (point,) = found.points
    assert point.friction == pytest.approx(location, rel=1e-9)
    assert point.std == pytest.approx(stats.sem(batches), rel=1e-6)
    assert point.degrees == len(batches) - 1 and point.pairs == count
    assert point.speed == pytest.approx(0.501 + 0.001 * (count - 1))
    even = [0.5 * (np.median(m.torque + b.torque[::-1])) for m, b in zip(
        motions[::2], motions[1::2], strict=True)]
    assert point.even == pytest.approx(np.mean(even), rel=1e-9)
    assert point.half_width == pytest.approx(stats.t.ppf(0.975, len(batches) - 1) * point.std)
    assert found.notes == ((
        f'elbow at {point.speed:.3g} has different friction in different poses, perhaps because '
        'of the load; the interval is that of the mean',) if unlike else ())


def test_pairs_without_any_scatter_are_not_unlike():
    motions = [sweep(s * 0.5, t, (0.125, 1.375), 11, friction=s * f) for t, (s, f) in enumerate(
        [(1, 1.0), (-1, 1.0), (1, 1.5), (-1, 1.5)])]
    found = friction_of_joint('a', motions)
    assert found.notes == () and found.points[0].degrees == 9


def test_points_are_grouped_by_speed_and_every_omission_has_its_note():
    motions = [sweep(s * v, t + 2.0 * (s < 0), friction=s * f)
               for t, v, f in ((0.0, 0.8, 1.8), (5.0, 0.2, 1.2), (10.0, 0.207, 1.2),
                               (15.0, 0.4, 1.4)) for s in (1, -1)]
    motions += [sweep(0.3, 20.0, jerky=True, count=0), sweep(-0.31, 20.0, jerky=True, count=0),
                sweep(0.1, 21.0, jerky=True, count=0),
                sweep(0.3, 22.0), sweep(-0.3, 24.0),  # steady, where others are jerky
                sweep(0.6, 30.0), sweep(0.61, 31.0), sweep(-1.2, 32.0), sweep(0.41, 33.0),
                sweep(2.0, 40.0, count=0), sweep(-2.0, 42.0, count=0),
                sweep(1.5, 50.0, count=0), sweep(-1.5, 52.0, count=0),
                sweep(3.0, 60.0, count=0, seconds=0.19), sweep(-3.0, 60.1, count=0, seconds=0.19),
                sweep(4.0, 70.0, count=0)]
    found = friction_of_joint('elbow', motions)
    assert [p.speed for p in found.points] == pytest.approx([0.2035, 0.4, 0.8])
    assert [p.pairs for p in found.points] == [2, 1, 1]
    assert [p.friction for p in found.points] == pytest.approx([1.2, 1.4, 1.8])
    assert found.notes == (
        'elbow at 0.1 moves in jerks (stick-slip); this speed is omitted',
        'elbow at 0.3 moves in jerks (stick-slip); this speed is omitted',
        'elbow at 0.6 has constant speed forward only; friction needs the way back over the same '
        'positions at the same speed',
        'elbow at 1.2 has constant speed backward only; friction needs the way back over the same '
        'positions at the same speed',
        'elbow moves forward and backward at 1.5, 2 without constant speed; at least 0.4 s of '
        'constant speed are needed')


@pytest.mark.parametrize(('change', 'noted'), [
    ({}, True), ({'start': 3.5}, True), ({'start': 3.51}, False), ({'start': 0.01}, True),
    ({'start': 0.0}, False), ({'speed': -0.95 * 2.005}, True), ({'speed': -0.95 * 1.99}, False),
    ({'path': (1.3, 1.2)}, True), ({'path': (1.3, 1.3)}, False), ({'path': (1.3, -0.95)}, True),
    ({'path': (1.3, -1.05)}, False), ({'path': (1.3, 1.25)}, True),
    ({'seconds': 0.2}, True), ({'seconds': 0.19}, False)])
def test_short_sweeps_are_noted_if_they_directly_return(change, noted):
    there = sweep(2.0, 0.0, count=0, path=(0.125, 1.25))
    back = sweep(**{'speed': -2.0, 'start': 1.6, 'count': 0, 'path': (1.3, 0.2), **change})
    assert len(friction_of_joint('a', [there, back]).notes) == noted


def test_friction_is_that_of_the_joints_with_motions_of_their_own():
    motions = [sweep(0.5, 0.0, joint=2, friction=1.5), sweep(-0.5, 2.0, joint=2, friction=-1.5),
               sweep(0.7, 4.0, joint=0, count=0)]
    found = friction_by_joint(('a', 'b', 'c'), motions)
    assert list(found) == ['a', 'c'] and found['a'].points == ()
    assert found['c'].points == (SpeedPoint(0.5, pytest.approx(1.5), pytest.approx(0.0, abs=1e-12),
                                            4, 1, pytest.approx(7.25)),)
    assert friction_by_joint(('a', 'b', 'c'), motions[2:]) == {}
