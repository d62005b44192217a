"""cli/excite.py: `robot-dynid excite` and `stop` with a running node, and the key that stops the
robot."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from excitation_stage import SHORT, Stage

from robot_dynid.cli.main import main
from robot_dynid.ros.excitation.remote import Status

pytestmark = pytest.mark.ros
FIRST = 300.0  # s: a loaded machine is slow, a broken node never answers
#: what stands at a terminal has it as its own, in a session of its own
COMMAND = [sys.executable, '-c', 'import os, sys, fcntl, termios\n'
           'if os.isatty(0): os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n'
           'from robot_dynid.cli.main import main; sys.exit(main())']
LASTING = ['excite', '--timeout', str(FIRST), '--json', '--options',
           '{duration: 60, harmonics: 20, scale: 0.6, starts: 1, iterations: 1}']
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def stage(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp('bags')
    made = Stage(folder, files_directory=folder)
    made.with_robot()
    yield made
    made.close()
    assert 'Traceback' not in made.node.output, made.node.output


@contextmanager
def at_a_terminal(words: list[str]) -> Iterator[tuple[Any, int]]:
    """Run the command with the keys of a terminal; its process, and the other end of that."""
    master, slave = pty.openpty()
    program = subprocess.Popen(
        [*COMMAND, *words], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(slave)
    try:
        yield program, master
    finally:
        program.kill()
        program.communicate()
        os.close(master)


def wait_until_moving(stage: Stage, program: Any) -> None:
    stage.client.wait(lambda: program.poll() is not None or stage.client.speed > 0.2, FIRST)
    assert program.poll() is None, program.communicate()


def test_a_plan_is_shown_and_then_executed_as_it_was_shown(stage: Stage, capsys: Capture) -> None:
    asked = ['excite', '--robot', 'planar_3r', '--options', SHORT, '--timeout', str(FIRST),
             '--json']
    assert main([*asked, '--dry-run']) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown['ok'] and shown['plan'].startswith('dry-run-') and not shown['recording']
    assert not list(stage.folder.iterdir())
    assert main(['excite', shown['plan'], '--timeout', str(FIRST), '--json']) == 0
    said = capsys.readouterr()
    done = json.loads(said.out)
    assert done['code'] == 'SUCCESS' and not done['stopped']
    assert [Path(done['recording'])] == list(stage.folder.iterdir())
    # without a terminal: a line per segment, and the one that says how to stop
    lines = said.err.splitlines()
    assert lines[0] == '/excitation: Ctrl-C stops the robot'
    assert [line for line in lines if line in ('move_to_start', 'excitation')] == [
        'move_to_start', 'excitation']


def test_enter_brings_the_robot_to_rest(stage: Stage) -> None:
    client = stage.client
    with at_a_terminal(LASTING) as (program, master):
        wait_until_moving(stage, program)
        os.write(master, b'\n')
        client.comes_to_rest()
        out, err = program.communicate(timeout=FIRST)
    result = json.loads(out)
    assert program.returncode == 1, err
    assert (result['code'], result['stopped']) == ('CANCELLED', True)
    assert 'along the path, the robot holds' in result['message']


def test_stop_ends_what_another_client_began(stage: Stage, capsys: Capture) -> None:
    client = stage.client
    with at_a_terminal(LASTING) as (program, _):
        wait_until_moving(stage, program)
        began = time.monotonic()
        done = subprocess.run([*COMMAND, 'stop', '--json'], capture_output=True, text=True,
                              check=False)
        took = time.monotonic() - began
        client.spin(0.1)
        assert client.rested > 0.0, 'it returned before the robot was at rest'
        out, _ = program.communicate(timeout=FIRST)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found['code'] == 'CANCELLED', done.stderr
    assert 'the robot holds' in found['message'] and found['seconds'] < took
    assert json.loads(out)['code'] == 'CANCELLED' and program.returncode == 1
    assert main(['stop']) == 1
    assert '/excitation executes nothing' in capsys.readouterr().err


def test_a_node_of_another_robot_moves_nothing(stage: Stage, capsys: Capture) -> None:
    stage.client.wait_for_rest()
    stage.client.asked = stage.client.clock
    assert main(['excite', '--robot', 'seven_axis', '--timeout', str(FIRST)]) == 2
    assert '/excitation moves planar_3r, not seven_axis' in capsys.readouterr().err
    stage.client.stayed()


@pytest.mark.parametrize(('words', 'said'), [
    (['excite', 'T.yaml'], 'no action /nobody/excite within 0.3 s: check that the node runs'),
    (['excite', 'T.yaml', '--robot', 'planar_3r'], 'no diagnostics of /nobody'),
    (['stop'], 'no action /nobody/excite within 0.3 s: check that the node runs'),
])
def test_a_node_that_is_not_there_is_named(
    words: list[str], said: str, ros_domain: int, capsys: Capture
) -> None:
    assert main([*words, '--node', 'nobody', '--timeout', '0.3']) == 1
    assert said in capsys.readouterr().err


def test_guards_come_from_the_diagnostics_of_the_node_the_nearest_first() -> None:
    status = Status('/cell/excitation')
    values = [KeyValue(key=f'{name} [part of its limit]', value=value)
              for name, value in (('effort of a', '0.2'), ('effort of b', '0.6'))]
    for name in ('/excitation: execution', '/cell/excitation: execution'):
        status.note(DiagnosticArray(status=[DiagnosticStatus(
            name=name, hardware_id=name, values=[KeyValue(key='age', value='1'), *values])]))
        assert status.robot in ('', '/cell/excitation: execution')
    assert status.guards == (('effort of b', 0.6), ('effort of a', 0.2))
