"""Pieces of a motion: each ends at rest on the path, `lookahead` s after it is sent at most.

A piece is the path up to a knot, and from there a stop along the path. Before the controller gets
to that knot the next piece is sent, as a trajectory with the same start: up to the knot it is the
same motion, so that the controller goes over without a step. Where the controller scales the
speed, it begins with an entry (see `pace`). Where no next piece comes, the robot stops by itself.
The stops are searched before the motion starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.execution.pace import (
    BEFORE,
    ENTRIES,
    REMEMBERED,
    Entry,
    Pacing,
    Ramp,
    joined,
    path_part,
    ramp_rows,
    stops_of,
)
from robot_dynid.execution.sampled import SampledTrajectory, within
from robot_dynid.execution.segment import Segment

# Parts of the lookahead: from piece to piece, and what must be left before the robot brakes for
# the controller to take the next one.
RENEWAL = 0.2
LATEST_SEND = 0.05
# Time until the robot brakes at which a piece is sent where the pace is not full, a part of the
# lookahead: an entry slows the motion, so there are as few as can be. No motion is continued at a
# pace below the slowest.
DUE = 0.4
SLOWEST_PACE = 0.05


def in_pieces(segment: Segment, pacing: Pacing) -> Segment:
    """Return a segment with its stops; the search takes some time for each second of motion."""
    if pacing.lookahead <= 0.0 or segment.stops is not None:
        return segment
    return replace(segment, stops=stops_of(segment.points, segment.limits, pacing.rate))


def shortage(segment: Segment, pacing: Pacing) -> str | None:
    """Return the reason why a segment cannot be sent in pieces, None without one."""
    lookahead = pacing.lookahead
    if segment.stops is None or segment.stops.shortest_lookahead <= lookahead:
        return None
    needed = np.ceil(100.0 * segment.stops.shortest_lookahead) / 100.0
    return (f'{segment.name}: the limits leave no room to stop along the path within a lookahead '
            f'of {lookahead:g} s; a lookahead of {needed:g} s would do, or a smaller scale')


@dataclass(frozen=True, eq=False)
class Piece:
    """A ``segment`` to send, which leaves the path at the path time ``brakes`` s.

    It comes to rest at the path time ``rest`` s.
    """

    segment: Segment
    brakes: float
    rest: float


class Pieces:
    """The pieces of one segment: the one that is followed, and the one sent last.

    All times in s of the segment's points.
    """

    def __init__(self, segment: Segment, pacing: Pacing) -> None:
        self._segment, self._pacing = segment, pacing
        first = self._piece(0.0, 0.0, 1.0)
        assert first is not None
        self.followed = self.sent = first
        self._renewed = 0.0

    @property
    def complete(self) -> bool:
        """Whether what is followed leads to the end of the segment."""
        return self.followed.brakes >= self._segment.points.duration

    @property
    def unanswered(self) -> bool:
        """Whether it is not known yet whether the controller takes the piece sent last."""
        return self.sent is not self.followed

    def late(self, elapsed: float, pace: float = 1.0) -> bool:
        """Return whether no further piece can arrive before the robot brakes."""
        latest = self.followed.brakes - LATEST_SEND * self._pacing.lookahead * pace
        return not self.complete and elapsed > latest

    def next(self, elapsed: float, reported: float, pace: float = 1.0) -> Piece | None:
        """Return the piece to send now, None when it is not its time yet.

        The motion goes on at ``pace``. The controller was at ``reported`` s of it when it last
        told: it may be late, but not earlier than that, so the piece contains the points from
        there on.
        """
        lookahead = self._pacing.lookahead
        due = (elapsed >= self._renewed + RENEWAL * lookahead if pace == 1.0 else
               pace >= SLOWEST_PACE and self.followed.brakes - elapsed < DUE * lookahead * pace)
        if self.complete or not due:
            return None
        piece = self._piece(elapsed, reported, pace)
        if piece is None or piece.brakes <= self.followed.brakes:
            return None
        self.sent, self._renewed = piece, elapsed
        return piece

    def taken(self) -> Piece:
        """Note that the controller took the piece sent last, and return it."""
        self.followed = self.sent
        return self.followed

    def refused(self) -> None:
        """Note that the controller goes on with the piece it follows."""
        self.sent = self.followed

    def _piece(self, elapsed: float, reported: float, pace: float) -> Piece | None:
        """Return the piece to send at ``elapsed`` s, None where the limits allow no entry."""
        segment, points = self._segment, self._segment.points
        brakes, duration = points.duration, 0.0
        if segment.stops is not None:
            brakes, duration = segment.stops.latest(elapsed + self._pacing.lookahead)
        if brakes >= points.duration and elapsed == 0.0:
            return Piece(segment, brakes, points.duration)
        ramp, rate, entry = Ramp(brakes, duration, 1.0, 0.0), self._pacing.rate, None
        remembered = _stopped(points, elapsed - REMEMBERED, ramp, rate)
        if pace == 1.0:
            sent = _stopped(points, min(elapsed - BEFORE, reported), ramp, rate)
        else:
            entries = (Entry(elapsed, pace, self._pacing.join, length) for length in ENTRIES)
            entry = next((entry for entry in entries if entry.ramp.end < brakes and within(
                entry.rows(points, rate), segment.limits)), None)
            if entry is None:
                return None
            sent = entry.into(points, remembered, rate)
        return Piece(
            Segment(segment.name, sent, segment.limits, reference=remembered, elapsed=elapsed,
                    entry=entry), brakes, min(ramp.end, points.duration))


def _stopped(points: SampledTrajectory, begin: float, ramp: Ramp, rate: float
             ) -> SampledTrajectory:
    """Return the points of a path from the last before ``begin`` s up to and with a stop."""
    path = path_part(points, begin, ramp.begin)
    if ramp.duration == 0.0:
        return path
    return joined(path, ramp_rows(points, ramp, rate, ramp.begin))
