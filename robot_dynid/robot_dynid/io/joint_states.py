"""Convert joint state messages to one table per channel with the joints as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import joints_named
from robot_dynid.errors import DataError, clipped
from robot_dynid.io.cdr import Batch, Decoded, JointStateDecoder
from robot_dynid.io.findings import GAP, require_memory
from robot_dynid.io.messages.definitions import WRENCH
from robot_dynid.io.messages.fields import IntArray
from robot_dynid.io.messages.kinds import MESSAGE_KINDS, Kind
from robot_dynid.io.messages.naming import Naming, SeveralNamings, naming_of
from robot_dynid.signals.windows import Window
from robot_dynid.types import DAMAGE, FloatArray

#: a step this close [rad] to a full turn may be an encoder wrap
SEAM = 1.0


@dataclass(frozen=True, eq=False)
class Series:
    """Joint states of one source: ``time`` (T,) ns, ``values`` (T, n) by channel."""

    joints: tuple[str, ...]
    time: IntArray
    values: dict[str, FloatArray]


@dataclass
class Topic:
    """Decoded messages of one topic.

    ``parts`` are those in and around the ``window``; ``counts`` counts all messages by their joint
    names; ``unset`` those without header stamp; ``began`` is the first stamp and receive time
    [ns]; ``numbers`` the memory; ``length`` [s] the duration of all with a window; ``pattern``
    that of the joint names, see `naming_of`; ``unnamed`` counts messages without joint names;
    ``delay`` [ns] from stamps to receive times, once its series was returned.
    """

    name: str
    decoder: JointStateDecoder = field(default_factory=JointStateDecoder)
    window: Window | None = None
    parts: list[Decoded] = field(default_factory=list)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    unset: int = 0
    began: tuple[int, int] | None = None
    numbers: int = 0
    length: float = 0.0
    pattern: str = ''
    unnamed: int = 0
    delay: int = 0

    def add(self, batch: Batch) -> None:
        """Decode and store a batch; raises DataError if memory does not suffice."""
        for part in self.decoder.decode(batch):
            self.counts[part.names] += len(part.order)
            self.unset += int((part.stamp == 0).sum())
            self.unnamed += 0 if part.named else len(part.order) * bool(part.names)
            self.began = self.began or (int(part.stamp[0]), int(part.received[0]))
            if self.window is not None:
                since = np.where(part.stamp == 0, part.received - self.began[1],
                                 part.stamp - self.began[0]) * 1e-9
                self.length = max(self.length, float(since.max(initial=0.0)))
                part = part.rows(np.flatnonzero(self.window.near(since)))
            if len(part.order):
                self.parts.append(part)
                self.numbers += sum(values.size for values in part.values.values())
                require_memory(self.numbers)

    @property
    def kind(self) -> str:
        """The message type."""
        return self.decoder.kind

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order of first appearance."""
        return tuple(dict.fromkeys(name for names in self.counts for name in names))

    @property
    def fields(self) -> Kind:
        """The fields that are read of the messages."""
        return self.decoder.fields or MESSAGE_KINDS[self.kind]

    def has(self, channel: str) -> bool:
        """Return True if a channel has a nonzero value."""
        return any(np.nan_to_num(part.values[channel]).any()
                   for part in self.parts if channel in part.values)

    def naming(self, joints: Sequence[str]) -> Naming | None:
        """Map joint names in the messages to joints of the robot; None if none match.

        Raises DataError if names are missing or match in several ways.
        """
        if self.fields.names and self.unnamed and not any(
                part.named and part.names for part in self.parts):
            raise DataError(
                f'topic {self.name}: its messages do not name their {len(self.joints)} joints; '
                f'if they are {", ".join(joints)} in this order: --topic '
                f"'{{topic: {self.name}, names: robot}}'")
        in_order = not self.fields.names and self.kind != WRENCH
        try:
            naming = naming_of(self.joints, joints, self.pattern, in_order)
        except SeveralNamings as error:
            raise DataError(
                f'topic {self.name}: {error}; select one: --topic '
                f'"{{topic: {self.name}, names: \'{error.ways[0]}\'}}"') from None
        if in_order and naming is None and self.joints:
            raise DataError(f'topic {self.name}: its messages have {len(self.joints)} numbers, '
                            f'and the robot {len(joints)} joints, {", ".join(joints)}; name the '
                            f'part of the fields that is theirs, such as position[0:{len(joints)}]'
                            )
        return naming

    def adopt_names(self, joints: Sequence[str], notes: list[str]) -> None:
        """Rename joints to those of the robot if the names match."""
        naming = self.naming(joints)
        if naming is None or not naming.note:
            return
        notes.append(f'topic {self.name}: {naming.note}')

        taken = set(naming.joints.values())

        def named(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(naming.joints.get(name, f'{name} (other)' if name in taken else name)
                         for name in names)

        self.parts = [replace(part, names=named(part.names)) for part in self.parts]
        counts = Counter[tuple[str, ...]]()
        for names, count in self.counts.items():
            counts[named(names)] += count
        self.counts = counts

    def series(self, joints: tuple[str, ...], notes: list[str]) -> Series:
        """Return the table of ``joints``; joints published separately are merged.

        Raises DataError if there are no messages or a joint never appears.
        """
        self._report(notes)
        if not self.parts and self.window is not None and self.counts:
            raise self.window.empty_error(f'topic {self.name}', self.length)
        if not self.parts:
            raise DataError(f'topic {self.name} has no usable messages')
        missing = [joint for joint in joints if joint not in self.joints]
        if missing:
            names = f'it has {", ".join(self.joints)}' if self.joints else \
                'its messages name no joints'
            raise DataError(f'topic {self.name}: no {joints_named(missing)}; {names}')
        others = [names for names in self.counts if names and not set(names) & set(joints)]
        if others:
            notes.append(f'{self.name}: {sum(self.counts[names] for names in others)} messages '
                         f'have none of the joints, but {clipped(", ".join(others[0]), 200)}, and '
                         'were left out')
        groups = _grouped(self._stamped(notes), joints, self.counts)
        if not groups:
            raise DataError(f'topic {self.name} has no messages with joints')
        self.parts = []  # freed while joining
        return _together(self.name, groups, joints, notes)

    def _report(self, notes: list[str]) -> None:
        total = self.decoder.count
        if self.decoder.undecodable:
            notes.append(
                f'{DAMAGE}{self.name}: {self.decoder.undecodable} of {total} messages are damaged '
                f'and were left out'
            )
        if self.decoder.wrong_length:
            notes.append(
                f'{self.name}: {self.decoder.wrong_length} of {total} messages have arrays that '
                f'do not match their names and were left out'
            )

        if self.decoder.steps:
            notes.append(
                f'{self.name}: the header stamps step against the receive times '
                f'{self.decoder.steps} times, most by {self.decoder.longest_step:.6g} s: a clock '
                f'that was set, a simulation that was reset, or damage'
            )

    def _stamped(self, notes: list[str]) -> list[tuple[IntArray, Decoded]]:
        """Pair every part with its time: the header stamp, or the receive time if unset."""
        delays = np.concatenate([part.received - part.stamp for part in self.parts])
        self.delay = int(np.sort(delays)[len(delays) // 2])  # floats round nanoseconds
        if not self.unset:
            return [(part.stamp, part) for part in self.parts]
        notes.append(
            f'{self.name}: {self.unset} of {self.counts.total()} messages have no header stamp; '
            f'the receive time is used for all'
        )
        return [(part.received, part) for part in self.parts]


@dataclass(frozen=True, eq=False)
class _Group:
    """Messages with the same subset of the joints, in order of arrival; ``count`` of all such."""

    columns: tuple[int, ...]
    time: IntArray
    values: dict[str, FloatArray]
    count: int


def _grouped(
    parts: list[tuple[IntArray, Decoded]], joints: tuple[str, ...],
    counts: Mapping[tuple[str, ...], int],
) -> list[_Group]:
    """Join the parts with the same subset of ``joints``; the largest group comes first."""
    totals: Counter[tuple[int, ...]] = Counter()
    for names, count in counts.items():
        totals[tuple(k for k, joint in enumerate(joints) if joint in names)] += count
    subsets: dict[tuple[int, ...], list[tuple[IntArray, Decoded]]] = {}
    for time, part in parts:
        columns = tuple(k for k, joint in enumerate(joints) if joint in part.names)
        if columns:
            subsets.setdefault(columns, []).append((time, part))
    groups = [_group(columns, joints, members, totals[columns])
              for columns, members in subsets.items()]
    first = list(totals)
    return sorted(groups, key=lambda group: (-group.count, first.index(group.columns)))


def _group(
    columns: tuple[int, ...], joints: tuple[str, ...], parts: list[tuple[IntArray, Decoded]],
    count: int,
) -> _Group:
    order = np.concatenate([part.order for _, part in parts])
    received = np.concatenate([part.received for _, part in parts])
    rows = np.lexsort((order, received))
    in_order = bool((np.diff(rows) == 1).all())
    time = np.concatenate([time for time, _ in parts])
    wanted = [joints[k] for k in columns]
    picks = [[part.names.index(joint) for joint in wanted] for _, part in parts]
    values: dict[str, FloatArray] = {}
    for name in dict.fromkeys(name for _, part in parts for name in part.values):
        arrays = [part.values.pop(name, None) for _, part in parts]
        table = np.empty((len(time), len(columns)))
        at = 0
        arrays.reverse()
        for pick, (stamps, _) in zip(picks, parts, strict=True):
            stop, array = at + len(stamps), arrays.pop()  # freed once it is copied
            table[at:stop] = np.nan if array is None else array[:, pick]
            at = stop
        values[name] = table if in_order else table[rows]
    return _Group(columns, time if in_order else time[rows], values, count)


def _together(
    topic: str, groups: list[_Group], joints: tuple[str, ...], notes: list[str]
) -> Series:
    base = groups[0]
    if len(groups) == 1 and len(base.columns) == len(joints):
        return Series(joints, base.time, base.values)
    whole = next((group for group in groups if len(group.columns) == len(joints)), None)
    if whole is not None and 2 * whole.count >= base.count:
        rest = sum(group.count for group in groups) - whole.count
        notes.append(f'{topic}: {rest} messages have only some of the joints and were left out')
        return Series(joints, whole.time, whole.values)
    if whole is not None:
        notes.append(
            f'{topic}: {whole.count} messages have all joints, the others only some; '
            f'those with all were left out'
        )
    return _merged(topic, [group for group in groups if group is not whole], joints, notes)


def _merged(
    topic: str, groups: list[_Group], joints: tuple[str, ...], notes: list[str]
) -> Series:
    """Align groups with different joints to the stamps of the largest one."""
    base = groups[0]
    values = {name: np.full((len(base.time), len(joints)), np.nan)
              for name in dict.fromkeys(name for group in groups for name in group.values)}
    for group in groups:
        named = ', '.join(joints[k] for k in group.columns)
        if group is not base:
            notes.append(f'{topic}: {named} come in messages of their own; '
                         f'{alignment_note(base, group)}')
        for name, part in group.values.items():
            values[name][:, group.columns] = sampled(
                base.time, group.time, part, name == 'position')
    return Series(joints, base.time, values)


def alignment_note(base: Series | _Group, other: Series | _Group) -> str:
    """Describe how ``other`` was aligned to the stamps of ``base``."""
    if np.isin(base.time, other.time).all():
        return 'joined by equal stamps'
    return 'interpolated on the stamps of the larger group'


def sampled(
    time: IntArray, stamps: IntArray, values: FloatArray, positions: bool = False
) -> FloatArray:
    """Resample ``values`` (T, n) at ``stamps`` (T,) ns to ``time`` (N,) ns.

    Values at equal stamps are copied, others interpolated linearly; NaN outside the stamps, in
    their gaps, and where ``positions`` may wrap.
    """
    order = np.argsort(stamps, kind='stable')
    keep = order[np.diff(stamps[order], prepend=stamps[order[0]] - 1) > 0]
    instants, table = stamps[keep], values[keep]
    if np.array_equal(time, instants):
        return table
    after = np.minimum(np.maximum(np.searchsorted(instants, time), 1), len(instants) - 1)
    earlier = np.maximum(after - 1, 0)
    span = np.maximum(instants[after] - instants[earlier], 1)
    weight = ((time - instants[earlier]) / span)[:, None]
    with np.errstate(invalid='ignore', over='ignore'):  # infinities are data here
        step = table[after] - table[earlier]
        result: FloatArray = table[earlier] + weight * step
        if positions:
            result[np.abs(np.abs(step) - 2.0 * np.pi) < SEAM] = np.nan
    for side in (earlier, after):
        equal = instants[side] == time
        result[equal] = table[side[equal]]
    result[_unknown(time, instants, earlier, after)] = np.nan
    return result


def _unknown(
    time: IntArray, instants: IntArray, before: IntArray, after: IntArray
) -> NDArray[np.bool_]:
    period = np.median(np.diff(instants)) if len(instants) > 1 else 0
    gap = instants[after] - instants[before] > GAP * period
    exact = (instants[before] == time) | (instants[after] == time)
    return np.asarray((time < instants[0]) | (time > instants[-1]) | (gap & ~exact))


