"""Time of the path by the clock: where a controller is in its motion, and at what pace.

A controller at full speed is later in its motion by one second each second. One that scales the
speed (`speed_scaling_factor` of its state: a speed slider, a pause at the pendant) is later by
that factor. Older ones scale without a word, which shows in their progress from stamp to stamp.
"""

from __future__ import annotations

FULL = 1e-3  # difference from full pace that is none
JITTER = 0.05  # the same where it is measured, by stamps 10 ms apart


class PathTime:
    """Time of the path at any time of the clock, s, from what the controller said of it.

    ``pace`` is the path time per s, ``scaling`` the controller's time per s, ``slowest`` the
    smallest that was seen, ``known`` whether the controller said where it is since `begin`,
    ``settled`` whether its pace was the same the last two times.
    """

    def __init__(self) -> None:
        self.pace = self.scaling = self.slowest = 1.0
        self.begin(0.0, 0.0)

    def begin(self, earliest: float, latest: float) -> None:
        """Forget what was said: a motion began between two instants, s, scaled as before."""
        self.pace, self.known, self.settled = self.scaling, False, True
        self._earliest, self._begun = earliest, 0.5 * (earliest + latest)
        self._at, self._said = self._begun, 0.0
        self.restart(self._begun)

    def expect(self, scaling: float) -> None:
        """Take the controller's word for a motion of which it has not said where it is."""
        if not self.known:
            self.pace = self.scaling = scaling

    @property
    def lead(self) -> float:
        """Time, s, by which the controller may be further than is known: messages come late."""
        return max(self._begun - self._earliest, 0.0)

    def restart(self, now: float) -> None:
        """Count the time that is lost from ``now`` on, s."""
        self._lost, self._counted = 0.0, now

    def elapsed(self, now: float) -> float:
        """Return the time of the path ``now``, s."""
        return self._at - self._begun + self.pace * (now - self._at)

    def lost(self, now: float) -> float:
        """Return the time, s, that the motion takes longer so far for the scaling."""
        return self._lost + (1.0 - self.scaling) * max(now - self._counted, 0.0)

    def note(self, now: float, time: float, rate: float, scaling: float | None) -> None:
        """Note that the path was at ``time`` s ``now``, with ``rate`` s of it per scaled s.

        ``scaling`` is the controller's word, None without one. Messages come late, not early: at
        full pace the earliest is the best.
        """
        self._lost, self._counted = self.lost(now), max(now, self._counted)
        pace, begun = rate, now - time
        if scaling is not None:
            pace = rate * scaling
        elif self.known and now > self._at:
            pace = max(time - self._said, 0.0) / (now - self._at)
        if abs(pace - 1.0) <= (JITTER if scaling is None else FULL):
            pace = 1.0
        if self.known and scaling is not None and pace == self.pace == 1.0:
            begun = min(begun, self._begun)
        elif self.known:
            self._earliest += begun - self._begun
        self.settled = abs(pace - self.pace) <= JITTER
        self._begun, self._at, self._said = begun, now, time
        self.known, self.pace, self.scaling = True, pace, pace / rate if rate > 0.0 else 0.0
        self.slowest = min(self.slowest, self.scaling)
