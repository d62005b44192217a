"""identification/identify.py: the same data, recipe and version give the same files, byte for
byte, on one machine.

That workers of any number give the model of one process is in test_by_recording.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recordings import recording
from repeated_run import NAMES, run

from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.threads import threads_at_most

PROGRAM = Path(__file__).parents[1] / 'support' / 'repeated_run.py'
LIBRARIES = ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS')


def folder(place: Path, robot: str, seconds: float) -> str:
    """Return a folder with two recordings."""
    place.mkdir()
    for seed in range(2):
        write_csv(place / f'{seed}.csv', recording(load_robot(robot), seed, seconds))
    return str(place)


@pytest.mark.always
def test_threads_and_hashes_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread in this process, and two in one that orders sets and words by other hashes."""
    data = folder(tmp_path / 'small', 'planar_3r', 5.0), folder(tmp_path / 'wide', 'seven_axis', 5)
    here, there = tmp_path / 'here', tmp_path / 'there'
    for out in (here, there):
        out.mkdir()
    monkeypatch.chdir(here)  # the models record their commands
    with threads_at_most(1):
        run(*data)
    subprocess.run(
        [sys.executable, str(PROGRAM), *data], cwd=there, check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, **dict.fromkeys(LIBRARIES, '2'), 'PYTHONHASHSEED': '2'})
    for name in NAMES:
        assert (here / name).read_text() == (there / name).read_text()
