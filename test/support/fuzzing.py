"""Damaged inputs for readers: seeded, counted, in a process of their own.

A reader, which may use what it has read, may accept an input or raise a DynIdError whose message
is one line. Everything else is a fault: another exception, a warning of NumPy, a crash of the
interpreter, an input that takes more than SECONDS of processor, or more memory than MEGABYTES.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path

import numpy as np

from robot_dynid.errors import DynIdError, UnexpectedError
from robot_dynid_evaluation import trust

#: most processor time of one input [s] and most memory beyond that of the process before [MB]
SECONDS, MEGABYTES = 5.0, 500.0
#: an input that takes so much processor time [s] is given up, with its process
PATIENCE = 30
#: an input that waits for something, and so takes none, is given up after so long [s]
BLOCKED = 600.0
#: address space of the process beyond what it has [bytes]: a bomb meets MemoryError, not the host
SPACE = 4 << 30
FORK = multiprocessing.get_context('fork')
#: a run ends after so many faults
MOST_FAULTS = 50

Mutator = Callable[[np.random.Generator, bytes], bytes]


@dataclass(frozen=True)
class Reader:
    """A function of a file under test, and the whole files that its inputs are made of."""

    name: str
    suffix: str
    seeds: Sequence[bytes]
    read: Callable[[Path], object]
    mutate: Mutator = field(default_factory=lambda: mutated)


@dataclass
class Outcome:
    """Counts of a run; ``faults`` holds (number of the input, what happened)."""

    name: str
    inputs: int = 0
    accepted: int = 0
    slowest: float = 0.0
    peak: float = 0.0
    faults: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return (f'{self.name:28s} {self.inputs:9d} inputs {self.accepted:9d} accepted '
                f'{len(self.faults):6d} faults  slowest {self.slowest:7.3f} s  '
                f'peak {self.peak:7.1f} MB')


def fault_of(error: BaseException) -> str:
    """Return what is wrong with a refusal: '' if it is a DynIdError with a message of one line."""
    cause = error.__cause__ or error if isinstance(error, UnexpectedError) else error
    words = f'{type(cause).__name__}: {" ".join(str(cause).split())[:200]}'
    if not isinstance(error, DynIdError) or isinstance(error, UnexpectedError):
        return f'{words}{_place_of(cause)}'
    return '' if len(str(error).splitlines()) == 1 else f'not a message of one line: {words}'


def _place_of(error: BaseException) -> str:
    """Return where in our packages an exception was raised, or passed through last."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if 'robot_dynid' in frame.filename]
    return f' at {"/".join(frames[-1].filename.split("/")[-2:])}:{frames[-1].lineno}' \
        if frames else ''


@contextmanager
def may_refuse() -> Iterator[None]:
    """Let the block end, or be refused by a DynIdError with a message of one line."""
    try:
        yield
    except DynIdError as error:
        assert not fault_of(error), fault_of(error)


def input_of(reader: Reader, seed: int, number: int) -> bytes:
    """Return an input by its number; the same for the same seed."""
    rng = np.random.default_rng([seed, number])
    data = reader.seeds[int(rng.integers(len(reader.seeds)))]
    for _ in range(int(rng.integers(1, 4))):
        data = reader.mutate(rng, data)
    return data


def fuzz(reader: Reader, count: int, seed: int = 0) -> Outcome:
    """Give ``count`` inputs to a reader and return what happened."""
    outcome, began = Outcome(reader.name), time.monotonic()
    place = mmap.mmap(-1, 16)  # number of the input and time of its start, seen by both processes
    with tempfile.TemporaryDirectory(prefix='robot_dynid_fuzz_') as folder:
        start = 0
        while start < count and len(outcome.faults) < MOST_FAULTS:
            start = _run(reader, range(start, count), seed, Path(folder), place, outcome)
    outcome.inputs = start
    trust.keep('inputs', {
        'inputs': outcome.inputs, 'accepted': outcome.accepted, 'faults': len(outcome.faults),
        'slowest': outcome.slowest, 'peak': outcome.peak}, time.monotonic() - began, reader.name)
    return outcome


def _run(reader: Reader, numbers: range, seed: int, folder: Path, place: mmap.mmap,
         outcome: Outcome) -> int:
    """Run a process until it ends; return the number of the input to go on with."""
    results = folder / 'results'
    results.write_bytes(b'')
    place[:] = struct.pack('<qd', numbers.start, time.monotonic())
    child = FORK.Process(target=_work, args=(reader, numbers, seed, folder, place))
    child.start()
    status = _waited(child, place)
    number, _ = struct.unpack('<qd', place[:])
    for line in results.read_text('utf-8', 'replace').splitlines():
        _take(line, outcome)
    if status == 0:
        return numbers.stop
    how = f'ended by {signal.Signals(-status).name}' if status < 0 else f'ended with {status}'
    outcome.faults.append((number, f'the process {how}'))
    return int(number) + 1


