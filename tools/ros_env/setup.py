"""Build the environment of the project in .venv; do nothing where nothing changed.

Steps, each with a digest of what it depends on in .venv/setup.json:
packages (pinned wheels, or a sourced ROS 2), workspace (colcon, with the kernels), sources.
Only the standard library is used, so any Python >= 3.10 can run it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / '.venv'
VENV_PYTHON = VENV / 'bin' / 'python'
WORKSPACE = VENV / 'workspace'
STATE = VENV / 'setup.json'
REQUIREMENTS = ROOT / 'requirements'
PIP_FILES = ('pip.txt',)
#: ROS 2 of the wheels, where none is sourced: `make setup ROS_WHEELS=jazzy`
ROS_WHEELS = os.environ.get('ROS_WHEELS', 'kilted')
WHEEL_FILES = ('core.txt', f'ros_{ROS_WHEELS}.txt', 'build.txt', 'test.txt')
SYSTEM_FILES = ('system_ros.txt',)
STAND_IN = ROOT / 'tools' / 'ros_env' / 'control_msgs'
PACKAGE = ROOT / 'robot_dynid'
PACKAGES = (ROOT / 'robot_dynid_interfaces', PACKAGE)
#: experiments and benchmarks, a distribution of its own
EVALUATION = ROOT / 'robot_dynid_evaluation'
#: folders with the modules of the project
SOURCES = ('robot_dynid', 'robot_dynid_evaluation')

#: what each step waits for
WAITS = {'packages': 'downloads and installs some hundred megabytes, minutes without a word',
         'workspace': 'builds messages and the package with its kernels, a few minutes',
         'sources': 'stores the bytecode of all modules'}

# The interpreter below any virtual environment this script may be run from.
BASE_PYTHON = Path(sys.base_prefix) / 'bin' / f'python{sys.version_info[0]}.{sys.version_info[1]}'


class SetupError(Exception):
    """What is missing or failed, and what to do about it."""


def outside_venv(variable: str) -> str:
    """Return a path list from the environment without the entries this script makes."""
    entries = os.environ.get(variable, '').split(os.pathsep)
    return os.pathsep.join(e for e in entries if e and not Path(e).is_relative_to(VENV))


def clean_environment() -> dict[str, str]:
    """Return the environment as it would be had env.sh never been sourced."""
    lists = ('PATH', 'PYTHONPATH', 'LD_LIBRARY_PATH', 'AMENT_PREFIX_PATH', 'CMAKE_PREFIX_PATH')
    ours = {*lists, 'VIRTUAL_ENV', 'COLCON_PREFIX_PATH', '_ROS_WHEELS_BOOTSTRAP_COMPLETE'}
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    environment.update({name: value for name in lists if (value := outside_venv(name))})
    return environment


def imports(python: Path, module: str) -> bool:
    """Tell whether ``python`` can import ``module``."""
    command = [str(python), '-c', f'import {module}']
    done = subprocess.run(command, env=clean_environment(), capture_output=True, check=False)
    return done.returncode == 0


def has_sourced_ros() -> bool:
    """Tell whether a ROS 2 with rclpy for this Python is sourced."""
    return bool(outside_venv('AMENT_PREFIX_PATH')) and imports(BASE_PYTHON, 'rclpy')


def missing_tools(system_ros: bool) -> list[tuple[str, str]]:
    """Return what the system lacks, as (tool, Debian package)."""
    headers = Path(sysconfig.get_paths()['include']) / 'Python.h'
    version = f'{sys.version_info[0]}.{sys.version_info[1]}'
    found = [
        ('venv', f'python{version}-venv', imports(BASE_PYTHON, 'venv, ensurepip')),
        ('Python headers', f'python{version}-dev', headers.exists()),
        ('cmake', 'cmake', shutil.which('cmake')),
        ('make', 'make', shutil.which('make')),
        ('C compiler', 'gcc', shutil.which('cc') or shutil.which('gcc')),
        ('C++ compiler', 'g++', shutil.which('c++') or shutil.which('g++')),
    ]
    if system_ros:
        found.append(('colcon', 'python3-colcon-common-extensions', shutil.which('colcon')))
    return [(tool, package) for tool, package, there in found if not there]


def check_system(system_ros: bool) -> None:
    """Raise SetupError when this Python or a system tool will not do, naming all at once."""
    if sys.version_info < (3, 10):  # noqa: UP036 - any python3 may be the one `make` finds
        raise SetupError(
            f'Python {sys.version.split()[0]} is too old: 3.10 or newer is needed. '
            'Name a newer one: make setup PYTHON=python3.12'
        )
    known = sorted(path.stem[4:] for path in REQUIREMENTS.glob('ros_*.txt'))
    if not system_ros and ROS_WHEELS not in known:
        raise SetupError(f'ROS_WHEELS={ROS_WHEELS}: there are wheels of {" and ".join(known)}')
    missing = missing_tools(system_ros)
    if missing:
        tools = ', '.join(tool for tool, _ in missing)
        packages = ' '.join(package for _, package in missing)
        raise SetupError(
            f'missing: {tools}. Install with:\n  sudo apt-get install --yes {packages}'
        )


def digest(words: Iterable[str], files: Iterable[Path] = ()) -> str:
    """Return a hash over ``words`` and the names and contents of ``files``."""
    total = hashlib.sha256('\0'.join(words).encode())
    for path in sorted(files):
        total.update(f'\0{path.relative_to(ROOT)}\0'.encode() + path.read_bytes())
    return total.hexdigest()


def files_below(*folders: str) -> list[Path]:
    """Return every source file below ``folders`` of the repository."""
    found = (path for folder in folders for path in (ROOT / folder).rglob('*'))
    return [path for path in found if path.is_file() and '__pycache__' not in path.parts]


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command with its output on the terminal; raise SetupError when it fails."""
    words = [str(word) for word in command]
    code = subprocess.run(words, env=env or clean_environment(), cwd=ROOT, check=False).returncode
    if code:
        raise SetupError(f'failed with code {code}: {" ".join(words)}')


