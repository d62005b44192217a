"""setup.py: what is installed is complete, and nothing names the machine it was written on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sources import PACKAGE, ROOT, ROS_PACKAGE, declared, imported_packages, passed_to_setup

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

MACHINE_PATH = re.compile('(?<![\\w.}~])/(?:wor' + 'k|roo' + 't|hom' + 'e/\\w+|tmp/ve' + 'nv)/')

#: packages of the distribution by their rosdep keys, where the name is another
ROSDEP = {'coal': 'coal', 'python3-sklearn': 'scikit-learn', 'python3-yaml': 'pyyaml'}
#: distributions that the package of another brings
BROUGHT = {'python3-sklearn': 'threadpoolctl'}

#: extras that need no ROS
PLAIN = ('report', 'simulation')


def read(name: str) -> dict[str, Requirement]:
    """Return the requirements in a file for this Python by name."""
    lines = (line.partition('#')[0].strip() for line in (ROOT / name).read_text().splitlines())
    found = [Requirement(line) for line in lines if line]
    return {canonicalize_name(r.name): r for r in found
            if r.marker is None or r.marker.evaluate()}


@pytest.fixture(params=['install'])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what setup.py passes to setuptools."""
    return passed_to_setup(monkeypatch, request.param)


def committed() -> list[Path]:
    """Return every committed file; skip outside a git repository."""
    command = ['git', 'ls-files', '-z']
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip('committed files: not a git repository')
    return [path for name in listed.stdout.split('\0') if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize('folder', ['config', 'launch', 'urdf'])
def test_shared_files_are_installed_at_the_same_place(
    installed: dict[str, Any], folder: str
) -> None:
    targets = {
        f'{target}/{Path(name).name}'
        for target, names in installed['data_files']
        for name in names
    }
    files = [p for p in (PACKAGE / folder).rglob('*') if p.is_file() and p.suffix != '.pyc']
    missing = [p for p in files if f'share/robot_dynid/{p.relative_to(PACKAGE)}' not in targets]
    assert not missing


def test_ament_finds_the_package(installed: dict[str, Any]) -> None:
    targets = dict(installed['data_files'])
    assert targets['share/ament_index/resource_index/packages'] == ['resource/robot_dynid']
    assert targets['share/robot_dynid'] == ['package.xml']


@pytest.mark.parametrize(('installed', 'own'), [('install', True), ('develop', True),
                                                ('bdist_wheel', False)], indirect=['installed'])
def test_wheels_leave_the_command_to_the_installer(installed: dict[str, Any], own: bool) -> None:
    assert ('bin' in dict(installed['data_files'])) == own
    assert 'robot-dynid = robot_dynid.cli.main:main' in installed['entry_points'][
        'console_scripts']


#: sources of the kernels, and what is compiled of them
EXTENSION = {'.cpp', '.hpp', '.so'}


def test_files_beside_the_modules_are_package_data(installed: dict[str, Any]) -> None:
    package = PACKAGE / 'robot_dynid'
    patterns = installed['package_data']['robot_dynid']
    files = [p for p in package.rglob('*') if p.is_file() and '__pycache__' not in p.parts]
    others = [str(p.relative_to(package)) for p in files
              if p.suffix not in {'.py', *EXTENSION}]
    missing = [name for name in others if not any(fnmatch(name, p) for p in patterns)]
    assert not missing


def test_every_folder_of_modules_is_a_package(installed: dict[str, Any]) -> None:
    for place, packages, names in (
            (PACKAGE, ('robot_dynid', 'robot_dynid_extras'), installed['packages']),
            (ROOT, ('robot_dynid_evaluation',),
             evaluation()['tool']['setuptools']['packages'])):
        folders = {p.parent.relative_to(place) for name in packages
                   for p in (place / name).rglob('*.py')}
        assert {'.'.join(folder.parts) for folder in folders} == set(names)


def evaluation() -> dict[str, Any]:
    """Return how the package of experiments is built."""
    return tomllib.loads((ROOT / 'robot_dynid_evaluation' / 'pyproject.toml').read_text())


def test_kernel_builds_have_separate_object_files(tmp_path: Path) -> None:
    """Compilers that run at the same time may not write the same file."""
    calls, compiler = tmp_path / 'calls', tmp_path / 'compiler'
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n'
                        'while [ "$1" ] && [ "$1" != -o ]; do shift; done\n: > "$2"\n')
    compiler.chmod(0o755)
    subprocess.run(
        [sys.executable, 'setup.py', '--quiet', 'build_ext', '--force',
         '--build-temp', str(tmp_path / 'temp'), '--build-lib', str(tmp_path / 'lib')],
        cwd=PACKAGE, check=True, env={**os.environ, 'CC': str(compiler), 'CXX': str(compiler)})
    rows = [line.split() for line in calls.read_text().splitlines()]
    objects = [words[words.index('-o') + 1] for words in rows if '-c' in words]
    linked = [word for words in rows if '-c' not in words for word in words if word.endswith('.o')
              and word != words[words.index('-o') + 1]]
    assert len(objects) == len(set(objects)) >= 1
    assert sorted(objects) == sorted(linked)


