"""signals/averaging.py: repeated motions of robots with elastic joints: motors beside joints,
exact derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.signals.averaging import Periodic, average
from robot_dynid.signals.prepare import Preprocessing, prepare
from robot_dynid.types import FloatArray, RawLog

PERIOD, RATE, CUTOFF = 4.0, 500.0, 20.0
#: rad: encoder noise, a tenth of the deflections below
NOISE = 1e-4


def series(time: FloatArray, sizes: FloatArray) -> list[FloatArray]:
    """Return sines (N, n) of the first harmonics, and two derivatives."""
    rate = 2.0 * np.pi / PERIOD * (1.0 + np.arange(sizes.shape[1]))
    phase = rate * time[:, None] + np.arange(sizes.shape[1])
    return [np.sin(phase) @ sizes.T, (rate * np.cos(phase)) @ sizes.T,
            (-rate**2 * np.sin(phase)) @ sizes.T]


def recorded(periods: int) -> tuple[RawLog, list[FloatArray]]:
    """Return a recording, and what joints and motors (N, 4) do in its second period."""
    time, rng = np.arange(0.0, periods * PERIOD, 1.0 / RATE), np.random.default_rng(0)
    links = series(time, np.array([[0.5, 0.2, 0.1], [0.3, -0.4, 0.1]]))
    bends = series(time, 1e-3 * np.array([[2.0, 1.0, 0.5], [-1.0, 0.5, 1.5]]))
    both = [np.hstack([q, q + d]) for q, d in zip(links, bends, strict=True)]
    seen = both[0] + NOISE * rng.standard_normal(both[0].shape)
    log = RawLog('periods', load_robot('elastic_2r').joints, time, seen[:, :2],
                 effort=2e4 * bends[0] + 0.1 * rng.standard_normal(bends[0].shape),
                 motor_position=seen[:, 2:])
    one = round(PERIOD * RATE)
    return log, [values[one:2 * one] for values in both]


def test_motors_are_averaged_and_differentiated_with_their_joints() -> None:
    robot, (log, truth) = load_robot('elastic_2r'), recorded(9)
    repaired = average(robot, log, Periodic(PERIOD, 1))
    samples = prepare(robot, repaired, Preprocessing(CUTOFF, decimate=False, trim_rest=False))
    shift = round(samples.time[0] * RATE)
    assert samples.position.shape[1] == samples.velocity.shape[1] == 4
    assert samples.effort is not None and samples.effort.shape[1] == 4
    assert samples.noise is not None and len(samples.noise) == 4
    error = NOISE / np.sqrt(8.0)  # of the mean; the low-pass leaves a part of it
    for order, found in enumerate((samples.position, samples.velocity, samples.acceleration)):
        wanted = np.roll(truth[order], -shift, axis=0)
        assert np.all(np.std(found - wanted, axis=0) < error * (2.0 * np.pi) ** order)
    bend = samples.position[:, 2:] - samples.position[:, :2]
    wanted = np.roll(truth[0], -shift, axis=0)
    error = bend - (wanted[:, 2:] - wanted[:, :2])
    assert np.all(np.std(error, axis=0) < 0.3 * NOISE)
    assert np.all(np.std(error, axis=0) > 0.0)


def test_an_effort_of_every_equation_is_that_of_its_joint() -> None:
    robot, (log, _) = load_robot('elastic_2r'), recorded(4)
    samples = prepare(robot, average(robot, log, Periodic(PERIOD, 1)),
                      Preprocessing(CUTOFF, trim_rest=False))
    assert samples.effort is not None
    np.testing.assert_array_equal(samples.effort[:, :2], samples.effort[:, 2:])
    rigid = prepare(robot.rigid, average(robot.rigid, log, Periodic(PERIOD, 1)),
                    Preprocessing(CUTOFF, trim_rest=False))
    assert rigid.position.shape[1] == 2
    assert rigid.motor_position is not None
    np.testing.assert_allclose(rigid.motor_position, samples.position[:, 2:])
    assert rigid.position == pytest.approx(samples.position[:, :2])
