"""What pip installs runs without ROS, wherever pip puts it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robot_dynid.robot import locate

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ('config', 'launch', 'resource', 'robot_dynid', 'robot_dynid_evaluation', 'scripts',
           'urdf')

@pytest.fixture(scope='module')
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed the package from a copy of the sources."""
    source = tmp_path_factory.mktemp('source')
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns('__pycache__'))
    for name in ('setup.py', 'setup.cfg', 'pyproject.toml', 'package.xml'):
        shutil.copy(ROOT / name, source)
    folder = tmp_path_factory.mktemp('installed')
    pip(['--target', str(folder), str(source)])
    return folder


def pip(words: list[str]) -> None:
    """Install offline with the setuptools that are here."""
    from setuptools import __version__ as version

    if tuple(map(int, version.split('.')[:2])) < (70, 1):
        pytest.importorskip('wheel', reason='old setuptools build wheels with the package wheel')
    command = [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps',
               '--no-build-isolation', '--disable-pip-version-check', *words]
    subprocess.run(command, check=True)


def run(target: Path, *words: str) -> str:
    """Run the installed command far from the sources, without ROS; return what it prints."""
    kept = {k: v for k, v in os.environ.items()
            if k not in ('AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH', 'PYTHONPATH')}
    environment = {**kept, 'PYTHONPATH': str(target), 'NUMBA_DISABLE_JIT': '1'}
    done = subprocess.run([target / 'bin' / 'robot-dynid', *words], env=environment, cwd=target,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_installed_command_finds_the_robots(target: Path) -> None:
    found = json.loads(run(target, 'base', 'ur10e', '--json'))
    assert found['base'] == 36


@pytest.mark.slow
def test_the_installed_command_explains_itself(target: Path) -> None:
    assert '--rotor-inertia' in run(target, 'base', '--help')


def moved(monkeypatch: pytest.MonkeyPatch, packages: Path) -> None:
    """Let the package lie in the folder ``packages``."""
    monkeypatch.setattr(locate, '__file__', str(packages / 'robot_dynid/robot/locate.py'))
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)


@pytest.mark.parametrize('packages', [
    'lib/python3.11/site-packages', 'lib/site-packages', 'local/lib/python3.10/dist-packages',
    'lib64/python3.12/site-packages', '.'])
def test_data_are_found_beside_or_above_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, packages: str
) -> None:
    moved(monkeypatch, tmp_path / packages)
    assert not locate.known_robots()
    robots = tmp_path / 'share/robot_dynid/config/robots'
    robots.mkdir(parents=True)
    (robots / 'mine.yaml').write_text('')
    assert locate.known_robots() == ['mine']
    assert locate.find('config/robots/mine.yaml') == robots / 'mine.yaml'


def test_files_of_a_project_around_the_environment_are_not_taken_for_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    moved(monkeypatch, tmp_path / '.venv/lib/python3.11/site-packages')
    (tmp_path / 'config/robots').mkdir(parents=True)
    (tmp_path / 'config/robots/theirs.yaml').write_text('')
    assert not locate.known_robots()
