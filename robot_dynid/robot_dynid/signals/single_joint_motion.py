"""Joints at rest, and motions of single joints in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.signals.encoders import resolution
from robot_dynid.signals.filters import derivative, runs, zero_phase_low_pass
from robot_dynid.types import FloatArray, RawLog

#: time [s] in which a motion changes a reading about once, which averages may span, and in which a
#: joint comes to rest
RESTS = 0.5
#: window [s] in which a joint at rest does not leave two neighbouring encoder steps
REST_WINDOW = 0.25
#: steps within which a resting joint stays: two readings, and no third; averaging time [s], so
#: that noise of single readings is no motion
READING_STEPS, AVERAGE_SECONDS = 1.5, 0.04
#: time [s] over which power is averaged and octaves change, and in which averages fade in at the
#: ends of a rest
LOCAL, FADE = 1.0, 0.25
#: an octave is used above this share of the power one octave below: changes from step to step
#: halve it, or leave up to 0.7 of it (regular ones, just slower than one in RESTS); a wave at the
#: border of two octaves gives both the same
OCTAVE_SHARE = 0.85
#: and above this many times the power of white flicker, which is estimated from few waves
FLICKER = 3.0


def resting(position: FloatArray, readings: FloatArray, dt: float) -> Iterator[slice]:
    """Yield the rows of ``position`` (N,), each ``dt`` [s], in which a joint rests.

    A REST_WINDOW centred on each stays within two neighbouring steps of the encoder that gave
    ``readings`` (M,). The first RESTS, as the joint comes to rest, count as motion.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    step, rows = resolution(readings), _odd(REST_WINDOW, dt)
    if step <= 0.0:
        return
    average = _average(position, AVERAGE_SECONDS, dt)
    spread = maximum_filter1d(average, rows) - minimum_filter1d(average, rows)
    for first, stop in runs(spread <= READING_STEPS * step).tolist():
        begin = first + round((RESTS - 0.5 * REST_WINDOW) / dt) if first > 0 else 0
        if stop - begin >= RESTS / dt:
            yield slice(begin, stop)


def remove_flicker(part: RawLog, readings: FloatArray, dt: float) -> RawLog:
    """Return a uniform recording, each ``dt`` [s], with averaged readings at rest.

    ``readings`` (M, n) [rad, m] are the recorded positions. Other channels, and joints whose
    encoder shows no steps, are unchanged; so are recordings with motor states, which are used as
    differences at the same instants.
    """
    assert part.velocity is not None
    few = 0.5 / dt <= 1.0 / RESTS  # samples in which no flicker can be distinguished
    if few or part.motor_position is not None:
        return part
    position, velocity = part.position.copy(), part.velocity.copy()
    for j in range(position.shape[1]):
        for rows in resting(part.position[:, j], readings[:, j], dt):
            smooth, share = _smooth(part.position[rows, j], dt), _share(rows, len(position), dt)
            position[rows, j] += share * (smooth - position[rows, j])
            velocity[rows, j] += share * (
                derivative(smooth[:, None], dt)[:, 0] - velocity[rows, j])
    return replace(part, position=position, velocity=velocity)


def _smooth(position: FloatArray, dt: float) -> FloatArray:
    """Return positions (N,) below 1 / RESTS plus the octaves above that exceed flicker.

    Flicker has the power of steps, which falls with the square of the frequency, or that of white
    noise, which follows from the differences of readings.
    """
    top = 1.0 / RESTS
    low = _low_pass(position, top, dt)
    smooth, steps = low.copy(), _power(low - _average(low, LOCAL, dt), dt)
    white = 0.5 * _power(np.diff(position, prepend=position[0]), dt)
    while 2.0 * top < 0.4 / dt:
        high = _low_pass(position, 2.0 * top, dt)
        power, share = _power(high - low, dt), top / (0.5 / dt)
        moves = power > np.maximum(OCTAVE_SHARE * steps, FLICKER * share * white)
        smooth += _average(moves.astype(np.float64), LOCAL, dt) * (high - low)
        steps, low, top = np.maximum(0.5 * steps, power), high, 2.0 * top
    return smooth


def _share(rows: slice, count: int, dt: float) -> FloatArray:
    """Return the weight (N,) of averages in ``rows`` of ``count``, smaller near motion."""
    since = dt * np.arange(1.0, rows.stop - rows.start + 1)
    near = np.full(len(since), FADE)
    if rows.start > 0:
        near = np.minimum(near, since)
    if rows.stop < count:
        near = np.minimum(near, since[::-1])
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * near / FADE))


def _low_pass(values: FloatArray, cutoff: float, dt: float) -> FloatArray:
    return zero_phase_low_pass(values[:, None], cutoff, dt)[:, 0]


def _power(values: FloatArray, dt: float) -> FloatArray:
    """Return the power (N,) of ``values`` (N,) around every instant."""
    return _average(values**2, LOCAL, dt)


