"""Segments of an execution, each sent as one goal; its commands and phases."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from robot_dynid.execution.guards import Outcome
from robot_dynid.execution.pace import Entry, Stops
from robot_dynid.execution.sampled import SampledTrajectory, faults
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray

SEGMENTS_CACHED = 8  # more segments than any plan has


@dataclass(frozen=True, eq=False)
class Segment:
    """A motion that is sent as one goal and must keep ``limits``.

    ``parts`` are name and end, s, of named stretches, in order; the rest is called ``name``.
    ``begin`` s of an interrupted motion precede these points. ``reference`` are the points
    including the preceding motion, if they do not start at rest. ``elapsed`` s of the points have
    passed when they are sent, if they continue a motion, with an ``entry`` at reduced pace.
    ``stops`` along it allow to send it in pieces.
    """

    name: str
    points: SampledTrajectory
    limits: MotionLimits
    parts: tuple[tuple[str, float], ...] = ()
    begin: float = 0.0
    reference: SampledTrajectory | None = None
    elapsed: float = 0.0
    entry: Entry | None = None
    stops: Stops | None = None

    @property
    def remaining(self) -> float:
        """Duration of the motion after it is sent, s."""
        return self.points.duration - self.elapsed

    @property
    def followed(self) -> SampledTrajectory:
        """Reference of the robot, including the time shortly before the first point."""
        return self.points if self.reference is None else self.reference

    def along(self, time: float) -> tuple[float, float]:
        """Return the time of ``followed`` s, and its rate, at ``time`` s of the points."""
        return (time, 1.0) if self.entry is None else self.entry.along(time)

    def part(self, time: float) -> tuple[str, float]:
        """Return the name of the stretch at ``time`` s, and its progress, 0 to 1."""
        begin, time = 0.0, time + self.begin
        for name, end in self.parts:
            if time < end:
                return name, min(max((time - begin) / (end - begin), 0.0), 1.0)
            begin = end
        end = self.points.duration + self.begin
        return self.name, min(max((time - begin) / (end - begin), 0.0), 1.0)


@lru_cache(maxsize=SEGMENTS_CACHED)
def segment_faults(segment: Segment, longest: float) -> tuple[str, ...]:
    """Return the reasons not to send the segment; cached, because the check takes time."""
    return tuple(f'{segment.name}: {fault}'
                 for fault in faults(segment.points, segment.limits, longest))


class Phase(Enum):
    """Phase of an execution."""

    READY = 'ready'
    SENDING = 'sending'
    RUNNING = 'running'
    PAUSED = 'paused'
    STOPPING = 'stopping'
    DONE = 'done'


@dataclass(frozen=True, eq=False)
class Send:
    """Send this segment as a goal; it supersedes an active one.

    ``begun`` s is the clock time of the points' time zero; None: when the controller accepts them.
    """

    segment: Segment
    begun: float | None = None

    @classmethod
    def at(cls, segment: Segment, now: float) -> Send:
        """Return the command to send a segment ``now``, s."""
        return cls(segment, now - segment.elapsed if segment.elapsed > 0.0 else None)


@dataclass(frozen=True)
class Cancel:
    """Cancel every active goal, including one whose acceptance is unknown."""


@dataclass(frozen=True, eq=False)
class Hold:
    """Send a single point on the topic: come to rest at ``position`` (n,) in ``duration`` s."""

    position: FloatArray
    duration: float


@dataclass(frozen=True)
class Finish:
    """The execution is over."""

    outcome: Outcome


Command = Send | Cancel | Hold | Finish
Commands = tuple[Command, ...]
UNDER_WAY = (Phase.SENDING, Phase.RUNNING, Phase.PAUSED)
