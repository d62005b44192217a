"""The examples that call the services of the identifier, and send goals to nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy')

from in_process import made
from ros_process import running

from robot_dynid.ros.identifier.node import Identifier


@pytest.mark.usefixtures('ros_domain')
def test_what_the_services_answer_is_what_the_model_says(arm_folder: Path) -> None:
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
    # the first stage may come before the goal is known, the last after its result
    assert 'success: True' in good.stdout and good.stderr.count('... ') > 2
    assert (arm_folder / 'sent.yaml').is_file()
    assert bad.returncode == 1 and 'nowhere.csv' in bad.stdout
    assert wrong.returncode == 1 and 'a goal of Identify has no file' in wrong.stderr
