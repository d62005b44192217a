"""Search for slow changes of one joint in its residual, verified on held-out recordings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.slow_changes import (
    Adaptation,
    FrictionResidual,
    SlowChangeTracker,
    SlowCoefficients,
    Warming,
    warmth_along,
)
from robot_dynid.types import FloatArray, frozen

#: time constants [s] tried for the warmth, singly and in pairs
SECONDS = (4.0, 12.0, 40.0, 120.0, 400.0, 1200.0)
#: most iterations and largest step of the logarithm in their refinement; ratio for the derivative
WARM_UP_ROUNDS, LARGEST_LOG_STEP, DERIVATIVE_RATIO = 8, 0.3, 1.02
#: shares by which viscous and dry friction differ between recordings regardless of warmth
BETWEEN = (0.1, 0.03)
#: deviations of slow coefficients, as shares of the friction, of ripple in those of the residual,
#: their time constants [s], and shares of the noise density that are tried
VISCOUS, DRY, DRIFTS = (0.03, 0.1, 0.3), (0.01, 0.03, 0.1), (10.0, 40.0, 160.0)
RIPPLES, RIPPLE_SECONDS, SHARES = (0.3, 0.6), 10.0, (0.3, 1.0)
#: length [s] of stretches for the comparison of errors, and for the noise
ERROR_STRETCH, NOISE_STRETCH = 4.0, 1.0
#: a gain counts above this many of its deviations, and above this share of the squared error
BEYOND_CHANCE, LEAST_ERROR_SHARE = 2.5, 0.005
#: least stretches for a significant gain, and folds if there are few recordings
LEAST_STRETCHES, GAIN_FOLDS = 8, 4
#: recordings that suffice to hold them out one by one
ENOUGH_RECORDINGS = 3


@dataclass(frozen=True)
class Gain:
    """Reduction of the squared error of held-out recordings: ``share``, ``deviations`` above zero.
