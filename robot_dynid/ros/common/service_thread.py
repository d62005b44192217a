"""Services with an executor and threads of their own, beside those of the node they belong to.

The executor of rclpy looks at every entity of a node after every wake-up, which would take longer
than a short computation; and a long one keeps nothing else of the node waiting.

Services with large answers are ``apart``, in a participant of DDS of their own. All that one
participant sends shares its buffers in shared memory (Fast DDS: half a megabyte): a large answer
pushes out small ones that their clients have not fetched yet, which then come up to three seconds
later, when Fast DDS looks for what was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import (
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from robot_dynid.ros.common.answers import Handler, answered

PATIENCE = 1.0  # s for requests under way when it is closed


class ServiceThread:
    """Services of ``node`` in a lean node; up to ``threads`` requests are answered at once.

    ``require`` is called before every answer; the DynIdError it raises is the answer then.
    ``apart``: see the module.
    """

    def __init__(self, node: Node, name: str, threads: int = 1,
                 require: Callable[[], None] = lambda: None, apart: bool = False) -> None:
        self._require = require
        self._apart = _context_beside(node.context) if apart else None
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
        def required(request: Any, response: Any) -> None:
            self._require()
            handler(request, response)

        self._node.create_service(
            kind, self._owner.resolve_service_name(f'~/{name}'),
            answered(required, self._owner.get_logger()), callback_group=self._group)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._closed.set()
        self._executor.shutdown(timeout_sec=PATIENCE)
        if self._thread.is_alive():
            self._thread.join(timeout=PATIENCE)
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


def _context_beside(context: Context) -> Context:
    """Return a context in the domain of ``context``, which ends with it.

    It gets the words of the process, as ``rclpy.init`` does, so that it is in the same enclave.
    """
    own = Context()
    own.init(initialize_logging=False, domain_id=context.get_domain_id())
    context.on_shutdown(own.try_shutdown)
    return own
