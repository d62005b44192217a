"""test/support/fuzzing.py: the harness of damaged inputs sees every kind of fault."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import fuzzing
import numpy as np
import pytest
from fuzzing import Reader, assert_no_faults, fuzz, input_of

from robot_dynid.errors import DataError

SEEDS = (b'abc' * 20, b'0123456789')


class TwoLines(DataError):
    """A refusal that would be printed in two lines."""

    def __str__(self) -> str:
        return 'two\nlines'


def test_faults_are_seen_and_counted() -> None:
    numbers: dict[bytes, int] = {}

    def read(path: Path) -> None:
        kind = numbers[path.read_bytes()] % 10
        if kind == 3:
            raise ValueError('outside')
        if kind == 5:
            os.kill(os.getpid(), signal.SIGSEGV)
        if kind == 7:
            _ = bytearray(600_000_000)
        if kind == 8:
            raise TwoLines
        if kind == 9:
            raise DataError('inside')

    reader = Reader('all kinds', '.bin', SEEDS, read)
    for number in range(29, -1, -1):
        numbers[input_of(reader, 0, number)] = number
    outcome = fuzz(reader, 30)
    kinds = [numbers[input_of(reader, 0, k)] % 10 for k in range(30)]
    seen = dict(outcome.faults)
    assert sorted(seen) == [k for k in range(30) if kinds[k] in (3, 5, 7, 8)]
    words = {3: 'ValueError: outside', 5: 'the process ended by SIGSEGV', 7: 'MB',
             8: 'not a message of one line: TwoLines: two lines'}
    assert all(words[kinds[k]] in text for k, text in seen.items())
    assert outcome.inputs == 30
    assert outcome.peak > 500.0


@pytest.mark.parametrize(('work', 'fault'), [
    (lambda: time.sleep(0.2), []),
    (lambda: np.log(np.zeros(1)), ['RuntimeWarning: divide by zero encountered in log']),
    (lambda: sum(range(10**8)), ['the process ended by SIGXCPU']),
], ids=['waits', 'warns', 'works'])
def test_processor_time_and_warnings_are_faults_and_waiting_is_not(
    work: Callable[[], object], fault: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzing, 'PATIENCE', 0)
    monkeypatch.setattr(fuzzing, 'SECONDS', 0.1)
    outcome = fuzz(Reader('work', '.bin', SEEDS, lambda path: work()), 1)
    assert [text for _, text in outcome.faults] == fault


def test_inputs_follow_the_seed() -> None:
    reader = Reader('same', '.bin', SEEDS, lambda path: None)
    one, other = ([input_of(reader, 1, k) for k in range(50)] for _ in range(2))
    assert one == other
    assert len(set(one)) > 40
    assert_no_faults(fuzz(reader, 50))
