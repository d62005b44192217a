"""PD control of motors with compensation of gravity, on the arm with elastic joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import Sines
from tolerances import DRIVE_STATICS

from robot_dynid import load_robot
from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.errors import UsageError
from robot_dynid.simulation.arm import (
    CONTROL_PERIOD,
    Arm,
    GravityPD,
    Setpoint,
    effort_limit,
    record,
)
from robot_dynid.simulation.truth import load_truth

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
