"""Identification of the dynamics of robot manipulators, and the models that come out of it.

The public names are the imports of ``__init__.pyi``. They load on first use, so that importing
one part does not import all others.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from robot_dynid.version import VERSION as __version__  # noqa: F401


def _read_stub() -> dict[str, str]:
    """Return the module of every public name."""
    stub = ast.parse(Path(__file__).with_suffix('.pyi').read_text(encoding='utf-8'))
    return {alias.name: node.module or '' for node in stub.body
            if isinstance(node, ast.ImportFrom) for alias in node.names}


_PUBLIC = _read_stub()
__all__ = sorted(_PUBLIC)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