def _waited(child: ForkProcess, place: mmap.mmap) -> int:
    """Return the exit code of the process, ended when one input takes too long."""
    while child.exitcode is None:
        child.join(0.1)
        if time.monotonic() - struct.unpack('<qd', place[:])[1] > BLOCKED:
            child.kill()
    return child.exitcode


def _take(line: str, outcome: Outcome) -> None:
    kind, _, rest = line.partition(' ')
    if kind == 'fault':
        number, _, words = rest.partition(' ')
        outcome.faults.append((int(number), words))
    elif kind == 'sums':
        accepted, slowest, peak = rest.split()
        outcome.accepted += int(accepted)
        outcome.slowest = max(outcome.slowest, float(slowest))
        outcome.peak = max(outcome.peak, float(peak))


def _work(reader: Reader, numbers: range, seed: int, folder: Path, place: mmap.mmap) -> None:
    """Read inputs one after the other; every fault is a line of the results."""
    with suppress(ValueError, OSError):
        here = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (here + SPACE, here + SPACE))
    warnings.simplefilter('error', RuntimeWarning)  # NumPy's, about numbers that went wrong
    path = folder / f'input{reader.suffix}'
    accepted, slowest, peak = 0, 0.0, 0.0
    with (folder / 'results').open('a', encoding='utf-8') as results:
        for number in numbers:
            path.unlink(missing_ok=True)
            path.write_bytes(input_of(reader, seed, number))
            before = _peak(reset=True)
            place[:] = struct.pack('<qd', number, time.monotonic())
            start = _processor()
            _, most = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(
                resource.RLIMIT_CPU, (int(time.process_time()) + 1 + PATIENCE, most))
            words = ''
            try:
                reader.read(path)
                accepted += 1
            except BaseException as error:
                words = fault_of(error)
            seconds, memory = _processor() - start, _peak() - before
            slowest, peak = max(slowest, seconds), max(peak, memory)
            if not words and (seconds > SECONDS or memory > MEGABYTES):
                words = f'took {seconds:.1f} s and {memory:.0f} MB'
            if words:
                results.write(f'fault {number} {words}\n')
                results.flush()
            if number % 100 == 0 or number == numbers[-1]:
                results.write(f'sums {accepted} {slowest} {peak}\n')
                results.flush()
                accepted = 0


def _processor() -> float:
    """Return the processor time of this process and of those it has ended [s]."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak(reset: bool = False) -> float:
    """Return the largest resident memory [MB] since the last reset."""
    if reset:
        with suppress(OSError):
            Path('/proc/self/clear_refs').write_text('5')
    for line in Path('/proc/self/status').read_text('ascii', 'replace').splitlines():
        if line.startswith('VmHWM'):
            return int(line.split()[1]) / 1024.0
    return 0.0


WORDS = (b'', b'\x00', b'\xff\xfe', b'\n', b'[' * 2000, b'{', b'&a *a', b'<<: *a', b'.nan',
         b'1e308', b'-1e308', b'1e-300', b'99999999999999999999', b'!!bool q', b'!!timestamp 1',
         b'!!python/object:x', b'2020-01-01', b'null', b'true', b"'", b'"', b'../../x',
         b'/dev/zero', b'-.inf',
         b'%s%n', b'\xed\xa0\x80', b'0x7fffffff', b'-0', b',' * 500)
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1,
           (1 << 64) - 1)


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return bytes with one damage: bits, bytes, lengths, pieces cut, doubled, moved, inserted."""
    if not data:
        return WORDS[int(rng.integers(len(WORDS)))]
    at, to = sorted(int(i) for i in rng.integers(0, len(data) + 1, 2))
    near = min(at + int(rng.integers(1, 64)), len(data))
    match int(rng.integers(9)):
        case 0:
            at = min(at, len(data) - 1)
            return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1:]
        case 1:
            return data[:at] + rng.bytes(near - at) + data[near:]
        case 2:
            return data[:at]
        case 3:
            return data[:at] + data[near:]
        case 4:
            return data[:near] + data[at:near] * int(rng.integers(1, 20)) + data[near:]
        case 5:
            return data[:at] + WORDS[int(rng.integers(len(WORDS)))] + data[at:]
        case 6:
            return data[:at] + WORDS[int(rng.integers(len(WORDS)))] + data[near:]
        case 7:
            size = int(rng.choice([1, 2, 4, 8]))
            value = NUMBERS[int(rng.integers(len(NUMBERS)))] & ((1 << 8 * size) - 1)
            order = 'little' if rng.random() < 0.8 else 'big'
            return data[:at] + value.to_bytes(size, order) + data[at + size:]  # type: ignore[arg-type]
        case _:
            return data[:at] + data[to:] + data[at:to]


def assert_no_faults(outcome: Outcome) -> None:
    """Fail with the first faults and how to see them again."""
    assert not outcome.faults, '\n'.join(
        [str(outcome), *(f'input {number}: {words}' for number, words in outcome.faults[:10])])
