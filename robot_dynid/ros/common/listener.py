"""Subscriptions with a thread of their own, for topics that come hundreds of times a second.

For every message an rclpy executor builds a set of all that its node waits for, twice, which costs
several times what taking the message does. This thread waits for its few topics only, with a set
that is built once, and takes all that has come in before it waits again.

Events of a subscription would wake the executor at every message, too: the middleware has one
condition for all events of a reader. So there are none, and publishers with an incompatible
quality of service are looked up while a topic is silent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from robot_dynid.ros.common.rclpy_compat import (
    NO_EVENTS,
    InvalidHandle,
    OutsideExecutor,
    SubscriptionWait,
    take,
)

PATIENCE = 100_000_000  # ns of silence after which the thread checks whether to end
CHECK_PERIOD = 1.0  # s between checks of the publishers of topics without messages

#: takes a serialized message and what the middleware says of it
Callback = Callable[[bytes, Mapping[str, Any]], None]


@dataclass(eq=False)
class _Inlet:
    """A subscription to a topic, where its messages go, and whether there were any."""

    subscription: Any
    topic: str
    kind: Any
    callback: Callback
    received: bool = False


class Listener:
    """Hands serialized messages to callbacks in the order in which they came.

    Usage: ``subscribe`` to all topics, then ``start``. Callbacks run one at a time, under
    ``lock``: whoever holds it knows that none is running. An error in one is logged.
    """

    def __init__(self, node: Node) -> None:
        self.lock = threading.Lock()
        self._node = node
        self._group = OutsideExecutor()
        self._inlets: list[_Inlet] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name='listener')

    def subscribe(self, kind: Any, topic: str, callback: Callback, qos: QoSProfile) -> None:
        """Hand messages of type ``kind`` on ``topic`` to ``callback``; ``qos`` is reliable."""
        subscription = self._node.create_subscription(
            kind, topic, callback, qos, callback_group=self._group, raw=True,
            event_callbacks=NO_EVENTS)
        self._inlets.append(_Inlet(subscription, subscription.topic_name, kind, callback))

    def start(self) -> None:
        """Begin to listen; ends with node, context, or main thread at the latest."""
        self._thread.start()
        self._node.context.on_shutdown(self._ended.set)

    def close(self) -> None:
        """Listen no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def take(self) -> bool:
        """Hand over the next message of every topic; whether there was one. Hold ``lock``."""
        some = False
        for inlet in self._inlets:
            found = take(inlet.subscription, inlet.kind)
            if found is not None:
                some = inlet.received = True
                try:
                    inlet.callback(*found)
                except Exception as error:  # the next messages must be received
                    self._node.get_logger().error(f'unexpected {type(error).__name__}: {error}')
        return some

    def _run(self) -> None:
        context = self._node.context
        handles = [inlet.subscription.handle for inlet in self._inlets]
        next_check = time.monotonic() + CHECK_PERIOD
        with ExitStack() as held:
            try:
                for handle in handles:
                    held.enter_context(handle)
                wait = SubscriptionWait(handles, context)
                while context.ok() and not self._over():
                    wait(PATIENCE)
                    self._take_all()
                    if time.monotonic() > next_check:
                        next_check += CHECK_PERIOD
                        self._warn_of_best_effort()
            except InvalidHandle:
                return  # the node was destroyed
            except Exception:  # the context may go at any time on an interrupt
                if context.ok():
                    raise

    def _over(self) -> bool:
        return self._ended.is_set() or not threading.main_thread().is_alive()

    def _warn_of_best_effort(self) -> None:
        """Warn of publishers whose messages do not come in since they are not reliable."""
        for inlet in self._inlets:
            if not inlet.received and any(
                    other.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
                    for other in self._node.get_publishers_info_by_topic(inlet.topic)):
                inlet.received = True  # warn once
                self._node.get_logger().warning(
                    f'{inlet.topic} is published as best effort and cannot be recorded without '
                    'losses: make its publisher reliable')

    def _take_all(self) -> None:
        some = True
        while some and not self._over():
            with self.lock:
                some = self.take()
