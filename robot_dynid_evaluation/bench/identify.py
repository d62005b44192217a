"""A seven-axis arm: one hour at 1 kHz from arrays, from a bag by the command line; two minutes.

The two minutes are for what is chosen from the data, which an hour hides.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import DynIdError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import Truth, distance, load_truth, true_base
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.long_recordings import (
    mapped,
    pieces,
    used,
    write_bag,
    write_recording,
)
from robot_dynid_evaluation.bench.timing import ROBOT

SECONDS, RATE = 3600.0, 1000.0
MOST_SECONDS, MOST_MEGABYTES, MOST_ERROR = 30.0, 2000.0, 0.02
#: the same as a bag, by the command line, with nothing prescribed
MOST_BAG_SECONDS = 120.0
#: the recording everything is chosen from, (s, Hz), and how often
SHORT, TURNS = (120.0, 100.0), 3
DISK = 4e9  # bytes wanted free: arrays, bag, and temporary data of the command line


def measure(progress: Progress) -> list[Row]:
    """Return seconds, peak memory and error of the parameters, each beside its limit."""
    robot = load_robot(ROBOT)
    with tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        if shutil.disk_usage(folder).free < DISK:
            raise DynIdError(f'{folder}: less than {DISK / 1e9:g} GB are free; make room, or set '
                             'TMPDIR to a folder on a larger disk')
        progress('making the recording', 0.1)
        write_recording(Path(folder), robot, load_truth(robot), (SECONDS, RATE))
        progress('identifying', 0.3)
        found = in_a_process_of_its_own(folder)
        progress('making the bag', 0.4)
        write_bag(Path(folder) / 'bag', robot.joints, pieces(mapped(folder, robot.joints)))
        progress('identifying from the bag', 0.6)
        bag = used(Path(folder), 'identify', f'{folder}/bag', '--robot', ROBOT, '--out',
                   f'{folder}/model.yaml')
        progress('choosing everything', 0.8)
        chosen = choices(robot, load_truth(robot))
    samples = f'{SECONDS * RATE / 1e6:g} million samples'
    most = Target(1.0, faster=False)
    return [
        row(f'{samples} to parameters (peer: the limit)', 's', found['seconds'], MOST_SECONDS,
            most),
        row('peak resident memory (peer: the limit)', 'MB', found['megabytes'], MOST_MEGABYTES,
            most),
        row('distance from the true parameters (peer: the limit)', '%', 100.0 * found['error'],
            100.0 * MOST_ERROR, most),
        row('the same as a bag, robot-dynid identify (peer: the limit)', 's', bag['seconds'],
            MOST_BAG_SECONDS, most),
        row('its peak resident memory (peer: the limit)', 'MB', bag['peak MB'], MOST_MEGABYTES,
            most),
        *chosen,
    ]


def choices(robot: RobotModel, truth: Truth) -> list[Row]:
    """Return seconds of a short recording with nothing prescribed, on two cores and on one.

    Both take turns in processes of their own, and must find the very same model. Nothing where
    this process has one core only.
    """
    found: dict[int, list[dict[str, Any]]] = {2: [], 1: []}
    if len(os.sched_getaffinity(0)) < 2:
        return []
    with tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        write_recording(Path(folder), robot, truth, SHORT)
        for _ in range(TURNS):
            for cores, runs in found.items():
                runs.append(in_a_process_of_its_own(folder, cores))
    models = {run['model'] for runs in found.values() for run in runs}
    if len(models) > 1:
        raise DynIdError('the model depends on the number of threads')
    what = f'{SHORT[0]:g} s at {SHORT[1]:g} Hz, nothing prescribed'
    return [row(f'{what}: {name} on two cores (peer: on one)', 's',
                np.array([run[key] for run in found[2]]),
                np.array([run[key] for run in found[1]]), target)
            for name, key, target in (('time', 'seconds', Target(1.0)),
                                      ('processor time', 'processor', Target(1.5, faster=False)))]


def in_a_process_of_its_own(folder: str, cores: int | None = None) -> dict[str, Any]:
    """Return the measurement of a fresh process: only its memory counts.

    With ``cores`` it is that of `choose_from`, on so many of them.
    """
    given = [] if cores is None else [str(cores)]
    done = subprocess.run([sys.executable, '-m', __name__, folder, *given],
                          stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise DynIdError(f'the identification failed with exit code {done.returncode}')
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def choose_from(folder: str, cores: int) -> dict[str, Any]:
    """Identify from the arrays of ``folder`` with nothing prescribed, on so many ``cores``.

    Seconds and processor time of the second run, which loads no kernels any more, and the model.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    robot = load_robot(ROBOT)
    for _ in range(2):
        begin, used = time.perf_counter(), time.process_time()
        model = identify(robot, [mapped(folder, robot.joints)]).model
    return {'seconds': time.perf_counter() - begin, 'processor': time.process_time() - used,
            'model': model.to_yaml()}


def identify_recording(folder: str) -> dict[str, float]:
    """Identify from the arrays of ``folder``: seconds, peak megabytes, error of the parameters."""
    robot = load_robot(ROBOT)
    begin = time.perf_counter()
    recipe = Recipe(friction='coulomb')  # that of the recording
    result = identify(robot, [mapped(folder, robot.joints)], recipe=recipe)
    seconds = time.perf_counter() - begin
    true = true_base(robot, load_truth(robot), result.model.reduction)
    return {'seconds': seconds, 'megabytes': peak_megabytes(),
            'error': distance(result.model.values, true)}


def peak_megabytes() -> float:
    """Return the largest resident memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == '__main__':
    print(json.dumps(identify_recording(sys.argv[1]) if len(sys.argv) < 3 else
                     choose_from(sys.argv[1], int(sys.argv[2]))))
