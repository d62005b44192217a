"""ros/identifier/node.py: parameters and codes of the identifier, and the process its
identifications run in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from identifier_stage import PATIENCE, ROBOT

from robot_dynid.errors import UsageError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier import worker as worker_module
from robot_dynid.ros.identifier.identification import Code, Job, Outcome
from robot_dynid.ros.identifier.node import PARTS, Identifier, IdentifierParameters
from robot_dynid.ros.identifier.worker import WorkerProcess
from robot_dynid_interfaces.action import Identify


def test_codes_are_those_of_the_interface() -> None:
    for code in Code:
        assert getattr(Identify.Result, code.name) == code.value


@pytest.mark.parametrize(('values', 'words'), [
    ({'queue_depth': 10}, 'parameter queue_depth must be at least 1000, is 10'),
    ({'optional_topics': ('torque',)},
     "parameter optional_topics 'torque': choose one of motor_states"),
])
def test_wrong_parameters_are_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        IdentifierParameters(**values)


def test_parameter_file_holds_known_parameters(root: Path) -> None:
    text = (root / 'robot_dynid' / 'config' / 'identifier.yaml').read_text()
    given = yaml.safe_load(text)['/**']['ros__parameters']
    structs = (IdentifierParameters, *(part.parameters for part in PARTS.values()))
    known = {f.name: f.default for struct in structs for f in fields(struct)}
    assert {name: known[name] for name in given} == given, 'the file says the defaults'
    assert set(re.findall(r'^    (?:# )?(\w+):', text, re.MULTILINE)) == set(known)


def test_no_thread_outlives_a_start_that_fails(ros_domain: int, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    rclpy.init(args=['--ros-args', '-p', f'robot:={ROBOT}', '-p', 'model:=nowhere.yaml', '-p',
                     f'recording_directory:={tmp_path}'])
    try:
        with pytest.raises(UsageError, match=r'nowhere\.yaml'):
            Identifier()
        assert not set(threading.enumerate()) - before
    finally:
        rclpy.shutdown()


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    process = WorkerProcess()
    yield process
    process.close()


def there(pid: int) -> bool:
    """Return whether there is such a process."""
    return Path(f'/proc/{pid}').exists()


def kill(worker: WorkerProcess) -> None:
    """Kill the process as the kernel does when memory runs out, and wait until it is dead."""
    os.kill(worker.pid, signal.SIGKILL)
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)


def outcome(worker: WorkerProcess) -> Outcome:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        _, found = worker.news()
        if found is not None:
            return found
        time.sleep(0.01)
    raise AssertionError('no outcome')


def test_worker_that_dies_is_replaced(worker: WorkerProcess) -> None:
    job = Job(load_robot(ROBOT), ('nowhere.csv',))
    worker.submit(job)
    kill(worker)
    found = outcome(worker)
    assert found.code is Code.ABORTED
    assert 'the identification died (exit code -9' in found.message
    kill(worker)
    worker.submit(job)  # died while idle: this one goes to a new process
    if (found := outcome(worker)).code is Code.ABORTED:  # its end was seen only now
        worker.submit(job)
        found = outcome(worker)
    assert found.code is Code.NO_DATA


def test_worker_that_does_not_stop_is_replaced(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.submit(Job(load_robot(ROBOT), ('nowhere.csv',)))  # it still imports, and cannot hear
    monkeypatch.setattr(worker_module, 'CANCEL_PATIENCE', 0.0)
    worker.cancel()
    assert outcome(worker).code is Code.CANCELLED
    monkeypatch.undo()
    worker.submit(Job(load_robot(ROBOT), ('nowhere.csv',)))
    assert outcome(worker).code is Code.NO_DATA


def test_worker_that_still_imports_is_not_waited_for_at_the_end(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, kill = [], subprocess.Popen.kill
    monkeypatch.setattr(subprocess.Popen, 'kill', lambda self: (
        killed.append(self.pid), kill(self)))
    worker = WorkerProcess()
    assert there(worker.pid)
    worker.close()
    assert killed == [worker.pid], 'it would end by itself, in its own time'
    assert not there(worker.pid)
