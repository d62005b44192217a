"""Plausibility of measured values: finite numbers far beyond every limit are no measurements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import ordered
from robot_dynid.signals.turns import USUAL_FASTEST, unrolled
from robot_dynid.types import FloatArray, RawLog, channels

#: a value is damaged beyond so many times what the robot can do; wrong units (degrees) stay below
DAMAGED_BEYOND = 100.0
#: what any joint can do, whatever its limits say, beside USUAL_FASTEST: rad (m), N m (N, A), deg C
LARGEST_POSITION, EFFORT, TEMPERATURE = 2.0 * np.pi, 100.0, 100.0
#: how much further motors may turn than joints where no gear ratio is known
GEAR_RATIO = 1e3
#: the typical size of a channel is believed up to here, as that of unknown units
UNITS = 1e9


def plausible(robot: RobotModel, log: RawLog) -> tuple[RawLog, list[str]]:
    """Return rows in the order of time, NaN in place of values no robot can have, and what was so.

    Positions go on where their driver counts anew after a turn, see `turns`.
    A value is dropped when it is more than DAMAGED_BEYOND times as large as both what the robot
    can do (`possible`) and the median size of its own column. So neither wrong units nor limits
    that are placeholders cost a sample, and a hundred times the stated limits never was one.
    """
    log, notes = ordered(log)
    if not len(log.time):
        return log, notes
    limits = possible(robot, float(log.time[-1] - log.time[0]))
    kept: dict[str, Any] = {}
    for name, values in channels(log).items():
        sized, found = _sized(log, name, log.time, values, limits[name])
        if found:
            kept[name] = sized
            notes += found
    if log.effort_messages is not None:
        time, values = log.effort_messages
        kept['effort_messages'] = time, _sized(log, 'effort', time, values, limits['effort'])[0]
    log, turned = unrolled(robot, replace(log, **kept) if kept else log)
    return log, [*notes, *turned]


def _sized(
    log: RawLog, name: str, time: FloatArray, values: FloatArray, limit: FloatArray
) -> tuple[FloatArray, list[str]]:
    """Return a channel (N, n), NaN in place of what is too large, and what was so."""
    bound = DAMAGED_BEYOND * np.fmax(limit, _typical(values, DAMAGED_BEYOND * limit))
    bad = np.isfinite(values) & (np.abs(values) > bound)
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

    From the robot's limits, at least LARGEST_POSITION, USUAL_FASTEST, EFFORT, TEMPERATURE; joints
    without end turn as far as their speed allows; motors by their gear ratio more.
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
    """Return the median size (n,) of columns (N, n) that hold finite values above ``suspicious``.

    Zero for the others, at most UNITS.
    """
    size = np.abs(values)
    typical = np.zeros(values.shape[1])
    for j in np.flatnonzero(np.any(np.isfinite(size) & (size > suspicious), axis=0)):
        typical[j] = np.median(np.minimum(size[np.isfinite(size[:, j]), j], UNITS))
    return typical
