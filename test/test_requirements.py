"""Every import has its requirement, every requirement its use, a licence that may be, one version.

Known vulnerabilities are not looked for: that takes a data base which is not here.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from sources import PACKAGE, ROOT, ROS_PACKAGE, declared, imported_packages, passed_to_setup

#: folders of what `make setup` installs, and of the tests
INSTALLED = (PACKAGE, ROOT / 'robot_dynid_evaluation')
TESTS = ROOT / 'test'
OURS = {'robot_dynid', 'robot_dynid_extras', 'robot_dynid_evaluation', 'robot_dynid_interfaces'}
#: distributions by the name of their module, where that is another
MODULES = {'yaml': 'pyyaml', 'sklearn': 'scikit-learn', 'pinocchio': 'pin'}
#: modules that come with another distribution, and with which
BROUGHT = {'coverage': 'pytest-cov', 'lz4': 'rosbags', 'packaging': 'pytest', 'setuptools': 'pip',
           'tomli': 'pytest', 'wheel': 'pip', 'builtin_interfaces': 'rclpy'}
#: what a feature, or a benchmark as its peer, asks for when it is used, never before
ON_DEMAND = {'casadi', 'coal', 'cvxpy', 'cyipopt', 'distributed', 'figaroh', 'fsspec', 'idyntree',
             'jax', 'jinja2', 'mujoco', 'pin', 'plotly', 'pyarrow', 'pydrake',
             'xacro'}
#: requirements that are run or read by others, not imported
TOOLS = {'mypy': 'make test', 'ruff': 'make test', 'pytest-xdist': 'make test',
         'pytest-rerunfailures': 'make test', 'pytest-cov': 'make tiers',
         'scipy-stubs': 'mypy', 'types-pyyaml': 'mypy', 'zstandard': 'mcap'}
#: licences of what is installed: permissive, and such as bind changes to the library itself
ALLOWED = re.compile(r'\b(BSD|MIT|Apache|ISC|PSF|Python Software|MPL|Lesser General Public|LGPL)\b'
                     r'|Redistribution and use', re.IGNORECASE)
LINE = re.compile(r'^([A-Za-z0-9_.-]+)(?:\[\w+\])?==([\w.]+)'
                  r'(?:; python_version (<|>=) "([\d.]+)")?$')


def third_party(folder: Path) -> dict[str, set[Path]]:
    """Return the distributions whose modules the files of a folder import, and where."""
    here = {path.stem for path in (ROOT / 'test').rglob('*.py')}
    found = defaultdict(set)
    for path in folder.rglob('*.py'):
        for module in imported_packages(path) - sys.stdlib_module_names - OURS - here:
            if not ROS_PACKAGE.fullmatch(module) and module not in BROUGHT:
                found[canonicalize_name(MODULES.get(module, module))].add(path)
    return found


def asked_for(folder: Path) -> set[str]:
    """Return the distributions that the files of a folder import by name, where they are."""
    texts = [path.read_text() for path in folder.rglob('*.py')]
    modules = {one for text in texts for one in re.findall(r"importorskip\(\s*'(\w+)", text)}
    return {canonicalize_name(MODULES.get(module, module)) for module in modules}


def pinned(name: str) -> dict[str, set[tuple[str, str]]]:
    """Return the versions of a file of pinned requirements, with their Pythons."""
    found = defaultdict(set)
    for line in (ROOT / 'requirements' / f'{name}.txt').read_text().splitlines():
        text = line.partition('#')[0].strip()
        if text:
            match = LINE.match(text)
            assert match, f'requirements/{name}.txt: {text}: pin it as name==version'
            found[canonicalize_name(match[1])].add((match[2], f'{match[3]}{match[4]}'))
    return found


def test_every_import_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = passed_to_setup(monkeypatch)
    known = set(declared(passed, 'report', 'simulation', 'fleet', 'test'))
    wrong = [f'{name}: {path.relative_to(ROOT)}'
             for folder in INSTALLED
             for name, paths in third_party(folder).items() for path in paths
             if name not in (known | ON_DEMAND)]
    tests = set(pinned('core')) | set(pinned('test')) | ON_DEMAND
    wrong += [f'{name}: {min(paths).relative_to(ROOT)}'
              for name, paths in third_party(TESTS).items() if name not in tests]
    assert not wrong, '\n'.join(wrong)


def test_every_requirement_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = passed_to_setup(monkeypatch)
    package = {name for folder in INSTALLED
               for name in third_party(folder)}
    for extras in ((), ('report', 'simulation', 'fleet')):
        assert not set(declared(passed, *extras)) - package
    tests = package | set(third_party(TESTS)) | asked_for(TESTS)
    assert not set(pinned('test')) - tests - set(TOOLS)
    assert not set(TOOLS) - set(pinned('test')) - set(pinned('core')), 'not required any more'


def test_versions_are_pinned_once() -> None:
    files: dict[str, str] = {}
    for name in ('core', 'ros_kilted', 'build', 'test', 'docs'):
        for distribution, versions in pinned(name).items():
            assert distribution not in files, f'{distribution}: in {files[distribution]}, too'
            files[distribution] = name
            pythons = sorted(python for _, python in versions)
            bounds = {python.lstrip('<>=') for python in pythons}
            whole = pythons == ['NoneNone'] or (len(pythons) == 2 and len(bounds) == 1)
            assert whole, f'{distribution}: not one version for every Python: {pythons}'


@pytest.mark.parametrize('name', ['core', 'test'])
def test_licences_may_be(name: str) -> None:
    """Of what is installed here; the ranges that a ROS of the system has are those of rosdep."""
    wrong = []
    for distribution in pinned(name):
        try:
            about = metadata.metadata(distribution)
        except metadata.PackageNotFoundError:
            continue
        said = ' '.join([about.get('License-Expression') or '', about.get('License') or '',
                         *(c for c in about.get_all('Classifier') or () if 'License' in c)])
        if not ALLOWED.search(said):
            wrong.append(f'{distribution}: {said[:80]}')
    assert not wrong, '\n'.join(wrong)
