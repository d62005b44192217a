"""Nodes that ROS refuses to start say why in a line; signals are asked for once."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('rclpy')

from robot_dynid.ros.common import interrupts


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

    monkeypatch.setattr(interrupts, 'get_logger', lambda name: Logger())
    monkeypatch.setattr(interrupts, 'unfinished_ports', list)  # those of this machine
    monkeypatch.setattr(interrupts.signal, 'signal', lambda number, handler: None)
    with pytest.raises(SystemExit) as ended:
        interrupts.init(['--ros-args', *(str(file) if word == 'FILE' else word for word in words)])
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

    monkeypatch.setattr(interrupts, 'get_logger', lambda name: Logger())
    monkeypatch.setattr(interrupts.signal, 'signal', lambda number, handler: None)
    monkeypatch.setattr(interrupts.rclpy, 'init', lambda **given: said.append('rclpy'))
    monkeypatch.setattr(interrupts, 'unfinished_ports', lambda: [Path('/dev/shm/fastdds_port1')])
    interrupts.init([])
    assert 'rm /dev/shm/fastdds_port1)' in said[0] and said[1:] == ['rclpy']
