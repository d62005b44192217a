"""Friction over speed: points from sweeps, a law through them, a band about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.estimation.friction_sweeps.sweeps import SpeedPoint
from robot_dynid.estimation.quantiles import student_quantile
from robot_dynid.friction import LAWS, AxisMotion, FrictionLaw, law_from
from robot_dynid.numbers import BOUNDS, SPEED
from robot_dynid.types import FloatArray

#: speeds below which no law is fitted
FEWEST_SPEEDS = 3
#: share of the friction that counts as an error in predictions, beside a point's deviation
TOLERANCE = 0.01
#: values tried for each that the law itself would try
FINER = 2
#: singular values below this share of the largest count as zero
RANK_TOLERANCE = 1e-8
#: squares of less than a millionth of a deviation are rounding
ROUNDING = 1e-12
#: speeds at which a curve is drawn
DRAWN = 60
#: speeds [rad/s, m/s] between which all of a law shows but the ramp of dry friction
SLOWEST, FASTEST = 0.02, 10.0

Tabulated = tuple[FrictionLaw, FloatArray]


@dataclass(frozen=True, eq=False)
class LawFit:
    """``law`` with ``values`` (k,) and the ``covariance`` (k + s, k + s) of values and log shapes.

    ``shapes`` (s) are those that were searched and matter, ``degrees`` those of the t intervals.
    Only what turns with the motion shows in sweeps: parameters for forward and backward are the
    same, there is no offset, and equal columns share their sum equally.
    """

    law: FrictionLaw
    values: FloatArray
    covariance: FloatArray
    shapes: tuple[str, ...]
    degrees: int

    def torque(self, speed: FloatArray) -> FloatArray:
        """Return the friction (m,) [N m, N] at ``speed`` (m,) above zero."""
        return np.asarray(odd_columns(self.law, speed) @ self.values)

    def half_width(self, speed: FloatArray) -> FloatArray:
        """Return half the width (m,) of the 95 % band at ``speed`` (m,)."""
        jacobian = _jacobian(self.law, self.values, self.shapes, speed)
        variance = np.einsum('ij,jk,ik->i', jacobian, self.covariance, jacobian)
        quantile = student_quantile(0.975, self.degrees)
        return np.asarray(quantile * np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True)
class BoundedPoint(SpeedPoint):
    """Friction at one speed with its 95 % bounds [N m, N]."""

    lower: float
    upper: float


@dataclass(frozen=True)
class CurveParameter:
    """A parameter of the law through the points, with its deviation."""

    name: str
    value: float
    std: float


@dataclass(frozen=True)
class LawBand:
    """The law through the points, with its 95 % band: torque [N m, N] over speed [rad/s, m/s]."""

    speed: tuple[float, ...] = field(metadata={BOUNDS: SPEED})
    friction: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class CurveSummary:
    """Summary of a FrictionCurve for files and reports; no ``curve`` without a ``law`` ('').

    ``settings`` are those of the law, of which ``shapes`` matter at these speeds.
    """

    joint: str
    points: tuple[BoundedPoint, ...]
    law: str = ''
    errors_at_speeds_left_out: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    shapes: tuple[str, ...] = ()
    parameters: tuple[CurveParameter, ...] = ()
    curve: LawBand | None = None


@dataclass(frozen=True, eq=False)
class FrictionCurve:
    """The friction of one joint over speed: measured ``points``, and a law where it has one.

    ``errors`` are the root mean squares of what each law misses at speeds left out, in deviations
    of the points with TOLERANCE added: a law that is true misses by about one where it need not
    reach beyond the speeds it knows.
    """

    joint: str
    points: tuple[SpeedPoint, ...]
    name: str = ''
    fit: LawFit | None = None
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def summary(self) -> CurveSummary:
        """The curve for files and reports."""
        points = tuple(BoundedPoint(**vars(p), lower=p.friction - p.half_width,
                                    upper=p.friction + p.half_width) for p in self.points)
        found = CurveSummary(self.joint, points, self.name, dict(self.errors))
        if self.fit is None:
            return found
        speeds = np.geomspace(self.points[0].speed, self.points[-1].speed, DRAWN)
        torque, half = self.fit.torque(speeds), self.fit.half_width(speeds)
        std = np.sqrt(np.maximum(np.diag(self.fit.covariance)[:len(self.fit.values)], 0.0))
        parameters = tuple(
            CurveParameter(name, float(value), float(deviation)) for name, value, deviation in
            zip(self.fit.law.parameters, self.fit.values, std, strict=True) if name != 'f0')
        band = LawBand(*(tuple(row.tolist()) for row in (
            speeds, torque, torque - half, torque + half)))
        return replace(found, settings=dict(self.fit.law.settings()), shapes=self.fit.shapes,
                       parameters=parameters, curve=band)


def friction_curve(
    joint: str, points: Sequence[SpeedPoint], law: str | None = None
) -> tuple[FrictionCurve, tuple[str, ...]]:
    """Fit a law to the points of a joint; return the curve and what is to be said about it.

    ``law`` names one of LAWS; None chooses the simplest whose error at speeds left out in turn is
    within one standard error of the least. Raises UsageError for an unknown law.
    """
    known = tuple(points)
    if len(known) < FEWEST_SPEEDS:
        return FrictionCurve(joint, known), (
            f'{joint} sweeps at {len(known)} speed(s): too few for a law of friction; sweep at '
            f'{FEWEST_SPEEDS if law is None else speeds_needed(law_from(law))} or more',)
    candidates = distinguishable_laws(known) if law is None else {law: law_from(law)}
    free = {name: _freedom(one, known) for name, one in candidates.items()}
    fitting = [name for name in candidates if free[name] < len(known)]
    if not fitting:
        name, one = next(iter(candidates.items()))
        needed = max(speeds_needed(one), free[name] + 1)
        return FrictionCurve(joint, known), (
            f'{joint} sweeps at {len(known)} speeds: too few for the law {name}; sweep at '
            f'{needed} or more',)
    squares = {name: left_out(candidates[name], known) for name in fitting}
    errors = {name: float(np.mean(s)) for name, s in squares.items()}
    best = min(fitting, key=lambda name: errors[name])
    margin = float(squares[best].std(ddof=1)) / np.sqrt(len(known))
    name = min((n for n in fitting if errors[n] <= errors[best] + margin + ROUNDING),
               key=lambda n: (free[n], errors[n]))
    fit, missed = fitted(candidates[name], known), {n: e**0.5 for n, e in errors.items()}
    return FrictionCurve(joint, known, name, fit, missed), ()


def speeds_needed(law: FrictionLaw) -> int:
    """Return at how many speeds a joint has to sweep for a fit of all parts of ``law``."""
    speeds: FloatArray = np.geomspace(SLOWEST, FASTEST, DRAWN)
    rank = int(np.linalg.matrix_rank(odd_columns(law, speeds)))
    return max(FEWEST_SPEEDS, rank + len(_effective(law, speeds)) + 1)


def distinguishable_laws(points: Sequence[SpeedPoint]) -> dict[str, FrictionLaw]:
    """Return the laws that hold and differ when a joint slides steadily at ``points``."""
    found: dict[str, FrictionLaw] = {}
    for name in LAWS:
        law = law_from(name)
        if law.holding and not any(_repeats(law, other, points) for other in found.values()):
            found[name] = law
    return found


def _repeats(law: FrictionLaw, other: FrictionLaw, points: Sequence[SpeedPoint]) -> bool:
    """Return whether ``law`` has the columns and the effective shapes of ``other``."""
    speeds = _arrays(points)[0]
    both = odd_columns(law, speeds), odd_columns(other, speeds)
    ranks = {int(np.linalg.matrix_rank(c)) for c in (*both, np.hstack(both))}
    return len(ranks) == 1 and set(_effective(law, speeds)) <= {s.name for s in other.shapes}


def odd_columns(law: FrictionLaw, speed: FloatArray) -> FloatArray:
    """Return (m, k): half the difference of the columns at ``speed`` (m,) and at its opposite.

    The joint slides steadily: presliding is over.
    """
    still = np.zeros_like(speed)
    there, back = (law.columns(AxisMotion(still, still, v, tuple(range(len(speed)))))
                   for v in (speed, -speed))
    return np.asarray(0.5 * (there - back).T)


def left_out(law: FrictionLaw, points: Sequence[SpeedPoint]) -> FloatArray:
    """Return the squared error at every speed (m,) of the law fitted to the others.

    In squares of each point's deviation with TOLERANCE added.
    """
    speeds, target = _arrays(points)
    spread, table = _spread(points), _tabulated(law, speeds)
    known = np.hypot(spread, TOLERANCE * target)
    squares = []
    for k in range(len(points)):
        others = np.arange(len(points)) != k
        best, values = _best(table, target, spread, others)
        squares.append(float(((best[1][k] @ values - target[k]) / known[k])**2))
    return np.array(squares)


def fitted(law: FrictionLaw, points: Sequence[SpeedPoint]) -> LawFit:
    """Fit parameters and shapes of a law by weighted least squares.

    The covariance is that of the points' own deviations, widened where the law misses them by
    more.
    """
    from scipy.optimize import least_squares

    law = _searched(law, points)
    speeds, target = _arrays(points)
    moved = _effective(law, speeds)
    spread = _spread(points)
    if moved:
        ranges = {s.name: s for s in law.shapes}
        low, high = (np.log([getattr(ranges[n], side) for n in moved]) for side in ('low', 'high'))
        start = np.log([getattr(law, n) for n in moved])

        def missed(logs: FloatArray) -> FloatArray:
            shaped = _shaped(law, dict(zip(moved, np.exp(logs).tolist())))
            if shaped is None:
                return 1e3 * np.abs(target) / spread
            return _solved(odd_columns(shaped, speeds), target, spread)[1]

        found = least_squares(missed, np.clip(start, low + 1e-9, high - 1e-9), bounds=(low, high))
        law = _shaped(law, dict(zip(moved, np.exp(found.x).tolist()))) or law
    values, residual = _solved(odd_columns(law, speeds), target, spread)
    jacobian = _jacobian(law, values, moved, speeds) / spread[:, None]
    free = max(len(points) - int(np.linalg.matrix_rank(jacobian)), 1)
    inverse = np.linalg.pinv(jacobian.T @ jacobian, rcond=RANK_TOLERANCE, hermitian=True)
    widened = max(1.0, float(residual @ residual) / free)
    return LawFit(law, values, np.asarray(inverse, dtype=np.float64) * widened, moved,
                  min(p.degrees for p in points))


def _searched(law: FrictionLaw, points: Sequence[SpeedPoint]) -> FrictionLaw:
    """Return the law with the best shapes of a grid."""
    speeds, target = _arrays(points)
    everything = np.ones(len(points), dtype=bool)
    return _best(_tabulated(law, speeds), target, _spread(points), everything)[0][0]


def _best(
    table: Sequence[Tabulated], target: FloatArray, spread: FloatArray, rows: NDArray[np.bool_]
) -> tuple[Tabulated, FloatArray]:
    """Return the entry of ``table`` that misses ``rows`` by least, and its values there."""
    found, least = None, np.inf
    for entry in table:
        values, residual = _solved(entry[1][rows], target[rows], spread[rows])
        missed = float(residual @ residual)
        if found is None or missed < (1.0 - 1e-6) * least:
            found, least = (entry, values), missed
    assert found is not None
    return found


def _tabulated(law: FrictionLaw, speeds: FloatArray) -> list[Tabulated]:
    """Return the law itself, then with every combination of shapes, each with its columns."""
    grids = [np.geomspace(s.low, s.high, FINER * s.count) for s in law.shapes]
    names = [s.name for s in law.shapes]
    tried = [law, *(_shaped(law, dict(zip(names, map(float, c)))) for c in product(*grids))]
    return [(one, odd_columns(one, speeds)) for one in tried if one is not None]


def _shaped(law: FrictionLaw, shapes: Mapping[str, float]) -> FrictionLaw | None:
    try:
        changed: FrictionLaw = replace(law, **shapes)
    except UsageError:  # shapes that contradict each other
        return None
    return changed


def _solved(
    columns: FloatArray, target: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the values (k,) of least norm, in scaled columns, and the weighted residual (m,)."""
    weighted = columns / spread[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0.0] = 1.0
    scaled = np.linalg.lstsq(weighted / scale, target / spread, rcond=RANK_TOLERANCE)[0]
    return scaled / scale, target / spread - (weighted / scale) @ scaled


