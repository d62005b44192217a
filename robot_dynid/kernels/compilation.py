"""Compilation of the kernels: at their first call, stored on the disk, and news of it.

The compiler takes longer to import than all other parts of the package, so it is imported when a
kernel is called for the first time: whatever computes nothing starts without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any

from robot_dynid.errors import UnstoredKernelsWarning
from robot_dynid.kernels.references import teach

#: samples of a tile: the length of the innermost loops
LANES = 32
# LLVM would write out a loop over the lanes that does little before it looks for vectors, and then
# finds none there: loops of that length stay loops. Rows of a matrix are still written out.
LLVM_OPTION = f'-unroll-full-max-count={LANES // 2}'
_making = RLock()
#: called with the name of a kernel whose compilation begins
_listeners: list[Callable[[str], object]] = []
_depth = [0]  # kernels that are inlined into one are compiled inside of its compilation


class Kernel:
    """A function on plain arrays, compiled for the types of its arguments at the first call.

    ``flags`` are those of numba's compiler; where ``stored``, compiled code is kept on the disk.
    Other attributes are those of numba's dispatcher, so that it may be called in other kernels.
    """

    def __init__(self, function: Any, flags: Mapping[str, Any], stored: bool) -> None:
        self.py_func, self.flags, self._stored = function, flags, stored
        self._made: Any = None
        update_wrapper(self, function)

    @property
    def dispatcher(self) -> Any:
        """Dispatcher of numba; it is made, and nothing compiled, when it is first asked for."""
        with _making:
            if self._made is None:
                made = _compiler().njit(**self.flags)(self.py_func)
                if self._stored and hasattr(made, 'enable_caching'):  # else it is switched off
                    _store(made)
                self._made = made
            return self._made

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function; load or compile it before where needed."""
        try:
            return (self._made or self.dispatcher)(*arguments)
        except OSError as error:  # of the disk: kernels themselves open no files
            if not self._stored:
                raise
            _STORAGE.fails(str(error))
            self._stored, self._made = False, None
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


class _Storage:
    """State of the storage of compiled code, as far as this process knows it."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._told = False

    def fails(self, reason: str) -> None:
        """Keep the first ``reason`` why nothing can be stored."""
        self.problem = self.problem or (
            f'the compiled numerical kernels cannot be stored: {reason}; every process that '
            'computes compiles them anew in its memory, some minutes for all: set the '
            'environment variable NUMBA_CACHE_DIR to a folder that this account can write')

    def tell(self) -> None:
        """Warn of the problem, once: it matters when something has to be compiled."""
        if self.problem and not self._told:
            self._told = True
            warnings.warn(self.problem, UnstoredKernelsWarning, stacklevel=3)


_STORAGE = _Storage()


@cache
def _compiler() -> Any:
    """Return numba, which from then on hands on its news."""
    import numba
    from llvmlite import binding
    from numba.core import event

    class Compilations(event.Listener):  # type: ignore[misc]
        def on_start(self, told: Any) -> None:
            begun(told.data['dispatcher'].py_func.__name__)

        def on_end(self, told: Any) -> None:
            ended()

    binding.set_option('robot_dynid', LLVM_OPTION)
    event.register('numba:compile', Compilations())
    teach()
    return numba


def _store(dispatcher: Any) -> None:
    """Have compiled code stored; where no folder can be written, use what is stored already."""
    try:
        dispatcher.enable_caching()
    except (OSError, RuntimeError):  # RuntimeError: no folder can be written
        given = _compiler().config.CACHE_DIR
        folders = [*([f'NUMBA_CACHE_DIR={given}'] if given else []),
                   f'the folders in {Path(__file__).parents[1]}', "the account's cache folder"]
        _STORAGE.fails(f'nothing can be written to {" or ".join(folders)}')
        with suppress(AttributeError, ImportError, OSError, RuntimeError):
            dispatcher._cache = _read_only(dispatcher.py_func)


def _read_only(function: Any) -> Any:
    """Return the stored code of a function in folders that cannot be written.

    As in an image of a container whose build compiled the kernels (numba 0.55 to 0.68; those of
    older versions have an underscore before their names).
    """
    from numba.core import caching

    def as_they_are(name: str) -> Any:
        locator = getattr(caching, name, None) or getattr(caching, f'_{name}')
        return type('ReadOnly', (locator,), {'ensure_cache_path': lambda self: None})

    places = [as_they_are('InTreeCacheLocator')]
    if _compiler().config.CACHE_DIR:
        places.insert(0, as_they_are('UserProvidedCacheLocator'))
    form = type('ReadOnly', (caching.CompileResultCacheImpl,), {'_locator_classes': places})
    storage = type('ReadOnly', (caching.FunctionCache,), {
        '_impl_class': form, 'save_overload': lambda self, signature, data: None})
    return storage(function)


def storage_problem() -> str | None:
    """Return a message why compiled code cannot be stored, with the remedy; None if it can.

    Known when the first kernel was called, or asked for its signatures.
    """
    return _STORAGE.problem


@contextmanager
def compilation_heard(listener: Callable[[str], object]) -> Iterator[None]:
    """Call ``listener`` with the name of every kernel that is compiled during the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def begun(name: str) -> None:
    """Tell the listeners that the compilation of ``name`` begins."""
    _depth[0] += 1
    if _depth[0] == 1:
        _STORAGE.tell()
        for listener in tuple(_listeners):
            listener(name)


def ended() -> None:
    """Note the end of a compilation."""
    _depth[0] -= 1


def ready_signatures(kernel: Any) -> int | None:
    """Return for how many signatures there is compiled code that fits this machine.

    On the disk, or in this process where more is here. Nothing is compiled or loaded. None where
    the compiler does not tell: it is switched off, or keeps its index elsewhere (written for numba
    0.55 to 0.68).
    """
    try:
        here, cache = len(kernel.signatures), kernel._cache
        if not hasattr(cache, '_cache_file'):  # nothing is stored
            return here
        index = cache._cache_file._load_index()
        _, *fits = cache._index_key((), kernel.targetctx.codegen())  # processor and code
    except (AttributeError, TypeError):
        return None
    except Exception:  # a damaged index, which the compiler will write anew
        return 0
    return max(here, sum(1 for key in index if key[1:] == tuple(fits)))


def storage_folder(kernel: Any) -> str | None:
    """Return the folder with the compiled code of a kernel; None where it is not stored."""
    path = getattr(getattr(kernel, 'stats', None), 'cache_path', None)
    return None if path is None else str(path)
