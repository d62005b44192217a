"""Service round trips of the identifier against those of a bare echo, in one run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor

from robot_dynid.errors import DynIdError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.ros.common.convert import numbers
from robot_dynid_interfaces.srv import ComputeForwardDynamics

SERVERS = {'identifier': 'robot_dynid.ros.identifier.node',
           'echo': 'robot_dynid_evaluation.bench.echo_node'}
PATIENCE = 30.0  # s for a node to appear, or to answer
WARM_UP = 20  # calls that are not counted


@dataclass(frozen=True)
class RoundTrip:
    """Median round trips in s with ``states`` states per call; ratio = identifier / echo."""

    states: int
    identifier: float
    echo: float

    @property
    def ratio(self) -> float:
        """Time of the identifier over that of the echo."""
        return self.identifier / self.echo


def round_trips(
    model_file: str | Path, sizes: tuple[int, ...] = (1, 1000), calls: int = 300
) -> list[RoundTrip]:
    """Start both nodes, call them in turns, and return the medians for every size.

    Uses the ROS domain of the environment. Raises DynIdError when a node does not answer.
    """
    model = IdentifiedModel.load(model_file)
    with _nodes(model_file), _clients() as (clients, executor):
        return [
            RoundTrip(size, *_medians(clients, executor, _request(model, size), calls))
            for size in sizes
        ]


def _request(model: IdentifiedModel, states: int) -> Any:
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, states, len(model.joints)))
    request = ComputeForwardDynamics.Request()
    request.position, request.velocity = numbers(q), numbers(qd)
    request.effort = numbers(model.inverse(q, qd, qdd))
    return request


def _medians(
    clients: dict[str, Any], executor: SingleThreadedExecutor, request: Any, calls: int
) -> tuple[float, ...]:
    """Return the median round trip of every client, in the order of SERVERS."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    names = list(clients)
    for turn in range(WARM_UP + calls):
        for name in names if turn % 2 else names[::-1]:
            begin = time.perf_counter()
            future = clients[name].call_async(request)
            executor.spin_until_future_complete(future, PATIENCE)
            if not future.done() or not future.result().success:
                raise DynIdError(f'node {name}: ' + (
                    future.result().message if future.done() else 'no answer'))
            times[name].append(time.perf_counter() - begin)
    return tuple(float(np.median(times[name][WARM_UP:])) for name in SERVERS)


@contextmanager
def _nodes(model_file: str | Path) -> Iterator[None]:
    """Run both servers while the block runs."""
    arguments = {'identifier': ['--ros-args', '-p', f'model:={model_file}'], 'echo': []}
    processes = []
    try:
        for name, module in SERVERS.items():
            processes.append(subprocess.Popen(
                [sys.executable, '-m', module, *arguments[name]],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            process.wait(PATIENCE)


@contextmanager
def _clients() -> Iterator[tuple[dict[str, Any], SingleThreadedExecutor]]:
    """Yield a connected client of each server, and the executor of both."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('round_trips', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        clients = {name: node.create_client(ComputeForwardDynamics, f'/{name}/forward_dynamics')
                   for name in SERVERS}
        for name, client in clients.items():
            if not client.wait_for_service(PATIENCE):
                raise DynIdError(f'node {name} did not appear within {PATIENCE:g} s')
        yield clients, executor
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)
