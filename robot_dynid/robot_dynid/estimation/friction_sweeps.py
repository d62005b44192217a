"""Friction from sweeps of single joints: stretches, and the curve of friction over speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.estimation.estimate import fisher_tail, student_quantile
from robot_dynid.friction import LAWS, AxisMotion, FrictionLaw, law_from
from robot_dynid.numbers import BOUNDS, SPEED
from robot_dynid.signals.single_joint_motion import STEADY_SECONDS, SingleJointMotion
from robot_dynid.types import FloatArray

#: share by which two equal speeds may differ
SPEED_TOLERANCE = 0.05
#: rad (m) by which resting joints may differ between forward and backward: their holding deflects
POSE_TOLERANCE = 0.1
#: share of the shorter of two stretches that the other one must cover
STRETCH_OVERLAP = 0.5
#: longest pause [s] before a joint turns back at the end of a sweep
TURNING_PAUSE = 2.0
#: number of time batches of a pair; residuals may be coloured within them
BATCHES = 5
#: p-value below which pairs at one speed differ by more than their noise
UNLIKE = 1e-3
#: Huber's constant: 95 % efficient for normal residuals
HUBER, HUBER_PASSES = 1.345, 50


@dataclass(frozen=True)
class SpeedPoint:
    """Friction at one `speed` [rad/s, m/s]: `friction` and its `std` [N m, N].

    `degrees` of freedom of the deviation; number of `pairs` of stretches; `even` is the mean of
    (forward + backward) / 2: gravity, offset, and friction independent of direction.
    """

    speed: float = field(metadata={BOUNDS: SPEED})
    friction: float
    std: float
    degrees: int
    pairs: int
    even: float

    @property
    def half_width(self) -> float:
        """Half-width of the 95 % interval."""
        return student_quantile(0.975, self.degrees) * self.std


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Friction at the speeds of one joint's sweeps; `notes` state what was omitted, and why."""

    points: tuple[SpeedPoint, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, eq=False)
class Pair:
    """Half differences and half sums (m,) of torque at equal positions; `speed` their mean."""

    speed: float
    difference: FloatArray
    half_sum: FloatArray


def friction_by_joint(
    joints: Sequence[str], motions: Sequence[SingleJointMotion]
) -> dict[str, Sweeps]:
    """Return the friction from the sweeps of every joint; empty if no joint has constant speed."""
    if not any(motion.steady for motion in motions):
        return {}
    by_joint = {name: [s for s in motions if s.joint == i] for i, name in enumerate(joints)}
    return {name: friction_of_joint(name, some) for name, some in by_joint.items() if some}


def friction_of_joint(name: str, motions: Sequence[SingleJointMotion]) -> Sweeps:
    """Return friction by speed from the stretches in which only joint `name` moves."""
    jerky = _distinct([abs(s.speed) for s in motions if s.jerky])
    pairs, alone = pair_stretches([s for s in motions if s.steady])
    points, notes = [], [
        f'{name} at {speed:.3g} moves in jerks (stick-slip); this speed is omitted'
        for speed in jerky]
    for group in _grouped([p for p in pairs if not _among(p.speed, jerky)]):
        point, unlike = _point(group)
        points.append(point)
        if unlike:
            notes.append(f'{name} at {point.speed:.3g} has different friction in different poses, '
                         'perhaps because of the load; the interval is that of the mean')
    seen = [*jerky, *(p.speed for p in points)]
    for speed in _distinct([s.speed for s in alone]):
        if not _among(abs(speed), seen):
            notes.append(f'{name} at {abs(speed):.3g} has constant speed '
                         f'{"forward" if speed > 0.0 else "backward"} only; friction needs the '
                         'way back over the same positions at the same speed')
    short = [s for s in motions if not s.steady and not s.jerky and s.seconds >= STEADY_SECONDS]
    both = _distinct([abs(s.speed) for s in short if not _among(abs(s.speed), seen)
                      and any(_returns(s, other) for other in short)])
    if both:
        notes.append(f'{name} moves forward and backward at {", ".join(f"{s:.3g}" for s in both)} '
                     'without constant speed; at least 0.4 s of constant speed are needed')
    return Sweeps(tuple(points), tuple(notes))


