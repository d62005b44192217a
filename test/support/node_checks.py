"""What every answer of a node, its log and the files beside it must be, for the fuzzer.

ROBOT_DYNID_FUZZ='SEED COUNT' chooses the inputs of a long run, and of a failure again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SEED, COUNT = map(int, os.environ.get('ROBOT_DYNID_FUZZ', '1 300').split())
#: what a node writes only where something is wrong with itself
FAULT = re.compile(r'Traceback|nexpected|Exception|Warning:|Segmentation')
LONGEST_MESSAGE = 4100
#: s after which `ros2 launch` sends SIGTERM, unless its file says otherwise
ESCALATION = 5.0


@contextmanager
def named(seed: int, number: int, what: object) -> Iterator[None]:
    """Say beside a failure which input it is of, and how to see it again."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"input {number} of ROBOT_DYNID_FUZZ='{seed} {number + 1}', {what}: "
                             f'{error}') from error


def require_words(message: str) -> None:
    """Require one line that says what is wrong, and is not about the program itself."""
    assert 0 < len(message) <= LONGEST_MESSAGE and len(message.splitlines()) == 1, repr(message)
    require_no_fault(message)


def require_no_fault(text: str) -> None:
    """Require that nothing in a text is about a fault of the program."""
    found = FAULT.search(text)
    assert found is None, text[max(0, found.start() - 300):][:1000]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return what is in the small regular files that no request may change, and beside them."""
    return {str(path): path.read_bytes() for path in (*folder.iterdir(), *folder.parent.iterdir())
            if path.is_file() and path.stat().st_size < 1 << 20 and path.name[:3] not in (
                'sav', 'out', 'emp')}
