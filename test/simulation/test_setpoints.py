"""simulation/simulator.py: the simulated arm follows setpoints from outside, as drives do those of
a real controller."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.simulation.simulator import SETPOINT_DELAY, Simulator, start_position
from robot_dynid.simulation.truth import load_truth

AMPLITUDE, FREQUENCY, EVERY = 0.4, 2.0 * np.pi * 0.3, 4


@pytest.mark.parametrize('gap', [0.005, 0.03])  # s; of topics that lose most messages
def test_the_drives_interpolate_between_setpoints_whenever_these_come(gap: float) -> None:
    robot = load_robot('seven_axis')
    simulator, rng = Simulator(robot, load_truth(robot)), np.random.default_rng(3)
    start, errors, efforts, stamp = start_position(robot), [], [], 0.0
    for cycle in range(3000):
        if cycle % 20 == 0:  # five at once, with stamps that jitter
            while stamp < simulator.time + 0.06:
                phase = FREQUENCY * stamp
                simulator.command(stamp, start + AMPLITUDE * np.sin(phase), np.full_like(
                    start, FREQUENCY * AMPLITUDE * np.cos(phase)))
                stamp += rng.uniform(0.003, gap)
        assert not simulator.ahead
        wanted = AMPLITUDE * np.sin(FREQUENCY * (simulator.time - SETPOINT_DELAY))
        reading = simulator.advance(1)
        errors.append(reading.position - start - wanted)
        efforts.append(reading.effort)
    # friction, and the noise of the encoders
    assert np.abs(errors[500:]).max() < 4e-3
    # noise of the sensor, 0.011; 0.053 with straight lines between setpoints 30 ms apart
    steps = np.abs(np.diff(efforts[500:], axis=0)).max(axis=0)
    assert np.all(steps < 0.013 * robot.limits.effort)


def test_the_first_setpoint_places_the_arm_and_the_last_is_held() -> None:
    robot = load_robot('planar_3r')
    simulator = Simulator(robot, load_truth(robot))
    place = np.array([0.3, -0.2, 0.1])
    still = np.zeros(3)
    simulator.command(0.0, place, still)
    np.testing.assert_allclose(simulator.advance(1).position, place, rtol=0.0, atol=1e-3)
    simulator.command(0.01, place + 0.005, still)
    simulator.command(0.005, place + 1.0, still)  # out of order
    for _ in range(1000):
        reading = simulator.advance(1)
    np.testing.assert_allclose(reading.position, place + 0.005, rtol=0.0, atol=3e-3)
    assert np.abs(reading.velocity).max() < 0.01
    assert simulator.ahead
