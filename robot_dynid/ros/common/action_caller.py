"""Goals of an action of a running node, sent by a program that is no node itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rclpy.action import ActionClient

from robot_dynid.errors import DynIdError
from robot_dynid.ros.common.process import helper_node
from robot_dynid_interfaces.action import Check

CALL_LOOK = 0.05  # s between looks
LEVELS = ('OK', 'WARN', 'ERROR')


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
            self._executor.spin_once(timeout_sec=CALL_LOOK)


@contextmanager
def calling(kind: Any, name: str, timeout: float) -> Iterator[ActionCaller]:
    """Call the action ``name`` of the type ``kind`` while the block runs.

    ``timeout`` [s] is how long the node may be silent.
    """
    with helper_node('caller') as (node, executor):
        client = ActionClient(node, kind, name)
        try:
            yield ActionCaller(client, executor, name, timeout)
        finally:
            client.destroy()


def checklist(node: str, timeout: float) -> dict[str, Any]:
    """Return the checklist of an excitation ``node``: ok, message and items.

    Raises NotAnswered when it does not answer within ``timeout`` s.
    """
    with calling(Check, f'{node}/check', timeout) as caller:
        result = caller.called(Check.Goal())
    return {'ok': bool(result.success), 'message': result.message, 'items': [{
        'name': item.name, 'level': LEVELS[item.level[0]], 'message': item.message,
        'values': {pair.key: pair.value for pair in item.values}} for item in result.items]}
