"""Turns at work that only one may do at a time: a few wait, more are refused at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from robot_dynid.errors import UsageError


class Turns:
    """One works, ``waiting`` others wait for their turn; ``what`` names the work in the plural."""

    def __init__(self, what: str, waiting: int) -> None:
        self._what, self._waiting = what, waiting
        self._places, self._work = BoundedSemaphore(waiting + 1), Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, which lasts as long as the block. Raises UsageError if too many do."""
        if not self._places.acquire(blocking=False):
            raise UsageError(f'one of the {self._what} is being computed and {self._waiting} '
                             'wait: call again when one of them is answered')
        try:
            with self._work:
                yield
        finally:
            self._places.release()
