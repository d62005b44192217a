"""Linear algebra in one thread: the matrices are small, and idle threads of BLAS spin.

Threads that wait for the next small product keep all cores busy: the work takes longer, and
whatever runs beside it starves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any


@cache
def _libraries() -> Any:
    """Return control of the libraries, found once: looking for them takes milliseconds."""
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _release() -> None:
    """Let any thread set the limit: from threadpoolctl 3.8 on only the first one may."""
    for library in _libraries().lib_controllers:
        if hasattr(library, 'clear_controlling_thread'):
            library.clear_controlling_thread(force=True)


class _Holders:
    """The blocks that hold BLAS to one thread now: the first one limits, the last one restores.

    The number of threads is one of the process, and blocks of several threads overlap.
    """

    def __init__(self) -> None:
        self._lock, self._count = Lock(), 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if not self._count:
                _release()
                self._limit = _libraries().limit(limits=1, user_api='blas')
                _release()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                _release()
                self._limit.restore_original_limits()
                _release()


_HOLDERS = _Holders()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread in a block, or in a function that this decorates.

    Entering costs about 15 us, within another block 1 us.
    """
    _HOLDERS.enter()
    try:
        yield
    finally:
        _HOLDERS.leave()
