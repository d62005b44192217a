"""Compiled cubic splines through many columns over the same instants."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import compiled, inlined

#: columns that go side by side
SIDE = 8


@inlined
def _places(known, step, asked, place, weights):
    """Fill ``place`` (M,), the stretches that ``asked`` (M,) are in, and ``weights`` (M, 3).

    These are of the rise over the stretch, and of the slopes where it begins and ends.
    """
    i = 0
    for m in range(asked.shape[0]):  # those that are asked are mostly in order, too
        while i < step.shape[0] - 1 and known[i + 1] < asked[m]:
            i += 1
        while i > 0 and known[i] >= asked[m]:
            i -= 1
        x = asked[m] - known[i]
        u = x / step[i]
        place[m] = i
        weights[m, 0], weights[m, 1] = u * u * (3.0 - 2.0 * u), x * (1.0 - u) * (1.0 - u)
        weights[m, 2] = x * u * (u - 1.0)


@inlined
def _slopes(step, y, slope):
    """Fill ``slope`` (N, SIDE) of the splines through ``y`` (N, SIDE)."""
    last = step.shape[0]
    begin, end = step[0] + step[1], step[last - 2] + step[last - 1]
    share = np.empty(last)
    share[0] = begin / step[1]
    for k in range(SIDE):
        right = (step[0] + 2.0 * begin) * step[1] / step[0] * (y[1, k] - y[0, k]) \
            + step[0]**2 / step[1] * (y[2, k] - y[1, k])
        slope[0, k] = right / begin / step[1]
    for i in range(1, last):
        inverse = 1.0 / (2.0 * (step[i - 1] + step[i]) - step[i] * share[i - 1])
        share[i] = step[i - 1] * inverse
        before, after = 3.0 * step[i] / step[i - 1], 3.0 * step[i - 1] / step[i]
        for k in range(SIDE):
            right = before * (y[i, k] - y[i - 1, k]) + after * (y[i + 1, k] - y[i, k])
            slope[i, k] = (right - step[i] * slope[i - 1, k]) * inverse
    inverse = 1.0 / (step[last - 2] - end * share[last - 1])
    for k in range(SIDE):
        right = step[last - 1]**2 / step[last - 2] * (y[last - 1, k] - y[last - 2, k]) \
            + (2.0 * end + step[last - 1]) * step[last - 2] / step[last - 1] * (
                y[last, k] - y[last - 1, k])
        slope[last, k] = (right / end - end * slope[last - 1, k]) * inverse
    for i in range(last - 1, -1, -1):
        for k in range(SIDE):
            slope[i, k] -= share[i] * slope[i + 1, k]


@compiled
def cubic_spline(known, columns, asked, out):
    """Fill ``out`` (k, M) with the cubic splines through ``columns`` (k, N) at ``asked`` (M,).

    ``columns`` are given at the instants ``known`` (N,), N at least 4, in order. Not a knot next
    to either end.
    Source: de Boor 2001, A practical guide to splines, chapter IV.
    """
    count, step = known.shape[0], np.diff(known)
    place, weights = np.empty(asked.shape[0], np.int64), np.empty((asked.shape[0], 3))
    _places(known, step, asked, place, weights)
    y, slope = np.zeros((count, SIDE)), np.empty((count, SIDE))
    for first in range(0, columns.shape[0], SIDE):
        used = min(SIDE, columns.shape[0] - first)
        for k in range(used):
            for i in range(count):
                y[i, k] = columns[first + k, i]
        _slopes(step, y, slope)
        for k in range(used):
            for m in range(asked.shape[0]):
                i = place[m]
                out[first + k, m] = y[i, k] + weights[m, 0] * (y[i + 1, k] - y[i, k]) \
                    + weights[m, 1] * slope[i, k] + weights[m, 2] * slope[i + 1, k]
