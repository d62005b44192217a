"""monitoring/noise_levels.py: levels of joints that move, rest and turn, against their definition.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from monitored import model_of
from scipy.signal import lfilter

from robot_dynid.errors import DataError
from robot_dynid.identified.states import holding_torque
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions, slow_shares
from robot_dynid.monitoring.observer import DRY, EXTERNAL, Observer
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

GAIN, STEP = 30.0, 0.004


def slowness(values: FloatArray, begin: float) -> FloatArray:
    """Return values (N,) through the low-pass of an observer, which begins at ``begin``."""
    keep = np.exp(-GAIN * STEP)
    return lfilter([1.0 - keep], [1.0, -keep], values[1:], zi=[keep * begin])[0]


def test_slowness_and_the_friction_meanwhile_are_forgotten_like_the_torque() -> None:
    """Every segment begins slow, with no friction; each step of time counts."""
    rng = np.random.default_rng(2)
    velocity, dry = rng.normal(0.0, 0.02, (2, 60, 2))
    time = STEP * np.arange(60.0)
    still = np.zeros_like(velocity)
    given = MonitorInput(time, still, velocity, still, starts=(0, 25))
    speeds = np.array([[0.01], [0.03]])
    shares, claimed = slow_shares(given, dry, speeds, GAIN)
    for i, j in np.ndindex(2, 2):
        slow = (np.abs(velocity[:, j]) < speeds[i, 0]).astype(float)
        for piece in (slice(0, 25), slice(25, 60)):
            assert (shares[piece][0, i, j], claimed[piece][0, i, j]) == (1.0, 0.0)
            np.testing.assert_allclose(shares[piece][1:, i, j], slowness(slow[piece], 1.0))
            np.testing.assert_allclose(
                claimed[piece][1:, i, j], slowness((slow * dry[:, j])[piece], 0.0), atol=1e-15,
                rtol=1e-9)
    rare = slow_shares(replace(given, time=2.0 * time, starts=(0,)), dry, speeds, 0.5 * GAIN)
    whole = slow_shares(replace(given, starts=(0,)), dry, speeds, GAIN)
    np.testing.assert_allclose(rare, whole)


def turning(seed: int, speed: tuple[float, ...]) -> MonitorInput:
    """Return a motion of three joints that slow down and turn, with efforts that are noise."""
    rng = np.random.default_rng(seed)
    time = STEP * np.arange(1500.0)
    rate = np.array([2.0, 3.1, 1.3])
    velocity = np.array(speed) * np.sin(np.outer(time, rate) + seed)
    position = -np.array(speed) / rate * np.cos(np.outer(time, rate) + seed)
    effort = lfilter([1.0], [1.0, -0.8], rng.normal(size=velocity.shape), axis=0)
    return MonitorInput(time, position, velocity, effort + 4.0 * (np.abs(velocity) < 0.012))


def test_levels_have_the_speed_with_the_lowest_mean_threshold() -> None:
    """The 0.999 quantile in motion; the rise at rest is judged where three tenths are slow."""
    model = model_of(load_robot('planar_3r'))
    floor = holding_torque(model)
    motions = [turning(1, (0.1, 0.9, 0.03)), turning(2, (0.2, 0.02, 0.004))]
    levels, found = learn_noise_levels(model, motions), []
    results = [Observer(model, GAIN).along(one) for one in motions]
    for j in range(3):
        tried = []
        for speed in (0.005, 0.01, 0.02, 0.05, 0.1):
            pieces = [slow_shares(one, rows[:, DRY], np.array([[speed]]), GAIN)
                      for one, rows in zip(motions, results, strict=True)]
            share = np.concatenate([piece[0][:, 0, j] for piece in pieces])
            torque = np.abs(np.concatenate([
                rows[:, EXTERNAL, j] - piece[1][:, 0, j]
                for piece, rows in zip(pieces, results, strict=True)]))
            slow, held = share > 0.3, floor[j]
            if slow.all():
                level = held
            else:
                if slow.any():
                    free = max(0.0, np.quantile((torque - floor[j] * share)[~slow], 0.999))
                    held = max(held, np.quantile((torque[slow] - free) / share[slow], 0.999))
                level = max(0.0, np.quantile(torque - held * share, 0.999))
            tried.append((float(np.mean(level + held * share)), level, held, speed))
        found.append(min(tried)[1:])
    np.testing.assert_allclose([levels.moving, levels.holding, levels.speed], np.transpose(found))
    assert levels.gain == GAIN and levels.deflected is levels.variance is None
    assert len(set(levels.speed)) == 3, levels.speed


def test_levels_need_motion() -> None:
    with pytest.raises(DataError) as caught:
        learn_noise_levels(model_of(load_robot('planar_3r')), [])
    assert str(caught.value) == 'no motion to learn the noise levels of contact detection from'


@pytest.mark.parametrize(('speed', 'count'), [(0.11, 1), (0.09, 2)])
def test_recordings_are_read_until_all_joints_moved_for_long_enough(
    speed: float, count: int
) -> None:
    """20 000 rows, with a speed of every joint above 0.1 rad/s."""
    robot = load_robot('planar_3r')
    model, time = model_of(robot), 0.01 * np.arange(20_001.0)
    velocity = np.outer(np.cos(time), [0.5, 0.4, speed])
    log = RawLog('long', robot.joints, time, np.outer(np.sin(time), [0.5, 0.4, speed]), velocity,
                 np.ones_like(velocity))
    found = recorded_motions(model, [log, log])
    assert [len(one.time) for one in found] == [20_000] * count
    short = replace(log, time=time[:9000], position=log.position[:9000],
                    velocity=velocity[:9000], effort=velocity[:9000])
    assert len(recorded_motions(model, [short, short, short, short])) == 3 + (count > 1)
