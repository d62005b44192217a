"""Differences between two models of one robot: weight, friction, inertia, joint by joint.

Models may have different friction laws and parameters, so efforts are compared, at the same states
within the training ranges of both, with the covariance of each. Friction differs from day to day,
too, viscous friction more than dry friction; it is compared at single states and, what a change by
one factor shows best, as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import ModelError
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.friction.law import DRY, VISCOUS
from robot_dynid.identified import record
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray

WEIGHT, FRICTION, INERTIA = EFFECTS = ('weight', 'friction', 'inertia')
#: number of compared poses, and shares of the top speed
COMPARED_POSES, SPEEDS = 24, (0.1, 0.3, 0.6, 1.0)
#: false discovery rate (Benjamini and Hochberg, J. R. Stat. Soc. B 1995, 57, 289), and the weights
#: of the effects in it, one on average, by how often each changes (Genovese, Roeder, Wasserman,
#: Biometrika 2006, 93, 509)
FALSE_SHARE, LIKELY = 0.05, {WEIGHT: 0.5, FRICTION: 2.0, INERTIA: 0.5}
#: draws for the distribution of the largest of correlated differences
DRAWS = 20_000
#: floor of variances, relative to the largest
LEAST_VARIANCE = 1e-9
#: usual share by which a kind of friction differs from day to day: of dry friction that between
#: every second of the recordings of a UR10e
USUAL_SPREAD = {VISCOUS: record.USUAL_SPREAD, DRY: 0.02}
#: shrinkage of a covariance that few stretches determine: so many mean variances are added to it
SHRUNK = 4.0
#: weight of friction as a whole when the largest difference is sought; a single state has 1
WHOLE = 1.3


@dataclass(frozen=True)
class Difference:
    """Difference between two models in one effect on one joint.

    ``effect``: one of EFFECTS; ``size``: the root mean square of the difference over the states,
    and ``before`` that of the effect itself in the first model, in ``unit``; ``most``: the
    difference farthest from zero relative to its 95 % interval, ``half_interval``; ``probability``
    of such a difference by chance if nothing changed; ``changed``: significant at the false
    discovery rate FALSE_SHARE.
    """

    joint: str
    effect: str
    unit: str
    before: float
    size: float
    most: float
    half_interval: float
    probability: float
    changed: bool


@one_blas_thread()
def differences(first: IdentifiedModel, second: IdentifiedModel) -> tuple[Difference, ...]:
    """Return the differences of all joints that neither model refuses.

    Raises ModelError for models of different robots, and for one without covariance or ranges.
    """
    second.require(first.robot)
    states = _shared(first, second)
    models = first, second
    daily = [_daily_changes(model, models) for model in models]
    refused = {*first.not_identified, *second.not_identified}
    compared = []
    for j, joint in enumerate(first.joints):
        if joint in refused:
            continue
        for effect in EFFECTS:
            pair = tuple(_effect(model, j, effect, states, changes)
                         for model, changes in zip(models, daily, strict=True))
            if effect == FRICTION:
                pair = _with_whole(*pair)
            compared.append(_difference((joint, effect, _unit(first, j, effect)), *pair))
    return judged(compared)


@dataclass(frozen=True, eq=False)
class _Effect:
    """Values (K,) of an effect, a factor F of their covariance F^T F, and a factor (d, K) of that
    of their changes from day to day; ``weights`` (K,) with which differences count, ``freedom`` of
    the covariance.
    """

    values: FloatArray
    factor: FloatArray
    daily: FloatArray
    weights: FloatArray
    freedom: float

    def combined(self, rows: FloatArray, weights: FloatArray) -> _Effect:
        """Return linear combinations (R, K) of the values."""
        return _Effect(rows @ self.values, self.factor @ rows.T, self.daily @ rows.T, weights,
                       self.freedom)


def _daily_changes(
    model: IdentifiedModel, models: Sequence[IdentifiedModel]
) -> FloatArray:
    """Return independent changes (d, b) of parameters from day to day.

    Their sizes are those of whichever of ``models`` was fitted to more days.
    """
    scales = friction_scales(model.torque_model, model.values)
    if scales is None:
        return np.zeros((0, len(model.values)))
    spread = {kind: max((one.record.daily_spread(kind, scales.kinds.count(kind), usual)
                         for one in models), key=itemgetter(1))[0]
              for kind, usual in USUAL_SPREAD.items()}
    return np.asarray(scales.directions.T * [[spread.get(kind, 0.0)] for kind in scales.kinds])


def _with_whole(one: _Effect, other: _Effect) -> tuple[_Effect, _Effect]:
    """Return friction of two models at its states and, last, as a whole.

    That is the factor on their mean curve by generalised least squares, times its RMS. Few
    stretches determine the covariance of the estimates, so SHRUNK times its mean variance is added
    to each state.
    """
    curve = 0.5 * (one.values + other.values)
    size = max(_rms(curve), np.finfo(float).tiny ** 0.25)
    estimated = np.vstack([one.factor, other.factor])
    factor = np.vstack([estimated, one.daily, other.daily])
    least = SHRUNK * np.sum(estimated**2) / len(curve) + LEAST_VARIANCE * size**2
    row = np.linalg.solve(factor.T @ factor + least * np.eye(len(curve)), curve)
    row *= size / max(float(row @ curve), np.finfo(float).tiny)
    rows, weights = np.vstack([np.eye(len(curve)), row]), np.append(one.weights, WHOLE)
    return one.combined(rows, weights), other.combined(rows, weights)


def _shared(first: IdentifiedModel, second: IdentifiedModel) -> tuple[FloatArray, FloatArray]:
    """Return poses (COMPARED_POSES, n) and top speeds (n,) within both training ranges.

    For ranges that do not overlap the pose is halfway between them. Raises ModelError for a model
    without ranges.
    """
    for model in (first, second):
        if 'position' not in model.trained.quantities:
            raise ModelError(f'{model.robot.name}: a model has no training ranges in which to '
                             'compare it; identify it from recordings')
    ranges = [model.trained.quantities for model in (first, second)]
    low, high = (pick([r['position'][:, end] for r in ranges], axis=0)
                 for end, pick in ((0, np.max), (1, np.min)))
    middle = 0.5 * (low + high)
    low, high = np.minimum(low, middle), np.maximum(high, middle)
    rng = np.random.default_rng(0)
    share = rng.uniform(size=(COMPARED_POSES, len(low)))
    speed = np.min([np.abs(r['velocity']).max(axis=1) for r in ranges], axis=0)
    return low + share * (high - low), speed


def _effect(
    model: IdentifiedModel, j: int, effect: str, states: tuple[FloatArray, FloatArray],
    daily: FloatArray,
) -> _Effect:
    """Return an effect on joint ``j`` at poses (K, n), friction at shares of the speed (n,).

    ``daily`` (d, b) are changes of friction from day to day.
    """
    q, speed = states
    still, unit = np.zeros_like(q), np.zeros_like(q)
    unit[:, j] = 1.0
    if effect == WEIGHT:
        return _combined(model, j, [(1.0, q, still, still)], daily[:0])
    if effect == INERTIA:
        return _combined(model, j, [(1.0, q, still, unit), (-1.0, q, still, still)], daily[:0])
    share = np.resize(SPEEDS, len(q))[:, None] * speed[j]
    return _combined(model, j, [(0.5, q, unit * share, still), (-0.5, q, -unit * share, still)],
                     daily)


def _combined(
    model: IdentifiedModel, j: int,
    terms: Sequence[tuple[float, FloatArray, FloatArray, FloatArray]], daily: FloatArray,
) -> _Effect:
    """Return the sum of efforts of joint ``j`` at states, each times its weight."""
    values, rows = np.zeros(COMPARED_POSES), np.zeros((COMPARED_POSES, len(model.values)))
    for weight, q, qd, qdd in terms:
        values += weight * model.inverse(q, qd, qdd)[:, j]
        rows += weight * model.inverse_by_parameters(q, qd, qdd)[:, j]
    return _Effect(values, model.covariance_factor @ rows.T, daily @ rows.T, np.ones(len(rows)),
                   float(model.record.degrees_of_freedom or np.inf))


def _difference(
    label: tuple[str, str, str], one: _Effect, other: _Effect
) -> Difference:
    """Return the difference of an effect, before the test for significance."""
    change = other.values - one.values
    factor = np.vstack([one.factor, other.factor, one.daily, other.daily])
    deviation = np.sqrt(np.sum(factor**2, axis=0))
    floor = np.sqrt(LEAST_VARIANCE) * max(float(np.abs(one.values).max()), 1e-12)
    deviation = np.maximum(deviation, floor)
    k = int(np.argmax(one.weights * np.abs(change) / deviation))
    freedom = _freedom(one, other, k)
    return Difference(
        *label, _rms(one.values), _rms(change), float(change[k]),
        float(interval_factor(freedom) * deviation[k]),
        _chance(float(one.weights[k] * np.abs(change[k]) / deviation[k]),
                factor * one.weights / deviation, freedom), False)


def _freedom(one: _Effect, other: _Effect, k: int) -> float:
    """Return the degrees of freedom of the variance of the difference ``k``.

    Changes from day to day are taken as known beside the expected variances of the estimates,
    which two degrees do not have. Source: Satterthwaite 1946, Biometrics Bulletin 2, 110.
    """
    least = min(one.freedom, other.freedom)
    if least <= 2.0:
        return least
    errors = np.array([np.sum(effect.factor[:, k]**2) / (1.0 - 2.0 / effect.freedom)
                       for effect in (one, other)]) + np.finfo(float).tiny ** 0.25
    known = np.sum(one.daily[:, k]**2) + np.sum(other.daily[:, k]**2)
    squares = errors**2 / (one.freedom, other.freedom)
    return float((errors.sum() + known)**2 / max(squares.sum(), np.finfo(float).tiny))


def _chance(largest: float, factor: FloatArray, freedom: float) -> float:
    """Return the probability that the largest of differences (K,) is as large by chance.

    ``factor`` (r, K) of their covariance, ``freedom`` degrees of freedom; estimated by DRAWS
    draws, so at least one in DRAWS.
    """
    rng = np.random.default_rng(1)
    triangle = np.linalg.qr(factor, mode='r')
    drawn = rng.standard_normal((DRAWS, len(triangle))) @ triangle
    scale = rng.chisquare(freedom, DRAWS) / freedom if np.isfinite(freedom) else np.ones(DRAWS)
    peaks = np.abs(drawn).max(axis=1) / np.sqrt(scale)
    return float((1 + np.sum(peaks >= largest)) / (1 + DRAWS))


def judged(compared: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the differences with the significant ones marked."""
    chances = np.array([one.probability / LIKELY[one.effect] for one in compared])
    allowed = FALSE_SHARE * np.arange(1, len(chances) + 1) / max(len(chances), 1)
    below = np.flatnonzero(np.sort(chances) <= allowed)
    bound = float(np.sort(chances)[below[-1]]) if len(below) else -1.0
    return tuple(replace(one, changed=bool(chance <= bound))
                 for one, chance in zip(compared, chances, strict=True))


def _unit(model: IdentifiedModel, j: int, effect: str) -> str:
    slides = bool(model.robot.types[j] == PRISMATIC)
    if effect == INERTIA:
        return 'kg' if slides else 'kg m^2'
    return 'N' if slides else 'N m'


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
