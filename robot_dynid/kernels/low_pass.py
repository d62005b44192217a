"""Compiled zero-phase filter: sections of order two in a row, forward and backward."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import compiled, inlined

#: columns filtered side by side
SIDE = 8


@inlined
def _through(section, rows):
    """Pass ``rows`` (N, SIDE) through a section in place; they have always been as the first."""
    b0, b1, b2, a1, a2 = section[0], section[1], section[2], section[4], section[5]
    gain = (b0 + b1 + b2) / (1.0 + a1 + a2)
    first, second = np.empty(SIDE), np.empty(SIDE)
    for k in range(SIDE):
        first[k], second[k] = (gain - b0) * rows[0, k], (b2 - a2 * gain) * rows[0, k]
    for i in range(rows.shape[0]):
        for k in range(SIDE):
            x = rows[i, k]
            y = b0 * x + first[k]
            first[k] = b1 * x - a1 * y + second[k]
            second[k] = b2 * x - a2 * y
            rows[i, k] = y


@compiled
def zero_phase(sections, padding, columns, out):
    """Fill ``out`` (k, N) with ``columns`` (k, N), filtered forward and backward.

    ``sections`` (s, 6) are b0, b1, b2, 1, a1, a2 each, direct form II transposed. Either end goes
    on for ``padding`` samples, turned about itself, and is at rest before.
    """
    count = columns.shape[1]
    rows = np.zeros((count + 2 * padding, SIDE))
    for begin in range(0, columns.shape[0], SIDE):
        used = min(SIDE, columns.shape[0] - begin)
        for k in range(used):
            own = columns[begin + k]
            for i in range(padding):
                rows[i, k] = 2.0 * own[0] - own[padding - i]
                rows[padding + count + i, k] = 2.0 * own[count - 1] - own[count - 2 - i]
            for i in range(count):
                rows[padding + i, k] = own[i]
        for s in range(sections.shape[0]):
            _through(sections[s], rows)
        for s in range(sections.shape[0]):
            _through(sections[s], rows[::-1])
        for k in range(used):
            for i in range(count):
                out[begin + k, i] = rows[padding + i, k]
