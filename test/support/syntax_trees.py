"""Source files of the packages, and their syntax trees, each read once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

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
