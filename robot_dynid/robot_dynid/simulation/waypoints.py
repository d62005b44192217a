"""Trajectory messages of joint_trajectory_controller: acceptance rules and interpolation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.document import joints_named
from robot_dynid.types import FloatArray

# Tolerance of the final velocity: the resolution of a 32-bit float.
END_VELOCITY = float(np.finfo(np.float32).eps)
Values = Sequence[float]
Point = tuple[FloatArray, FloatArray | None, FloatArray | None]


@dataclass(frozen=True)
class Waypoint:
    """One trajectory point: ``time`` s from the start, values in the order of its joints.

    Position in rad or m, then its derivatives; an empty sequence is an omitted field.
    """

    time: float
    position: Values = ()
    velocity: Values = ()
    acceleration: Values = ()
    effort: Values = ()


@dataclass(frozen=True)
class Command:
    """A received trajectory; ``stamp`` s is its start, 0 for now."""

    joints: tuple[str, ...]
    points: tuple[Waypoint, ...]
    stamp: float = 0.0


def rejection(command: Command, joints: Sequence[str], now: float) -> str | None:
    """Return the reason a controller of ``joints`` rejects ``command`` at ``now`` s, or None.

    Like the original it checks neither position limits, nor the first point, nor NaN, and a
    duplicate joint name that completes the number passes.
    """
    if not command.joints:
        return 'empty joint names on incoming trajectory'
    if len(command.joints) != len(joints):
        return f'{len(command.joints)} joints instead of {len(joints)}'
    unknown = [name for name in command.joints if name not in joints]
    if unknown:
        return f'this controller does not have {joints_named(unknown)}'
    if not command.points:
        return 'empty trajectory received'
    if any(abs(v) > END_VELOCITY for v in command.points[-1].velocity):
        return 'velocity of the last point is not zero'
    end = command.points[-1].time
    if command.stamp != 0.0 and command.stamp + end < now:
        return f'trajectory ends {now - command.stamp - end:.3f} s in the past'
    return _times(command.points) or _lengths(command)


def _times(points: Sequence[Waypoint]) -> str | None:
    for i in range(1, len(points)):
        if points[i].time <= points[i - 1].time:
            return f'time of point {i} is not later than that of point {i - 1}'
    return None


def _lengths(command: Command) -> str | None:
    n = len(command.joints)
    for i, point in enumerate(command.points):
        if len(point.effort):
            return f'point {i} has effort values'
        if len(point.position) != n:
            return f'point {i} has {len(point.position)} positions for {n} joints'
        for name, values in (('velocities', point.velocity), ('accelerations',
                                                              point.acceleration)):
            if len(values) not in (0, n):
                return f'point {i} has {len(values)} {name} for {n} joints'
    return None


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference of a trajectory at one time.

    ``motion`` (3, n): position, velocity, acceleration; ``index`` of the next point; ``played`` is
    True once the last point is reached.
    """

    motion: FloatArray
    index: int
    played: bool


class Path:
    """Interpolated trajectory from ``measured`` at ``now`` s through all points of a command.

    ``measured`` are position and velocity (n,). Between two points the interpolation is quintic if
    both have accelerations, cubic if both have velocities, else linear. The beginning is a point
    with zero acceleration; earlier commands are ignored, so the command of a robot that lags steps
    back to its measured position, as in the original.
    """

    def __init__(self, command: Command, joints: Sequence[str],
                 measured: tuple[FloatArray, FloatArray], now: float) -> None:
        start = command.stamp if command.stamp != 0.0 else now
        columns = [joints.index(name) for name in command.joints]
        n = len(joints)
        self._points: list[Point] = [(*measured, np.zeros(n))]
        self._points += [_sorted_values(point, columns, n) for point in command.points]
        self._start = start
        self._times = [now, *(start + point.time for point in command.points)]
        self._segment = -1
        self._coefficients = np.zeros((6, n))

    @property
    def end(self) -> float:
        """Time of the last point in s."""
        return self._times[-1]

    def elapsed(self, now: float) -> float:
        """Return the trajectory time at ``now`` s."""
        return now - self._start

    def sample(self, now: float) -> Reference:
        """Return the reference at ``now`` s."""
        last = len(self._times) - 1
        if now >= self.end:
            position, velocity, acceleration = self._points[last]
            zero = np.zeros_like(position)
            motion = np.array([position, zero if velocity is None else velocity,
                               zero if acceleration is None else acceleration])
            return Reference(motion, last - 1, True)
        # Past points stay sorted after the first one; search only among them.
        index = bisect_right(self._times, now, lo=1)
        begin = index - 1
        if begin != self._segment:
            self._segment = begin
            span = self._times[index] - self._times[begin]
            self._coefficients = coefficients(self._points[begin], self._points[index], span)
        return Reference(powers(now - self._times[begin]) @ self._coefficients, index - 1, False)



def _sorted_values(point: Waypoint, columns: Sequence[int], n: int) -> Point:
    """Return the values in the controller's order; unnamed joints get zero."""
    values: list[FloatArray | None] = []
    for field in (point.position, point.velocity, point.acceleration):
        if not len(field):
            values.append(None)
            continue
        ordered = np.zeros(n)
        ordered[columns] = field
        values.append(ordered)
    position, velocity, acceleration = values
    assert position is not None
    return position, velocity, acceleration


def powers(t: float) -> FloatArray:
    """Return the monomials up to t^5 and their first two derivatives, (3, 6)."""
    t2, t3, t4 = t * t, t**3, t**4
    return np.array([
        [1.0, t, t2, t3, t4, t4 * t],
        [0.0, 1.0, 2.0 * t, 3.0 * t2, 4.0 * t3, 5.0 * t4],
        [0.0, 0.0, 2.0, 6.0 * t, 12.0 * t2, 20.0 * t3],
    ])


def coefficients(a: Point, b: Point, span: float) -> FloatArray:
    """Return the polynomial (6, n) from point a to point b in ``span`` s, lowest power first."""
    table = np.zeros((6, len(a[0])))
    table[0] = a[0]
    step = b[0] - a[0]
    if a[1] is None or b[1] is None:
        table[1] = step / span
        return table
    table[1] = a[1]
    if a[2] is None or b[2] is None:
        table[2] = (3.0 * step / span - 2.0 * a[1] - b[1]) / span
        table[3] = (-2.0 * step / span + a[1] + b[1]) / span**2
        return table
    table[2] = 0.5 * a[2]
    slope = step / span
    start, end = a[2] * span, b[2] * span
    table[3] = (10.0 * slope - 6.0 * a[1] - 4.0 * b[1] - 1.5 * start + 0.5 * end) / span**2
    table[4] = (-15.0 * slope + 8.0 * a[1] + 7.0 * b[1] + 1.5 * start - end) / span**3
    table[5] = (6.0 * slope - 3.0 * (a[1] + b[1]) - 0.5 * start + 0.5 * end) / span**4
    return table
