"""Slow changes of one joint from what a model left over, where recordings left out show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.slow_changes import (
    Adaptation,
    Following,
    Leftover,
    SlowCoefficients,
    Warming,
    warmth_along,
)
from robot_dynid.types import FloatArray, frozen

#: time constants [s] tried for the warmth, by one and by two
SECONDS = (4.0, 12.0, 40.0, 120.0, 400.0, 1200.0)
#: rounds and largest step of the logarithm in the search for them; ratio for the derivative
WARM_UP_ROUNDS, LARGEST_LOG_STEP, DERIVATIVE_RATIO = 8, 0.3, 1.02
#: shares by which viscous and dry friction differ between recordings, whatever their warmth
BETWEEN = (0.1, 0.03)
#: deviations, shares of the friction, of the ripple in those of what is left, and their time
#: constants [s], and shares of the noise density, that are tried for slow coefficients
VISCOUS, DRY, DRIFTS = (0.03, 0.1, 0.3), (0.01, 0.03, 0.1), (10.0, 40.0, 160.0)
RIPPLES, RIPPLE_SECONDS, SHARES = (0.3, 0.6), 10.0, (0.3, 1.0)
#: length [s] of stretches by which errors are compared, and of those by which noise is taken
ERROR_STRETCH, NOISE_STRETCH = 4.0, 1.0
#: a gain counts above so many deviations of it, and this share of the squared error
BEYOND_CHANCE, LEAST_ERROR_SHARE = 2.5, 0.005
#: stretches without which no gain is beyond chance, and folds where there are few recordings
LEAST_STRETCHES, GAIN_FOLDS = 8, 4
#: recordings that are enough to be left out one by one
ENOUGH_RECORDINGS = 3


@dataclass(frozen=True)
class Gain:
    """Squared error taken off recordings left out: its ``share``, ``deviations`` above zero."""

    share: float
    deviations: float

    @property
    def counts(self) -> bool:
        """Whether it is beyond chance and large enough to matter."""
        return self.deviations > BEYOND_CHANCE and self.share > LEAST_ERROR_SHARE


@dataclass(frozen=True, eq=False)
class AdaptationFit:
    """Slow changes of one joint with the ``warming`` and ``slow`` gains on data left out."""

    found: Adaptation
    warming: Gain
    slow: Gain

    @property
    def kept(self) -> Adaptation | None:
        """The slow changes, None where there are none."""
        return self.found if self.found.warming or self.found.slow else None


def with_drift(
    leftovers: Sequence[Leftover], warming: Warming | None, gained: Gain
) -> AdaptationFit:
    """Return the changes of a joint with ``warming``, which ``gained`` so much, and its drift."""
    follow = Following(Adaptation(warming), leftovers[0].waves.shape[1])
    rest = [replace(one, left=one.left - follow(one)[0]) for one in leftovers]
    slow, second = fit_slow_coefficients(rest)
    return AdaptationFit(Adaptation(warming, slow), gained, second)


def gain(
    leftovers: Sequence[Leftover], before: Sequence[FloatArray], after: Sequence[FloatArray]
) -> Gain:
    """Return by how much errors ``after`` (N,) are less than those ``before``, by stretches."""
    taken, whole = [], 0.0
    for one, a, b in zip(leftovers, before, after, strict=True):
        place = stretches(one.time, ERROR_STRETCH)
        taken.append(np.bincount(place, a ** 2 - b ** 2))
        whole += float(np.sum(a ** 2))
    found = np.concatenate(taken)
    spread = float(np.std(found) * np.sqrt(len(found)))
    if len(found) < LEAST_STRETCHES or spread == 0.0 or whole == 0.0:
        return Gain(0.0, 0.0)
    return Gain(float(found.sum()) / whole, float(found.sum()) / spread)


def stretches(time: FloatArray, seconds: float) -> NDArray[np.int64]:
    """Return the number (N,) of the stretch of each sample; all about ``seconds`` long."""
    since = time - time[0]
    whole = max(float(since[-1]), 1e-9)
    count = max(1, round(whole / seconds))
    found: NDArray[np.int64] = np.minimum((since * (count / whole)).astype(np.int64), count - 1)
    return found


def noise_density(leftovers: Sequence[Leftover]) -> float:
    """Return the density [(N m)^2 s] of what is left at low frequency, from means of batches."""
    total, count = 0.0, 0
    for one in leftovers:
        place = stretches(one.time, NOISE_STRETCH)
        size = np.bincount(place)
        means = np.bincount(place, one.left)[size > 0] / size[size > 0]
        total, count = total + float(np.sum((means - means.mean()) ** 2)), count + len(means) - 1
    return NOISE_STRETCH * total / max(count, 1)


def fit_warming(leftovers: Sequence[Leftover]) -> tuple[Warming | None, Gain]:
    """Return friction that warms up, None where no gain is beyond chance, and the gain.

    Friction may also differ from recording to recording: that is fitted beside, and not used to
    predict one that was left out. Beyond chance is what a recording shows within itself.
    """
    power = float(np.mean(np.concatenate([one.power for one in leftovers])))
    noise = noise_density(leftovers)
    if not (power > 0.0 and noise > 0.0):
        return None, Gain(0.0, 0.0)
    problem = _Problem.of(leftovers, power, noise)
    chosen: tuple[int, ...] = ()
    errors, found = problem.errors(chosen), Gain(0.0, 0.0)
    for count in (1, 2):
        tried = [c for c in combinations(range(len(SECONDS)), count) if problem.possible(c)]
        if not tried:
            break
        best = min(tried, key=problem.square)
        now = problem.errors(best)
        more = gain(leftovers, problem.within(errors), problem.within(now))
        whole = 1.0 - _square(now) / _square(errors)
        if not chosen:
            found = Gain(1.0 - _square(now) / _square(problem.left), more.deviations)
        if more.deviations <= BEYOND_CHANCE or min(whole, found.share) <= LEAST_ERROR_SHARE:
            break
        chosen, errors = best, now
        found = Gain(1.0 - _square(errors) / _square(problem.left), more.deviations)
    if not chosen:
        return None, found
    rest = problem.within(errors)
    known = noise_density([replace(one, left=error) for one, error in zip(
        leftovers, rest, strict=True)])
    return _refined(leftovers, power, known or noise, np.array(SECONDS)[list(chosen)]), found


def _refined(
    leftovers: Sequence[Leftover], power: float, noise: float, seconds: FloatArray
) -> Warming:
    """Return the warming with the best time constants near ``seconds`` (k,) [s], by Gauss-Newton.

    The rise and fall for given time constants are linear; their deviations hold for time constants
    that are fitted, too.
    """
    count, best, reach = len(seconds), np.inf, (0.5 * seconds, 2.0 * seconds)
    law = np.zeros((2, 1 + 2 * count))
    for _ in range(WARM_UP_ROUNDS):
        problem = _Problem.of(
            leftovers, power, noise, (*seconds, *(DERIVATIVE_RATIO * seconds)), law)
        linear = list(range(2 + 2 * count))
        values, _, square = problem.solved(linear)
        more, std, _ = problem.bent(values, count).solved([*linear, *(
            2 + 2 * count + i for i in range(count))])
        fall, fall_std = values[2:], std[2:2 + 2 * count]
        now = Warming(
            frozen(seconds), power, frozen(values[:2]), frozen(-fall.reshape(count, 2).T),
            frozen(std[:2]), frozen(fall_std.reshape(count, 2).T),
            frozen(seconds * std[2 + 2 * count:]))
        if square < best:
            best, found = square, now
        law = np.hstack([now.law, np.zeros((2, count))])  # the power is that of the former
        step = np.clip(more[2 + 2 * count:], -LARGEST_LOG_STEP, LARGEST_LOG_STEP)
        seconds = np.clip(seconds * np.exp(step), *reach)
    return found


def _square(errors: Sequence[FloatArray]) -> float:
    return sum(float(error @ error) for error in errors)


def _columns(chosen: Sequence[int]) -> list[int]:
    """Return the columns of a problem with the ``chosen`` time constants."""
    return [0, 1, *(2 + 2 * c + k for c in chosen for k in (0, 1))]


@dataclass(frozen=True, eq=False)
class _Problem:
    """Least squares for the rise and fall of friction with each of some time constants.

    ``columns`` (N, 2 + 2 s) of every recording: viscous, dry, then both times each warmth;
    ``folds`` (N,) by sample, ``weights`` of the samples of every recording.
    """

    columns: tuple[FloatArray, ...]
    left: tuple[FloatArray, ...]
    weights: tuple[float, ...]
    folds: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(
        cls, leftovers: Sequence[Leftover], power: float, noise: float,
        seconds: Sequence[float] = SECONDS, law: FloatArray | None = None,
    ) -> _Problem:
        columns, state = [], np.zeros(len(seconds))
        for one in leftovers:
            warmth, both = warmth_along(
                one, np.array(seconds), power, state, law), one.friction
            columns.append(np.hstack([both, *(w[:, None] * both for w in warmth.T)]))
        apart = len(leftovers) >= ENOUGH_RECORDINGS
        folds = tuple(np.full(len(one.time), i) if apart else GAIN_FOLDS * i + (
            stretches(one.time, (one.time[-1] - one.time[0]) / GAIN_FOLDS))
            for i, one in enumerate(leftovers))
        weights = tuple(float(np.median(np.diff(one.time))) / noise for one in leftovers)
        return cls(tuple(columns), tuple(one.left for one in leftovers), weights, folds)

    @cached_property
    def grams(self) -> tuple[dict[int, FloatArray], ...]:
        """Products (p + 1, p + 1) of all columns and what is left, by recording and fold."""
        found = []
        for columns, left, folds in zip(self.columns, self.left, self.folds, strict=True):
            tall = np.hstack([columns, left[:, None]])
            found.append({fold: tall[folds == fold].T @ tall[folds == fold]
                          for fold in np.unique(folds).tolist()})
        return tuple(found)

    def bent(self, values: FloatArray, count: int) -> _Problem:
        """Return it with derivatives by the logarithms of ``count`` time constants behind.

        ``values`` (2 + 2 k,) are those without; the warmth of times DERIVATIVE_RATIO as long comes
        second.
        """
        size = 2 + 2 * count
        found = []
        for columns in self.columns:
            slope = (columns[:, size:] - columns[:, 2:size]) * (
                values[2:] / np.log(DERIVATIVE_RATIO))
            found.append(np.hstack([
                columns[:, :size], slope.reshape(len(slope), count, 2).sum(axis=2)]))
        return replace(self, columns=tuple(found))

    def _normal(self, own: Sequence[int], left_out: int | None) -> FloatArray:
        """Return the normal equations (p + 1, p + 1), differences between recordings taken out."""
        chosen = np.ix_([*own, -1], [*own, -1])
        total = np.zeros((len(own) + 1, len(own) + 1))
        for grams, weight in zip(self.grams, self.weights, strict=True):
            used = [gram[chosen] for fold, gram in grams.items() if fold != left_out]
            if used:
                gram = weight * np.sum(used, axis=0)
                between = np.linalg.solve(
                    gram[:2, :2] + np.diag(1.0 / np.square(BETWEEN)), gram[:2, :])
                total += gram - gram[:, :2] @ between
        return total

    def solved(
        self, own: Sequence[int], left_out: int | None = None
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return values and deviations (p,) of the ``own`` columns, and the squared error."""
        normal = self._normal(own, left_out)
        scale = np.sqrt(np.diag(normal)[:-1]).clip(1e-150)
        inverse = np.linalg.pinv(normal[:-1, :-1] / np.outer(scale, scale), rcond=1e-10)
        inverse /= np.outer(scale, scale)
        values = inverse @ normal[:-1, -1]
        return (values, np.sqrt(np.diag(inverse).clip(0.0)),
                float(normal[-1, -1] - values @ normal[:-1, -1]))

    def left_out(self, chosen: tuple[int, ...]) -> dict[int, FloatArray]:
        """Return the values of a fit to all other folds, by fold."""
        own = _columns(chosen)
        return {fold: self.solved(own, fold)[0] for grams in self.grams for fold in grams}

    def errors(self, chosen: tuple[int, ...]) -> list[FloatArray]:
        """Return the errors (N,) of recordings from fits to the folds they are not in."""
        own = _columns(chosen)
        found = [left.copy() for left in self.left]
        for fold, values in self.left_out(chosen).items():
            for error, columns, folds in zip(found, self.columns, self.folds, strict=True):
                error[folds == fold] -= columns[folds == fold][:, own] @ values
        return found

    def square(self, chosen: tuple[int, ...]) -> float:
        """Return the sum of the squares of `errors`."""
        own, by_fold = [*_columns(chosen), -1], self.left_out(chosen)
        total = 0.0
        for grams in self.grams:
            for fold, gram in grams.items():
                values = np.append(by_fold[fold], -1.0)
                total += float(values @ gram[np.ix_(own, own)] @ values)
        return total

    def possible(self, chosen: tuple[int, ...]) -> bool:
        """Return whether friction stays above zero when a joint has moved on for long.

        Viscous friction falls then, for lubricants thin as they warm up.
        """
        values, _, _ = self.solved(_columns(chosen))
        viscous, dry = values[2:].reshape(-1, 2).sum(axis=0)
        return bool(-1.0 < viscous < 0.0 and abs(dry) < 1.0)

    def within(self, errors: Sequence[FloatArray]) -> list[FloatArray]:
        """Return ``errors`` (N,) without what is a steady difference of each recording."""
        return [between_recordings_left_out(columns[:, :2], error, weight) for
                error, columns, weight in zip(errors, self.columns, self.weights, strict=True)]


