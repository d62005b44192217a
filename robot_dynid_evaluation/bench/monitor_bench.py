"""Processor time of the identifier with and without its monitor, under the same joint states."""

from __future__ import annotations

import os
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
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from robot_dynid.errors import DynIdError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import encode_joint_states
from robot_dynid.types import FloatArray

PATIENCE = 60.0  # s for a node to appear
TOPICS = ('predicted_effort', 'effort_residual', 'external_torque')
NODES = {'with_monitor': 'true', 'without_monitor': 'false'}


@dataclass(frozen=True)
class Load:
    """Shares of one core of both nodes; ``received`` messages of each topic of ``sent`` states."""

    with_monitor: float
    without_monitor: float
    sent: int
    received: dict[str, int]


def monitor_load(model_file: str | Path, rate: float = 500.0, seconds: float = 20.0) -> Load:
    """Publish a motion to both nodes at ``rate`` [Hz] and listen to all topics of the monitor.

    Uses the ROS domain of the environment. Raises DynIdError when a node does not appear.
    """
    model = IdentifiedModel.load(model_file)
    messages = _messages(model, int(rate * seconds), rate)
    with _nodes(model_file) as processes, _client() as (node, executor):
        received = dict.fromkeys(TOPICS, 0)

        def count(topic: str) -> Any:
            return lambda _: received.__setitem__(topic, received[topic] + 1)

        for topic in TOPICS:
            node.create_subscription(
                JointState, f'/with_monitor/{topic}', count(topic), 1000, raw=True)
        publisher = node.create_publisher(JointState, 'joint_states', QoSProfile(depth=1000))
        end = time.monotonic() + PATIENCE
        while publisher.get_subscription_count() < len(NODES):
            if time.monotonic() > end:
                raise DynIdError('the nodes did not appear')
            executor.spin_once(timeout_sec=0.1)
        _publish(publisher, executor, messages[:int(rate)], rate)  # what is prepared once
        _drain(executor, received)
        received.update(dict.fromkeys(TOPICS, 0))
        before = {name: _processor(process.pid) for name, process in processes.items()}
        begin = time.monotonic()
        _publish(publisher, executor, messages[int(rate):], rate)
        passed = time.monotonic() - begin
        used = {name: (_processor(process.pid) - before[name]) / passed
                for name, process in processes.items()}
        _drain(executor, received)
    return Load(used['with_monitor'], used['without_monitor'], len(messages) - int(rate), received)


def _messages(model: IdentifiedModel, count: int, rate: float) -> list[bytes]:
    time_ = np.arange(count + int(rate)) / rate
    speed = np.linspace(1.0, 3.0, len(model.joints))
    phase = np.outer(time_, speed)
    q, qd, qdd = np.sin(phase), speed * np.cos(phase), -speed**2 * np.sin(phase)
    values: tuple[FloatArray, ...] = (q, qd, model.inverse(q, qd, qdd))
    stamps = 10**12 + np.round(1e9 * time_).astype(np.int64)
    return encode_joint_states(model.joints, stamps, values)


def _publish(publisher: Any, executor: Any, messages: list[bytes], rate: float) -> None:
    begin = time.monotonic()
    for k, message in enumerate(messages):
        publisher.publish(message)
        due = begin + (k + 1) / rate
        while (left := due - time.monotonic()) > 0.0:
            executor.spin_once(timeout_sec=left)


def _drain(executor: Any, received: dict[str, int]) -> None:
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


@contextmanager
def _nodes(model_file: str | Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    processes = {}
    try:
        for name, monitor in NODES.items():
            processes[name] = subprocess.Popen(
                [sys.executable, '-m', 'robot_dynid.ros.identifier.node', '--ros-args', '-r',
                 f'__node:={name}', '-p', f'model:={model_file}', '-p', f'monitor:={monitor}'],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield processes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for process in processes.values():
            process.wait(PATIENCE)


@contextmanager
def _client() -> Iterator[tuple[Any, SingleThreadedExecutor]]:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('monitor_bench', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, executor
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)
