"""Runs of a short excitation on a busy machine: how many end by a guard though all is well.

``python test/support/false_trips.py RUNS LOOPS`` prints how the runs ended beside so many loops
that keep a processor busy; all parameters of the guards are the defaults.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from excitation_client import ROBOT, Client
from ros_process import NodeProcess

from robot_dynid_evaluation.ros_domain import claim_domain

NODE = {'robot': ROBOT, 'approach_scale': 0.6, 'first_pass_scale': 1.0, 'warm_up': 0}
EXCITATION = '{duration: 3.0, harmonics: 3, scale: 0.6, starts: 1, iterations: 10}'
LOOP = 'while True: pass'


def loops(count: int) -> list[subprocess.Popen[bytes]]:
    """Start so many processes that keep a processor busy."""
    return [subprocess.Popen([sys.executable, '-c', LOOP]) for _ in range(count)]


def runs(count: int, busy: int, **changes: Any) -> list[tuple[int, str]]:
    """Return code and text of every run; ``changes`` are parameters of the node."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        robot = NodeProcess('simulated_robot', {'robot': ROBOT})
        stack.callback(robot.process.kill)
        node = NodeProcess('excitation', {**NODE, 'recording_directory': Path(folder), **changes})
        stack.callback(node.process.kill)
        client = Client()
        client.wait(client.controller_seen)
        client.wait_for_rest()
        identifier = client.excite(EXCITATION, dry_run=True).plan
        for loop in loops(busy):
            stack.callback(loop.kill)
        ended = []
        for _ in range(count):
            result = client.excite('', trajectory=identifier)
            ended.append((result.code, result.message))
            sys.stdout.write(f'{result.code} {result.message}\n')
            sys.stdout.flush()
            client.wait_for_rest()
        slips = robot.output.count('stamps jump')
        sys.stdout.write(f'{slips} times the simulated robot was late\n')
        return ended


if __name__ == '__main__':
    domain, lock = claim_domain()
    os.environ['ROS_DOMAIN_ID'] = str(domain)
    with lock:
        found = Counter(code for code, _ in runs(*(int(n) for n in sys.argv[1:3])))
    sys.stdout.write(f'{dict(found)}\n')
