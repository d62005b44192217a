"""Source files of the packages, each read once, and what they declare and import."""

from __future__ import annotations

import ast
import gc
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from robot_dynid.numbers import NumberRange
from robot_dynid.settings import settings_of

ROOT = Path(__file__).resolve().parents[2]
#: the folder of the ROS 2 package
PACKAGE = ROOT / 'robot_dynid'
#: the core, the packages that it finds by entry points, and the folders that hold them
FOLDERS = {'robot_dynid': PACKAGE, 'robot_dynid_extras': PACKAGE, 'robot_dynid_evaluation': ROOT}
SOURCES = sorted(path for name, folder in FOLDERS.items()
                 for path in (folder / name).rglob('*.py'))


def below(path: Path, root: Path = ROOT) -> Path:
    """Return the path below the folder that modules are imported from."""
    package = root / PACKAGE.name
    inside = any(path.is_relative_to(package / name) for name in FOLDERS)
    return path.relative_to(package if inside else root)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file.

    It stays: looking for garbage among a million nodes takes longer than to read them.
    """
    text, collecting = path.read_text(encoding='utf-8'), gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text, filename=str(path))
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file's syntax tree."""
    return tuple(ast.walk(tree_of(path)))


#: packages of ROS by their names
ROS_PACKAGE = re.compile(r'\w+_(msgs|srvs|interfaces)|rcl\w*|launch\w*|ament\w*|tf2\w*|ros\d\w*')


def passed_to_setup(patch: pytest.MonkeyPatch, command: str = 'install') -> dict[str, Any]:
    """Return what setup.py passes to setuptools."""
    passed: dict[str, Any] = {}
    patch.setattr(setuptools, 'setup', passed.update)
    patch.setattr(sys, 'argv', ['setup.py', command])
    patch.chdir(PACKAGE)
    exec(compile(Path('setup.py').read_text(), 'setup.py', 'exec'), {'__name__': 'setup'})
    return passed


def declared(passed: dict[str, Any], *extras: str) -> dict[str, Requirement]:
    """Return what setup.py requires, with ``extras``, by name."""
    lines = [*passed['install_requires'],
             *(line for extra in extras for line in passed['extras_require'][extra])]
    return {canonicalize_name((r := Requirement(line)).name): r for line in lines}


@cache
def imported_packages(path: Path) -> set[str]:
    """Return the top-level names of all imports of a file, also those inside functions."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition('.')[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or '').partition('.')[0])
    return found


def ranges_of(owner: type) -> dict[str, NumberRange]:
    """Return the ranges of a dataclass by the names of its fields."""
    return {name: one.range for name, one in settings_of(owner).items() if one.range is not None}
