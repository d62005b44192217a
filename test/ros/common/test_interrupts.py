"""ros/common/process.py: nodes that ROS refuses to start say why in a line; signals end them at
once, at any moment."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from robot_dynid.ros.common import process

PATIENCE = 60.0  # s until a node has started on a busy machine
ESCALATION = 5.0  # s after which `ros2 launch` sends SIGTERM, and after as many SIGKILL


@pytest.mark.parametrize(('words', 'told'), [
    (['--log-level', 'loud'], "Couldn't parse log level: '--log-level loud'"),
    (['--params-file', 'FILE'], 'Cannot have a value before ros__parameters at line 1'),
    (['--params-file', 'nowhere.yaml'], 'nowhere.yaml'),
])
def test_arguments_that_ros_cannot_read_are_told_without_a_traceback(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, said = tmp_path / 'flat.yaml', []
    file.write_text('robot: seven_axis\n')

    class Logger:
        def fatal(self, text: str) -> None:
            said.append(text)

    monkeypatch.setattr(process, 'get_logger', lambda name: Logger())
    monkeypatch.setattr(process, 'unfinished_ports', list)  # those of this machine
    monkeypatch.setattr(process.signal, 'signal', lambda number, handler: None)
    with pytest.raises(SystemExit) as ended:
        process.init(['--ros-args', *(str(file) if word == 'FILE' else word for word in words)])
    assert ended.value.code == 2
    (line,) = said
    assert told in line
    assert '/src/rcl/' not in line
    assert line.endswith('below it ros__parameters, below that parameters')


def test_a_port_that_would_hold_up_the_node_is_told_before(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for such a port tells nothing any more."""
    said: list[str] = []

    class Logger:
        def warning(self, text: str) -> None:
            said.append(text)

    monkeypatch.setattr(process, 'get_logger', lambda name: Logger())
    monkeypatch.setattr(process.signal, 'signal', lambda number, handler: None)
    monkeypatch.setattr(process.rclpy, 'init', lambda **given: said.append('rclpy'))
    monkeypatch.setattr(process, 'unfinished_ports', lambda: [Path('/dev/shm/fastdds_port1')])
    process.init([])
    assert 'rm /dev/shm/fastdds_port1)' in said[0] and said[1:] == ['rclpy']


def segments(process: subprocess.Popen[bytes]) -> list[Path]:
    """Return the files of shared memory that a process which is alone in its domain has made."""
    maps = Path(f'/proc/{process.pid}/maps').read_text()
    return [Path(name) for name in set(re.findall(r'/dev/shm/fastdds_[0-9a-f]{16}', maps))]


@pytest.mark.ros
@pytest.mark.parametrize(('name', 'robot', 'words', 'number'), [
    ('excitation', 'planar_3r', 'ready: ', signal.SIGINT),
    ('excitation', 'robot_description', 'waiting for the URDF', signal.SIGTERM),
    ('identifier', 'planar_3r', 'ready: ', signal.SIGTERM),
    ('identifier', 'robot_description', 'waiting for the URDF', signal.SIGINT),
    ('simulated_robot', 'planar_3r', 'ready: ', signal.SIGINT),
])
def test_a_node_ends_at_once_whatever_it_waits_for(
    ros_domain: int, name: str, robot: str, words: str, number: int, tmp_path: Path
) -> None:
    log = tmp_path / 'log'
    with log.open('wb') as output:
        node = subprocess.Popen(
            [sys.executable, '-m', f'robot_dynid.ros.{name}.node', '--ros-args', '-p',
             f'robot:={robot}'],
            stdout=output, stderr=subprocess.STDOUT, cwd=tmp_path)
    try:
        end = time.monotonic() + PATIENCE
        while words not in log.read_text() and time.monotonic() < end:
            time.sleep(0.02)
        shared = segments(node)
        node.send_signal(number)
        assert node.wait(ESCALATION) == 0, log.read_text()
    finally:
        node.kill()
        node.wait()
    assert shared and not any(path.exists() for path in shared), 'it took leave of the others'
    assert 'Traceback' not in log.read_text()


def test_the_exit_code_says_why_a_node_ended(tmp_path: Path) -> None:
    ends = """
import atexit
from robot_dynid.ros.common import process
from robot_dynid.errors import *
def end():
    raise {}('words')
atexit.register(print, 'cleaned up', end='')
process.run('node', end, process.spin, [])
"""
    for error, code, words in (('UsageError', 2, '[FATAL]'), ('RobotError', 1, '[FATAL]'),
                               ('KeyError', 1, 'Traceback'), ('Cancelled', 0, '')):
        node = subprocess.run([sys.executable, '-c', ends.format(error)], check=False,
                              capture_output=True, text=True)
        assert node.returncode == code, node.stderr
        assert words in node.stderr and node.stdout == 'cleaned up'
        assert ('words' in node.stderr) == (code > 0)
