"""signals/alignment.py: channels that are late against each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chains import random_chain
from motions import STEP, lively, torque_model
from recordings import (
    DT,
    effort_error,
    motion_errors,
    prepared,
    regular,
    smooth_motion,
    smooth_recording,
)
from tolerances import DEVIATION_RATIO, ENDS, LAG, RESAMPLED

from robot_dynid.identification.selection import effort_lag
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import shift, velocity_lag
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.types import RawLog


@pytest.fixture(scope='module')
def robot():
    """Return a planar arm of three joints."""
    return load_robot('planar_3r')


@pytest.mark.parametrize('late', [-0.004, 0.0, 0.0015, 0.01])
def test_velocity_lag_is_found(late):
    rng = np.random.default_rng(7)
    time = regular()
    q, _, _ = smooth_motion(time)
    _, qd, _ = smooth_motion(time - late)
    lag = velocity_lag(q, qd + 1e-3 * rng.normal(size=q.shape), DT)
    assert lag.seconds == pytest.approx(late, abs=LAG)
    assert lag.significant == (late != 0.0)


def test_late_velocity_is_corrected_and_said(robot):
    time = regular()
    q, _, _ = smooth_motion(time)
    _, late, _ = smooth_motion(time - 0.004)
    samples, notes = prepared(robot, replace(smooth_recording(time), position=q, velocity=late))
    assert [n for n in notes if 'velocity is 4.01 +- ' in n and 'later than position' in n]
    assert motion_errors(samples)[1] < ENDS[1]


def test_shift_moves_late_values_back():
    time = regular()
    late = np.sin(time - 0.0123)[:, None]
    assert shift(late, 0.0123, DT)[:-10, 0] == pytest.approx(np.sin(time)[:-10], abs=1e-5)
    assert shift(late, 0.0, DT) is late


def test_effort_lag_setting_moves_the_effort(robot):
    time = regular()
    _, qd, qdd = smooth_motion(time - 0.006)
    log = replace(smooth_recording(time), effort=5.0 * qd + 3.0 * qdd)
    samples, _ = prepared(robot, log, effort_lag=0.006)
    assert effort_error(samples) < 10 * RESAMPLED


def coloured(rng, count, step):
    """Return noise (count, 3) of deviation one that stays alike for a tenth of a second."""
    window = round(0.1 / step)
    sums = np.cumsum(rng.normal(size=(count + window, 3)), axis=0)
    return (sums[window:] - sums[:-window]) / np.sqrt(window)


def assert_honest(lags):
    """Fail unless errors of lags that are zero are as large as their deviations say."""
    error, stated = (np.sqrt(np.mean(np.square(values))) for values in zip(
        *((lag.seconds, lag.std) for lag in lags), strict=True))
    assert DEVIATION_RATIO[0] < error / stated < DEVIATION_RATIO[1]


def test_deviation_of_the_lag_of_velocity_holds_for_coloured_noise():
    rng = np.random.default_rng(11)
    time = regular(5.0)
    q, qd, _ = smooth_motion(time)
    assert_honest(velocity_lag(q, qd + 0.01 * coloured(rng, len(time), DT), DT)
                  for _ in range(200))


def test_deviation_of_the_lag_of_effort_holds_for_coloured_noise():
    rng = np.random.default_rng(12)
    model = torque_model(random_chain(rng, 1))
    clean = lively(model, 6000)
    settings = Preprocessing(10.0, decimate=False)
    lags = []
    for _ in range(40):
        noisy = clean.effort + 0.01 * clean.effort.std() * coloured(rng, 6000, STEP)[:, :1]
        log = RawLog('run', clean.joints, clean.time, clean.position, clean.velocity, noisy)
        repaired = Repaired('run', (log,), STEP, ())
        lags.append(effort_lag(model, [prepare(model.robot, repaired, settings)]))
    assert_honest(lags)
