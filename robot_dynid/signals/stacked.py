"""Samples of robots with elastic joints: motors beside joints, an effort for every equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog, Samples


def require_channels(robot: RobotModel, log: RawLog, notes: Sequence[str] = ()) -> None:
    """Raise DataError where an elastic joint lacks a measurement, saying why (in ``notes``)."""
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
            reasons = [n for n in notes if f'{what} of {name}:' in n]
            reason = reasons[0] if reasons else f'{log.source}: there are no {what} of {name}'
            raise DataError(f'{reason}; {name} is elastic, so its deflection takes two encoders:'
                            f' {"correct that" if reasons else how}, or take the joint off '
                            'elastic_joints')


def stacked(
    robot: RobotModel, samples: Samples, motor_acceleration: FloatArray | None,
    torque: FloatArray | None,
) -> Samples:
    """Return samples with the coordinates and equations of an elastic robot.

    ``motor_acceleration`` (N, n) like the motor channels; ``torque`` (2, N, n) [N m] behind the
    gears, filtered and raw, where there are sensors.
    """
    drive = robot.drive
    if not drive.elastic:
        return samples
    motors, sensors = list(drive.elastic), list(drive.torque_sensors)
    position, velocity, acceleration = (
        np.hstack([joint, motor[:, motors]]) for joint, motor in (
            (samples.position, _known(samples.motor_position)),
            (samples.velocity, _known(samples.motor_velocity)),
            (samples.acceleration, _known(motor_acceleration))))
    efforts: list[FloatArray | None] = []
    for i, effort in enumerate((samples.effort, samples.measured)):
        efforts.append(None if effort is None else _equations(
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


def _equations(robot: RobotModel, effort: FloatArray, torque: FloatArray | None) -> FloatArray:
    """Return the measured effort (N, rows) [N m] of every equation."""
    motors, sensors = list(robot.drive.elastic), list(robot.drive.torque_sensors)
    joints, turning = effort.copy(), effort.copy()
    gears = effort[:, :0]
    if torque is not None:
        joints[:, sensors] = gears = torque[:, sensors]
        turning[:, sensors] -= gears
    return np.hstack([joints, turning[:, motors], gears])


def _known(values: FloatArray | None) -> FloatArray:
    assert values is not None, 'checked by require_channels'
    return values