def pip_install(*arguments: str | Path) -> None:
    """Install into .venv."""
    pip = (VENV_PYTHON, '-m', 'pip', 'install', '--disable-pip-version-check', '-qq')
    run(*pip, '--progress-bar', 'off', *arguments)


def listed(names: Iterable[str]) -> list[str]:
    """Return pip's words for requirement files."""
    return [f'--requirement={REQUIREMENTS / name}' for name in names]


def install_packages(system_ros: bool) -> None:
    """Make .venv anew and fill it."""
    if VENV.exists():
        shutil.rmtree(VENV)
    site = ['--system-site-packages'] if system_ros else []
    run(BASE_PYTHON, '-m', 'venv', *site, VENV)
    pip_install(*listed(PIP_FILES))
    if system_ros:
        command = [str(BASE_PYTHON), '-c', 'import numpy; print(numpy.__version__)']
        numpy = subprocess.check_output(command, env=clean_environment(), text=True).strip()
        held = VENV / 'constraints.txt'
        held.write_text(f'numpy=={numpy}\n')
        pip_install('--constraint', held, *listed(SYSTEM_FILES))
    else:
        pip_install(*listed(WHEEL_FILES))
        repair_headers()


def repair_headers() -> None:
    """Point exported CMake files to this machine's headers, not the wheel builder's.

    The wheels carry ``/opt/python/cpXY-cpXY/include/pythonX.Y`` and the NumPy headers of the
    machine they were built on, and CMake refuses folders which do not exist.
    """
    code = 'import numpy, sysconfig as s; print(s.get_paths()["include"], numpy.get_include())'
    python, numpy = subprocess.check_output([VENV_PYTHON, '-c', code], text=True).split()
    for path in VENV.glob('share/*/cmake/*.cmake'):
        text = path.read_text()
        repaired = re.sub(r'/opt/python/cp[^;"]*?/numpy/_core/include', numpy, text)
        repaired = re.sub(r'/opt/python/cp[^;"]*?/include/python[\d.]+', python, repaired)
        if repaired != text:
            path.write_text(repaired)


def build_environment(system_ros: bool) -> dict[str, str]:
    """Return the environment in which colcon and cmake find .venv first."""
    environment = clean_environment()
    environment['VIRTUAL_ENV'] = str(VENV)
    environment['PATH'] = f'{VENV / "bin"}{os.pathsep}{environment["PATH"]}'
    if not system_ros:
        environment['AMENT_PREFIX_PATH'] = environment['CMAKE_PREFIX_PATH'] = str(VENV)
    return environment