def between_recordings_left_out(
    friction: FloatArray, error: FloatArray, weight: float
) -> FloatArray:
    """Return the errors (N,) of a recording without a steady difference of its friction (N, 2).

    ``weight`` [1/(N m)^2] of a sample.
    """
    normal = weight * friction.T @ friction + np.diag(1.0 / np.square(BETWEEN))
    return np.asarray(error - friction @ np.linalg.solve(normal, weight * friction.T @ error))


def fit_slow_coefficients(
    leftovers: Sequence[Leftover]
) -> tuple[SlowCoefficients | None, Gain]:
    """Return the drift of coefficients, None where following them is no gain beyond chance."""
    noise = noise_density(leftovers)
    if not noise > 0.0:
        return None, Gain(0.0, 0.0)
    before = [one.left for one in leftovers]
    bare = [replace(one, waves=one.waves[:, :0]) for one in leftovers]
    best, least = min(((None, _square(before)), _friction_drift(bare, noise)),
                      key=lambda one: one[1])
    if leftovers[0].waves.shape[1]:
        best, _ = _best(_ripple_drifts(best, leftovers, noise), leftovers, (best, least))
    if best is None:
        return None, Gain(0.0, 0.0)
    data = leftovers if best.waves else bare
    found = gain(leftovers, before, [left - more for left, more in zip(
        before, best.torque(data), strict=True)])
    return (best if found.counts else None), found


