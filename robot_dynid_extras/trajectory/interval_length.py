"""Length of shooting intervals: deviations of their start stay about as they are."""

from __future__ import annotations

import numpy as np

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.arm import ArmModel
from robot_dynid_extras.trajectory.intervals import Intervals, intervals_of
from robot_dynid_extras.trajectory.simulation import simulate

#: lengths [s] of intervals that may be chosen
SHORTEST, LONGEST = 0.2, 1.0
#: a deviation of the initial state may grow to so many times itself; that of a body that is free
#: grows to 1.6
GROWTH = 4.0
#: share of the intervals in which it may grow no more; intervals by which that is seen
MOST, TRIED = 0.9, 32


def interval_length(
    arm: ArmModel, experiment: Experiment, values: FloatArray
) -> tuple[float, float]:
    """Return the length [s] of the intervals, and how deviations of their start grow in it.

    ``values`` (b,) are base parameters.

    Velocities count times the length, so that the growth of a free body, 1.6, is the same for all
    lengths: what is more is instability, and joints that pull each other.
    """
    for longest in (LONGEST, 0.5 * LONGEST, SHORTEST):
        tried = intervals_of(arm, experiment, longest, TRIED)
        if tried:
            break
    else:
        return SHORTEST, 1.0
    steps = [one.step * np.arange(one.steps + 1) for one in tried]
    grown = [_growth(arm, one, values) for one in tried]
    best = SHORTEST, 1.0
    for seconds in np.linspace(SHORTEST, longest, 17):
        rows = np.concatenate([g[:, np.searchsorted(t, min(seconds, t[-1]) - 1e-9)]
                               for g, t in zip(grown, steps, strict=True)])
        growth = float(np.quantile(rows, MOST))
        if growth > GROWTH and seconds > SHORTEST:
            break
        best = float(seconds), growth
    return best


def _growth(arm: ArmModel, intervals: Intervals, values: FloatArray) -> FloatArray:
    """Return by how much deviations of the start have grown at each sample (K, m + 1)."""
    found = simulate(arm.with_values(values), intervals, intervals.states[:, 0], True).gradient
    assert found is not None
    channels = found.shape[2]
    by_start, n = found[..., -channels:].copy(), channels // 2
    time = intervals.step * np.maximum(np.arange(intervals.steps + 1), 1)[:, None, None]
    by_start[..., n:, :] *= time
    by_start[..., n:] /= time
    flat = np.where(np.isfinite(by_start), by_start, 0.0)
    size = np.linalg.norm(flat, ord=2, axis=(2, 3))
    return np.where(np.isfinite(by_start).all(axis=(2, 3)), size, np.inf)
