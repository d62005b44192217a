"""Compiled cubic splines through many columns over the same instants."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import compiled


@compiled
def cubic_spline(known, columns, asked, out):
    """Fill ``out`` (k, M) with the cubic splines through ``columns`` (k, N) at ``asked`` (M,).

    ``columns`` are given at the instants ``known`` (N,), N at least 4, in order. Not a knot next
    to either end.
    Source: de Boor 2001, A practical guide to splines, chapter IV.
    """
    count = known.shape[0]
    last = count - 1
    step, inverse, share = np.diff(known), np.empty(count), np.empty(count)
    begin, end = step[0] + step[1], step[last - 2] + step[last - 1]
    inverse[0], share[0] = 1.0 / step[1], begin / step[1]
    for i in range(1, last):
        inverse[i] = 1.0 / (2.0 * (step[i - 1] + step[i]) - step[i] * share[i - 1])
        share[i] = step[i - 1] * inverse[i]
    inverse[last] = 1.0 / (step[last - 2] - end * share[last - 1])
    place, i = np.empty(asked.shape[0], np.int64), 0
    for m in range(asked.shape[0]):  # those that are asked are mostly in order, too
        while i < last - 1 and known[i + 1] < asked[m]:
            i += 1
        while i > 0 and known[i] >= asked[m]:
            i -= 1
        place[m] = i
    slope, secant = np.empty(count), np.empty(last)
    for c in range(columns.shape[0]):
        y = columns[c]
        for i in range(last):
            secant[i] = (y[i + 1] - y[i]) / step[i]
        right = ((step[0] + 2.0 * begin) * step[1] * secant[0] + step[0]**2 * secant[1]) / begin
        slope[0] = right * inverse[0]
        for i in range(1, last):
            right = 3.0 * (step[i] * secant[i - 1] + step[i - 1] * secant[i])
            slope[i] = (right - step[i] * slope[i - 1]) * inverse[i]
        right = (step[last - 1]**2 * secant[last - 2] +
                 (2.0 * end + step[last - 1]) * step[last - 2] * secant[last - 1]) / end
        slope[last] = (right - end * slope[last - 1]) * inverse[last]
        for i in range(last - 1, -1, -1):
            slope[i] -= share[i] * slope[i + 1]
        for m in range(asked.shape[0]):
            i = place[m]
            x = asked[m] - known[i]
            cubic = (slope[i] + slope[i + 1] - 2.0 * secant[i]) / step[i]
            square = (secant[i] - slope[i]) - cubic * step[i]
            out[c, m] = y[i] + x * (slope[i] + x / step[i] * (square + x * cubic))
