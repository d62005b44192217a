"""Repeatability of a robot: the error below which no model can predict, and noise beside it."""

from __future__ import annotations

import numpy as np

from robot_dynid.types import FloatArray, Samples

#: a motion repeats when the mean squared difference stays below this share of its variance
SAME_MOTION = 1e-3
#: shortest period [s], and least overlap as a share of the period
SHORTEST_PERIOD, LEAST_OVERLAP = 2.0, 0.1


def period(samples: Samples) -> int:
    """Return after how many samples the motion repeats itself, 0 when it does not.

    The mean squared difference between the motion and itself later, for all delays at once, from
    the autocorrelation; joints are scaled to the same variance.
    """
    if len(samples.starts) > 1 or len(samples) < 10:
        return 0
    step = float(samples.time[1] - samples.time[0])
    q = samples.position - samples.position.mean(axis=0)
    q = q / np.maximum(q.std(axis=0), 1e-6)
    count = len(q)
    shortest = int(SHORTEST_PERIOD / step)
    longest = int(count / (1.0 + LEAST_OVERLAP))
    if longest <= shortest:
        return 0
    power = np.concatenate([[0.0], np.cumsum(np.sum(q**2, axis=1))])
    spectrum = np.abs(np.fft.rfft(q, 2 * count, axis=0))**2  # zeros behind keep the ends apart
    correlation = np.fft.irfft(spectrum.sum(axis=1), 2 * count)[:count]
    delays = np.arange(shortest, longest)
    overlap = count - delays
    # what is compared must itself move, or rest at both ends would count as repetition
    early, late = power[overlap], power[count] - power[delays]
    difference = (early + late - 2.0 * correlation[delays]) / overlap
    moves = np.minimum(early, late) / overlap > 0.2 * q.shape[1]
    difference = np.where(moves, difference / q.shape[1], np.inf)
    best = int(np.argmin(difference))
    return int(delays[best]) if difference[best] < SAME_MOTION else 0


def repeatability(samples: Samples) -> tuple[FloatArray, FloatArray] | None:
    """Return the deviations of repetitions: of the robot, and by noise, (n,) [N m] each.

    Both as deviations of a single repetition: that of the filtered effort without the noise that
    passes the filter, and that of single samples of the effort, taken to be white. Steady effects
    that the filter takes away, such as ripple, are in neither. None when the motion does not
    repeat or no effort was measured.
    """
    delay = period(samples)
    if not delay or samples.measured is None or samples.effort is None:
        return None
    smooth = samples.gridded.effort
    assert smooth is not None
    rough = samples.measured - samples.effort
    within, outside = (np.mean((x[delay:] - x[:-delay])**2, axis=0) / 2.0 for x in (smooth, rough))
    step = float(samples.time[1] - samples.time[0])
    passed = 0.0 if samples.cutoff is None else min(2.0 * samples.cutoff * step, 0.5)
    variance = outside / (1.0 - passed)
    return np.sqrt(np.maximum(within - passed * variance, 0.0)), np.sqrt(variance)
