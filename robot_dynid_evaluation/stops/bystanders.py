"""Processes around a robot that something may happen to: its emergency stop, a client, busy loops.

Each is a process of its own, started afresh, so that it can be killed or frozen like any other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Bool

from robot_dynid.errors import DynIdError
from robot_dynid_interfaces.action import Excite

PERIOD = 0.1  # s between messages of the emergency stop
PATIENCE = 60.0  # s for a process to be ready
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Bystander:
    """A process with a pipe; ``pid`` to send signals to."""

    def __init__(self, target: Any, *arguments: Any) -> None:
        context = multiprocessing.get_context('spawn')
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=target, args=(far, *arguments), daemon=True)
        self._process.start()
        far.close()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def ready(self) -> None:
        """Wait until the process says that it is; raises DynIdError when it does not."""
        if not self._pipe.poll(PATIENCE):
            raise DynIdError(f'a process gave no sign within {PATIENCE:g} s')
        self._pipe.recv()

    def tell(self, what: Any) -> None:
        """Send something to the process."""
        self._pipe.send(what)

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.kill()
        self._process.join()


def emergency_stop(pipe: Connection, topic: str) -> None:
    """Publish whether the emergency stop is pressed, periodically; told so by the pipe."""
    node = _node('emergency_stop_publisher')
    publisher = node.create_publisher(Bool, topic, LATCHED)
    pressed = False
    while not publisher.get_subscription_count():
        time.sleep(PERIOD)
    pipe.send('ready')
    while True:
        publisher.publish(Bool(data=pressed))
        if pipe.poll(PERIOD):
            pressed = pipe.recv()


def goal_of_its_own(pipe: Connection, action: str, trajectory: str) -> None:
    """Send a goal to the excitation node and wait for its end, until killed."""
    node = _node('client')
    executor = rclpy.executors.SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    excite = ActionClient(node, Excite, action)
    excite.wait_for_server(PATIENCE)
    sent = excite.send_goal_async(Excite.Goal(trajectory=trajectory))
    executor.spin_until_future_complete(sent, PATIENCE)
    pipe.send('sent')
    executor.spin_until_future_complete(sent.result().get_result_async())


def busy(pipe: Connection) -> None:
    """Do nothing, as fast as possible."""
    pipe.send('ready')
    while True:
        pass


class Load:
    """Busy loops that run only while the block of ``on`` does."""

    def __init__(self, count: int) -> None:
        self._loops = [Bystander(busy) for _ in range(count)]
        for loop in self._loops:
            loop.ready()
            loop.signal(signal.SIGSTOP)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Let the loops run while the block does."""
        self._all(signal.SIGCONT)
        try:
            yield
        finally:
            self._all(signal.SIGSTOP)

    def close(self) -> None:
        """End the loops."""
        for loop in self._loops:
            loop.kill()

    def _all(self, number: int) -> None:
        for loop in self._loops:
            loop.signal(number)


def _node(name: str) -> Any:
    context = rclpy.Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    return rclpy.create_node(name, context=context, start_parameter_services=False,
                             enable_rosout=False)
