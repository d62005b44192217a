"""A motion as a spline with many knots: its coefficients by least squares in a band matrix."""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray

#: degree: acceleration is smooth once
DEGREE = 4
#: orders of the derivatives: position, velocity, acceleration
ORDERS = 3


class MotionSpline:
    """A uniform spline of DEGREE over uniform ``time`` (N,), its knots about ``spacing`` s apart.

    Coefficients are (intervals + DEGREE, m) for m coordinates. In every interval DEGREE + 1 of
    them count; derivatives by these are called local, (N, r, (DEGREE + 1) m), and belong to r
    values per sample.
    """

    def __init__(self, time: FloatArray, spacing: float) -> None:
        length = float(time[-1] - time[0])
        self.intervals = max(1, round(length / spacing))
        self._first, self._rate = float(time[0]), self.intervals / length
        self._look(time)

    def at(self, time: FloatArray) -> MotionSpline:
        """Return the spline at other instants ``time`` (M,), in order and within it."""
        found = copy(self)
        found.__dict__.pop('_members', None)
        found._look(time)
        return found

    def _look(self, time: FloatArray) -> None:
        places = (time - self._first) * self._rate
        self._interval = np.clip(places.astype(np.int64), 0, self.intervals - 1)
        self._values = _basis(places - self._interval, self._rate)

    @cached_property
    def _members(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The samples (intervals, most) of every interval, and which of them are there."""
        starts = np.searchsorted(self._interval, np.arange(self.intervals + 1))
        counts = np.diff(starts)
        places = starts[:-1, None] + np.arange(counts.max())
        there = np.arange(counts.max()) < counts[:, None]
        return np.where(there, places, 0), there

    def motion(self, coefficients: FloatArray) -> list[FloatArray]:
        """Return position, velocity, acceleration, each (N, m)."""
        own = coefficients[self._interval[:, None] + np.arange(DEGREE + 1)]
        return [np.einsum('nd,ndm->nm', values, own) for values in self._values]

    def local(self, gradient: FloatArray, order: int) -> FloatArray:
        """Return local derivatives from those (N, r, m) by the motion's derivative ``order``."""
        spread = self._values[order][:, None, :, None] * gradient[:, :, None, :]
        return spread.reshape(*gradient.shape[:2], -1)

    def normal(self, local: FloatArray) -> FloatArray:
        """Return the lower band (w, c) of sum(local^T local) of ``local`` (N, r, w).

        As scipy's ``solveh_banded`` takes it; c is the number of coefficients.
        """
        width = local.shape[2]
        m = width // (DEGREE + 1)
        blocks = self._per_interval(local, local)
        band = np.zeros((width, (self.intervals + DEGREE) * m))
        for column in range(width):
            for row in range(column, width):
                band[row - column, column:column + self.intervals * m:m] += blocks[:, row, column]
        return band

    def gathered(self, local: FloatArray, right: FloatArray) -> FloatArray:
        """Return sum(local^T right) (coefficients m, k) for ``right`` (N, r, k)."""
        width = local.shape[2]
        m = width // (DEGREE + 1)
        blocks = self._per_interval(local, right)
        found = np.zeros(((self.intervals + DEGREE) * m, right.shape[2]))
        for row in range(width):
            found[row:row + self.intervals * m:m] += blocks[:, row]
        return found

    def _per_interval(self, local: FloatArray, right: FloatArray) -> FloatArray:
        places, there = self._members
        most = places.shape[1]
        stacked = [values[places].reshape(len(places), most * values.shape[1], values.shape[2])
                   for values in (local, right)]
        stacked[0][~np.repeat(there, local.shape[1], axis=1)] = 0.0
        return np.asarray(np.matmul(stacked[0].transpose(0, 2, 1), stacked[1]))

    def fitted(self, position: FloatArray) -> FloatArray:
        """Return the coefficients of the spline nearest to ``position`` (N, m)."""
        from scipy.linalg import solveh_banded

        unit = np.broadcast_to(np.eye(position.shape[1]),
                               (len(position), *2 * position.shape[1:]))
        local = self.local(unit, 0)
        found = solveh_banded(self.normal(local), self.gathered(local, position[:, :, None]),
                              lower=True)
        return np.asarray(found.reshape(-1, position.shape[1]))


def _basis(place: FloatArray, rate: float) -> list[FloatArray]:
    """Return the functions (N, DEGREE + 1) of an interval at ``place`` in [0, 1], and derivatives.

    ``rate`` [1/s] is one over the length of the interval.
    """
    from scipy.interpolate import BSpline

    curve = BSpline(np.arange(-DEGREE, DEGREE + 2, dtype=np.float64), np.eye(DEGREE + 1), DEGREE)
    return [np.asarray((curve.derivative(k) if k else curve)(place) * rate**k)
            for k in range(ORDERS)]
