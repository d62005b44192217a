"""Detect irregularities of a recording: gaps, repeated stamps, NaN, constant channels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray

GAP = 2.5  # a gap: an interval longer than this many median intervals
RATE_RATIO = 1.5  # the rate is mixed when the medians of two stretches differ by this factor
STRETCHES = 20  # parts of the recording whose rates are compared
MEDIAN_STEPS = 1_000_000  # evenly spaced steps of which medians are taken, where there are more
#: prefix of findings about efforts, and of that about a recording without any
EFFORT = 'effort: '
NO_EFFORT = f'{EFFORT}not recorded'
#: largest recording in memory [numbers], 1.2 GB: an hour of seven joints at 1 kHz with positions,
#: velocities, efforts and motor states has 1.3e8
MEMORY_NUMBERS = 150_000_000


class TooLong(DataError):
    """A recording that does not fit into memory."""


def require_memory(numbers: int) -> None:
    """Raise TooLong if a recording has more ``numbers`` than the memory limit."""
    if numbers > MEMORY_NUMBERS:
        raise TooLong(
            f'has more than {MEMORY_NUMBERS / 1e6:g} million numbers, too many for the memory; '
            'read it in windows, such as NAME[0:1800] NAME[1800:3600] [s] with --workers N')


def joined(parts: list[FloatArray]) -> FloatArray:
    """Concatenate pieces of an array, (T,) or (T, n), freeing each once it is copied."""
    if len(parts) == 1:
        return parts[0]
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]))
    stop = len(whole)
    while parts:
        part = parts.pop()
        whole[stop - len(part):stop] = part
        stop -= len(part)
    return whole


def findings_of(
    time: FloatArray, joints: tuple[str, ...], channels: Mapping[str, FloatArray | None]
) -> tuple[str, ...]:
    """Return one sentence per irregularity of stamps and channels.

    ``time`` (T,) s; ``channels`` maps a channel name to (T, n) values in the order of ``joints``,
    or to None if it was not recorded. With a ``wrench`` (T, 6) efforts are not needed.
    """
    findings = stamp_findings(time)
    for name, values in channels.items():
        if values is not None and len(values):
            findings += _bad_values(name, time, values,
                                    WRENCH_COMPONENTS if name == 'wrench' else joints)
    effort, position = channels.get('effort'), channels.get('position')
    if effort is None and len(time) and channels.get('wrench') is None:
        findings.append(f'{NO_EFFORT}, the dynamics cannot be identified from this file')
    elif effort is not None:
        findings += _zero_effort((effort == 0.0).all(axis=0), joints)
    if position is not None and len(time) > 1:
        still = (position == position[0]).all(axis=0)
        findings += [f'position: never changes for {_names(joints, still)}'] if still.any() else []
    return tuple(findings)


def stamp_findings(time: FloatArray) -> list[str]:
    """Return gaps, repeated and backward stamps and changes of rate of ``time`` (T,) s."""
    if len(time) < 2:
        return [f'time: only {len(time)} samples']
    findings = []
    finite = np.isfinite(time)
    if not finite.all():
        findings.append(f'time: {_count(~finite)} stamps are not finite, first at sample '
                        f'{int(np.argmin(finite))}')
        time = time[finite]
    with np.errstate(over='ignore'):  # damaged stamps are data here
        step = np.diff(time)
    back, repeats = step < 0, step == 0
    if back.any():
        k = int(np.argmin(step))
        findings.append(f'time: goes back {_count(back)} times, '
                        f'most by {-step[k]:.6g} s after sample {k} (t = {time[k]:.6g} s)')
    if repeats.any():
        findings.append(f'time: {_count(repeats)} duplicate stamps, '
                        f'first at t = {time[int(np.argmax(repeats))]:.6g} s')
    some = step[::max(1, -(-len(step) // MEDIAN_STEPS))]
    if (some > 0).any():
        findings += [*_gaps(time, step, float(np.median(some[some > 0]))), *_mixed_rates(some)]
    return findings


def _gaps(time: FloatArray, step: FloatArray, period: float) -> list[str]:
    gaps = step > GAP * period
    if not gaps.any():
        return []
    k = int(np.argmax(step))
    return [f'time: {_count(gaps)} gaps longer than {GAP:g} periods of {period:.6g} s, '
            f'longest {step[k]:.6g} s at t = {time[k]:.6g} s, {step[gaps].sum():.6g} s in all']


def _mixed_rates(step: FloatArray) -> list[str]:
    if len(step) < 10 * STRETCHES:
        return []
    parts = [part[part > 0] for part in np.array_split(step, STRETCHES)]
    periods = np.array([np.median(part) for part in parts if len(part)])
    if periods.max() <= RATE_RATIO * periods.min():
        return []
    return [f'time: mixed rates, from {1 / periods.max():.6g} to {1 / periods.min():.6g} Hz']


def _bad_values(
    name: str, time: FloatArray, values: FloatArray, joints: tuple[str, ...]
) -> list[str]:
    """Return one sentence on NaN and one on infinite values, if there are any."""
    findings = []
    if not np.isfinite(values).all():
        for label, bad in (('NaN', np.isnan(values)), ('infinite', np.isinf(values))):
            named = ', '.join(f'{j} {c}' for j, c in zip(joints, bad.sum(axis=0), strict=True)
                              if c)
            first = time[int(np.argmax(bad.any(axis=1)))]
            text = f'{name}: {label} values: {named}; first at t = {first:.6g} s'
            findings += [text] * bool(named)
    return findings


def _zero_effort(zero: NDArray[np.bool_], joints: tuple[str, ...]) -> list[str]:
    if zero.all():
        return ['effort: exactly zero for every joint throughout: the driver reports no effort, '
                'or on another topic, or in units that round to zero']
    return [f'effort: exactly zero throughout for {_names(joints, zero)}'] if zero.any() else []


def _names(joints: tuple[str, ...], chosen: NDArray[np.bool_]) -> str:
    return ', '.join(j for j, c in zip(joints, chosen, strict=True) if c)


def _count(flags: NDArray[np.bool_]) -> int:
    return int(flags.sum())
