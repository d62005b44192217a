"""Generated C code, compiled on the spot and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('casadi', reason='CasADi, which makes the C code, is not installed')

from robot_dynid.export.c_code import CCode
from robot_dynid.types import FloatArray

STRICT = ('-Wall', '-Wextra', '-Werror', '-pedantic', '-Wconversion', '-Wshadow')


def compiler(name: str) -> str:
    """Return the path of a compiler; skip where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f'no compiler: {name} is not installed')
    return found


class Compiled:
    """C code of a robot as functions of arrays (K, n): ``compiled('gravity', (n,), q)``."""

    def __init__(self, code: CCode, folder: Path) -> None:
        self.header, self.source = code.save(folder)
        self._name, self.library = code.name, folder / f'{code.name}.so'
        subprocess.run([compiler('gcc'), '-O2', '-std=c99', *STRICT, '-shared', '-fPIC',
                        str(self.source), '-o', str(self.library), '-lm'], check=True)
        self.functions = ctypes.CDLL(str(self.library))

    def require_cpp(self) -> None:
        """Check that the same files are C++ without warnings."""
        subprocess.run([compiler('g++'), '-x', 'c++', '-std=c++11', *STRICT, '-fsyntax-only',
                        str(self.source)], check=True)

    def call(self, name: str, *arguments: ctypes.c_void_p) -> int:
        """Call a function with pointers, and return what it returns."""
        return int(getattr(self.functions, f'{self._name}_{name}')(*arguments))

    def __call__(self, name: str, shapes: list[tuple[int, ...]], *states: FloatArray
                 ) -> list[FloatArray]:
        """Return what a function without state writes, (K, ...) each, for ``states`` (K, n)."""
        found = [np.empty((len(states[0]), *shape)) for shape in shapes]
        for k in range(len(states[0])):
            self.call(name, *(pointer(array[k]) for array in (*states, *found)))
        return found

    def friction_along(self, motion: list[FloatArray], begin: list[FloatArray]) -> FloatArray:
        """Return friction (N, n) with its past along a ``motion``, arrays (N, n)."""
        state = ctypes.create_string_buffer(4096)
        friction = np.empty_like(motion[0])
        assert self.call('friction_begin', state, *(pointer(a[0]) for a in begin)) == 0
        for k in range(len(friction)):
            assert self.call('friction_step', state, *(pointer(a[k]) for a in motion),
                             pointer(friction[k])) == 0
        return friction


def pointer(row: FloatArray) -> ctypes.c_void_p:
    """Return the address of a contiguous array (...)."""
    assert row.flags.c_contiguous and row.dtype == np.float64
    return ctypes.c_void_p(row.ctypes.data)
