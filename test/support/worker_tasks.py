"""Tasks for workers in processes of their own, which find them by the name of this module."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from robot_dynid.threads import thread_count


@dataclass(frozen=True)
class KilledOnce:
    """Doubles a number; the worker that is given ``fatal`` first is killed, as by the system.

    With ``always`` every one is.
    """

    folder: Path
    fatal: int
    always: bool = False

    def __call__(self, number: int) -> int:
        mark = self.folder / 'killed'
        if number == self.fatal and (self.always or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number


def slow_at_first(number: int) -> int:
    """Return a number, small ones later than large ones."""
    time.sleep(0.05 * max(0, 3 - number))
    return number


def refused(number: int) -> int:
    """Raise ValueError, with the number, for odd ones; the later ones at once."""
    time.sleep(0.1 if number == 1 else 0.0)
    if number % 2:
        raise ValueError(f'{number} is odd')
    return number


def threads(_: int) -> int:
    """Return the number of threads that a call uses here."""
    return thread_count()


def own_process(seconds: float) -> int:
    """Return the number of the process, after a while."""
    time.sleep(seconds)
    return os.getpid()
