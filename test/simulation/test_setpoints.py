"""The simulated arm follows setpoints from outside, as drives do those of a real controller."""

from __future__ import annotations

import numpy as np

from robot_dynid import load_robot
from robot_dynid.simulation.simulator import SETPOINT_HORIZON, Simulator, start_position
from robot_dynid.simulation.truth import load_truth

AMPLITUDE, FREQUENCY, EVERY = 0.4, 2.0 * np.pi * 0.3, 4


def test_the_drives_follow_setpoints_between_which_they_extrapolate() -> None:
    robot = load_robot('seven_axis')
    simulator = Simulator(robot, load_truth(robot))
    start, errors = start_position(robot), []
    for cycle in range(3000):
        phase = FREQUENCY * simulator.time
        if cycle % EVERY == 0:
            simulator.command(simulator.time, start + AMPLITUDE * np.sin(phase),
                              AMPLITUDE * FREQUENCY * np.cos(phase) * np.ones(robot.n))
        errors.append(simulator.advance(1).position - start - AMPLITUDE * np.sin(phase))
    # accelerations are not commanded: an error of qdd / 75^2, 2.5e-4 rad, and friction
    assert np.abs(errors[500:]).max() < 4e-3


def test_the_first_setpoint_places_the_arm_and_the_last_is_held() -> None:
    robot = load_robot('planar_3r')
    simulator = Simulator(robot, load_truth(robot))
    place, speed = np.array([0.3, -0.2, 0.1]), 0.5 * np.ones(3)
    simulator.command(0.0, place, np.zeros(3))
    np.testing.assert_allclose(simulator.advance(1).position, place, atol=1e-3)
    simulator.command(simulator.time, place, speed)
    for _ in range(1000):
        reading = simulator.advance(1)
    np.testing.assert_allclose(reading.position, place + SETPOINT_HORIZON * speed, atol=3e-3)
    assert np.abs(reading.velocity).max() < 0.01
