"""Torque ripple of one joint: orders by held-out error and chance, then all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.ripple import (
    SHARES,
    WAVE_COLUMNS,
    TorqueRipple,
    amplitudes,
    wave_columns,
)
from robot_dynid.signals.prepare import MOVING_SHARE
from robot_dynid.types import FloatArray, frozen

#: orders [1/rad] of the scan: below, waves are what links and friction look like
LEAST_ORDER, MOST_ORDER = 20, 4000
#: bins of a turn of the phase, a power of two: a wave of the highest order passes one in one and
#: a half rad
PHASE_BINS = 16384
#: delays [s] that are tried
DELAYS = np.arange(-12.0, 6.1, 0.75) * 1e-3
#: delays of which the sums are transformed at once, side by side in the registers of a core
DELAYS_AT_ONCE = 4
#: orders on either side of one that tell the level of noise there, and which share of them is
#: free of waves and their side lobes
NEIGHBOUR_ORDERS, QUIET_SHARE = 400, 0.25
#: an order this near to a wave is not told from it
RESOLVED = 1.5
#: peaks that a scan returns for their surprise, and for their size
MOST_PEAKS = 5
#: an order that is so many times as likely as another is told from it
UNLIKELIER = 100.0
#: share of the rows that must be slow enough to show an order
SHOWING = 0.05
#: length [s] of the pieces whose gains are compared, and the share of the top speed at which creep
#: ends, for those who make a `JointResidual`
GAIN_PIECE, CREEP_SHARE = 0.2, 0.05


@dataclass(frozen=True, eq=False)
class JointResidual:
    """Residual of a model at one joint, row by row as the effort was measured.

    ``position`` (N,) [rad] as measured in the rows of the effort; ``velocity`` (N,) [rad/s];
    ``effort`` (N,) [N m] as the model predicts it and ``residual`` (N,) [N m], what it leaves;
    ``folds`` (N,) number the recordings or stretches that are left out in turn, ``blocks`` (N,)
    short pieces whose gains are compared. ``slow`` and ``fast`` [rad/s] are those of the
    amplitudes of `TorqueRipple`; ``step`` [s] is the time between two rows.
    """

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    residual: FloatArray
    folds: NDArray[np.int64]
    blocks: NDArray[np.int64]
    slow: float
    fast: float
    step: float

    @cached_property
    def stretches(self) -> tuple[tuple[int, slice], ...]:
        """All rows in order, contiguous in one fold each, after the number of the fold."""
        place = np.unique(self.folds, return_inverse=True)[1]
        first = np.flatnonzero(np.diff(place, prepend=-1)).tolist()
        return tuple((int(place[a]), slice(a, b))
                     for a, b in zip(first, [*first[1:], len(place)], strict=True))

    @cached_property
    def block(self) -> NDArray[np.int64]:
        """The place (N,) of the block of every row among all blocks."""
        return np.unique(self.blocks, return_inverse=True)[1]

    @cached_property
    def shares(self) -> FloatArray:
        """Shares (3, N) of the amplitudes of a wave."""
        return np.ascontiguousarray(amplitudes(self.velocity, self.slow, self.fast).T)

    @cached_property
    def moving(self) -> NDArray[np.int64]:
        """The rows (M,) in which the joint moves.

        While it rests all rows are the same one: what friction holds then looks like many waves.
        """
        speed = np.abs(self.velocity)
        return np.flatnonzero(speed > MOVING_SHARE * speed.max())

    @cached_property
    def highest_order(self) -> float:
        """The highest order [1/rad] that rows show: more than half a wave between two is none.

        SHOWING of the rows must be slow enough for it.
        """
        way = float(np.quantile(np.abs(self.velocity[self.moving]), SHOWING)) * self.step
        return np.pi / max(way, np.pi / MOST_ORDER)

    @cached_property
    def resolved(self) -> float:
        """The distance [1/rad] from which on two orders differ over the range of positions."""
        return max(RESOLVED, 2.0 * np.pi / max(float(np.ptp(self.position)), 1e-9))

    def alias(self, order: float) -> float:
        """Return the order [1/rad] of the slowest wave of equal samples at the usual speed."""
        turn = 2.0 * np.pi / (float(np.median(np.abs(self.velocity[self.moving]))) * self.step)
        return abs(order - turn * round(order / turn))

    def scores(self, residual: FloatArray) -> FloatArray:
        """Return the shares (2, 3, N) times a ``residual`` (N,), and times what is fast in it.

        Slow is what links and friction leave: at an even speed it looks like any wave that turns
        about a whole number of times between two rows. The three are made independent, and of
        equal variance although errors are larger at some speeds than at others, so that sums of
        them along a phase are normal where there is no wave. Source: White, Econometrica 48, 1980,
        section 2 (covariance with errors of unequal variance).
        """
        found = np.zeros((2, *self.shares.shape))
        rows, moved = self.moving, residual[self.moving]
        fast = without_lines(moved, self.block[rows])
        for one, values in zip(found, (moved, fast), strict=True):
            one[:, rows] = self.shares[:, rows] * values
            gram = one @ one.T / 2.0
            whitening = np.linalg.cholesky(
                np.linalg.inv(gram + 1e-9 * np.trace(gram) * np.eye(len(gram))))
            one[:] = whitening.T @ one
        return found


@dataclass(frozen=True)
class Peak:
    """An order [1/rad] that stands out, its delay [s], and the `surprise` that it does.

    ``size`` is its power over that of usual noise.
    """

    order: float
    delay: float
    surprise: float
    size: float


def gear_orders(ratio: float | None) -> FloatArray:
    """Return the orders (K,) [1/rad] of a gear of ``ratio``: multiples of it and of one less.

    The wave generator of a harmonic drive turns ``ratio`` times against its circular spline and
    once less against its flexspline. None: none are known.
    """
    if ratio is None:
        return np.empty(0)
    families = [base * np.arange(1, int(MOST_ORDER / base) + 1)
                for base in (abs(ratio), abs(ratio) - 1.0) if base >= 2.0]
    found = np.unique(np.concatenate([np.empty(0), *families]))
    return np.asarray(found[found >= LEAST_ORDER])


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Powers of a residual over its noise, chi-squared of six where there is nothing else.

    ``power`` (D, K) at DELAYS and ``orders`` (K,) [1/rad], the lesser of those of the residual and
    of what is fast in it; ``level`` (2, K) is the noise of either, of `JointResidual.scores`.
    """

    orders: FloatArray
    power: FloatArray
    level: FloatArray

    @classmethod
    def of(
        cls, data: JointResidual, residual: FloatArray, compliance: float
    ) -> Spectrum:
        """Scan a ``residual`` (N,) [N m] of ``data`` with a compliance [rad/(N m)]."""
        from scipy.fft import rfft

        scores = data.scores(residual)
        weighted = scores.reshape(-1, scores.shape[-1])
        twisted = data.position + compliance * data.effort
        kept = slice(LEAST_ORDER, MOST_ORDER + 1)
        power = np.empty((len(scores), len(DELAYS), MOST_ORDER + 1 - LEAST_ORDER))
        sums = np.empty((DELAYS_AT_ONCE, len(weighted), PHASE_BINS))
        for first in range(0, len(DELAYS), DELAYS_AT_ONCE):
            own = slice(first, first + DELAYS_AT_ONCE)
            for i, delay in enumerate(DELAYS[own]):
                _sum_up(weighted, twisted + delay * data.velocity, sums[i])
            found = rfft(sums[:i + 1])[:, :, kept]
            squares = (found.real**2 + found.imag**2).reshape(len(found), *scores.shape[:2], -1)
            power[:, own] = np.sum(squares, axis=2).swapaxes(0, 1)
        level = np.stack([_level(one) for one in power])
        orders = np.arange(LEAST_ORDER, MOST_ORDER + 1, dtype=np.float64)
        return cls(orders, np.min(power / level[:, None], axis=0), level)

    def peaks(self, known: FloatArray) -> list[Peak]:
        """Return the peaks of the greatest surprise, and the largest of the others that surprise.

        Half of the chances go to ``known`` (F,) orders, the other half to all others.
        """
        found = [*self._known_peaks(known), *self._other_peaks(known)]
        found.sort(key=lambda peak: -peak.surprise)
        large = [peak for peak in found[MOST_PEAKS:] if peak.surprise > 0.0]
        return [*found[:MOST_PEAKS], *sorted(large, key=lambda peak: -peak.size)[:MOST_PEAKS]]

    def _known_peaks(self, known: FloatArray) -> list[Peak]:
        nearest = np.searchsorted(self.orders, np.round(known))
        own = [(order, column) for order, column in zip(known, nearest, strict=True)
               if column < len(self.orders)]
        return [self._peak(float(order), int(column), len(own)) for order, column in own]

    def _other_peaks(self, known: FloatArray) -> list[Peak]:
        best = self.power.max(axis=0)
        if len(known):
            apart = np.abs(self.orders[:, None] - known).min(axis=1)
            best = np.where(apart <= RESOLVED, 0.0, best)
        around = np.stack([np.roll(best, shift) for shift in (-2, -1, 1, 2)]).max(axis=0)
        columns = np.flatnonzero((best >= around) & (best > 0.0))
        ranks = [np.argsort(-one[columns])[:MOST_PEAKS] for one in (best, best * self.level[0])]
        columns = columns[np.unique(np.concatenate(ranks))]
        return [self._peak(float(self.orders[k]), int(k), len(self.orders)) for k in columns]

    def _peak(self, order: float, column: int, rivals: int) -> Peak:
        powers = self.power[:, column]
        most = float(powers.max())
        return Peak(order, float(DELAYS[powers.argmax()]), surprise(most, rivals),
                    most * float(self.level[0, column]))

    def rivals(self, order: float, resolved: float, without: Spectrum) -> FloatArray:
        """Return the orders (r,) [1/rad] nearly as likely as ``order``, the likeliest first.

        Apart from those nearer than ``resolved`` [1/rad]. What is there ``without`` the wave, too,
        is another one.
        """
        best = np.maximum(self.power - without.power, 0.0).max(axis=0)
        near = np.abs(self.orders - order) < resolved
        as_likely = np.where(near, 0.0, best) > best[near].max() - 2.0 * np.log(UNLIKELIER)
        found = np.flatnonzero(as_likely)
        return np.asarray(self.orders[found[np.argsort(-best[found])][:MOST_PEAKS]])

    def surprise_of(
        self, data: JointResidual, alone: FloatArray, wave: tuple[float, float, float],
        known: FloatArray,
    ) -> float:
        """Return the `surprise` at the power of one wave in noise of this level.

        ``alone`` (N,) [N m] is the residual with that wave in it and no other; ``wave`` its order,
        delay and the compliance; ``known`` (F,) as of `peaks`.
        """
        order, delay, compliance = wave
        phase = order * (data.position + compliance * data.effort + delay * data.velocity)
        scores = data.scores(alone)
        power = np.sum((scores @ np.cos(phase))**2 + (scores @ np.sin(phase))**2, axis=1)
        column = int(np.clip(round(order) - LEAST_ORDER, 0, len(self.orders) - 1))
        rivals = len(known) if order in known else len(self.orders)
        return surprise(float(np.min(power / self.level[:, column])), rivals)


