"""Commands and phases of a supervised execution."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from robot_dynid.execution.guards import Outcome
from robot_dynid.execution.segment import Segment
from robot_dynid.types import FloatArray


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
    """Send this segment as a goal; one under way is superseded.

    ``begun`` s is the time, by the clock of the execution, at which the time of its points was
    zero; None: they begin when the controller takes them.
    """

    segment: Segment
    begun: float | None = None

    @classmethod
    def at(cls, segment: Segment, now: float) -> Send:
        """Return the command to send a segment ``now``, s."""
        return cls(segment, now - segment.elapsed if segment.elapsed > 0.0 else None)


@dataclass(frozen=True)
class Cancel:
    """Cancel every goal that may be under way, also when its acceptance is not known."""


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
