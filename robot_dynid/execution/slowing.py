"""Stops that are motions: along the path, for a pause or to end, and off the path, to end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import LIMITED, PATH, Outcome
from robot_dynid.execution.pace import brake, decelerated, resume
from robot_dynid.execution.pieces import Piece, shortage
from robot_dynid.execution.segment import Segment
from robot_dynid.execution.stops import stops_of
from robot_dynid.execution.watchdog import Rules, Watchdog


@dataclass(frozen=True, eq=False)
class Slowing:
    """The braking ``segment`` to send, and the time ``rest`` s of the path at which it ends.

    ``reason`` is the outcome when the robot stands, None for a pause. ``by_itself``: nothing was
    sent for it, the piece that is followed ends there. ``kind`` is PATH or LIMITED.
    """

    segment: Segment
    rest: float
    reason: Outcome | None
    by_itself: bool = False
    kind: str = PATH

    @classmethod
    def after(cls, piece: Piece, reason: Outcome | None) -> Slowing:
        """Return the stop at the end of a piece that is not continued."""
        return cls(piece.segment, piece.rest, reason, by_itself=True)

    def ending(self, reason: Outcome) -> Slowing:
        """Return the stop as one after which the execution ends."""
        return replace(self, reason=reason)


def slowing(segment: Segment, watchdog: Watchdog, now: float, rules: Rules, reason: Outcome | None
            ) -> Slowing | None:
    """Return the stop from the pose of a segment ``now``, None when the limits forbid it.

    Where it is known since when the controller follows the segment, its points are continued.
    """
    if rules.pacing.longest <= 0.0:
        return None
    braking = brake(segment.points, watchdog.elapsed(now), segment.limits, rules.pacing,
                    watchdog.timed, watchdog.path_time.pace)
    if braking is None:
        return None
    sent = Segment(segment.name, braking.points, segment.limits, reference=braking.reference,
                   elapsed=braking.elapsed)
    return Slowing(sent, braking.rest, reason)


def decelerating(segment: Segment, watchdog: Watchdog, now: float, rules: Rules, reason: Outcome
                 ) -> Slowing | None:
    """Return the stop of all joints within the limits of a segment, which leaves the path.

    None when they forbid it, or when it is not known what motion the controller follows, and
    since when. One that is silent may be frozen, and would jump to the end of this one later:
    where it does not answer either (its topic) it is sent none.
    """
    if watchdog.reference is None or not watchdog.timed:
        return None
    if watchdog.silent(now) and not rules.answers:
        return None
    if rules.pacing.longest <= 0.0:
        return None
    elapsed = watchdog.elapsed(now)
    points = decelerated(
        watchdog.reference, elapsed, segment.limits, rules.pacing, watchdog.path_time.pace)
    if points is None:
        return None
    sent = Segment(segment.name, points, segment.limits, reference=points, elapsed=elapsed)
    return Slowing(sent, elapsed, reason, kind=LIMITED)


def way_on(segment: Segment, rest: float, rules: Rules) -> Segment | None:
    """Return the rest of a segment after the time ``rest`` s of its path, None for nothing.

    Raises UsageError when the limits allow no start along the path from there.
    """
    points, pacing = segment.points, rules.pacing
    if points.duration - rest < 1.0 / pacing.rate:
        return None
    found = resume(points, rest, segment.limits, pacing)
    if found is None:
        raise UsageError('the limits allow no start along the path from here; cancel the '
                         'excitation and start it anew')
    left, full_pace = found
    shift, stops = points.duration - left.duration, segment.stops
    if stops is not None:
        starting = stops_of(left, segment.limits, pacing.rate, full_pace)
        stops = stops.onward(shift, starting, full_pace)
    onward = replace(segment, points=left, begin=segment.begin + shift, stops=stops)
    short = shortage(onward, pacing)
    if short is not None:
        raise UsageError(f'{short}; cancel the excitation and start it anew')
    return onward