"""

    share: float
    deviations: float

    @property
    def counts(self) -> bool:
        """Whether it is significant and large enough to matter."""
        return self.deviations > BEYOND_CHANCE and self.share > LEAST_ERROR_SHARE


@dataclass(frozen=True, eq=False)
class AdaptationFit:
    """Slow changes of one joint with the ``warming`` and ``slow`` gains on held-out data."""

    adaptation: Adaptation
    warming: Gain
    slow: Gain

    @property
    def used(self) -> Adaptation | None:
        """The slow changes, None if there are none."""
        return self.adaptation if self.adaptation.warming or self.adaptation.slow else None


def add_drift(
    residuals: Sequence[FrictionResidual], warming: Warming | None, gained: Gain
) -> AdaptationFit:
    """Return the changes of a joint: ``warming`` with its gain ``gained``, and its drift."""
    follow = SlowChangeTracker(Adaptation(warming), residuals[0].waves.shape[1])
    rest = [replace(one, left=one.left - follow(one)[0]) for one in residuals]
    slow, second = fit_slow_coefficients(rest)
    return AdaptationFit(Adaptation(warming, slow), gained, second)


def gain(
    residuals: Sequence[FrictionResidual], previous: Sequence[FloatArray],
    candidate: Sequence[FloatArray]
) -> Gain:
    """Return the gain of ``candidate`` errors (N,) over ``previous`` ones, by stretches."""
    taken, whole = [], 0.0
    for one, a, b in zip(residuals, previous, candidate, strict=True):
        place = stretches(one.time, ERROR_STRETCH)
        taken.append(np.bincount(place, a ** 2 - b ** 2))
        whole += float(np.sum(a ** 2))
    gains = np.concatenate(taken)
    spread = float(np.std(gains) * np.sqrt(len(gains)))
    if len(gains) < LEAST_STRETCHES or not spread or not whole:
        return Gain(0.0, 0.0)
    return Gain(float(gains.sum()) / whole, float(gains.sum()) / spread)


def stretches(time: FloatArray, seconds: float) -> NDArray[np.int64]:
    """Return the index (N,) of the stretch of each sample; all about ``seconds`` long."""
    since = time - time[0]
    whole = max(float(since[-1]), 1e-9)
    count = max(1, round(whole / seconds))
    index: NDArray[np.int64] = np.minimum((since * (count / whole)).astype(np.int64), count - 1)
    return index


def noise_density(residuals: Sequence[FrictionResidual]) -> float:
    """Return the density [(N m)^2 s] of the residual at low frequency, from means of batches."""
    total, count = 0.0, 0
    for one in residuals:
        place = stretches(one.time, NOISE_STRETCH)
        size = np.bincount(place)
        means = np.bincount(place, one.left)[size > 0] / size[size > 0]
        total, count = total + float(np.sum((means - means.mean()) ** 2)), count + len(means) - 1
    return NOISE_STRETCH * total / max(count, 1)


def fit_warming(residuals: Sequence[FrictionResidual]) -> tuple[Warming | None, Gain]:
    """Return friction that warms up, None if no gain is significant, and the gain.

    Friction may also differ from recording to recording: that is fitted as well, and not used to
    predict a held-out recording. Significance comes from changes within recordings.
    """
    power = float(np.mean(np.concatenate([one.power for one in residuals])))
    noise = noise_density(residuals)
    if not (power > 0.0 and noise > 0.0):
        return None, Gain(0.0, 0.0)
    problem = _Problem.of(residuals, power, noise)
    chosen: tuple[int, ...] = ()
    errors, total_gain = problem.errors(chosen), Gain(0.0, 0.0)
    for count in (1, 2):
        tried = [c for c in combinations(range(len(SECONDS)), count) if problem.possible(c)]
        if not tried:
            break
        best = min(tried, key=problem.square)
        now = problem.errors(best)
        more = gain(residuals, problem.within(errors), problem.within(now))
        whole = 1.0 - _square(now) / _square(errors)
        total = Gain(1.0 - _square(now) / _square(problem.left), more.deviations)
        if not chosen:
            total_gain = total
        if more.deviations <= BEYOND_CHANCE or min(whole, total_gain.share) <= LEAST_ERROR_SHARE:
            break
        chosen, errors, total_gain = best, now, total
    if not chosen:
        return None, total_gain
    rest = problem.within(errors)
    noise_left = noise_density([replace(one, left=error) for one, error in zip(
        residuals, rest, strict=True)])
    return (_refine_warming(residuals, power, noise_left or noise,
                            np.array(SECONDS)[list(chosen)]), total_gain)


def _refine_warming(
    residuals: Sequence[FrictionResidual], power: float, noise: float, seconds: FloatArray
) -> Warming:
    """Return the warming with the best time constants near ``seconds`` (k,) [s], by Gauss-Newton.

    Rise and fall are linear for given time constants; their deviations account for the fitted time
    constants.
    """
    count, best, reach = len(seconds), np.inf, (0.5 * seconds, 2.0 * seconds)
    law: FloatArray | None = None
    for _ in range(WARM_UP_ROUNDS):
        problem = _Problem.of(
            residuals, power, noise, (*seconds, *(DERIVATIVE_RATIO * seconds)), law)
        linear = list(range(2 + 2 * count))
        values, _, square = problem.solve(linear)
        more, std, _ = problem.with_slopes(values, count).solve([*linear, *(
            2 + 2 * count + i for i in range(count))])
        fall, fall_std = values[2:], std[2:2 + 2 * count]
        now = Warming(
            frozen(seconds), power, frozen(values[:2]), frozen(-fall.reshape(count, 2).T),
            frozen(std[:2]), frozen(fall_std.reshape(count, 2).T),
            frozen(seconds * std[2 + 2 * count:]))
        if square < best:
            best, warming = square, now
        law = np.hstack([now.law, np.zeros((2, count))])  # power of the last iteration
        step = np.clip(more[2 + 2 * count:], -LARGEST_LOG_STEP, LARGEST_LOG_STEP)
        seconds = np.clip(seconds * np.exp(step), *reach)
    return warming


def _square(errors: Sequence[FloatArray]) -> float:
    return sum(float(error @ error) for error in errors)


def _columns(chosen: Sequence[int]) -> list[int]:
    """Return the columns of a problem with the ``chosen`` time constants."""
    return [0, 1, *(2 + 2 * c + k for c in chosen for k in (0, 1))]


@dataclass(frozen=True, eq=False)
class _Problem:
    """Least squares for the rise and fall of friction with some time constants.

    ``columns`` (N, 2 + 2 s) of every recording: viscous, dry, then both times each warmth;
    ``folds`` (N,) by sample, ``weights`` of the samples of every recording.
    """

    columns: tuple[FloatArray, ...]
    left: tuple[FloatArray, ...]
    weights: tuple[float, ...]
    folds: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(
        cls, residuals: Sequence[FrictionResidual], power: float, noise: float,
        seconds: Sequence[float] = SECONDS, law: FloatArray | None = None,
    ) -> _Problem:
        columns, state = [], np.zeros(len(seconds))
        for one in residuals:
            warmth, both = warmth_along(
                one, np.array(seconds), power, state, law), one.friction
            columns.append(np.hstack([both, *(w[:, None] * both for w in warmth.T)]))
        apart = len(residuals) >= ENOUGH_RECORDINGS
        folds = tuple(np.full(len(one.time), i) if apart else GAIN_FOLDS * i + (
            stretches(one.time, float(np.ptp(one.time)) / GAIN_FOLDS))
            for i, one in enumerate(residuals))
        weights = tuple(float(np.median(np.diff(one.time))) / noise for one in residuals)
        return cls(tuple(columns), tuple(one.left for one in residuals), weights, folds)

    @cached_property
    def grams(self) -> tuple[dict[int, FloatArray], ...]:
        """Products (p + 1, p + 1) of all columns and the residual, by recording and fold."""
        products = []
        for columns, left, folds in zip(self.columns, self.left, self.folds, strict=True):
            tall = np.hstack([columns, left[:, None]])
            products.append({fold: tall[folds == fold].T @ tall[folds == fold]
                          for fold in np.unique(folds).tolist()})
        return tuple(products)

    def with_slopes(self, values: FloatArray, count: int) -> _Problem:
        """Return it with derivatives by the logarithms of ``count`` time constants appended.

        ``values`` (2 + 2 k,) are those without; the warmth for times DERIVATIVE_RATIO as long
        comes second.
        """
        size = 2 + 2 * count
        extended = []
        for columns in self.columns:
            slope = (columns[:, size:] - columns[:, 2:size]) * (
                values[2:] / np.log(DERIVATIVE_RATIO))
            extended.append(np.hstack([
                columns[:, :size], slope.reshape(len(slope), count, 2).sum(axis=2)]))
        return replace(self, columns=tuple(extended))

    def _normal(self, selected: Sequence[int], left_out: int | None) -> FloatArray:
        """Return the normal equations (p + 1, p + 1) without differences between recordings."""
        chosen = np.ix_([*selected, -1], [*selected, -1])
        total = np.zeros((len(selected) + 1, len(selected) + 1))
        for grams, weight in zip(self.grams, self.weights, strict=True):
            used = [gram[chosen] for fold, gram in grams.items() if fold != left_out]
            if used:
                gram = weight * np.sum(used, axis=0)
                between = np.linalg.solve(
                    gram[:2, :2] + np.diag(1.0 / np.square(BETWEEN)), gram[:2, :])
                total += gram - gram[:, :2] @ between
        return total

    def solve(
        self, selected: Sequence[int], left_out: int | None = None
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return values and deviations (p,) of the ``selected`` columns, and the squared error."""
        normal = self._normal(selected, left_out)
        scale = np.sqrt(np.diag(normal)[:-1]).clip(1e-150)
        inverse = np.linalg.pinv(normal[:-1, :-1] / np.outer(scale, scale), rcond=1e-10)
        inverse /= np.outer(scale, scale)
        values = inverse @ normal[:-1, -1]
        return (values, np.sqrt(np.diag(inverse).clip(0.0)),
                float(normal[-1, -1] - values @ normal[:-1, -1]))

    def values_by_fold(self, chosen: tuple[int, ...]) -> dict[int, FloatArray]:
        """Return the values of a fit to all other folds, by fold."""
        selected = _columns(chosen)
        return {fold: self.solve(selected, fold)[0] for grams in self.grams for fold in grams}

    def errors(self, chosen: tuple[int, ...]) -> list[FloatArray]:
        """Return the held-out errors (N,) of recordings."""
        selected = _columns(chosen)
        errors = [left.copy() for left in self.left]
        for fold, values in self.values_by_fold(chosen).items():
            for error, columns, folds in zip(errors, self.columns, self.folds, strict=True):
                error[folds == fold] -= columns[folds == fold][:, selected] @ values
        return errors

    def square(self, chosen: tuple[int, ...]) -> float:
        """Return the sum of squares of `errors`."""
        selected, by_fold = [*_columns(chosen), -1], self.values_by_fold(chosen)
        values = {fold: np.append(one, -1.0) for fold, one in by_fold.items()}
        return sum(float(values[fold] @ gram[np.ix_(selected, selected)] @ values[fold])
                   for grams in self.grams for fold, gram in grams.items())

    def possible(self, chosen: tuple[int, ...]) -> bool:
        """Return True if friction stays above zero after long motion.

        Viscous friction must fall, because lubricants thin as they warm up.
        """
        values, _, _ = self.solve(_columns(chosen))
        viscous, dry = values[2:].reshape(-1, 2).sum(axis=0)
        return bool(-1.0 < viscous < 0.0 and abs(dry) < 1.0)

    def within(self, errors: Sequence[FloatArray]) -> list[FloatArray]:
        """Return ``errors`` (N,) without the constant difference of each recording."""
        return [remove_recording_difference(columns[:, :2], error, weight) for
                error, columns, weight in zip(errors, self.columns, self.weights, strict=True)]


