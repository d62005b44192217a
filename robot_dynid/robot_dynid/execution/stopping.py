"""Stops by a motion, along the path or off it, and stops by a cancel request or a hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import IMMEDIATE, LIMITED, PATH, Code, Outcome
from robot_dynid.execution.pace import (
    BEFORE,
    DURATIONS,
    REMEMBERED,
    SPACING,
    Pacing,
    Ramp,
    at_pace,
    decelerated,
    joined,
    path_part,
    ramp_rows,
    resume,
    shifted,
    stops_of,
)
from robot_dynid.execution.pieces import Piece, shortage
from robot_dynid.execution.sampled import SampledTrajectory, within
from robot_dynid.execution.segment import Cancel, Commands, Finish, Hold, Segment
from robot_dynid.execution.watchdog import Rules, Watchdog


@dataclass(frozen=True, eq=False)
class Slowing:
    """The braking ``segment`` to send, and the path time ``rest`` s at which it ends.

    ``reason`` is the outcome once the robot is at rest, None for a pause. ``by_itself``: nothing
    is sent, the followed piece ends there. ``kind`` is PATH or LIMITED.
    """

    segment: Segment
    rest: float
    reason: Outcome | None = None
    by_itself: bool = False
    kind: str = PATH

    @classmethod
    def after(cls, piece: Piece, reason: Outcome | None) -> Slowing:
        """Return the stop at the end of a piece that is not continued."""
        return cls(piece.segment, piece.rest, reason, by_itself=True)

    def ending(self, reason: Outcome | None) -> Slowing:
        """Return the stop with the reason that ends the execution."""
        return replace(self, reason=reason)


def slowing(segment: Segment, elapsed: float, pacing: Pacing, continued: bool = False,
            pace: float = 1.0) -> Slowing | None:
    """Return the earliest stop along the path, None if the limits allow none.

    ``elapsed`` s of the segment's points have been executed at ``pace``. ``continued``: the start
    of the active motion is located, so the stop can be sent with the same start and differs only
    once the robot brakes.
    """
    points, limits, rate, longest = segment.points, segment.limits, pacing.rate, pacing.longest
    if longest <= 0.0:
        return None
    if continued and pace != 1.0:
        for duration in DURATIONS:
            ramp = Ramp(elapsed + pace * pacing.join, duration, pace, 0.0)
            braking = ramp_rows(points, ramp, rate, elapsed + pacing.join)
            if duration <= longest and within(braking, limits):
                sent, reference = (
                    joined(at_pace(points, elapsed, pace, (margin, pacing.join), rate), braking)
                    for margin in (BEFORE, REMEMBERED))
                return _along_the_path(segment, (sent, reference), ramp, elapsed)
        return None
    soonest = min(elapsed + pacing.join, points.duration)
    stops = segment.stops or stops_of(points, limits, rate, soonest, soonest + longest)
    begin, duration = stops.earliest(soonest) or (np.inf, 0.0)
    if begin + duration > max(elapsed, 0.0) + pacing.join + longest + SPACING:
        return None
    ramp = Ramp(begin, max(duration, DURATIONS[0]), 1.0, 0.0)
    braking = ramp_rows(points, ramp, rate, begin)
    reference = joined(path_part(points, elapsed - REMEMBERED, begin), braking)
    if continued and elapsed > 0.0 and elapsed + pacing.join < points.duration:
        return _along_the_path(segment, (reference, reference), ramp, elapsed)
    first = float(points.time[np.searchsorted(points.time, soonest)])
    shift = max(-elapsed, pacing.join - min(first, begin))
    sent = joined(path_part(points, first, begin), braking)
    return _along_the_path(segment, (shifted(sent, shift), shifted(reference, shift)), ramp)


def _along_the_path(segment: Segment, rows: tuple[SampledTrajectory, SampledTrajectory],
                    ramp: Ramp, elapsed: float = 0.0) -> Slowing:
    """Return a stop with its points and its reference."""
    sent = Segment(segment.name, rows[0], segment.limits, reference=rows[1], elapsed=elapsed)
    return Slowing(sent, min(ramp.end, segment.points.duration))


def decelerating(segment: Segment, watchdog: Watchdog, now: float, rules: Rules, reason: Outcome
                 ) -> Slowing | None:
    """Return the stop of all joints within the limits of a segment, off the path.

    None if the limits forbid it, or if the followed motion or its start is unknown. A silent
    controller may be frozen and would later jump to the end of this motion, so one without answers
    (its topic) is sent none.
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
    """Return the rest of a segment after path time ``rest`` s, None for nothing.

    Raises UsageError if the limits allow no start along the path from there.
    """
    points, pacing = segment.points, rules.pacing
    if points.duration - rest < 1.0 / pacing.rate:
        return None
    resumed = resume(points, rest, segment.limits, pacing)
    if resumed is None:
        raise UsageError('the limits allow no start along the path from here; cancel the '
                         'excitation and start it again')
    left, full_pace = resumed
    shift, stops = points.duration - left.duration, segment.stops
    if stops is not None:
        starting = stops_of(left, segment.limits, pacing.rate, until=full_pace)
        stops = stops.onward(shift, starting, full_pace)
    onward = replace(segment, points=left, begin=segment.begin + shift, stops=stops)
    short = shortage(onward, pacing)
    if short is not None:
        raise UsageError(f'{short}; cancel the excitation and start it again')
    return onward


