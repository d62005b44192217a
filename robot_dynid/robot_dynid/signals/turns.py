"""Unwrapping of positions: continuous joints that a driver reports within +-pi, or 0 to 2 pi.

No joint makes a whole turn between two messages. If its position steps by one, the driver wrapped:
the turn is added to all that follows, so that the position is continuous.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, RawLog

TURN = 2.0 * np.pi  # rad
#: speed [rad/s]: any joint may reach its limit or the first, no joint of an arm exceeds the second
USUAL_FASTEST, FASTEST_JOINT = 10.0, 30.0
#: difference [rad] between a step and a whole turn in addition to the motion: noise, jitter of
#: stamps
SLACK = 0.1
#: channels reported per joint that wrap
TURNING = ('position', 'reference_position')


class Turns:
    """Whole turns of every joint between its driver's count and its position, state by state."""

    def __init__(self, robot: RobotModel) -> None:
        self._speed = fastest(robot)
        self._last: tuple[float, FloatArray] | None = None
        self._off = np.zeros(robot.n)

    def __call__(self, time: float, position: FloatArray) -> FloatArray:
        """Return the continuous ``position`` (n,) of a state at ``time`` [s]."""
        last, self._last = self._last, (time, position)
        if last is not None:
            step = position - last[1]
            if np.abs(step).max() > 0.5 * TURN:
                self._off -= wrapped_turns(step, time - last[0], self._speed)
        return position + self._off


def within_half_turn(robot: RobotModel, angle: FloatArray) -> FloatArray:
    """Return angles (..., n) [rad] without whole turns; prismatic joints are unchanged."""
    return np.where(robot.types == PRISMATIC, angle, angle - TURN * np.rint(angle / TURN))


def fastest(robot: RobotModel) -> FloatArray:
    """Return the speeds (n,) [rad/s] that no joint exceeds; infinite for prismatic ones."""
    speed = np.fmin(np.fmax(robot.limits.velocity, USUAL_FASTEST), FASTEST_JOINT)
    return np.where(robot.types == PRISMATIC, np.inf, speed)


def wrapped_turns(
    step: FloatArray, seconds: FloatArray | float, speed: FloatArray | float,
    within: bool = False, filled: NDArray[np.bool_] | bool = False,
) -> FloatArray:
    """Return the part [rad] of position steps due to wrapping: a turn, or zero.

    ``step`` (N,) within ``seconds`` (N,), of a joint not faster than ``speed``, or FASTEST_JOINT
    if all its positions are ``within`` a turn, as for a driver that wraps. Zero if the joint may
    have moved by itself, if stamps go back, or after a pause in which it may have gone half a
    turn. A pause is ``filled`` (N,) if only numbers are missing: these are interpolated along the
    shorter path.
    """
    turn = np.copysign(TURN, step)
    off = np.abs(step - turn) - SLACK
    reach = speed * seconds
    over = (off <= np.where(within, FASTEST_JOINT * seconds, reach)) & (reach > 0.0)
    short = filled | (reach < 0.5 * TURN)
    return np.where(over & short & (np.abs(step) > 0.5 * TURN), turn, 0.0)


def unroll(robot: RobotModel, log: RawLog) -> tuple[RawLog, list[str]]:
    """Return a recording with ordered stamps with its positions unwrapped, and notes."""
    changed: dict[str, Any] = {}
    notes = []
    for name in TURNING:
        values = getattr(log, name)
        for j in () if values is None else np.flatnonzero(robot.types != PRISMATIC):
            rows = np.flatnonzero(np.isfinite(values[:, j]))
            step = np.diff(values[rows, j])
            wide = np.flatnonzero(np.abs(step) > 0.5 * TURN)
            if not len(wide):
                continue
            turns = wrapped_turns(
                step[wide], np.diff(log.time[rows])[wide], fastest(robot)[j],
                bool(np.ptp(values[rows, j]) <= TURN + SLACK), np.diff(rows)[wide] > 1)
            seams = wide[turns != 0.0]
            if 2 * len(seams) <= len(wide):  # it steps as far without wrapping: another unit
                continue
            off = np.zeros(len(log.time))
            off[rows[seams + 1]] = -turns[turns != 0.0]
            changed.setdefault(name, values.copy())[:, j] += np.cumsum(off)
            notes.append(f'{log.source}: {name}.{log.joints[j]} turns over {len(seams)} time(s), '
                         f'first at t = {log.time[rows[seams[0] + 1]]:.6g} s; whole turns added')
    return (replace(log, **changed) if changed else log), notes
