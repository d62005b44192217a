"""ros/identifier/dynamics_services.py: large answers of one service beside small ones of another
that are fetched late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from monitored import model_of

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.dynamics_services import DynamicsServices

ROUNDS = 2
PROMPT = 0.5  # s; Fast DDS sends again what is lost within three, at any time
#: asks for what the first argument says at every line, and says how long the answer took since
#: then, or since it was woken
CLIENT = """
import array, os, signal, sys, time, rclpy
from robot_dynid_interfaces.srv import ComputeForwardDynamics, ComputeRollout
rclpy.init()
small = sys.argv[1] == 'forward_dynamics'
kind = ComputeForwardDynamics if small else ComputeRollout
motions, steps = (1, 1) if small else (256, 200)
still, effort = (array.array('d', bytes(8 * 6 * motions * count)) for count in (1, steps))
request = kind.Request(position=still, velocity=still, effort=effort)
if not small:
    request.dt = 1e-3
node = rclpy.create_node('client')
client = node.create_client(kind, f'/server/{sys.argv[1]}')

def ask(stops):
    future = client.call_async(request)
    if stops:
        os.kill(os.getpid(), signal.SIGSTOP)
    begin = time.monotonic()
    rclpy.spin_until_future_complete(node, future, timeout_sec=20.0)
    assert future.result().success, future.result().message
    return time.monotonic() - begin

assert client.wait_for_service(20.0)
time.sleep(0.5)  # for the server to find its client
ask(False)
print('ready', flush=True)
while sys.stdin.readline():
    print(ask(small), flush=True)
"""


@contextmanager
def client(service: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client which has had a first answer."""
    with subprocess.Popen([sys.executable, '-c', CLIENT, service], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write('\n')
    process.stdin.flush()


@pytest.mark.ros
def test_a_rollout_pushes_out_no_answer_that_a_client_has_not_fetched(
    ros_domain: int, settled: None
) -> None:
    """Clients of a busy computer are late: here one sleeps until the rollout is answered."""
    context, model, waits = rclpy.Context(), model_of(load_robot('ur10e')), []
    rclpy.init(context=context)
    server = rclpy.create_node('server', context=context)
    services = DynamicsServices(server, lambda: model)
    try:
        with client('forward_dynamics') as late, client('rollout') as large:
            assert line(late) == line(large) == 'ready\n'
            for _ in range(ROUNDS):
                tell(late)
                os.waitpid(late.pid, os.WUNTRACED)
                tell(large)
                float(line(large))
                os.kill(late.pid, signal.SIGCONT)
                waits.append(float(line(late)))
    finally:
        services.close()
        server.destroy_node()
        rclpy.shutdown(context=context)
    assert max(waits) < PROMPT
