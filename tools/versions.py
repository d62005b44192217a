"""Run the tests without ROS under other versions of Python and NumPy; `make versions`.

Each version has an environment of its own in out/versions, made anew when its requirements change.
A Python that is neither on the path nor one of pyenv is said to be absent. Words are given to
pytest: ``make versions TESTS=test/signals``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def interpreter(python: str) -> str | None:
    """Return the program of a Python: on the path, or the newest of pyenv; None for none."""
    found = shutil.which(f'python{python}')
    pyenv = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv')) / 'versions'
    own = sorted(pyenv.glob(f'{python}.*/bin/python'), key=lambda p: p.parts[-3].split('.')[-1])
    return str(own[-1]) if own else found


def environment(version: Version, program: str) -> Path:
    """Return the folder of an environment, made where it is not up to date."""
    files = b''.join(path.read_bytes() for path in sorted(REQUIREMENTS.glob('*.txt')))
    words = f'{program} {version} {(ROOT / "setup.py").read_text()}'.encode()
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


def tested(folder: Path, words: list[str]) -> int:
    """Run the tests in an environment; return the exit code of pytest."""
    kept = {key: value for key, value in os.environ.items() if key not in (
        'PYTHONPATH', 'VIRTUAL_ENV', 'AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH')}
    # the processes that tests start in other folders find the sources, which are not installed
    kept |= {'PYTHONPATH': str(ROOT), 'NUMBA_CACHE_DIR': str(folder / 'numba')}
    python = [str(folder / 'bin' / 'python'), '-m']
    subprocess.run([*python, 'robot_dynid.warm_up', '--missing'], cwd=ROOT, check=True, env=kept)
    # the prefix lets tests whose oracle is not in an environment be skipped
    command = [*python, 'pytest', '--junit-prefix=robot_dynid',
               '-p', 'no:cacheprovider', '-m', 'not ros and not soak', *words]
    return subprocess.run(command, cwd=ROOT, check=False, env=kept).returncode


def main() -> int:
    """Run the tests under every version that is here; return 1 where one fails."""
    results = []
    for version in VERSIONS:
        program = interpreter(version.python)
        if program is None:
            results.append((version, 'absent: not on the path, and none of pyenv'))
            continue
        try:
            code = tested(environment(version, program), sys.argv[1:])
        except (OSError, subprocess.CalledProcessError) as error:
            results.append((version, f'FAILED to install or compile: {error}'))
            continue
        results.append((version, 'passed' if code == 0 else f'FAILED with code {code}'))
    for version, text in results:
        print(f'Python {version.python}, {version.name}: {text}')
    return int(any('FAILED' in text for _, text in results))


if __name__ == '__main__':
    raise SystemExit(main())