def _average(values: FloatArray, seconds: float, dt: float) -> FloatArray:
    """Return averages (N,) of ``values`` (N,) over ``seconds`` around every instant."""
    from scipy.ndimage import uniform_filter1d

    return np.asarray(uniform_filter1d(values, _odd(seconds, dt), mode='nearest'))


def _odd(seconds: float, dt: float) -> int:
    """Return the nearest odd number of rows in ``seconds``."""
    return 2 * round(0.5 * seconds / dt) + 1


#: a joint moves while it travels at least this far [rad, m] within TRAVEL_WINDOW seconds
TRAVEL_WINDOW, MOVING_TRAVEL, TRAVEL_PRISMATIC = 0.5, 0.01, 0.002
#: the others rest while they travel less than this share of it
LOCKED_SHARE = 0.1
#: time [s] over which a speed is measured, from positions only; speed [rad/s, m/s] below which it
#: has no sign
WINDOW, STANDING = 0.1, 2e-3
#: relative variation of the speed of a steady stretch
STEADINESS = 0.03
#: least duration [s] and samples of a steady stretch without its ends; least share of the motion,
#: which separates it from the top of a sine (22 %)
STEADY_SECONDS, STEADY_SAMPLES, STEADY_SHARE = 0.2, 16, 0.25
#: rest [s] after which a joint did not just stick
STICKING = 0.5
#: a joint nearly stands below this share of its speed; if it restarts this often, it moves in
#: jerks
STUCK, JERKS = 0.3, 2


@dataclass(frozen=True, eq=False)
class SingleJointMotion:
    """One joint (its index) moves one way at ``speed`` [rad/s, m/s], negative if backward.

    ``start`` s; ``seconds`` of motion in total; ``path``: where it begins and ends; ``jerky`` if
    it stuck in between. ``pose`` (n,) are the mean positions, ``position`` and ``torque`` (m,)
    those of the joint at constant speed, empty if the speed is never constant for long.
    """

    joint: int
    speed: float
    start: float
    seconds: float
    path: tuple[float, float]
    jerky: bool
    pose: FloatArray
    position: FloatArray
    torque: FloatArray

    @property
    def steady(self) -> bool:
        """Whether it has a stretch of constant speed."""
        return len(self.position) > 0


def least_travel(robot: RobotModel) -> FloatArray:
    """Return the least travel (n,) rad (m) within TRAVEL_WINDOW of a moving joint."""
    return np.where(np.asarray(robot.types) == PRISMATIC, TRAVEL_PRISMATIC, MOVING_TRAVEL)


