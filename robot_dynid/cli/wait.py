"""The wait for a command: a bar with the remaining time on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

#: s after which a wait is one
DELAY = 1.0
#: part of the work below which its end cannot be told
LEAST = 0.03
FRAMES_PER_SECOND = 5.0


class Remaining:
    """Remaining time of work, from the part of it that is done; times in s on one clock."""

    def __init__(self, begin: float) -> None:
        self.begin, self.fraction, self._at = begin, 0.0, begin

    def note(self, fraction: float, now: float) -> None:
        """Take that ``fraction`` of the work, 0 to 1, is done ``now``."""
        self.fraction, self._at = min(max(fraction, 0.0), 1.0), now

    def left(self, now: float) -> float | None:
        """Return the time to the end as the speed so far gives it.

        None at the beginning, and where the work has taken longer since the latest news than that
        speed promised: nothing is known then.
        """
        if self.fraction < LEAST:
            return None
        left = (self._at - self.begin) / self.fraction - (now - self.begin)
        return left if left > 0.0 else None


class Wait:
    """Progress on standard error while the block runs, once that takes a second.

    ``console`` is called for where to show it, ``said`` prints a line. Nothing is shown of
    ``quiet`` waits. On a terminal a bar with stage, elapsed and remaining time, which is gone at
    the end; elsewhere one line at the end, none where the block raises an error.
    """

    def __init__(self, title: str, console: Callable[[], Console], said: Callable[[str], None],
                 quiet: bool = False) -> None:
        self._console, self._said, self._quiet = console, said, quiet
        self.shows = not quiet and sys.stderr.isatty()
        self._over = threading.Event()
        self._started = time.monotonic()
        self.begin(title)

    def begin(self, title: str) -> None:
        """Begin work that is called ``title``: what is left is counted anew."""
        self.title, self.stage = title, ''
        self._remaining = Remaining(time.monotonic())

    def move(self, stage: str, fraction: float) -> None:
        """Show that ``fraction`` of the work is done, and that ``stage`` of it is next."""
        self.stage = stage
        self._remaining.note(fraction, time.monotonic())

    @property
    def fraction(self) -> float:
        """Part of the work that is done, 0 to 1."""
        return self._remaining.fraction

    @property
    def times(self) -> str:
        """Elapsed and remaining time."""
        now = time.monotonic()
        left = self._remaining.left(now)
        passed = duration(now - self._started)
        return passed if left is None else f'{passed}, about {duration(left)} left'

    def __enter__(self) -> Wait:
        if self.shows:
            self._thread = threading.Thread(target=self._show, name='progress', daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._over.set()
        if self.shows:
            self._thread.join()
            return
        passed = time.monotonic() - self._started
        if kind is None and passed >= DELAY and not self._quiet:
            self._said(f'{self.title}: done in {duration(passed)}')

    def _show(self) -> None:
        """Draw the bar from time to time until the wait is over."""
        if self._over.wait(DELAY):
            return
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        def drawn() -> Table:
            row = Table.grid(padding=(0, 1))
            row.add_column(no_wrap=True, overflow='ellipsis')
            row.add_column()
            row.add_column(no_wrap=True)
            known = self.fraction >= LEAST
            words = f'{self.title}: {self.stage}' if self.stage else self.title
            row.add_row(words, ProgressBar(total=1.0, completed=self.fraction, width=24,
                                           pulse=not known), self.times)
            return row

        with suppress(OSError), Live(
                get_renderable=drawn, console=self._console(), transient=True,
                refresh_per_second=FRAMES_PER_SECOND, redirect_stdout=False,
                redirect_stderr=False):
            self._over.wait()


def duration(seconds: float) -> str:
    """Return a time in words: 8.2 s, 45 s, 3 min 20 s, 1 h 5 min."""
    whole = round(seconds)
    if whole < 10:
        return f'{seconds:.1f} s'
    if whole < 60:
        return f'{whole} s'
    if whole < 3600:
        return f'{whole // 60} min {whole % 60} s'
    return f'{whole // 3600} h {whole % 3600 // 60} min'
