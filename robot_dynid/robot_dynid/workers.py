"""Tasks shared out over processes, of this machine or of a cluster; results come in their order.

So what is made of the results depends neither on how many processes there are nor on which of
them is done first.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing.connection import Connection
from threading import Thread
from types import TracebackType
from typing import Any, Protocol, TypeVar

from robot_dynid.errors import DynIdError, MissingDependency, UsageError
from robot_dynid.threads import limit_threads

Item = TypeVar('Item')
Found = TypeVar('Found')

#: tasks per worker that are handed out before the oldest of them is done
AHEAD = 4
#: workers that may be lost in a row without a result
LOST = 3
#: s to wait for an answer of a scheduler, and for its first worker
CONNECT = 20


class Workers(Protocol):
    """Workers on tasks."""

    def results(
        self, task: Callable[[Item], Found], items: Iterable[Item]
    ) -> Iterator[Found]:
        """Yield the result of ``task`` for every item, in order; raises what the first raised."""


class ThisProcess:
    """Works on one task after the other."""

    def results(
        self, task: Callable[[Item], Found], items: Iterable[Item]
    ) -> Iterator[Found]:
        """Yield the results, see `Workers`."""
        yield from map(task, items)


class Processes:
    """So many processes of this machine, each with one thread of its own.

    Where one is killed, the tasks that were lost with it are given to new ones. All of them end
    with this process, however that ends; and at once, in the middle of their tasks, where an error
    or Ctrl-C ends the block.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._context = multiprocessing.get_context('spawn')
        self._line, self._begin = self._context.Pipe(duplex=False)
        self._pool = self._begun()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        self._begin.close()
        self._line.close()

    def results(
        self, task: Callable[[Item], Found], items: Iterable[Item]
    ) -> Iterator[Found]:
        """Yield the results, see `Workers`.

        Raises DynIdError where workers are killed again and again.
        """
        def restart() -> None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._begun()

        yield from _in_order(
            lambda item: self._pool.submit(task, item), items, AHEAD * self.count, restart)

    def _begun(self) -> ProcessPoolExecutor:
        # a copy of a process with threads (fork) may wait for ever for what one of them held
        return ProcessPoolExecutor(self.count, self._context, _begin_worker, (self._line,))


class Cluster:
    """The workers of a Dask cluster, by the address of its scheduler: ``tcp://host:8786``.

    Dask gives the tasks of a lost worker to others. Raises MissingDependency without Dask,
    UsageError where no scheduler answers or it has no workers.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise MissingDependency.of('a scheduler is one of Dask', 'fleet') from None
        try:
            self._client = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f'--scheduler {address}: no scheduler of Dask answers there '
                             f'({error}); start one with: dask scheduler') from None
        try:
            self._client.wait_for_workers(1, timeout=CONNECT)
        except OSError:
            self._client.close()
            raise UsageError(f'--scheduler {address}: it has no workers; start some with: '
                             f'dask worker {address} --nthreads 1') from None
        self._pool = self._client.get_executor(pure=False)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def results(
        self, task: Callable[[Item], Found], items: Iterable[Item]
    ) -> Iterator[Found]:
        """Yield the results, see `Workers`.

        Raises DynIdError where workers are lost again and again, or lack this package.
        """
        from distributed import KilledWorker

        capacity = AHEAD * max(1, sum(self._client.nthreads().values()))
        try:
            yield from _in_order(lambda item: self._pool.submit(task, item), items, capacity)
        except KilledWorker as error:
            raise DynIdError(f'the cluster lost its workers repeatedly: {error}; give them more '
                             'memory') from None
        except ImportError as error:
            raise DynIdError(f'a worker of the cluster cannot import what it needs ({error}): '
                             'install the same robot_dynid on all of them') from None


def _in_order(
    submit: Callable[[Item], Future[Found]], items: Iterable[Item], capacity: int,
    restart: Callable[[], None] | None = None,
) -> Iterator[Found]:
    """Yield the results of items in order; at most ``capacity`` are handed out at a time.

    Where their executor breaks, ``restart`` makes another one for what was lost.
    """
    coming, lost = iter(items), 0
    out: deque[tuple[Any, Future[Found]]] = deque()
    while True:
        for item in islice(coming, capacity - len(out)):
            out.append((item, _submitted(submit, item)))
        if not out:
            return
        try:
            result = out[0][1].result()
        except BrokenExecutor:
            lost += 1
            if restart is None or lost == LOST:
                raise DynIdError(
                    f'{out[0][0]}: {lost} workers in a row were killed while they or others '
                    'worked on it: reduce --workers, or free memory') from None
            restart()
            out = deque((item, future if _done(future) else _submitted(submit, item))
                        for item, future in out)
            continue
        lost = 0
        out.popleft()
        yield result


def _submitted(submit: Callable[[Item], Future[Found]], item: Item) -> Future[Found]:
    """Return the future of an item; an executor that is broken already breaks this one, too."""
    try:
        return submit(item)
    except BrokenExecutor as error:
        lost: Future[Found] = Future()
        lost.set_exception(error)
        return lost


def _done(future: Future[Any]) -> bool:
    """Return whether a future has a result, or an error of its own."""
    return future.done() and not future.cancelled() and not isinstance(
        future.exception(), BrokenExecutor)


def _begin_worker(line: Connection) -> None:
    """Prepare a worker: one thread, deaf to Ctrl-C, which the first process answers."""
    limit_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(line,), daemon=True).start()


def _end_with(line: Connection) -> None:
    """End this process when the first one closes its end of a ``line``, or has ended."""
    line.poll(None)
    os.kill(os.getpid(), signal.SIGKILL)
