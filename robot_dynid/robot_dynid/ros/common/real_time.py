"""Real-time scheduling, asked for as the controller manager does; quick to import.

Threads of one interpreter wait for each other, so all get it but those that compute for long.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

CONTROLLER = 50  # priority of the controller manager's control loop
WATCHING = 40


def ask_real_time(priority: int, but: tuple[str, ...] = ()) -> str:
    """Ask for real-time scheduling of this process, except its threads named like ``but``.

    Returns why there is none, and what to do; empty when it is granted.
    """
    left = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(but)}
    refused = _schedule('SCHED_FIFO', priority, left)
    return refused and (
        f'no real-time scheduling ({refused}): on a busy machine this node may be delayed and '
        'stop the robot without need; allow it with rtprio in /etc/security/limits.conf, as for the '
        'controller manager')


def give_up_real_time() -> None:
    """Schedule this process like any other again."""
    _schedule('SCHED_OTHER', 0, set())


def exempt_thread() -> None:
    """Schedule this thread like that of any other process."""
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
