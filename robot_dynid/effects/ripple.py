"""Torque ripple: waves over the position of joints, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.effects.effect import LinearTorque
from robot_dynid.effects.learnt import LearntEffect
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.types import FloatArray, Samples, frozen

#: shares of a wave: at any speed, more with speed, at creeping speed; each has a sine and a cosine
SHARES = 3
#: columns of a wave
WAVE_COLUMNS = 2 * SHARES
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
        if shapes != ((count,), (count,), (WAVE_COLUMNS * count,)) or not count:
            raise ValueError(f'torque ripple of shapes {shapes}')
        numbers = np.concatenate([self.orders, self.delays, self.coefficients,
                                  [self.compliance, self.slow, self.fast]])
        if not np.isfinite(numbers).all() or not min(self.slow, self.fast, *self.orders) > 0.0:
            raise ValueError('torque ripple of numbers that cannot be')

    def columns(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the columns (N, 6 w) of ``coefficients``.

        ``position`` (N,) [rad] as measured in the rows of the effort, ``velocity`` (N,) [rad/s],
        ``effort`` (N,) [N m] without ripple.
        """
        return wave_columns(self.phases(position, velocity, effort).T,
                            amplitudes(velocity, self.slow, self.fast).T)

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
                      coefficients=self.coefficients[WAVE_COLUMNS * k:WAVE_COLUMNS * (k + 1)])
        return (own.phases(position, velocity, effort)[:, 0],
                own.effort(position, velocity, effort))

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored, in plain types."""
        found: dict[str, Any] = to_plain(self)
        return found


def amplitudes(
    velocity: FloatArray, slow: float | FloatArray, fast: float | FloatArray
) -> FloatArray:
    """Return the shares (..., 3) of an amplitude at ``velocity`` (...) [rad/s]: see above."""
    speed = np.abs(velocity)
    shares = np.stack([np.ones_like(speed), np.minimum(speed / fast, 1.0),
                       np.exp(-speed / slow)], axis=-1)
    return np.where((speed <= ABOVE_FAST * fast)[..., None], shares, 0.0)


def wave_columns(phase: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the columns (N, 6 w) of waves of a ``phase`` (w, N) [rad] with ``shares`` (3, N).

    Wave by wave, share by share: sine, then cosine. One after the other in memory.
    """
    waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    return np.asarray((shares[:, None] * waves[:, None]).reshape(
        WAVE_COLUMNS * len(phase), shares.shape[1]).T)


class RippleTorque(LearntEffect):
    """The torque ripple of all joints, prepared once for many short calls."""

    def __init__(self, parts: Sequence[TorqueRipple | None]) -> None:
        super().__init__(parts)
        known = [(j, one) for j, one in enumerate(parts) if one is not None]
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

    @classmethod
    def read(cls, content: Any, where: str = '') -> TorqueRipple:
        """Return the ripple of a joint. Raises ValueError, TypeError where damaged."""
        return from_plain(TorqueRipple, content, where)

    def along(
        self, model: LinearTorque, values: FloatArray, samples: Samples, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, n) [N m], see `of_samples`."""
        return self.of_samples(samples, effort)

    def of_samples(self, samples: Samples, effort: FloatArray) -> FloatArray:
        """Return the torque (N, n) [N m] at the stamps of the effort.

        ``effort`` (N, n) [N m] is what is modelled without ripple. Zero where the samples do not
        know the positions as they were measured.
        """
        if samples.raw_position is None or not self.any:
            return np.zeros_like(effort)
        return self(samples.raw_position, samples.at_stamps(samples.velocity), effort)
