"""Sampled trajectories and their checks before they are sent.

The controller interpolates points by quintic polynomials. These and their derivatives stay between
their smallest and largest Bezier control points, so limits checked on control points hold at every
instant (Farin, Curves and Surfaces for CAGD, section 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import UsageError
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray, frozen

REFINEMENT = 10  # subdivisions of every interval for the bounds
#: largest number of points of a trajectory, five hours at 50 Hz
MAX_POINTS = 1_000_000
END_REST = 1e-8  # rad/s, rad/s^2; the controller refuses end velocities above this


@dataclass(frozen=True, eq=False)
class SampledTrajectory:
    """Points of a trajectory.

    ``time`` (T,) s, counted from the moment the controller starts; ``position`` (T, n) rad (m),
    ``velocity``, ``acceleration`` (T, n) its derivatives.
    """

    joints: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joints))
        for name in ('position', 'velocity', 'acceleration'):
            if np.shape(getattr(self, name)) != shape:
                raise UsageError(f'{name} has shape {np.shape(getattr(self, name))}, '
                                 f'expected {shape}')

    @property
    def duration(self) -> float:
        """Time of the last point, s."""
        return float(self.time[-1])

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s: quintics between the points, held outside."""
        t = np.clip(np.atleast_1d(np.asarray(time, dtype=np.float64)), self.time[0], self.time[-1])
        left = np.minimum(np.searchsorted(self.time, t, side='right') - 1, len(self.time) - 2)
        h = (self.time[left + 1] - self.time[left])[:, None]
        ends = [(x[left], x[left + 1])
                for x in (self.position, self.velocity, self.acceleration)]
        return Motion(*_quintic(ends, h, (t - self.time[left])[:, None] / h))

    def span(self, begin: float, end: float) -> tuple[FloatArray, FloatArray]:
        """Return smallest and largest desired position (n,) between two times, s."""
        first = max(int(np.searchsorted(self.time, begin)) - 1, 0)
        rows = self.position[first:int(np.searchsorted(self.time, end)) + 1]
        return rows.min(axis=0), rows.max(axis=0)


def check_points(duration: float, rate: float) -> None:
    """Raise UsageError if ``duration`` s at ``rate`` Hz exceed MAX_POINTS."""
    if not duration * rate <= MAX_POINTS:
        raise UsageError(f'{duration:.6g} s at {rate:g} points per second are more than '
                         f'{MAX_POINTS} points; give a lower rate or a shorter motion')


def sampled(trajectory: Trajectory, rate: float, lead_in: float = 0.0) -> SampledTrajectory:
    """Sample a trajectory at ``rate`` Hz or slightly above, including both ends.

    ``lead_in`` s precede the first point, in which the controller moves to the start pose. Raises
    UsageError as `check_points`.
    """
    return sample_motion(
        trajectory.joints, trajectory.sample, trajectory.duration, rate, lead_in)


@one_blas_thread()
def sample_motion(joints: tuple[str, ...], motion_at: Callable[[FloatArray], Motion],
                  duration: float, rate: float, begin: float) -> SampledTrajectory:
    """Sample a motion, not necessarily from rest, that starts at ``begin`` s.

    ``motion_at`` returns it at times (T,) s of 0 to ``duration``. Raises as `sampled`.
    """
    check_points(duration, rate)
    count = int(np.ceil(duration * rate - 1e-9)) + 1
    time = np.linspace(0.0, duration, max(count, 2))
    motion = motion_at(time)
    for derivative in (motion.velocity, motion.acceleration):
        ends = derivative[[0, -1]]
        derivative[[0, -1]] = np.where(np.abs(ends) < END_REST, 0.0, ends)
    return SampledTrajectory(joints, frozen(begin + time), frozen(motion.position),
                             frozen(motion.velocity), frozen(motion.acceleration))


def faults(points: SampledTrajectory, limits: MotionLimits, longest: float) -> tuple[str, ...]:
    """Return one sentence per fault that forbids sending these points, empty if there are none.

    ``longest`` s is the longest allowed motion. Limits are checked at the points and between them.
    """
    sentences = [*_names(points, limits), *_times(points, longest), *_numbers(points)]
    if not sentences:
        sentences += [*_rest(points), *_limits(points, limits)]
    return tuple(sentences)


