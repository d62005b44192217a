"""Goals of an action of a running node, sent by a program that is no node itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from robot_dynid.errors import DynIdError

LOOK = 0.05  # s between looks


class NotAnswered(DynIdError):
    """The node does not answer."""


class ActionCaller:
    """Sends goals to an action; see `calling`. ``timeout`` [s] is the longest silence."""

    def __init__(self, client: Any, executor: Any, name: str, timeout: float) -> None:
        self._client, self._executor = client, executor
        self._name, self._timeout = name, timeout
        self._heard = 0.0

    def called(
        self, goal: Any, feedback: Callable[[Any], None] = lambda _: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Return the result of a goal; it is cancelled as soon as it is ``stopping``.

        ``feedback`` takes the feedback as it comes. Raises NotAnswered when the node is not there,
        or says nothing for the timeout.
        """
        def heard(message: Any) -> None:
            self._heard = time.monotonic()
            feedback(message.feedback)

        self._heard = time.monotonic()
        self._wait(self._client.server_is_ready, f'no action {self._name}')
        sent = self._client.send_goal_async(goal, heard)
        self._wait(sent.done, 'no answer')
        handle = sent.result()
        result, asked = handle.get_result_async(), False

        def ended() -> bool:
            nonlocal asked
            if stopping() and not asked:
                asked = True
                handle.cancel_goal_async()
            return bool(result.done())

        self._heard = time.monotonic()
        self._wait(ended, 'no result')
        return result.result().result

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            if time.monotonic() - self._heard > self._timeout:
                raise NotAnswered(
                    f'{what} within {self._timeout:g} s; does the excitation node run, in this '
                    'ROS_DOMAIN_ID, and is its name the one of --node?')
            self._executor.spin_once(timeout_sec=LOOK)


@contextmanager
def calling(kind: Any, name: str, timeout: float) -> Iterator[ActionCaller]:
    """Call the action ``name`` of the type ``kind`` while the block runs.

    ``timeout`` [s] is how long the node may be silent.
    """
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        own = rclpy.create_node('caller', context=context, enable_rosout=False,
                                start_parameter_services=False)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(own)
        client = ActionClient(own, kind, name)
        try:
            yield ActionCaller(client, executor, name, timeout)
        finally:
            executor.shutdown()
            client.destroy()
            own.destroy_node()
    finally:
        rclpy.shutdown(context=context)
