"""examples/call_services.py: the examples that call the services of the identifier, and send goals
to nodes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy')

import numpy as np
import rclpy
import yaml
from nodes import destroy, made, running
from rclpy.qos import QoSProfile

from robot_dynid.ros.identifier.node import Identifier
from robot_dynid_interfaces.srv import ComputeInverseDynamics

ROOT = Path(__file__).resolve().parents[3]
BURST = 60  # requests at once: six times what a service of ROS keeps by default


@pytest.mark.usefixtures('ros_domain')
def test_call_services_example_agrees_with_the_model(arm_folder: Path) -> None:
    command = [sys.executable, 'examples/call_services.py']
    with made(Identifier, robot='my_arm.yaml', model='M.yaml'):  # its services have threads
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('at most') == 3
    found = re.findall(r'within ([\d.e-]+)', done.stdout)
    assert found and max(map(float, found)) < 1e-6


@pytest.mark.usefixtures('ros_domain')
def test_a_goal_is_sent_and_its_result_printed(arm_folder: Path) -> None:
    def sent(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, 'examples/send_goal.py', *words],
                              capture_output=True, text=True, check=False, timeout=200)

    with running('identifier', {'robot': 'my_arm.yaml'}):
        good = sent('/identifier/identify', 'Identify', '{files: [run.csv], out: sent.yaml, '
                    "recipe: '{friction: coulomb, cutoff: 10.0}'}")
        bad = sent('/identifier/identify', 'Identify', '{files: [nowhere.csv]}')
        wrong = sent('/identifier/identify', 'Identify', '{file: run.csv}')
    assert good.returncode == 0, good.stderr
    assert 'verdict: ' in good.stdout and 'model_file: ' in good.stdout
    assert len(good.stdout.splitlines()) <= 10 and not good.stderr, 'no progress in a pipe'
    assert (arm_folder / 'sent.yaml').is_file()
    assert bad.returncode == 1 and 'nowhere.csv' in bad.stdout
    assert wrong.returncode == 1 and 'a goal of Identify has no file' in wrong.stderr


@pytest.mark.usefixtures('ros_domain')
def test_a_path_gets_times_that_the_effort_limits_allow(arm_folder: Path) -> None:
    pytest.importorskip('toppra', reason='optional oracle is not installed')
    content = yaml.safe_load((arm_folder / 'my_arm.yaml').read_text())
    content['limits']['shoulder']['effort'] = 50.0
    (arm_folder / 'limited.yaml').write_text(yaml.safe_dump(content))
    (arm_folder / 'path.csv').write_text(
        'position.elbow,position.turn,position.shoulder\n0.5,-1,-1\n1.2,0,-0.3\n0.2,1,0.4\n'
        '-0.5,1.5,-0.5\n')

    def durations(robot: str) -> tuple[float, float]:
        done = subprocess.run(
            [sys.executable, 'examples/retime_path.py', robot, 'path.csv', 'timed.csv'],
            capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
        shares = [int(share) for share in re.findall(r'(\d+)%', done.stdout)]
        assert max(shares) <= 100, 'no limit is exceeded, with friction'
        shoulder, = re.findall(r'effort:.*shoulder (\d+)%', done.stdout)
        return float(done.stdout.split()[0]), int(shoulder)

    with made(Identifier, robot='my_arm.yaml', model='M.yaml'):
        fast, loose = durations('my_arm.yaml')
        slow, tight = durations('limited.yaml')
    assert loose < 70 < tight and slow > 1.1 * fast
    table = np.genfromtxt(arm_folder / 'timed.csv', delimiter=',', names=True, deletechars='')
    assert table['time'][-1] == pytest.approx(slow, abs=1e-3)
    assert table['position.turn'][[0, -1]] == pytest.approx([-1.0, 1.5])


@pytest.mark.usefixtures('ros_domain')
def test_a_burst_of_requests_is_answered_whole(arm_folder: Path) -> None:
    with made(Identifier, robot='my_arm.yaml', model='M.yaml'):
        node = rclpy.create_node('planner')
        client = node.create_client(ComputeInverseDynamics, '/identifier/inverse_dynamics',
                                    qos_profile=QoSProfile(depth=1000))
        assert client.wait_for_service(20.0)
        states = np.zeros(3 * 500)
        request = ComputeInverseDynamics.Request(
            position=states, velocity=states, acceleration=states)
        futures = [client.call_async(request) for _ in range(BURST)]
        end = time.monotonic() + 30.0
        while not all(future.done() for future in futures) and time.monotonic() < end:
            rclpy.spin_once(node, timeout_sec=0.1)
        answered = sum(future.done() and future.result().success for future in futures)
        destroy(node)
    assert answered == BURST


@pytest.mark.usefixtures('ros_domain')
def test_the_planner_in_cpp_compiles_and_asks(arm_folder: Path, tmp_path: Path) -> None:
    build = tmp_path / 'build'
    configured = subprocess.run(
        ['cmake', '-S', ROOT / 'examples' / 'planner_client', '-B', build],
        capture_output=True, text=True, check=False, timeout=100)
    if 'Could not find a package configuration file provided by "rclcpp"' in configured.stderr:
        pytest.skip('rclcpp is not installed')
    assert configured.returncode == 0, configured.stderr
    subprocess.run(['cmake', '--build', build], check=True, timeout=600)
    with made(Identifier, robot='my_arm.yaml', model='M.yaml'):
        done = subprocess.run([build / 'planner_client'], capture_output=True, text=True,
                              check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('in 10000 states') == 3
