"""Coroutines that wait for conditions in a node whose only clock is its timer."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.task import Future


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
