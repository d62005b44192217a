"""Service round trips of the identifier against those of a bare echo, in one run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.serialization import deserialize_message, serialize_message

from robot_dynid.errors import DynIdError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.ros.common.messages import doubles
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_interfaces.srv import ComputeForwardDynamics

SERVERS = {'identifier': 'robot_dynid.ros.identifier.node',
           'echo': 'robot_dynid_evaluation.bench.echo_node'}
PATIENCE = 30.0  # s for a node to appear, or to answer
WARM_UP = 20  # calls of each size that are not counted
STARTING = 3.0  # s for which a node still loads kernels after its first answer


@dataclass(frozen=True)
class RoundTrip:
    """Round trips (calls,) [s] with ``states`` states per call, and what is in them by itself.

    ``messages``: request and response written and read once each; ``computing``: the accelerations
    in one thread. Both in the process of the client, turn by turn with the calls.
    """

    states: int
    identifier: FloatArray
    echo: FloatArray
    messages: FloatArray
    computing: FloatArray


def round_trips(
    model_file: str | Path, sizes: tuple[int, ...] = (1, 1000), calls: int = 300
) -> list[RoundTrip]:
    """Start both nodes, call them in turns, and return the times for every size.

    Uses the ROS domain of the environment. Raises DynIdError when a node does not answer.
    """
    model = IdentifiedModel.load(model_file)
    with _nodes(model_file), _clients() as (clients, executor), threads_at_most(1):
        time.sleep(STARTING)
        return [RoundTrip(size, **_times(_contenders(model, clients, executor, size), calls))
                for size in sizes]


def _contenders(
    model: IdentifiedModel, clients: dict[str, Any], executor: SingleThreadedExecutor, states: int
) -> dict[str, Callable[[], object]]:
    """Return the calls and computations to be timed, by the field of RoundTrip."""
    request = _request(model, states)
    motion = [np.frombuffer(field).reshape(states, -1)
              for field in (request.position, request.velocity, request.effort)]
    response = ComputeForwardDynamics.Response(acceleration=request.effort)

    def call(name: str) -> None:
        future = clients[name].call_async(request)
        executor.spin_until_future_complete(future, PATIENCE)
        if not future.done() or not future.result().success:
            raise DynIdError(f'node {name}: ' + (
                future.result().message if future.done() else 'no answer'))

    def messages() -> None:
        for message in (request, response):
            deserialize_message(serialize_message(message), type(message))

    return {**{name: partial(call, name) for name in SERVERS}, 'messages': messages,
            'computing': partial(model.accelerations, *motion)}


def _request(model: IdentifiedModel, states: int) -> Any:
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, states, len(model.joints)))
    request = ComputeForwardDynamics.Request()
    request.position, request.velocity = doubles(q), doubles(qd)
    request.effort = doubles(model.inverse(q, qd, qdd))
    return request


def _times(contenders: dict[str, Callable[[], object]], calls: int) -> dict[str, FloatArray]:
    """Return the seconds (calls,) of every contender, every other turn in the reverse order."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(WARM_UP + calls):
        for name in names if turn % 2 else names[::-1]:
            begin = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - begin)
    return {name: np.array(found[WARM_UP:]) for name, found in times.items()}


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
