"""Random requests, goals and messages for the fuzzers of nodes, and what every answer must be.

Requests and goals are numbers, sizes, names, paths and texts, each made from its seed and its
number alone, so that any can be made again; joint states are raw bytes, as a broken driver, or
somebody who means harm, sends them. Checked are the answers of a node, its parameters, its log and
the files beside it. ROBOT_DYNID_FUZZ='SEED COUNT' chooses the inputs of a long run, and of a
failure again.
"""

from __future__ import annotations

import array
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from text_inputs import NAMES, NASTY, gently, structured

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray

#: numbers that none, or hardly any, state has
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e154, 5e-324, -5e-324, 1e-300, 1e17, -0.0)
#: states of a request, with the share of each, and steps of a rollout
COUNTS, SHARES = (1, 2, 7, 100, 5000, 400_000), (0.4, 0.2, 0.2, 0.13, 0.05, 0.02)
STEPS = (1, 2, 10, 300)
#: kinds of requests, and the share of each
KINDS = ('forward_dynamics', 'inverse_dynamics', 'rollout', 'load_model', 'save_model',
         'recording', 'trigger')
OFTEN = (0.25, 0.2, 0.15, 0.15, 0.15, 0.05, 0.05)
#: paths of nothing that a request may read or write, whatever its folder
OUTSIDE = (
    '', '.', '..', '../..', '/', '//', '../secret.yaml', '/dev/null', '/dev/zero', '/dev/stdin',
    '/proc/self/mem', '/proc/kmsg', '/proc/self/fd/0', '/etc/passwd', '~', '~root/x.yaml',
    'x' * 300, 'x' * 100_000, '../' * 10_000, 'a\0b', 'a\nb', 'up/secret.yaml', '.hidden', 'loop',
    'loop/x', 'pipe', 'folder', 'folder/', 'good.yaml/', 'good.yaml/x', 'link.yaml', '\u202e')
#: links to files whose names are no text
ODD = ('odd.yaml', 'odd.csv')
#: files of nothing that a model, a recording or a motion is
USELESS = ('empty', 'huge', 'nested', 'merged', 'aliases', 'tagged', 'binary', 'latin',
           'notes.txt')
RECIPE = (b'{friction: coulomb, cutoff: 5.0, effort_lag: 0.0, ripple: none, adaptation: none, '
          b'ramp_width: 0.01}\n')
METHODS = ('', 'wls', 'ols', 'irls', 'feasible', 'elastic', 'iv', 'guess', 'x' * 5000, 'wls\n',
           '0')
#: options of goals that are designed within a moment, by type
OPTIONS = {
    'fourier': b'{duration: 1.5, harmonics: 2, scale: 0.4, starts: 1, iterations: 10, '
               b'time_limit: 2, seed: 3}',
    'bspline': b'{duration: 2.0, scale: 0.4, starts: 1, iterations: 5, time_limit: 2}',
    'sine-sequence': b'{scale: 0.4, time_limit: 2}',
    'constant-velocity': b'{scale: 0.4, time_limit: 2}',
    'static-poses': b'{scale: 0.4, time_limit: 2}',
    'composite': b'{segments: [{type: fourier, duration: 1.5, harmonics: 2, starts: 1, '
                 b'iterations: 5}], scale: 0.4, time_limit: 2}',
}


def chance(rng: np.random.Generator, share: float) -> bool:
    """Return whether something happens that happens in a share of all."""
    return bool(rng.random() < share)


def one_of(rng: np.random.Generator, among: Sequence[Any]) -> Any:
    """Return any one of several."""
    return among[int(rng.integers(len(among)))]


