"""An action server for goals that run outside the executor."""

from __future__ import annotations

from typing import Any

from rclpy.action import ActionServer


class DeferredActionServer(ActionServer):
    """An action server whose goals run elsewhere and are finished by name.

    A coroutine that waits would keep the executor of rclpy spinning at full load, and a callback
    that waits would block it; so ``execute`` only marks the goal as executing.
    """

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        """Do not run anything: the goal runs elsewhere."""

    def finish(self, goal_handle: Any, execute_callback: Any) -> None:
        """Let ``execute_callback`` set the final state and return the result."""
        super().notify_execute(goal_handle, execute_callback)
