"""Subscriptions with a thread of their own, for topics that come hundreds of times a second.

For every message an rclpy executor builds a set of all that its node waits for, twice, which costs
several times what taking the message does. This thread waits for its few topics only, with a set
that is built once, and takes all that has come in before it waits again; where nothing is urgent,
it does not wait for messages, but looks for them from time to time, which costs even less.

Events of a subscription would wake the executor at every message, too: the middleware has one
condition for all events of a reader. So there are none. Topics that want every message are looked
up instead: a reliable subscription hears no publisher that is best effort. The policy "best
available" of the middleware decides once, and a driver may come later.
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
CHECK_PERIOD = 0.25  # s between looks for publishers of topics that want every message
ROUNDS_IN_TURN = 1000  # of taking messages before whatever else is due

#: takes a serialized message and what the middleware says of it
Callback = Callable[[bytes, Mapping[str, Any]], None]


@dataclass(eq=False)
class Inlet:
    """A subscription to a topic, and where its messages go.

    One that is ``adaptive`` is as reliable as the publishers allow.
    """

    subscription: Any
    kind: Any
    callback: Callback
    qos: QoSProfile
    adaptive: bool

    @property
    def best_effort(self) -> bool:
        """Whether messages that are lost on the way are not sent again."""
        return bool(self.qos.reliability == ReliabilityPolicy.BEST_EFFORT)


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
        self._inlets: list[Inlet] = []
        self._ended, self._hurry = threading.Event(), threading.Event()
        self._changed = True  # what is subscribed, since the set was built
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
        """Hand messages of type ``kind`` on ``topic`` to ``callback``, from the next look on.

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
        return sum(self._take_one(inlet) for inlet in tuple(self._inlets)) > 0

    def _take_one(self, inlet: Inlet) -> bool:
        found = take(inlet.subscription, inlet.kind)
        if found is not None:
            self._guarded(inlet.callback, *found)
        return found is not None

    def _guarded(self, callback: Callable[..., None], *given: Any) -> None:
        try:
            callback(*given)
        except UnreadableMessage as error:
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
        """Subscribe anew where publishers have come or gone for which the reliability is wrong."""
        for inlet in tuple(self._inlets):
            topic = inlet.subscription.topic_name
            offered = self._node.get_publishers_info_by_topic(topic) if inlet.adaptive else ()
            lossy = [one.node_name for one in offered
                     if one.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT]
            if offered and bool(lossy) != inlet.best_effort:
                self._replace(inlet, lossy)

    def _replace(self, inlet: Inlet, lossy: list[str]) -> None:
        """Subscribe as best effort, since nodes publish so, or as reliable where there is none.

        What comes in between is lost, and shows in the numbers of the next message.
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
