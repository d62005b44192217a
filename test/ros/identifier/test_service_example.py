"""The example that calls the services of the identifier."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy')

from in_process import made

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
