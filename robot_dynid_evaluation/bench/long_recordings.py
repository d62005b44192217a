"""Long and many simulated recordings, and what a command of robot-dynid on them takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.files import atomic_write
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, encode_joint_states
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.truth import Truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_evaluation.bench.arms import effort

SIGNALS = ('time', 'position', 'velocity', 'effort')
PERIOD = 20.0
#: rows that are made or written at once, and the first stamp of a bag [ns]
PIECE, BAG_PIECE, START = 60_000, 20_000, 10**18
POSITION_NOISE, VELOCITY_NOISE, EFFORT_NOISE = 1e-6, 1e-3, 0.1
#: runs the command line, then prints processor time and the sum of peak memories of its process
#: and its workers, the largest of which counts for each
COMMAND = """import json, resource, sys
from robot_dynid.cli.main import main
if __name__ == '__main__':
    code = main()
    own, others = (resource.getrusage(who) for who in (
        resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    workers = int(sys.argv[sys.argv.index('--workers') + 1]) if '--workers' in sys.argv else 1
    peak = own.ru_maxrss + (workers * others.ru_maxrss if workers > 1 else 0)
    print(json.dumps({'processor s': sum(u.ru_utime + u.ru_stime for u in (own, others)),
                      'peak MB': peak / 1024.0}))
    raise SystemExit(code)
"""


def write_recording(
    folder: Path, robot: RobotModel, truth: Truth, shape: tuple[float, float], seed: int = 0
) -> None:
    """Write time, position, velocity and effort of ``shape`` = (seconds, rate) as NumPy files.

    Our own inverse dynamics along a periodic Fourier series, with white noise on everything.
    """
    seconds, rate = shape
    count = round(seconds * rate)
    rng = np.random.default_rng(seed)
    options = FourierOptions(seconds, 5, max(round(seconds / PERIOD), 1))
    trajectory = random_fourier(motion_limits(robot).scaled(0.9), options, rng)
    files = {name: np.lib.format.open_memmap(
        folder / f'{name}.npy', 'w+', np.float64,
        (count,) if name == 'time' else (count, robot.n)) for name in SIGNALS}
    for first in range(0, count, PIECE):
        rows = slice(first, min(first + PIECE, count))
        instants = np.arange(rows.start, rows.stop) / rate
        motion = trajectory.sample(instants)
        files['time'][rows] = instants
        for name, values, noise in (('position', motion.position, POSITION_NOISE),
                                    ('velocity', motion.velocity, VELOCITY_NOISE),
                                    ('effort', effort(robot, truth, motion), EFFORT_NOISE)):
            files[name][rows] = values + noise * rng.standard_normal(values.shape)


def mapped(folder: str | Path, joints: tuple[str, ...]) -> RawLog:
    """Return the arrays of ``folder`` as a recording; they are mapped, not read."""
    instants, *arrays = (np.load(Path(folder) / f'{name}.npy', mmap_mode='r') for name in SIGNALS)
    return RawLog(str(folder), joints, instants, *arrays)


def pieces(log: RawLog) -> Iterable[tuple[FloatArray, ...]]:
    """Yield time, position, velocity and effort of a recording, BAG_PIECE rows at a time."""
    arrays = log.time, log.position, log.velocity, log.effort
    for first in range(0, len(log.time), BAG_PIECE):
        yield tuple(array[first:first + BAG_PIECE] for array in arrays if array is not None)


def write_bag(
    path: Path, joints: tuple[str, ...], parts: Iterable[tuple[FloatArray, ...]]
) -> None:
    """Write joint states as a bag, part by part: time (N,) [s] and three arrays (N, n)."""
    with BagWriter(path) as bag:
        topic = bag.add_topic('/joint_states', JOINT_STATE)
        for instants, *values in parts:
            stamps = START + np.round(instants * 1e9).astype(np.int64)
            for stamp, data in zip(stamps.tolist(), encode_joint_states(
                    joints, stamps, tuple(values)), strict=True):
                bag.write(topic, stamp, data)
            bag.commit()


def used(folder: Path, *words: str) -> dict[str, float]:
    """Return seconds, processor time [s] and peak memory [MB] of a command of robot-dynid.

    A file in ``folder`` runs it in a process of its own: workers import it. Raises DynIdError
    where it fails.
    """
    begin = time.perf_counter()
    program = folder / 'command.py'
    atomic_write(program, COMMAND)
    done = subprocess.run([sys.executable, str(program), *words, '--json', '--quiet'],
                          stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise DynIdError(f'{words[0]} failed with exit code {done.returncode}: '
                         f'{done.stdout[:1000]}')
    return {'seconds': time.perf_counter() - begin, **json.loads(done.stdout.splitlines()[-1])}
