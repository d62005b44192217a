"""What setup.py declares, and what files import."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robot_dynid'

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
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition('.')[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or '').partition('.')[0])
    return found