def without_lines(values: FloatArray, block: NDArray[np.int64]) -> FloatArray:
    """Return ``values`` (N,) less the straight line through those of each ``block`` (N,)."""
    place = np.unique(block, return_inverse=True)[1]
    count = np.bincount(place)
    along = np.arange(len(values)) - np.repeat(np.cumsum(count) - 0.5 * count - 0.5, count)
    slope = np.bincount(place, along * values) / np.maximum(np.bincount(place, along**2), 1e-12)
    return np.asarray(values - (np.bincount(place, values) / count)[place] - slope[place] * along)


def surprise(power: float, rivals: int) -> float:
    """Return -log of how likely the largest of ``rivals`` orders has this power by chance.

    By Bonferroni's bound over all delays, which may exceed one; twice, for gears and all others.
    The tail of chi-squared of six is exp(-h) (1 + h + h^2 / 2), h half of the power.
    """
    half = 0.5 * power
    return float(half - np.log1p(half + 0.5 * half**2) - np.log(2.0 * rivals * len(DELAYS)))


def _sum_up(weighted: FloatArray, angle: FloatArray, sums: FloatArray) -> None:
    """Set ``sums`` (s, PHASE_BINS) of rows ``weighted`` (s, N) by bins of ``angle`` (N,) [rad]."""
    turns = angle / (2.0 * np.pi)
    bins = ((turns - np.floor(turns)) * PHASE_BINS).astype(np.int64) & (PHASE_BINS - 1)
    for own, column in zip(sums, weighted, strict=True):
        own[:] = np.bincount(bins, column, PHASE_BINS)


