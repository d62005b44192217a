"""Long signals made short: what a figure shows of hours of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.signals.alignment import GAP_STEPS
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import Trace

#: points drawn per joint, over all recordings
JOINT_POINTS = 6000
#: longest lag [s] of an autocorrelation, and the lags drawn: in equal ratios
LONGEST_LAG, LAGS = 2.0, 200
#: steps equal within this share are one rate
SAME_STEP = 0.01
#: errors this many interquartile ranges outside the quartiles are marked, so many at most
FAR_OUTSIDE, MOST_OUTLIERS = 3.0, 60
#: reversals marked per joint at most
REVERSALS = 600
#: a joint reverses where its speed changes sign and is above this share of its RMS on both sides
TURNING = 0.05


@dataclass(frozen=True, eq=False)
class Curve:
    """One joint over all recordings, one after the other, with NaN between them; each (P,).

    ``gaps`` are pairs of instants between which nothing was measured, ``reversals`` (k,) those at
    which the joint turns, ``outliers`` (m, 2) instants and residuals far from all others.
    """

    time: FloatArray
    measured: FloatArray
    predicted: FloatArray
    control: FloatArray | None
    gaps: tuple[tuple[float, float], ...]
    reversals: FloatArray
    outliers: FloatArray


def extremes(signals: Sequence[FloatArray], points: int) -> NDArray[np.int64]:
    """Return rows that keep the extremes of every signal (N,) in each of equal stretches.

    At most about ``points`` rows; all of them where N is not larger.
    """
    count = len(signals[0])
    if count <= points:
        return np.arange(count)
    width = -(-count // max(points // (2 * len(signals)), 1))  # one stretch at least
    starts = np.arange(0, count, width)
    indices = [np.array([0, count - 1])]
    for signal in signals:
        padded = np.pad(signal, (0, len(starts) * width - count), mode='edge')
        rows = padded.reshape(len(starts), width)
        indices += [np.minimum(starts + find(rows, axis=1), count - 1)
                    for find in (np.argmin, np.argmax)]
    return np.unique(np.concatenate(indices))


def offsets(traces: Sequence[Trace]) -> list[float]:
    """Return the start of each recording on the common time axis [s]."""
    lengths = [float(t.time[-1] - t.time[0]) if len(t.time) else 0.0 for t in traces]
    pause = 0.02 * sum(lengths) / len(lengths)
    starts = np.concatenate([[0.0], np.cumsum([length + pause for length in lengths])])
    return [float(start) for start in starts[:-1]]


def joined(
    traces: Sequence[Trace], signals: Sequence[Mapping[str, FloatArray]], points: int
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return time (P,) and ``signals`` of all traces, about ``points`` of each, NaN between them.

    ``signals`` (N,) by name for each trace; the result has (P,) by name.
    """
    total = sum(len(t.time) for t in traces)
    times, columns = [], {name: list[FloatArray]() for name in signals[0]}
    for trace, parts, offset in zip(traces, signals, offsets(traces), strict=True):
        count = points * len(trace.time) // total * len(parts)
        rows = extremes(list(parts.values()), count)
        times.append(np.append(trace.time[rows] - trace.time[0] + offset, np.nan))
        for name, values in parts.items():
            columns[name].append(np.append(values[rows], np.nan))
    return np.concatenate(times), {name: np.concatenate(parts) for name, parts in columns.items()}