def _moves(
    position: FloatArray, step: float, least: FloatArray
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the joint (N,) that travels farthest, whether it moves, and whether the others rest.

    By the travel within TRAVEL_WINDOW about every sample; ``least`` (n,) see `least_travel`.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    window = 2 * round(0.5 * TRAVEL_WINDOW / step) + 1
    travel = (maximum_filter1d(position, window, axis=0, mode='nearest')
              - minimum_filter1d(position, window, axis=0, mode='nearest')) / least
    mover = np.argmax(travel, axis=1)
    largest = np.take_along_axis(travel, mover[:, None], axis=1)[:, 0]
    np.put_along_axis(travel, mover[:, None], 0.0, axis=1)
    return mover, largest > 1.0, travel.max(axis=1) < LOCKED_SHARE * np.maximum(largest, 1.0)


def moving_seconds(time: FloatArray, position: FloatArray, least: FloatArray) -> float:
    """Return the time [s] in which any joint moves.

    ``time`` (N,) s, uniform; ``position`` (N, n) rad (m); ``least`` (n,) see `least_travel`.
    """
    if len(time) < 2:
        return 0.0
    step = float(time[-1] - time[0]) / (len(time) - 1)
    return float(np.count_nonzero(_moves(position, step, least)[1])) * step


def single_joint_stretches(
    time: FloatArray, position: FloatArray, least: FloatArray
) -> Iterator[tuple[int, slice]]:
    """Yield (joint, rows) of every stretch in which only that joint moves, in both directions.

    ``time`` (N,) s, uniform; ``position`` (N, n) rad (m); ``least`` (n,) see `least_travel`.
    """
    if len(time) < 2:
        return
    mover, moves, rest = _moves(position, float(time[1] - time[0]), least)
    label = np.where(moves & rest, mover, -1)
    edges = [0, *(np.flatnonzero(np.diff(label)) + 1).tolist(), len(label)]
    for first, stop in pairwise(edges):
        if label[first] >= 0:
            yield int(label[first]), slice(first, stop)


def single_joint_motions(
    time: FloatArray, position: FloatArray, torque: FloatArray, least: FloatArray
) -> list[SingleJointMotion]:
    """Return the one-way motions in a uniformly sampled part of a recording, joint by joint.

    ``time`` (N,) s, ``position`` (N, n) rad (m), ``torque`` (N, n) N m (N); ``least`` (n,) see
    `least_travel`. Empty for a part shorter than WINDOW.
    """
    if len(time) < 3:
        return []
    step = float(time[-1] - time[0]) / (len(time) - 1)
    half = max(1, round(0.5 * WINDOW / step))
    if len(time) <= 2 * half:
        return []
    speed = (position[2 * half:] - position[:-2 * half]) / (2.0 * half * step)
    inner = slice(half, len(time) - half)
    mover, _, rest = _moves(position, step, least)
    part = _Part(time[inner], position[inner], torque[inner], speed, half, mover[inner],
                 rest[inner])
    return [motion for joint in range(position.shape[1]) for motion in part.motions(joint)]


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a recording with its speeds (N, n); ``half`` is half the window in samples.

    ``mover`` (N,) is the joint that travels farthest, ``rest`` (N,) is True where the others rest.
    """

    time: FloatArray
    position: FloatArray
    torque: FloatArray
    speed: FloatArray
    half: int
    mover: NDArray[np.intp]
    rest: NDArray[np.bool_]

    def motions(self, joint: int) -> Iterator[SingleJointMotion]:
        """Yield the stretches of a joint, split where it nearly stands."""
        velocity = self.speed[:, joint]
        alone = self.rest & (self.mover == joint)
        way = np.where(np.abs(velocity) > STANDING, np.sign(velocity), 0.0)
        seconds = max(self.time[-1] - self.time[0], 1e-9)
        max_pause = round(STICKING * (len(self.time) - 1) / seconds)
        for first, last in stretches(way, alone, max_pause):
            speed = np.abs(velocity[first:last])
            cuts = [first, *(first + dip for dip in dips(speed)), last]
            parts = [self._motion(joint, a, b) for a, b in pairwise(cuts) if b - a > 1]
            if len(parts) > JERKS and not any(p.steady for p in parts):
                one = self._motion(joint, first, last)
                parts = [replace(one, speed=(one.path[1] - one.path[0]) / one.seconds, jerky=True,
                                 position=np.empty(0), torque=np.empty(0))]
            yield from parts

    def _motion(self, joint: int, first: int, last: int) -> SingleJointMotion:
        speed = np.abs(self.speed[first:last, joint])
        typical = float(np.median(speed[speed >= 0.5 * speed.max()]))
        begin, end = longest(np.abs(speed - typical) <= STEADINESS * typical)
        rows = slice(first + begin + self.half, first + end - self.half)
        time, whole = self.time[rows], float(self.time[last - 1] - self.time[first])
        steady = len(time) >= STEADY_SAMPLES and time[-1] - time[0] >= STEADY_SECONDS and (
            self.time[first + end - 1] - self.time[first + begin] >= STEADY_SHARE * whole)
        if steady:
            travel = self.position[rows.stop - 1, joint] - self.position[rows.start, joint]
            typical = float(travel / (time[-1] - time[0]))
        else:
            rows = slice(first, first)
            typical *= float(np.sign(self.speed[first:last, joint].sum()))
        return SingleJointMotion(
            joint, typical, float(self.time[first]), whole,
            (float(self.position[first, joint]), float(self.position[last - 1, joint])), False,
            self.position[first:last].mean(axis=0), self.position[rows, joint].copy(),
            self.torque[rows, joint].copy())


def dips(speed: FloatArray) -> list[int]:
    """Return the indices of the minima of ``speed`` (m,) in dips below STUCK of the peaks."""
    minima: list[int] = []
    top, bottom, at = 0.0, np.inf, 0
    for i, value in enumerate(speed.tolist()):
        if value < bottom:
            bottom, at = value, i
        if bottom < STUCK * min(top, value):
            minima.append(at)
            top, bottom = value, value
        elif value > top:
            top, bottom = value, value
    return minima


def stretches(
    way: FloatArray, alone: NDArray[np.bool_], max_pause: int
) -> Iterator[tuple[int, int]]:
    """Yield first and last + 1 of stretches in one direction ``way`` (N,), while ``alone`` (N,).

    ``way`` is -1, 0, 1; up to ``max_pause`` zeros inside a stretch do not end it.
    """
    state = np.where(alone, way, 2.0)
    edges = [0, *(np.flatnonzero(np.diff(state)) + 1).tolist(), len(state)]
    begin = end = 0
    side = 0.0
    for first, last in pairwise(edges):
        now = float(state[first])
        if now == 0.0 and side and last - first <= max_pause:
            continue
        if now == side and side:
            end = last
            continue
        if side:
            yield begin, end
        side = now if abs(now) == 1.0 else 0.0
        begin, end = first, last
    if side:
        yield begin, end


def longest(good: NDArray[np.bool_]) -> tuple[int, int]:
    """Return first and last + 1 of the longest run of True; (0, 0) if there is none."""
    candidates = runs(good)
    if not len(candidates):
        return 0, 0
    first, stop = candidates[np.argmax(candidates[:, 1] - candidates[:, 0])]
    return int(first), int(stop)