def _level(power: FloatArray) -> FloatArray:
    """Return the noise (K,) of power (D, K): of the quiet orders around, as it is not white."""
    from scipy.ndimage import percentile_filter
    from scipy.special import chdtri

    usual = percentile_filter(np.median(power, axis=0), 100.0 * QUIET_SHARE,
                              2 * NEIGHBOUR_ORDERS + 1, mode='nearest')
    return np.maximum(usual / chdtri(WAVE_COLUMNS, 1.0 - QUIET_SHARE), np.finfo(float).tiny)


#: ridge of the coefficients, as a share of the rows; shares of amplitudes may be alike
COEFFICIENT_RIDGE = 1e-4


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Columns (N, k) and their products with each other and the residual of ``data``, by fold.

    ``grams`` (f, k, k), ``sides`` (f, k).
    """

    data: JointResidual
    columns: FloatArray
    grams: FloatArray
    sides: FloatArray

    @classmethod
    def of(cls, data: JointResidual, columns: FloatArray) -> NormalEquations:
        """Return those of ``columns`` (N, k)."""
        folds, count = 1 + max(fold for fold, _ in data.stretches), columns.shape[1]
        grams, sides = np.zeros((folds, count, count)), np.zeros((folds, count))
        for fold, rows in data.stretches:
            grams[fold] += columns[rows].T @ columns[rows]
            sides[fold] += columns[rows].T @ data.residual[rows]
        return cls(data, columns, grams, sides)

    def solved(self) -> FloatArray:
        """Return the coefficients (k,) of all rows."""
        return np.asarray(np.linalg.solve(
            ridged(self.grams.sum(axis=0)), self.sides.sum(axis=0)))

    def left(self) -> FloatArray:
        """Return the errors (N,) [N m] of the coefficients of all rows."""
        return np.asarray(self.data.residual - self.columns @ self.solved())

    def held_out(self) -> FloatArray:
        """Return the errors (N,) [N m] of every fold by coefficients of the others."""
        errors = self.data.residual.copy()
        others = np.linalg.solve(ridged(self.grams.sum(axis=0) - self.grams),
                                 (self.sides.sum(axis=0) - self.sides)[..., None])[..., 0]
        for fold, rows in self.data.stretches:
            errors[rows] -= self.columns[rows] @ others[fold]
        return errors


def ridged(grams: FloatArray) -> FloatArray:
    """Return Gram matrices (..., k, k) with the ridge of the coefficients."""
    one = np.eye(grams.shape[-1])
    return np.asarray(grams * (1.0 + COEFFICIENT_RIDGE * one) + 1e-12 * one)


#: delays [s] are sought between minus and plus this
LONGEST_DELAY = 20e-3
#: steps of the search, and the change of the sum of squares that ends it
WAVE_STEPS, SQUARES_SETTLED = 12, 1e-5


@dataclass(frozen=True, eq=False)
class Phases:
    """Parameters of the phases of torque ripple: ``orders``, ``delays`` (w,), ``compliance``.

    As of `TorqueRipple`; ``delay_std`` (w,) [s] and ``compliance_std`` [rad/(N m)] once fitted.
    """

    orders: FloatArray
    delays: FloatArray
    compliance: float
    delay_std: FloatArray
    compliance_std: float = 0.0

    @classmethod
    def none(cls, compliance: float) -> Phases:
        """Return no wave at all."""
        return cls(np.empty(0), np.empty(0), compliance, np.empty(0))

    def with_wave(self, order: float, delay: float) -> Phases:
        """Return one wave more."""
        return Phases(np.append(self.orders, order), np.append(self.delays, delay),
                      self.compliance, np.append(self.delay_std, 0.0))

    def without(self, k: int) -> Phases:
        """Return all waves but that of index ``k``."""
        return Phases(np.delete(self.orders, k), np.delete(self.delays, k), self.compliance,
                      np.delete(self.delay_std, k), self.compliance_std)

    def ripple(self, data: JointResidual) -> TorqueRipple:
        """Return the ripple with the coefficients of the fit."""
        found = NormalEquations.of(data, self.columns(data)).solved()
        return TorqueRipple(frozen(self.orders), frozen(self.delays), self.compliance, data.slow,
                            data.fast, frozen(found))

    def columns(self, data: JointResidual) -> FloatArray:
        """Return the columns (N, 6 w) of the coefficients."""
        twisted = data.position + self.compliance * data.effort
        return wave_columns(self.orders[:, None] * (
            twisted + self.delays[:, None] * data.velocity), data.shares)


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients (k,) of the least squares of ``columns``, which have the ridged ``gram``."""

    data: JointResidual
    orders: FloatArray
    columns: FloatArray
    gram: FloatArray
    coefficients: FloatArray

    @classmethod
    def of(cls, phases: Phases, data: JointResidual) -> Fit:
        """Fit the coefficients of waves to the residual."""
        columns = phases.columns(data)
        gram = ridged(columns.T @ columns)
        return cls(data, phases.orders, columns, gram,
                   np.asarray(np.linalg.solve(gram, columns.T @ data.residual)))

    def left(self) -> FloatArray:
        """Return the errors (N,) [N m] of the fit."""
        return np.asarray(self.data.residual - self.columns @ self.coefficients)

    def of_wave(self, k: int) -> FloatArray:
        """Return the torque (N,) [N m] of one wave."""
        own = slice(WAVE_COLUMNS * k, WAVE_COLUMNS * (k + 1))
        return np.asarray(self.columns[:, own] @ self.coefficients[own])

    def beside(self, values: FloatArray) -> FloatArray:
        """Return the errors (N, m) of the least squares of the columns for ``values`` (N, m)."""
        return np.asarray(values - self.columns @ np.linalg.solve(
            self.gram, self.columns.T @ values))

    def slopes(self) -> FloatArray:
        """Return the derivatives (N, w) of the torque by position, wave by wave."""
        sine, cosine = np.moveaxis(self.columns.T.reshape(-1, SHARES, 2, len(self.columns)), 2, 0)
        by_sine, by_cosine = np.moveaxis(self.coefficients.reshape(-1, SHARES, 2), 2, 0)
        return np.asarray(self.orders * (np.einsum('wsn,ws->nw', cosine, by_sine)
                                         - np.einsum('wsn,ws->nw', sine, by_cosine)))

    def by_phases(self, slopes: FloatArray) -> FloatArray:
        """Return the derivatives (N, w + 1) of the torque by the delays and the compliance.

        ``slopes`` (N, w) are those by position.
        """
        twist = slopes.sum(axis=1) * self.data.effort
        return np.column_stack([slopes * self.data.velocity[:, None], twist])


