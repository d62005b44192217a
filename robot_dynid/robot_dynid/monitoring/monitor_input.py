"""Input of the monitor: joint states as torque and velocity at common instants.

Nothing looks ahead: a recording gives the same results as its samples one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.motor_states import (
    LONGEST_RUN,
    MotorStates,
    follows_motors,
    motors_along,
)
from robot_dynid.robot.model import POSITION_ERROR
from robot_dynid.signals import alignment
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.filters import Delay
from robot_dynid.signals.plausible import DAMAGED_BEYOND, drop_implausible, possible
from robot_dynid.signals.servo import position_error
from robot_dynid.signals.turns import Turns
from robot_dynid.types import FloatArray, RawLog

#: steps longer than this [s] are gaps: nothing is assumed about the time in between
INFORMED_STEP = 0.1
#: pieces selected from a recording that is too long
RECORDING_PIECES = 20
#: a joint moves above this share of its maximum speed
MOVING_SPEED_SHARE = 0.05
#: causes and remedies of missing joint states
PAUSE = 'no joint states received: check the driver and the network load'
BACK = 'stamps repeat or go back: use one publisher and a monotonic clock'


@dataclass(frozen=True, eq=False)
class MonitorInput:
    """Motion and effort of a recording: ``time`` (N,) s, the others (N, n), effort in N m.

    The torque ripple of the model is subtracted from the effort, at the phase of the measured
    rows. ``starts`` holds the first index of every contiguous segment, ``notes`` the repairs;
    ``missing`` (N, n) masks filled-in values, None if there are none. ``pauses`` are the times
    without joint states: start and stop [s], and reason. ``motors`` (N, 2, n): position and
    velocity of the motors on the joint side, NaN if unknown, None for models that do not use them;
    ``external`` (N, n) is the known external torque contained in the effort, or None.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    starts: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()
    missing: NDArray[np.bool_] | None = None
    pauses: tuple[tuple[float, float, str], ...] = ()
    motors: FloatArray | None = None
    external: FloatArray | None = None

    @property
    def steps(self) -> FloatArray:
        """Time (N,) [s] since the previous row; zero at the beginning of a segment."""
        steps = np.diff(self.time, prepend=self.time[:1])
        steps[list(self.starts)] = 0.0
        return steps

    def in_motion(self, rows: int) -> MonitorInput:
        """Select ``rows`` samples in whole pieces, those in which each joint moves longest.

        Recordings that are not longer are returned unchanged. Idle stretches, or joints that move
        one after the other, leave no joint without motion if it moves at all.
        """
        if len(self.time) <= rows:
            return self
        chosen = _busiest(np.abs(self.velocity), max(rows // RECORDING_PIECES, 1), rows)
        broken = np.zeros(len(self.time), dtype=bool)
        broken[list(self.starts)] = True
        broken[1:] |= chosen[1:] & ~chosen[:-1]
        rows_of: dict[str, Any] = {name: values[chosen] for name, values in vars(self).items()
                   if isinstance(values, np.ndarray)}
        starts = {0: None} | dict.fromkeys(np.flatnonzero(broken[chosen]).tolist())
        return replace(self, starts=tuple(starts), **rows_of)


def _busiest(speed: FloatArray, length: int, rows: int) -> NDArray[np.bool_]:
    """Return a mask (N,) of at most ``rows`` rows in pieces of ``length``, each joint's in turn.

    Each joint adds the remaining piece in which it moves longest by ``speed`` (N, n).
    """
    moves = speed > MOVING_SPEED_SHARE * speed.max(axis=0)
    edges = np.arange(0, len(speed), length)
    left = np.add.reduceat(moves, edges, axis=0).astype(float)
    chosen = np.zeros(len(speed), dtype=bool)
    for turn in range(min(rows // length, len(edges))):
        piece = int(np.argmax(left[:, turn % speed.shape[1]]))
        left[piece] = -np.inf
        chosen[edges[piece]:edges[piece] + length] = True
    return chosen


def monitor_input(model: IdentifiedModel, log: RawLog) -> MonitorInput:
    """Return the measured motion and effort, unfiltered; raises DataError without effort.

    Torque of known external wrenches is included in the effort, so only unknown contact is
    detected. Without recorded velocity, motion and effort are those in the middle of each step.
    """
    if log.effort is None and model.robot.drive.kind != POSITION_ERROR:
        raise DataError(f'{log.source}: no effort; record JointState.effort')
    lost = _lost_time(alignment.one_clock(log)[0].time)
    log, dropped = drop_implausible(model.robot, log)
    log, _ = position_error(model.robot, log, model.preprocessing.effort_lag)
    missing = _missing(log)
    turned = log.motor_position, log.motor_velocity
    log, filled = alignment.fill_holes(log)
    assert log.effort is not None
    time, q, qd = log.time, log.position, log.velocity
    effort, ripple = net_torque(model.robot, log), model.ripple_torque
    broken = np.concatenate([[True], np.diff(time) > INFORMED_STEP])
    pauses = [(float(time[k - 1]), float(time[k]), PAUSE) for k in np.flatnonzero(broken) if k]
    lost = [one for one in lost if not any(
        start < one[1] and one[0] < stop for start, stop, _ in pauses)]
    motors, external = None, None
    if turned[0] is not None and qd is not None and follows_motors(model):
        motors = motors_along(model, time, (q, qd), (turned[0], turned[1]),
                              tuple(int(k) for k in np.flatnonzero(broken)))
        external = log.external_torque
    if qd is None:
        inside = np.flatnonzero(~broken)
        earlier = inside - 1
        qd = (q[inside] - q[earlier]) / (time[inside] - time[earlier])[:, None]
        smooth = [effort[rows] - ripple(q[rows], qd, effort[rows]) for rows in (inside, earlier)]
        q, effort = 0.5 * (q[inside] + q[earlier]), 0.5 * (smooth[0] + smooth[1])
        missing = missing[inside] | missing[earlier]
        broken = broken[earlier]
        time = time[inside]
    else:
        effort = effort - ripple(q, qd, effort)
    starts = tuple(int(k) for k in np.flatnonzero(broken))
    motion_lag, effort_lag = lags(model)
    q, qd = (_delayed(time, values, motion_lag, starts) for values in (q, qd))
    if motors is not None:
        motors = _delayed(time, motors.reshape(len(time), -1), motion_lag, starts
                          ).reshape(motors.shape)
    return MonitorInput(time, q, qd, _delayed(time, effort, effort_lag, starts), starts,
                        (*dropped, *filled), missing if missing.any() else None,
                        (*pauses, *lost), motors,
                        None if external is None else _delayed(time, external, effort_lag, starts))


def _missing(log: RawLog) -> NDArray[np.bool_]:
    """Return a mask (N, n): the motion of any joint, or the effort of this one, is missing."""
    assert log.effort is not None
    motion = [values for values in (log.position, log.velocity) if values is not None]
    still = ~np.isfinite(np.concatenate(motion, axis=1)).all(axis=1, keepdims=True)
    effort = log.effort if log.external_torque is None else log.effort + log.external_torque
    return np.asarray(~np.isfinite(effort) | still)


def _lost_time(time: FloatArray) -> list[tuple[float, float, str]]:
    """Return the times (N,) [s] lost to states that carry the stamps of others."""
    finite = np.where(np.isfinite(time), time, -np.inf)
    latest = np.maximum.accumulate(finite)
    stays = np.concatenate([[False], finite[1:] <= latest[:-1]])
    forward = np.diff(latest[np.isfinite(latest)])
    forward = forward[forward > 0.0]
    step = float(np.median(forward)) if len(forward) else 0.0
    edges = np.flatnonzero(np.diff(stays, prepend=False, append=False))
    lost = []
    for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        seconds = (b - a) * step
        if seconds > INFORMED_STEP:
            lost.append((float(latest[a]), float(latest[a]) + seconds, BACK))
    return lost


def lags(model: IdentifiedModel) -> tuple[float, float]:
    """Return the delays [s] of motion and effort that align both."""
    lag = 0.0 if model.robot.drive.kind == POSITION_ERROR else model.preprocessing.effort_lag
    return max(lag, 0.0), max(-lag, 0.0)


def _delayed(
    time: FloatArray, values: FloatArray, seconds: float, starts: tuple[int, ...]
) -> FloatArray:
    if seconds <= 0.0 or not len(time):
        return values
    out = np.empty_like(values)
    for first, stop in zip(starts, (*starts[1:], len(time)), strict=True):
        rows = slice(first, stop)
        for j in range(values.shape[1]):
            out[rows, j] = np.interp(time[rows] - seconds, time[rows], values[rows, j])
    return out


class MonitorInputStream:
    """Input of the monitor from single joint states, see `monitor_input`.

    ``skipped`` counts unusable states, ``problem`` is the reason for the last one; ``restarts``
    counts restarts after a pause or a jump of the stamps, ``began`` is the reason of the last one;
    ``step`` [s] is the recent step. ``missing`` (n,) masks joints whose effort was unusable in the
    last state and was held. ``motors`` are the motor states of a model that uses them, else None.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        if model.robot.drive.kind == POSITION_ERROR:
            raise ModelError(f'{model.robot.name}: the monitor does not support effort_kind '
                             f'{POSITION_ERROR}, because joint states hold no commands: set '
                             'monitor: false')
        self._factors, self._ripple = model.robot.torque_factors, model.ripple_torque
        able = possible(model.robot, LONGEST_RUN)
        self._bound = DAMAGED_BEYOND * np.stack(
            [able[c] for c in ('position', 'velocity', 'effort')])
        motion_lag, effort_lag = lags(model)
        self._motion, self._effort = Delay(motion_lag), Delay(effort_lag)
        self._delays = motion_lag > 0.0 or effort_lag > 0.0
        self._turns = Turns(model.robot)
        self._last: tuple[float, FloatArray] | None = None
        self._fresh = True
        self.skipped = self.restarts = 0
        self.problem = self.began = ''
        self.step = 0.0
        self._joints = model.joints
        self._none = np.zeros(model.robot.n, dtype=bool)
        self.missing = self._none
        self._effort_before = np.zeros(model.robot.n)
        self.motors = MotorStates(model) if follows_motors(model) else None

    def __call__(
        self, time: float, q: FloatArray, qd: FloatArray | None, effort: FloatArray
    ) -> tuple[FloatArray, float] | None:
        """Process one joint state (n,); return None if it is unusable.

        Unusable are a position or velocity, or all efforts, that are NaN or beyond the robot's
        limits, a repeated stamp, and, without velocities, the first state.

        Returns position, velocity and effort in N m (3, n) at one instant, and the step [s] from
        the previous ones, zero if there are none. With ``motors`` (5, n): their position and
        velocity follow, NaN if unknown.
        """
        state = np.empty((3, len(q)))
        state[0], state[1], state[2] = q, 0.0 if qd is None else qd, effort
        able: NDArray[np.bool_] = np.less_equal(np.abs(state), self._bound)  # false for NaN, too
        whole = able.all()
        if not (whole or (able[:2].all() and able[2].any())):
            joints = (self._joints[j] for j in np.flatnonzero(~able.all(axis=0)))
            self._skip(f'{", ".join(joints)}: position, velocity or effort is NaN or exceeds the '
                       'limits of the robot; check the drive')
            return None
        if not isfinite(time):
            self._skip('the stamp is not finite')
            return None
        last = self._last
        step = time - last[0] if last is not None else np.inf
        if -INFORMED_STEP < step <= 0.0:
            self._skip(BACK)
            return None
        previous, self.missing = self.missing, self._none if whole else ~able[2]
        self._take_efforts(state)
        state[0] = self._turns(time, q)
        self._last = (time, state)
        if not 0.0 < step <= INFORMED_STEP:
            self._restart(step, last is not None)
            if qd is None:
                self.problem = ''
                return None
        elif last is not None:
            self.step = step if self.step == 0.0 else self.step + 0.05 * (step - self.step)
            if qd is None:
                self.missing = self.missing | previous
                ends = np.stack([self._smooth(one, (state[0] - last[1][0]) / step)
                                 for one in (state, last[1])])
                state = 0.5 * (ends[0] + ends[1])
        if qd is not None:
            state = self._smooth(state, state[1])
        state = self._delayed(time, state, qd is not None)
        fresh, self._fresh = self._fresh, False
        return state, 0.0 if fresh else step

    def _delayed(self, time: float, state: FloatArray, has_velocity: bool) -> FloatArray:
        """Return a state (3, n), and its motors if there are any, aligned to one instant."""
        if self.motors is not None:
            state = np.concatenate([state, self.motors.at(time, state[0], state[1])
                                    if has_velocity else np.full_like(state[:2], np.nan)])
        if not self._delays:
            return state
        motion = state[:2] if self.motors is None else state[[0, 1, 3, 4]]
        motion, effort = self._motion(time, motion), self._effort(time, state[2:3])
        return np.concatenate([motion[:2], effort, motion[2:]])

    def _take_efforts(self, state: FloatArray) -> None:
        """Convert the efforts of a state (3, n) to N m; missing ones hold the last value."""
        state[2] *= self._factors
        state[2, self.missing] = self._effort_before[self.missing]
        self._effort_before = state[2].copy()

    def _smooth(self, state: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return position, ``velocity`` and effort (3, n) of a row without torque ripple."""
        smooth = state.copy()
        smooth[1] = velocity
        if self._ripple.any:
            smooth[2] -= self._ripple(state[None, 0], velocity[None], state[None, 2])[0]
        return smooth

    def _skip(self, problem: str) -> None:
        self.skipped += 1
        self.problem = problem

    def _restart(self, step: float, again: bool) -> None:
        self.restarts += again
        if again:
            self.began = f'stamps went back by {-step:.3g} s: {BACK}' if step < 0.0 else (
                f'{PAUSE} ({step:.3g} s without)')
        self._motion.reset()
        self._effort.reset()
        if self.motors is not None:
            self.motors.reset()
        self._fresh = True
