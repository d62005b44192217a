"""Time scaling along a path: slower motion, stops, and resumption.

With path time s(t) the motion is q(s(t)); by the chain rule qd = q' s', qdd = q'' s'^2 + q' s'',
qddd = q''' s'^3 + 3 q'' s' s'' + q' s'''. Joints stay on the path, only the speed changes. Every
result is checked by `sampled.within`, at its points and between them.

A controller that scales the speed, as a UR does with its speed slider, starts a new trajectory by
the clock and then advances its time at the factor `pace` of real time. The instant of the switch
is uncertain, so a trajectory that continues a motion begins with a stretch that advances as the
motion does: wherever the controller enters it, the position is continuous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.execution.sampled import (
    SampledTrajectory,
    columns_within,
    sample_motion,
    within,
)
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, frozen

RAMP_INTERVALS = 6  # intervals between the points of a ramp
LONGEST_START = 10.0  # s
SAME_POINT = 1e-3  # s: points closer than this are merged
ENTRIES = (0.1, 0.2, 0.4, 0.8)  # s, candidate times to return to full pace after a continuation
BEFORE = 0.2  # s by which a continuing trajectory begins before it is sent
# The tracking guard needs the reference shortly before the change.
REMEMBERED = 1.0
SHORTEST_DECELERATION = 0.05  # s, shortest deceleration
#: s between knots, and candidate durations of stops: the first within the limits is used
SPACING = 0.05
DURATIONS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.85, 1.0, 1.25, 1.5,
             2.0, 3.0, 5.0)
# Smallest share of the lookahead between sending a piece and the knot where it brakes.
LOOKAHEAD_RESERVE = 0.4
KNOTS_AT_ONCE = 500  # knots


@dataclass(frozen=True)
class Ramp:
    """A change of pace from ``before`` to ``after`` in ``duration`` s, from path time ``begin`` s.

    s' = before + (after - before) (3 u^2 - 2 u^3), u = t / duration: the acceleration along the
    path is zero at both ends.
    """

    begin: float
    duration: float
    before: float
    after: float

    @property
    def end(self) -> float:
        """Path time at which the new pace is reached, s."""
        return self.begin + 0.5 * self.duration * (self.before + self.after)

    def path_time(self, time: FloatArray) -> tuple[FloatArray, ...]:
        """Return path time and its three derivatives at ``time`` (T,) s."""
        u, span = time / self.duration, self.after - self.before
        return (
            self.begin + self.duration * (self.before * u + span * u**3 * (1.0 - 0.5 * u)),
            self.before + span * u**2 * (3.0 - 2.0 * u),
            span * 6.0 * u * (1.0 - u) / self.duration,
            span * 6.0 * (1.0 - 2.0 * u) / self.duration**2,
        )


@dataclass(frozen=True)
class Entry:
    """Beginning of a trajectory that continues a motion at reduced pace.

    At ``at`` s of trajectory and path time it advances at ``pace`` s of the path per s for
    ``wait`` s, in which the controller switches to it; then it accelerates for ``duration`` s to
    full pace.
    """

    at: float
    pace: float
    wait: float
    duration: float

    @property
    def ramp(self) -> Ramp:
        """Change to full pace after the wait."""
        return Ramp(self.at + self.pace * self.wait, self.duration, self.pace, 1.0)

    @property
    def delay(self) -> float:
        """Trajectory time minus path time at full pace, s."""
        return self.at + self.wait + self.duration - self.ramp.end

    def along(self, time: float) -> tuple[float, float]:
        """Return path time s, and its rate, at ``time`` s of the trajectory."""
        since = time - self.at - self.wait
        if since <= 0.0:
            return self.at + self.pace * (time - self.at), self.pace
        if since >= self.duration:
            return time - self.delay, 1.0
        path, rate, *_ = self.ramp.path_time(np.array([since]))
        return float(path[0]), float(rate[0])

    def rows(self, points: SampledTrajectory, rate: float) -> SampledTrajectory:
        """Return the points of the beginning, from BEFORE s ahead of it."""
        return joined(at_pace(points, self.at, self.pace, (BEFORE, self.wait), rate),
                      ramp_rows(points, self.ramp, rate, self.at + self.wait))

    def into(self, points: SampledTrajectory, rest: SampledTrajectory, rate: float
             ) -> SampledTrajectory:
        """Return the points of the beginning and of the ``rest`` of the path."""
        last = len(rest.time) - 1
        first = min(int(np.searchsorted(rest.time, self.ramp.end + SAME_POINT)), last)
        return joined(self.rows(points, rate), rows_between(rest, first - 1, last, self.delay))


def along_path(path: SampledTrajectory, s: FloatArray, first: FloatArray, second: FloatArray,
               third: FloatArray) -> Motion:
    """Return the motion along a path at path times ``s`` (T,) s, derivatives by the chain rule.

    ``first``, ``second``, ``third`` (T,) are the derivatives of s. The path rests beyond its ends.
    """
    along = path.sample(s)
    outside = (s < path.time[0]) | (s > path.time[-1])
    for derivative in (along.velocity, along.acceleration, along.jerk):
        derivative[outside] = 0.0
    first, second, third = first[:, None], second[:, None], third[:, None]
    return Motion(
        along.position,
        along.velocity * first,
        along.acceleration * first**2 + along.velocity * second,
        along.jerk * first**3 + 3.0 * along.acceleration * first * second
        + along.velocity * third,
    )


@dataclass(frozen=True)
class Pacing:
    """Settings of changes of pace.

    ``rate`` points per second; ``join`` s to switch between motions, ``lead_in`` s before a motion
    from rest; ``longest`` s of a stop. ``lookahead`` s after it is sent every piece of a motion
    has come to rest; 0: motions are sent whole.
    """

    rate: float = 50.0
    join: float = 0.1
    lead_in: float = 0.2
    longest: float = 1.0
    lookahead: float = 1.0


def stretched(points: SampledTrajectory, scale: float) -> SampledTrajectory:
    """Return the path at the share ``scale`` of its speed, with the same lead-in.

    Limits stay satisfied: velocities shrink with ``scale``, accelerations with its square.
    """
    begin = points.time[0]
    return SampledTrajectory(
        points.joints, frozen(begin + (points.time - begin) / scale), points.position,
        frozen(points.velocity * scale), frozen(points.acceleration * scale**2))


def resume(points: SampledTrajectory, rest: float, limits: MotionLimits, pacing: Pacing
           ) -> tuple[SampledTrajectory, float] | None:
    """Return the continuation from rest at path time ``rest`` s, and when it has full pace, s.

    That is at one of the points, from which on they are unchanged. None if the limits allow no
    such start.
    """
    last = len(points.time) - 1
    knot = first = min(int(np.searchsorted(points.time, rest + 1.0 / pacing.rate)), last)
    while 0.0 < points.time[knot] - rest <= 0.5 * LONGEST_START:
        ramp = Ramp(rest, 2.0 * float(points.time[knot] - rest), 0.0, 1.0)
        starting = ramp_rows(points, ramp, pacing.rate, pacing.lead_in)
        if within(starting, limits):
            way = joined(starting, rows_between(points, knot, last, starting.duration - ramp.end))
            return way, starting.duration
        if knot == last:
            break
        knot = min(knot + 1 + (knot - first) // 4, last)
    return None


def ramp_rows(points: SampledTrajectory, ramp: Ramp, rate: float, begin: float
              ) -> SampledTrajectory:
    """Return the points of a change of pace that starts ``begin`` s from now."""
    return sample_motion(
        points.joints, lambda time: along_path(points, *ramp.path_time(time)), ramp.duration,
        max(rate, RAMP_INTERVALS / ramp.duration), begin)


def rows_between(points: SampledTrajectory, first: int, last: int, shift: float
                 ) -> SampledTrajectory:
    """Return the points from ``first`` to ``last``, both included, ``shift`` s later."""
    rows = slice(first, last + 1)
    return SampledTrajectory(
        points.joints, frozen(points.time[rows] + shift), points.position[rows],
        points.velocity[rows], points.acceleration[rows])


def shifted(points: SampledTrajectory, shift: float) -> SampledTrajectory:
    """Return the points ``shift`` s later."""
    return rows_between(points, 0, len(points.time) - 1, shift)


def joined(before: SampledTrajectory, after: SampledTrajectory) -> SampledTrajectory:
    """Concatenate two trajectories that share their border point."""
    return SampledTrajectory(before.joints, *(
        frozen(np.concatenate([getattr(before, name), getattr(after, name)[1:]]))
        for name in ('time', 'position', 'velocity', 'acceleration')))


def path_part(points: SampledTrajectory, begin: float, end: float) -> SampledTrajectory:
    """Return a path from its last point before ``begin`` s to ``end`` s."""
    first = max(int(np.searchsorted(points.time, begin, side='right')) - 1, 0)
    last = int(np.searchsorted(points.time, end - 1e-9))
    names = ('position', 'velocity', 'acceleration')
    time, values = points.time[first:last], [getattr(points, name)[first:last] for name in names]
    if last < len(points.time) and points.time[last] <= end + 1e-9:
        edge = [getattr(points, name)[last:last + 1] for name in names]
    else:
        edge = [getattr(points.sample(end), name) for name in names]
    return SampledTrajectory(
        points.joints, frozen(np.append(time, end)),
        *(frozen(np.concatenate(pair)) for pair in zip(values, edge, strict=True)))


def at_pace(points: SampledTrajectory, at: float, pace: float, span: tuple[float, float],
            rate: float) -> SampledTrajectory:
    """Return a path at constant ``pace``, from ``span[0]`` s before ``at`` to ``span[1]`` s after.

    The time of the points is path time at ``at`` s, and never negative.
    """
    start, after = span
    if pace == 1.0:
        return path_part(points, at - start, at + after)
    start = min(start, at)
    ramp = Ramp(at - pace * start, start + after, pace, pace)
    return ramp_rows(points, ramp, rate, at - start)


def decelerated(points: SampledTrajectory, elapsed: float, limits: MotionLimits, pacing: Pacing,
                pace: float = 1.0) -> SampledTrajectory | None:
    """Return a path for ``join`` s from now, then the fastest deceleration within the limits.

    ``elapsed`` s of ``points`` have been executed at ``pace``. All joints decelerate together, off
    the path: with v = v0 (1 - 3 u^2 + 2 u^3) + a0 T (u - 2 u^2 + u^3), u = t / T, velocity and
    acceleration are continuous. None if no T up to ``longest`` s keeps the limits.
    """
    begin = elapsed + pacing.join
    if begin >= points.duration or begin <= points.time[0]:
        return None
    path = at_pace(points, elapsed, pace, (REMEMBERED, pacing.join), pacing.rate)
    position, velocity, acceleration = path.position[-1], path.velocity[-1], path.acceleration[-1]
    rest = np.zeros_like(velocity)
    duration = max(
        SHORTEST_DECELERATION, float(np.max(1.5 * np.abs(velocity) / limits.acceleration)))
    while duration <= pacing.longest:
        end = position + duration * (0.5 * velocity + duration * acceleration / 12.0)
        braking = SampledTrajectory(
            points.joints, frozen([begin, begin + duration]), frozen([position, end]),
            frozen([velocity, rest]), frozen([acceleration, rest]))
        if within(braking, limits):
            return joined(path, braking)
        duration *= 1.1
    return None


@dataclass(frozen=True, eq=False)
class Stops:
    """Stops along a path, sorted by their begins and ends.

    ``begin`` (K,) s is the path time at which a stop of ``duration`` (K,) s begins. The last one
    is the end of the path.
    """

    begin: FloatArray
    duration: FloatArray

    @property
    def end(self) -> FloatArray:
        """Path time (K,) s at which the robot is at rest."""
        return self.begin + self.duration

    @property
    def shortest_lookahead(self) -> float:
        """Smallest lookahead s with which a stop can be sent at any time."""
        gaps = self.end[1:] - self.begin[:-1]
        longest = float(np.max(gaps, initial=0.0))
        return max(float(self.end[0]), longest / (1.0 - LOOKAHEAD_RESERVE))

    def latest(self, time: float) -> tuple[float, float]:
        """Return begin and duration, s, of the last stop that ends before ``time`` s."""
        i = max(int(np.searchsorted(self.end, time + 1e-9, side='right')) - 1, 0)
        return float(self.begin[i]), float(self.duration[i])

    def earliest(self, time: float) -> tuple[float, float] | None:
        """Return begin and duration, s, of the first stop that begins at ``time`` s or later."""
        i = int(np.searchsorted(self.begin, time - 1e-9))
        return None if i == len(self.begin) else (float(self.begin[i]), float(self.duration[i]))

    def onward(self, shift: float, starting: Stops, begin: float) -> Stops:
        """Return the stops of the rest of the path, shifted ``shift`` s earlier.

        Before ``begin`` s of the rest they are those of ``starting``.
        """
        left = self.begin - shift >= begin
        return _ordered(np.concatenate([starting.begin, self.begin[left] - shift]),
                        np.concatenate([starting.duration, self.duration[left]]))


def stops_of(points: SampledTrajectory, limits: MotionLimits, rate: float,
             since: float = 0.0, until: float = np.inf) -> Stops:
    """Return the shortest stop within the limits at every knot of a path that has one.

    ``rate`` points per second of a stop; knots between the path times ``since`` and ``until`` s.
    """
    begin, end = float(points.time[0]), points.duration
    times = np.linspace(begin, end, int(np.ceil((end - begin) / SPACING)) + 1)[:-1]
    near = points.time[np.clip(np.searchsorted(points.time, times - 0.5 * SPACING), 0,
                               len(points.time) - 1)]  # points of the path where there are some
    knots = np.unique(np.where(np.abs(near - times) <= 0.5 * SPACING, near, times))
    knots = knots[(since <= knots) & (knots <= until)]
    shortest = np.full(len(knots), np.inf)
    for duration in DURATIONS:
        left = np.flatnonzero(np.isinf(shortest))
        for first in range(0, len(left), KNOTS_AT_ONCE):
            rows = left[first:first + KNOTS_AT_ONCE]
            good = _keep(points, knots[rows], duration, limits, rate)
            shortest[rows[good]] = duration
    feasible = np.isfinite(shortest)
    begins, lengths = knots[feasible], shortest[feasible]
    if until >= end:
        begins, lengths = np.append(begins, end), np.append(lengths, 0.0)
    return _ordered(begins, lengths)


def _keep(points: SampledTrajectory, knots: FloatArray, duration: float, limits: MotionLimits,
          rate: float) -> NDArray[np.bool_]:
    """Return a mask (K,) of ``knots`` (K,) s where a stop of ``duration`` s keeps the limits."""
    count = int(np.ceil(duration * max(rate, RAMP_INTERVALS / duration) - 1e-9)) + 1
    n = len(limits.joints)
    time = np.linspace(0.0, duration, max(count, 2))
    path_time, *rates = Ramp(0.0, duration, 1.0, 0.0).path_time(time)
    motion = along_path(points, (path_time[:, None] + knots[None, :]).ravel(),
                        *(np.repeat(change, len(knots)) for change in rates))
    rows = [getattr(motion, name).reshape(len(time), len(knots), n)
            for name in ('position', 'velocity', 'acceleration')]
    good = np.ones(len(knots), dtype=np.bool_)
    for values, limit in zip(rows[1:], (limits.velocity, limits.acceleration), strict=True):
        good &= ~np.any(np.abs(values) > limit, axis=(0, 2))
    chosen = np.flatnonzero(good)
    if chosen.size:
        side_by_side = SampledTrajectory(
            limits.joints * len(chosen), time,
            *(values[:, chosen].reshape(len(time), -1) for values in rows))
        good[chosen] = np.all(columns_within(side_by_side, limits).reshape(-1, n), axis=1)
    return good


def _ordered(begin: FloatArray, duration: FloatArray) -> Stops:
    """Return the stops sorted by their ends, without those that begin before an earlier one."""
    order = np.lexsort((-begin, begin + duration))
    begin, duration = begin[order], duration[order]
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(begin)[:-1]])
    usable = begin > latest
    return Stops(frozen(begin[usable]), frozen(duration[usable]))