def refined(phases: Phases, data: JointResidual, twists: bool) -> Phases:
    """Return the phases of the least sum of squares near ``phases``, with their deviations.

    ``twists``: whether the compliance is sought, too; otherwise it is zero. The Jacobian is that
    of Kaufman (BIT 15, 1975) for variable projection; deviations are those of a sandwich over
    blocks.
    """
    from scipy.optimize import least_squares

    count = len(phases.orders)
    speed, torque = (float(np.sqrt(np.mean(x**2))) for x in (data.velocity, data.effort))
    scale = 1.0 / np.append(phases.orders * speed, np.max(phases.orders) * max(torque, 1e-9))
    bound = np.append(np.full(count, LONGEST_DELAY), np.inf)
    begin = np.append(phases.delays, phases.compliance if twists else 0.0)
    free = np.arange(count + twists)

    def at(values: FloatArray) -> Phases:
        whole = np.zeros(count + 1)
        whole[free] = values * scale[free]
        return replace(phases, delays=whole[:count], compliance=float(whole[count]))

    kept: dict[bytes, Fit] = {}

    def fit(values: FloatArray) -> Fit:
        """Return the fit; slopes are asked for where the residual just was."""
        key = values.tobytes()
        if key not in kept:
            kept.clear()
            kept[key] = Fit.of(at(values), data)
        return kept[key]

    def left(values: FloatArray) -> FloatArray:
        return fit(values).left()

    def slopes(values: FloatArray) -> FloatArray:
        found = fit(values)
        by_phase = found.by_phases(found.slopes())[:, free] * scale[free]
        return -found.beside(by_phase)

    found = least_squares(
        left, np.clip(begin[free], -bound[free], bound[free]) / scale[free], slopes,
        bounds=(-bound[free] / scale[free], bound[free] / scale[free]), max_nfev=WAVE_STEPS,
        ftol=SQUARES_SETTLED, xtol=SQUARES_SETTLED)
    std = np.zeros(count + 1)
    std[free] = scale[free] * _deviations(np.asarray(found.jac), found.fun, data)
    return replace(at(found.x), delay_std=std[:count], compliance_std=float(std[count]))


