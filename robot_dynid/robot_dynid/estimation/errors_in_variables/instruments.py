"""Noise-free motions along which instruments are evaluated.

A drive with computed torque follows its reference exactly, so the simulated closed loop of Janot,
Vandanjon, Gautier 2014 is the reference itself, whatever the parameters. Real drives lag; least
squares determines how a joint follows its reference. Without a recorded reference the measured
motion is used, smoothed far below the cut-off of the fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from robot_dynid.signals.filters import derivative, zero_phase_low_pass
from robot_dynid.types import FloatArray, Samples

#: cut-off of the motion: this share of the product of position and velocity energy lies below it,
#: times a margin; velocities alone would count mostly noise, positions only the slowest part
ENERGY_SHARE, ENERGY_MARGIN = 0.99, 2.0
#: frequencies [Hz] between which the energy is counted, and number of bins
BAND, FREQUENCY_STEPS = (0.01, 1000.0), 400
#: highest cut-off as a share of the Nyquist frequency
NYQUIST_SHARE = 0.9


def motion_cutoff(recordings: Iterable[Samples]) -> float:
    """Return the frequency [Hz] below which the motion is; above it there is mostly noise."""
    edges = np.geomspace(*BAND, FREQUENCY_STEPS + 1)
    energy = np.zeros(FREQUENCY_STEPS)
    for samples in recordings:
        for segment in samples.segments:
            velocity = samples.velocity[segment]
            if len(velocity) < 8:
                continue
            step = float(samples.time[segment.start + 1] - samples.time[segment.start])
            window = np.hanning(len(velocity))[:, None]
            power = np.sum(np.abs(np.fft.rfft(velocity * window, axis=0)) ** 2, axis=1)
            frequency = np.fft.rfftfreq(len(velocity), step)[1:]
            energy += np.histogram(frequency, edges, weights=power[1:] * step / frequency)[0]
    reached = np.cumsum(energy) >= ENERGY_SHARE * energy.sum()
    return ENERGY_MARGIN * float(edges[1 + int(np.argmax(reached))])


def instrument_samples(samples: Samples, cutoff: float) -> Samples:
    """Return `samples` along the reference, or along the motion smoothed to `cutoff`.

    Friction is still filtered by the low-pass of `samples`, as in the regressor.
    """
    return samples.with_motion(lambda moved: _clean(moved, cutoff))


def _clean(samples: Samples, cutoff: float) -> Samples:
    arrays = [np.empty_like(samples.position) for _ in range(3)]
    for rows in samples.segments:
        signals = _reference(samples, rows) if samples.reference_position is not None \
            else _smoothed(samples, rows, cutoff)
        for array, values in zip(arrays, signals, strict=True):
            array[rows] = values
    position, velocity, acceleration = arrays
    return replace(samples, position=position, velocity=velocity, acceleration=acceleration)


def _step(samples: Samples, rows: slice) -> float:
    if rows.stop - rows.start < 2:
        return 1.0
    return float(samples.time[rows.start + 1] - samples.time[rows.start])


def _smoothed(samples: Samples, rows: slice, cutoff: float) -> tuple[FloatArray, ...]:
    step = _step(samples, rows)
    used = min(cutoff, NYQUIST_SHARE * 0.5 / step)
    position = zero_phase_low_pass(samples.position[rows], used, step)
    velocity = zero_phase_low_pass(samples.velocity[rows], used, step)
    return position, velocity, derivative(velocity, step)


def _reference(samples: Samples, rows: slice) -> tuple[FloatArray, ...]:
    """Return position, velocity and acceleration of joints that follow their reference linearly.

    A drive responds with ``r + c0 + c1 dr/dt + c2 d2r/dt2``, the first terms of any linear loop.
    """
    assert samples.reference_position is not None
    step = _step(samples, rows)
    reference = samples.reference_position[rows]
    rate = derivative(reference, step)
    position = reference.copy()
    for j in range(reference.shape[1]):
        answers = np.column_stack([
            np.ones(len(reference)), rate[:, j], derivative(rate[:, j:j + 1], step)[:, 0]])
        error = samples.position[rows][:, j] - reference[:, j]
        position[:, j] += answers @ np.linalg.lstsq(answers, error, rcond=1e-9)[0]
    velocity = derivative(position, step)
    return position, velocity, derivative(velocity, step)
