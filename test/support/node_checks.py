"""What answers of a node, its parameters, log and the files beside it must be, for the fuzzer.

ROBOT_DYNID_FUZZ='SEED COUNT' chooses the inputs of a long run, and of a failure again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from node_inputs import hostile_parameter
from rcl_interfaces.msg import Parameter
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from text_inputs import NAMES

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


class Parameters:
    """The parameters of a node called ``name``, which ``client`` sets; see `fuzz`."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self.counts = client, Counter[str]()
        self._set, self._set_all, self._get, self._list, self._describe = (
            client.node.create_client(kind, f'{name}/{service}') for kind, service in (
                (SetParameters, 'set_parameters'),
                (SetParametersAtomically, 'set_parameters_atomically'),
                (GetParameters, 'get_parameters'), (ListParameters, 'list_parameters'),
                (DescribeParameters, 'describe_parameters')))
        client.wait(self._set.service_is_ready)
        self.names = sorted(self._ask(self._list).result.names)
        described = self._ask(self._describe, names=self.names).descriptors
        self.live = {one.name for one in described if not one.read_only}
        self.first = self.values()

    def _ask(self, service: Any, **fields: Any) -> Any:
        return self._client.answer(service.call_async(service.srv_type.Request(**fields)))

    def values(self) -> dict[str, Any]:
        """Return the values of all parameters."""
        return dict(zip(self.names, self._ask(self._get, names=self.names).values, strict=True))

    def fuzz(self, rng: np.random.Generator) -> None:
        """Set some parameters to anything: what is refused, or not live, stays as it is."""
        before = self.values()
        chosen = [str(name) for name in rng.choice(
            [*self.names, *3 * sorted(self.live)], int(rng.integers(1, 5)))]
        asked = [Parameter(name=name, value=hostile_parameter(rng, before[name]))
                 for name in chosen]
        if rng.random() < 0.2:
            asked.append(Parameter(name=str(rng.choice(NAMES)), value=before[chosen[0]]))
        if rng.random() < 0.5:
            answers = [self._ask(self._set_all, parameters=asked).result] * len(asked)
        else:
            answers = self._ask(self._set, parameters=asked).results
        after = self.values()
        taken = {one.name for one, answer in zip(asked, answers, strict=True) if answer.successful}
        for answer in answers:
            self.counts['set' if answer.successful else 'refused'] += 1
            assert answer.successful or answer.reason, 'refused without a reason'
            require_no_fault(answer.reason)
        for name in self.names:
            assert after[name] == before[name] or name in taken & self.live, (
                f'{name} was {before[name]}, is {after[name]}')
        assert self._ask(self._describe, names=[f'{chosen[0]}.'] * 3) is not None

    def restore(self) -> None:
        """Set the live parameters to their first values."""
        results = self._ask(self._set_all, parameters=[
            Parameter(name=name, value=self.first[name]) for name in sorted(self.live)]).result
        assert results.successful, results.reason
        assert self.values() == self.first
