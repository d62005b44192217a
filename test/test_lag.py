"""Channels that are late against each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import DT, effort_error, errors, motion, prepared, recording, regular
from tolerances import ENDS, LAG, RESAMPLED

from robot_dynid.model.robot_file import load_robot
from robot_dynid.signals.alignment import shift, velocity_lag


@pytest.fixture(scope='module')
def robot():
    """Return a planar arm of three joints."""
    return load_robot('planar_3r')


@pytest.mark.parametrize('late', [-0.004, 0.0, 0.0015, 0.01])
def test_velocity_lag_is_found(late):
    rng = np.random.default_rng(7)
    time = regular()
    q, _, _ = motion(time)
    _, qd, _ = motion(time - late)
    lag = velocity_lag(q, qd + 1e-3 * rng.normal(size=q.shape), DT)
    assert lag.seconds == pytest.approx(late, abs=LAG)
    assert lag.significant == (late != 0.0)


def test_late_velocity_is_corrected_and_said(robot):
    time = regular()
    q, _, _ = motion(time)
    _, late, _ = motion(time - 0.004)
    samples, notes = prepared(robot, replace(recording(time), position=q, velocity=late))
    assert [n for n in notes if 'velocity is 4.01 +- ' in n and 'later than position' in n]
    assert errors(samples)[1] < ENDS[1]


def test_shift_moves_late_values_back():
    time = regular()
    late = np.sin(time - 0.0123)[:, None]
    assert shift(late, 0.0123, DT)[:-10, 0] == pytest.approx(np.sin(time)[:-10], abs=1e-5)
    assert shift(late, 0.0, DT) is late


def test_effort_lag_setting_moves_the_effort(robot):
    time = regular()
    _, qd, qdd = motion(time - 0.006)
    log = replace(recording(time), effort=5.0 * qd + 3.0 * qdd)
    samples, _ = prepared(robot, log, effort_lag=0.006)
    assert effort_error(samples) < 10 * RESAMPLED
