"""Subscriptions with a thread of their own, for topics that come hundreds of times a second.

For every message an rclpy executor builds a set of all that its node waits for, twice, which costs
several times what taking the message does. This thread waits for its few topics only, with a set
that is built once, and takes all that has come in before it waits again; where nothing is urgent,
it does not wait for messages, but looks for them from time to time, which costs even less.

Events of a subscription would wake the executor at every message, too: the middleware has one
condition for all events of a reader. So there are none, and publishers with an incompatible
quality of service are looked up while a topic is silent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from robot_dynid.ros.common.messages import UnreadableMessage
from robot_dynid.ros.common.rclpy_compat import (
    NO_EVENTS,
    InvalidHandle,
    OutsideExecutor,
    SubscriptionWait,
    take,
)

LISTENER_TICK = 0.1  # s of silence after which the thread checks whether to end
WARNING_PERIOD = 1.0  # s between warnings of messages that cannot be read
CHECK_PERIOD = 1.0  # s between checks of the publishers of topics without messages
ROUNDS_IN_TURN = 1000  # of taking messages before whatever else is due

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

    Usage: ``subscribe`` to topics, then ``start``. Callbacks run one at a time, under
    ``lock``: whoever holds it knows that none is running. An error in one is logged.
    ``looked`` is called, under the lock, too, whenever all that has come in was taken: every
    ``period`` s, or where that is 0 at every message and at least every ``tick`` s.
    """

    def __init__(self, node: Node, period: float = 0.0, tick: float = LISTENER_TICK,
                 looked: Callable[[], None] | None = None) -> None:
        self.lock = threading.Lock()
        self._node, self._period, self._looked = node, period, looked
        self._tick = round(tick * 1e9)
        self._group = OutsideExecutor()
        self._inlets: list[_Inlet] = []
        self._ended, self._hurry = threading.Event(), threading.Event()
        self._last_look = time.monotonic()
        self._thread = threading.Thread(target=self._run, name='listener')

    @property
    def period(self) -> float:
        """Time between two looks, s; 0: at every message."""
        return self._period

    @period.setter
    def period(self, period: float) -> None:
        if period != self._period:
            self._period = period
            self._hurry.set()

    def subscribe(self, kind: Any, topic: str, callback: Callback, qos: QoSProfile) -> None:
        """Hand messages of type ``kind`` on ``topic`` to ``callback``, from the next look on."""
        subscription = self._node.create_subscription(
            kind, topic, callback, qos, callback_group=self._group, raw=True,
            event_callbacks=NO_EVENTS)
        every = qos.reliability == ReliabilityPolicy.BEST_EFFORT  # such come from any publisher
        self._inlets.append(_Inlet(
            subscription, subscription.topic_name, kind, callback, received=every))

    def arrival(self, info: Mapping[str, Any]) -> float:
        """Return the time s of the steady clock at which a message being handed over came in.

        The middleware says so by the clock of the day, which may be set meanwhile; what had come
        in before the look before was taken then.
        """
        now, waited = time.monotonic(), 1e-9 * (time.time_ns() - info['received_timestamp'])
        return min(max(now - waited, self._last_look), now)

    def start(self) -> None:
        """Begin to listen; ends with node, context, or main thread at the latest."""
        self._thread.start()
        self._node.context.on_shutdown(self._ended.set)

    def close(self) -> None:
        """Listen no more."""
        self._ended.set()
        self._hurry.set()
        if self._thread.is_alive():
            self._thread.join()

    def take(self) -> bool:
        """Hand over the next message of every topic; whether there was one. Hold ``lock``."""
        some = False
        for inlet in tuple(self._inlets):
            found = take(inlet.subscription, inlet.kind)
            if found is not None:
                some = inlet.received = True
                self._guarded(inlet.callback, *found)
        return some

    def _guarded(self, callback: Callable[..., None], *given: Any) -> None:
        try:
            callback(*given)
        except UnreadableMessage as error:
            self._node.get_logger().warning(str(error), throttle_duration_sec=WARNING_PERIOD)
        except Exception as error:  # the next messages must be received
            self._node.get_logger().error(f'unexpected {type(error).__name__}: {error}')

    def _run(self) -> None:
        context, handles = self._node.context, list[Any]()
        next_check = time.monotonic() + CHECK_PERIOD
        with ExitStack() as held:
            try:
                while context.ok() and not self._over():
                    if len(handles) < len(self._inlets):
                        new = [inlet.subscription.handle for inlet in self._inlets[len(handles):]]
                        for handle in new:
                            held.enter_context(handle)
                        handles += new
                        wait = SubscriptionWait(handles, context)
                    if not self._period:
                        wait(self._tick)
                    elif self._hurry.wait(self._period):
                        self._hurry.clear()
                    self._look()
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

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock, with all messages taken that came in before."""
        with self.lock:
            begun, rounds = time.monotonic(), 0
            while self.take() and rounds < ROUNDS_IN_TURN:
                rounds += 1
            if self._looked is not None:
                self._guarded(self._looked)
            self._last_look = begun
            yield

    def _look(self) -> None:
        """Take all that has come in, and call ``looked``."""
        begun, some, rounds = time.monotonic(), True, 0
        while some and not self._over():
            rounds += 1
            with self.lock:
                some = self.take() and rounds < ROUNDS_IN_TURN
                if not some and self._looked is not None:
                    self._guarded(self._looked)
        self._last_look = begun
