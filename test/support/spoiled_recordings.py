"""Recordings with wrong units, signs, orders and clocks, each as a row of one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import RawLog

DEGREES = 180.0 / np.pi
GEAR_RATIO = 100.0


@dataclass(frozen=True)
class Row:
    """What was done to a recording, the kind of the finding, and a word its sentence must hold.

    ``severe`` is false where a warning does.
    """

    name: str
    spoil: Callable[[RobotModel, RawLog], tuple[RobotModel, RawLog]]
    kind: str
    word: str
    severe: bool = True
    needs_velocity: bool = False


def times(channel: str, factor: float, joint: int | None = None) -> Any:
    """Return what multiplies a channel, of one joint or of all, by a factor."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        values = getattr(log, channel)
        if values is None:
            return robot, log
        values = values.copy()
        values[:, slice(None) if joint is None else joint] *= factor
        return robot, replace(log, **{channel: values})
    return spoil


def together(*spoils: Any) -> Any:
    """Return what does several things."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        for one in spoils:
            robot, log = one(robot, log)
        return robot, log
    return spoil


def offset(joint: int, angle: float) -> Any:
    """Return what moves the zero of a joint."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        position = log.position.copy()
        position[:, joint] += angle
        return robot, replace(log, position=position)
    return spoil


def swapped(first: int, second: int, *channels: str) -> Any:
    """Return what swaps two joints in some channels."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        order = np.arange(robot.n)
        order[[first, second]] = second, first
        return robot, replace(log, **{name: getattr(log, name)[:, order] for name in channels
                                      if getattr(log, name) is not None})
    return spoil


def time_in(unit: float, start: float = 0.0) -> Any:
    """Return what writes time in a ``unit`` [s], beginning at ``start`` [s]."""
    return lambda robot, log: (robot, replace(log, time=(log.time + start) / unit))


def two_publishers(late: float) -> Any:
    """Return what mixes the second half into the first, ``late`` [steps] after its stamps."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        half = len(log.time) // 2
        mixed = {}
        for name in ('position', 'velocity', 'effort'):
            values = getattr(log, name)
            if values is not None:
                mixed[name] = np.stack([values[:half], values[half:2 * half]], axis=1).reshape(
                    2 * half, -1)
        time = np.repeat(log.time[:half], 2)
        time[1::2] += late * float(np.median(np.diff(log.time)))
        return robot, replace(log, time=time, **mixed)
    return spoil


def set_back(seconds: float | None) -> Any:
    """Return what sets the clock back in the middle; None: to zero, as a simulation is reset."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        half = len(log.time) // 2
        time = log.time - log.time[0]
        time[half:] -= time[half] if seconds is None else seconds
        return robot, replace(log, time=time)
    return spoil


def kind_of_effort(kind: str, with_gravity: bool) -> Any:
    """Return what states a kind of effort for torque with or without gravity."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        torque = log.effort * robot.torque_factors
        if not with_gravity:
            torque = torque - rigid_body.gravity_effort(robot, log.position)
        return (replace(robot, drive=replace(robot.drive, kind=kind, gains=None)),
                replace(log, effort=torque))
    return spoil


def currents(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
    """Declare currents as torque; drives of 12 N m/A where the robot states none."""
    factors = robot.torque_factors if robot.drive.kind == 'current' else 12.0
    robot, log = kind_of_effort('torque', True)(robot, log)
    return robot, replace(log, effort=log.effort / factors)


def milliamperes(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
    """Declare currents in mA as torque."""
    robot, log = currents(robot, log)
    return robot, replace(log, effort=1e3 * log.effort)


def table(robot: RobotModel, joint: int, other: int) -> list[Row]:
    """Return the rows; single joints are ``joint`` and ``other``, which gravity must load."""
    motors = together(times('position', GEAR_RATIO), times('velocity', GEAR_RATIO))
    everything = ('position', 'velocity', 'effort')
    long = robot.name != 'tx40'  # in nine seconds a payload explains another zero as well
    epoch = 1.7e9
    milli, kilo = ('mA', 'so that they are A') if robot.drive.kind == 'current' else (
        'mN m', 'kN m')
    return [
        Row('effort x1000', times('effort', 1e3), 'effort_scale', milli),
        Row('effort /1000', times('effort', 1e-3), 'effort_scale', kilo),
        Row('one effort x1000', times('effort', 1e3, joint), 'effort_scale', milli),
        Row('efforts negated', times('effort', -1.0), 'effort_sign', 'negated'),
        *(Row(f'effort {j + 1} negated', times('effort', -1.0, j), 'effort_sign', 'negated')
          for j in range(robot.n)),
        Row('currents as torque', currents, 'effort_scale', 'currents', severe=False),
        Row('currents in mA as torque', milliamperes, 'effort_scale', 'in mA'),
        Row('torque of the motors', times('effort', 1.0 / GEAR_RATIO), 'effort_scale', 'of the '),
        Row('gravity-compensated as torque', kind_of_effort('torque', False), 'gravity',
            'gravity_compensated_torque'),
        Row('torque as gravity-compensated', kind_of_effort('gravity_compensated_torque', True),
            'gravity', 'effort_kind: torque'),
        Row('velocity in deg/s', times('velocity', DEGREES), 'velocity', 'deg/s',
            needs_velocity=True),
        Row('velocity negated', times('velocity', -1.0), 'velocity', 'negated',
            needs_velocity=True),
        Row('one velocity negated', times('velocity', -1.0, other), 'velocity', 'negated',
            needs_velocity=True),
        Row('velocities swapped', swapped(joint, other, 'velocity'), 'velocity', 'swapped',
            needs_velocity=True),
        Row('positions in degrees', times('position', DEGREES), 'position_unit', 'degrees'),
        Row('positions and velocities in degrees', together(
            times('position', DEGREES), times('velocity', DEGREES)), 'position_unit', 'degrees'),
        Row('positions of the motors', times('position', GEAR_RATIO), 'position_unit', 'gear'),
        Row('motion of the motors', motors, 'position_unit', 'gear'),
        *(Row(f'zero {name} off', offset(joint, angle), 'position_offset', 'degrees off',
              severe=long)
          for name, angle in (('+pi/2', 0.5 * np.pi), ('-pi/2', -0.5 * np.pi), ('pi', np.pi))),
        Row('another zero off', offset(other, 0.5 * np.pi), 'position_offset', 'degrees off',
            severe=long),
        Row('efforts swapped', swapped(joint, other, 'effort'), 'joint_order',
            'efforts look swapped'),
        Row('joints swapped', swapped(joint, other, *everything), 'joint_order',
            'joints look swapped'),
        *(Row(f'time in {name}', time_in(unit), 'time_unit', f'look like {name}')
          for name, unit in (('ms', 1e-3), ('us', 1e-6), ('ns', 1e-9))),
        *(Row(f'time in {name} since 1970', time_in(unit, epoch), 'time_unit', f'like {name}')
          for name, unit in (('ms', 1e-3), ('us', 1e-6), ('ns', 1e-9))),
        *(Row(f'time in {name}, motion in degrees', together(
            times('position', DEGREES), times('velocity', DEGREES), time_in(unit)), 'time_unit',
            'like degrees') for name, unit in (('ms', 1e-3), ('ns', 1e-9))),
        Row('two publishers with equal stamps', two_publishers(0.0), 'clock', 'publishers'),
        Row('two publishers in turn', two_publishers(0.3), 'clock', 'publishers'),
        Row('simulation reset', set_back(None), 'clock', 'simulation is reset', severe=False),
        Row('clock set back', set_back(0.5), 'clock', 'clock was set back', severe=False),
    ]
