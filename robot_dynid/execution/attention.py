"""Attention of the program that watches a motion, and the time at which messages were true.

A program without a real-time kernel is held up now and then: frozen, swapped out, or one of many
on a busy machine. Messages wait meanwhile; it must not take its own lateness for silence.
"""

from __future__ import annotations

from collections import deque

LOOK = 0.01  # s: between two looks at least
EXCUSE = 0.5  # s after being held up in which messages of that time may still come in
REMEMBERED = 100  # times at which it was held up
DRIFT = 1e-3  # s per s by which two clocks may run apart
STEP = 1.0  # s by which a delay falls where a clock was set forward
BACK = 0.1  # s by which a stamp is before that of the last message where it was set back


class Attention:
    """Time in which there was a look every LOOK s at whether messages had come; times in s.

    Ages do not count the time of the last EXCUSE s, and before, in which the program was held up:
    silence is noticed later by that much, and as soon as ever when it was not held up.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._held_up: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)

    def begin(self, now: float) -> None:
        """Begin to look; nothing before is excused."""
        self._last = now
        self._held_up.clear()

    def look(self, now: float) -> float:
        """Note that all messages were taken in ``now``; return for how long nobody had looked.

        Being late by less than a LOOK is not being held up: that is 0.
        """
        gap = 0.0 if self._last is None else now - self._last
        self._last = now
        if gap <= 2.0 * LOOK:
            return 0.0
        self._held_up.append((now, gap - LOOK))
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
        if self._least is None or back > BACK or delay < self._least - STEP:
            self._least = delay  # the first one, or a clock was set
        else:
            self._least = min(delay, self._least + DRIFT * max(since, 0.0))
        return stamp + self._least
