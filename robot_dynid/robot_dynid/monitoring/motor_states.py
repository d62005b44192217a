"""Motor positions and velocities at joint states, from asynchronous motor states."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.deflection import drop_gears
from robot_dynid.errors import ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.signals.plausible import DAMAGED_BEYOND, possible
from robot_dynid.signals.prepare import late_encoders
from robot_dynid.signals.turns import within_half_turn
from robot_dynid.types import FloatArray

#: age [s] above which a motor state is not used for the deflection
OLDEST = 0.03
#: queued motor states that wait for joint states, and joint states that wait for motor states
STATES_WAITING = 100
#: travel limit of continuous joints: a day [s] at full speed
LONGEST_RUN = 86_400.0

State = tuple[float, FloatArray, FloatArray]


def uses_motors(model: IdentifiedModel) -> bool:
    """Return True if a model predicts with motor states: elastic joints or residual models."""
    learned = drop_gears(model.parts_of('residual'))
    return bool(model.elastic_joints) or any(one is not None for one in learned)


def motors_unused(model: IdentifiedModel) -> str:
    """Return the reason why a model ignores motor states, with a remedy, or ''."""
    if not uses_motors(model):
        return ''
    if not model.record.motor_encoders:
        return ('the model holds no calibration of its motor encoders, so the deflection is not '
                'used: identify again with motor states')
    if model.elastic_joints:
        try:
            model.gears.require_possible(model.joints)
        except ModelError as error:
            return f'the deflection is not used: {error}'
    return ''


def used_joints(model: IdentifiedModel) -> NDArray[np.bool_]:
    """Return a mask (n,) of the joints whose deflection a model uses.

    They are elastic or have a residual model, and their motor encoder is calibrated.
    """
    calibrated = {one.joint for one in model.record.motor_encoders}
    learned = drop_gears(model.parts_of('residual'))
    return np.array([joint in calibrated and (joint in model.elastic_joints or one is not None)
                     for joint, one in zip(model.joints, learned, strict=True)])


def follows_motors(model: IdentifiedModel) -> bool:
    """Return True if the monitor of a model uses motor states."""
    return uses_motors(model) and not motors_unused(model)


class MotorStates:
    """Motor states interpolated at joint states, one by one.

    A joint state uses the newest motor state with an earlier stamp, in any order of arrival, so a
    recording gives the same as its messages one by one. The deflection is taken at the motor
    state, between two joint states (later ones by the delay of the link encoder), and extrapolated
    with its rate to the joint state.

    ``unusable`` counts motor states whose stamps repeat, go back or are not finite.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        robot, n = model.robot, model.robot.n
        self._robot, self._coupling = robot, robot.drive.coupling
        self._factor, self._offset = np.full(n, np.nan), np.zeros(n)
        for one in model.record.motor_encoders:
            j = robot.index(one.joint)
            self._factor[j], self._offset[j] = one.factor, one.offset
        gears = model.mechanism.gears
        # kinematic error varies faster than deflection, so it is not extrapolated
        self._gears = gears if gears is not None and gears.wavy.any() else None
        self._elastic = list(robot.drive.elastic)
        self._late = np.zeros(n)
        for j, late in late_encoders(model.preprocessing.encoder_delays):
            self._late[j] = late
        self._delays: list[float] = np.unique(self._late).tolist()
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
        """Discard the joint states: their stamps restart."""
        self._joints.clear()
        self._at = -np.inf

    def take(self, time: float, position: FloatArray, velocity: FloatArray | None) -> None:
        """Add a motor state (n,) at ``time`` [s]; NaN for joints it does not contain.

        Without ``velocity`` the difference of positions is used.
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
            previous, self._before = self._before, (time, motors[0].copy())
            motors[1] = np.nan if previous is None or time - previous[0] > OLDEST else (
                within_half_turn(self._robot, motors[0] - previous[1]) / (time - previous[0]))
        self._newest = time
        self._waiting.append((time, motors[0], motors[1]))

    def at(self, time: float, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return position and velocity (2, n) of the motors at a joint state (n,).

        On the joint side; NaN if unknown. ``age`` [s] is that of the motor state.
        """
        waiting = self._waiting
        self._joints.append((time, q, qd))
        latest: State | None = None
        while waiting and waiting[0][0] < time - max(self._delays[-1], 0.0):
            latest = waiting.popleft()
        if latest is not None:
            self._at, self._bent = latest[0], self._deflection(latest)
        self.age = time - self._at
        if not 0.0 < self.age <= OLDEST:
            return self._unknown
        motors = np.stack([self._turned(q), self._turned(qd)])
        motors += self._bent
        motors[0] += (self.age - self._late) * self._bent[1]
        if self._gears is not None:
            motors[:, self._elastic] = self._gears.motor(motors[:, self._elastic])
        return motors

    def _turned(self, joints: FloatArray) -> FloatArray:
        return joints if self._coupling is None else np.asarray(self._coupling @ joints)

    def _deflection(self, motor: State) -> FloatArray:
        """Return deflection and its rate (2, n) at a motor state; NaN before any joint state.

        Includes the kinematic error of gears.
        """
        time, *values = motor
        links = self._links(time + self._delays[0])
        for late in self._delays[1:]:
            links = np.where(self._late == late, self._links(time + late), links)
        bent = np.stack(values) - links
        if self._coupling is None:  # the encoders may differ by whole turns
            bent[0] = within_half_turn(self._robot, bent[0])
        if self._gears is not None:
            error, slope, _ = self._gears.error(values[0][self._elastic])
            bent[:, self._elastic] += [error, slope * values[1][self._elastic]]
        return bent

    def _links(self, time: float) -> FloatArray:
        """Return the joint states at ``time`` as motors would turn (2, n); NaN before any."""
        after: State | None = None
        for state in reversed(self._joints):
            if state[0] <= time:
                return np.stack([self._turned(one) for one in _between(state, after, time)])
            after = state
        return self._unknown


def _between(before: State, after: State | None, time: float) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity (n,) between two joint states by cubic interpolation."""
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
    """Return the motors (N, 2, n) of a recording as computed online, NaN if unknown.

    ``time`` (N,) [s]; position and velocity (N, n) of ``joints``, and recorded ones of ``motors``;
    ``starts``: the first index of every contiguous segment.
    """
    follow, begins, (position, velocity) = MotorStates(model), set(starts), motors
    states = np.empty((len(time), 2, model.robot.n))
    for k, now in enumerate(time.tolist()):
        if k in begins:
            follow.reset()
        states[k] = follow.at(now, joints[0][k], joints[1][k])
        follow.take(now, position[k], None if velocity is None else velocity[k])
    return states