def remove_recording_difference(
    friction: FloatArray, error: FloatArray, weight: float
) -> FloatArray:
    """Return the errors (N,) of a recording without a constant difference of its friction (N, 2).

    ``weight`` [1/(N m)^2] of a sample.
    """
    normal = weight * friction.T @ friction + np.diag(1.0 / np.square(BETWEEN))
    return np.asarray(error - friction @ np.linalg.solve(normal, weight * friction.T @ error))


def fit_slow_coefficients(
    residuals: Sequence[FrictionResidual]
) -> tuple[SlowCoefficients | None, Gain]:
    """Return the drift of coefficients, None if tracking them gives no significant gain."""
    noise = noise_density(residuals)
    if not noise > 0.0:
        return None, Gain(0.0, 0.0)
    untracked = [one.left for one in residuals]
    bare = [replace(one, waves=one.waves[:, :0]) for one in residuals]
    best, least = min(((None, _square(untracked)), _friction_drift(bare, noise)),
                      key=lambda one: one[1])
    if residuals[0].waves.shape[1]:
        best, _ = _best(_ripple_drifts(best, residuals, noise), residuals, (best, least))
    if best is None:
        return None, Gain(0.0, 0.0)
    data = residuals if best.waves else bare
    gained = gain(residuals, untracked, [left - more for left, more in zip(
        untracked, best.torque(data), strict=True)])
    return (best if gained.counts else None), gained