def within(points: SampledTrajectory, limits: MotionLimits) -> bool:
    """Return True if the motion keeps the limits at its points and between them."""
    return bool(np.all(columns_within(points, limits)))


def columns_within(points: SampledTrajectory, limits: MotionLimits) -> NDArray[np.bool_]:
    """Return a mask (K n,) of the columns that keep the limits at the points and between them.

    ``points`` are K motions of the n joints of ``limits``.
    """
    _, bounds = control_points(points)
    several = len(points.joints) // len(limits.joints)
    broken = [np.any(_excess(name, low, high, limits, several) > 0.0, axis=0)
              for name, (low, high) in bounds.items()]
    return np.asarray(~np.any(broken, axis=0))


def _excess(name: str, low: FloatArray, high: FloatArray, limits: MotionLimits, several: int = 1
            ) -> FloatArray:
    """Return the excess of bounds (P, several n) over the limits; NaN: no limit."""
    if name == 'position':
        upper, lower = np.tile(limits.upper, several), np.tile(limits.lower, several)
        return np.maximum(high - upper, lower - low)
    edge = np.tile(getattr(limits, name), several)
    return np.asarray(np.maximum(np.abs(low), np.abs(high)) - edge)


def _names(points: SampledTrajectory, limits: MotionLimits) -> Iterator[str]:
    for joint in points.joints:
        if points.joints.count(joint) > 1:
            yield f"joint '{joint}' occurs twice"
        if joint not in limits.joints:
            yield f"joint '{joint}' is unknown; the robot has {', '.join(limits.joints)}"
    for joint in limits.joints:
        if joint not in points.joints:
            yield f"joint '{joint}' is missing in the trajectory"
    if sorted(points.joints) == sorted(limits.joints) and points.joints != limits.joints:
        yield f'joints must come in the order {", ".join(limits.joints)}'


def _times(points: SampledTrajectory, longest: float) -> Iterator[str]:
    time = points.time
    if len(time) == 0 or not np.all(np.isfinite(time)):
        yield 'times are missing or not finite'
        return
    back = np.flatnonzero(np.diff(time) <= 0.0)
    if time[0] < 0.0 or back.size:
        at = time[back[0]] if back.size else time[0]
        yield f'times must be positive and increasing; they are not at {at:.6g} s'
    if time[-1] > longest:
        yield f'the motion takes {time[-1]:.6g} s (limit {longest:.6g} s)'


def _numbers(points: SampledTrajectory) -> Iterator[str]:
    for name in ('position', 'velocity', 'acceleration'):
        rows, columns = np.nonzero(~np.isfinite(getattr(points, name)))
        if rows.size:
            yield (f"{name} of joint '{points.joints[columns[0]]}' is not finite at point "
                   f'{rows[0]}')


def _rest(points: SampledTrajectory) -> Iterator[str]:
    for place, row in (('start', 0), ('end', -1)):
        for name in ('velocity', 'acceleration'):
            value = np.abs(getattr(points, name)[row])
            worst = int(np.argmax(value))
            if value[worst] > END_REST:
                yield (f"{name} of joint '{points.joints[worst]}' is {value[worst]:.3g} at the "
                       f'{place}, it must be 0')


def _limits(points: SampledTrajectory, limits: MotionLimits) -> Iterator[str]:
    time, bounds = control_points(points)
    for name, (low, high) in bounds.items():
        excess = _excess(name, low, high, limits)
        if name == 'position':
            shown = np.where(high - limits.upper > limits.lower - low, high, low)
            edge = np.where(high - limits.upper > limits.lower - low, limits.upper, limits.lower)
        else:
            shown, edge = np.maximum(np.abs(low), np.abs(high)), getattr(limits, name)
        broken = np.any(excess > 0.0, axis=0)
        for i in np.flatnonzero(broken):
            row = int(np.argmax(excess[:, i]))
            limit = np.broadcast_to(edge, shown.shape)[row, i]
            yield (f"{name} of joint '{points.joints[i]}' reaches {shown[row, i]:.6g} at "
                   f'{time[row]:.4g} s, its limit is {limit:.6g}')


