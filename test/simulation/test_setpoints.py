"""simulation/simulator.py: the simulated arm follows setpoints from outside, as drives do those of
a real controller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.errors import UsageError
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Setpoint
from robot_dynid.simulation.simulator import SETPOINT_DELAY, Simulator, start_position
from robot_dynid.simulation.truth import Noise, Truth, load_truth
from robot_dynid.simulation.waypoints import Command, Waypoint
from robot_dynid.types import FloatArray

AMPLITUDE, FREQUENCY, EVERY = 0.4, 2.0 * np.pi * 0.3, 4


def wave(start: FloatArray, phase: float) -> Setpoint:
    """Return a setpoint of all joints on a sine."""
    factors = AMPLITUDE * np.array([
        np.sin(phase), FREQUENCY * np.cos(phase), -FREQUENCY**2 * np.sin(phase)])
    return Setpoint(start + factors[0], *np.tile(factors[1:, None], len(start)))


@pytest.mark.parametrize('gap', [0.005, 0.03])  # s; of topics that lose most messages
def test_the_drives_interpolate_between_setpoints_whenever_these_come(gap: float) -> None:
    robot = load_robot('seven_axis')
    simulator, rng = Simulator(robot, load_truth(robot)), np.random.default_rng(3)
    start, errors, efforts, stamp = start_position(robot), [], [], 0.0
    for cycle in range(3000):
        if cycle % 20 == 0:  # five at once, with stamps that jitter
            while stamp < simulator.time + 0.06:
                # a controller that adds up its cycles drifts from its stamps by microseconds
                phase = FREQUENCY * (stamp + rng.normal(0.0, 5e-6))
                simulator.command(stamp, wave(start, phase))
                stamp += rng.uniform(0.003, gap)
        assert not simulator.ahead(1)
        wanted = AMPLITUDE * np.sin(FREQUENCY * (simulator.time - SETPOINT_DELAY))
        reading = simulator.advance(1)
        errors.append(reading.position - start - wanted)
        efforts.append(reading.effort)
    # friction, and the noise of the encoders
    assert np.abs(errors[500:]).max() < 4e-3
    # noise of the sensor, 0.011; with straight lines between setpoints 30 ms apart 0.053, with
    # cubics through setpoints 5 ms apart 0.087
    steps = np.abs(np.diff(efforts[500:], axis=0)).max(axis=0)
    assert np.all(steps < 0.013 * robot.limits.effort)


def test_the_first_setpoint_places_the_arm_and_the_last_is_held() -> None:
    robot = load_robot('planar_3r')
    simulator = Simulator(robot, load_truth(robot))
    place, still = np.array([0.3, -0.2, 0.1]), np.zeros(3)
    simulator.command(0.0, Setpoint(place, still, still))
    np.testing.assert_allclose(simulator.advance(1).position, place, rtol=0.0, atol=1e-3)
    simulator.command(0.01, Setpoint(place + 0.005, still, still))
    simulator.command(0.005, Setpoint(place + 1.0, still, still))  # out of order
    for _ in range(1000):
        reading = simulator.advance(1)
    np.testing.assert_allclose(reading.position, place + 0.005, rtol=0.0, atol=3e-3)
    assert np.abs(reading.velocity).max() < 0.01
    assert simulator.ahead(1)


def test_the_last_of_the_next_cycles_is_ahead_of_the_setpoints() -> None:
    """No cycle holds a position while the next setpoint may still come."""
    robot = load_robot('planar_3r')
    simulator, still = Simulator(robot, load_truth(robot)), np.zeros(3)
    assert not simulator.ahead(100)  # nothing to follow
    for time in (0.0, 0.0295):
        simulator.command(time, Setpoint(still, still, still))
    simulator.advance(round((0.028 + SETPOINT_DELAY) / CONTROL_PERIOD))
    assert [simulator.ahead(cycles) for cycles in (1, 2, 3)] == [False, False, True]


def test_readings_have_the_fault_that_is_set_and_the_motors_of_elastic_arms() -> None:
    robot = load_robot('elastic_2r')
    robot = replace(robot, limits=replace(robot.limits, effort=np.array([300.0, 70.0])))
    simulator = Simulator(robot, replace(load_truth(robot), noise=Noise(
        position_step=1e-3, motor_position_step=1e-6)))
    place, still = np.array([0.30037, -0.20041]), np.zeros(2)
    simulator.command(0.0, Setpoint(place, still, still))
    reading = simulator.advance(1)
    motors = simulator.view()[1]
    assert reading.motor_position is not None and reading.motor_velocity is not None
    np.testing.assert_allclose(reading.motor_position, motors[0], rtol=0.0, atol=1e-5)
    bent = motors[0] - reading.position
    assert np.abs(bent).max() > 2e-4, 'the weight bends the gears'
    before = reading.effort
    simulator.fault = 'effort_spike'
    np.testing.assert_allclose(simulator.advance(1).effort,
                               [robot.limits.effort[0], before[1]], rtol=0.05)
    simulator.fault = 'no_effort'
    assert np.isnan(simulator.advance(1).effort).all()
    simulator.fault = 'nan'
    assert np.isnan(simulator.advance(1).position).tolist() == [True, False]
    rigid = load_robot('planar_3r')
    assert Simulator(rigid, load_truth(rigid)).advance(1).motor_position is None


def test_setpoints_go_on_with_the_jerk_to_the_next_one(monkeypatch) -> None:
    """Twelve milliseconds late; before the first and after the last they hold."""
    seen: list[Setpoint] = []
    monkeypatch.setattr(Arm, 'control', lambda self, setpoint: seen.append(setpoint))
    simulator = Simulator(load_robot('planar_3r'), Truth.ideal(3))
    begin, end = ([np.array([0.3, -0.2, 0.1]), np.array([0.5, 0.7, -0.9]),
                   factor * np.array([2.0, -3.0, 1.0])] for factor in (1.0, 4.0))
    for time, setpoint in ((0.0, begin), (0.02, end)):
        simulator.command(time, Setpoint(*setpoint))
    simulator.advance(36)
    jerk, still = (end[2] - begin[2]) / 0.02, np.zeros(3)
    for k, wanted in enumerate(seen):
        t = 0.001 * k - 0.012
        expected = [begin[0], still, still] if t < 1e-9 else [end[0], still, still]
        if 1e-9 < t < 0.02 - 1e-9:
            expected = [begin[0] + begin[1] * t + begin[2] * t**2 / 2.0 + jerk * t**3 / 6.0,
                        begin[1] + begin[2] * t + jerk * t**2 / 2.0, begin[2] + jerk * t]
        np.testing.assert_allclose(
            [wanted.position, wanted.velocity, wanted.acceleration], expected, rtol=0.0,
            atol=1e-12)
    assert len(seen) == 36


def test_faults_of_the_controller_come_and_go() -> None:
    simulator = Simulator(load_robot('planar_3r'), Truth.ideal(3))
    update = simulator.view()[0]
    assert update.index == 0 and update.reference.shape == update.output.shape == (3, 3)
    command = Command(simulator.robot.joints, (Waypoint(1.0, (0.1, 0.2, 0.3)),))
    for fault, active, reason in (
            ('none', True, None), ('inactive', False, 'controller is not active'),
            ('inactive', False, 'controller is not active'),
            ('reject', True, 'fault reject is set'), ('none', True, None)):
        simulator.fault = fault
        assert (simulator.fault, simulator.active, simulator.rejection(command)) == (
            fault, active, reason)


def test_arms_start_at_zero_or_in_the_middle_of_ranges_without_it() -> None:
    robot = load_robot('seven_axis')
    limits = replace(robot.limits, lower=np.array([0.2, -2.0, -1.0, np.nan, 0.0, -3.0, -0.1]),
                     upper=np.array([1.0, -1.2, 0.6, np.nan, 0.7, 0.0, 5.0]))
    assert start_position(replace(robot, limits=limits)) == pytest.approx(
        [0.6, -1.6, 0.0, 0.0, 0.35, -1.5, 0.0])


def test_a_tracking_fault_holds_the_first_joint_a_fifth_of_a_radian_off() -> None:
    robot = load_robot('planar_3r')
    simulator = Simulator(robot, Truth.ideal(3))
    place = np.array([0.3, -0.2, 0.1])
    simulator.place(place)
    simulator.fault = 'tracking_error'
    assert simulator.advance(1).time == 0.0 and simulator.time == CONTROL_PERIOD
    simulator.advance(499)
    assert simulator.time == pytest.approx(0.5)
    position, velocity = simulator.view()[1]
    np.testing.assert_allclose(position - place, [0.2, 0.0, 0.0], rtol=0.0, atol=1e-4)
    np.testing.assert_allclose(velocity, np.zeros(3), rtol=0.0, atol=1e-4)
    assert simulator.view()[0].index == 0
    for wrong, shown in (([0.1, 0.2], r'\[0.1, 0.2\]'),
                         ([0.1, np.nan, 0.3], r'\[0.1, nan, 0.3\]')):
        with pytest.raises(UsageError, match=f'planar_3r: start position must have 3 finite '
                                             f'values, is {shown}'):
            simulator.place(np.array(wrong))


def test_readings_repeat_with_the_seed() -> None:
    robot = load_robot('planar_3r')
    truth = replace(Truth.ideal(3), noise=Noise(position=1e-3))
    plain, first, other = (Simulator(robot, truth, **seed).advance(1).position
                           for seed in ({}, {'seed': 0}, {'seed': 1}))
    np.testing.assert_array_equal(plain, first)
    assert (plain != other).all()
