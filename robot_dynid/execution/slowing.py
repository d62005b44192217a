"""Stop along the path, for a pause or to end the execution."""

from __future__ import annotations

from dataclasses import dataclass, replace

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import Code, Outcome
from robot_dynid.execution.pace import brake, resume
from robot_dynid.execution.segment import Segment
from robot_dynid.execution.watchdog import Rules, Watchdog

#: reasons that leave time to brake along the path; all others cancel at once
GENTLE = (Code.CANCELLED, Code.TEMPERATURE)


@dataclass(frozen=True, eq=False)
class Slowing:
    """The braking ``segment`` to send, and the time ``rest`` s of the path at which it ends.

    ``reason`` is the outcome when the robot stands, None for a pause.
    """

    segment: Segment
    rest: float
    reason: Outcome | None

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
                    watchdog.timed)
    if braking is None:
        return None
    sent = Segment(segment.name, braking.points, segment.limits, reference=braking.reference,
                   elapsed=braking.elapsed)
    return Slowing(sent, braking.rest, reason)


def way_on(segment: Segment, rest: float, rules: Rules) -> Segment | None:
    """Return the rest of a segment after the time ``rest`` s of its path, None for nothing.

    Raises UsageError when the limits allow no start along the path from there.
    """
    points = segment.points
    if points.duration - rest < 1.0 / rules.pacing.rate:
        return None
    left = resume(points, rest, segment.limits, rules.pacing)
    if left is None:
        raise UsageError('the limits allow no start along the path from here; cancel the '
                         'excitation and start it anew')
    return replace(segment, points=left,
                   begin=segment.begin + points.duration - left.duration)