def compliance_of_load(phases: Phases, data: JointResidual) -> tuple[float, float]:
    """Return the compliance [rad/(N m)] that the load shows, and its deviation.

    A phase that differs with the direction of motion, wave by wave, is left to other causes:
    where the effort is mostly friction, it looks like compliance. One step of Gauss and Newton
    beside `refined`, with the directions as further parameters.
    """
    fit = Fit.of(phases, data)
    slopes = fit.slopes()
    direction = np.tanh(data.velocity / data.slow)[:, None] * slopes
    by_phase = fit.by_phases(slopes)
    whole = np.column_stack([by_phase, direction])
    whole /= np.maximum(np.linalg.norm(whole, axis=0), 1e-300)
    whole, left = fit.beside(whole), fit.left()
    step = np.linalg.lstsq(whole, left, rcond=1e-6)[0]
    twist = len(phases.orders)
    scale = 1.0 / np.linalg.norm(by_phase[:, twist])
    deviation = _deviations(whole, left - whole @ step, data)[twist]
    return phases.compliance + float(scale * step[twist]), float(scale * deviation)


def _deviations(slopes: FloatArray, left: FloatArray, data: JointResidual) -> FloatArray:
    """Return deviations (k,) of parameters with ``slopes`` (N, k) from what is ``left`` (N,)."""
    scores = np.stack([np.bincount(data.block, column * left) for column in slopes.T])
    bread = np.linalg.pinv(slopes.T @ slopes)
    return np.sqrt(np.diag(bread @ (scores @ scores.T) @ bread))