def curve(traces: Sequence[Trace], row: int, joint: int, points: int = JOINT_POINTS) -> Curve:
    """Return one equation of all traces, ``row``, thinned to about ``points``; its ``joint``."""
    total = sum(len(t.time) for t in traces)
    columns: list[list[FloatArray]] = [[], [], [], []]
    gaps: list[tuple[float, float]] = []
    turns, outliers = [np.empty(0)], [np.empty((0, 2))]
    for trace, offset in zip(traces, offsets(traces)):
        if not len(trace.time):
            continue
        measured, predicted = trace.measured[:, row], trace.predicted[:, row]
        error, time = measured - predicted, trace.time - trace.time[0] + offset
        rows = extremes((measured, error), points * len(time) // total)
        jumps = _gaps(trace.time)
        gaps += [(float(time[i]), float(time[i + 1])) for i in jumps]
        breaks = np.append(np.searchsorted(rows, jumps, side='right'), len(rows))
        control = trace.control[:, row] if trace.control is not None else measured * np.nan
        for column, values in zip(columns, (time, measured, predicted, control)):
            column.append(np.insert(values[rows], breaks, np.nan))
        if trace.velocity is not None:
            turns.append(time[_reversals(trace.velocity[:, joint])])
        far = _far_outside(error)
        outliers.append(np.column_stack([time[far], error[far]]))
    joined = [np.concatenate(c) for c in columns]
    has_control = all(t.control is not None for t in traces) and bool(np.isfinite(joined[3]).any())
    turned = np.concatenate(turns)
    return Curve(joined[0], joined[1], joined[2], joined[3] if has_control else None, tuple(gaps),
                 turned[::max(1, -(-len(turned) // REVERSALS))],
                 np.vstack(outliers)[:MOST_OUTLIERS])


def _gaps(time: FloatArray) -> NDArray[np.int64]:
    """Return the samples (k,) after which stamps (N,) [s] have a gap."""
    steps = np.diff(time)
    return np.flatnonzero(steps > GAP_STEPS * np.median(steps)) if len(steps) else np.empty(0, int)


def _reversals(velocity: FloatArray) -> NDArray[np.int64]:
    """Return the samples at which a velocity (N,) changes its sign and keeps it."""
    moves = np.flatnonzero(np.abs(velocity) > TURNING * np.sqrt(np.mean(velocity**2)))
    turned = np.diff(np.sign(velocity[moves])) != 0.0
    return (moves[:-1][turned] + moves[1:][turned]) // 2


def _far_outside(error: FloatArray) -> NDArray[np.int64]:
    """Return the peak of every run of errors (N,) that are far from all others, largest first."""
    low, high = np.percentile(error, (25, 75))
    reach = FAR_OUTSIDE * (high - low)
    rows = np.flatnonzero((error < low - reach) | (error > high + reach))
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []
    peaks = np.array([run[np.argmax(np.abs(error[run]))] for run in runs], dtype=np.int64)
    return peaks[np.argsort(-np.abs(error[peaks]), kind='stable')][:MOST_OUTLIERS]


def residuals(traces: Sequence[Trace], joint: int) -> FloatArray:
    """Return measured minus predicted effort of all recordings, (N,)."""
    return np.concatenate([t.measured[:, joint] - t.predicted[:, joint] for t in traces])


def autocorrelation(traces: Sequence[Trace], joint: int) -> tuple[FloatArray, FloatArray]:
    """Return lags (L,) [s] and the autocorrelation (L,) of a joint's residual, over recordings.

    Recordings of one sample, or sampled at another step than the first, are left out.
    """
    several = [trace for trace in traces if len(trace.time) > 1]
    step = mean_step(several[0])
    count = int(LONGEST_LAG / step) + 1
    total = np.zeros(count)
    for trace in several:
        if abs(mean_step(trace) / step - 1.0) > SAME_STEP:
            continue
        error = trace.measured[:, joint] - trace.predicted[:, joint]
        error = error - error.mean()
        size = len(error) + count  # zeros behind, so that the ends do not meet
        total += np.fft.irfft(np.abs(np.fft.rfft(error, size))**2, size)[:count]
    keep = np.unique(np.geomspace(1, count, LAGS).astype(np.int64)) - 1
    return step * keep.astype(np.float64), np.asarray(total[keep] / (total[0] or np.nan))


def mean_step(trace: Trace) -> float:
    """Return the mean time [s] between the stamps of a recording, its gaps left out."""
    return float(np.mean(np.delete(np.diff(trace.time), _gaps(trace.time))))
