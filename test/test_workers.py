"""Workers: results in order, killed ones replaced, none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from worker_tasks import KilledOnce, own_process, refused, slow_at_first, threads

from robot_dynid import workers as module
from robot_dynid.errors import DynIdError, MissingDependency, UsageError
from robot_dynid.workers import Cluster, Processes, ThisProcess


@pytest.fixture(scope='module')
def two() -> Iterator[Processes]:
    """Return two processes."""
    with Processes(2) as found:
        yield found


def test_results_come_in_order(two: Processes) -> None:
    for workers in (ThisProcess(), two):
        assert list(workers.results(slow_at_first, range(20))) == list(range(20))
        assert list(workers.results(slow_at_first, [])) == []


def test_the_first_error_in_order_is_raised(two: Processes) -> None:
    for workers in (ThisProcess(), two):
        with pytest.raises(ValueError, match='1 is odd'):
            list(workers.results(refused, range(10)))


def test_a_worker_uses_one_core(two: Processes) -> None:
    assert set(two.results(threads, range(4))) == {1}


def test_not_all_tasks_are_handed_out_at_once(two: Processes) -> None:
    taken = []
    items = (taken.append(i) or i for i in range(100))
    results = two.results(slow_at_first, items)
    assert next(results) == 0
    assert len(taken) == 4 * two.count
    results.close()


def test_processes_repeat_the_work_of_a_killed_worker(tmp_path: Path) -> None:
    with Processes(2) as workers:
        assert list(workers.results(KilledOnce(tmp_path, 5), range(12))) == [
            2 * i for i in range(12)]
        assert (tmp_path / 'killed').exists()


def test_a_worker_may_be_killed_while_tasks_are_handed_out(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor that is found to be broken refuses the next task at once; results in between
    show that tasks are not what kills.
    """
    refused_ones, begun, done = [0, 0, 4, 4, 5, 10, 10], [], list[int]()

    class Refusing:
        def __init__(self, *_: object) -> None:
            begun.append(self)

        def submit(self, task: Any, item: int) -> Future[int]:
            if item in refused_ones:
                refused_ones.remove(item)
                raise BrokenProcessPool('a worker was killed')
            done.append(item)
            found: Future[int] = Future()
            found.set_result(task(item))
            return found

        def shutdown(self, **_: object) -> None:
            pass

    monkeypatch.setattr(module, 'ProcessPoolExecutor', Refusing)
    with Processes(1) as workers:
        taken = list[int]()
        for i, result in enumerate(workers.results(slow_at_first, (
                taken.append(i) or i for i in range(12)))):  # type: ignore[func-returns-value]
            assert (result, len(taken)) == (i, min(i + 4, 12)), 'no more than before are under way'
        assert i == 11
    assert len(begun) == 7 and not refused_ones
    assert sorted(done) == list(range(12)), 'what is done is not done again'
    refused_ones += 3 * [2]
    with Processes(1) as workers, pytest.raises(DynIdError, match=r'^2: 3 workers in a row were'):
        list(workers.results(slow_at_first, range(4)))


def test_a_task_that_kills_every_worker_ends_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, 'LOST', 2)
    said = r'1: 2 workers in a row.*memory'
    with Processes(1) as workers, pytest.raises(DynIdError, match=said):
        list(workers.results(KilledOnce(tmp_path, 1, always=True), range(3)))


def ended(worker: int) -> None:
    """Wait until a process has ended, for less than a task of `own_process` may take."""
    until = time.monotonic() + 30.0
    while Path(f'/proc/{worker}').exists() and time.monotonic() < until:
        with suppress(OSError):  # it may end meanwhile
            if Path(f'/proc/{worker}/stat').read_text().split()[2] == 'Z':
                break  # it has ended, and nobody has asked for its exit code
        time.sleep(0.02)
    else:
        assert not Path(f'/proc/{worker}').exists()


def test_workers_end_with_the_process_that_began_them() -> None:
    program = ('import os, time\nfrom robot_dynid.workers import Processes\n'
               'if __name__ == "__main__":\n'
               '    workers = Processes(1)\n'
               '    print(workers._pool.submit(os.getpid).result(), flush=True)\n'
               '    time.sleep(60)\n')
    first = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    worker = int(first.stdout.readline())
    first.kill()
    first.wait()
    first.stdout.close()
    ended(worker)


def test_workers_leave_ctrl_c_to_the_first_process() -> None:
    with Processes(1) as workers:
        found = workers.results(own_process, (0.0, 0.5))
        worker = next(found)
        os.kill(worker, signal.SIGINT)
        try:
            assert next(found) == worker
        except KeyboardInterrupt:
            pytest.fail('the worker was interrupted')


@pytest.mark.parametrize('error', [KeyboardInterrupt, DynIdError])
def test_an_error_does_not_wait_for_what_is_under_way(error: type[BaseException]) -> None:
    with pytest.raises(error), Processes(1) as workers:
        found = workers.results(own_process, (0.0, 60.0))
        worker = next(found)
        raise error
    ended(worker)


def test_without_a_scheduler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'distributed', None)
    with pytest.raises(MissingDependency, match=r"'robot_dynid\[fleet\]'"):
        Cluster('tcp://127.0.0.1:1')
    monkeypatch.undo()
    pytest.importorskip('distributed')
    monkeypatch.setattr(module, 'CONNECT', 0.2)
    for address in ('tcp://127.0.0.1:1', 'nowhere'):
        with pytest.raises(UsageError, match=r'no scheduler.*dask scheduler'):
            Cluster(address)
