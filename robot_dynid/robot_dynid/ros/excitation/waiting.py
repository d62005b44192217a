"""Coroutines that wait for conditions in a node whose only clock is its timer.

Where the node follows /clock, motions run while that passes as fast as real time, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.task import Future

from robot_dynid.errors import UsageError

OBSERVED = 1.0  # s
RATE_TOLERANCE = 0.1  # of the rate: what a busy machine adds or takes in that time


class Waits:
    """Conditions under wait; a timer of the node has to call `check`."""

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
        """Let those go on whose condition holds or whose time is up; all with ``release``."""
        now = time.monotonic()
        for entry in tuple(self._entries):
            condition, deadline, future = entry
            if release or now > deadline or condition():
                self._entries.remove(entry)
                future.set_result(None)


async def require_real_time(
    clock: Any, waits: Waits, steady: Callable[[], float] = time.monotonic
) -> None:
    """Return when ``clock``, that of the node, passes as fast as ``steady`` does.

    At once where the node does not follow /clock. Raises UsageError where it does and its rate is
    another: lead-in, pieces of a motion and every guard count real seconds, the controller does
    simulated ones.
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
    """Return in words that /clock passes ``rate`` times as fast as real time, '' where as fast."""
    if 1.0 - RATE_TOLERANCE <= rate <= 1.0 + RATE_TOLERANCE:
        return ''
    return (f'use_sim_time is true and /clock passes {rate:.2f} times as fast as real time, but '
            'lead-in, timeouts and guards of this node count real seconds: run the simulation at '
            'a real_time_factor of 1 (recordings may be made at any)')