def build_workspace(system_ros: bool) -> None:
    """Build the interfaces and the package itself; edited Python sources take effect at once."""
    colcon = str(shutil.which('colcon', path=build_environment(system_ros)['PATH']))
    packages = [*PACKAGES, *([] if imports(BASE_PYTHON, 'control_msgs.action') else [STAND_IN])]
    places = [(f'--{name}-base', WORKSPACE / name) for name in ('build', 'install')]
    cmake = ('CMAKE_BUILD_TYPE=Release', 'BUILD_TESTING=OFF', f'Python3_EXECUTABLE={VENV_PYTHON}')
    run(
        *(VENV_PYTHON, colcon, '--log-base', WORKSPACE / 'log', '--log-level', 'error'),
        *('build', '--symlink-install', '--event-handlers', 'console_cohesion-'),
        *(word for place in places for word in place),
        *('--base-paths', *packages, '--cmake-args', *(f'-D{word}' for word in cmake)),
        env=build_environment(system_ros),
    )
    isolation = [] if system_ros else ['--no-build-isolation']
    pip_install(*isolation, '--no-deps', '--editable', EVALUATION)
    write_env_script(system_ros)


def write_env_script(system_ros: bool) -> None:
    """Write .venv/env.sh, which sets everything in bash and sh."""
    ros_prefix = [
        'export AMENT_PREFIX_PATH="$VIRTUAL_ENV"',
        'export CMAKE_PREFIX_PATH="$VIRTUAL_ENV"',
    ]
    # setup.sh also sources the ROS below; the wheels' prefix has nothing to source.
    script = 'setup.sh' if system_ros else 'local_setup.sh'
    lines = [
        '# Written by `make setup`; source it from bash or sh.',
        f'export VIRTUAL_ENV="{VENV}"',
        'case ":$PATH:" in *":$VIRTUAL_ENV/bin:"*) ;; *) PATH="$VIRTUAL_ENV/bin:$PATH" ;; esac',
        'export PATH',
        *([] if system_ros else ros_prefix),
        'export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST',
        f'COLCON_CURRENT_PREFIX="{WORKSPACE / "install"}"',
        f'. "$COLCON_CURRENT_PREFIX/{script}"',
        'unset COLCON_CURRENT_PREFIX',
    ]
    (VENV / 'env.sh').write_text('\n'.join(lines) + '\n')


def prepare_sources() -> None:
    """Store the bytecode of all modules.

    It is not written by all accounts and settings; without it a start takes twice as long.
    """
    run(VENV_PYTHON, '-m', 'compileall', '-q', *(ROOT / name for name in SOURCES))


def digests(system_ros: bool) -> dict[str, str]:
    """Return, for each step, the digest of everything its result depends on."""
    ros = outside_venv('AMENT_PREFIX_PATH') if system_ros else 'wheels'
    names = (*PIP_FILES, *(SYSTEM_FILES if system_ros else WHEEL_FILES))
    requirements = [REQUIREMENTS / name for name in names]
    packages = digest((str(ROOT), str(BASE_PYTHON), sys.version, ros), requirements)

    installed = files_below(*(
        f'{PACKAGE.name}/{name}' for name in ('config', 'launch', 'urdf', 'resource', 'scripts')))
    places = [str(path.relative_to(ROOT)) for path in sorted(installed)]
    definitions = [PACKAGE / name for name in ('package.xml', 'setup.py', 'setup.cfg')]
    definitions.append(EVALUATION / 'pyproject.toml')
    definitions += files_below('robot_dynid_interfaces', 'tools/ros_env/control_msgs')
    definitions += (PACKAGE / 'robot_dynid' / 'kernels').glob('*.[hc]pp')
    workspace = digest((packages, *places), definitions)

    modules = [path for path in files_below(*SOURCES) if path.suffix == '.py']
    return {'packages': packages, 'workspace': workspace,
            'sources': digest((workspace,), modules)}


def main() -> None:
    """Run the steps whose inputs changed; a step that ran makes the later ones run too."""
    system_ros = has_sourced_ros()
    check_system(system_ros)
    steps = {
        'packages': lambda: install_packages(system_ros),
        'workspace': lambda: build_workspace(system_ros),
        'sources': prepare_sources,
    }
    done: dict[str, str] = json.loads(STATE.read_text()) if STATE.exists() else {}
    for name, wanted in digests(system_ros).items():
        if done.get(name) != wanted:
            print(f'setup: {name}: {WAITS[name]}', file=sys.stderr, flush=True)
            steps[name]()
            done[name] = wanted
            STATE.write_text(json.dumps(done, indent=1))


if __name__ == '__main__':
    try:
        main()
    except SetupError as error:
        sys.exit(f'setup: {error}')
