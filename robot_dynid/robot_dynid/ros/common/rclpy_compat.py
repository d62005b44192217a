"""Undocumented parts of rclpy, and parts that moved between distributions.

Written for Humble to Kilted; a test fails if another version changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.executors import Executor, ShutdownException, TimeoutException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

#: raised by a destroyed entity
InvalidHandle = getattr(rclpy_implementation, 'InvalidHandle', RuntimeError)
NO_EVENTS = SubscriptionEventCallbacks(use_default_callbacks=False)


class OutsideExecutor(MutuallyExclusiveCallbackGroup):
    """Hides subscriptions from the executor of their node."""

    def can_execute(self, entity: Any) -> bool:
        """Return False: a thread of its own takes the messages."""
        return False


class SubscriptionWait:
    """Waits for messages of a few subscriptions, with a set that is built once."""

    def __init__(self, handles: Sequence[Any], context: Any) -> None:
        self._handles = handles
        self._set = rclpy_implementation.WaitSet(
            len(handles), 0, 0, 0, 0, 0, context.handle)

    def __call__(self, timeout: int) -> None:
        """Wait for a message, at most ``timeout`` [ns]."""
        self._set.clear_entities()
        for handle in self._handles:
            self._set.add_subscription(handle)
        self._set.wait(timeout)


def take(subscription: Any, kind: Any) -> tuple[bytes, dict[str, Any]] | None:
    """Return the next serialized message and its information, None without one."""
    received: tuple[bytes, dict[str, Any]] | None = subscription.handle.take_message(kind, True)
    return received


def parameter_overrides(node: Node) -> dict[str, Any]:
    """Return the values given to a node by name: parameter files, -p, constructor.

    An empty list has the value None there.
    """
    return {name: given.value for name, given in node._parameter_overrides.items()}


def spin_once(executor: Executor, turn: Callable[[], AbstractContextManager[None]],
              timeout: float) -> None:
    """Wait at most ``timeout`` s for work of the executor, and do it when it is its ``turn``.

    Raises what a callback raises, and ExternalShutdownException.
    """
    with suppress(TimeoutException, ShutdownException):
        handler, _, _ = executor.wait_for_ready_callbacks(timeout_sec=timeout)
        with turn():
            handler()
            handler.result()
