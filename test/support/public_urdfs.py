"""URDF files of example-robot-data and pybullet, where these are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: below a folder that Python imports from
PLACES = 'cmeel.prefix/share/example-robot-data/robots', 'pybullet_data'
#: a thousand objects without joints
OBJECTS = 'random_urdfs'
#: one of so many is read in every run, the others in the long one
SHARE = 8


def public_urdfs() -> list[Any]:
    """Return the paths of all that differ as arguments of a test, or one that is skipped."""
    found = [pytest.param(path, id=path.stem, marks=[pytest.mark.soak] if i % SHARE else [])
             for i, path in enumerate(_distinct())]
    return found or [pytest.param(Path(), marks=pytest.mark.skip(
        reason='example-robot-data is not installed'))]


def _distinct() -> Iterator[Path]:
    seen: set[bytes] = set()
    folders = [Path(folder) / place for folder in dict.fromkeys(sys.path) for place in PLACES]
    for path in sorted(path for folder in folders for path in folder.rglob('*.urdf')):
        content = b'' if OBJECTS in path.parts else path.read_bytes()
        if content and content not in seen:
            seen.add(content)
            yield path
