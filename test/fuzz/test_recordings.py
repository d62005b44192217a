"""Damaged recordings of every format: read or refused, never anything else."""

from __future__ import annotations

import sys

import pytest
from fuzzing import Reader, assert_no_faults, fuzz
from recording_inputs import readers

KINDS = ('mcap', 'mcap lz4', 'mcap zstd', 'mcap file', 'db3', 'db3 file', 'db3 message', 'csv',
         'csv.gz', 'metadata.yaml', 'CDR', 'bag', 'definitions')


@pytest.fixture(scope='module')
def kinds() -> dict[str, Reader]:
    """Return the readers by kind of recording."""
    found = {reader.name: reader for reader in readers()}
    assert set(found) == set(KINDS)
    return found


def check(reader: Reader, count: int, seed: int = 0) -> None:
    outcome = fuzz(reader, count, seed)
    sys.stdout.write(f'{outcome}\n')
    assert_no_faults(outcome)


@pytest.mark.parametrize('kind', KINDS)
def test_every_input_is_read_or_refused(kinds: dict[str, Reader], kind: str) -> None:
    check(kinds[kind], 400)


@pytest.mark.soak
@pytest.mark.parametrize('kind', KINDS)
def test_recordings_damaged_a_million_times_are_read_or_refused(
    kinds: dict[str, Reader], kind: str
) -> None:
    check(kinds[kind], 84_000, seed=1)
