"""Syntax trees of files, each read once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


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
