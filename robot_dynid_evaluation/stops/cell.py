"""A cell: simulated robot, excitation node and emergency stop as processes, each replaceable."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_dynid.files import open_log
from robot_dynid_evaluation.demo.processes import Running, command, end
from robot_dynid_evaluation.stops.bystanders import Bystander, emergency_stop

EXACT = {'position_step': 0.0, 'position_noise': 0.0, 'velocity_noise': 0.0}
RECORDINGS = 'recordings'  # folder of bags below that of the cell
#: short moves; everything that guards the motion is as the node comes
BRIEF = {'approach_scale': 0.8, 'first_pass_scale': 1.0, 'warm_up': 0, 'return_to_start': False,
         'emergency_stop_required': True}


def usual_nodes(folder: Path, robot: str, changes: Mapping[str, Any] | None = None
                ) -> dict[str, dict[str, Any]]:
    """Return simulated robot and excitation node with their parameters.

    ``changes`` are parameters of the excitation node beside BRIEF.
    """
    return {'simulated_robot': {'robot': robot, **EXACT},
            'excitation': {'robot': robot, 'recording_directory': folder / RECORDINGS,
                           'files_directory': folder, **BRIEF, **(changes or {})}}


class Cell:
    """Processes of one robot in ``namespace``, below ``folder``, none of them running at first.

    ``nodes`` are parameters of nodes of the package by the name of the node.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Mapping[str, Any]], namespace: str = ''
                 ) -> None:
        self.folder, self.namespace = folder, namespace
        self.simulated = 'simulated_robot' in nodes
        self._nodes = nodes
        self._running: dict[str, Running] = {}
        self._stop: Bystander | None = None

    @property
    def missing(self) -> list[str]:
        """Names of the nodes that do not run."""
        return [name for name in self._nodes if name not in self._running
                or self._running[name].process.poll() is not None]

    @property
    def emergency_stop(self) -> Bystander:
        """The publisher of the emergency stop, started when there is none."""
        if self._stop is None or not self._stop.alive:
            self._stop = Bystander(emergency_stop, f'{self.namespace}/emergency_stop')
            self._stop.ready()
        return self._stop

    def start(self, name: str) -> None:
        """Start a node."""
        log = self.folder / f'{name}.log'
        words = command(name, self._nodes[name])
        if self.namespace:
            words += ['-r', f'__ns:={self.namespace}']
        with open_log(log) as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        self._running[name] = Running(name, process, log)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a node; after SIGKILL wait for its end."""
        process = self._running[name].process
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()

    def require_alive(self) -> None:
        """Raise DynIdError when a node has ended by itself."""
        for running in self._running.values():
            if running.process.poll() != -signal.SIGKILL:
                running.require_alive()

    def thaw(self) -> None:
        """Let every frozen node go on."""
        for running in self._running.values():
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGCONT)

    def discard_recordings(self) -> None:
        """Remove the bags of motions that were judged."""
        shutil.rmtree(self.folder / RECORDINGS, ignore_errors=True)

    def close(self) -> None:
        """End all processes."""
        self.thaw()
        end(list(self._running.values()))
        if self._stop is not None:
            self._stop.kill()