def _best(
    candidates: Iterable[SlowCoefficients], leftovers: Sequence[Leftover],
    best: tuple[SlowCoefficients | None, float],
) -> tuple[SlowCoefficients | None, float]:
    """Return the best of ``best`` and ``candidates``, and its squared error."""
    for candidate in candidates:
        error = _error(candidate, leftovers)
        if error < best[1]:
            best = candidate, error
    return best


def _error(drift: SlowCoefficients, leftovers: Sequence[Leftover]) -> float:
    """Return the squared error [(N m)^2] of the next samples where coefficients are followed."""
    return _square([one.left - more for one, more in zip(
        leftovers, drift.torque(leftovers), strict=True)])


def _friction_drift(
    leftovers: Sequence[Leftover], noise: float
) -> tuple[SlowCoefficients, float]:
    """Return the drift of viscous and dry friction of least squared error, and that error.

    One number is chosen at a time, from the middle on, until none changes.
    """
    choices = VISCOUS, DRY, DRIFTS, SHARES
    errors: dict[tuple[int, ...], float] = {}

    def drift(at: tuple[int, ...]) -> SlowCoefficients:
        viscous, dry, seconds, share = (own[i] for own, i in zip(choices, at, strict=True))
        return SlowCoefficients(viscous, dry, 0.0, seconds, RIPPLE_SECONDS, share * noise)

    def error(at: tuple[int, ...]) -> float:
        if at not in errors:
            errors[at] = _error(drift(at), leftovers)
        return errors[at]

    best: tuple[int, ...] = (1, 1, 1, 1)
    before: tuple[int, ...] = ()
    while best != before:
        before = best
        for k, own in enumerate(choices):
            best = min(((*best[:k], i, *best[k + 1:]) for i in range(len(own))), key=error)
    return drift(best), errors[best]


