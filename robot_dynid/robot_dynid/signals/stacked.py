"""Samples of robots with elastic joints: motors after joints, an effort for every equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog, Samples


def require_channels(robot: RobotModel, log: RawLog, notes: Sequence[str] = ()) -> None:
    """Raise DataError if an elastic joint lacks a measurement, with the reason from ``notes``."""
    drive = robot.drive
    for joints, values, what, how in (
        (drive.elastic, log.motor_position, 'motor states',
         'record the topic motor_states (columns motor_position.<joint>)'),
        (drive.torque_sensors, log.joint_torque, 'joint torque',
         'record the columns joint_torque.<joint>'),
    ):
        for j in joints:
            if values is not None and np.isfinite(values[:, j]).all():
                continue
            name = robot.joints[j]
            reasons = [n for n in notes if name in n.partition(f'{what} of ')[2].partition(
                ': ')[0].split(', ')]
            reason = reasons[0] if reasons else f'{log.source}: there are no {what} of {name}'
            raise DataError(f'{reason}; {name} is elastic, so its deflection needs two encoders:'
                            f' {"correct that" if reasons else how}, or remove the joint from '
                            'elastic_joints')


def stack_coordinates(
    robot: RobotModel, samples: Samples, motor_acceleration: FloatArray | None,
    torque: FloatArray | None,
) -> Samples:
    """Return samples with the coordinates and equations of an elastic robot.

    ``motor_acceleration`` (N, n) like the motor channels; ``torque`` (2, N, n) [N m] behind the
    gears, filtered and raw, if there are sensors.
    """
    drive = robot.drive
    if not drive.elastic:
        return samples
    motors, sensors = list(drive.elastic), list(drive.torque_sensors)
    position, velocity, acceleration = (
        np.hstack([joint, motor[:, motors]]) for joint, motor in (
            (samples.position, _require(samples.motor_position)),
            (samples.velocity, _require(samples.motor_velocity)),
            (samples.acceleration, _require(motor_acceleration))))
    efforts: list[FloatArray | None] = []
    for i, effort in enumerate((samples.effort, samples.measured)):
        efforts.append(None if effort is None else efforts_of_equations(
            robot, effort, None if torque is None else torque[i]))
    rows, coordinates = [*robot.row_joints], [*range(robot.n), *motors]
    warm, reference = samples.temperature, samples.reference_position
    noise = samples.noise
    return replace(
        samples, position=position, velocity=velocity, acceleration=acceleration,
        effort=efforts[0], measured=efforts[1],
        noise=None if noise is None or sensors else tuple(noise[j] for j in rows),
        temperature=None if warm is None else warm[:, coordinates],
        reference_position=None if reference is None else reference[:, coordinates],
        motor_position=None, motor_velocity=None)


def efforts_of_equations(
    robot: RobotModel, effort: FloatArray, torque: FloatArray | None
) -> FloatArray:
    """Return the measured effort (N, rows) [N m] of every equation.

    ``effort`` (N, n) [N m] of the drives; ``torque`` (N, n) [N m] behind the gears, if there are
    sensors.
    """
    motors, sensors = list(robot.drive.elastic), list(robot.drive.torque_sensors)
    joints, turning = effort.copy(), effort.copy()
    gears = effort[:, :0]
    if torque is not None:
        joints[:, sensors] = gears = torque[:, sensors]
        turning[:, sensors] -= gears
    return np.hstack([joints, turning[:, motors], gears])


def drive_effort(robot: RobotModel, samples: Samples) -> FloatArray:
    """Return the filtered effort (N, n) [N m] of the drives from that of every equation.

    If the torque behind a gear is measured, the equation of the motor contains the rest of it; the
    equations of joints also contain known external torque. The samples are `Samples.gridded`.
    """
    assert samples.effort is not None
    drives = samples.effort[:, :robot.n].copy()
    for j in robot.drive.torque_sensors:
        drives[:, j] += samples.effort[:, robot.n + robot.drive.elastic.index(j)]
    return drives if samples.external is None else drives - samples.external


def per_joint(robot: RobotModel, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the columns of joints and of motors, (N, n) each, of ``values`` (N, c).

    The motor of a rigid joint moves with it.
    """
    joints = np.ascontiguousarray(values[:, :robot.n])
    motors = joints.copy()
    motors[:, list(robot.drive.elastic)] = values[:, robot.n:]
    return joints, motors


def _require(values: FloatArray | None) -> FloatArray:
    assert values is not None, 'checked by require_channels'
    return values