def _best(
    candidates: Iterable[SlowCoefficients], residuals: Sequence[FrictionResidual],
    best: tuple[SlowCoefficients | None, float],
) -> tuple[SlowCoefficients | None, float]:
    """Return the best of ``best`` and ``candidates``, and its squared error."""
    for candidate in candidates:
        error = _error(candidate, residuals)
        if error < best[1]:
            best = candidate, error
    return best


def _error(drift: SlowCoefficients, residuals: Sequence[FrictionResidual]) -> float:
    """Return the squared one-step error [(N m)^2] with tracked coefficients."""
    return _square([one.left - more for one, more in zip(
        residuals, drift.torque(residuals), strict=True)])


def _friction_drift(
    residuals: Sequence[FrictionResidual], noise: float
) -> tuple[SlowCoefficients, float]:
    """Return the drift of viscous and dry friction of least squared error, and that error.

    One number is changed at a time, from the middle on, until none changes.
    """
    choices = VISCOUS, DRY, DRIFTS, SHARES
    errors: dict[tuple[int, ...], float] = {}

    def drift(at: tuple[int, ...]) -> SlowCoefficients:
        viscous, dry, seconds, share = (
            values[i] for values, i in zip(choices, at, strict=True))
        return SlowCoefficients(viscous, dry, 0.0, seconds, RIPPLE_SECONDS, share * noise)

    def error(at: tuple[int, ...]) -> float:
        if at not in errors:
            errors[at] = _error(drift(at), residuals)
        return errors[at]

    best: tuple[int, ...] = (1, 1, 1, 1)
    previous: tuple[int, ...] = ()
    while best != previous:
        previous = best
        for k, values in enumerate(choices):
            best = min(((*best[:k], i, *best[k + 1:]) for i in range(len(values))), key=error)
    return drift(best), errors[best]


def _ripple_drifts(
    friction: SlowCoefficients | None, residuals: Sequence[FrictionResidual], noise: float
) -> Iterator[SlowCoefficients]:
    """Yield the candidates for ripple, in addition to the drift of ``friction``."""
    base = friction or SlowCoefficients(0.0, 0.0, 0.0, RIPPLE_SECONDS, RIPPLE_SECONDS, noise)
    size = float(np.std(np.concatenate([one.left for one in residuals])))
    for ripple, share in product(RIPPLES, SHARES):
        yield replace(base, waves=ripple * size, noise=share * noise)


