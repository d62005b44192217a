"""Two recordings of the same motion on one clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.signals.repetition import SAME_MOTION
from robot_dynid.signals.turns import TURN
from robot_dynid.types import FloatArray, Samples

#: the least overlap of two recordings, as a share of the shorter one
LEAST_OVERLAP = 0.5
#: a joint that moves less than this (rad, m) is not used to find the lag
LEAST_MOTION = 1e-3
#: part of the usual motion that the overlap must hold: rest looks like rest anywhere
LEAST_SHARE = 0.2
ROUNDS, SETTLED = 30, 1e-9


@dataclass(frozen=True, eq=False)
class Pair:
    """The first recording, and the second one interpolated at the same moments of the motion.

    ``lag`` [s] is what its clock shows more, at the middle; ``drift`` how much faster it runs;
    ``difference`` (n,) root mean square of the difference of the positions [rad, m].
    """

    first: Samples
    second: Samples
    lag: float
    drift: float
    difference: FloatArray


def align(first: Samples, second: Samples) -> Pair:
    """Find the lag and the drift between two clocks from the positions, and interpolate.

    The lag is searched over all overlaps by the correlation of the positions and then, with the
    drift, refined by Gauss-Newton steps to a fraction of a sample. Drivers that wrap may begin
    them whole turns apart. Raises DataError when nothing moves, too little overlaps or the motions
    differ.
    """
    scale = _scale(first)
    apart = second.position.mean(axis=0) - first.position.mean(axis=0)
    second = replace(second, position=second.position - TURN * np.rint(apart / TURN))
    clock = np.array([_coarse_lag(first, second, scale), 0.0])
    middle = 0.5 * float(first.time[0] + first.time[-1])
    for _ in range(ROUNDS):
        step = _step(first, second, clock, middle, scale)
        clock = clock + step
        if np.max(np.abs(step)) < SETTLED:
            break
    rows, other = _resampled(first, second, clock, middle)
    error = rows.position - other.position
    share = float(np.mean((error[:, scale > 0.0] / scale[scale > 0.0]) ** 2))
    if not share < SAME_MOTION:
        raise DataError(f'the motions differ: {100.0 * np.sqrt(share):.2g} % of their own size '
                        'where they fit best; the arm must repeat the same motion with and '
                        'without the payload')
    return Pair(rows, other, float(clock[0]), float(clock[1]), np.sqrt(np.mean(error**2, axis=0)))


def _scale(samples: Samples) -> FloatArray:
    """Return the deviation (n,) of every position, zero for joints at rest."""
    deviation = samples.position.std(axis=0)
    if not np.any(deviation > LEAST_MOTION):
        raise DataError('no joint moves, so recordings with and without the payload cannot be '
                        'aligned in time; record the same motion twice')
    return np.where(deviation > LEAST_MOTION, deviation, 0.0)


def _coarse_lag(first: Samples, second: Samples, scale: FloatArray) -> float:
    """Return the lag [s] with the least difference per sample, of all that overlap enough."""
    from scipy import signal

    step = float(np.median(np.diff(first.time)))
    used = scale > 0.0
    mean = first.position[:, used].mean(axis=0)
    a, b = (_gridded(s, step, used, mean) / scale[used] for s in (first, second))
    power_a, power_b = (np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))]) for x in (a, b))
    product = np.sum([signal.correlate(y, x, method='fft') for x, y in zip(a.T, b.T, strict=True)],
                     axis=0)
    delays = np.arange(1 - len(a), len(b))  # row i of a meets row i + delay of b
    start, stop = np.maximum(0, -delays), np.minimum(len(a), len(b) - delays)
    energy_a = power_a[stop] - power_a[start]
    energy_b = power_b[stop + delays] - power_b[start + delays]
    overlap = stop - start
    enough = overlap >= LEAST_OVERLAP * min(len(a), len(b))
    enough &= energy_a >= LEAST_SHARE * overlap * a.shape[1]
    difference = np.full(len(delays), np.inf)
    difference[enough] = ((energy_a + energy_b - 2.0 * product) / overlap)[enough]
    best = int(np.argmin(difference))
    return float(second.time[0] - first.time[0]) + step * float(delays[best])


def _gridded(
    samples: Samples, step: float, used: NDArray[np.bool_], mean: FloatArray
) -> FloatArray:
    time = np.arange(samples.time[0], samples.time[-1] + 0.5 * step, step)
    return np.stack([np.interp(time, samples.time, column)
                     for column in (samples.position[:, used] - mean).T], axis=1)


def _resampled(
    first: Samples, second: Samples, clock: FloatArray, middle: float
) -> tuple[Samples, Samples]:
    """Return the samples of both where both have them; raises DataError without overlap."""
    lag, drift = clock
    times = first.time + lag + drift * (first.time - middle)
    pieces: list[tuple[FloatArray, dict[str, FloatArray]]] = []
    for a in first.segments:
        for b in second.segments:
            known = second.time[b]
            inside = (times[a] >= known[0]) & (times[a] <= known[-1])
            if inside.sum() > 1 and len(known) > 3:
                rows = np.arange(a.start, a.stop)[inside]
                pieces.append((rows, _interpolated(second.part(b), times[rows])))
    count = sum(len(rows) for rows, _ in pieces)
    if count < LEAST_OVERLAP * min(len(first), len(second)):
        raise DataError('less than half of the shorter recording overlaps with the other one, '
                        'where their motions fit best; record the whole motion both times')
    rows = np.concatenate([r for r, _ in pieces])
    starts = tuple(int(s) for s in np.cumsum([0, *(len(r) for r, _ in pieces[:-1])]))
    chosen: dict[str, Any] = {name: getattr(first, name)[rows] for name in pieces[0][1]}
    found: dict[str, Any] = {name: np.concatenate([c[name] for _, c in pieces]) for name in chosen}
    time = first.time[rows]
    return (replace(first, time=time, starts=starts, **chosen),
            replace(second, time=time, starts=starts, **found))


def _interpolated(segment: Samples, time: FloatArray) -> dict[str, FloatArray]:
    """Return the channels at ``time``: smooth ones by cubic splines, raw effort linearly."""
    from scipy import interpolate

    found: dict[str, FloatArray] = {}
    for name in ('position', 'velocity', 'acceleration', 'effort', 'measured'):
        values = getattr(segment, name)
        if values is not None:
            degree = 1 if name == 'measured' else 3
            found[name] = interpolate.make_interp_spline(segment.time, values, k=degree)(time)
    return found


def _step(
    first: Samples, second: Samples, clock: FloatArray, middle: float, scale: FloatArray
) -> FloatArray:
    """Return the Gauss-Newton step (2,) of lag and drift."""
    rows, other = _resampled(first, second, clock, middle)
    used = scale > 0.0
    speed = (other.velocity[:, used] / scale[used]).ravel()
    error = ((rows.position - other.position)[:, used] / scale[used]).ravel()
    ahead = np.repeat(rows.time - middle, int(used.sum()))
    found = np.linalg.lstsq(np.stack([speed, speed * ahead], axis=1), error, rcond=1e-9)[0]
    return np.asarray(found)
