"""Clocks of an execution: age of messages, and progress of the controller along its motion.

Without a real-time kernel a program is delayed now and then: frozen, swapped out, or sharing a
busy machine. Messages wait meanwhile, and its own delay must not count as their silence.

A controller at full speed advances one second of motion per second. One that scales the speed
(`speed_scaling_factor` of its state: a speed slider, a pause at the pendant) advances by that
factor. Older controllers scale without reporting it, which shows in their progress from stamp to
stamp.
"""

from __future__ import annotations

from collections import deque

CLOCK_LOOK = 0.01  # s: shortest interval between two checks
EXCUSE = 0.5  # s after a delay in which delayed messages may still arrive
HELD_UP = 100  # number of delays that are stored
DRIFT = 1e-3  # s per s, largest drift between two clocks
STAMP_SETBACK = 0.1  # s, backward step of stamps that indicates a clock set back
PACE_TOLERANCE = 1e-3  # deviation from full pace that is ignored
PACE_JITTER = 0.05  # the same for a measured pace, by stamps 10 ms apart


class Attention:
    """Record of the program's own delays, from checks every CLOCK_LOOK s; times in s.

    Ages exclude delays of the last EXCUSE s and before, so silence is detected later by that much,
    and at once without delays.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._held_up: deque[tuple[float, float]] = deque(maxlen=HELD_UP)

    def begin(self, now: float) -> None:
        """Begin the record; earlier delays are not excused."""
        self._last = now
        self._held_up.clear()

    def look(self, now: float) -> float:
        """Record that all messages were processed ``now``; return the delay since the last check.

        Less than CLOCK_LOOK counts as 0.
        """
        gap = 0.0 if self._last is None else now - self._last
        self._last = now
        if gap <= 2.0 * CLOCK_LOOK:
            return 0.0
        self._held_up.append((now, gap - CLOCK_LOOK))
        return gap

    def age(self, since: float, now: float) -> float:
        """Return the time since ``since`` without the program's own delays."""
        lost = 0.0
        for end, length in reversed(self._held_up):
            if end <= max(since, now - EXCUSE):
                break
            lost += min(length, end - since)
        return now - since - lost


class StampClock:
    """Convert stamps of one source to the receiver's clock, s.

    The clock offset is unknown, so the smallest delay between stamp and arrival counts as zero.
    Stamps then give the time of measurement, however late a message is delivered.
    """

    def __init__(self) -> None:
        self._least: float | None = None
        self._latest = self._stamp = 0.0

    def time(self, arrival: float, stamp: float) -> float:
        """Return the measurement time of a message received at ``arrival``, by its stamp if any.
        """
        if stamp <= 0.0:
            return arrival
        delay, since, back = arrival - stamp, arrival - self._latest, self._stamp - stamp
        self._latest, self._stamp = arrival, stamp
        if self._least is None or back > STAMP_SETBACK:
            self._least = delay  # first message, or a clock was set back
        else:
            self._least = min(delay, self._least + DRIFT * max(since, 0.0))
        return stamp + self._least


class PathTime:
    """Path time as a function of clock time, s, from the reports of the controller.

    ``pace`` is path time per s, ``scaling`` controller time per s, ``slowest`` its smallest value,
    ``located``: the controller has reported its position since `begin`, ``settled``: its last two
    paces were equal.
    """

    def __init__(self) -> None:
        self.pace = self.scaling = self.slowest = 1.0
        self.begin(0.0, 0.0)

    def begin(self, earliest: float, latest: float) -> None:
        """Reset: a motion began between two instants, s, with the previous scaling."""
        self.pace, self.located, self.settled = self.scaling, False, True
        self._earliest, self._begun = earliest, 0.5 * (earliest + latest)
        self._at, self._reported = self._begun, 0.0
        self.restart(self._begun)

    def expect(self, scaling: float) -> None:
        """Set the reported scaling of a motion whose position is not reported yet."""
        if not self.located:
            self.pace = self.scaling = scaling

    @property
    def lead(self) -> float:
        """Time, s, by which the controller may be ahead of its last, possibly late, report."""
        return max(self._begun - self._earliest, 0.0)

    @property
    def reported_at(self) -> float:
        """Clock time, s, at which the last reported path time is taken to have been true."""
        return self._begun + self._reported

    def restart(self, now: float) -> None:
        """Restart the count of lost time at ``now``, s."""
        self._lost, self._counted = 0.0, now

    def elapsed(self, now: float) -> float:
        """Return the path time at ``now``, s."""
        return self._at - self._begun + self.pace * (now - self._at)

    def lost(self, now: float) -> float:
        """Return the time, s, lost to scaling so far."""
        return self._lost + (1.0 - self.scaling) * max(now - self._counted, 0.0)

    def note(self, now: float, time: float, rate: float, scaling: float | None) -> None:
        """Report path time ``time`` s at ``now``, with ``rate`` s of it per scaled s.

        ``scaling`` is the factor reported by the controller, or None. Messages are late, not
        early, so at full pace the earliest is the most accurate.
        """
        self._lost, self._counted = self.lost(now), max(now, self._counted)
        pace, begun = rate, now - time
        if scaling is not None:
            pace = rate * scaling
        elif self.located and now > self._at:
            pace = max(time - self._reported, 0.0) / (now - self._at)
        if abs(pace - 1.0) <= (PACE_JITTER if scaling is None else PACE_TOLERANCE):
            pace = 1.0
        if self.located and scaling is not None and pace == self.pace == 1.0:
            begun = min(begun, self._begun)
        elif self.located:
            self._earliest += begun - self._begun
        self.settled = abs(pace - self.pace) <= PACE_JITTER
        self._begun, self._at, self._reported = begun, now, time
        self.located, self.pace, self.scaling = True, pace, pace / rate if rate > 0.0 else 0.0
        self.slowest = min(self.slowest, self.scaling)