def make_traps(folder: Path) -> None:
    """Make the files of OUTSIDE and USELESS in a folder, and one beside it."""
    folder.mkdir()
    (folder.parent / 'secret.yaml').write_text('secret')
    (folder / 'folder').mkdir()
    (folder / '.hidden').write_text('hidden')
    (folder / 'loop').symlink_to(folder / 'loop')
    (folder / 'up').symlink_to(folder.parent)
    (folder / 'link.yaml').symlink_to(folder.parent / 'secret.yaml')
    os.mkfifo(folder / 'pipe')
    texts = {'empty': '', 'nested': nested(30_000), 'merged': merge_bomb(), 'binary': '\0\1\2',
             'aliases': alias_bomb(), 'tagged': '!!python/object/apply:os.system ["true"]',
             'notes.txt': 'notes of somebody else\n'}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / 'latin').write_bytes(b'name: \xe4\xff')
    odd = os.fsdecode(b'odd \xff')  # no text, and so only the target of a link can have it
    (folder / odd).mkdir()
    (folder / 'odd').symlink_to(folder / odd)
    for name in ODD:
        (folder / name).symlink_to(folder / odd / f'{odd}.{name[4:]}')
    with (folder / 'huge').open('wb') as file:
        file.truncate(1 << 33)


def hostile_numbers(rng: np.random.Generator, values: FloatArray) -> FloatArray:
    """Return values (...,) with a few replaced, or all of another size."""
    changed = values.ravel().copy()
    if not changed.size or chance(rng, 0.5):
        with np.errstate(over='ignore'):
            return np.asarray(changed * 10.0 ** rng.integers(-308, 300))
    changed[rng.integers(0, changed.size, int(rng.integers(1, 4)))] = one_of(rng, NUMBERS)
    return changed


def hostile_size(rng: np.random.Generator, values: FloatArray) -> FloatArray:
    """Return values of another length."""
    size = int(one_of(rng, (0, 1, values.size - 1, values.size + 1, 2 * values.size,
                            int(rng.integers(0, 3000)), 3_000_000)))
    return np.resize(values, max(size, 0))


def hostile_names(rng: np.random.Generator, names: Sequence[str]) -> list[str]:
    """Return names of joints or links that are not those of the robot, or not each once."""
    given = list(names)
    at = int(rng.integers(len(given)))
    match int(rng.integers(6)):
        case 0:
            given[at] = one_of(rng, NAMES)
        case 1:
            del given[at]
        case 2:
            given.append(given[at])
        case 3:
            given[at] = f'{given[at]}{one_of(rng, NAMES)}'
        case 4:
            given = [one_of(rng, NAMES)] * 50_000
        case _:
            given = [str(name) for name in rng.choice(NAMES, len(given))]
    return given


def hostile_parameter(rng: np.random.Generator, value: ParameterValue) -> ParameterValue:
    """Return a value of a parameter that has ``value``: of any type, of none, or a hostile one.

    Not of a type that there is none of, from 10 on: rclpy itself raises ValueError, and answers
    nothing.
    """
    kind = value.type if chance(rng, 0.6) else int(rng.integers(0, 10))
    words = one_of(rng, (NASTY, NAMES, OUTSIDE[:-1]))
    number, text = float(one_of(rng, (*NUMBERS, 0.0, 1.0, -1.0, 0.5, 1e9))), one_of(rng, words)
    whole = int(one_of(rng, (0, 1, -1, 3, 2**63 - 1, -2**63)))
    size = int(one_of(rng, (0, 1, 3, 1000)))
    return ParameterValue(
        type=kind, bool_value=chance(rng, 0.5), integer_value=whole, double_value=number,
        string_value=text, byte_array_value=[b'\0'] * size, bool_array_value=[True] * size,
        integer_array_value=[whole] * size, double_array_value=[number] * size,
        string_array_value=[text] * size)


def hostile_path(rng: np.random.Generator, files: Sequence[str] = ()) -> str:
    """Return a path of OUTSIDE, of USELESS, a hostile name, or any of ``files``."""
    return str(one_of(rng, one_of(rng, (OUTSIDE, USELESS, NAMES, files or USELESS))))


