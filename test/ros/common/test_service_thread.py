"""Bursts of requests; large answers of one service beside small ones that are fetched late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from in_process import Spinner, destroy
from monitored import model_of
from std_srvs.srv import Trigger

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common.services import REQUESTS_QOS, ServiceThread
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


@pytest.mark.usefixtures('ros_domain')
def test_a_burst_of_requests_is_answered_whole() -> None:
    """As planners send them: all at once, and faster than one is computed."""
    rclpy.init()
    owner, user = (rclpy.create_node(name) for name in ('owner', 'user'))
    thread = ServiceThread(owner, 'burst')
    thread.offer(Trigger, 'compute', lambda *_: time.sleep(0.001))
    thread.start()
    client, spinner = user.create_client(Trigger, 'owner/compute', qos_profile=REQUESTS_QOS), \
        Spinner(user)
    spinner.wait(client.service_is_ready)
    spinner.answer(client.call_async(Trigger.Request()))
    burst = [client.call_async(Trigger.Request()) for _ in range(300)]
    spinner.wait(lambda: all(future.done() for future in burst))
    assert all(future.result().success for future in burst)
    thread.close()
    for node in (owner, user):
        destroy(node)
    rclpy.shutdown()
