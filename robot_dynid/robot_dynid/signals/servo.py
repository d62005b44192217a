"""Effort of position servos: the error of position that their output is proportional to.

The torque is ``gain e`` with ``e = clip(c(t - delay) - q - Td dq/dt, -E, E)``: c is the command,
held until the next one, Td the derivative time and E the error at which the output reaches its
limit. In MuJoCo's terms kp = gain, kv = gain Td, forcerange = gain E.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.document import percent
from robot_dynid.robot.model import POSITION_ERROR, Drive, RobotModel
from robot_dynid.types import FloatArray, RawLog, interpolated

#: intervals per row over which the error is limited, then averaged
SUBSTEPS = 8


def position_error(
    robot: RobotModel, log: RawLog, delay: float = 0.0
) -> tuple[RawLog, list[str]]:
    """Return a recording of position servos with their effort, and notes on saturated samples.

    Commands act ``delay`` [s] after their stamps. Recordings of other drives are returned as they
    are; without commands there is no effort. Rows are in the order of time.
    """
    if robot.drive.kind != POSITION_ERROR:
        return log, []
    if log.reference_position is None:
        return replace(log, effort=None, effort_messages=None), []
    effort, limited = np.full((2, *log.position.shape), np.nan)
    for j in range(robot.n):
        effort[:, j], limited[:, j] = _limited_error(robot.drive, log, j, delay)
    shares = [(joint, float(np.nanmean(column))) for joint, column in zip(
        log.joints, limited.T, strict=True) if np.nansum(column) > 0.0]
    notes = [f'{log.source}: servos at the limit of their output, which counts as their effort '
             f'there: {", ".join(f"{joint} {percent(share)} %" for joint, share in shares)} of '
             f'{len(log.time)} samples'] if shares else []
    return replace(log, effort=effort, effort_messages=None), notes


def command_at_servos(
    robot: RobotModel, log: RawLog, command: FloatArray | None, lag: float
) -> FloatArray | None:
    """Return a filtered ``command`` (T, n) [rad] of uniform rows as it acts on position servos.

    It is late by ``lag`` [s] and, because a command holds until the next one, by half a step. That
    of other drives is returned as it is.
    """
    if command is None or robot.drive.kind != POSITION_ERROR:
        return command
    time = log.time - lag - 0.5 * float(log.time[1] - log.time[0])
    return interpolated(log.time, command, np.clip(time, log.time[0], log.time[-1]))


def delayed(
    robot: RobotModel, log: RawLog, stamps: FloatArray, effort: FloatArray, lag: float
) -> tuple[RawLog, FloatArray, float]:
    """Return a recording and its ``effort`` (M, n) at ``stamps`` (M,) [s] behind a lag.

    Also return the lag that remains: none of position servos, whose effort is computed again,
    because only their commands are late; for other drives nothing changes.
    """
    if robot.drive.kind != POSITION_ERROR or lag == 0.0:
        return log, effort, lag
    late, early = (position_error(robot, log, one)[0].effort for one in (lag, 0.0))
    assert log.effort is not None and late is not None and early is not None
    change = late - early
    return (replace(log, effort=log.effort + change),
            effort + interpolated(log.time, change, stamps, degree=1), 0.0)


def _limited_error(
    drive: Drive, log: RawLog, joint: int, delay: float
) -> tuple[FloatArray, FloatArray]:
    """Return the mean error (T,) [rad] of a joint around each row, and the share of time at limit.

    Means extend half a step to either side, in SUBSTEPS with the exact mean of the held command;
    the position is linear between rows. NaN in rows without position, and before the first
    command.
    """
    assert drive.error_limit is not None and log.reference_position is not None
    position, command = log.position[:, joint], log.reference_position[:, joint]
    given, measured = np.isfinite(command), np.isfinite(position)
    result = np.full(len(log.time), np.nan)
    if measured.sum() < 2 or not given.any():
        return result, result
    time = log.time - log.time[0]
    step = float(np.median(np.diff(time)))
    half = 0.5 * np.minimum(np.diff(time), step)
    left, right = (np.concatenate(ends) for ends in (([0.5 * step], half), (half, [0.5 * step])))
    parts = np.linspace(0.0, 1.0, SUBSTEPS + 1)
    edges = (time - left)[:, None] + (left + right)[:, None] * parts
    # the command integrated over time: linear between rows, so means of it are exact
    held, begins = command[given], time[given]
    reach = abs(delay) + 2.0 * step
    knots = np.concatenate([begins[:1] - reach - step, begins, [time[-1] + reach + step]])
    travel = np.concatenate([[0.0], np.cumsum(np.concatenate([held[:1], held]) * np.diff(knots))])
    means = np.diff(np.interp(edges - delay, knots, travel), axis=1) / np.diff(edges, axis=1)
    rows, q = time[measured], position[measured]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    piece = np.clip(np.searchsorted(rows, middle) - 1, 0, len(rows) - 2)
    speed = (np.diff(q) / np.diff(rows))[piece]
    damped = 0.0 if drive.derivative_time is None else drive.derivative_time[joint]
    error = means - (q[piece] + speed * (middle - rows[piece])) - damped * speed
    limit = drive.error_limit[joint]
    result[measured] = np.clip(error, -limit, limit).mean(axis=1)[measured]
    result[time < begins[0]] = np.nan
    share = np.where(np.isfinite(result), (np.abs(error) > limit).mean(axis=1), np.nan)
    return result, share