def _jacobian(
    law: FrictionLaw, values: FloatArray, shapes: Sequence[str], speeds: FloatArray
) -> FloatArray:
    """Return the derivatives (m, k + s) of the torque with values and logarithms of shapes."""
    columns = [odd_columns(law, speeds)]
    for name in shapes:
        sides = []
        for factor in (1.001, 1.0 / 1.001):
            moved = _shaped(law, {name: factor * getattr(law, name)}) or law
            sides.append(odd_columns(moved, speeds) @ values)
        columns.append(((sides[0] - sides[1]) / (2.0 * np.log(1.001)))[:, None])
    return np.hstack(columns)


def _effective(law: FrictionLaw, speeds: FloatArray) -> tuple[str, ...]:
    """Return the shapes that matter at ``speeds`` (m,)."""
    found = []
    for shape in law.shapes:
        ends = [_shaped(law, {shape.name: f * getattr(law, shape.name)}) for f in (0.9, 1.1)]
        columns = [odd_columns(e or law, speeds) for e in ends]
        if not np.allclose(columns[0], columns[1], rtol=1e-3, atol=1e-6):
            found.append(shape.name)
    return tuple(found)


def _freedom(law: FrictionLaw, points: Sequence[SpeedPoint]) -> int:
    """Return the number of parameters and shapes that a fit of the law to ``points`` chooses."""
    shaped, speeds = _searched(law, points), _arrays(points)[0]
    columns = odd_columns(shaped, speeds)
    return int(np.linalg.matrix_rank(columns)) + len(_effective(shaped, speeds))


def _arrays(points: Sequence[SpeedPoint]) -> tuple[FloatArray, FloatArray]:
    return np.array([p.speed for p in points]), np.array([p.friction for p in points])


def _spread(points: Sequence[SpeedPoint]) -> FloatArray:
    """Return the deviations (m,), none so small that it would stand above the rest alone."""
    least = max(1e-9, 1e-3 * float(np.median([abs(p.friction) for p in points])))
    return np.array([max(p.std, least) for p in points])