def control_points(
    points: SampledTrajectory,
) -> tuple[FloatArray, dict[str, tuple[FloatArray, FloatArray]]]:
    """Return the start times (P,) of subintervals, and bounds (P, n) of the motion on each.

    Every interval between two points has ten; bounds are the smallest and largest Bezier control
    points of position, velocity, acceleration and jerk.
    """
    time, p, v, a = _refined(points)
    h = np.diff(time)[:, None]
    curve = np.stack([
        p[:-1], p[:-1] + h * v[:-1] / 5.0, p[:-1] + h * (0.4 * v[:-1] + h * a[:-1] / 20.0),
        p[1:] - h * (0.4 * v[1:] - h * a[1:] / 20.0), p[1:] - h * v[1:] / 5.0, p[1:]])
    bounds = {'position': (curve.min(axis=0), curve.max(axis=0))}
    # From velocity and acceleration at the nodes, not from differences of positions: exact at the
    # ends of subintervals, and rounding is not divided by h three times.
    w = (p[1:] - p[:-1]) / h
    middle = 5.0 * w - 2.0 * (v[:-1] + v[1:]) + h * (a[1:] - a[:-1]) / 4.0
    speed = np.stack([v[:-1], v[:-1] + h * a[:-1] / 4.0, middle, v[1:] - h * a[1:] / 4.0, v[1:]])
    bounds['velocity'] = (speed.min(axis=0), speed.max(axis=0))
    bend = np.stack([a[:-1], 4.0 * (speed[2] - speed[1]) / h, 4.0 * (speed[3] - speed[2]) / h,
                     a[1:]])
    bounds['acceleration'] = (bend.min(axis=0), bend.max(axis=0))
    jerk = 3.0 * np.diff(bend, axis=0) / h
    bounds['jerk'] = (jerk.min(axis=0), jerk.max(axis=0))
    return time[:-1], bounds


def _refined(points: SampledTrajectory) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return time, position, velocity, acceleration of the quintics at ten times the points."""
    h = np.diff(points.time)[:, None, None]
    columns = [x[:, None, :] for x in (points.position, points.velocity, points.acceleration)]
    s = (np.arange(REFINEMENT) / REFINEMENT)[None, :, None]
    parts = _quintic([(x[:-1], x[1:]) for x in columns], h, s)
    n = len(points.joints)
    fine = [np.concatenate([part.reshape(-1, n), end[-1]]) for part, end in zip(parts, columns)]
    time = np.append((points.time[:-1, None] + (s * h)[:, :, 0]).ravel(), points.time[-1])
    return time, fine[0], fine[1], fine[2]


def _quintic(ends: Sequence[tuple[FloatArray, FloatArray]], h: FloatArray, s: FloatArray
             ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return position, velocity, acceleration, jerk of quintics at the share ``s`` of their span.

    ``ends`` are position, velocity and acceleration at begin and end of spans of ``h`` s.
    """
    (p, q), (v, w), (a, b) = ends
    step = q - p - h * v - 0.5 * h**2 * a
    rate = (w - v - h * a) * h
    bend = (b - a) * h**2
    c3 = 10.0 * step - 4.0 * rate + 0.5 * bend
    c4 = -15.0 * step + 7.0 * rate - bend
    c5 = 6.0 * step - 3.0 * rate + 0.5 * bend
    t = s * h
    return (
        p + t * (v + 0.5 * t * a) + s**3 * (c3 + s * (c4 + s * c5)),
        v + t * a + s**2 * (3.0 * c3 + s * (4.0 * c4 + 5.0 * s * c5)) / h,
        a + s * (6.0 * c3 + s * (12.0 * c4 + 20.0 * s * c5)) / h**2,
        (6.0 * c3 + s * (24.0 * c4 + 60.0 * s * c5)) / h**3,
    )
