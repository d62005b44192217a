"""Position of a joint at rest, between the steps of its encoder.

A joint that other joints shake at rest moves by less than its encoder shows, and friction that
sticks changes over just that. The readings then flicker between two steps: single ones are noise,
their average tells the place between (the noise of the joint is a dither). A friction law that
followed every reading would be led around by its rounding. What is faster is kept, octave by
octave, only while it is more than the flicker makes there: a joint that vibrates within a step
shows it, a change from one step to the next does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from robot_dynid.signals.derivatives import derivative
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.resolution import resolution
from robot_dynid.types import FloatArray, RawLog

#: s in which a motion changes a reading about once: what is slower is averaged, and a joint comes
#: to rest for so long
RESTS = 0.5
#: s around an instant in which a joint at rest does not leave two neighbouring steps
WINDOW = 0.25
#: steps within which it stays: two readings, and no third; those of averages over SHORT [s], so
#: that the noise of single readings is no motion, however many there are
STEPS, SHORT = 1.5, 0.04
#: s over which power is averaged and the octaves that are kept change, and in which the averages
#: take over from the readings at the ends of a rest
LOCAL, FADE = 1.0, 0.25
#: an octave is kept above this share of the power one octave below. Changes from step to step
#: halve it, or have up to 0.7 of it (regular ones, just slower than one in RESTS); one wave at the
#: border of two octaves gives both the same
STEEP = 0.85
#: and above so many times the power of white flicker, which is estimated from few waves
FLICKER = 3.0


def resting(position: FloatArray, readings: FloatArray, dt: float) -> Iterator[slice]:
    """Yield the rows of ``position`` (N,), each ``dt`` [s], in which a joint rests.

    Centred on each is a WINDOW in which it does not leave two neighbouring steps of the encoder
    that gave ``readings`` (M,). The first RESTS, as it comes to rest, are motion.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    step, rows = resolution(readings), _odd(WINDOW, dt)
    if step <= 0.0:
        return
    average = _averaged(position, SHORT, dt)
    spread = maximum_filter1d(average, rows) - minimum_filter1d(average, rows)
    edges = np.flatnonzero(np.diff((spread <= STEPS * step).astype(np.int8), prepend=0, append=0))
    for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        begin = first + round((RESTS - 0.5 * WINDOW) / dt) if first > 0 else 0
        if stop - begin >= RESTS / dt:
            yield slice(begin, stop)


def without_flicker(part: RawLog, readings: FloatArray, dt: float) -> RawLog:
    """Return a uniform recording, each ``dt`` [s], with its motion at rest from averaged readings.

    ``readings`` (M, n) [rad, m] are the positions as they were recorded. Everything else, and all
    of a joint whose encoder shows no steps, stays as it is; so do recordings with motor states,
    which are of use as differences at the same instants.
    """
    assert part.velocity is not None
    few = 0.5 / dt <= 1.0 / RESTS  # samples, in which no flicker can be told
    if few or part.motor_position is not None:
        return part
    position, velocity = part.position.copy(), part.velocity.copy()
    for j in range(position.shape[1]):
        for rows in resting(part.position[:, j], readings[:, j], dt):
            smooth, share = _smooth(part.position[rows, j], dt), _share(rows, len(position), dt)
            position[rows, j] += share * (smooth - position[rows, j])
            velocity[rows, j] += share * (
                derivative(smooth[:, None], dt)[:, 0] - velocity[rows, j])
    return replace(part, position=position, velocity=velocity)


def _smooth(position: FloatArray, dt: float) -> FloatArray:
    """Return positions (N,) below 1 / RESTS, and in the octaves above that stand out of flicker.

    Flicker has the power of steps, which falls with the square of the frequency, or that of white
    noise, which the differences of readings tell.
    """
    top = 1.0 / RESTS
    low = _low_pass(position, top, dt)
    smooth, steps = low.copy(), _power(low - _averaged(low, LOCAL, dt), dt)
    white = 0.5 * _power(np.diff(position, prepend=position[0]), dt)
    while 2.0 * top < 0.4 / dt:
        high = _low_pass(position, 2.0 * top, dt)
        power, share = _power(high - low, dt), top / (0.5 / dt)
        moves = power > np.maximum(STEEP * steps, FLICKER * share * white)
        smooth += _averaged(moves.astype(np.float64), LOCAL, dt) * (high - low)
        steps, low, top = np.maximum(0.5 * steps, power), high, 2.0 * top
    return smooth


def _share(rows: slice, count: int, dt: float) -> FloatArray:
    """Return the share (N,) of averages in ``rows`` of ``count``: less where motion is near."""
    since = dt * np.arange(1.0, rows.stop - rows.start + 1)
    near = np.full(len(since), FADE)
    if rows.start > 0:
        near = np.minimum(near, since)
    if rows.stop < count:
        near = np.minimum(near, since[::-1])
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * near / FADE))


def _low_pass(values: FloatArray, cutoff: float, dt: float) -> FloatArray:
    return zero_phase_low_pass(values[:, None], cutoff, dt)[:, 0]


def _power(values: FloatArray, dt: float) -> FloatArray:
    """Return the power (N,) of ``values`` (N,) around every instant."""
    return _averaged(values**2, LOCAL, dt)


def _averaged(values: FloatArray, seconds: float, dt: float) -> FloatArray:
    """Return averages (N,) of ``values`` (N,) over ``seconds`` around every instant."""
    from scipy.ndimage import uniform_filter1d

    return np.asarray(uniform_filter1d(values, _odd(seconds, dt), mode='nearest'))


def _odd(seconds: float, dt: float) -> int:
    """Return the odd number of rows that ``seconds`` are."""
    return 2 * round(0.5 * seconds / dt) + 1
