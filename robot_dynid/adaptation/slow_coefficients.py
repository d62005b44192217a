"""Coefficients that drift, followed by a Kalman filter from what the model left over before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.adaptation.leftover import Leftover
from robot_dynid.kernels.adaptation import follow_coefficients
from robot_dynid.types import FloatArray

#: what is off by more than so many deviations is no friction, and not learnt from
GATE = 4.0


@dataclass(frozen=True)
class SlowCoefficients:
    """Drift of the coefficients of one joint, each by itself: viscous and dry friction, ripple.

    A coefficient deviates from the model by ``viscous`` and ``dry``, shares of the friction, or
    ``waves`` [N m] and returns to it over ``seconds``, those of ripple ``wave_seconds``: an
    Ornstein-Uhlenbeck process. ``noise`` [(N m)^2 s] is the density of what else is left over at
    low frequency. Raises ValueError for numbers that cannot be.
    """

    viscous: float
    dry: float
    waves: float
    seconds: float
    wave_seconds: float
    noise: float

    def __post_init__(self) -> None:
        numbers = (self.viscous, self.dry, self.waves, self.seconds, self.wave_seconds, self.noise)
        if not np.isfinite(numbers).all() or min(self.seconds, self.wave_seconds, self.noise
                                                 ) <= 0.0 or min(numbers) < 0.0:
            raise ValueError(f'slow coefficients {numbers}')

    def prior(self, waves: int) -> FloatArray:
        """Return deviations and rates [1/s] (2, m) of viscous, dry and ``waves`` columns."""
        ripple = [self.waves] * waves, [1.0 / self.wave_seconds] * waves
        return np.array([[self.viscous, self.dry, *ripple[0]],
                         [1.0 / self.seconds, 1.0 / self.seconds, *ripple[1]]])

    def unknown(self, waves: int) -> FloatArray:
        """Return the state (2 + m, m) of coefficients of which nothing is known, m = 2 + waves."""
        deviations = self.prior(waves)[0]
        return np.vstack([np.zeros((2, len(deviations))), np.diag(deviations ** 2)])

    def means(self, leftover: Leftover, state: FloatArray) -> FloatArray:
        """Return the coefficients (N, m) along a recording as known before each sample.

        ``state`` (2 + m, m) is carried on from the recording before. It is forgotten since, and
        wholly where that time is not known.
        """
        columns = leftover.columns
        means = np.empty(columns.shape)
        follow_coefficients(
            columns, np.stack([leftover.left, leftover.steps]),
            self.prior(columns.shape[1] - 2), np.array([self.noise, GATE]), state, means)
        return means

    def torque(self, leftovers: Sequence[Leftover]) -> list[FloatArray]:
        """Return the torques (N,) [N m] of the coefficients along recordings in order."""
        state = self.unknown(leftovers[0].waves.shape[1])
        return [np.einsum('np,np->n', one.columns, self.means(one, state)) for one in leftovers]