def pair_stretches(motions: Sequence[SingleJointMotion]) -> tuple[list[Pair],
                                                                  list[SingleJointMotion]]:
    """Pair every forward stretch with the next backward one over the same positions.

    Returns the pairs and the unpaired stretches.
    """
    back = [s for s in motions if s.speed < 0.0]
    pairs, alone = [], []
    for there in (s for s in motions if s.speed > 0.0):
        fitting = [b for b in back if _opposite(there, b)]
        if fitting:
            nearest = min(fitting, key=lambda b: abs(b.start - there.start))
            pairs.append(_pair(there, nearest))
            back.remove(nearest)
        else:
            alone.append(there)
    return pairs, [*alone, *back]


def _opposite(there: SingleJointMotion, back: SingleJointMotion) -> bool:
    others = np.delete(np.abs(there.pose - back.pose), there.joint)
    low = max(there.position.min(), back.position.min())
    high = min(there.position.max(), back.position.max())
    shorter = min(np.ptp(there.position), np.ptp(back.position))
    return bool(_equal(there.speed, -back.speed) and np.all(others <= POSE_TOLERANCE)
                and high - low >= STRETCH_OVERLAP * shorter)


def _returns(there: SingleJointMotion, back: SingleJointMotion) -> bool:
    """Return True if `back` directly follows `there` and returns to its start."""
    near = abs(there.path[1] - there.path[0])
    return (0.0 < back.start - there.start <= there.seconds + TURNING_PAUSE
            and _equal(there.speed, -back.speed) and abs(back.path[1] - there.path[0]) <= near)


def _pair(there: SingleJointMotion, back: SingleJointMotion) -> Pair:
    order = np.argsort(back.position)
    common = ((there.position >= back.position[order[0]])
              & (there.position <= back.position[order[-1]]))
    against = np.interp(there.position[common], back.position[order], back.torque[order])
    forward = there.torque[common]
    return Pair(0.5 * (there.speed - back.speed), 0.5 * (forward - against), 0.5
                * (forward + against))


def _point(pairs: Sequence[Pair]) -> tuple[SpeedPoint, bool]:
    """Return the friction of pairs at one speed, and True if they differ beyond their noise."""
    values = np.concatenate([p.difference for p in pairs])
    batch = np.concatenate([k * BATCHES + np.arange(m) * BATCHES // m
                            for k, m in enumerate(len(p.difference) for p in pairs)])
    friction, influence = huber_location(values)
    batches = np.array([influence[batch == b].mean() for b in np.unique(batch)])
    groups = batches.reshape(len(pairs), -1)
    unlike = _differ(groups)
    if unlike:
        batches = groups.mean(axis=1)
    std = float(batches.std(ddof=1) / np.sqrt(len(batches)))
    even = float(np.mean([np.median(p.half_sum) for p in pairs]))
    speed = float(np.mean([p.speed for p in pairs]))
    return SpeedPoint(speed, friction, std, len(batches) - 1, len(pairs), even), unlike


def _differ(groups: FloatArray) -> bool:
    """Return True if the means of rows (p, b) differ, by an analysis of variance."""
    pairs, size = groups.shape
    within = float(groups.var(axis=1, ddof=1).mean())
    if pairs < 2 or within == 0.0:
        return False
    ratio = size * float(groups.mean(axis=1).var(ddof=1)) / within
    return fisher_tail(ratio, (pairs - 1, pairs * (size - 1))) < UNLIKE


def huber_location(values: FloatArray) -> tuple[float, FloatArray]:
    """Return Huber's location of `values` (m,) and the influence (m,) of each.

    Outliers have bounded influence. The mean influence of a stretch of time is its effect on the
    location, so the scatter of such means gives its deviation. Source: Huber 1981.
    """
    centre = float(np.median(values))
    scale = float(np.median(np.abs(values - centre))) / 0.6745
    if scale == 0.0:
        return centre, values - centre
    for _ in range(HUBER_PASSES):
        weights = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(values - centre), 1e-300))
        previous, centre = centre, float(np.average(values, weights=weights))
        if abs(centre - previous) < 1e-10 * scale:
            break
    residual = (values - centre) / scale
    inside = float(np.mean(np.abs(residual) <= HUBER))
    return centre, scale * np.clip(residual, -HUBER, HUBER) / inside