class Stopping:
    """A stop by a cancel request or a hold, begun at ``since`` s because of ``outcome``.

    ``answered``: whether a goal is under way whose end the controller will confirm. Where there
    is none (its topic, a pause) a hold is sent at once, and the robot has to be seen at rest.
    ``kind`` IMMEDIATE cancels the goal, LIMITED does only when the controller is not seen to
    follow the hold, a deceleration within the limits; a goal that it accepts only then ends the
    hold, so another one follows. A controller that does not answer, and of
    which nothing is heard nor seen, is sent nothing while it follows a piece of the motion: that
    ends by itself. A frozen one would go to the hold from wherever it wakes up, and beyond it.
    """

    def __init__(self, since: float, outcome: Outcome, rules: Rules, watchdog: Watchdog,
                 answered: bool, kind: str = IMMEDIATE) -> None:
        self.since, self.outcome = since, outcome
        self._gentle, self._begun = kind == LIMITED and answered, since
        self._rules, self._watchdog = rules, watchdog
        self._answered = self._unconfirmed = answered
        self._held: Hold | None = None
        self._left_alone = False

    def begin(self) -> Commands:
        """Return the commands that stop the robot at once."""
        if self._gentle:
            return self.hold(self.since)
        commands: Commands = (Cancel(),) if self._rules.answers else ()
        if not self._answered or self.outcome.code is Code.CONTROLLER_LOST:
            commands += self.hold(self.since)
        return commands

    def hold(self, now: float) -> Commands:
        """Bring the robot to rest by a message on the topic, once, or wait for its own end."""
        if self._held is not None:
            return ()
        watchdog, rules = self._watchdog, self._rules
        self._held = Hold(*watchdog.stopping_point(now))
        self._left_alone = (not rules.answers and rules.pacing.lookahead > 0.0
                            and watchdog.silent(now) and not watchdog.visible(now))
        return () if self._left_alone else (self._held,)

    def accepted(self, now: float) -> Commands:
        """React to the acceptance of a goal that was sent before the stop."""
        if not self._gentle:
            return (Cancel(),)
        self._begun, self._held = now, None
        return self.hold(now)

    def confirm(self, now: float) -> Commands:
        """React to the controller's word that the motion has ended."""
        self._unconfirmed = False
        return self.settle(now)

    def settle(self, now: float) -> Commands:
        """Finish once the stop is confirmed and the robot is seen at rest, or cannot be seen."""
        if self._unconfirmed or now - self._begun < self._span:
            return ()
        visible = self._watchdog.visible(now)
        if visible and self._watchdog.moving():
            return ()
        how = ('the controller is silent, so nothing was sent' if self._left_alone else
               'confirmed but not seen' if self._answered else
               'a hold was sent on its topic but not seen')
        seen = 'the robot holds' if visible else f'{how}: check that it stands'
        done = ('decelerated within the limits' if self._gentle else
                'the motion ends by itself' if self._left_alone else 'motion cancelled')
        return (Finish(Outcome(self.outcome.code, f'{self.outcome.text}; {done}, {seen}')),)

    def wait(self, now: float) -> Commands:
        """React to the passing of time."""
        settings, waited = self._rules.settings, now - self.since
        if waited > settings.stop_timeout + self._span:
            return (Finish(self._doubtful()),)
        if self._unconfirmed and now - self._begun > settings.cancel_timeout:
            if not self._gentle:
                return self.hold(now)
            if self._watchdog.begun_after(self.since):
                return self.confirm(now)
            self._gentle, self._begun, self._held = False, now, None
            return (Cancel(),)
        if self._gentle and not self._unconfirmed:
            return self.settle(now)
        return () if self._answered else self.settle(now)

    @property
    def _span(self) -> float:
        """Length of a hold without confirmation, s."""
        awaited = self._gentle or not self._answered
        return self._held.duration if awaited and self._held is not None else 0.0

    def _doubtful(self) -> Outcome:
        """Return the outcome of a stop that was not confirmed in time."""
        code, text = self.outcome.code, self.outcome.text
        if self._answered and not self._unconfirmed:
            return Outcome(code, f'{text}; the controller confirmed the stop, but the robot still '
                           'moves: check it')
        if code in (Code.STALE_STATES, Code.CANCELLED):
            code = Code.CONTROLLER_LOST
        answer = ('does not answer the cancel request: a hold was sent on its topic as well'
                  if self._answered else 'was silent, and still moves' if self._left_alone else
                  'does not stop at the hold sent on its topic')
        return Outcome(code, f'{text}; the controller {answer}, check that the robot stands')