def _ripple_drifts(
    friction: SlowCoefficients | None, leftovers: Sequence[Leftover], noise: float
) -> Iterator[SlowCoefficients]:
    """Yield the candidates for ripple, beside the drift that was found of friction."""
    known = friction or SlowCoefficients(0.0, 0.0, 0.0, RIPPLE_SECONDS, RIPPLE_SECONDS, noise)
    size = float(np.std(np.concatenate([one.left for one in leftovers])))
    for ripple, share in product(RIPPLES, SHARES):
        yield replace(known, waves=ripple * size, noise=share * noise)


#: rounds of the search for time constants, which begins next to them
REFINING_ROUNDS = 5
#: share of the batches of noise that counts as free, at least
LEAST_FREE = 0.25
#: directions of the parameters with less than this share of the information are left alone
OPEN = 1e-12


@dataclass(frozen=True, eq=False)
class Staying:
    """Base parameters that stay, in the equations of a joint and in those of all others.

    ``columns`` (M, b) of every recording: the regressor of the joint; ``others`` (b + 1, b + 1)
    the products of regressor and leftover of all other joints, over the density of their noise.
    ``weights`` (M,) of every recording are those of the joint's rows in the estimate of the base
    parameters, squared, ``normal`` (b, b) the products of all joints' regressors so weighted.
    """

    columns: tuple[FloatArray, ...]
    others: FloatArray
    weights: tuple[FloatArray, ...]
    normal: FloatArray