def _grouped(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Return the pairs grouped by speed, slowest first."""
    groups: list[list[Pair]] = []
    for pair in sorted(pairs, key=lambda p: p.speed):
        if groups and _equal(pair.speed, groups[-1][0].speed):
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= SPEED_TOLERANCE * max(abs(a), abs(b))


def _among(speed: float, others: Sequence[float]) -> bool:
    return any(_equal(speed, other) for other in others)


def _distinct(speeds: Sequence[float]) -> list[float]:
    """Return one signed speed of every group of equal ones, slowest first."""
    distinct: list[float] = []
    for speed in sorted(speeds, key=abs):
        if not _among(abs(speed), [abs(other) for other in distinct]):
            distinct.append(speed)
    return distinct


#: number of speeds below which no law is fitted
FEWEST_SPEEDS = 3
#: share of the friction that counts as prediction error, besides the deviation of a point
FRICTION_ERROR_SHARE = 0.01
#: shape values per value of the law's own grid
FINER_GRID = 2
#: singular values below this share of the largest count as zero
SWEEP_RANK_TOLERANCE = 1e-8
#: squares of less than a millionth of a deviation are rounding
SQUARE_ROUNDING = 1e-12
#: number of speeds of a drawn curve
CURVE_SPEEDS = 60
#: speeds [rad/s, m/s] between which a law shows everything but the ramp of dry friction
SLOWEST_SPEED, FASTEST_SPEED = 0.02, 10.0

Tabulated = tuple[FrictionLaw, FloatArray]
EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Friction (m,) [N m, N] over ``speed`` (m,), with its deviations ``std`` (m,)."""

    speed: FloatArray
    friction: FloatArray
    std: FloatArray

    @classmethod
    def of(cls, points: Sequence[SpeedPoint]) -> _Measured:
        """Return the points, with deviations bounded from below so that none dominates."""
        speed, friction, std = np.array([(p.speed, p.friction, p.std) for p in points]).T
        least = max(1e-9, 1e-3 * float(np.median(np.abs(friction))))
        return cls(speed, friction, np.maximum(std, least))

    def solve(
        self, columns: FloatArray, rows: NDArray[np.bool_] | slice = EVERY
    ) -> tuple[FloatArray, FloatArray]:
        """Return the minimum-norm values (k,) in scaled columns, and the residual in stds."""
        weighted = columns[rows] / self.std[rows, None]
        scale = np.linalg.norm(weighted, axis=0)
        scale[scale == 0.0] = 1.0
        target = self.friction[rows] / self.std[rows]
        scaled = np.linalg.lstsq(weighted / scale, target, rcond=SWEEP_RANK_TOLERANCE)[0]
        return scaled / scale, target - (weighted / scale) @ scaled

    def shapes(self, law: FrictionLaw) -> list[Tabulated]:
        """Return the law and its variants of all shape combinations, each with its columns."""
        grids = [np.geomspace(s.low, s.high, FINER_GRID * s.count).tolist() for s in law.shapes]
        names = [s.name for s in law.shapes]
        tried = [law, *(_shaped(law, dict(zip(names, values, strict=True)))
                        for values in product(*grids))]
        return [(one, odd_columns(one, self.speed)) for one in tried if one is not None]

    def best(
        self, shapes: Sequence[Tabulated], rows: NDArray[np.bool_] | slice = EVERY
    ) -> Tabulated:
        """Return the first of `shapes` with the least residual in `rows`."""
        best, least = shapes[0], np.inf
        for one in shapes:
            missed = float(np.sum(self.solve(one[1], rows)[1]**2))
            if missed < (1.0 - 1e-6) * least:
                best, least = one, missed
        return best

    def freedom(self, law: FrictionLaw) -> int:
        """Return the number of parameters and shapes that a fit of the law chooses."""
        shaped, columns = self.best(self.shapes(law))
        return int(np.linalg.matrix_rank(columns)) + len(_effective(shaped, self.speed))


@dataclass(frozen=True, eq=False)
class LawFit:
    """`law` with `values` (k,) and `covariance` (k + s, k + s) of values and log shapes.

    `shapes` (s) are the searched shapes that matter, `degrees` those of the t intervals. Sweeps
    show only friction that changes sign with the motion: forward and backward parameters are
    equal, there is no offset, and equal columns share their sum equally.
    """

    law: FrictionLaw
    values: FloatArray
    covariance: FloatArray
    shapes: tuple[str, ...]
    degrees: int

    def torque(self, speed: FloatArray) -> FloatArray:
        """Return the friction (m,) [N m, N] at positive `speed` (m,)."""
        return np.asarray(odd_columns(self.law, speed) @ self.values)

    def half_width(self, speed: FloatArray) -> FloatArray:
        """Return the half-width (m,) of the 95 % band at `speed` (m,)."""
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
    """A parameter of the fitted law, with its deviation."""

    name: str
    value: float
    std: float


@dataclass(frozen=True)
class LawBand:
    """The fitted law with its 95 % band: torque [N m, N] over speed [rad/s, m/s]."""

    speed: tuple[float, ...] = field(metadata={BOUNDS: SPEED})
    friction: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class CurveSummary:
    """Summary of a FrictionCurve for files and reports; no `curve` without a `law` ('').

    `settings` are those of the law; only `shapes` matter at these speeds.
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
    """The friction of one joint over speed: measured `points`, and the fitted law if there is one.

    `errors` are the root mean square errors of each law at held-out speeds, in deviations of the
    points with FRICTION_ERROR_SHARE added: about one for a true law, except in extrapolation.
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
        summary = CurveSummary(self.joint, points, self.name, dict(self.errors))
        if self.fit is None:
            return summary
        speeds = np.geomspace(self.points[0].speed, self.points[-1].speed, CURVE_SPEEDS)
        torque, half = self.fit.torque(speeds), self.fit.half_width(speeds)
        std = np.sqrt(np.maximum(np.diag(self.fit.covariance)[:len(self.fit.values)], 0.0))
        parameters = tuple(
            CurveParameter(name, float(value), float(deviation)) for name, value, deviation in
            zip(self.fit.law.parameters, self.fit.values, std, strict=True) if name != 'f0')
        band = LawBand(*(tuple(row.tolist()) for row in (
            speeds, torque, torque - half, torque + half)))
        return replace(summary, settings=dict(self.fit.law.settings()), shapes=self.fit.shapes,
                       parameters=parameters, curve=band)


def friction_curve(
    joint: str, points: Sequence[SpeedPoint], law: str | None = None
) -> tuple[FrictionCurve, tuple[str, ...]]:
    """Fit a law to the points of a joint; return the curve and the notes on it.

    `law` names one of LAWS; None chooses the simplest whose held-out error is within one standard
    error of the least. Raises UsageError for an unknown law.
    """
    plain, count = FrictionCurve(joint, tuple(points)), len(points)
    if count < FEWEST_SPEEDS:
        return plain, (
            f'{joint} sweeps at {count} speed(s), too few for a friction law; sweep at '
            f'{FEWEST_SPEEDS if law is None else speeds_needed(law_from(law))} or more',)
    measured = _Measured.of(points)
    candidates = distinguishable_laws(points) if law is None else {law: law_from(law)}
    free = {name: measured.freedom(one) for name, one in candidates.items()}
    fitting = [name for name in candidates if free[name] < count]
    if not fitting:
        name, one = next(iter(candidates.items()))
        needed = max(speeds_needed(one), free[name] + 1)
        return plain, (f'{joint} sweeps at {count} speeds, too few for the law {name}; sweep at '
                       f'{needed} or more',)
    squares = {name: held_out_errors(candidates[name], points) for name in fitting}
    errors = {name: float(np.mean(s)) for name, s in squares.items()}
    best = min(fitting, key=lambda name: errors[name])
    margin = float(squares[best].std(ddof=1)) / np.sqrt(count)
    name = min((n for n in fitting if errors[n] <= errors[best] + margin + SQUARE_ROUNDING),
               key=lambda n: (free[n], errors[n]))
    return replace(plain, name=name, fit=fit_law(candidates[name], points),
                   errors={n: e**0.5 for n, e in errors.items()}), ()


def speeds_needed(law: FrictionLaw) -> int:
    """Return the number of sweep speeds needed for a fit of all parts of `law`."""
    speeds: FloatArray = np.geomspace(SLOWEST_SPEED, FASTEST_SPEED, CURVE_SPEEDS)
    rank = int(np.linalg.matrix_rank(odd_columns(law, speeds)))
    return max(FEWEST_SPEEDS, rank + len(_effective(law, speeds)) + 1)


def distinguishable_laws(points: Sequence[SpeedPoint]) -> dict[str, FrictionLaw]:
    """Return the laws that can be distinguished by steady sliding at `points`."""
    laws: dict[str, FrictionLaw] = {}
    for name in (name for name, kind in LAWS.items() if not kind.by_name):
        law = law_from(name)
        if law.holding and not any(_repeats(law, other, points) for other in laws.values()):
            laws[name] = law
    return laws


def _repeats(law: FrictionLaw, other: FrictionLaw, points: Sequence[SpeedPoint]) -> bool:
    """Return True if `law` has the columns and the effective shapes of `other`."""
    speeds = _Measured.of(points).speed
    both = odd_columns(law, speeds), odd_columns(other, speeds)
    ranks = {int(np.linalg.matrix_rank(c)) for c in (*both, np.hstack(both))}
    return len(ranks) == 1 and set(_effective(law, speeds)) <= {s.name for s in other.shapes}


def odd_columns(law: FrictionLaw, speed: FloatArray) -> FloatArray:
    """Return (m, k): half the difference of the columns at `speed` (m,) and at its opposite.

    The joint slides steadily, after presliding.
    """
    still = np.zeros_like(speed)
    there, back = (law.columns(AxisMotion(still, still, v, tuple(range(len(speed)))))
                   for v in (speed, -speed))
    return np.asarray(0.5 * (there - back).T)


def held_out_errors(law: FrictionLaw, points: Sequence[SpeedPoint]) -> FloatArray:
    """Return the squared error at every speed (m,) of the law fitted to the other speeds.

    In squares of each point's deviation with FRICTION_ERROR_SHARE added.
    """
    measured = _Measured.of(points)
    shapes, errors = measured.shapes(law), np.empty(len(points))
    for k, friction in enumerate(measured.friction):
        others = np.arange(len(points)) != k
        _, columns = measured.best(shapes, others)
        errors[k] = columns[k] @ measured.solve(columns, others)[0] - friction
    return np.asarray(errors / np.hypot(measured.std, FRICTION_ERROR_SHARE * measured.friction))**2


def fit_law(law: FrictionLaw, points: Sequence[SpeedPoint]) -> LawFit:
    """Fit parameters and shapes of a law by weighted least squares.

    The covariance is that of the deviations of the points, scaled up if the residual exceeds them.
    """
    from scipy.optimize import least_squares

    measured = _Measured.of(points)
    law, _ = measured.best(measured.shapes(law))
    names = _effective(law, measured.speed)
    if names:
        ranges = {s.name: s for s in law.shapes}
        low, high = (np.log([getattr(ranges[n], side) for n in names]) for side in ('low', 'high'))
        start = np.log([getattr(law, n) for n in names])

        def missed(logs: FloatArray) -> FloatArray:
            shaped = _shaped(law, dict(zip(names, np.exp(logs).tolist(), strict=True)))
            return 1e3 * np.abs(measured.friction) / measured.std if shaped is None else \
                measured.solve(odd_columns(shaped, measured.speed))[1]

        best = least_squares(missed, np.clip(start, low + 1e-9, high - 1e-9), bounds=(low, high))
        law = _shaped(law, dict(zip(names, np.exp(best.x).tolist(), strict=True))) or law
    values, residual = measured.solve(odd_columns(law, measured.speed))
    jacobian = _jacobian(law, values, names, measured.speed) / measured.std[:, None]
    free = max(len(points) - int(np.linalg.matrix_rank(jacobian)), 1)
    inverse = np.linalg.pinv(jacobian.T @ jacobian, rcond=SWEEP_RANK_TOLERANCE, hermitian=True)
    widened = max(1.0, float(residual @ residual) / free)
    return LawFit(law, values, np.asarray(inverse, dtype=np.float64) * widened, names,
                  min(p.degrees for p in points))


def _shaped(law: FrictionLaw, shapes: Mapping[str, float]) -> FrictionLaw | None:
    try:
        changed: FrictionLaw = replace(law, **shapes)
    except UsageError:  # contradictory shapes
        return None
    return changed


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
    """Return the shapes that matter at `speeds` (m,).

    Between 90 % and 110 % of the shape, a column changes by more than a thousandth.
    """
    effective = []
    for name in (shape.name for shape in law.shapes):
        low, high = (odd_columns(_shaped(law, {name: factor * getattr(law, name)}) or law, speeds)
                     for factor in (0.9, 1.1))
        if not np.allclose(low, high, rtol=1e-3, atol=1e-6):
            effective.append(name)
    return tuple(effective)