MOST_WAVES = 10
#: candidates of a scan that are tried beside the waves there are, before it ends
TRIED = 3
#: a wave must remove this share of the held-out variance, by so many deviations of its gain
LEAST_GAIN, WAVE_DEVIATIONS = 2e-3, 2.0
#: all of them together by so many
SURE_TOGETHER = 3.0
#: and each must be this unlikely by chance among all orders and delays
UNLIKELY = 1e-3
#: first waves, after each of which delays and compliance are fitted for the scans that follow
REFITTED_WAVES = 2
#: orders beside that of a scan that are tried then
NEIGHBOURS = (-2.0, -1.0, 0.0, 1.0, 2.0)
#: deviations from zero from which on a compliance is used
TWISTED = 4.0
#: gears twist by less than this [rad, m], the root mean square
MOST_TWIST = 4e-3
#: compliances that the first scan tries, in shares of a turn of the phase of this order
FIRST_TWISTS, TWIST_ORDER = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), 1000.0
#: a joint is loaded, so that a first scan tries them, from a spread [N m] of its effort on
LOADED_SPREAD = 10.0


@dataclass(frozen=True)
class Wave:
    """One wave of torque ripple as it was found.

    ``order`` [1/rad]; ``amplitude`` [N m], its root mean square over the recordings; ``delay``
    [s] and its deviation; ``chance`` that noise alone gives such a wave. ``aliases`` are orders
    [1/rad] that explain the same rows about as well.
    """

    order: float
    amplitude: float
    delay: float
    delay_std: float
    chance: float
    aliases: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class RippleFit:
    """Torque ripple of a joint, or None; ``waves`` as found.

    ``aliased`` waves are there, but the recordings do not show their orders: they are not used.
    ``before`` and ``after`` [N m] are the root mean squares of stretches left out in turn without
    and with it. ``compliance`` [rad/(N m)] and its deviation are those that the load shows, see
    `compliance_of_load`; zero where the phase shows none.
    """

    ripple: TorqueRipple | None
    waves: tuple[Wave, ...]
    before: float
    after: float
    compliance: float = 0.0
    compliance_std: float = 0.0
    aliased: tuple[Wave, ...] = ()


