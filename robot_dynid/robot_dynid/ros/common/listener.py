"""Subscriptions with a thread of their own, for topics with hundreds of messages per second.

For every message, an rclpy executor builds the set of all entities its node waits for, twice,
which costs several times as much as taking the message. This thread waits for its few topics only,
with a set that is built once, and takes all messages received before it waits again. Where nothing
is urgent it polls from time to time instead, which costs even less.

There are no event handlers for subscriptions: the middleware has one condition for all events of a
reader, so they would wake the executor at every message. A reliable subscription receives nothing
from a best-effort publisher, so topics that want every message are checked for publishers from
time to time. (The policy "best available" decides only once, and a driver may come later.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from robot_dynid.errors import DynIdError
from robot_dynid.ros.common.rclpy_compat import (
    NO_EVENTS,
    InvalidHandle,
    OutsideExecutor,
    SubscriptionWait,
    take,
)

LISTENER_TICK = 0.1  # s of silence after which the thread checks whether to end
WARNING_PERIOD = 1.0  # s between warnings of messages that cannot be read
CHECK_PERIOD = 0.25  # s between checks of the publishers of topics that want every message
ROUNDS_IN_TURN = 1000  # s of taking messages before other work

#: takes a serialized message and its information from the middleware
Callback = Callable[[bytes, Mapping[str, Any]], None]


@dataclass(eq=False)
class Inlet:
    """A subscription to a topic, and the callback for its messages.

    An ``adaptive`` one is as reliable as its publishers allow.
    """

    subscription: Any
    kind: Any
    callback: Callback
    qos: QoSProfile
    adaptive: bool

    @property
    def best_effort(self) -> bool:
        """Whether lost messages are not sent again."""
        return bool(self.qos.reliability == ReliabilityPolicy.BEST_EFFORT)


class Listener:
    """Passes serialized messages to callbacks in the order of arrival.

    Usage: ``subscribe`` to topics, then ``start``. Callbacks run one at a time, under ``lock``: no
    callback runs while another thread holds it. An error in one is logged, a DynIdError as a
    warning. ``looked`` is called, also under the lock, whenever all messages received were taken:
    every ``period`` s, or if that is 0 at every message and at least every ``tick`` s.
    """

    def __init__(self, node: Node, period: float = 0.0, tick: float = LISTENER_TICK,
                 looked: Callable[[], None] | None = None) -> None:
        self.lock = threading.Lock()
        self._node, self._period, self._looked = node, period, looked
        self._tick = round(tick * 1e9)
        self._group = OutsideExecutor()
        self._inlets: list[Inlet] = []
        self._ended, self._hurry = threading.Event(), threading.Event()
        self._changed = True  # subscriptions at the time the set was built
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

    def subscribe(self, kind: Any, topic: str, callback: Callback, qos: QoSProfile,
                  adaptive: bool = False) -> Inlet:
        """Pass messages of type ``kind`` on ``topic`` to ``callback``, from the next look on.

        An ``adaptive`` subscription is reliable, or best effort while a publisher is.
        """
        subscription = self._subscription(kind, topic, callback, qos)
        inlet = Inlet(subscription, kind, callback, qos, adaptive)
        self._inlets.append(inlet)
        self._changed = True
        return inlet

    def _subscription(self, kind: Any, topic: str, callback: Callback, qos: QoSProfile) -> Any:
        return self._node.create_subscription(
            kind, topic, callback, qos, callback_group=self._group, raw=True,
            event_callbacks=NO_EVENTS)

    def arrival(self, info: Mapping[str, Any]) -> float:
        """Return the steady-clock time [s] at which the message being passed on arrived.

        The middleware states it by the system clock, which may be set in between; then it is the
        time of the last look.
        """
        now, waited = time.monotonic(), 1e-9 * (time.time_ns() - info['received_timestamp'])
        return min(max(now - waited, self._last_look), now)

    def start(self) -> None:
        """Begin to listen; ends with node, context or main thread at the latest."""
        self._thread.start()
        self._node.context.on_shutdown(self._ended.set)

    def close(self) -> None:
        """Stop listening."""
        self._ended.set()
        self._hurry.set()
        if self._thread.is_alive():
            self._thread.join()

    def take(self) -> bool:
        """Pass on the next message of every topic; return whether there was one. Hold ``lock``."""
        return sum(self._take_one(inlet) for inlet in tuple(self._inlets)) > 0

    def _take_one(self, inlet: Inlet) -> bool:
        taken = take(inlet.subscription, inlet.kind)
        if taken is not None:
            self._guarded(inlet.callback, *taken)
        return taken is not None

    def _guarded(self, callback: Callable[..., None], *given: Any) -> None:
        try:
            callback(*given)
        except DynIdError as error:  # a fault of the message, not of this program
            self._node.get_logger().warning(str(error), throttle_duration_sec=WARNING_PERIOD)
        except Exception as error:  # the next messages must be received
            self._node.get_logger().error(f'unexpected {type(error).__name__}: {error}')

    def _run(self) -> None:
        context = self._node.context
        next_check = time.monotonic() + CHECK_PERIOD
        with ExitStack() as held:
            try:
                while context.ok() and not self._over():
                    if self._changed:
                        wait = SubscriptionWait(self._handles(held), context)
                    if not self._period:
                        wait(self._tick)
                    elif self._hurry.wait(self._period):
                        self._hurry.clear()
                    self._look()
                    if time.monotonic() > next_check:
                        self._adapt()
                        next_check = time.monotonic() + CHECK_PERIOD
            except InvalidHandle:
                return  # the node was destroyed
            except Exception:  # the context may go at any time on an interrupt
                if context.ok():
                    raise

    def _handles(self, held: ExitStack) -> list[Any]:
        """Return the handles of all subscriptions, which ``held`` keeps until the next ones."""
        self._changed = False
        held.close()
        handles = [inlet.subscription.handle for inlet in self._inlets]
        for handle in handles:
            held.enter_context(handle)
        return handles

    def _over(self) -> bool:
        return self._ended.is_set() or not threading.main_thread().is_alive()

    def _adapt(self) -> None:
        """Subscribe again where the reliability no longer suits the publishers."""
        for inlet in tuple(self._inlets):
            topic = inlet.subscription.topic_name
            offered = self._node.get_publishers_info_by_topic(topic) if inlet.adaptive else ()
            lossy = [one.node_name for one in offered
                     if one.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT]
            if offered and bool(lossy) != inlet.best_effort:
                self._replace(inlet, lossy)

    def _replace(self, inlet: Inlet, lossy: list[str]) -> None:
        """Subscribe as best effort if a node publishes so, else as reliable.

        Messages that arrive in between are lost and count as such by their numbers.
        """
        topic, qos = inlet.subscription.topic_name, copy(inlet.qos)
        qos.reliability = ReliabilityPolicy.BEST_EFFORT if lossy else ReliabilityPolicy.RELIABLE
        with self.lock:
            while self._take_one(inlet):
                pass
            self._node.destroy_subscription(inlet.subscription)
            inlet.subscription, inlet.qos = self._subscription(
                inlet.kind, topic, inlet.callback, qos), qos
            self._changed = True
        if lossy:
            self._node.get_logger().warning(
                f'{topic} is published as best effort (by {lossy[0]}), so lost messages are not '
                'sent again, but counted: make the publisher reliable if possible')

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock, after all messages received before were taken."""
        with self.lock:
            begun, rounds = time.monotonic(), 0
            while self.take() and rounds < ROUNDS_IN_TURN:
                rounds += 1
            if self._looked is not None:
                self._guarded(self._looked)
            self._last_look = begun
            yield

    def _look(self) -> None:
        """Take all messages received, and call ``looked``."""
        begun, some, rounds = time.monotonic(), True, 0
        while some and not self._over():
            rounds += 1
            with self.lock:
                some = self.take() and rounds < ROUNDS_IN_TURN
                if not some and self._looked is not None:
                    self._guarded(self._looked)
        self._last_look = begun
