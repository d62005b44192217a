"""monitoring/noise_levels.py: levels of joints that move, rest and turn, against their definition.
"""

from __future__ import annotations

import numpy as np
import pytest
from monitored import model_of
from scipy.signal import lfilter

from robot_dynid.errors import DataError
from robot_dynid.identified.states import holding_torque
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.noise_levels import learn_noise_levels, slow_shares
from robot_dynid.monitoring.observer import DRY, EXTERNAL, Observer
from robot_dynid.robot.robot_file import load_robot

GAIN, STEP = 30.0, 0.004


def turning(seed: int, speed: tuple[float, ...]) -> MonitorInput:
    """Return a motion of three joints that slow down and turn, with efforts that are noise."""
    rng = np.random.default_rng(seed)
    time = STEP * np.arange(700.0)
    rate = np.array([2.0, 3.1, 1.3])
    velocity = np.array(speed) * np.sin(np.outer(time, rate) + seed)
    position = -np.array(speed) / rate * np.cos(np.outer(time, rate) + seed)
    effort = lfilter([1.0], [1.0, -0.8], rng.normal(size=velocity.shape), axis=0)
    pushes = np.where(np.abs(velocity) < 0.012, [40.0, 4.0, -15.0], 0.0)
    return MonitorInput(time, position, velocity, effort + pushes)


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
    assert len(set(levels.speed)) > 1, levels.speed
    assert (levels.holding > 1.1 * floor).any() and (levels.moving > 0.1).all()


def test_levels_need_motion() -> None:
    with pytest.raises(DataError) as caught:
        learn_noise_levels(model_of(load_robot('planar_3r')), [])
    assert str(caught.value) == 'no motion to learn the noise levels of contact detection from'