def fit_ripple(data: JointResidual, ratio: float | None = None) -> RippleFit:
    """Return the torque ripple in a residual, None where it shows none beyond chance.

    ``ratio`` of the gear where it is known: its orders are looked at first.
    """
    known = gear_orders(ratio)
    before = float(np.sqrt(np.mean(data.residual**2)))
    phases = _chosen(data, known)
    chances: list[float] = []
    while len(phases.orders):
        phases = _fitted(phases, data)
        fit = Fit.of(phases, data)
        left = Spectrum.of(data, fit.left(), phases.compliance)
        chances = _chances(phases, fit, left, known)
        worst = int(np.argmax(chances))
        if chances[worst] <= UNLIKELY:
            break
        phases = phases.without(worst)
    if not len(phases.orders):
        return RippleFit(None, (), before, before)
    waves = _waves(phases, data, chances, _aliases(phases, fit, left, known))
    for wave in waves:
        if wave.aliases:
            phases = phases.without(int(np.argmin(np.abs(phases.orders - wave.order))))
    aliased = tuple(wave for wave in waves if wave.aliases)
    nothing = RippleFit(None, (), before, before, aliased=aliased)
    if not len(phases.orders):
        return nothing
    errors = NormalEquations.of(data, phases.columns(data)).held_out()
    if not _better(data.residual, errors, data, SURE_TOGETHER):
        return nothing
    after = float(np.sqrt(np.mean(errors**2)))
    twist = compliance_of_load(phases, data) if phases.compliance else (0.0, 0.0)
    return RippleFit(phases.ripple(data), tuple(wave for wave in waves if not wave.aliases),
                     before, after, *twist, aliased)


def _chosen(data: JointResidual, known: FloatArray) -> Phases:
    """Return the waves that lower the held-out error one after the other.

    A wave that only follows the errors of the effort, through the twist of a compliance, stands
    out, too, but lowers nothing; then the scan begins with a stiff gear.
    """
    scans = _first_scans(data)
    first = max(scans, key=lambda c: float(scans[c].power.max()))
    phases = _chosen_from(Phases.none(first), data, known, scans[first])
    if first == 0.0 or len(phases.orders):
        return phases
    return _chosen_from(Phases.none(0.0), data, known, scans[0.0])


def _chosen_from(
    phases: Phases, data: JointResidual, known: FloatArray, spectrum: Spectrum
) -> Phases:
    """Return ``phases`` with waves that lower the error; ``spectrum`` is that of the residual."""
    error = left = data.residual
    equations = NormalEquations.of(data, phases.columns(data))
    while len(phases.orders) < MOST_WAVES:
        if left is not data.residual:
            spectrum = Spectrum.of(data, left, phases.compliance)
        peaks = [p for p in spectrum.peaks(known) if _apart(p.order, phases, known)]
        for peak in _by_error(peaks, phases, data, left)[:TRIED]:
            more = NormalEquations.of(
                data, phases.with_wave(peak.order, peak.delay).columns(data))
            now = more.held_out()
            if _better(error, now, data):
                break
        else:
            return phases
        phases, equations, error = phases.with_wave(peak.order, peak.delay), more, now
        if len(phases.orders) <= REFITTED_WAVES:
            phases = _settled(phases, data, known)
            equations = NormalEquations.of(data, phases.columns(data))
            error = equations.held_out()
        left = equations.left()
    return phases


def _apart(order: float, phases: Phases, known: FloatArray) -> bool:
    """Return whether an order is not one of the waves, nor too near to one to be told from it."""
    distance = np.abs(phases.orders - order)
    return not np.any(distance < (1e-9 if order in known else RESOLVED))


def _by_error(
    peaks: Sequence[Peak], phases: Phases, data: JointResidual, left: FloatArray
) -> list[Peak]:
    """Return the peaks by the held-out error of one wave by itself in what is ``left`` (N,)."""
    rest, none = replace(data, residual=left), Phases.none(phases.compliance)
    errors = [NormalEquations.of(rest, none.with_wave(one.order, one.delay).columns(rest))
              .held_out() for one in peaks]
    return [peaks[k] for k in np.argsort([error @ error for error in errors], kind='stable')]


def _first_scans(data: JointResidual) -> dict[float, Spectrum]:
    """Return scans by compliance [rad/(N m)]; with the best of them one wave stands out most."""
    spread = float(np.std(data.effort))
    twists = FIRST_TWISTS if spread >= LOADED_SPREAD else (0.0,)
    tried = [twist / (TWIST_ORDER * max(spread, 1e-9)) for twist in twists]
    return {c: Spectrum.of(data, data.residual, c) for c in tried}