def test_versions_agree(installed: dict[str, Any]) -> None:
    project, version = evaluation()['project'], installed['version']
    assert (project['version'], project['dependencies']) == (version, [f'robot_dynid=={version}'])
    for name in ('robot_dynid', 'robot_dynid_interfaces'):
        assert f'<version>{installed["version"]}</version>' in (
            ROOT / name / 'package.xml').read_text()


#: extras that `make setup` leaves out: pyarrow takes 170 MB
LARGE = {'tables'}


@pytest.mark.parametrize('wheels', ['ros_jazzy', 'ros_kilted'])
def test_declared_ranges_admit_the_pinned_versions(
    installed: dict[str, Any], wheels: str
) -> None:
    """`make setup` installs the extras but LARGE, each at the version pinned."""
    core, ros, tests = (read(f'requirements/{name}.txt') for name in ('core', wheels, 'test'))
    assert set(core) - {'zstandard'} == set(declared(installed, *PLAIN)), 'mcap brings zstandard'
    ranges = declared(installed, *(set(installed['extras_require']) - LARGE))
    for name in ranges:
        (version,) = (spec.version for spec in (core | ros | tests)[name].specifier)
        assert version in ranges[name].specifier, name
        assert {'>=', '<'} == {spec.operator for spec in ranges[name].specifier}, name


def test_lower_bounds_are_those_of_the_oldest_ros(installed: dict[str, Any]) -> None:
    bounds = read('requirements/system_ros.txt')
    for name, needed in declared(installed, 'report', 'simulation').items():
        (least,) = (spec for spec in needed.specifier if spec.operator == '>=')
        assert str(bounds[name].specifier) == str(least), name


def test_rosdep_installs_the_same_packages(installed: dict[str, Any]) -> None:
    keys = [node.text or '' for node in
            ET.parse(PACKAGE / 'package.xml').iter('exec_depend')]
    ours = {ROSDEP.get(key, key.removeprefix('python3-')) for key in keys
            if key in ROSDEP or key.startswith('python3-')}
    ours |= {BROUGHT[key] for key in keys if key in BROUGHT}
    page = (ROOT / 'docs' / 'install.md').read_text()
    line = re.search(r'^pip install ([\w ]+)\ncolcon build$', page, re.M)
    assert line is not None
    by_hand = set(line[1].split())
    assert ours | by_hand == set(declared(installed, 'report', 'simulation'))


def declared_packages(package: Path) -> set[str]:
    """Return the packages that a package.xml depends on."""
    return {node.text or '' for tag in ('depend', 'exec_depend', 'test_depend')
            for node in ET.parse(package).iter(tag)}


def test_ros_packages_that_are_imported_are_declared() -> None:
    """Those of the launch files too; the tests may use what the package itself does."""
    known = declared_packages(PACKAGE / 'package.xml')
    folders = ('robot_dynid', 'robot_dynid_evaluation', 'test')
    wrong = {f'{path.relative_to(ROOT)}: {top}'
             for folder in folders for path in (ROOT / folder).rglob('*.py')
             for top in imported_packages(path)
             if ROS_PACKAGE.fullmatch(top) and top not in known}
    assert not wrong, '\n'.join(sorted(wrong))


def test_ros_packages_in_interfaces_are_declared() -> None:
    package = ROOT / 'robot_dynid_interfaces'
    known = declared_packages(package / 'package.xml') | {package.name}
    build = (package / 'CMakeLists.txt').read_text()
    for path in (p for kind in ('msg', 'srv', 'action') for p in (package / kind).iterdir()):
        for used in re.findall(r'^([a-z]\w*)/\w+', path.read_text(), re.M):
            assert used in known and (used == package.name or used in build), f'{path}: {used}'


def test_no_committed_file_names_a_path_of_one_machine() -> None:
    wrong = []
    for path in committed():
        text = path.read_bytes().decode('utf-8', errors='ignore')
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                wrong.append(f'{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}')
    assert not wrong, '\n'.join(wrong)