def hostile_text(rng: np.random.Generator, text: bytes) -> str:
    """Return YAML with damage, a bomb, or no YAML at all."""
    match int(rng.integers(6)):
        case 0:
            return str(one_of(rng, NASTY))
        case 1:
            return str(one_of(rng, (nested(30_000), merge_bomb(), alias_bomb(), '!!set {a}', '\1',
                                    'x' * 100_000, '&a [*a]')))
        case 2:
            return structured(rng, text).decode('utf-8', 'replace')
        case _:
            return gently(rng, text).decode('utf-8', 'replace')


@dataclass
class Request:
    """A request of a service; ``sane`` ones have nothing to be refused for.

    ``order`` (n,) are the joints of the model in the order of the request; ``states`` (K, n) or
    (K, T, n) are the fields in that of the model, for what is computed of them.
    """

    service: str
    fields: dict[str, Any] = field(default_factory=dict)
    sane: bool = False
    order: Any = None
    states: tuple[FloatArray, ...] = ()

    def __str__(self) -> str:
        words = ', '.join(f'{name}={shortened(value)}' for name, value in self.fields.items())
        return f'{self.service}({words})'


def shortened(value: Any) -> str:
    """Return a value as text, its beginning if it is long."""
    size = f' ({np.size(value)})' if isinstance(value, (list, np.ndarray)) else ''
    value = value[:8] if isinstance(value, (list, np.ndarray)) else value
    return f'{value!r:.200}{size}'


class Requests:
    """Requests of the services that compute with ``model``, and of those of files.

    ``files`` are names of models and other files that requests may read.
    """

    def __init__(self, model: IdentifiedModel, files: Sequence[str]) -> None:
        self._model, self._files = model, files
        self._links = [link.name for link in model.robot.links]

    def made(self, seed: int, number: int) -> Request:
        """Return a request by its number."""
        rng = np.random.default_rng([seed, number])
        kind = str(rng.choice(KINDS, p=OFTEN))
        if kind == 'load_model':
            return Request(kind, {'path': hostile_path(rng, self._files)})
        if kind == 'save_model':
            path = one_of(rng, ('saved.yaml', 'new/folder/saved.yaml', 'odd/saved',
                                hostile_path(rng)))
            return Request(kind, {'path': path}, 'saved' in path)
        if kind == 'recording':
            return Request(one_of(rng, ('start_recording', 'stop_recording')))
        if kind == 'trigger':
            return Request(one_of(rng, ('update_model', 'zero_wrench')))
        return self._computed(rng, kind)

    def _computed(self, rng: np.random.Generator, kind: str) -> Request:
        """Return a request of states, most with something wrong in it."""
        n, count = len(self._model.joints), int(rng.choice(COUNTS, p=SHARES))
        steps = int(one_of(rng, STEPS)) if kind == 'rollout' and count < 1000 else 1
        third = 'acceleration' if kind == 'inverse_dynamics' else 'effort'
        shape = (count, steps, n) if kind == 'rollout' else (count, n)
        names = ('position', 'velocity', third)
        values = [rng.uniform(-0.5, 0.5, size) for size in ((count, n), (count, n), shape)]
        order = rng.permutation(n) if chance(rng, 0.5) else np.arange(n)
        fields: dict[str, Any] = {
            name: one[..., order] for name, one in zip(names, values, strict=True)}
        joints = [self._model.joints[j] for j in order]
        if not np.array_equal(order, np.arange(n)) or chance(rng, 0.5):
            fields['joint_names'] = joints
        if kind == 'rollout':
            fields['dt'] = 0.001
        elif kind == 'forward_dynamics' and chance(rng, 0.3):
            fields['mass_matrix'] = True
        request = Request(kind, fields, count < 5000, order, tuple(values))
        while chance(rng, 0.6):
            self._spoil(rng, request)
        return request

    def _spoil(self, rng: np.random.Generator, request: Request) -> None:
        """Put one thing wrong, or unusual, into a request."""
        fields, request.sane = request.fields, False
        numeric = [name for name, value in fields.items() if isinstance(value, np.ndarray)]
        name = one_of(rng, numeric)
        match int(rng.integers(6)):
            case 0 | 1:
                fields[name] = hostile_numbers(rng, fields[name])
            case 2:
                fields[name] = hostile_size(rng, fields[name])
            case 3:
                fields['joint_names'] = hostile_names(
                    rng, fields.get('joint_names', self._model.joints))
            case 4 if 'dt' not in fields:
                links = [str(one) for one in rng.choice(self._links, int(rng.integers(1, 4)))]
                fields['wrench_links'] = hostile_names(rng, links) if chance(rng, 0.4) else links
                size = len(fields['position'].ravel()) // len(self._model.joints) * len(links) * 6
                fields['wrench'] = rng.normal(0.0, 20.0, min(size, 10_000_000))
            case 4:
                fields['dt'] = float(one_of(rng, (*NUMBERS, 0.0, -1.0, 1.0, 60.0, 61.0)))
            case _ if request.service != 'inverse_dynamics' and chance(rng, 0.3):
                fields['motor_position'] = np.zeros(int(rng.integers(0, 30)))
            case _:
                fields['beyond_limits'] = True