#: iterations of the refinement of time constants
REFINING_ROUNDS = 5
#: least share of the noise batches that counts as degrees of freedom
LEAST_FREE = 0.25
#: directions of the parameters with less than this share of the information are left unchanged
OPEN = 1e-12


@dataclass(frozen=True, eq=False)
class ConstantParameters:
    """Constant base parameters, in the equations of a joint and of all others.

    ``columns`` (M, b) of every recording: the regressor of the joint; ``others`` (b + 1, b + 1)
    the products of regressor and residual of all other joints, over the density of their noise.
    ``weights`` (M,) of every recording are those of the joint's rows in the estimate of the base
    parameters, squared, ``normal`` (b, b) the products of all joints' regressors with these
    weights.
    """

    columns: tuple[FloatArray, ...]
    others: FloatArray
    weights: tuple[FloatArray, ...]
    normal: FloatArray


@dataclass(frozen=True, eq=False)
class WarmingFit:
    """Friction that warms up, and the correction of base parameters fitted without it.

    ``change`` (b,) is to be added to them, ``covariance`` (b, b) to theirs.
    """

    warming: Warming
    change: FloatArray
    covariance: FloatArray


def refit_warming(
    residuals: Sequence[FrictionResidual], warming: Warming, constant: ConstantParameters
) -> WarmingFit:
    """Return ``warming`` of one joint fitted again, together with all base parameters.

    Its time constants are refined by Gauss-Newton (variable projection would give the same,
    because falls and base parameters are linear). The level of friction stays that of the base
    parameters: the rise is the mean fall. Friction that differs from recording to recording is
    fitted as well, as in `fit_warming`. If a fall exceeds the friction itself, the data does not
    separate it: ``warming`` is then returned unchanged, without correction.

    Source: Golub, Pereyra 1973 (separable least squares); Frisch, Waugh 1933 (effect of omitted
    columns on a regression).
    """
    count = len(warming.seconds)
    linear = 2 * count
    state, reach = warming, (0.5 * warming.seconds, 2.0 * warming.seconds)
    noise = noise_density(residuals)
    for rounds_left in reversed(range(REFINING_ROUNDS)):
        tall = _equations(residuals, state, constant)
        inverse, values = _solve_equations(residuals, tall, constant.others, noise)
        noise = _noise(residuals, tall, values, noise)
        fall = values[:linear].reshape(count, 2).T
        if rounds_left:
            step = np.clip(values[linear:linear + count], -LARGEST_LOG_STEP, LARGEST_LOG_STEP)
            seconds = np.clip(state.seconds * np.exp(step), *reach)
            rises, _ = _absorbed(residuals, state, constant)
            state = replace(state, seconds=seconds, fall=fall, rise=rises @ values[:linear])
    seconds = state.seconds
    if np.abs(fall).max() > 1.0:
        size = len(constant.normal)
        return WarmingFit(warming, np.zeros(size), np.zeros((size, size)))
    std = np.sqrt(np.diag(inverse)[:linear + count].clip(0.0))
    fall_std = std[:linear].reshape(count, 2).T
    rises, taken = _absorbed(residuals, state, constant)
    fall_covariance = inverse[:linear, :linear]
    rise_std = np.sqrt(np.diag(rises @ fall_covariance @ rises.T))
    refitted = Warming(
        frozen(seconds), warming.power, frozen(rises @ values[:linear]), frozen(fall),
        frozen(rise_std), frozen(fall_std), frozen(seconds * std[linear:]))
    return WarmingFit(refitted, -taken @ values[:linear], taken @ fall_covariance @ taken.T)


def rescale_warming(
    warming: Warming, previous: Sequence[FrictionResidual], current: Sequence[FrictionResidual]
) -> Warming:
    """Return ``warming`` with the same torque for ``current`` instead of ``previous`` friction."""
    old, new = (np.concatenate([one.friction for one in some]) for some in (previous, current))
    squares = np.sum(new ** 2, axis=0)
    ratio = np.divide(
        np.sum(old * new, axis=0), squares, out=np.ones_like(squares), where=squares > 0.0)
    power = float(np.mean(np.concatenate([one.power for one in current])))
    return replace(
        warming, power=power, rise=frozen(ratio * warming.rise),
        fall=frozen(ratio[:, None] * warming.fall), rise_std=frozen(ratio * warming.rise_std),
        fall_std=frozen(ratio[:, None] * warming.fall_std))


