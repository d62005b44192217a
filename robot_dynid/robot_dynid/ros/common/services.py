"""Services and actions of a node, in its executor or in separate threads.

After every wake-up the executor of rclpy checks every entity of a node, which takes longer than a
short computation; a long computation would block the node. So services of the model have threads
of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rclpy.action import ActionServer
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import (
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.ros.common.messages import sendable

#: requests that may wait; the default of ROS, 10, drops the rest of a burst
REQUESTS_QOS = QoSProfile(depth=1000)
CLOSING_PATIENCE = 1.0  # s for unfinished requests when it is closed

#: takes request and response, and may return the message of the response
Handler = Callable[[Any, Any], str | None]


def answered(handler: Handler, logger: Any) -> Callable[[Any, Any], Any]:
    """Return a service callback that lets ``handler(request, response)`` fill the response.

    The response has ``success`` and ``message``. Any error becomes its message, with ``success``
    false, so that no request ends the node.
    """
    def answer(request: Any, response: Any) -> Any:
        response.success = True
        try:
            response.message = handler(request, response) or response.message
        except DynIdError as error:
            response.success, response.message = False, str(error)
        except Exception as error:
            response.success = False
            response.message = f'unexpected {type(error).__name__}: {error}'
            logger.error(sendable(response.message))
        response.message = sendable(response.message)
        return response

    return answer


class DeferredActionServer(ActionServer):
    """An action server whose goals run outside the executor and are finished by name.

    A waiting coroutine would keep the executor of rclpy spinning at full load, and a waiting
    callback would block it; so ``execute`` only marks the goal as executing.
    """

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        """Do not run anything: the goal runs elsewhere."""

    def finish(self, goal_handle: Any, execute_callback: Any) -> None:
        """Let ``execute_callback`` set the final state and return the result."""
        super().notify_execute(goal_handle, execute_callback)


def conclude(handle: Any, succeeded: bool, cancelled: bool) -> None:
    """Bring a goal into its final state."""
    if succeeded:
        handle.succeed()
    elif cancelled:
        handle.canceled()
    else:
        handle.abort()


class Turns:
    """One runs while up to ``waiting`` others wait; ``what`` names the work in the plural."""

    def __init__(self, what: str, waiting: int) -> None:
        self._what, self._waiting = what, waiting
        self._places, self._work = threading.BoundedSemaphore(waiting + 1), threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, which lasts as long as the block. Raises UsageError if too many wait.
        """
        if not self._places.acquire(blocking=False):
            raise UsageError(f'a request for {self._what} is being computed and {self._waiting} '
                             'are waiting: call again when one of them is answered')
        try:
            with self._work:
                yield
        finally:
            self._places.release()


class ServiceThread:
    """Services of ``node`` in a lean node; up to ``threads`` requests are answered at once.

    Services with large answers are ``apart``, in a separate DDS participant. All messages of a
    participant share its buffers in shared memory (Fast DDS: half a megabyte): a large answer
    displaces small ones that their clients have not fetched yet, which then arrive up to three
    seconds later, when Fast DDS checks for losses.
    """

    def __init__(self, node: Node, name: str, threads: int = 1, apart: bool = False) -> None:
        self._apart: Context | None = None
        if apart:
            self._apart = Context()  # in the same domain and enclave
            self._apart.init(initialize_logging=False, domain_id=node.context.get_domain_id())
            node.context.on_shutdown(self._apart.try_shutdown)
        context = self._apart or node.context
        # Names are resolved by ``node``, so remapping it remaps them; nothing else is offered.
        self._owner = node
        self._node = Node(
            f'_{node.get_name()}_{name}', context=context,
            namespace=node.get_namespace(), use_global_arguments=False, enable_rosout=False,
            start_parameter_services=False, parameter_overrides=[
                Parameter('start_type_description_service', value=False)])
        self._group = ReentrantCallbackGroup()
        self._closed = threading.Event()
        self._executor: Any = (
            SingleThreadedExecutor(context=context) if threads == 1 else
            MultiThreadedExecutor(threads, context=context))
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)

    def offer(self, kind: Any, name: str, handler: Handler) -> None:
        """Offer ``~/name`` of the owner, answered by ``handler`` as `answered` does."""
        self._node.create_service(
            kind, self._owner.resolve_service_name(f'~/{name}'),
            answered(handler, self._owner.get_logger()), callback_group=self._group,
            qos_profile=REQUESTS_QOS)

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._closed.set()
        self._executor.shutdown(timeout_sec=CLOSING_PATIENCE)
        if self._thread.is_alive():
            self._thread.join(timeout=CLOSING_PATIENCE)
        self._node.destroy_node()
        if self._apart is not None:
            self._apart.try_shutdown()

    def _spin(self) -> None:
        while self._node.context.ok() and not self._closed.is_set():
            try:
                self._executor.spin()
            except ExternalShutdownException:
                return
            except Exception as error:
                # A request that cannot be taken must not end those after it. The context may go
                # at any time on an interrupt; that is no fault then.
                if self._node.context.ok() and not self._closed.is_set():
                    self._owner.get_logger().error(f'unexpected {type(error).__name__}: {error}')
