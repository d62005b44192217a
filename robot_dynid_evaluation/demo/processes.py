"""Processes of the demonstration, and a user of its nodes, who calls services and actions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from robot_dynid.errors import DynIdError
from robot_dynid.files import open_log
from robot_dynid.robot import locate

PACKAGE = 'robot_dynid'
PATIENCE = 5.0  # s for a node to end by itself


@dataclass(frozen=True, eq=False)
class Running:
    """A node's process and where its output goes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def begin(cls, name: str, words: Sequence[str], log: Path) -> Running:
        """Start a process by its command line."""
        with open_log(log) as output:
            return cls(name, subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True), log)

    def require_alive(self) -> None:
        """Raise DynIdError with its last words when the process has ended."""
        code = self.process.poll()
        if code is None:
            return
        words = self.log.read_text(encoding='utf-8', errors='replace').strip().splitlines()
        last = words[-1] if words else 'without a word'
        raise DynIdError(f'node {self.name} ended with exit code {code}: {last} (see {self.log})')


def nodes(
    parameters: Mapping[str, Mapping[str, Any]], logs: Path
) -> AbstractContextManager[list[Running]]:
    """Run one node per name with its parameter file and ``parameters`` while the block runs."""
    return processes({name: command(name, values) for name, values in parameters.items()}, logs)


@contextmanager
def processes(commands: Mapping[str, Sequence[str]], logs: Path) -> Iterator[list[Running]]:
    """Run one process per name by its command line while the block runs; logs go to a folder."""
    logs.mkdir(parents=True, exist_ok=True)
    running: list[Running] = []
    try:
        for name, words in commands.items():
            running.append(Running.begin(name, words, logs / f'{name}.log'))
        yield running
    finally:
        end(running)


def command(name: str, values: Mapping[str, Any]) -> list[str]:
    """Return the command line of a node: installed executable, parameter file, parameters."""
    words = [*executable(name), '--ros-args']
    file = locate.find(f'config/{name}.yaml')
    if file is not None:
        words += ['--params-file', str(file)]
    for key, value in values.items():
        words += ['-p', f'{key}:={value}']
    return words


def executable(name: str) -> list[str]:
    """Return the installed executable, or how to run the module where nothing is installed."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        path = Path(prefix) / 'lib' / PACKAGE / name
        if prefix and path.is_file():
            return [str(path)]
    return [sys.executable, '-m', f'{PACKAGE}.ros.{name}.node']


def end(running: list[Running]) -> None:
    """Interrupt all nodes, then terminate, then kill those that stay."""
    for step in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        left = [node for node in running if node.process.poll() is None]
        for node in left:
            node.process.send_signal(step)
        for node in left:
            with suppress(subprocess.TimeoutExpired):
                node.process.wait(PATIENCE)


APPEARANCE, ANSWER = 30.0, 10.0  # s
Feedback = Callable[[Any], None]


class Client:
    """Talks to the nodes of ``running`` and gives up as soon as one of them has ended."""

    def __init__(self, node: Any, executor: SingleThreadedExecutor,
                 running: Sequence[Running]) -> None:
        self.node = node
        self._executor = executor
        self._running = running
        self._services: dict[str, Any] = {}

    def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Spin until the condition holds; raises DynIdError after ``seconds``."""
        give_up = time.monotonic() + seconds
        while not condition():
            self._executor.spin_once(timeout_sec=0.05)
            for node in self._running:
                node.require_alive()
            if time.monotonic() > give_up:
                logs = ', '.join(str(node.log) for node in self._running)
                raise DynIdError(f'waited {seconds:g} s for {what}; see {logs}')

    def expect(self, services: Mapping[str, Any]) -> None:
        """Wait for services, given as name -> type; they can be called afterwards."""
        for name, kind in services.items():
            self._services[name] = self.node.create_client(kind, name)
        for name, service in self._services.items():
            self.wait(service.service_is_ready, APPEARANCE, f'service {name}')

    def call(self, name: str, request: Any) -> Any:
        """Call a service and return its response; raises DynIdError unless it succeeds."""
        future = self._services[name].call_async(request)
        self.wait(future.done, ANSWER, f'the answer of {name}')
        return _successful(name, future.result())

    def trigger(self, name: str) -> str:
        """Call a service without arguments and return its message."""
        message: str = self.call(name, Trigger.Request()).message
        return message

    def perform(self, action: tuple[Any, str], goal: Any, seconds: float,
                feedback: Feedback) -> Any:
        """Send a goal and return the result; raises DynIdError unless it succeeds."""
        kind, name = action
        client = ActionClient(self.node, kind, name)
        self.wait(client.server_is_ready, APPEARANCE, f'action {name}')
        sent = client.send_goal_async(goal, lambda message: feedback(message.feedback))
        self.wait(sent.done, ANSWER, f'the answer of {name}')
        handle = sent.result()
        if not handle.accepted:
            raise DynIdError(f'{name}: the goal was refused')
        future = handle.get_result_async()
        self.wait(future.done, seconds, f'the result of {name}')
        client.destroy()
        return _successful(name, future.result().result)


def _successful(name: str, answer: Any) -> Any:
    if not answer.success:
        raise DynIdError(f'{name}: {answer.message}')
    return answer
