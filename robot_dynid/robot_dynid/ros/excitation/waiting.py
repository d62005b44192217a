"""Coroutines that wait for conditions in a node whose only clock is its timer.

If the node follows /clock, motions are executed only while /clock passes as fast as real time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.task import Future

from robot_dynid.errors import UsageError

OBSERVED = 1.0  # s
RATE_TOLERANCE = 0.1  # tolerance of the rate, for a busy machine


class Waits:
    """Conditions waited for; a timer of the node has to call `check`."""

    def __init__(self) -> None:
        self._entries: list[tuple[Callable[[], bool], float, Future]] = []

    async def until(self, condition: Callable[[], bool], timeout: float = float('inf')) -> bool:
        """Return whether the condition holds, after ``timeout`` s or a release at the latest."""
        if not condition():
            future: Future = Future()
            self._entries.append((condition, time.monotonic() + timeout, future))
            await future
        return condition()

    def check(self, release: bool = False) -> None:
        """Resume the waits whose condition holds or whose time is up; all with ``release``."""
        now = time.monotonic()
        for entry in tuple(self._entries):
            condition, deadline, future = entry
            if release or now > deadline or condition():
                self._entries.remove(entry)
                future.set_result(None)


async def require_real_time(
    clock: Any, waits: Waits, steady: Callable[[], float] = time.monotonic
) -> None:
    """Return once ``clock``, that of the node, passes as fast as ``steady`` does.

    At once if the node does not follow /clock. Raises UsageError if it does and the rate differs:
    lead-in, pieces of a motion and every guard count real seconds, the controller counts simulated
    ones.
    """
    if not clock.ros_time_is_active:
        return
    began, first = steady(), clock.now().nanoseconds
    if not await waits.until(lambda: steady() >= began + OBSERVED, 2.0 * OBSERVED):
        return  # released, because the caller is asked to stop
    rate = (clock.now().nanoseconds - first) * 1e-9 / (steady() - began)
    fault = not_real_time(rate if first else 0.0)
    if fault:
        raise UsageError(fault)


def not_real_time(rate: float) -> str:
    """Return the sentence that /clock passes ``rate`` times as fast as real time, '' if equal."""
    if 1.0 - RATE_TOLERANCE <= rate <= 1.0 + RATE_TOLERANCE:
        return ''
    return (f'use_sim_time is true and /clock passes {rate:.2f} times as fast as real time, but '
            'lead-in, timeouts and guards of this node count real seconds: run the simulation at '
            'a real_time_factor of 1 (recordings may be made at any)')
