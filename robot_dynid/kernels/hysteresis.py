"""Compiled recursions of the hysteresis states, along segments."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import compiled


@compiled
def fill_stops(position, first, lengths, begin, out):
    """Fill ``out`` (k, N) with the states of stop operators, ``begin`` (S,) at the starts."""
    for k in range(lengths.shape[0]):
        slope = 1.0 / lengths[k]
        for s in range(first.shape[0] - 1):
            z = begin[s]
            for i in range(first[s], first[s + 1]):
                if i > first[s]:
                    z = min(max(z + (position[i] - position[i - 1]) * slope, -1.0), 1.0)
                out[k, i] = z


@compiled
def fill_dahl(position, first, length, begin, out):
    """Fill ``out`` (N,) with the state of Dahl's law, ``begin`` (S,) at the starts of segments.

    Exact while the direction holds.
    """
    for s in range(first.shape[0] - 1):
        z = begin[s]
        for i in range(first[s], first[s + 1]):
            if i > first[s]:
                step = position[i] - position[i - 1]
                left = np.exp(-abs(step) / length)
                z = z * left + np.sign(step) * (1.0 - left)
            out[i] = z