def _step(one: FrictionResidual) -> float:
    return float(np.median(np.diff(one.time)))


def _equations(
    residuals: Sequence[FrictionResidual], warming: Warming, constant: ConstantParameters
) -> list[FloatArray]:
    """Return friction, falls, log time constants, parameters and residual as columns.

    (M, 2 + p + 1) of every recording; derivatives are those at ``warming``.
    """
    count, equations, state = len(warming.seconds), [], np.zeros(2 * len(warming.seconds))
    law = np.hstack([warming.law, np.zeros((2, count))])  # power of the last iteration
    tried = np.concatenate([warming.seconds, DERIVATIVE_RATIO * warming.seconds])
    for one, columns in zip(residuals, constant.columns, strict=True):
        both, friction = warmth_along(one, tried, warming.power, state, law), one.friction
        falls = [-w[:, None] * friction for w in both[:, :count].T]
        slopes = (both[:, :count] - both[:, count:]) / np.log(DERIVATIVE_RATIO) * (
            friction @ warming.fall)
        equations.append(np.hstack([friction, *falls, slopes, columns, one.left[:, None]]))
    return equations


def _solve_equations(
    residuals: Sequence[FrictionResidual], equations: Sequence[FloatArray], others: FloatArray,
    noise: float,
) -> tuple[FloatArray, FloatArray]:
    """Return covariance (p, p) and values (p,); ``others`` are equations of the parameters."""
    total = np.zeros((equations[0].shape[1] - 2,) * 2)
    for one, tall in zip(residuals, equations, strict=True):
        gram = _step(one) / noise * (tall.T @ tall)
        between = np.linalg.solve(gram[:2, :2] + np.diag(1.0 / np.square(BETWEEN)), gram[:2, 2:])
        total += gram[2:, 2:] - gram[2:, :2] @ between
    total[-len(others):, -len(others):] += others
    covariance = _inverse(total[:-1, :-1])
    return covariance, covariance @ total[:-1, -1]


def _noise(
    residuals: Sequence[FrictionResidual], equations: Sequence[FloatArray], values: FloatArray,
    noise: float,
) -> float:
    """Return the density [(N m)^2 s] of errors without constant differences of recordings.

    Errors at low frequency, where the density is estimated, are reduced by the fitted values.
    """
    density = noise_density([replace(one, left=remove_recording_difference(
        tall[:, :2], tall[:, -1] - tall[:, 2:-1] @ values, _step(one) / noise))
        for one, tall in zip(residuals, equations, strict=True)])
    batches = sum(float(np.ptp(one.time)) / NOISE_STRETCH for one in residuals)
    used = np.any([np.any(tall[:, 2:-1], axis=0) for tall in equations], axis=0)
    fitted = np.count_nonzero(used)
    return density * batches / max(batches - fitted, LEAST_FREE * batches)


def _inverse(normal: FloatArray) -> FloatArray:
    """Return the inverse (p, p) of normal equations; undetermined directions get zero."""
    scale = np.sqrt(np.diag(normal)).clip(1e-150)
    return np.asarray(np.linalg.pinv(
        normal / np.outer(scale, scale), rcond=OPEN, hermitian=True) / np.outer(scale, scale))


def _absorbed(
    residuals: Sequence[FrictionResidual], warming: Warming, constant: ConstantParameters
) -> tuple[FloatArray, FloatArray]:
    """Return the rises (2, 2 k), and what the base parameters absorb (b, 2 k) of unit falls.

    The rise is that with which the change of friction leaves its level: it is orthogonal to
    viscous and dry friction.
    """
    state, falls = np.zeros(len(warming.seconds)), list[FloatArray]()
    whole, common = np.zeros((2, 2)), np.zeros((2, 2 * len(state)))
    for one, weights in zip(residuals, constant.weights, strict=True):
        falls.append(np.hstack([w[:, None] * one.friction
                                for w in warming.warmth(one, state).T]))
        weighted = one.friction.T * weights
        whole, common = whole + weighted @ one.friction, common + weighted @ falls[-1]
    rises = _inverse(whole) @ common
    shared = np.zeros((len(constant.normal), rises.shape[1]))
    for one, fall, columns, weights in zip(
            residuals, falls, constant.columns, constant.weights, strict=True):
        shared += columns.T @ (weights[:, None] * (one.friction @ rises - fall))
    return rises, _inverse(constant.normal) @ shared
