"""Nodes of the package: as processes of their own, and in the process of the test.

A process is stopped by its handle. In the process of the test messages are real, nothing is
started and nothing mocked; the test spins the executor itself, so nothing happens in a node but
what the test asks for.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

STOP_TIME = 60.0  # s a node may take to end on SIGINT
INTERRUPT_GAP = 0.02  # s


class NodeProcess:
    """A running node; ``output`` is what it wrote so far."""

    def __init__(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        pairs = [part for name, value in (parameters or {}).items()
                 for part in ('-p', f'{name}:={value}')]
        descriptor, path = tempfile.mkstemp(prefix=f'{name}_', suffix='.log')
        self._log = Path(path)
        self.process = subprocess.Popen(
            [sys.executable, '-m', f'robot_dynid.ros.{name}.node', '--ros-args', *pairs],
            stdout=descriptor, stderr=subprocess.STDOUT,
        )
        os.close(descriptor)

    @property
    def output(self) -> str:
        """Return everything written so far."""
        return self._log.read_text()

    def stop(self) -> int:
        """Interrupt the node, wait for its end and return its exit code."""
        for _ in range(2):  # as Ctrl-C under `ros2 launch`: from the terminal and from launch
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                time.sleep(INTERRUPT_GAP)
        try:
            return self.process.wait(STOP_TIME)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextmanager
def running(module: str, parameters: Mapping[str, Any] | None = None) -> Iterator[NodeProcess]:
    """Run a node while the block runs; it must end cleanly on SIGINT."""
    with ended(NodeProcess(module, parameters)) as node:
        yield node


@contextmanager
def ended(node: NodeProcess) -> Iterator[NodeProcess]:
    """Interrupt a node at the end of the block; it must end cleanly.

    What it said is written where the block fails.
    """
    try:
        yield node
    except BaseException:
        sys.stderr.write(node.output)
        raise
    finally:
        code = node.stop()
    assert code in (0, -signal.SIGKILL, -signal.SIGTERM), f'exit code {code}: {node.output}'
    assert 'Traceback' not in node.output, node.output


PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
SILENCE = 10.0  # s: as long is nothing lost on the way without being sent again


def destroy(*nodes: Any) -> None:
    """Destroy nodes with their executors and actions, while their context lives.

    Those that are collected after it take the process with them.
    """
    for node in nodes:
        if node.executor is not None:
            node.executor.shutdown()
        for waitable in list(node.waitables):
            if isinstance(waitable, (ActionClient, ActionServer)):
                waitable.destroy()
        node.destroy_node()
    gc.collect()


class Spinner:
    """An executor that spins only while a test waits."""

    def __init__(self, *nodes: Any) -> None:
        self._executor = SingleThreadedExecutor(context=nodes[0].context)
        for node in nodes:
            self._executor.add_node(node)

    def wait(self, condition: Callable[[], Any]) -> None:
        """Spin until the condition holds."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, 'waited in vain'
            self._executor.spin_once(timeout_sec=0.01)

    def answer(self, future: Any) -> Any:
        """Spin until there is an answer, and return it."""
        self.wait(future.done)
        return future.result()

    def accepted(self, client: ActionClient, goal: Any, **words: Any) -> Any:
        """Send a goal of this process to the node of another until it is answered.

        A server lets a goal go, without an answer, where it has not found within 0.1 s who reads
        its answers (rmw_fastrtps); a client finds the server first at times.
        """
        for _ in range(int(PATIENCE / SILENCE)):
            sent, end = client.send_goal_async(goal, **words), time.monotonic() + SILENCE
            while not sent.done() and time.monotonic() < end:
                self._executor.spin_once(timeout_sec=0.01)
            if sent.done():
                return sent.result()
        raise AssertionError('no answer to a goal')


@contextmanager
def made(kind: Callable[[], Any], **parameters: Any) -> Iterator[Any]:
    """Make a node with these parameters, as its `main` does, and end it with the block."""
    pairs = [part for name, value in parameters.items() for part in ('-p', f'{name}:={value}')]
    rclpy.init(args=['--ros-args', *pairs], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = kind()
        try:
            yield node
        finally:
            getattr(node, 'close', lambda: None)()
            destroy(node)
    finally:
        rclpy.shutdown()
