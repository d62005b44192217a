"""Motors of the joints along joint states, from motor states with stamps of their own."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.deflection import without_gears
from robot_dynid.errors import ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.signals.plausible import DAMAGED_BEYOND, possible
from robot_dynid.signals.turns import within_half_turn
from robot_dynid.types import FloatArray

#: a motor state older than this [s] tells no deflection any more
OLDEST = 0.03
#: motor states that may wait for their joint states, and joint states that wait for late ones
STATES_WAITING = 100
#: joints without end are taken to turn for a day [s] at most
LONGEST_RUN = 86_400.0

State = tuple[float, FloatArray, FloatArray]


def uses_motors(model: IdentifiedModel) -> bool:
    """Return whether a model predicts more with motor states: elastic joints, residual models."""
    learned = without_gears(model.parts_of('residual'))
    return bool(model.elastic_joints) or any(one is not None for one in learned)


def motors_unused(model: IdentifiedModel) -> str:
    """Return the reason for which a model leaves motor states unused, and a remedy; else ''."""
    if not uses_motors(model):
        return ''
    if not model.record.motor_encoders:
        return ('the model does not know how its motor encoders read (identified earlier, or '
                'without motor states): predicted without the deflection; identify again')
    if model.elastic_joints:
        try:
            model.gears.require_possible(model.joints)
        except ModelError as error:
            return f'predicted without the deflection: {error}'
    return ''


def used_joints(model: IdentifiedModel) -> NDArray[np.bool_]:
    """Return a mask (n,) of the joints whose deflection a model uses.

    They are elastic, or have a residual model, and how their motor encoder reads is known.
    """
    known = {one.joint for one in model.record.motor_encoders}
    learned = without_gears(model.parts_of('residual'))
    return np.array([joint in known and (joint in model.elastic_joints or one is not None)
                     for joint, one in zip(model.joints, learned, strict=True)])


def follows_motors(model: IdentifiedModel) -> bool:
    """Return whether the monitor of a model has use for motor states."""
    return uses_motors(model) and not motors_unused(model)


class MotorStates:
    """Motors of a model's joints from motor states that come one by one.

    A joint state goes with the newest motor state stamped before it, whatever came in first: so a
    recording gives the same as its messages one by one. The deflection is taken where that motor
    state is, between two joint states, and goes on with its rate up to the joint state.

    ``unusable`` counts motor states that were of no use: stamps that repeat or go back, or are no
    number.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        robot, n = model.robot, model.robot.n
        self._robot, self._coupling = robot, robot.drive.coupling
        self._factor, self._offset = np.full(n, np.nan), np.zeros(n)
        for one in model.record.motor_encoders:
            j = robot.index(one.joint)
            self._factor[j], self._offset[j] = one.factor, one.offset
        gears = model.mechanism.gears
        # the error of a gear is faster than what bends it: it is not in what goes on from a state
        self._gears = gears if gears is not None and gears.wavy.any() else None
        self._own = list(robot.drive.elastic)
        able = possible(robot, LONGEST_RUN)
        self._bound = DAMAGED_BEYOND * np.stack([able['motor_position'], able['motor_velocity']])
        self._unknown = np.full((2, n), np.nan)
        self._waiting = deque[State](maxlen=STATES_WAITING)
        self._joints = deque[State](maxlen=STATES_WAITING)
        self._newest = -np.inf
        self._before: tuple[float, FloatArray] | None = None
        self._at, self._bent = -np.inf, self._unknown
        self.age = np.inf
        self.unusable = 0

    def reset(self) -> None:
        """Forget the joint states, whose stamps begin anew."""
        self._joints.clear()
        self._at = -np.inf

    def take(self, time: float, position: FloatArray, velocity: FloatArray | None) -> None:
        """Take a motor state (n,) at ``time`` [s]; NaN for joints it does not have.

        ``velocity`` None: difference of positions.
        """
        if not np.isfinite(time):
            self.unusable += 1
            return
        if time <= self._newest:
            self.unusable += 1
            if self._newest - time <= OLDEST:
                return
            self._waiting.clear()  # the clock was set back
            self._before = None
        motors = np.stack([position, position if velocity is None else velocity])
        motors[~(np.abs(motors) <= self._bound)] = np.nan
        motors /= self._factor
        motors[0] -= self._offset
        if velocity is None:
            before, self._before = self._before, (time, motors[0].copy())
            motors[1] = np.nan if before is None or time - before[0] > OLDEST else (
                within_half_turn(self._robot, motors[0] - before[1]) / (time - before[0]))
        self._newest = time
        self._waiting.append((time, motors[0], motors[1]))

    def at(self, time: float, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return position and velocity of the motors (2, n) beside a joint state (n,).

        On the joint side; NaN where they are not known. ``age`` [s] is that of the motor state.
        """
        joints, waiting = self._joints, self._waiting
        if joints and time <= joints[-1][0]:
            self.reset()
        joints.append((time, q, qd))
        latest: State | None = None
        while waiting and waiting[0][0] < time:
            latest = waiting.popleft()
        if latest is not None:
            self._at, self._bent = latest[0], self._deflection(latest)
        self.age = time - self._at
        if not 0.0 < self.age <= OLDEST:
            return self._unknown
        motors = np.stack([self._turned(q), self._turned(qd)])
        motors += self._bent
        motors[0] += self.age * self._bent[1]
        if self._gears is not None:
            motors[:, self._own] = self._gears.motor(motors[:, self._own])
        return motors

    def _turned(self, joints: FloatArray) -> FloatArray:
        return joints if self._coupling is None else np.asarray(self._coupling @ joints)

    def _deflection(self, motor: State) -> FloatArray:
        """Return deflection and its rate (2, n) at a motor state; NaN before all joint states.

        With the kinematic error of gears.
        """
        time, *values = motor
        after: State | None = None
        for state in reversed(self._joints):
            if state[0] <= time:
                q, qd = _between(state, after, time)
                bent = np.stack(values) - np.stack([self._turned(q), self._turned(qd)])
                if self._coupling is None:  # both encoders may count from other turns
                    bent[0] = within_half_turn(self._robot, bent[0])
                if self._gears is not None:
                    error, slope, _ = self._gears.error(values[0][self._own])
                    bent[:, self._own] += [error, slope * values[1][self._own]]
                return bent
            after = state
        return self._unknown


def _between(before: State, after: State | None, time: float) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity (n,) between two joint states, by the cubic through both."""
    start, q, qd = before
    if after is None or time == start:
        return q, qd
    stop, q_after, qd_after = after
    step = stop - start
    s = (time - start) / step
    slope = (q_after - q) / step
    bend, twist = qd - slope, qd_after - slope
    position = q + s * step * (slope + (1.0 - s) * ((1.0 - s) * bend - s * twist))
    velocity = slope + (1.0 - s) * (1.0 - 3.0 * s) * bend + s * (3.0 * s - 2.0) * twist
    return position, velocity


def motors_along(
    model: IdentifiedModel, time: FloatArray, joints: tuple[FloatArray, FloatArray],
    motors: tuple[FloatArray, FloatArray | None], starts: tuple[int, ...],
) -> FloatArray:
    """Return the motors (N, 2, n) of a recording as they would come on line, NaN where unknown.

    ``time`` (N,) [s]; position and velocity (N, n) of ``joints``, and of ``motors`` as they were
    recorded; ``starts``: the first index of every contiguous segment.
    """
    follow, begins, (position, velocity) = MotorStates(model), set(starts), motors
    found = np.empty((len(time), 2, model.robot.n))
    for k, now in enumerate(time.tolist()):
        if k in begins:
            follow.reset()
        found[k] = follow.at(now, joints[0][k], joints[1][k])
        follow.take(now, position[k], None if velocity is None else velocity[k])
    return found
