"""Joint states as sensors show them, brought to torque, velocity and one instant.

Nothing looks ahead: a recording gives the same as its samples one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.signals import alignment
from robot_dynid.signals.causal import Delay
from robot_dynid.signals.plausible import BEYOND, plausible, possible
from robot_dynid.types import FloatArray, RawLog

#: a step longer than this [s] has no information on the time between its ends
LONGEST_STEP = 0.1
#: joints without end are taken to turn for a day [s] at most
LONGEST_RUN = 86_400.0


@dataclass(frozen=True, eq=False)
class MonitorInput:
    """Motion and effort of a recording: ``time`` (N,) s, the others (N, n), effort in N m.

    ``starts`` holds the first index of every contiguous segment, ``notes`` what was repaired.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    starts: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()

    def first(self, rows: int) -> MonitorInput:
        """Return the first ``rows`` samples."""
        part = slice(0, rows)
        return MonitorInput(
            self.time[part],
            self.position[part],
            self.velocity[part],
            self.effort[part],
            tuple(s for s in self.starts if s < rows),
            self.notes,
        )


def monitor_input(model: IdentifiedModel, log: RawLog) -> MonitorInput:
    """Return the measured motion and effort, unfiltered. Raises DataError without effort.

    Where no velocity was recorded, motion and effort are those in the middle of each step.
    """
    if log.effort is None:
        raise DataError(f'{log.source}: holds no effort; record JointState.effort')
    log, dropped = plausible(model.robot, log)
    log, filled = alignment.without_holes(log)
    assert log.effort is not None
    time, q, qd = log.time, log.position, log.velocity
    effort = log.effort * model.robot.torque_factors
    broken = np.concatenate([[True], np.diff(time) > LONGEST_STEP])
    if qd is None:
        inside = np.flatnonzero(~broken)
        before = inside - 1
        qd = (q[inside] - q[before]) / (time[inside] - time[before])[:, None]
        q, effort = 0.5 * (q[inside] + q[before]), 0.5 * (effort[inside] + effort[before])
        broken = broken[before]
        time = time[inside]
    starts = tuple(int(k) for k in np.flatnonzero(broken))
    motion_lag, effort_lag = lags(model)
    q, qd = (_delayed(time, values, motion_lag, starts) for values in (q, qd))
    return MonitorInput(time, q, qd, _delayed(time, effort, effort_lag, starts), starts,
                (*dropped, *filled))


def lags(model: IdentifiedModel) -> tuple[float, float]:
    """Return by how much motion and effort must be delayed [s] to belong together."""
    lag = model.preprocessing.effort_lag
    return max(lag, 0.0), max(-lag, 0.0)


def _delayed(
    time: FloatArray, values: FloatArray, seconds: float, starts: tuple[int, ...]
) -> FloatArray:
    if seconds <= 0.0:
        return values
    out = np.empty_like(values)
    for first, stop in zip(starts, (*starts[1:], len(time)), strict=True):
        rows = slice(first, stop)
        for j in range(values.shape[1]):
            out[rows, j] = np.interp(time[rows] - seconds, time[rows], values[rows, j])
    return out


class MonitorInputStream:
    """Input of the monitor from joint states that come one by one, see `monitor_input`.

    ``skipped`` counts states that were of no use, ``restarts`` how often a pause or a jump of
    the stamps made it begin anew; ``step`` [s] is that of late.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        self._factors = model.robot.torque_factors
        able = possible(model.robot, LONGEST_RUN)
        self._bound = BEYOND * np.stack([able[c] for c in ('position', 'velocity', 'effort')])
        motion_lag, effort_lag = lags(model)
        self._motion, self._effort = Delay(motion_lag), Delay(effort_lag)
        self._delays = motion_lag > 0.0 or effort_lag > 0.0
        self._last: tuple[float, FloatArray] | None = None
        self._fresh = True
        self.skipped = self.restarts = 0
        self.step = 0.0

    def __call__(
        self, time: float, q: FloatArray, qd: FloatArray | None, effort: FloatArray
    ) -> tuple[FloatArray, float] | None:
        """Take one joint state (n,); None where it is of no use.

        That is NaN, beyond what the robot can do, a repeated stamp, and the first.


        Returns position, velocity and effort in N m (3, n) of one instant, and the step [s] from
        the ones before: zero where there are none.
        """
        state = np.empty((3, len(q)))
        state[0], state[1], state[2] = q, 0.0 if qd is None else qd, effort
        if not ((np.abs(state) <= self._bound).all() and isfinite(time)):  # false for NaN, too
            self.skipped += 1
            return None
        last = self._last
        step = time - last[0] if last is not None else np.inf
        if -LONGEST_STEP < step <= 0.0:
            self.skipped += 1
            return None
        state[2] *= self._factors
        self._last = (time, state)
        if not 0.0 < step <= LONGEST_STEP:
            self._restart(last is not None)
            if qd is None:
                return None
        elif last is not None:
            self.step = step if self.step == 0.0 else self.step + 0.05 * (step - self.step)
            if qd is None:
                state = 0.5 * (state + last[1])
                state[1] = (q - last[1][0]) / step
        if self._delays:
            state = np.concatenate([self._motion(time, state[:2]), self._effort(time, state[2:])])
        fresh, self._fresh = self._fresh, False
        return state, 0.0 if fresh else step

    def _restart(self, again: bool) -> None:
        self.restarts += again
        self._motion.reset()
        self._effort.reset()
        self._fresh = True