@dataclass(frozen=True, eq=False)
class BesideLinks:
    """Friction that warms up, and what base parameters that were fitted without it lack.

    ``change`` (b,) is to be added to these, ``covariance`` (b, b) to theirs.
    """

    warming: Warming
    change: FloatArray
    covariance: FloatArray


def warming_beside_links(
    leftovers: Sequence[Leftover], warming: Warming, staying: Staying
) -> BesideLinks:
    """Return ``warming`` of one joint fitted anew, together with all base parameters.

    Its time constants are refined from those it has, by Gauss-Newton (variable projection would
    give the same: falls and base parameters are linear). The level of friction stays that of the
    base parameters: the rise is the mean fall. Friction that differs from recording to recording
    is fitted beside, as in `fit_warming`.
    Where a fall would be more than all of the friction, the data does not tell it from the rest:
    then ``warming`` stays as it is, and the parameters lack nothing.
    Source: Golub, Pereyra 1973 (separable least squares); Frisch, Waugh 1933 (what a regression
    without some columns lacks).
    """
    count = len(warming.seconds)
    linear = 2 * count
    state, reach = warming, (0.5 * warming.seconds, 2.0 * warming.seconds)
    noise = noise_density(leftovers)
    for rounds_left in reversed(range(REFINING_ROUNDS)):
        tall = _equations(leftovers, state, staying)
        inverse, values = _solved(leftovers, tall, staying.others, noise)
        noise = _noise(leftovers, tall, values, noise)
        fall = values[:linear].reshape(count, 2).T
        if rounds_left:
            step = np.clip(values[linear:linear + count], -LARGEST_LOG_STEP, LARGEST_LOG_STEP)
            seconds = np.clip(state.seconds * np.exp(step), *reach)
            rises, _ = _taken(leftovers, state, staying)
            state = replace(state, seconds=seconds, fall=fall, rise=rises @ values[:linear])
    seconds = state.seconds
    if np.abs(fall).max() > 1.0:
        size = len(staying.normal)
        return BesideLinks(warming, np.zeros(size), np.zeros((size, size)))
    std = np.sqrt(np.diag(inverse)[:linear + count].clip(0.0))
    fall_std = std[:linear].reshape(count, 2).T
    rises, taken = _taken(leftovers, state, staying)
    known = inverse[:linear, :linear]
    rise_std = np.sqrt(np.diag(rises @ known @ rises.T))
    found = Warming(
        frozen(seconds), warming.power, frozen(rises @ values[:linear]), frozen(fall),
        frozen(rise_std), frozen(fall_std), frozen(seconds * std[linear:]))
    return BesideLinks(found, -taken @ values[:linear], taken @ known @ taken.T)


def rescaled(
    warming: Warming, before: Sequence[Leftover], after: Sequence[Leftover]
) -> Warming:
    """Return ``warming`` of the same torque where friction is ``after`` instead of ``before``."""
    old, new = (np.concatenate([one.friction for one in some]) for some in (before, after))
    squares = np.sum(new ** 2, axis=0)
    ratio = np.where(squares > 0.0, np.sum(old * new, axis=0) / np.where(
        squares > 0.0, squares, 1.0), 1.0)
    power = float(np.mean(np.concatenate([one.power for one in after])))
    return replace(
        warming, power=power, rise=frozen(ratio * warming.rise),
        fall=frozen(ratio[:, None] * warming.fall), rise_std=frozen(ratio * warming.rise_std),
        fall_std=frozen(ratio[:, None] * warming.fall_std))