def identify_goal(rng: np.random.Generator, recordings: Sequence[str]) -> dict[str, Any]:
    """Return a goal of ~/identify, with one or more things wrong in it, or none."""
    goal: dict[str, Any] = {'files': [one_of(rng, recordings)], 'recipe': RECIPE.decode()}
    for _ in range(int(rng.integers(0, 3))):
        match int(rng.integers(8)):
            case 0:
                goal['recipe'] = hostile_text(rng, RECIPE)
            case 1:
                goal['files'].append(hostile_path(rng, recordings))
            case 2:
                file, *_ = goal['files'] or recordings
                goal['files'] = [f'{file}[{one_of(rng, NASTY)}:{one_of(rng, NASTY)}]']
            case 3:
                goal['method'] = one_of(rng, METHODS)
            case 4:
                goal[one_of(rng, ('out', 'report'))] = one_of(
                    rng, ('out.yaml', 'out.html', 'odd/out', hostile_path(rng)))
            case 5:
                goal['files'] = []
            case 6:
                goal['payload'] = True
            case _:
                goal['unloaded_files'] = [hostile_path(rng, recordings)]
    return goal


def excite_goal(rng: np.random.Generator, plans: Sequence[str]) -> dict[str, Any]:
    """Return a goal of ~/excite; ``plans`` are trajectory files and earlier dry runs."""
    kind = one_of(rng, tuple(OPTIONS))
    goal: dict[str, Any] = {'type': kind, 'options': OPTIONS[kind].decode()}
    match int(rng.integers(6)):
        case 0:
            goal['type'] = one_of(rng, (*OPTIONS, *NAMES, ''))
        case 1:
            goal = {'trajectory': hostile_path(rng, plans)}
        case 2:
            goal = {'trajectory': one_of(rng, plans)}
        case 3:
            goal['options'] = goal['options'].replace('{', f'{{{one_of(rng, EXTRA)}, ', 1)
        case _:
            goal['options'] = hostile_text(rng, OPTIONS[kind])
    return goal


#: further options of a goal, hostile ones
EXTRA = (
    'limits: {joint_1: {velocity: .nan}}', 'limits: {joint_1: {velocity: 1e-9}}',
    'limits: {joint_9: {}}', 'limits: {joint_1: {position: [1, -1]}}', 'limits: 5',
    'data: [pipe]', 'data: x', 'data: []', 'environment: ../secret.yaml', 'environment: huge',
    'environment: []', 'validation: maybe', 'validation: true', 'scale: 1e-9', 'scale: 5',
    'seed: -1', 'seed: 1e400', 'duration: 1e-9', 'duration: 1e308', 'harmonics: 1000000000',
    'procedure: adaptive', '? [a] : b', 'x: &a [*a]', 'objective: [a]', 'purpose: "a\\nb"')


