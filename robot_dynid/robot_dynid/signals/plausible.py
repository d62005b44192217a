"""Plausibility of measured values: drops numbers far beyond every limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import order_rows
from robot_dynid.signals.servo import position_error
from robot_dynid.signals.turns import USUAL_FASTEST, unroll
from robot_dynid.types import FloatArray, RawLog, channels

#: a value is damaged beyond this many times what the robot can do; wrong units (degrees) stay
#: below
DAMAGED_BEYOND = 100.0
#: what any joint can do, whatever its limits, in addition to USUAL_FASTEST: rad (m), N m (N, A),
#: deg C
LARGEST_POSITION, EFFORT, TEMPERATURE = 2.0 * np.pi, 100.0, 100.0
#: ratio of motor to joint travel if no gear ratio is known
GEAR_RATIO = 1e3
#: largest typical size of a channel, as that of unknown units
UNITS = 1e9


def drop_implausible(robot: RobotModel, log: RawLog) -> tuple[RawLog, list[str]]:
    """Return rows in order of time, with NaN for impossible values, and notes.

    The effort of position servos is computed from their commands, see `position_error`.

    Positions are unrolled where their driver wraps, see `turns`. A value is dropped if it is more
    than DAMAGED_BEYOND times as large as both what the robot can do (`possible`) and the median
    size of its column. So neither wrong units nor placeholder limits cost a sample.
    """
    log, notes = order_rows(log)
    if not len(log.time):
        return log, notes
    limits = possible(robot, float(log.time[-1] - log.time[0]))
    cleaned: dict[str, Any] = {}
    for name, values in channels(log).items():
        bounded, more = _drop_large(log, name, log.time, values, limits[name])
        if more:
            cleaned[name] = bounded
            notes += more
    if log.effort_messages is not None:
        time, values = log.effort_messages
        cleaned['effort_messages'] = time, _drop_large(
            log, 'effort', time, values, limits['effort'])[0]
    log, turned = unroll(robot, replace(log, **cleaned) if cleaned else log)
    log, limited = position_error(robot, log)
    return log, [*notes, *turned, *limited]


def _drop_large(
    log: RawLog, name: str, time: FloatArray, values: FloatArray, limit: FloatArray
) -> tuple[FloatArray, list[str]]:
    """Return a channel (N, n) with NaN in place of excessive values, and notes."""
    bound = DAMAGED_BEYOND * np.fmax(limit, _typical(values, DAMAGED_BEYOND * limit))
    bad = np.abs(values) > bound
    if not bad.any():
        return values, []
    notes = []
    for j in np.flatnonzero(bad.any(axis=0)):
        first = int(np.argmax(bad[:, j]))
        notes.append(
            f'{log.source}: {name}.{log.joints[j]}: {int(bad[:, j].sum())} values that no '
            f'robot can have (first {values[first, j]:.3g} at t = {time[first]:.6g} s; '
            f'beyond {bound[j]:.3g}) dropped')
    return np.where(bad, np.nan, values), notes


def possible(robot: RobotModel, duration: float) -> dict[str, FloatArray]:
    """Return by channel the largest size (n,) that joints can have within ``duration`` [s].

    From the robot's limits, at least LARGEST_POSITION, USUAL_FASTEST, EFFORT, TEMPERATURE;
    continuous joints turn as far as their speed allows; motors by their gear ratio more.
    """
    limits, drive = robot.limits, robot.drive
    speed = np.fmax(limits.velocity, USUAL_FASTEST)
    ends = np.fmax(np.abs(limits.lower), np.abs(limits.upper))
    with np.errstate(over='ignore'):  # stamps may be damaged
        reach = np.fmax(np.where(np.isfinite(ends), ends, speed * duration), LARGEST_POSITION)
    gears = np.full(robot.n, GEAR_RATIO) if drive.gear_ratios is None else \
        np.fmax(np.abs(drive.gear_ratios), 1.0)
    torque = np.fmax(limits.effort, EFFORT)
    effort = np.fmax(limits.effort / np.abs(robot.torque_factors), EFFORT)
    return {'position': reach, 'velocity': speed, 'effort': effort, 'joint_torque': torque,
            'external_torque': torque, 'motor_position': reach * gears,
            'motor_velocity': speed * gears,
            'temperature': np.full(robot.n, TEMPERATURE), 'reference_position': reach}


def _typical(values: FloatArray, suspicious: FloatArray) -> FloatArray:
    """Return the median size (n,) of columns (N, n) with finite values above ``suspicious``.

    Zero for the others, at most UNITS.
    """
    size = np.abs(values)
    typical = np.zeros(values.shape[1])
    for j in np.flatnonzero(np.any(np.isfinite(size) & (size > suspicious), axis=0)):
        typical[j] = np.median(np.minimum(size[np.isfinite(size[:, j]), j], UNITS))
    return typical
