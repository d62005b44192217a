"""Swings of a session, and how far they are expected to lead."""

from __future__ import annotations

from dataclasses import dataclass

#: relative deviation above which a parameter was not seen yet
SEEN = 10.0


@dataclass(frozen=True)
class SwingRow:
    """A swing of an adaptive sequence: joint ``moving``, where the others are ``locked`` [rad, m].

    ``centre``, ``amplitude`` [rad, m], ``frequency`` [Hz], ``periods`` at full amplitude and
    ``duration`` [s]; after it, of what is within reach, ``least_known`` has the
    ``largest_deviation``, relative, and ``missing`` parameters are not as accurate as asked for.
    """

    moving: str
    locked: dict[str, float]
    centre: float
    amplitude: float
    frequency: float
    periods: int
    duration: float
    largest_deviation: float
    least_known: str
    missing: int

    @property
    def seen(self) -> bool:
        """Whether all that is within reach has been seen after it."""
        return self.largest_deviation < SEEN

    @property
    def words(self) -> str:
        """The swing in words: who moves, how, and where the others are."""
        others = ', '.join(f'{joint} at {at:.2f}' for joint, at in self.locked.items())
        return (f"'{self.moving}' swings {self.periods} times by {self.amplitude:.2f} about "
                f'{self.centre:.2f} at {self.frequency:.2f} Hz, {others}')


@dataclass(frozen=True)
class Session:
    """Swings planned from what was known: whether the ``accuracy`` is ``met`` after them.

    ``unreachable`` are parameters that no session within the limits would know so well, ``why`` in
    words; ``later`` the swings that are expected after these.
    """

    accuracy: float
    met: bool
    swings: tuple[SwingRow, ...]
    unreachable: tuple[str, ...]
    why: str = ''
    later: tuple[SwingRow, ...] = ()

    @property
    def outlook(self) -> str:
        """Sentence about how far the swings lead, and what is expected after them."""
        now, end = self.swings[-1], (*self.swings, *self.later)[-1]
        text = f'the accuracy {self.accuracy:g} is met then'
        if now.missing:
            text = (f'{now.missing} parameters miss the accuracy {self.accuracy:g} then, the '
                    f'worst is {now.least_known}, '
                    + (f'known to {now.largest_deviation:.3g}' if now.seen else 'not seen yet'))
        if self.later:
            seconds = sum(row.duration for row in self.later)
            text += f'; {len(self.later)} more swings, {seconds:.0f} s, are expected to ' + (
                'meet it' if not end.missing else
                f'leave {end.missing}, the worst {end.least_known} to {end.largest_deviation:.3g}')
        return text + (f'; out of reach: {self.why}' if self.why else '')
