"""Defects of a recording as plain sentences: gaps, repeated stamps, NaN, constant channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray

GAP = 2.5  # a gap: an interval longer than this many median intervals
RATE_RATIO = 1.5  # the rate is mixed when the medians of two stretches differ by this factor
STRETCHES = 20  # parts of the recording whose rates are compared
MEDIAN_STEPS = 1_000_000  # evenly spaced steps of which medians are taken, where there are more

#: gives the stamps (T,) of a recording piece by piece
Pieces = Callable[[], Iterator[FloatArray]]


def findings_of(
    time: FloatArray, joints: tuple[str, ...], channels: Mapping[str, FloatArray | None]
) -> tuple[str, ...]:
    """Return every irregularity of stamps and channels as one sentence each.

    ``time`` (T,) s; ``channels`` maps a channel name to (T, n) values in the order of ``joints``
    or to None where it was not recorded.
    """
    tally = Tally(joints)
    tally.add(time, channels)
    return tally.sentences(lambda: iter((time,)))


class Tally:
    """Irregularities of a recording that comes piece by piece."""

    def __init__(self, joints: tuple[str, ...]) -> None:
        self.joints = joints
        self.rows = 0
        self.channels: dict[str, Column] = {}
        self._absent: dict[str, tuple[int, float]] = {}  # rows without a channel, first time [s]

    def add(self, time: FloatArray, channels: Mapping[str, FloatArray | None]) -> None:
        """Take the next piece: ``time`` (T,) s and channels (T, n), None where not recorded."""
        self.rows += len(time)
        for name, values in channels.items():
            if values is not None and len(time):
                self.channels.setdefault(name, Column(len(self.joints))).add(time, values)
            elif len(time):
                rows, first = self._absent.get(name, (0, float(time[0])))
                self._absent[name] = (rows + len(time), first)

    def never_measured(self, name: str) -> bool:
        """Return whether a channel is NaN throughout."""
        return name in self.channels and not self.channels[name].measured

    def sentences(self, times: Pieces) -> tuple[str, ...]:
        """Return one sentence each; ``times`` gives the stamps [s] of all pieces once more."""
        found = stamp_findings(times)
        for name, column in self.channels.items():
            if name in self._absent:
                column.lack(*self._absent.pop(name))
            found += column.bad_values(name, self.joints)
        effort, position = self.channels.get('effort'), self.channels.get('position')
        if effort is None and self.rows:
            found.append('effort: not recorded, the dynamics cannot be identified from this file')
        elif effort is not None:
            found += _zero_effort(effort.zero, self.joints)
        if position is not None and self.rows > 1:
            found += _still(position.still, self.joints)
        return tuple(found)


class Column:
    """State of a channel so far: bad values, zeros, values that never change."""

    def __init__(self, joints: int) -> None:
        self.counts = {'NaN': np.zeros(joints, dtype=np.int64),
                       'infinite': np.zeros(joints, dtype=np.int64)}
        self.first: dict[str, float] = {}
        self.zero, self.still = np.ones(joints, dtype=bool), np.ones(joints, dtype=bool)
        self.measured = False
        self._begin: FloatArray | None = None

    def add(self, time: FloatArray, values: FloatArray) -> None:
        """Take the next values (T, n), at least one, at ``time`` (T,) s."""
        self._begin = values[:1].copy() if self._begin is None else self._begin
        self.still &= ~(values != self._begin).any(axis=0)
        self.zero &= ~(values != 0.0).any(axis=0)
        if np.isfinite(values).all():
            self.measured = True
            return
        for label, bad in (('NaN', np.isnan(values)), ('infinite', np.isinf(values))):
            self.counts[label] += bad.sum(axis=0)
            if bad.any():
                self.first.setdefault(label, float(time[int(np.argmax(bad.any(axis=1)))]))
            self.measured |= label == 'NaN' and not bad.all()

    def lack(self, rows: int, first: float) -> None:
        """Count so many ``rows`` without the channel, the first at ``first`` [s], as NaN."""
        self.counts['NaN'] += rows
        self.first['NaN'] = min(first, self.first.get('NaN', first))
        self.zero[:] = self.still[:] = False

    def bad_values(self, name: str, joints: tuple[str, ...]) -> list[str]:
        """Return one sentence on NaN and one on infinite values, where there are such."""
        found = []
        for label, first in sorted(self.first.items()):
            named = ', '.join(f'{j} {c}' for j, c in zip(joints, self.counts[label], strict=True)
                              if c)
            found.append(f'{name}: {label} values: {named}; first at t = {first:.6g} s')
        return found


@dataclass
class _Steps:
    """Irregular stamps, and steps between them, so far."""

    bad: int = 0
    first_bad: int = 0
    back: int = 0
    worst: tuple[float, int, float] = (0.0, 0, 0.0)
    repeats: int = 0
    first_repeat: float = 0.0
    count: int = 0


def stamp_findings(times: Pieces) -> list[str]:
    """Return gaps, repeated and backward stamps and changes of rate.

    ``times`` gives the stamps [s] piece by piece, (T,) each, as often as it is called.
    """
    known, total = _Steps(), 0
    for time in times():
        bad = ~np.isfinite(time)
        if bad.any() and not known.bad:
            known.first_bad = total + int(np.flatnonzero(bad)[0])
        known.bad += _count(bad)
        total += len(time)
    if total < 2:
        return [f'time: only {total} samples']
    for before, step in _steps(times):
        back, repeats = step < 0, step == 0
        if back.any() and step.min() < known.worst[0]:
            k = int(np.argmin(step))
            known.worst = (float(step[k]), known.count + k, float(before[k]))
        if repeats.any() and not known.repeats:
            known.first_repeat = float(before[int(np.argmax(repeats))])
        known.back += _count(back)
        known.repeats += _count(repeats)
        known.count += len(step)
    found = []
    if known.bad:
        found.append(f'time: {known.bad} stamps are not finite, first at sample {known.first_bad}')
    if known.back:
        size, k, at = known.worst
        found.append(f'time: goes back {known.back} times, '
                     f'most by {-size:.6g} s after sample {k} (t = {at:.6g} s)')
    if known.repeats:
        found.append(f'time: {known.repeats} duplicate stamps, '
                     f'first at t = {known.first_repeat:.6g} s')
    return found + _rates(times, known.count)


def _steps(times: Pieces) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield stamps that are finite, and the steps after them, (S,) each."""
    last = np.empty(0)
    for time in times():
        joined = np.concatenate([last, time[np.isfinite(time)]])
        with np.errstate(over='ignore'):  # damaged stamps are data here
            yield joined[:-1], np.diff(joined)
        last = joined[-1:]


