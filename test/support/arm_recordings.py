"""A folder as a reader of the pages has it: a robot, recordings of it, models of these.

Made once per session, by the commands that the pages show: an arm of three joints, simulated.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robot_dynid'
ARM = ROOT / 'examples' / 'arm.yaml'


def program(words: list[str], folder: Path) -> None:
    """Run ``robot-dynid ...`` or ``python FILE ...`` in this process, in a folder."""
    from robot_dynid.cli.main import main

    with contextlib.chdir(folder) if sys.version_info >= (3, 11) else changed(folder):
        if words[0] == 'robot-dynid':
            assert main(words[1:]) == 0, words
            return
        assert words[0] == 'python', words
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr('sys.argv', words[1:])
            runpy.run_path(words[1], run_name='__main__')


@contextlib.contextmanager
def changed(folder: Path):
    """Work in a folder while the block runs."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def made(folder: Path) -> None:
    """Put robot, motions, recordings, models and states into a folder."""
    from bags import write_bag

    from robot_dynid import load_log, load_robot

    (folder / 'examples').symlink_to(ROOT / 'examples')
    content = yaml.safe_load(ARM.read_text('utf-8'))
    (folder / 'my_arm.yaml').write_text(yaml.safe_dump({**content, 'urdf': 'my_arm.urdf'}))
    for name in ('my_arm.urdf', 'arm.urdf'):
        (folder / name).write_text((ROOT / 'examples' / 'arm.urdf').read_text('utf-8'))
    for name, urdf in (('ur.urdf', 'ur10e'), ('panda_like.urdf', 'seven_axis')):
        (folder / name).write_text((PACKAGE / 'urdf' / f'{urdf}.urdf').read_text('utf-8'))
    (folder / 'coulomb.yaml').write_text('friction: coulomb\ncutoff: 30.0\nripple: none\n')
    for seed, motion, run in ((0, 'T', 'run'), (5, 'V', 'other')):
        program(['robot-dynid', 'design', 'my_arm.yaml', '--duration', '8', '--harmonics', '4',
                 '--starts', '1', '--iterations', '5', '--seed', str(seed), '--out',
                 f'{motion}.yaml'], folder)
        program(['python', str(ROOT / 'examples' / 'rehearse.py'), 'my_arm.yaml',
                 f'{motion}.yaml', f'{run}.csv', str(seed)], folder)
    robot = load_robot(folder / 'my_arm.yaml')
    write_bag(folder / 'run_bag', load_log(folder / 'run.csv', robot))
    fit = ['--robot', 'my_arm.yaml', '--recipe', 'coulomb.yaml']
    program(['robot-dynid', 'identify', 'run.csv', *fit, '--method', 'feasible', '--out',
             'M.yaml', '--urdf', 'identified_before.urdf'], folder)
    program(['robot-dynid', 'identify', 'other.csv', *fit, '--out', 'before.yaml'], folder)
    table = np.genfromtxt(folder / 'run.csv', delimiter=',', names=True, deletechars='')
    angles = [name for name in table.dtype.names if name.startswith('position.')]
    torques = [name for name in table.dtype.names if name.startswith('effort.')]
    np.savetxt(folder / 'my_log.csv', np.column_stack([
        1000.0 * table['time'], *(np.rad2deg(table[name]) for name in angles),
        *(table[name] for name in torques)]), delimiter=',', header='t,a,b,c,d,e,f', comments='')
    states = [name for name in table.dtype.names if name.split('.')[0] in (
        'time', 'position', 'velocity', 'effort')]
    np.savetxt(folder / 'states.csv', np.array([list(row) for row in table[states][::100]]),
               delimiter=',', header=','.join(states), comments='')


@pytest.fixture(scope='session')
def arm_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all take copies of."""
    pytest.importorskip('mujoco')
    folder = tmp_path_factory.mktemp('arm')
    made(folder)
    return folder


@pytest.fixture
def arm_folder(
    arm_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a copy of the folder for one test, which works in it."""
    folder = tmp_path / 'reader'
    copytree(arm_made, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder
