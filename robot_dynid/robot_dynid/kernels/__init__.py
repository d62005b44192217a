"""Numerical kernels: the loops over samples, joints and steps, in C++.

Each header ``NAME.hpp`` of this folder is a submodule ``robot_dynid.kernels.NAME`` with the
kernels and constants that ``kernels.cpp`` lists. Kernels take C-contiguous arrays, numbers and
tuples of such, fill the arrays of their results, and let other threads run meanwhile; they raise
TypeError for anything else, and do not check shapes. Their headers say what they compute.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...


def _built() -> ModuleType:
    """Return the kernels that were built for the newest instructions of this processor."""
    try:
        portable = import_module(f'{__name__}._portable')
    except ModuleNotFoundError:
        raise ImportError(
            'the numerical kernels of robot_dynid are not built: install the package with pip or '
            'colcon, or run `python setup.py build_ext --inplace` in its source folder; both need '
            'a C++ compiler') from None
    if portable.has_newer():
        with suppress(ModuleNotFoundError):
            return import_module(f'{__name__}._newer')
    return portable


def _spread(built: ModuleType) -> None:
    """Make the submodules those of this package, and arrays of tables of constants."""
    for name, space in vars(built).items():
        if isinstance(space, ModuleType):
            globals()[name] = sys.modules[f'{__name__}.{name}'] = space
            for key, value in vars(space).items():
                if isinstance(value, tuple):
                    setattr(space, key, np.array(value))


_chosen = _built()
_spread(_chosen)
#: path of the build that was chosen
BUILT = str(_chosen.__file__)