def _step(one: Leftover) -> float:
    return float(np.median(np.diff(one.time)))


def _equations(
    leftovers: Sequence[Leftover], warming: Warming, staying: Staying
) -> list[FloatArray]:
    """Return friction, falls, log. of time constants, parameters and what is left, as columns.

    (M, 2 + p + 1) of every recording; derivatives are those at ``warming``.
    """
    count, found, state = len(warming.seconds), [], np.zeros(2 * len(warming.seconds))
    law = np.hstack([warming.law, np.zeros((2, count))])  # the power is that of the former
    tried = np.concatenate([warming.seconds, DERIVATIVE_RATIO * warming.seconds])
    for one, columns in zip(leftovers, staying.columns, strict=True):
        both, friction = warmth_along(one, tried, warming.power, state, law), one.friction
        falls = [-w[:, None] * friction for w in both[:, :count].T]
        slopes = (both[:, :count] - both[:, count:]) / np.log(DERIVATIVE_RATIO) * (
            friction @ warming.fall)
        found.append(np.hstack([friction, *falls, slopes, columns, one.left[:, None]]))
    return found


def _solved(
    leftovers: Sequence[Leftover], equations: Sequence[FloatArray], others: FloatArray,
    noise: float,
) -> tuple[FloatArray, FloatArray]:
    """Return covariance (p, p) and values (p,); ``others`` are equations of the parameters."""
    total = np.zeros((equations[0].shape[1] - 2,) * 2)
    for one, tall in zip(leftovers, equations, strict=True):
        gram = _step(one) / noise * (tall.T @ tall)
        between = np.linalg.solve(gram[:2, :2] + np.diag(1.0 / np.square(BETWEEN)), gram[:2, 2:])
        total += gram[2:, 2:] - gram[2:, :2] @ between
    total[-len(others):, -len(others):] += others
    covariance = _inverse(total[:-1, :-1])
    return covariance, covariance @ total[:-1, -1]


def _noise(
    leftovers: Sequence[Leftover], equations: Sequence[FloatArray], values: FloatArray,
    noise: float,
) -> float:
    """Return the density [(N m)^2 s] of errors without steady differences of recordings.

    Errors at low frequency, where the density is taken, are as much too small as there are values.
    """
    found = noise_density([replace(one, left=between_recordings_left_out(
        tall[:, :2], tall[:, -1] - tall[:, 2:-1] @ values, _step(one) / noise))
        for one, tall in zip(leftovers, equations, strict=True)])
    batches = sum(float(one.time[-1] - one.time[0]) / NOISE_STRETCH for one in leftovers)
    used = np.any([np.any(tall[:, 2:-1], axis=0) for tall in equations], axis=0)
    fitted = np.count_nonzero(used)
    return found * batches / max(batches - fitted, LEAST_FREE * batches)


def _inverse(normal: FloatArray) -> FloatArray:
    """Return the inverse (p, p) of normal equations; directions that are open get zero."""
    scale = np.sqrt(np.diag(normal)).clip(1e-150)
    return np.asarray(np.linalg.pinv(
        normal / np.outer(scale, scale), rcond=OPEN, hermitian=True) / np.outer(scale, scale))


def _taken(
    leftovers: Sequence[Leftover], warming: Warming, staying: Staying
) -> tuple[FloatArray, FloatArray]:
    """Return the rises (2, 2 k) and what the base parameters take (b, 2 k) of falls of one.

    The rise is that with which the change of friction has none of its level: it is orthogonal to
    viscous and dry friction.
    """
    state, falls = np.zeros(len(warming.seconds)), list[FloatArray]()
    whole, common = np.zeros((2, 2)), np.zeros((2, 2 * len(state)))
    for one, weights in zip(leftovers, staying.weights, strict=True):
        falls.append(np.hstack([w[:, None] * one.friction
                                for w in warming.warmth(one, state).T]))
        weighted = one.friction.T * weights
        whole, common = whole + weighted @ one.friction, common + weighted @ falls[-1]
    rises = _inverse(whole) @ common
    shared = np.zeros((len(staying.normal), rises.shape[1]))
    for one, fall, columns, weights in zip(
            leftovers, falls, staying.columns, staying.weights, strict=True):
        shared += columns.T @ (weights[:, None] * (one.friction @ rises - fall))
    return rises, _inverse(staying.normal) @ shared
