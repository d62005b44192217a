"""The nodes of the demo as processes: started, watched, and always ended by their handles."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_dynid.errors import DynIdError
from robot_dynid.files import open_log
from robot_dynid.robot import locate

PACKAGE = 'robot_dynid'
PATIENCE = 5.0  # s for a node to end by itself


@dataclass(frozen=True, eq=False)
class Running:
    """A node's process and where its output goes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def require_alive(self) -> None:
        """Raise DynIdError with its last words when the process has ended."""
        code = self.process.poll()
        if code is None:
            return
        words = self.log.read_text(encoding='utf-8', errors='replace').strip().splitlines()
        last = words[-1] if words else 'without a word'
        raise DynIdError(f'node {self.name} ended with exit code {code}: {last} (see {self.log})')


@contextmanager
def nodes(parameters: Mapping[str, Mapping[str, Any]], logs: Path) -> Iterator[list[Running]]:
    """Run one node per name with its parameter file and ``parameters`` while the block runs."""
    logs.mkdir(parents=True, exist_ok=True)
    running: list[Running] = []
    try:
        for name, values in parameters.items():
            log = logs / f'{name}.log'
            with open_log(log) as output:
                process = subprocess.Popen(
                    command(name, values), stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True)
            running.append(Running(name, process, log))
        yield running
    finally:
        end(running)


def command(name: str, values: Mapping[str, Any]) -> list[str]:
    """Return the command line of a node: installed executable, parameter file, parameters."""
    words = [*executable(name), '--ros-args']
    file = locate.find(f'config/{name}.yaml')
    if file is not None:
        words += ['--params-file', str(file)]
    for key, value in values.items():
        words += ['-p', f'{key}:={value}']
    return words


def executable(name: str) -> list[str]:
    """Return the installed executable, or how to run the module where nothing is installed."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        path = Path(prefix) / 'lib' / PACKAGE / name
        if prefix and path.is_file():
            return [str(path)]
    return [sys.executable, '-m', f'{PACKAGE}.ros.{name}.node']


def end(running: list[Running]) -> None:
    """Interrupt all nodes, then terminate, then kill those that stay."""
    for step in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        left = [node for node in running if node.process.poll() is None]
        for node in left:
            node.process.send_signal(step)
        for node in left:
            try:
                node.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                continue