def _rates(times: Pieces, count: int) -> list[str]:
    """Return gaps and changes of rate among ``count`` steps; medians are of MEDIAN_STEPS."""
    stride = max(1, -(-count // MEDIAN_STEPS))
    some = np.concatenate([np.empty(0), *(
        step[(-first) % stride::stride] for first, step in _numbered(times))])
    forward = some[some > 0]
    if not len(forward):
        return []
    return [*_gaps(times, float(np.median(forward))), *_mixed_rates(some)]


def _numbered(times: Pieces) -> Iterator[tuple[int, FloatArray]]:
    """Yield the number of the first step, and the steps (S,) of every piece."""
    first = 0
    for _, step in _steps(times):
        yield first, step
        first += len(step)


def _gaps(times: Pieces, period: float) -> list[str]:
    count, length, longest, at = 0, 0.0, 0.0, 0.0
    for before, step in _steps(times):
        gaps = step > GAP * period
        if not gaps.any():
            continue
        count, length = count + _count(gaps), length + float(step[gaps].sum())
        k = int(np.argmax(step))
        if step[k] > longest:
            longest, at = float(step[k]), float(before[k])
    if not count:
        return []
    return [f'time: {count} gaps longer than {GAP:g} periods of {period:.6g} s, '
            f'longest {longest:.6g} s at t = {at:.6g} s, {length:.6g} s in all']


def _mixed_rates(step: FloatArray) -> list[str]:
    if len(step) < 10 * STRETCHES:
        return []
    parts = [part[part > 0] for part in np.array_split(step, STRETCHES)]
    periods = np.array([np.median(part) for part in parts if len(part)])
    if periods.max() <= RATE_RATIO * periods.min():
        return []
    return [f'time: mixed rates, from {1 / periods.max():.6g} to {1 / periods.min():.6g} Hz']


def _zero_effort(zero: NDArray[np.bool_], joints: tuple[str, ...]) -> list[str]:
    if zero.all():
        sentence = (
            'effort: exactly zero for every joint throughout: the driver does not report effort, '
            'or reports it elsewhere or in units that round to zero'
        )
        return [sentence]
    if zero.any():
        return [f'effort: exactly zero throughout for {_names(joints, zero)}']
    return []


def _still(still: NDArray[np.bool_], joints: tuple[str, ...]) -> list[str]:
    if still.any():
        return [f'position: never changes for {_names(joints, still)}']
    return []


def _names(joints: tuple[str, ...], chosen: NDArray[np.bool_]) -> str:
    return ', '.join(j for j, c in zip(joints, chosen, strict=True) if c)


def _count(flags: NDArray[np.bool_]) -> int:
    return int(flags.sum())
