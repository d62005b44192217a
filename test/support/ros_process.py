"""Starting a node of the package as a process of its own, and stopping it by its handle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STOP_TIME = 60.0  # s a node may take to end on SIGINT
INTERRUPT_GAP = 0.02  # s


class NodeProcess:
    """A running node; ``output`` is what it wrote so far."""

    def __init__(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        pairs = [part for name, value in (parameters or {}).items()
                 for part in ('-p', f'{name}:={value}')]
        descriptor, path = tempfile.mkstemp(prefix=f'{name}_', suffix='.log')
        self._log = Path(path)
        self.process = subprocess.Popen(
            [sys.executable, '-m', f'robot_dynid.ros.{name}.node', '--ros-args', *pairs],
            stdout=descriptor, stderr=subprocess.STDOUT,
        )
        os.close(descriptor)

    @property
    def output(self) -> str:
        """Return everything written so far."""
        return self._log.read_text()

    def stop(self) -> int:
        """Interrupt the node, wait for its end and return its exit code."""
        for _ in range(2):  # as Ctrl-C under `ros2 launch`: from the terminal and from launch
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                time.sleep(INTERRUPT_GAP)
        try:
            return self.process.wait(STOP_TIME)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextmanager
def running(module: str, parameters: Mapping[str, Any] | None = None) -> Iterator[NodeProcess]:
    """Run a node while the block runs; it must end cleanly on SIGINT."""
    with ended(NodeProcess(module, parameters)) as node:
        yield node


@contextmanager
def ended(node: NodeProcess) -> Iterator[NodeProcess]:
    """Interrupt a node at the end of the block; it must end cleanly.

    What it said is written where the block fails.
    """
    try:
        yield node
    except BaseException:
        sys.stderr.write(node.output)
        raise
    finally:
        code = node.stop()
    assert code in (0, -signal.SIGKILL, -signal.SIGTERM), f'exit code {code}: {node.output}'
    assert 'Traceback' not in node.output, node.output
