"""setup.py: what pip installs runs without ROS, wherever pip puts it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from sysconfig import get_platform

import pytest
from robot_descriptions import own_robots

from robot_dynid.cli.main import main
from robot_dynid.robot import locate

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'robot_dynid'


@pytest.fixture(scope='module')
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed the package from a copy of the sources.

    Kernels that `make setup` has compiled lie where setuptools does not compile them again.
    """
    source = tmp_path_factory.mktemp('source')
    for name in ('robot_dynid', 'tools'):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns(
            '__pycache__', '*.so', 'build', '*.egg-info'))
    shutil.copy(ROOT / 'pyproject.toml', source)
    built = f'lib.{get_platform()}-{sys.implementation.cache_tag}'
    kernels = source / 'robot_dynid' / 'build' / built / 'robot_dynid' / 'kernels'
    kernels.mkdir(parents=True)
    for path in (PACKAGE / 'robot_dynid' / 'kernels').glob('*.so'):
        shutil.copy2(path, kernels)
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


def printed(target: Path, words: Sequence[str | Path]) -> str:
    """Return what a command prints that runs far from the sources, without ROS."""
    kept = {k: v for k, v in os.environ.items()
            if k not in ('AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH', 'PYTHONPATH')}
    environment = {**kept, 'PYTHONPATH': str(target)}
    done = subprocess.run(words, env=environment, cwd=target, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(target: Path, *words: str) -> str:
    """Return what the installed command prints."""
    return printed(target, [target / 'bin' / 'robot-dynid', *words])


def test_the_installed_command_finds_the_robots(target: Path) -> None:
    found = json.loads(run(target, 'base', 'ur10e', '--json'))
    assert found['base'] == 36


def test_the_installed_command_explains_itself(target: Path) -> None:
    assert '--rotor-inertia' in run(target, 'base', '--help')


def test_installed_package_finds_all_shared_files(target: Path) -> None:
    """Robots, launch files and configuration: byte by byte, by the way the package looks."""
    program = ('import json, sys; from robot_dynid import load_robot;'
               'from robot_dynid.robot.locate import find;'
               f'[load_robot(name) for name in {own_robots()!r}];'
               'print(json.dumps([str(find(name)) for name in sys.argv[1:]]))')
    files = [path for top in ('config', 'launch', 'urdf') for path in (PACKAGE / top).rglob('*')
             if path.is_file() and path.suffix != '.pyc']
    names = [str(path.relative_to(PACKAGE)) for path in files]
    found = json.loads(printed(target, [sys.executable, '-c', program, *names]))
    assert found == [str(target / 'share' / 'robot_dynid' / name) for name in names]
    assert all(Path(name).read_bytes() == path.read_bytes()
               for name, path in zip(found, files, strict=True))
    assert {'launch/demo.launch.py', 'config/robots/ur10e.yaml', 'urdf/ur10e.urdf',
            'config/identifier.yaml'} <= set(names)


def test_the_wheel_names_its_extras(target: Path) -> None:
    (metadata,) = target.glob('robot_dynid-*.dist-info/METADATA')
    extras = {line.split()[1] for line in metadata.read_text().splitlines()
              if line.startswith('Provides-Extra:')}
    assert {'report', 'simulation', 'ros'} <= extras


#: a library that is absent, what is imported then, and what brings the library
ABSENT = (('plotly', 'report.html', "pip install 'robot_dynid[report]'"),
          ('jinja2', 'report.html', "pip install 'robot_dynid[report]'"),
          ('mujoco', 'simulation.mujoco_model', "pip install 'robot_dynid[simulation]'"),
          ('rclpy', 'ros.identifier.node', 'run `make setup` and `. .venv/env.sh` in the sources'),
          ('robot_dynid_interfaces', 'ros.identifier.node',
           'run `make setup` and `. .venv/env.sh` in the sources'))


@pytest.mark.parametrize(('library', 'module', 'remedy'), ABSENT)
def test_a_library_that_is_absent_is_named_with_what_brings_it(
    library: str, module: str, remedy: str
) -> None:
    program = f"""
import importlib.util, sys
from importlib import import_module
from robot_dynid.errors import MissingDependency
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == '{library}' else found(name)
sys.modules['{library}'] = None
try:
    import_module('robot_dynid.{module}')
except MissingDependency as error:
    print(error)
"""
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True,
                          check=True)
    assert done.stdout.endswith(f'{remedy}\n')


def test_a_report_without_its_libraries_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, 'plotly', None)
    for name in [name for name in sys.modules if name.startswith(('plotly.', 'robot_dynid.rep'))]:
        monkeypatch.delitem(sys.modules, name)
    for words in (['identify', 'no.csv', '--robot', 'ur10e', '--out', 'm.yaml'],
                  ['validate', 'no.yaml', 'no.csv'], ['contact', 'no.yaml', 'no.csv'],
                  ['design', 'ur10e', '--type', 'fourier', '--out', str(tmp_path / 't.yaml')]):
        assert main([*words, '--report', str(tmp_path / 'r.html')]) == 1
        assert "pip install 'robot_dynid[report]'" in capsys.readouterr().err


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
