"""Send goals to an action of a running node, from a program that is not a node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rclpy.action import ActionClient

from robot_dynid.errors import Cancelled, DynIdError
from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid_interfaces.action import Check

CALL_LOOK = 0.05  # s between looks
STOP_ANSWER = 5.0  # s of silence after a stop request, during which the node reports progress
TOPIC_DEPTH = 100  # messages of a further topic that may wait
LEVELS = ('OK', 'WARN', 'ERROR')


class NotAnswered(DynIdError):
    """The node does not answer."""


class ActionCaller:
    """Sends goals to an action; see `calling`. ``timeout`` [s] is the longest silence allowed."""

    def __init__(self, node: Any, client: Any, executor: Any, where: tuple[str, float]) -> None:
        self._node, self._client, self._executor = node, client, executor
        self._name, self._timeout = where
        self._heard = 0.0

    def subscribe(self, kind: Any, topic: str, callback: Callable[[Any], None]) -> None:
        """Pass the messages of a topic to ``callback`` while it waits."""
        self._node.create_subscription(kind, topic, callback, TOPIC_DEPTH)

    def wake(self) -> None:
        """Check at once whether a stop was requested."""
        self._executor.wake()

    def called(
        self, goal: Any, feedback: Callable[[Any], None] = lambda _: None,
        stopping: Callable[[], bool] = lambda: False, silence: float | None = None,
    ) -> Any:
        """Return the result of a goal, which is cancelled as soon as ``stopping`` holds.

        ``feedback`` receives the feedback. Raises NotAnswered if the node is absent, or silent for
        the timeout, or for ``silence`` s while the goal is executed; Cancelled if a stop is
        requested before the goal is sent.
        """
        def heard(message: Any) -> None:
            self._heard = time.monotonic()
            feedback(message.feedback)

        self.wait(lambda: stopping() or self._client.server_is_ready(), f'no action {self._name}')
        if stopping():
            raise Cancelled('stopped before anything was sent')
        sent = self._client.send_goal_async(goal, heard)
        self.wait(sent.done, 'no answer')
        handle = sent.result()
        result, asked = handle.get_result_async(), False

        def ended() -> bool:
            nonlocal asked
            if stopping() and not asked:
                asked, self._heard = True, time.monotonic()
                handle.cancel_goal_async()
            return bool(result.done()) or (
                asked and time.monotonic() - self._heard > STOP_ANSWER)

        self.wait(ended, 'no feedback', silence)
        if not result.done():
            raise NotAnswered(
                f'{self._name} has not answered the request to stop for {STOP_ANSWER:g} s: check '
                'that the robot stands still')
        return result.result().result

    def wait(self, condition: Callable[[], bool], what: str, timeout: float | None = None) -> None:
        """Spin until the condition holds.

        Raises NotAnswered, which names ``what`` is missing, after a silence of the timeout.
        """
        longest = self._timeout if timeout is None else timeout
        self._heard = time.monotonic()
        while not condition():
            if time.monotonic() - self._heard > longest:
                raise NotAnswered(f'{what} within {longest:g} s: check that the node runs, in '
                                  'this ROS_DOMAIN_ID and under this name (--node, --namespace)')
            self._executor.spin_once(timeout_sec=CALL_LOOK)


@contextmanager
def calling(kind: Any, name: str, timeout: float) -> Iterator[ActionCaller]:
    """Call the action ``name`` of the type ``kind`` while the block runs.

    ``timeout`` [s] is how long the node may be silent.
    """
    with helper_node('caller') as (node, executor):
        client = ActionClient(node, kind, name)
        try:
            yield ActionCaller(node, client, executor, (name, timeout))
        finally:
            client.destroy()


def checklist(node: str, timeout: float) -> dict[str, Any]:
    """Return the checklist of an excitation ``node``: ok, message and items.

    Raises NotAnswered if it does not answer within ``timeout`` s.
    """
    with calling(Check, f'{node}/check', timeout) as caller:
        result = caller.called(Check.Goal())
    return {'ok': bool(result.success), 'message': result.message, 'items': [{
        'name': item.name, 'level': LEVELS[item.level[0]], 'message': item.message,
        'values': {pair.key: pair.value for pair in item.values}} for item in result.items]}
