"""Work shared out over threads; how many there are is decided here.

Kernels and linear algebra release the interpreter's lock, so that parts of one call run side by
side. Parts are whole tiles: what is computed does not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

Item = TypeVar('Item')
Found = TypeVar('Found')

_limit: list[int | None] = [None]


def thread_count() -> int:
    """Return the number of threads of a call: the cores of this process, or fewer by a limit."""
    available = len(os.sched_getaffinity(0))
    return available if _limit[0] is None else min(available, _limit[0])


def limit_threads(limit: int | None) -> None:
    """Let calls use ``most`` threads from now on in all of the process; None: all its cores.

    One is for processes that must answer others in the meantime, or of which there are many.
    """
    _limit[0] = limit


@contextmanager
def threads_at_most(limit: int) -> Iterator[None]:
    """Limit the threads of all calls in a block."""
    previous = _limit[0]
    limit_threads(limit)
    try:
        yield
    finally:
        limit_threads(previous)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), 'robot_dynid share')


# a process that was forked has none of the threads
os.register_at_fork(after_in_child=_pool.cache_clear)


def shared_out(work: Callable[[slice], object], count: int, tile: int, least: int) -> None:
    """Call ``work`` with slices that make up ``count`` items, side by side.

    Slices begin at multiples of ``tile``; there is one more thread for every ``least`` items
    begun. An error of any ends the call.
    """
    shares = min(thread_count(), -(-count // least))
    if shares < 2:
        work(slice(0, count))
        return
    size = -(-count // (shares * tile)) * tile
    parts = [slice(first, min(first + size, count)) for first in range(0, count, size)]
    others = [_pool().submit(work, part) for part in parts[1:]]
    try:
        work(parts[0])
    finally:
        for other in others:
            other.result()


def side_by_side(work: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
    """Yield the result of ``work`` for every item, in order.

    So many are worked on at once as there are threads. An error in one, or in the loop that takes
    the results, ends the rest.
    """
    waiting = list(items)
    threads = min(len(waiting), thread_count())
    if threads < 2:
        yield from map(work, waiting)
        return
    pool = ThreadPoolExecutor(threads, 'side_by_side')
    try:
        yield from pool.map(work, waiting)
    finally:
        pool.shutdown(cancel_futures=True)