def _better(
    before: FloatArray, after: FloatArray, data: JointResidual, sure: float = WAVE_DEVIATIONS
) -> bool:
    """Return whether held-out errors (N,) fell by enough, and by ``sure`` deviations of that.

    The latter without the mean error of each block, which is slow: friction and links, of which
    the products with the waves are no gain, but may look like one.
    """
    blocks = data.block
    count = np.bincount(blocks)

    def squares(errors: FloatArray) -> FloatArray:
        mean = np.bincount(blocks, errors) / count
        return np.asarray(np.bincount(blocks, (errors - mean[blocks])**2))

    gains = squares(before) - squares(after)
    total = float(np.sum(before**2) - np.sum(after**2))
    return total > LEAST_GAIN * float(np.sum(data.residual**2)) and \
        float(gains.sum()) > sure * float(np.std(gains)) * np.sqrt(len(gains))


def _fitted(phases: Phases, data: JointResidual) -> Phases:
    """Return the phases of the least squares; the compliance where it is there beyond doubt."""
    twisted = refined(phases, data, twists=True)
    twist = twisted.compliance * float(np.sqrt(np.mean(data.effort**2)))
    if TWISTED * twisted.compliance_std < twisted.compliance and twist < MOST_TWIST:
        return twisted
    return refined(phases, data, twists=False)


def _settled(phases: Phases, data: JointResidual, known: FloatArray) -> Phases:
    """Return fitted phases, the last wave of the order, of those near, that fits best.

    The load of a joint changes with its position, so that a scan with a compliance that is off a
    little sees an order that is off a little.
    """
    order = phases.orders[-1]
    if order in known:
        return _fitted(phases, data)
    tried = [_fitted(replace(phases, orders=np.append(phases.orders[:-1], order + shift)), data)
             for shift in NEIGHBOURS]
    return min(tried, key=lambda one: float(np.sum(Fit.of(one, data).left()**2)))


def _chances(
    phases: Phases, fit: Fit, left: Spectrum, known: FloatArray
) -> list[float]:
    """Return for each wave the probability of its power in what is ``left`` without all."""
    errors, found = fit.left(), []
    for k, (order, delay) in enumerate(zip(phases.orders, phases.delays, strict=True)):
        alone = errors + fit.of_wave(k)
        wave = float(order), float(delay), phases.compliance
        found.append(float(np.exp(-max(0.0, left.surprise_of(fit.data, alone, wave, known)))))
    return found


def _aliases(
    phases: Phases, fit: Fit, left: Spectrum, known: FloatArray
) -> list[tuple[float, ...]]:
    """Return for each wave the orders [1/rad] that explain nearly as much, none where it is told.

    An order that rows hardly show has that of equal samples. Orders of a gear, ``known`` (F,), are
    told from others beforehand.
    """
    data, errors = fit.data, fit.left()
    found: list[tuple[float, ...]] = []
    for k, order in enumerate(phases.orders):
        if order > data.highest_order:
            found.append((data.alias(float(order)),))
            continue
        rivals = np.empty(0)
        if order not in known:
            alone = Spectrum.of(data, errors + fit.of_wave(k), phases.compliance)
            rivals = alone.rivals(float(order), data.resolved, left)
        found.append(tuple(rivals.tolist()))
    return found


def _waves(
    phases: Phases, data: JointResidual, chances: list[float], aliases: list[tuple[float, ...]]
) -> tuple[Wave, ...]:
    """Return the waves as they are reported, the largest first."""
    shares = amplitudes(data.velocity, data.slow, data.fast)
    coefficients = phases.ripple(data).coefficients.reshape(-1, SHARES, 2)
    power = np.mean(np.sum(np.einsum('ns,wsc->nwc', shares, coefficients)**2, axis=2), axis=0)
    found = [Wave(float(order), float(size), float(delay), float(std), chance, same)
             for order, size, delay, std, chance, same in zip(
                 phases.orders, np.sqrt(power), phases.delays, phases.delay_std, chances, aliases,
                 strict=True)]
    return tuple(sorted(found, key=lambda wave: -wave.amplitude))
