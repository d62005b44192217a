"""Clocks of an execution: when messages were true, and where a controller is in its motion.

A program without a real-time kernel is held up now and then: frozen, swapped out, or one of many
on a busy machine. Messages wait meanwhile; it must not take its own lateness for silence.

A controller at full speed is later in its motion by one second each second. One that scales the
speed (`speed_scaling_factor` of its state: a speed slider, a pause at the pendant) is later by
that factor. Older ones scale without a word, which shows in their progress from stamp to stamp.
"""

from __future__ import annotations

from collections import deque

CLOCK_LOOK = 0.01  # s: between two looks at least
EXCUSE = 0.5  # s after being held up in which messages of that time may still come in
HELD_UP = 100  # times at which it was held up that are remembered
DRIFT = 1e-3  # s per s by which two clocks may run apart
CLOCK_STEP = 1.0  # s by which a delay falls where a clock was set forward
STAMP_SETBACK = 0.1  # s by which a stamp is before that of the last message where it was set back
PACE_TOLERANCE = 1e-3  # difference from full pace that counts as none
PACE_JITTER = 0.05  # the same where it is measured, by stamps 10 ms apart


class Attention:
    """Time in which there was a look every CLOCK_LOOK s at whether messages had come; times in s.

    Ages do not count the time of the last EXCUSE s, and before, in which the program was held up:
    silence is noticed later by that much, and as soon as ever when it was not held up.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._held_up: deque[tuple[float, float]] = deque(maxlen=HELD_UP)

    def begin(self, now: float) -> None:
        """Begin to look; nothing before is excused."""
        self._last = now
        self._held_up.clear()

    def look(self, now: float) -> float:
        """Note that all messages were taken in ``now``; return for how long nobody had looked.

        Being late by less than a CLOCK_LOOK is not being held up: that is 0.
        """
        gap = 0.0 if self._last is None else now - self._last
        self._last = now
        if gap <= 2.0 * CLOCK_LOOK:
            return 0.0
        self._held_up.append((now, gap - CLOCK_LOOK))
        return gap

    def age(self, since: float, now: float) -> float:
        """Return the time since ``since`` without that in which it was held up."""
        lost = 0.0
        for end, length in reversed(self._held_up):
            if end <= max(since, now - EXCUSE):
                break
            lost += min(length, end - since)
        return now - since - lost


class StampClock:
    """Turns the stamps of one source into times of the receiver's clock, s.

    How the clocks differ is not known, so the least delay between stamp and arrival is taken for
    none. Stamps then tell when a message was true, however late it is delivered: messages that
    waited while the receiver was frozen are as old as they are.
    """

    def __init__(self) -> None:
        self._least: float | None = None
        self._latest = self._stamp = 0.0

    def time(self, arrival: float, stamp: float) -> float:
        """Return the time of a message that came at ``arrival``: by its stamp if it has one."""
        if stamp <= 0.0:
            return arrival
        delay, since, back = arrival - stamp, arrival - self._latest, self._stamp - stamp
        self._latest, self._stamp = arrival, stamp
        if self._least is None or back > STAMP_SETBACK or delay < self._least - CLOCK_STEP:
            self._least = delay  # the first one, or a clock was set
        else:
            self._least = min(delay, self._least + DRIFT * max(since, 0.0))
        return stamp + self._least


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
        if abs(pace - 1.0) <= (PACE_JITTER if scaling is None else PACE_TOLERANCE):
            pace = 1.0
        if self.known and scaling is not None and pace == self.pace == 1.0:
            begun = min(begun, self._begun)
        elif self.known:
            self._earliest += begun - self._begun
        self.settled = abs(pace - self.pace) <= PACE_JITTER
        self._begun, self._at, self._said = begun, now, time
        self.known, self.pace, self.scaling = True, pace, pace / rate if rate > 0.0 else 0.0
        self.slowest = min(self.slowest, self.scaling)
