"""Run the tests under other versions of Python, NumPy and ROS 2; `make versions`.

Each version has an environment of its own in out/versions, made anew when its requirements change.
A Python that is neither on the path nor one of pyenv is said to be absent. Tests with ROS run in a
copy of the sources, with wheels of another ROS 2. Words are given to pytest, and choose among the
tests without ROS: ``make versions TESTS=test/signals``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'robot_dynid'
PLACE, REQUIREMENTS = ROOT / 'out' / 'versions', ROOT / 'requirements'
#: newest that the ranges of setup.py admit
NEWEST = ('--upgrade', '--upgrade-strategy', 'eager')


@dataclass(frozen=True)
class Version:
    """A Python, what is installed into it in turn (words for pip), and what to call it."""

    python: str
    name: str
    installed: tuple[tuple[str, ...], ...]


VERSIONS = (
    # wheels of coal ask for a newer NumPy than they need
    Version('3.10', 'oldest NumPy', (
        (f'--requirement={REQUIREMENTS / "oldest.txt"}',),
        ('--no-deps', 'coal==3.0.1', 'libcoal==3.0.1', 'eigenpy==3.10.3', 'cmeel==0.62.0',
         'cmeel-assimp==5.4.3.1', 'cmeel-boost==1.87.0.1', 'cmeel-octomap==1.10.0',
         'cmeel-qhull==8.0.2.1', 'cmeel-zlib==1.3.2', 'tomli==2.5.0'))),
    Version('3.12', 'newest NumPy', (
        (f'--requirement={REQUIREMENTS / "test.txt"}', 'setuptools', 'wheel', 'packaging'),
        (*NEWEST, f'{ROOT}[report,simulation]'))),
)

#: wheels of the other ROS 2, and the Python that it comes with
ROS_WHEELS, ROS_PYTHON = 'jazzy', '3.12'


def interpreter(python: str) -> str | None:
    """Return the program of a Python: on the path, or the newest of pyenv; None for none."""
    found = shutil.which(f'python{python}')
    pyenv = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv')) / 'versions'
    own = sorted(pyenv.glob(f'{python}.*/bin/python'), key=lambda p: p.parts[-3].split('.')[-1])
    return str(own[-1]) if own else found


def environment(version: Version, program: str) -> Path:
    """Return the folder of an environment, made where it is not up to date."""
    files = b''.join(path.read_bytes() for path in sorted(REQUIREMENTS.glob('*.txt')))
    words = f'{program} {version} {(PACKAGE / "setup.py").read_text()}'.encode()
    digest, folder = hashlib.sha256(files + words).hexdigest(), PLACE / version.python
    state = folder / 'made'
    if state.is_file() and state.read_text() == digest:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([program, '-m', 'venv', str(folder)], check=True)
    pip = [str(folder / 'bin' / 'python'), '-m', 'pip', 'install', '--quiet',
           '--disable-pip-version-check']
    for given in (('pip==26.3',), *version.installed):
        subprocess.run([*pip, *given], check=True)
    subprocess.run([*pip[:3], 'uninstall', '--quiet', '--yes', 'robot_dynid'], check=True)
    state.write_text(digest)
    return folder


def tested(version: Version, words: list[str], program: str) -> int:
    """Run the tests in the environment of a version; return the exit code of pytest."""
    folder = environment(version, program)
    kept = {key: value for key, value in os.environ.items() if key not in (
        'PYTHONPATH', 'VIRTUAL_ENV', 'AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH')}
    # the processes that tests start in other folders find the sources, which are not installed
    kept |= {'PYTHONPATH': os.pathsep.join((str(PACKAGE), str(ROOT)))}
    python = str(folder / 'bin' / 'python')
    subprocess.run([python, 'setup.py', '--quiet', 'build_ext', '--inplace'], cwd=PACKAGE,
                   check=True, env=kept)
    # the prefix lets tests whose oracle is not in an environment be skipped
    command = [python, '-m', 'pytest', '--junit-prefix=robot_dynid',
               '-p', 'no:cacheprovider', '-m', 'not ros and not soak', *words]
    return subprocess.run(command, cwd=ROOT, check=False, env=kept).returncode


def tested_with_ros(program: str) -> int:
    """Run the tests with ROS in a copy of the sources; return the exit code of make."""
    listed = ('git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard')
    names = subprocess.check_output(listed, cwd=ROOT, text=True).split('\0')
    copy = PLACE / ROS_WHEELS
    for old in (path for path in copy.glob('*') if path.name != '.venv'):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name in filter(None, names):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    kept = {key: value for key, value in os.environ.items()
            if key in ('HOME', 'LANG', 'PATH', 'TMPDIR')}
    kept |= {'ROBOT_DYNID_DATA': os.environ.get(
        'ROBOT_DYNID_DATA', str(ROOT.parent / 'shared' / 'data'))}
    command = ('make', 'test-ros', 'test-alone', f'ROS_WHEELS={ROS_WHEELS}', f'PYTHON={program}')
    return subprocess.run(command, cwd=copy, check=False, env=kept).returncode


def outcome(python: str, run: Callable[[str], int]) -> str:
    """Return how ``run`` of the program of a Python ended, in words."""
    program = interpreter(python)
    if program is None:
        return 'absent: not on the path, and none of pyenv'
    try:
        code = run(program)
    except (OSError, subprocess.CalledProcessError) as error:
        return f'FAILED to install or compile: {error}'
    return 'passed' if code == 0 else f'FAILED with code {code}'


def main() -> int:
    """Run the tests under every version that is here; return 1 where one fails."""
    words = sys.argv[1:]
    results = {
        f'Python {one.python}, {one.name}': outcome(one.python, partial(tested, one, words))
        for one in VERSIONS}
    if not words:
        results[f'Python {ROS_PYTHON}, ROS 2 {ROS_WHEELS}'] = outcome(ROS_PYTHON, tested_with_ros)
    for name, text in results.items():
        print(f'{name}: {text}')
    return int(any('FAILED' in text for text in results.values()))


if __name__ == '__main__':
    raise SystemExit(main())
