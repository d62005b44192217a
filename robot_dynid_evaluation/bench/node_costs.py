"""Costs of the identifier as a process: service round trips, processor time of its monitor.

The round trips are held against those of node `echo`, which answers a forward-dynamics request
with its effort and computes nothing; this module run as a program is that node.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from robot_dynid.errors import DynIdError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import encode_joint_states
from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid.ros.common.messages import doubles
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.demo.processes import executable, processes
from robot_dynid_interfaces.srv import ComputeForwardDynamics

SERVERS = ('identifier', 'echo')
PATIENCE = 60.0  # s for a node to appear, or to answer
WARM_UP = 20  # calls of each size that are not counted
TOPICS = ('predicted_effort', 'effort_residual', 'external_torque')
MONITORED, UNMONITORED = 'with_monitor', 'without_monitor'


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
    model_file: str | Path, sizes: Sequence[int] = (1, 1000), calls: int = 300
) -> list[RoundTrip]:
    """Start both nodes, call them in turns, and return the times for every size.

    Uses the ROS domain of the environment. Raises DynIdError when a node does not answer.
    """
    model = IdentifiedModel.load(model_file)
    words = {'identifier': _identifier('identifier', model_file),
             'echo': [sys.executable, '-m', __name__]}
    with TemporaryDirectory() as logs, processes(words, Path(logs)), \
            helper_node('round_trips') as (node, executor), threads_at_most(1):
        clients = {name: node.create_client(ComputeForwardDynamics, f'/{name}/forward_dynamics')
                   for name in SERVERS}
        for name, client in clients.items():
            if not client.wait_for_service(PATIENCE):
                raise DynIdError(f'node {name} did not appear within {PATIENCE:g} s')
        return [RoundTrip(size, **_times(_contenders(model, clients, executor, size), calls))
                for size in sizes]


def _identifier(name: str, model_file: str | Path, *more: str) -> list[str]:
    return [*executable('identifier'), '--ros-args', '-r', f'__node:={name}', '-p',
            f'model:={model_file}', *more]


def _contenders(
    model: IdentifiedModel, clients: Mapping[str, Any], executor: SingleThreadedExecutor,
    states: int,
) -> dict[str, Callable[[], object]]:
    """Return the calls and computations to be timed, by the field of RoundTrip."""
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, states, len(model.joints)))
    effort = model.inverse(q, qd, qdd)
    request = ComputeForwardDynamics.Request(
        position=doubles(q), velocity=doubles(qd), effort=doubles(effort))
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
            'computing': partial(model.accelerations, q, qd, effort)}


def _times(contenders: Mapping[str, Callable[[], object]], calls: int) -> dict[str, FloatArray]:
    """Return the seconds (calls,) of every contender, every other turn in the reverse order."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(WARM_UP + calls):
        for name in names if turn % 2 else names[::-1]:
            begin = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - begin)
    return {name: np.array(seconds[WARM_UP:]) for name, seconds in times.items()}


@dataclass(frozen=True)
class Load:
    """Shares of one core of both nodes; ``received`` messages of each topic of ``sent`` states."""

    with_monitor: float
    without_monitor: float
    sent: int
    received: dict[str, int]


def monitor_load(model_file: str | Path, rate: float = 500.0, seconds: float = 20.0) -> Load:
    """Publish a motion to the identifier with and without its monitor, and hear its topics.

    ``rate`` [Hz] of the joint states, under which both nodes run side by side. Uses the ROS domain
    of the environment. Raises DynIdError when a node does not appear.
    """
    model = IdentifiedModel.load(model_file)
    messages, first = _motion(model, int(rate * seconds), rate), int(rate)
    words = {name: _identifier(name, model_file, '-p', f'monitor:={monitor}')
             for name, monitor in ((MONITORED, 'true'), (UNMONITORED, 'false'))}
    with TemporaryDirectory() as logs, processes(words, Path(logs)) as running, \
            helper_node('monitor_load') as (node, executor):
        received = dict.fromkeys(TOPICS, 0)

        def count(topic: str, _: object) -> None:
            received[topic] += 1

        for topic in TOPICS:
            node.create_subscription(
                JointState, f'/{MONITORED}/{topic}', partial(count, topic), 1000, raw=True)
        publisher = node.create_publisher(JointState, 'joint_states', QoSProfile(depth=1000))
        end = time.monotonic() + PATIENCE
        while publisher.get_subscription_count() < len(words):
            if time.monotonic() > end:
                raise DynIdError('the nodes did not appear')
            executor.spin_once(timeout_sec=0.1)
        _publish(publisher, executor, messages[:first], rate)  # what is prepared once
        _drain(executor, received)
        received.update(dict.fromkeys(TOPICS, 0))
        before = [_processor(one.process.pid) for one in running]
        begin = time.monotonic()
        _publish(publisher, executor, messages[first:], rate)
        passed = time.monotonic() - begin
        shares = {one.name: (_processor(one.process.pid) - used) / passed
                  for one, used in zip(running, before, strict=True)}
        _drain(executor, received)
    return Load(**shares, sent=len(messages) - first, received=received)


def _motion(model: IdentifiedModel, count: int, rate: float) -> list[bytes]:
    """Return joint states of sines, ``count`` of them and those of a second before."""
    instants = np.arange(count + int(rate)) / rate
    speed = np.linspace(1.0, 3.0, len(model.joints))
    phase = np.outer(instants, speed)
    q, qd, qdd = np.sin(phase), speed * np.cos(phase), -speed**2 * np.sin(phase)
    stamps = 10**12 + np.round(1e9 * instants).astype(np.int64)
    return encode_joint_states(model.joints, stamps, (q, qd, model.inverse(q, qd, qdd)))


def _publish(publisher: Any, executor: Any, messages: list[bytes], rate: float) -> None:
    begin = time.monotonic()
    for k, message in enumerate(messages):
        publisher.publish(message)
        due = begin + (k + 1) / rate
        while (left := due - time.monotonic()) > 0.0:
            executor.spin_once(timeout_sec=left)


def _drain(executor: Any, received: Mapping[str, int]) -> None:
    """Take what is on the way until nothing more comes."""
    since, last = time.monotonic(), 0
    while time.monotonic() < since + 1.0:
        executor.spin_once(timeout_sec=0.05)
        if sum(received.values()) > last:
            since, last = time.monotonic(), sum(received.values())


def _processor(pid: int) -> float:
    """Return the processor time [s] a process has used so far, all its threads (Linux)."""
    fields = Path(f'/proc/{pid}/stat').read_text('ascii').rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def _echo(request: Any, response: Any) -> Any:
    """Answer with as many numbers as a forward dynamics would."""
    response.acceleration, response.success = request.effort, True
    return response


if __name__ == '__main__':
    with suppress(KeyboardInterrupt, ExternalShutdownException), \
            helper_node('echo') as (server, spinner):
        server.create_service(ComputeForwardDynamics, '~/forward_dynamics', _echo)
        spinner.spin()
