"""Work shared out over threads: the same numbers, the same errors, few of them in one thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from identified_models import nominal_model, states

from robot_dynid import threads
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.threads import (
    limit_threads,
    shared_out,
    side_by_side,
    thread_count,
    threads_at_most,
)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend to have two cores at least."""
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 1})
    with threads_at_most(2):
        yield


def test_states_and_motions_are_the_same_bit_by_bit(two_cores: None) -> None:
    model = nominal_model('tx40')
    q, qd, qdd = states(model, 40 * LANES + 5)
    effort, count = model.inverse(q, qd, qdd), 3 * LANES + 2
    held = np.repeat(effort[:count, None], 30, axis=1)

    def all_of_them() -> list[np.ndarray]:
        return [model.inverse(q, qd, qdd), model.forward(q, qd, effort),
                *model.rollout(q[:count], qd[:count], held, 2e-3)]

    shared = all_of_them()
    with threads_at_most(1):
        alone = all_of_them()
    for one, other in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_parts_make_up_the_whole_and_begin_with_tiles(two_cores: None) -> None:
    for count in (0, 1, 99, 100, 101, 257, 1000):
        found: list[slice] = []
        shared_out(found.append, count, 32, 100)
        rows = [row for part in sorted(found, key=lambda p: p.start)
                for row in range(part.start, part.stop)]
        assert rows == list(range(count))
        assert all(part.start % 32 == 0 for part in found)
        assert len(found) == (1 if count <= 100 else 2)


def test_parts_run_side_by_side_and_an_error_of_any_ends_the_call(two_cores: None) -> None:
    both = threading.Barrier(2, timeout=30.0)

    def fail_in_the_other_thread(part: slice) -> None:
        both.wait()
        if part.start:
            raise ValueError('of a part')

    with pytest.raises(ValueError, match='of a part'):
        shared_out(fail_in_the_other_thread, 64, 32, 32)


def test_few_states_stay_in_the_thread_of_the_caller(
    two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads.ThreadPoolExecutor, 'submit', None)
    model = nominal_model('planar_3r')
    q, qd, qdd = states(model, 4 * LANES)
    model.forward(q, qd, model.inverse(q, qd, qdd))
    model.rollout(q[:LANES], qd[:LANES], np.zeros((LANES, 50, 3)), 1e-3)


def test_a_limit_is_one_of_the_process(two_cores: None) -> None:
    assert thread_count() == 2
    limit_threads(1)
    assert thread_count() == 1
    limit_threads(None)
    assert thread_count() == 2


@pytest.fixture(params=[1, 2, 8])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let this process have so many cores."""
    count: int = request.param
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(count)))
    return count


def test_results_come_in_order(cores: int) -> None:
    assert list(side_by_side(lambda x: x * x, range(20))) == [x * x for x in range(20)]
    assert list(side_by_side(str, [])) == []


def test_items_are_in_work_at_once_where_there_are_cores(cores: int) -> None:
    meeting = threading.Barrier(min(cores, 4), timeout=30.0)
    apart = list(side_by_side(lambda _: (meeting.wait(), threading.current_thread())[1], range(4)))
    assert (threading.main_thread() in apart) == (cores == 1)


def test_an_error_ends_the_rest(cores: int) -> None:
    done = []

    def work(x: int) -> int:
        time.sleep(1e-3)  # or the others are done before the error is looked at
        done.append(x)
        return 1 // x

    with pytest.raises(ZeroDivisionError):
        list(side_by_side(work, [1, 0, *range(1, 500)]))
    assert len(done) < 500
