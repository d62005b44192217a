"""The free coefficients of Fourier series that start and end at rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from robot_dynid.trajectories.fourier import FourierOptions, FourierTrajectory, random_fourier
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray, frozen

#: instants per period and harmonic of the grid, see PEAK_FACTOR in fourier.py
INSTANTS = 64


@dataclass(frozen=True)
class FourierBasis:
    """Offset, N - 1 combinations of sines and N - 1 of cosines: 2 N - 1 coefficients per joint.

    The sines fulfil sum_k k s_k = 0 (velocity), the cosines sum_k k^2 c_k = 0 (acceleration at
    the ends); both are combinations of an orthonormal basis of these null spaces.
    """

    joints: tuple[str, ...]
    options: FourierOptions

    @property
    def duration(self) -> float:
        """Length of all periods, s."""
        return self.options.duration

    @property
    def span(self) -> float:
        """One period, s."""
        return self.options.duration / self.options.periods

    @property
    def repetitions(self) -> int:
        """Periods."""
        return self.options.periods

    @property
    def size(self) -> int:
        """2 N - 1."""
        return 2 * self.options.harmonics - 1

    @property
    def margin(self) -> float:
        """cos(pi N / M) on M instants (Ehlich and Zeller 1964)."""
        return float(np.cos(np.pi / INSTANTS))

    @cached_property
    def _free(self) -> tuple[FloatArray, FloatArray]:
        """Columns (N, N - 1) that span the free sines, and the free cosines."""
        k = self._harmonics[None, :]
        return null_space(k), null_space(k**2)

    @property
    def _harmonics(self) -> FloatArray:
        return np.arange(1.0, self.options.harmonics + 1.0)

    def matrices(self, time: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the basis functions and three derivatives at ``time`` (T,) s, each (T, P)."""
        turns = np.outer(np.asarray(time) / self.span, self._harmonics)
        phase = 2.0 * np.pi * (turns - np.floor(turns))
        rate = 2.0 * np.pi / self.span * self._harmonics
        sin, cos = np.sin(phase), np.cos(phase)
        sines, cosines = self._free
        rows: list[FloatArray] = []
        for order in range(4):
            constant = np.full((len(sin), 1), float(order == 0))
            rows.append(np.asarray(np.hstack([constant, sin @ sines, cos @ cosines])))
            sin, cos = rate * cos, -rate * sin
        return rows[0], rows[1], rows[2], rows[3]

    def grid(self) -> FloatArray:
        """Return equidistant instants (T,) s of one period."""
        count = INSTANTS * self.options.harmonics
        return np.linspace(0.0, self.span, count, endpoint=False)

    def trajectory(self, coefficients: FloatArray) -> FourierTrajectory:
        """Return the series of the coefficients (n, P)."""
        sines, cosines = self._free
        half = self.options.harmonics
        return FourierTrajectory(
            self.joints, 1.0 / self.span, frozen(coefficients[:, 0]),
            frozen(coefficients[:, 1:half] @ sines.T), frozen(coefficients[:, half:] @ cosines.T),
            self.options.periods)

    def random(self, limits: MotionLimits, generator: np.random.Generator) -> FloatArray:
        """Return the coefficients (n, P) of `random_fourier`."""
        sines, cosines = self._free
        series = random_fourier(limits, self.options, generator)
        parts = (series.offset[:, None], series.sine @ sines, series.cosine @ cosines)
        return np.asarray(np.hstack(parts), dtype=np.float64)
