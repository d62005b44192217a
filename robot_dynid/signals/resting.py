"""Position of a joint at rest, between the steps of its encoder.

A joint that other joints shake at rest moves by less than its encoder shows, and friction that
sticks changes over just that. The readings then flicker between two steps: single ones are noise,
their average tells the place between (the noise of the joint is a dither). What is faster than the
flicker is not in the data, and a friction law that followed every reading would be led around by
its rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from robot_dynid.signals.derivatives import derivative
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.resolution import resolution
from robot_dynid.types import FloatArray, RawLog

#: s without leaving a step of the encoder after which a joint rests; what is faster than one
#: change in this time is taken for flicker
RESTS = 0.5
#: steps within which it stays: two neighbouring readings, and no third
STEPS = 1.5


def resting(position: FloatArray, readings: FloatArray, dt: float) -> Iterator[slice]:
    """Yield the rows of ``position`` (N,), each ``dt`` [s], in which a joint rests.

    Around every instant there is a window of RESTS in which it does not leave two neighbouring
    steps of the encoder that gave ``readings`` (M,). The first RESTS, as it comes to rest, are
    motion.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    step, rows = resolution(readings), 2 * round(0.5 * RESTS / dt) + 1
    if step <= 0.0 or len(position) < 2 * rows:
        return
    inside = maximum_filter1d(position, rows) - minimum_filter1d(position, rows) <= STEPS * step
    still = maximum_filter1d(inside.astype(np.int8), rows)
    edges = np.flatnonzero(np.diff(still, prepend=0, append=0))
    for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stop - first >= 2 * rows - 1:
            yield slice(first + rows - 1, stop)


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
            smooth = zero_phase_low_pass(part.position[rows, j:j + 1], 1.0 / RESTS, dt)
            position[rows, j] = smooth[:, 0]
            velocity[rows, j] = derivative(smooth, dt)[:, 0]
    return replace(part, position=position, velocity=velocity)
