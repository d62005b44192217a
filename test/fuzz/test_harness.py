"""test/support/fuzzing.py: the harness of damaged inputs sees every kind of fault."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from fuzzing import Reader, assert_no_faults, fuzz, input_of

from robot_dynid.errors import DataError

SEEDS = (b'abc' * 20, b'0123456789')


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
            raise DataError('two\nlines')
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
             8: 'not a message of one line: DataError: two lines'}
    assert all(words[kinds[k]] in text for k, text in seen.items())
    assert outcome.inputs == 30
    assert outcome.peak > 500.0


def test_inputs_follow_the_seed() -> None:
    reader = Reader('same', '.bin', SEEDS, lambda path: None)
    one, other = ([input_of(reader, 1, k) for k in range(50)] for _ in range(2))
    assert one == other
    assert len(set(one)) > 40
    assert_no_faults(fuzz(reader, 50))
