"""Bases of motions that are linear in free coefficients, the unknowns of the optimiser."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from robot_dynid.trajectories.bspline import (
    DEGREE,
    BSplineOptions,
    BSplineTrajectory,
    knot_edges,
    repeated_ends,
    unit_splines,
)
from robot_dynid.trajectories.fourier import FourierOptions, FourierTrajectory, random_fourier
from robot_dynid.trajectories.limits import MotionLimits, largest_gain
from robot_dynid.trajectories.trajectory import Motion, Trajectory, clipped
from robot_dynid.types import FloatArray, frozen

#: instants of the grid per period and harmonic, and per knot interval: at 64 the motion exceeds
#: its values on the grid by 0.12 % (Fourier) or 0.75 % (B-spline) in between, see `Basis.margin`
INSTANTS = 64
#: a basis and its first three derivatives at T instants, each (T, P)
Matrices = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


class Basis(ABC):
    """Motions q_j(t) = sum_p C[j, p] phi_p(t) that start and end at rest for any C (n, P).

    The end conditions are eliminated (a basis of their null space), and one of the coefficients
    shifts the position, so every C is a trajectory, and limits on position and its derivatives are
    linear in C.

    ``duration`` s of the execution: ``repetitions`` of the ``span`` s; ``size`` P, the number of
    coefficients of a joint; ``margin`` in (0, 1], the share of the limits that may be used on the
    `grid` to keep them between its instants.
    """

    joints: tuple[str, ...]
    duration: float
    span: float
    repetitions: int = 1
    size: int
    margin: float

    @abstractmethod
    def matrices(self, time: ArrayLike) -> Matrices:
        """Return phi and its first three derivatives at ``time`` (T,) s, each (T, P)."""

    @abstractmethod
    def grid(self) -> FloatArray:
        """Return the instants (T,) s of the span on which the optimiser imposes limits."""

    @abstractmethod
    def trajectory(self, coefficients: FloatArray) -> Trajectory:
        """Return the trajectory of C (n, P); its peaks bound the continuous motion."""

    @abstractmethod
    def random(self, limits: MotionLimits, generator: np.random.Generator) -> FloatArray:
        """Return a random C (n, P) that keeps the position, velocity and acceleration limits."""


def motion_of(matrices: Matrices, coefficients: FloatArray) -> Motion:
    """Return the motion of C (n, P) at the instants of the ``matrices`` of a basis."""
    position, velocity, acceleration, jerk = (m @ coefficients.T for m in matrices)
    return Motion(position, velocity, acceleration, jerk)


class FourierBasis(Basis):
    """Offset, N - 1 combinations of sines and N - 1 of cosines: 2 N - 1 coefficients per joint.

    The sines satisfy sum_k k s_k = 0 (velocity), the cosines sum_k k^2 c_k = 0 (acceleration at
    the ends); both are combinations of an orthonormal basis of these null spaces. The margin is
    cos(pi N / M) on M instants (Ehlich and Zeller, Math. Z. 86, 1964).
    """

    def __init__(self, joints: tuple[str, ...], options: FourierOptions) -> None:
        self.joints, self.duration = joints, options.duration
        self.span, self.repetitions = options.duration / options.periods, options.periods
        self.size, self.margin = 2 * options.harmonics - 1, float(np.cos(np.pi / INSTANTS))
        self._options, self._harmonics = options, np.arange(1.0, options.harmonics + 1.0)
        k = self._harmonics[None, :]
        self._sines, self._cosines = null_space(k), null_space(k**2)  # (N, N - 1) each

    def matrices(self, time: ArrayLike) -> Matrices:
        """Return the basis functions and three derivatives at ``time`` (T,) s, each (T, P)."""
        turns = np.outer(np.asarray(time) / self.span, self._harmonics)
        phase = 2.0 * np.pi * (turns - np.floor(turns))
        rate = 2.0 * np.pi / self.span * self._harmonics
        sin, cos = np.sin(phase), np.cos(phase)
        rows: list[FloatArray] = []
        for order in range(4):
            constant = np.full((len(sin), 1), float(order == 0))
            rows.append(np.asarray(np.hstack([constant, sin @ self._sines, cos @ self._cosines])))
            sin, cos = rate * cos, -rate * sin
        return rows[0], rows[1], rows[2], rows[3]

    def grid(self) -> FloatArray:
        """Return equidistant instants (T,) s of one period."""
        return np.linspace(0.0, self.span, INSTANTS * len(self._harmonics), endpoint=False)

    def trajectory(self, coefficients: FloatArray) -> FourierTrajectory:
        """Return the series of the coefficients (n, P)."""
        half = len(self._harmonics)
        return FourierTrajectory(
            self.joints, 1.0 / self.span, frozen(coefficients[:, 0]),
            frozen(coefficients[:, 1:half] @ self._sines.T),
            frozen(coefficients[:, half:] @ self._cosines.T), self.repetitions)

    def random(self, limits: MotionLimits, generator: np.random.Generator) -> FloatArray:
        """Return the coefficients (n, P) of `random_fourier`."""
        series = random_fourier(limits, self._options, generator)
        parts = (series.offset[:, None], series.sine @ self._sines, series.cosine @ self._cosines)
        return np.asarray(np.hstack(parts), dtype=np.float64)


class BSplineBasis(Basis):
    """The control points of a quintic B-spline, one for every inner knot.

    The margin is cos(pi d / 2 M): a polynomial of degree d on M + 1 extremes of the Chebyshev
    polynomial of degree M (Ehlich and Zeller, Math. Z. 86, 1964).
    """

    def __init__(self, joints: tuple[str, ...], options: BSplineOptions) -> None:
        self.joints, self.duration, self.span = joints, options.duration, options.duration
        self.size, self.margin = options.knots, float(np.cos(0.5 * np.pi * DEGREE / INSTANTS))

    def matrices(self, time: ArrayLike) -> Matrices:
        """Return the basis functions and three derivatives at ``time`` (T,) s, each (T, P)."""
        s = clipped(time, self.duration) / self.duration
        curves = unit_splines(repeated_ends(self.size).T, self.size)
        rows = [curve(s) / self.duration**k for k, curve in enumerate(curves)]
        return rows[0], rows[1], rows[2], rows[3]

    def grid(self) -> FloatArray:
        """Return instants (T,) s: extremes of a Chebyshev polynomial in every knot interval."""
        edges = self.duration * knot_edges(self.size)
        inside = 0.5 - 0.5 * np.cos(np.pi * np.arange(INSTANTS) / INSTANTS)
        grid = edges[:-1, None] + np.diff(edges)[:, None] * inside
        return np.append(grid.ravel(), self.duration)

    def trajectory(self, coefficients: FloatArray) -> BSplineTrajectory:
        """Return the spline with the control points ``coefficients`` (n, P)."""
        return BSplineTrajectory(self.joints, self.duration, frozen(coefficients))

    def random(self, limits: MotionLimits, generator: np.random.Generator) -> FloatArray:
        """Return random control points (n, P), every joint scaled to its first limit."""
        limits.require('lower', 'upper', 'velocity', 'acceleration')
        points = generator.standard_normal((len(self.joints), self.size))
        peaks = self.trajectory(points).peaks()
        gain = largest_gain(peaks, limits)
        offset = limits.centre - gain * 0.5 * (peaks.lower + peaks.upper)
        return np.asarray(offset[:, None] + gain[:, None] * points)
