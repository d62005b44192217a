"""Torque ripple: waves over the position of joints, and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.plain import from_plain, to_plain
from robot_dynid.types import FloatArray, Samples, frozen

#: shares of a wave: at any speed, more with speed, at creeping speed; each has a sine and a cosine
SHARES = 3
#: columns of a wave
COLUMNS = 2 * SHARES
#: the top speed that amplitudes are fitted to, over that up to which they grow
ABOVE_FAST = 2.0


@dataclass(frozen=True, eq=False)
class TorqueRipple:
    """Waves of torque over the position of one joint, linear in their coefficients.

    tau = sum over waves k of a_k(qd) sin(phi_k) + b_k(qd) cos(phi_k) with the phase
    phi_k = orders_k (q + compliance tau_m + delays_k qd): q as measured at the same instant as the
    effort, tau_m the effort without ripple, by which the gear is twisted when the encoder sits
    behind it. ``orders`` (w,) [1/rad] are waves per turn of the joint; ``delays`` (w,) [s] by how
    much the position of a row of measurements is older than its effort, negative where it is newer
    or the wave comes later; ``compliance`` [rad/(N m)]. Amplitudes are a(qd) = a_0 + a_1 min(|qd|
    / fast, 1) + a_2 exp(-|qd| / slow), ``slow`` and ``fast`` in rad/s, up to ABOVE_FAST ``fast``,
    the top speed recorded, and zero beyond it. ``coefficients`` (6 w,) [N m] are those of sine and
    cosine of a_0, a_1, a_2, wave by wave. A prismatic joint has m for
    rad, N for N m.

    Raises ValueError where shapes or numbers cannot be.
    """

    orders: FloatArray
    delays: FloatArray
    compliance: float
    slow: float
    fast: float
    coefficients: FloatArray

    def __post_init__(self) -> None:
        shapes = (self.orders.shape, self.delays.shape, self.coefficients.shape)
        count = len(self.orders)
        if shapes != ((count,), (count,), (COLUMNS * count,)) or not count:
            raise ValueError(f'torque ripple of shapes {shapes}')
        numbers = np.concatenate([self.orders, self.delays, self.coefficients,
                                  [self.compliance, self.slow, self.fast]])
        if not np.isfinite(numbers).all() or not min(self.slow, self.fast, *self.orders) > 0.0:
            raise ValueError('torque ripple of numbers that cannot be')

    def columns(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the columns (N, 6 w) of ``coefficients``, one after the other in memory.

        ``position`` (N,) [rad] as measured in the rows of the effort, ``velocity`` (N,) [rad/s],
        ``effort`` (N,) [N m] without ripple.
        """
        phase = self.phases(position, velocity, effort).T
        shares = np.ascontiguousarray(amplitudes(velocity, self.slow, self.fast).T)
        waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)
        return np.asarray((shares[:, None] * waves[:, None]).reshape(
            COLUMNS * len(self.orders), len(position)).T)

    def phases(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the phase (N, w) [rad] of every wave; arguments as of `columns`."""
        twisted = position + self.compliance * effort
        return np.asarray(self.orders[:, None] * (twisted + self.delays[:, None] * velocity)).T

    def effort(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N,) [N m] of the ripple; arguments as of `columns`."""
        return np.asarray(self.columns(position, velocity, effort) @ self.coefficients)

    def wave(
        self, order: float, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return phase [rad] and torque [N m] (N,) of the wave nearest to ``order`` [1/rad].

        The other arguments as of `columns`.
        """
        k = int(np.argmin(np.abs(self.orders - order)))
        own = replace(self, orders=self.orders[k:k + 1], delays=self.delays[k:k + 1],
                      coefficients=self.coefficients[COLUMNS * k:COLUMNS * (k + 1)])
        return (own.phases(position, velocity, effort)[:, 0],
                own.effort(position, velocity, effort))

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored, in plain types."""
        found: dict[str, Any] = to_plain(self)
        return found

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> TorqueRipple:
        """Return the ripple that `plain` wrote. Raises ValueError, TypeError where damaged."""
        return from_plain(cls, content)


def amplitudes(
    velocity: FloatArray, slow: float | FloatArray, fast: float | FloatArray
) -> FloatArray:
    """Return the shares (..., 3) of an amplitude at ``velocity`` (...) [rad/s]: see above."""
    speed = np.abs(velocity)
    shares = np.stack([np.ones_like(speed), np.minimum(speed / fast, 1.0),
                       np.exp(-speed / slow)], axis=-1)
    return np.where((speed <= ABOVE_FAST * fast)[..., None], shares, 0.0)


class RippleTorque:
    """The ripple of all joints, prepared once for many short calls.

    ``ripples`` are those of the joints, None for joints without.
    """

    def __init__(self, ripples: Sequence[TorqueRipple | None]) -> None:
        known = [(j, one) for j, one in enumerate(ripples) if one is not None]
        self.any = bool(known)
        self._joints = np.array([j for j, one in known for _ in one.orders], dtype=np.int64)
        self._orders, self._delays, self._compliance, self._slow, self._fast = (
            frozen(np.concatenate([np.broadcast_to(getattr(one, name), one.orders.shape)
                                   for _, one in known]) if known else [])
            for name in ('orders', 'delays', 'compliance', 'slow', 'fast'))
        own = [one.coefficients.reshape(-1, SHARES, 2) for _, one in known]
        self._sine, self._cosine = np.ascontiguousarray(np.moveaxis(
            np.concatenate(own) if own else np.empty((0, SHARES, 2)), 0, 2).swapaxes(0, 1))
        self._firsts = np.flatnonzero(np.diff(self._joints, prepend=-1))
        self._rippling = self._joints[self._firsts]

    def __call__(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, n) [N m] of the ripple.

        ``position``, ``velocity``, ``effort`` (N, n) as of `TorqueRipple.columns`.
        """
        found = np.zeros(effort.shape)
        if not self.any:
            return found
        q, qd, tau = (x[:, self._joints] for x in (position, velocity, effort))
        phase = self._orders * (q + self._compliance * tau + self._delays * qd)
        shares = np.moveaxis(amplitudes(qd, self._slow, self._fast), -1, 0)
        sine, cosine = (np.einsum('sw,snw->nw', one, shares) for one in (
            self._sine, self._cosine))
        waves = np.sin(phase) * sine + np.cos(phase) * cosine
        found[:, self._rippling] = np.add.reduceat(waves, self._firsts, axis=1)
        return found

    def along(self, samples: Samples, effort: FloatArray) -> FloatArray:
        """Return the torque (N, n) [N m] at the stamps of the effort of ``samples``.

        ``effort`` (N, n) [N m] is what is modelled without ripple. Zero where the samples do not
        know the positions as they were measured.
        """
        if samples.raw_position is None or not self.any:
            return np.zeros_like(effort)
        return self(samples.raw_position, samples.at_stamps(samples.velocity), effort)


#: rows of which the columns are in memory, and in the cache of a core
ROWS = 1024


@dataclass(frozen=True, eq=False)
class WaveColumns:
    """Columns (N, 6 w) of the coefficients of waves, see `TorqueRipple.columns`.

    They are products of the amplitudes ``shares`` (3, N) and the ``waves`` (w, 2, N), sine and
    cosine.
    """

    shares: FloatArray
    waves: FloatArray

    @classmethod
    def of(cls, shares: FloatArray, phase: FloatArray) -> WaveColumns:
        """Return those of a ``phase`` (w, N) [rad]."""
        waves = np.empty((len(phase), 2, shares.shape[1]))
        np.sin(phase, out=waves[:, 0])
        np.cos(phase, out=waves[:, 1])
        return cls(shares, waves)

    @property
    def count(self) -> int:
        """Number of columns."""
        return COLUMNS * len(self.waves)

    def beside(self, more: WaveColumns) -> WaveColumns:
        """Return them with ``more`` of the same rows behind."""
        return WaveColumns(self.shares, np.concatenate([self.waves, more.waves]))

    def rows(self, rows: slice) -> FloatArray:
        """Return the columns (6 w, M) of M contiguous rows."""
        found = self.shares[:, None, rows] * self.waves[:, None, :, rows]
        return found.reshape(self.count, found.shape[-1])

    def gram(self) -> FloatArray:
        """Return the Gram matrix (6 w, 6 w)."""
        found = np.zeros((self.count, self.count))
        for rows in pieces(slice(0, self.shares.shape[1])):
            columns = self.rows(rows)
            found += columns @ columns.T
        return found

    def products(self, values: FloatArray) -> FloatArray:
        """Return the products (6 w, m) with ``values`` (N, m)."""
        count, waves = values.shape[1], self._waves
        found = np.zeros((len(waves), SHARES * count))
        for rows in pieces(slice(0, len(values))):
            shared = self.shares[:, None, rows] * values[rows].T
            found += waves[:, rows] @ shared.reshape(len(found.T), -1).T
        return found.reshape(-1, 2, SHARES, count).swapaxes(1, 2).reshape(self.count, count)

    def times(self, coefficients: FloatArray, stretch: slice | None = None) -> FloatArray:
        """Return the columns (N, 6 w) of a stretch, or of all, times ``coefficients`` (6 w, m)."""
        count, waves = coefficients.shape[1], self._waves
        by_share = coefficients.reshape(-1, SHARES, 2, count).transpose(1, 3, 0, 2).reshape(
            SHARES * count, len(waves))
        stretch = slice(0, self.shares.shape[1]) if stretch is None else stretch
        found = np.empty((stretch.stop - stretch.start, count))
        for rows in pieces(stretch):
            shared = (by_share @ waves[:, rows]).reshape(SHARES, count, -1)
            found[rows.start - stretch.start:rows.stop - stretch.start] = np.sum(
                shared * self.shares[:, None, rows], axis=0).T
        return found

    @property
    def _waves(self) -> FloatArray:
        """All sines and cosines (2 w, N)."""
        return self.waves.reshape(2 * len(self.waves), self.shares.shape[1])


def pieces(rows: slice) -> Iterator[slice]:
    """Cut contiguous rows into pieces of at most ROWS."""
    for first in range(rows.start, rows.stop, ROWS):
        yield slice(first, min(first + ROWS, rows.stop))
