"""Pieces of a motion: each comes to rest on the path within `lookahead` s of being sent.

A piece is the path up to a knot followed by a stop along the path. Before the controller reaches
that knot the next piece is sent, as a trajectory with the same start, so the controller switches
without a step. If the controller scales the speed it begins with an entry (see `pace`). If no next
piece arrives the robot stops by itself. Stops are computed before the motion starts.
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

# Shares of the lookahead: interval between pieces, and time the controller needs to switch before
# the robot brakes.
RENEWAL = 0.2
LATEST_SEND = 0.05
# Share of the lookahead before braking at which a piece is sent at reduced pace: an entry slows
# the motion, so there are as few as possible. Motions are not continued below the slowest pace.
DUE = 0.4
SLOWEST_PACE = 0.05


def in_pieces(segment: Segment, pacing: Pacing) -> Segment:
    """Return a segment with its stops; computing them takes time per second of motion."""
    if pacing.lookahead <= 0.0 or segment.stops is not None:
        return segment
    return replace(segment, stops=stops_of(segment.points, segment.limits, pacing.rate))


def shortage(segment: Segment, pacing: Pacing) -> str | None:
    """Return the reason why a segment cannot be sent in pieces, None without one."""
    lookahead = pacing.lookahead
    if segment.stops is None or segment.stops.shortest_lookahead <= lookahead:
        return None
    needed = np.ceil(100.0 * segment.stops.shortest_lookahead) / 100.0
    return (f'{segment.name}: the limits allow no stop along the path within a lookahead of '
            f'{lookahead:g} s; use a lookahead of {needed:g} s, or a smaller scale')


@dataclass(frozen=True, eq=False)
class Piece:
    """A ``segment`` to send, which brakes at path time ``brakes`` s.

    It comes to rest at path time ``rest`` s.
    """

    segment: Segment
    brakes: float
    rest: float


class Pieces:
    """Pieces of one segment: the one that is followed, and the one sent last.

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
        """True if the followed piece reaches the end of the segment."""
        return self.followed.brakes >= self._segment.points.duration

    @property
    def unanswered(self) -> bool:
        """True if the controller has not accepted or rejected the last piece yet."""
        return self.sent is not self.followed

    def late(self, elapsed: float, pace: float = 1.0) -> bool:
        """Return True if no further piece can arrive before the robot brakes."""
        latest = self.followed.brakes - LATEST_SEND * self._pacing.lookahead * pace
        return not self.complete and elapsed > latest

    def next(self, elapsed: float, reported: float, pace: float = 1.0) -> Piece | None:
        """Return the piece to send now, None if it is too early.

        The motion continues at ``pace``. The controller last reported ``reported`` s of it,
        possibly late but not early, so the piece contains the points from there on.
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
        """Record that the controller accepted the last piece, and return it."""
        self.followed = self.sent
        return self.followed

    def refused(self) -> None:
        """Record that the controller continues the piece it follows."""
        self.sent = self.followed

    def _piece(self, elapsed: float, reported: float, pace: float) -> Piece | None:
        """Return the piece to send at ``elapsed`` s, None if the limits allow no entry."""
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
    """Return the points of a path from the last before ``begin`` s to the end of a stop."""
    path = path_part(points, begin, ramp.begin)
    if ramp.duration == 0.0:
        return path
    return joined(path, ramp_rows(points, ramp, rate, ramp.begin))
