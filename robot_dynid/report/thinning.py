"""Down-sampling of long signals for figures, and the autocorrelation of residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robot_dynid.identification.validate import Trace
from robot_dynid.types import FloatArray

#: points drawn per joint, over all recordings
POINTS = 6000
LONGEST_LAG = 2.0
#: steps equal within this share are one rate; steps longer than so many typical ones are gaps
SAME_STEP, GAP_STEPS = 0.01, 10.0


@dataclass(frozen=True, eq=False)
class Curve:
    """One joint over all recordings, one after the other, with NaN between them; each (P,)."""

    time: FloatArray
    measured: FloatArray
    predicted: FloatArray
    control: FloatArray | None


def extremes(signals: Sequence[FloatArray], points: int) -> NDArray[np.int64]:
    """Return rows that keep the extremes of every signal (N,) in each of equal stretches.

    At most about ``points`` rows; all of them where N is not larger.
    """
    count = len(signals[0])
    if count <= points:
        return np.arange(count)
    stretches = max(points // (2 * len(signals)), 1)
    edges = np.linspace(0, count, stretches + 1).astype(np.int64)
    kept = {0, count - 1}
    for first, stop in pairwise(edges):
        for signal in signals:
            kept.add(int(first + np.argmin(signal[first:stop])))
            kept.add(int(first + np.argmax(signal[first:stop])))
    return np.array(sorted(kept), dtype=np.int64)


def offsets(traces: Sequence[Trace]) -> list[float]:
    """Return the start of each recording on the common time axis [s]."""
    lengths = [float(t.time[-1] - t.time[0]) if len(t.time) else 0.0 for t in traces]
    pause = 0.02 * sum(lengths) / max(len(lengths), 1)
    starts = np.concatenate([[0.0], np.cumsum([length + pause for length in lengths])])
    return [float(start) for start in starts[:-1]]


def curve(traces: Sequence[Trace], joint: int, points: int = POINTS) -> Curve:
    """Return one joint of all traces, thinned to about ``points``."""
    total = max(sum(len(t.time) for t in traces), 1)
    columns: list[list[FloatArray]] = [[], [], [], []]
    for trace, offset in zip(traces, offsets(traces)):
        measured, predicted = trace.measured[:, joint], trace.predicted[:, joint]
        share = max(points * len(trace.time) // total, 8)
        if not len(measured):
            continue
        rows = extremes((measured, measured - predicted), share)
        control = trace.control[:, joint] if trace.control is not None else measured * np.nan
        for column, values in zip(columns, (trace.time - trace.time[0] + offset, measured,
                                            predicted, control)):
            column += [values[rows], np.array([np.nan])]
    joined = [np.concatenate(c) if c else np.empty(0) for c in columns]
    known = all(t.control is not None for t in traces)
    return Curve(joined[0], joined[1], joined[2], joined[3] if known else None)


def residuals(traces: Sequence[Trace], joint: int) -> FloatArray:
    """Return measured minus predicted effort of all recordings, (N,)."""
    return np.concatenate([t.measured[:, joint] - t.predicted[:, joint] for t in traces])


def autocorrelation(traces: Sequence[Trace], joint: int) -> tuple[FloatArray, FloatArray]:
    """Return lags (L,) [s] and the autocorrelation (L,) of a joint's residual, over recordings.

    Recordings sampled at another step than the first are left out.
    """
    step = _mean_step(traces[0])
    count = max(int(LONGEST_LAG / step), 1) + 1
    total = np.zeros(count)
    for trace in traces:
        if len(trace.time) < 2 or abs(_mean_step(trace) / step - 1.0) > SAME_STEP:
            continue
        error = trace.measured[:, joint] - trace.predicted[:, joint]
        error = error - error.mean()
        size = 1 << int(2 * len(error) - 1).bit_length()
        power = np.abs(np.fft.rfft(error, size)) ** 2
        found = np.fft.irfft(power, size)[:min(count, len(error))]
        total[:len(found)] += found
    keep = np.unique(np.geomspace(1, count, 200).astype(np.int64)) - 1
    scale = total[0] if total[0] > 0.0 else 1.0
    return np.asarray(step * keep, dtype=np.float64), np.asarray(total[keep] / scale)


def _mean_step(trace: Trace) -> float:
    """Return the mean time [s] between the stamps of a recording, its gaps left out."""
    if len(trace.time) < 2:
        return 1.0
    steps = np.diff(trace.time)
    return float(np.mean(steps[steps < GAP_STEPS * np.median(steps)]))
