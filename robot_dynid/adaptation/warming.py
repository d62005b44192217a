"""Friction of a joint that is warmed by the power it dissipates, and cools."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.adaptation.leftover import Leftover
from robot_dynid.kernels.adaptation import follow_warmth
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Warming:
    """Viscous and dry friction of a joint that warms up.

    Each is 1 + rise - sum_i fall_i w_i times what it is in the model, where the warmths follow
    T_i dw_i/dt = P / P_0 - w_i: P [W] is the power that friction dissipates, as warm as it is,
    P_0 = ``power`` the mean of that of the model in the recordings of the fit, T_i = ``seconds``
    (k,). A cold joint has w = 0, one that moves on as in these recordings tends to P / P_0.
    ``rise`` (2,) and ``fall`` (2, k), first of viscous, then of dry friction, with deviations
    ``rise_std`` and ``fall_std``;
    ``seconds_std`` (k,) are those of the time constants.

    Raises ValueError where shapes or numbers cannot be.
    """

    seconds: FloatArray
    power: float
    rise: FloatArray
    fall: FloatArray
    rise_std: FloatArray
    fall_std: FloatArray
    seconds_std: FloatArray

    def __post_init__(self) -> None:
        count = len(self.seconds)
        shapes = tuple(x.shape for x in (
            self.rise, self.rise_std, self.fall, self.fall_std, self.seconds_std))
        if shapes != ((2,), (2,), (2, count), (2, count), (count,)) or not count:
            raise ValueError(f'friction that warms up, of shapes {shapes}')
        numbers = np.concatenate([x.ravel() for x in (
            self.rise, self.fall, self.rise_std, self.fall_std, self.seconds,
            self.seconds_std)])
        if not np.isfinite(numbers).all() or not min(self.power, *self.seconds) > 0.0:
            raise ValueError('friction that warms up, of numbers that cannot be')

    def scales(self, warmth: FloatArray) -> FloatArray:
        """Return the factors (N, 2) of viscous and dry friction at ``warmth`` (N, k)."""
        return np.asarray(1.0 + self.rise - warmth @ self.fall.T)

    def torque(self, leftover: Leftover, warmth: FloatArray) -> FloatArray:
        """Return the torque (N,) [N m] to add to the model at ``warmth`` (N, k)."""
        return np.asarray(np.sum((self.scales(warmth) - 1.0) * leftover.friction, axis=1))

    def warmth(self, leftover: Leftover, state: FloatArray) -> FloatArray:
        """Return the warmth (N, k) along a recording; ``state`` (k,) is carried on."""
        return warmth_along(leftover, self.seconds, self.power, state, self.law)

    @property
    def law(self) -> FloatArray:
        """Rise and falls (2, 1 + k) of viscous and dry friction."""
        return np.hstack([self.rise[:, None], self.fall])


def warmth_along(
    leftover: Leftover, seconds: FloatArray, power: float, state: FloatArray,
    law: FloatArray | None = None,
) -> FloatArray:
    """Return the warmth (N, k) along a recording, for time constants ``seconds`` (k,) [s].

    ``power`` [W] is that at which it tends to one; ``state`` (k,), the warmth at the end of the
    recording before, is carried on. It faded since; where that time is not known it is zero.
    ``law`` (2, 1 + k), rise and falls of viscous and dry friction, says how much less friction
    heats that has fallen; None leaves its power as it is in the model.
    """
    rates = np.asarray(1.0 / seconds)
    state *= 0.0 if leftover.gap is None else np.exp(-rates * leftover.gap)
    out = np.empty((len(leftover.time), len(seconds)))
    if law is None:
        law = np.zeros((2, 1 + len(seconds)))
    follow_warmth(leftover.heat / power, np.ascontiguousarray(law), leftover.steps, rates, state,
                  out)
    return out
