"""Real-time scheduling, requested as by the controller manager; quick to import.

Threads of one interpreter wait for each other, so all get it except those that compute for long.
They also wait while the interpreter looks for garbage among all its objects, 75 ms in a node with
the libraries it needs: longer than a controller takes to switch between two motions.
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import suppress

CONTROLLER = 50  # priority of the controller manager's control loop
WATCHING = 40


def ask_real_time(priority: int, but: tuple[str, ...] = ()) -> str:
    """Request real-time scheduling of this process, except its threads named like ``but``.

    Returns why it was refused and what to do; empty if it was granted.
    """
    left = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(but)}
    refused = _schedule('SCHED_FIFO', priority, left)
    return refused and (
        f'no real-time scheduling ({refused}): on a busy machine this node may be delayed and '
        'stop the robot without need; allow it with rtprio in /etc/security/limits.conf, as for '
        'the controller manager')


def shorten_collections() -> None:
    """Collect garbage now, and exclude the remaining objects from later collections.

    Call it while nothing moves: it takes as long as the collections it prevents.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def give_up_real_time() -> None:
    """Return this process to normal scheduling."""
    _schedule('SCHED_OTHER', 0, set())


def exempt_thread() -> None:
    """Return this thread to normal scheduling."""
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _schedule(policy: str, priority: int, left: set[int | None]) -> str:
    try:
        for thread in map(int, os.listdir('/proc/self/task')):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                if thread not in left:
                    os.sched_setscheduler(
                        thread, getattr(os, policy), os.sched_param(priority))
    except (OSError, AttributeError) as error:  # not permitted, or another system
        return str(error)
    return ''
