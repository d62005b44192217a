"""Defects of a recording as plain sentences: gaps, repeated stamps, NaN, constant channels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray

GAP = 2.5  # a gap: an interval longer than this many median intervals
RATE_RATIO = 1.5  # the rate is mixed when the medians of two stretches differ by this factor
STRETCHES = 20  # parts of the recording whose rates are compared


def findings_of(
    time: FloatArray, joints: tuple[str, ...], channels: Mapping[str, FloatArray | None]
) -> tuple[str, ...]:
    """Return every irregularity of stamps and channels as one sentence each.

    ``time`` (T,) s; ``channels`` maps a channel name to (T, n) values in the order of ``joints``
    or to None where it was not recorded.
    """
    found = stamp_findings(time)
    for name, channel in channels.items():
        if channel is not None and len(time):
            found += _values(name, channel, joints, time)
    effort = channels.get('effort')
    if effort is None:
        found.append('effort: not recorded, the dynamics cannot be identified from this file')
    elif len(time):
        found += _zero_effort(effort, joints)
    position = channels.get('position')
    if position is not None and len(time) > 1:
        found += _still(position, joints)
    return tuple(found)


def stamp_findings(time: FloatArray) -> list[str]:
    """Return gaps, repeated and backward stamps and changes of rate of ``time`` (T,) in s."""
    if len(time) < 2:
        return [f'time: only {len(time)} samples']
    finite = np.isfinite(time)
    found = []
    if not finite.all():
        bad = int(np.flatnonzero(~finite)[0])
        found.append(f'time: {_count(~finite)} stamps are not finite, first at sample {bad}')
        time = time[finite]
    with np.errstate(over='ignore'):  # damaged stamps are data here
        step = np.diff(time)
    if (step < 0).any():
        k = int(np.argmin(step))
        found.append(
            f'time: goes back {_count(step < 0)} times, '
            f'most by {-step[k]:.6g} s after sample {k} (t = {time[k]:.6g} s)'
        )
    if (step == 0).any():
        first = time[int(np.argmax(step == 0))]
        found.append(f'time: {_count(step == 0)} duplicate stamps, first at t = {first:.6g} s')
    forward = step[step > 0]
    if len(forward):
        found += _gaps(time, step, float(np.median(forward)))
        found += _mixed_rates(step)
    return found


def _gaps(time: FloatArray, step: FloatArray, period: float) -> list[str]:
    gaps = step > GAP * period
    if not gaps.any():
        return []
    k = int(np.argmax(step))
    sentence = (
        f'time: {_count(gaps)} gaps longer than {GAP:g} periods of {period:.6g} s, '
        f'longest {step[k]:.6g} s at t = {time[k]:.6g} s, {step[gaps].sum():.6g} s in all'
    )
    return [sentence]


def _mixed_rates(step: FloatArray) -> list[str]:
    if len(step) < 10 * STRETCHES:
        return []
    parts = [part[part > 0] for part in np.array_split(step, STRETCHES)]
    periods = np.array([np.median(part) for part in parts if len(part)])
    if periods.max() <= RATE_RATIO * periods.min():
        return []
    return [f'time: mixed rates, from {1 / periods.max():.6g} to {1 / periods.min():.6g} Hz']


def _values(
    name: str, channel: FloatArray, joints: tuple[str, ...], time: FloatArray
) -> list[str]:
    found = []
    if not np.isfinite(channel).all():
        for label, bad in (('NaN', np.isnan(channel)), ('infinite', np.isinf(channel))):
            found += _bad_values(name, label, bad, joints, time)
    return found


def _bad_values(
    name: str, label: str, bad: NDArray[np.bool_], joints: tuple[str, ...], time: FloatArray
) -> list[str]:
    counts = bad.sum(axis=0)
    named = [f'{j} {c}' for j, c in zip(joints, counts, strict=True) if c]
    if not named:
        return []
    first = time[int(np.argmax(bad.any(axis=1)))]
    return [f'{name}: {label} values: {", ".join(named)}; first at t = {first:.6g} s']


def _zero_effort(effort: FloatArray, joints: tuple[str, ...]) -> list[str]:
    zero: NDArray[np.bool_] = np.asarray(~(effort != 0.0).any(axis=0))
    if zero.all():
        sentence = (
            'effort: exactly zero for every joint throughout: the driver does not report effort, '
            'or reports it elsewhere or in units that round to zero'
        )
        return [sentence]
    if zero.any():
        return [f'effort: exactly zero throughout for {_names(joints, zero)}']
    return []


def _still(position: FloatArray, joints: tuple[str, ...]) -> list[str]:
    still = ~(position != position[:1]).any(axis=0)
    if still.any():
        return [f'position: never changes for {_names(joints, still)}']
    return []


def _names(joints: tuple[str, ...], chosen: NDArray[np.bool_]) -> str:
    return ', '.join(j for j, c in zip(joints, chosen, strict=True) if c)


def _count(flags: NDArray[np.bool_]) -> int:
    return int(flags.sum())
