"""Quintic B-splines that start and end at rest.

q(t) = sum_i c_i N_i(t) with basis functions of degree 5 on uniform knots, clamped at both ends;
the first four and the last four c_i are equal, so velocity, acceleration and jerk vanish there.

Source: Zollo, Lopez et al., dynamic parameters of robots with elastic joints, 2014, section 6
(fifth-order B-splines as excitation); the poses are optimised here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import POSITION, SECONDS, NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.trajectories.trajectory import Motion, Parametric, Peaks, clipped, parameter
from robot_dynid.types import FloatArray, frozen

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

DEGREE = 5
#: the cost of a spline grows with the square of the number of knots
KNOTS = NumberRange(2, 200, whole=True, note='one pose is no motion')
#: equal control points at each end, so that three derivatives vanish
EQUAL_END_POINTS = 4
#: Bezier pieces per knot interval for the bounds; the distance of the control polygon from the
#: curve falls with its square
BEZIER_PIECES = 16
#: share of a bound added for rounding
BOUND_ROUNDING = 1e-10


@dataclass(frozen=True)
class BSplineOptions:
    """Settings of a B-spline: ``duration`` s, and the number of inner ``knots`` (free poses)."""

    duration: float = setting(20.0, SECONDS)
    knots: int = setting(15, KNOTS)

    def __post_init__(self) -> None:
        require_allowed(self, "option '{}'")


@dataclass(frozen=True, eq=False)
class BSplineTrajectory(Parametric):
    """A clamped quintic B-spline per joint.

    ``points`` (n, P) rad (m): the control points; the first and the last are repeated four times.
    ``duration`` s.
    """

    joints: tuple[str, ...]
    duration: float = parameter(SECONDS)
    points: FloatArray = parameter(POSITION, 'n', 'P', longest=KNOTS.high)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.shape(self.points)[1] < 2:
            raise UsageError('a B-spline needs at least two control points, got one')

    @cached_property
    def _orders(self) -> list[BSpline]:
        """The curve over unit time and its first three derivatives."""
        count = self.points.shape[1]
        return unit_splines(repeated_ends(count).T @ self.points.T, count)

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        s = clipped(time, self.duration) / self.duration
        return Motion(*(curve(s) / self.duration**k for k, curve in enumerate(self._orders)))

    def peaks(self) -> Peaks:
        """Return bounds of the continuous motion from the control points of its Bezier pieces.

        A curve stays between its smallest and largest control point (Farin, Curves and Surfaces
        for CAGD, section 4.3).
        """
        (lower, upper), *derivatives = (
            _extremes(curve, self.points.shape[1]) for curve in self._orders)
        tolerance = BOUND_ROUNDING * (upper - lower)
        highest = (np.maximum(-low, high) / self.duration**k * (1.0 + BOUND_ROUNDING)
                   for k, (low, high) in enumerate(derivatives, start=1))
        return Peaks(lower - tolerance, upper + tolerance, *highest)

    def element(self) -> dict[str, Any] | None:
        """Return the time between knots [s], and bounds of every joint's motion [rad, m]."""
        peaks, count = self.peaks(), self.points.shape[1]
        return {'type': 'bspline', 'points': count, 'knot_interval': self.duration / (count + 1),
                'joints': {joint: {'lower': float(lower), 'upper': float(upper)}
                           for joint, lower, upper in zip(
                               self.joints, peaks.lower, peaks.upper, strict=True)}}


def repeated_ends(count: int) -> FloatArray:
    """Return the matrix (P, P + 6) that repeats the first and the last of P control points."""
    more = EQUAL_END_POINTS - 1
    owner = np.clip(np.arange(count + 2 * more) - more, 0, count - 1)
    return np.eye(count)[:, owner]


def knot_edges(count: int) -> FloatArray:
    """Return the ends (P + 2,) of the knot intervals for P knots over unit time."""
    return np.linspace(0.0, 1.0, count + 2)


def unit_splines(control: FloatArray, count: int) -> list[BSpline]:
    """Return the splines with ``control`` (P + 6, k) and their first three derivatives."""
    from scipy.interpolate import BSpline

    edges = knot_edges(count)
    knots = np.concatenate([np.zeros(DEGREE), edges, np.ones(DEGREE)])
    curve = BSpline(knots, control, DEGREE)
    return [curve, *(curve.derivative(k) for k in (1, 2, 3))]


def _extremes(curve: BSpline, count: int) -> tuple[FloatArray, FloatArray]:
    """Return smallest and largest control point (k,) of the Bezier pieces of a spline."""
    degree = int(curve.k)
    edges = np.linspace(0.0, 1.0, BEZIER_PIECES * (count + 1) + 1)
    places = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(degree + 1) / degree)
    values = curve(np.minimum(places, 1.0))
    control = np.einsum('ij,pjk->pik', _bezier_from_values(degree), values)
    return control.min(axis=(0, 1)), control.max(axis=(0, 1))


@cache
def _bezier_from_values(degree: int) -> FloatArray:
    """Return the matrix from values at equidistant points of [0, 1] to Bezier control points."""
    s = np.arange(degree + 1) / degree
    bernstein = np.array([[comb(degree, i) * u**i * (1.0 - u) ** (degree - i)
                           for i in range(degree + 1)] for u in s])
    return frozen(np.linalg.inv(bernstein))
