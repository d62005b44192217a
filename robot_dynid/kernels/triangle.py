"""Compiled QR decomposition that takes rows as they come.

The triangle R of all rows so far grows by further ones: each reflection meets one row of R only,
so rows cost the same however they are cut, and nothing is stacked.
Source: Golub, Van Loan 2013, Matrix computations, sections 5.1 and 6.5.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from robot_dynid.kernels.compilation import Kernel
from robot_dynid.kernels.newton_euler import FAST, FLAGS

#: rows reflected at once: with some fifty columns they stay in the cache next to a core
ROWS = 128
#: sums of products are cut into lanes
SUMMING = FLAGS | {'fastmath': FAST | {'reassoc'}}
summing = partial(Kernel, flags=SUMMING, stored=True)
inlined = partial(Kernel, flags=SUMMING | {'forceinline': True}, stored=False)


@inlined
def _reflect(triangle, rows, count):
    """Clear the first ``count`` rows of a table, given as columns ``rows`` (k, m), into R."""
    for j in range(rows.shape[0]):
        own = rows[j]
        squares = 0.0
        for i in range(count):
            squares += own[i] * own[i]
        if squares == 0.0:
            continue
        head = triangle[j, j]
        norm = np.sqrt(head * head + squares)
        norm = -norm if head > 0.0 else norm
        pivot = head - norm
        triangle[j, j] = norm
        for c in range(j + 1, rows.shape[0]):
            other = rows[c]
            product = pivot * triangle[j, c]
            for i in range(count):
                product += own[i] * other[i]
            product /= norm * pivot
            triangle[j, c] += pivot * product
            for i in range(count):
                other[i] += own[i] * product


@summing
def add_rows(triangle, columns):
    """Grow ``triangle`` R (k, k) by the rows of a table, given as ``columns`` (k, N).

    Afterwards R^T R is what it was, plus columns columns^T.
    """
    work = np.empty((columns.shape[0], ROWS))
    for start in range(0, columns.shape[1], ROWS):
        count = min(ROWS, columns.shape[1] - start)
        for c in range(columns.shape[0]):
            work[c, :count] = columns[c, start:start + count]
        _reflect(triangle, work, count)


@summing
def add_equations(columns, active, efforts, first, triangles):
    """Grow triangles by stretches of the equations of one joint.

    ``columns`` (b, N) are those of the parameters, of which the ``active`` (k,) count; behind them
    stand ones and the ``efforts`` (e, N). Stretch s, from ``first[s]`` up to ``first[s + 1]``,
    grows ``triangles`` (S, k + 1 + e, k + 1 + e) [s].
    """
    k = active.shape[0]
    work = np.empty((triangles.shape[1], ROWS))
    for s in range(triangles.shape[0]):
        for start in range(first[s], first[s + 1], ROWS):
            count = min(ROWS, first[s + 1] - start)
            for c in range(k):
                work[c, :count] = columns[active[c], start:start + count]
            work[k] = 1.0
            for c in range(efforts.shape[0]):
                work[k + 1 + c, :count] = efforts[c, start:start + count]
            _reflect(triangles[s], work, count)


@inlined
def _gather(table, chosen, count, rows, norms):
    """Copy the ``chosen`` columns, scaled to one, and the last one; returns how many are chosen.

    Only their first ``count`` rows.
    """
    k = 0
    while k < chosen.shape[0] and chosen[k] >= 0:
        own = table[chosen[k]]
        squares = 0.0
        for m in range(count):
            squares += own[m] * own[m]
        norms[k] = np.sqrt(squares) if squares > 0.0 else 1.0
        for m in range(count):
            rows[k, m] = own[m] / norms[k]
        k += 1
    rows[k, :count] = table[-1, :count]
    return k


@inlined
def _solve(r, k, values):
    """Add R^-1 times the last column to ``values`` (k,); returns the energy of R^-1."""
    inverse = np.empty(k)
    energy = 0.0
    for j in range(k):  # column j of the inverse
        for i in range(j, -1, -1):
            found = 1.0 if i == j else 0.0
            for m in range(i + 1, j + 1):
                found -= r[i, m] * inverse[m]
            inverse[i] = found / r[i, i]
            energy += inverse[i] * inverse[i]
            values[i] += inverse[i] * r[j, k]
    return energy


@summing
def solve_chosen(tables, chosen, values, apart):
    """Solve least squares problems made of some columns of upper triangles.

    ``tables`` (F, d + 1, d + 1) are triangles of ``[columns, target]``, column by column;
    ``chosen`` (C, k) the columns of each problem, -1 behind the last. ``values`` (C, F, k) become
    the solutions; ``apart`` (C, F) a bound from below of the least singular value, columns scaled
    to one. Where that is zero, or not a number, there is no solution.
    """
    most = chosen.shape[1]
    rows, norms = np.empty((most + 1, tables.shape[2])), np.empty(most)
    r = np.empty((most + 1, most + 1))
    values[:] = 0.0
    for c in range(chosen.shape[0]):
        count = chosen[c].max() + 1  # below there are zeros
        for f in range(tables.shape[0]):
            k = _gather(tables[f], chosen[c], count, rows, norms)
            r[:] = 0.0
            _reflect(r, rows[:k + 1], count)
            apart[c, f] = 1.0 / np.sqrt(_solve(r, k, values[c, f]))
            for i in range(k):
                values[c, f, i] /= norms[i]