FAULTS = 9


def joint_state(names: list[str], number: float, *lengths: int) -> bytes:
    """Return a serialized joint state; ``lengths`` of position, velocity, effort, as the names.

    Its stamp is ``number`` in ms.
    """
    message = JointState(name=names)
    message.header.stamp.sec, rest = divmod(int(number), 1000)
    message.header.stamp.nanosec = rest * 1_000_000
    for name, length in zip(('position', 'velocity', 'effort'),
                            lengths or 3 * (len(names),), strict=True):
        setattr(message, name, array.array('d', [number] * length))
    return bytes(serialize_message(message))


def number_of(data: bytes) -> int:
    """Return the number of a serialized joint state; 0 for those of others."""
    seconds, rest = struct.unpack_from('<iI', data, 4) if len(data) >= 12 else (0, 0)
    return 1000 * seconds + rest // 1_000_000 if 0 <= seconds < 100_000 else 0


def malformed(rng: np.random.Generator, names: list[str]) -> bytes:
    """Return a joint state that is wrong in one of FAULTS ways."""
    good = bytearray(joint_state(names, float(rng.integers(1, 10**6))))
    kind = rng.integers(FAULTS)
    if kind == 0:  # cut off, or nothing but the encapsulation
        return bytes(good[:rng.integers(4, len(good))])
    if kind == 1:  # arrays that do not match the names
        return joint_state(names, 1.0, *rng.integers(0, 2 * len(names) + 2, 3).tolist())
    if kind == 2:  # numbers that are none
        struct.pack_into('<d', good, len(good) - 8 * int(rng.integers(1, 3 * len(names))),
                         rng.choice([np.nan, np.inf, -np.inf, 1e308]))
        return bytes(good)
    if kind == 3:  # another, or no, encapsulation
        good[:4] = rng.integers(0, 256, 4, dtype=np.uint8).tobytes()
        return bytes(good)
    if kind == 4:  # bytes of names that are no text
        place = good.index(names[0].encode())
        good[place:place + 3] = rng.integers(128, 256, 3, dtype=np.uint8).tobytes()
        return bytes(good)
    if kind == 5:  # names that are empty, blank or twice there
        return joint_state([str(rng.choice(['', ' ', names[0]])) for _ in names], 1.0)
    if kind == 6:  # lengths beyond all memory
        place = 12 + 4 * int(rng.integers(0, 6))
        struct.pack_into('<I', good, place, int(rng.choice([2**32 - 1, 2**31, 10**6])))
        return bytes(good)
    if kind == 7:  # nothing
        return joint_state([], 1.0)
    for place in rng.integers(4, len(good), 3):  # any bytes changed
        good[place] = rng.integers(256)
    return bytes(good)


def many(count: int, names: list[str], seed: int = 0) -> Iterator[bytes]:
    """Yield malformed joint states, among them two of many names."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        if k in (count // 3, count // 2):
            yield joint_state([str(i) for i in range(100_000)], 1.0, 0, 0, 0)
        else:
            yield malformed(rng, names)


def nested(depth: int) -> str:
    """Return a YAML text of so many lists inside each other."""
    return '[' * depth + ']' * depth


def merge_bomb(levels: int = 40) -> str:
    """Return a small YAML text whose merge keys double at every level."""
    lines = ['a0: &a0 {x: 1}']
    lines += [f'a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}' for k in range(1, levels)]
    return '\n'.join(lines)


def alias_bomb(levels: int = 40) -> str:
    """Return a small YAML text whose aliases double at every level."""
    lines = ['a0: &a0 [1, 1]']
    lines += [f'a{k}: &a{k} [*a{k - 1}, *a{k - 1}]' for k in range(1, levels)]
    return '\n'.join(lines)


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
