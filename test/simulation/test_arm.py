"""simulation/arm.py: the torques of its control, its sensors and its recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import Sines
from tolerances import DRIVE_STATICS

from robot_dynid import load_robot
from robot_dynid.dynamics.rigid_body import gravity_effort, inverse_dynamics
from robot_dynid.errors import UsageError
from robot_dynid.simulation.arm import (
    CONTROL_PERIOD,
    Arm,
    GravityPD,
    Sensors,
    Setpoint,
    TorqueStep,
    effort_limit,
    measured,
    record,
)
from robot_dynid.simulation.truth import Noise, Truth, load_truth

ROBOT = load_robot('elastic_2r')
SMOOTH = replace(load_truth(ROBOT), coulomb=np.zeros(2), stribeck=None, stribeck_speed=None)
STIFFNESS, DAMPING = np.array([15000.0, 5000.0]), np.array([400.0, 130.0])
CONTROL = GravityPD(STIFFNESS, DAMPING)


def test_arm_comes_to_rest_where_gravity_and_stiffness_balance() -> None:
    """Gravity of the setpoint, not of the links, is compensated: the difference bends the loop."""
    arm, wanted, still = Arm(ROBOT, SMOOTH, CONTROL), np.array([0.4, -0.9]), np.zeros(2)
    arm.place(np.zeros(2))
    for _ in range(round(3.0 / CONTROL_PERIOD)):
        arm.control(Setpoint(wanted, still, still))
        arm.advance()
    assert np.abs(arm.motor_velocity).max() < 1e-6
    weight = gravity_effort(ROBOT, arm.position[None])[0]
    compensated = gravity_effort(ROBOT, wanted[None])[0]
    sag = arm.motor_position - arm.position
    np.testing.assert_allclose(sag, weight / [2.6e4, 1.6e4], rtol=0.0, atol=DRIVE_STATICS)
    np.testing.assert_allclose(STIFFNESS * (wanted - arm.motor_position), weight - compensated,
                               rtol=0.0, atol=1e-3)
    assert np.abs(wanted - arm.motor_position).max() > 1e-6


def test_recorded_effort_of_arm_follows_from_its_gains() -> None:
    motion = Sines(ROBOT, 4.0)
    log = record(Arm(ROBOT, load_truth(ROBOT), CONTROL), motion, 1000.0)
    wanted = motion.sample(log.time)
    assert log.motor_position is not None and log.motor_velocity is not None
    error = wanted.position - log.motor_position
    torque = (STIFFNESS * error + DAMPING * (wanted.velocity - log.motor_velocity)
              + gravity_effort(ROBOT, wanted.position))
    # effort is the mean of the torques of this period and of the one before
    np.testing.assert_allclose(log.effort[1:], 0.5 * (torque[1:] + torque[:-1]),
                               rtol=0.0, atol=1e-6)
    assert 1e-4 < np.abs(error).max() < 0.02
    assert np.degrees(np.abs(log.motor_position - log.position).max(axis=0)) == pytest.approx(
        [0.4, 0.15], abs=0.2)


def test_gains_that_cannot_be_are_named() -> None:
    with pytest.raises(UsageError, match=r'PD control: damping must be positive, is \[0.0\]'):
        GravityPD([1.0], [0.0])
    with pytest.raises(UsageError, match='PD control of 1 motors, elastic_2r has 2 joints'):
        Arm(ROBOT, SMOOTH, GravityPD([1.0], [1.0]))


def test_limits_of_currents_are_those_of_torques_over_the_gains() -> None:
    limits = replace(ROBOT.limits, effort=np.array([60.0, np.inf]))
    robot = replace(ROBOT, limits=limits)
    np.testing.assert_array_equal(effort_limit(robot), [60.0, 100.0])
    drive = replace(robot.drive, kind='current', gains=np.array([-4.0, 8.0]))
    np.testing.assert_array_equal(effort_limit(replace(robot, drive=drive)), [15.0, 12.5])


def test_a_driver_that_takes_the_weight_off_reports_the_rest() -> None:
    rigid = load_robot('planar_3r')
    free = replace(rigid, drive=replace(rigid.drive, kind='gravity_compensated_torque'))
    pose, still = np.array([0.4, -0.9, 0.9]), np.zeros(3)
    whole, rest = (Arm(robot, load_truth(rigid)) for robot in (rigid, free))
    for arm in (whole, rest):
        arm.place(pose)
        arm.control(Setpoint(pose + 0.01, still, still))
    weight = gravity_effort(rigid, pose[None])[0]
    np.testing.assert_allclose(whole.effort() - rest.effort(), weight, rtol=1e-9, atol=1e-9)
    assert np.abs(weight).min() > 0.5


PLANAR = load_robot('planar_3r')
POSE, STILL = np.array([0.4, -0.9, 0.7]), np.zeros(3)


@pytest.mark.parametrize(('offset', 'speed', 'error', 'rate'), [
    ((0.02, -0.03, 0.01), (0.3, -0.2, 0.1), (0.02, -0.03, 0.01), (0.3, -0.2, 0.1)),
    # errors saturate at half a radian, speeds at twice the limit, 10 rad/s where there is none
    ((0.6, -0.51, 0.49), (2.3, -19.0, 30.0), (0.5, -0.5, 0.49), (2.2, -19.0, 20.0)),
    ((-0.6, 0.51, -0.49), (-2.3, 21.0, -30.0), (-0.5, 0.5, -0.49), (-2.2, 20.0, -20.0))])
def test_computed_torque_is_critically_damped_at_75_radians_per_second(
    offset: tuple[float, ...], speed: tuple[float, ...], error: tuple[float, ...],
    rate: tuple[float, ...]
) -> None:
    limits = replace(PLANAR.limits, velocity=np.array([1.1, np.nan, np.inf]),
                     effort=np.array([np.inf, np.nan, np.inf]))
    push = np.array([0.7, -0.4, 1.3])
    wanted = push + 75.0**2 * np.array(error) + 2.0 * 75.0 * np.array(rate)
    weight = gravity_effort(PLANAR, POSE[None])[0]
    torque = inverse_dynamics(PLANAR, POSE[None], STILL[None], wanted[None])[0]
    for bound in (np.inf, 0.5 * np.abs(torque).max()):
        arm = Arm(replace(PLANAR, limits=replace(limits, effort=np.full(3, bound))))
        arm.place(POSE)
        np.testing.assert_allclose(arm.effort(), weight, rtol=1e-9)
        arm.control(Setpoint(POSE + offset, np.array(speed), push))
        np.testing.assert_allclose(
            arm.effort(), 0.5 * (weight + np.clip(torque, -bound, bound)), rtol=1e-9)
        arm.control(Setpoint(POSE + offset, np.array(speed), push))
        np.testing.assert_allclose(arm.effort(), np.clip(torque, -bound, bound), rtol=1e-9)


def test_motors_of_elastic_joints_have_a_loop_of_three_rotor_inertias() -> None:
    limits = replace(ROBOT.limits, effort=np.full(2, np.inf))
    arm, pose = Arm(replace(ROBOT, limits=limits), SMOOTH), np.array([0.3, -0.4])
    arm.place(pose)
    push, offset, speed = np.array([0.7, -0.4]), np.array([0.01, -0.03]), np.array([0.2, 0.3])
    for _ in range(2):
        arm.control(Setpoint(pose + offset, speed, push))
    rotor = np.array([1.1, 0.35])
    correction = 75.0**2 * offset + 150.0 * speed
    expected = inverse_dynamics(ROBOT, pose[None], 0.0 * pose[None], push[None])[0] + rotor * (
        push + 3.0 * correction)
    np.testing.assert_allclose(arm.effort(), expected, rtol=1e-9)


def test_currents_are_torques_over_the_gains() -> None:
    gains = np.array([2.0, -3.0, 4.0])
    arm = Arm(replace(PLANAR, drive=replace(PLANAR.drive, kind='current', gains=gains)))
    arm.place(POSE)
    np.testing.assert_allclose(arm.effort(), gravity_effort(PLANAR, POSE[None])[0] / gains)


def test_a_recording_has_the_rows_of_its_rate_and_the_pushes_of_their_time() -> None:
    motion = Sines(PLANAR, 0.5)
    arm = Arm(PLANAR)
    log = record(arm, motion)
    np.testing.assert_allclose(log.time, np.arange(251) / 500.0)
    assert log.motor_position is log.motor_velocity is None and not arm.plant.external.any()
    assert log.velocity is not None and log.source == 'simulated planar_3r'
    start = motion.sample(np.zeros(1))
    np.testing.assert_allclose(log.position[0], start.position[0], rtol=1e-12)
    for rate, step, count in ((300.0, 3e-3, 167), (1000.0, 1e-3, 501), (5000.0, 1e-3, 501)):
        time = record(arm, motion, rate).time
        np.testing.assert_allclose(time, np.arange(count) * step)
    record(arm, motion, 100.0, (
        TorqueStep(0, 0.25, 0.25, 5.0), TorqueStep(1, 0.1, 0.5, 3.0),
        TorqueStep(1, 0.2, 9.0, -0.7), TorqueStep(2, 0.5, 0.1, -1.5),
        TorqueStep(2, 0.501, 0.1, 8.0)))
    np.testing.assert_allclose(arm.plant.external, [0.0, 2.3, -1.5])
    with pytest.raises(UsageError) as caught:
        record(arm, Sines(ROBOT, 0.5))
    assert str(caught.value) == ('the trajectory moves joint_1, joint_2, the robot has joint_1, '
                                 'joint_2, joint_3')


def test_a_push_moves_the_arm_its_way() -> None:
    """A weightless arm held by its drives gives by torque over stiffness."""
    floating = PLANAR.with_gravity(np.zeros(3))
    log = record(Arm(floating, Truth.ideal(3)), Sines(floating, 0.3), 1000.0)
    pushed = record(Arm(floating, Truth.ideal(3)), Sines(floating, 0.3), 1000.0,
                    [TorqueStep(2, 0.1, 0.1, 4.0)])
    moved = pushed.position[:, 2] - log.position[:, 2]
    assert np.abs(moved[:100]).max() < 1e-12 < moved[120] and moved[199] > 1e-5


def test_sensors_have_steps_of_their_own_for_motors_and_noise_of_their_unit() -> None:
    coarse = Sensors(PLANAR, Noise(position_step=0.1, motor_position_step=0.01),
                     np.random.default_rng(4))
    true = np.array([[0.234, -1.277, 3.159]])
    np.testing.assert_allclose(coarse.position(true), [[0.2, -1.3, 3.2]])
    np.testing.assert_allclose(coarse.position(true, motors=True), [[0.23, -1.28, 3.16]])
    assert coarse.velocity(true) is true and coarse.effort(true) is true
    unit = np.random.default_rng(4).standard_normal((1, 3))
    limit = effort_limit(PLANAR)
    for noise, read, expected in (
            (Noise(position=0.02), 'position', 0.02), (Noise(velocity=0.03), 'velocity', 0.03),
            (Noise(effort=0.005), 'effort', 0.005 * limit)):
        found = getattr(Sensors(PLANAR, noise, np.random.default_rng(4)), read)(true)
        np.testing.assert_allclose(found, true + expected * unit, rtol=1e-12)


def test_measured_motors_have_the_resolution_of_theirs() -> None:
    log = record(Arm(ROBOT, SMOOTH), Sines(ROBOT, 0.2))
    spoiled = measured(log, ROBOT, Noise(position_step=1e-2, motor_position_step=1e-3),
                       np.random.default_rng(0))
    assert log.motor_position is not None
    for found, true, step in ((spoiled.position, log.position, 1e-2),
                              (spoiled.motor_position, log.motor_position, 1e-3)):
        np.testing.assert_allclose(found, np.round(true / step) * step, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(spoiled.motor_velocity, log.motor_velocity)
    assert spoiled.effort is log.effort and spoiled.time is log.time
