"""A cell: simulated robot, excitation node and emergency stop as processes, each replaceable.

Each process is started afresh, so that it can be killed or frozen like any other.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool

from robot_dynid.errors import DynIdError
from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid_evaluation.demo.processes import Running, command, end
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

    def ready(self) -> Any:
        """Wait for the next message of the process; raises DynIdError when there is none."""
        if not self._pipe.poll(PATIENCE):
            raise DynIdError(f'a process gave no sign within {PATIENCE:g} s')
        return self._pipe.recv()

    def tell(self, what: Any) -> None:
        """Send something to the process."""
        self._pipe.send(what)

    def ask(self, question: str) -> Any:
        """Return the answer of the process to a question."""
        self.tell(question)
        return self.ready()

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
    with helper_node('emergency_stop_publisher') as (node, _):
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
    with helper_node('client') as (node, executor):
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


EXACT = {'position_step': 0.0, 'position_noise': 0.0, 'velocity_noise': 0.0}
RECORDINGS = 'recordings'  # folder of bags below that of the cell
#: short moves; everything that guards the motion is as the node comes
BRIEF = {'approach_scale': 0.8, 'first_pass_scale': 1.0, 'warm_up': 0, 'return_to_start': False,
         'emergency_stop_required': True}


def usual_nodes(folder: Path, robot: str, changes: Mapping[str, Any] | None = None
                ) -> dict[str, dict[str, Any]]:
    """Return simulated robot and excitation node with their parameters.

    ``changes`` are parameters of the excitation node beside BRIEF.
    """
    return {'simulated_robot': {'robot': robot, **EXACT},
            'excitation': {'robot': robot, 'recording_directory': folder / RECORDINGS,
                           'files_directory': folder, **BRIEF, **(changes or {})}}


class Cell:
    """Processes of one robot in ``namespace``, below ``folder``, none of them running at first.

    ``nodes`` are parameters of nodes of the package by the name of the node.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Mapping[str, Any]], namespace: str = ''
                 ) -> None:
        self.folder, self.namespace = folder, namespace
        self.simulated = 'simulated_robot' in nodes
        self._nodes = nodes
        self._running: dict[str, Running] = {}
        self._stop: Bystander | None = None

    @property
    def missing(self) -> list[str]:
        """Names of the nodes that do not run."""
        return [name for name in self._nodes if name not in self._running
                or self._running[name].process.poll() is not None]

    @property
    def emergency_stop(self) -> Bystander:
        """The publisher of the emergency stop, started when there is none."""
        if self._stop is None or not self._stop.alive:
            self._stop = Bystander(emergency_stop, f'{self.namespace}/emergency_stop')
            self._stop.ready()
        return self._stop

    def end_emergency_stop(self) -> None:
        """Kill the publisher of the emergency stop, if there is one."""
        if self._stop is not None:
            self._stop.kill()

    def start(self, name: str) -> None:
        """Start a node."""
        words = command(name, self._nodes[name])
        if self.namespace:
            words += ['-r', f'__ns:={self.namespace}']
        self._running[name] = Running.begin(name, words, self.folder / f'{name}.log')

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a node; after SIGKILL wait for its end."""
        process = self._running[name].process
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()

    def require_alive(self) -> None:
        """Raise DynIdError when a node has ended by itself."""
        for running in self._running.values():
            if running.process.poll() != -signal.SIGKILL:
                running.require_alive()

    def thaw(self) -> None:
        """Let every frozen node go on."""
        for running in self._running.values():
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGCONT)

    def discard_recordings(self) -> None:
        """Remove the bags of motions that were judged."""
        shutil.rmtree(self.folder / RECORDINGS, ignore_errors=True)

    def close(self) -> None:
        """End all processes."""
        self.thaw()
        end(list(self._running.values()))
        self.end_emergency_stop()
