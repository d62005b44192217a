"""Search for the torque ripple of one joint: orders by held-out error and chance, then one fit."""

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

#: orders [1/rad] of the scan: lower waves look like links and friction
LEAST_ORDER, MAX_ORDER = 20, 4000
#: bins of a turn of the phase, a power of two: a wave of the highest order advances 1.5 rad per
#: bin
PHASE_BINS = 16384
#: delays [s] tried
DELAYS = np.arange(-12.0, 6.1, 0.75) * 1e-3
#: delays whose sums are transformed at once, side by side in the registers of a core
DELAYS_AT_ONCE = 4
#: orders on either side that determine the noise level, and the share of them without waves and
#: side lobes
NEIGHBOUR_ORDERS, QUIET_SHARE = 400, 0.25
#: distance [1/rad] below which an order is not distinguished from a wave
RESOLVED = 1.5
#: peaks that a scan returns for their surprise, and for their size
MAX_PEAKS = 5
#: likelihood ratio above which two orders are distinguished
UNLIKELIER = 100.0
#: share of the rows that must be slow enough to show an order
SHOWING = 0.05
#: length [s] of the pieces whose gains are compared, and the share of the top speed at which creep
#: ends, for callers that build a `JointResidual`
GAIN_PIECE, CREEP_SHARE = 0.2, 0.05


@dataclass(frozen=True, eq=False)
class JointResidual:
    """Residual of a model at one joint, row by row as the effort was measured.

    ``position`` (N,) [rad] as measured in the rows of the effort; ``velocity`` (N,) [rad/s];
    ``effort`` (N,) [N m] predicted by the model and ``residual`` (N,) [N m]; ``folds`` (N,) number
    the recordings or stretches held out in turn, ``blocks`` (N,) short pieces whose gains are
    compared. ``slow`` and ``fast`` [rad/s] are those of the amplitudes of `TorqueRipple`; ``step``
    [s] is the time between two rows.
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
        """All rows in order, contiguous in one fold each, with the number of the fold."""
        place = np.unique(self.folds, return_inverse=True)[1]
        first = np.flatnonzero(np.diff(place, prepend=-1)).tolist()
        return tuple((int(place[a]), slice(a, b))
                     for a, b in zip(first, [*first[1:], len(place)], strict=True))

    @cached_property
    def block(self) -> NDArray[np.int64]:
        """The index (N,) of the block of every row."""
        return np.unique(self.blocks, return_inverse=True)[1]

    @cached_property
    def shares(self) -> FloatArray:
        """Shares (3, N) of the amplitudes of a wave."""
        return np.ascontiguousarray(amplitudes(self.velocity, self.slow, self.fast).T)

    @cached_property
    def moving(self) -> NDArray[np.int64]:
        """The rows (M,) in which the joint moves.

        At rest all rows are equal, and static friction looks like many waves.
        """
        speed = np.abs(self.velocity)
        return np.flatnonzero(speed > MOVING_SHARE * speed.max())

    @cached_property
    def highest_order(self) -> float:
        """The highest order [1/rad] that rows show: at most half a wave between two rows.

        SHOWING of the rows must be slow enough for it.
        """
        way = float(np.quantile(np.abs(self.velocity[self.moving]), SHOWING)) * self.step
        return np.pi / max(way, np.pi / MAX_ORDER)

    @cached_property
    def resolved(self) -> float:
        """The distance [1/rad] from which two orders differ over the range of positions."""
        return max(RESOLVED, 2.0 * np.pi / max(float(np.ptp(self.position)), 1e-9))

    def alias(self, order: float) -> float:
        """Return the alias [1/rad] with the slowest wave at equal samples and median speed."""
        turn = 2.0 * np.pi / (float(np.median(np.abs(self.velocity[self.moving]))) * self.step)
        return abs(order - turn * round(order / turn))

    def scores(self, residual: FloatArray) -> FloatArray:
        """Return the shares (2, 3, N) times a ``residual`` (N,), and times its fast part.

        Slow is what links and friction leave: at constant speed it looks like any wave with nearly
        a whole number of turns between two rows. The three are made independent and of equal
        variance although errors depend on speed, so that their sums along a phase are normal
        without a wave. Source: White, Econometrica 48, 1980, section 2 (heteroscedastic
        covariance).
        """
        scores = np.zeros((2, *self.shares.shape))
        rows, moved = self.moving, residual[self.moving]
        fast = remove_trends(moved, self.block[rows])
        for one, values in zip(scores, (moved, fast), strict=True):
            one[:, rows] = self.shares[:, rows] * values
            gram = one @ one.T / 2.0
            whitening = np.linalg.cholesky(
                np.linalg.inv(gram + 1e-9 * np.trace(gram) * np.eye(len(gram))))
            one[:] = whitening.T @ one
        return scores


@dataclass(frozen=True)
class Peak:
    """An order [1/rad] that stands out, its delay [s], and its `surprise`.

    ``size`` is its power relative to the noise.
    """

    order: float
    delay: float
    surprise: float
    size: float


def gear_orders(ratio: float | None) -> FloatArray:
    """Return the orders (K,) [1/rad] of a gear of ``ratio``: multiples of it and of one less.

    The wave generator of a harmonic drive turns ``ratio`` times against its circular spline and
    once less against its flexspline. Empty if None.
    """
    if ratio is None:
        return np.empty(0)
    families = [base * np.arange(1, int(MAX_ORDER / base) + 1)
                for base in (abs(ratio), abs(ratio) - 1.0) if base >= 2.0]
    orders = np.unique(np.concatenate([np.empty(0), *families]))
    return np.asarray(orders[orders >= LEAST_ORDER])


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Powers of a residual over its noise, chi-squared of six without a wave.

    ``power`` (D, K) at DELAYS and ``orders`` (K,) [1/rad], the lesser of those of the residual and
    of its fast part; ``level`` (2, K) is the noise of either, of `JointResidual.scores`.
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
        scanned = slice(LEAST_ORDER, MAX_ORDER + 1)
        power = np.empty((len(scores), len(DELAYS), MAX_ORDER + 1 - LEAST_ORDER))
        sums = np.empty((DELAYS_AT_ONCE, len(weighted), PHASE_BINS))
        for first in range(0, len(DELAYS), DELAYS_AT_ONCE):
            group = slice(first, first + DELAYS_AT_ONCE)
            for i, delay in enumerate(DELAYS[group]):
                _sum_bins(weighted, twisted + delay * data.velocity, sums[i])
            waves = rfft(sums[:i + 1])[:, :, scanned]
            squares = (waves.real**2 + waves.imag**2).reshape(len(waves), *scores.shape[:2], -1)
            power[:, group] = np.sum(squares, axis=2).swapaxes(0, 1)
        level = np.stack([_level(one) for one in power])
        orders = np.arange(LEAST_ORDER, MAX_ORDER + 1, dtype=np.float64)
        return cls(orders, np.min(power / level[:, None], axis=0), level)

    def peaks(self, gear: FloatArray) -> list[Peak]:
        """Return the peaks of the greatest surprise, and the largest of the others.

        Half of the prior probability goes to ``gear`` (F,) orders, the other half to all others.
        """
        peaks = [*self._gear_peaks(gear), *self._other_peaks(gear)]
        peaks.sort(key=lambda peak: -peak.surprise)
        large = [peak for peak in peaks[MAX_PEAKS:] if peak.surprise > 0.0]
        return [*peaks[:MAX_PEAKS], *sorted(large, key=lambda peak: -peak.size)[:MAX_PEAKS]]

    def _gear_peaks(self, gear: FloatArray) -> list[Peak]:
        nearest = np.searchsorted(self.orders, np.round(gear))
        scanned = [(order, column) for order, column in zip(gear, nearest, strict=True)
                   if column < len(self.orders)]
        return [self._peak(float(order), int(column), len(scanned)) for order, column in scanned]

    def _other_peaks(self, gear: FloatArray) -> list[Peak]:
        best = self.power.max(axis=0)
        if len(gear):
            apart = np.abs(self.orders[:, None] - gear).min(axis=1)
            best = np.where(apart <= RESOLVED, 0.0, best)
        around = np.stack([np.roll(best, shift) for shift in (-2, -1, 1, 2)]).max(axis=0)
        columns = np.flatnonzero((best >= around) & (best > 0.0))
        ranks = [np.argsort(-one[columns])[:MAX_PEAKS] for one in (best, best * self.level[0])]
        columns = columns[np.unique(np.concatenate(ranks))]
        return [self._peak(float(self.orders[k]), int(k), len(self.orders)) for k in columns]

    def _peak(self, order: float, column: int, rivals: int) -> Peak:
        powers = self.power[:, column]
        largest = float(powers.max())
        return Peak(order, float(DELAYS[powers.argmax()]), surprise(largest, rivals),
                    largest * float(self.level[0, column]))

    def rivals(self, order: float, resolved: float, without: Spectrum) -> FloatArray:
        """Return the orders (r,) [1/rad] nearly as likely as ``order``, the likeliest first.

        Except those closer than ``resolved`` [1/rad]. Power that is also there ``without`` the
        wave belongs to another one.
        """
        best = np.maximum(self.power - without.power, 0.0).max(axis=0)
        near = np.abs(self.orders - order) < resolved
        as_likely = np.where(near, 0.0, best) > best[near].max() - 2.0 * np.log(UNLIKELIER)
        candidates = np.flatnonzero(as_likely)
        return np.asarray(self.orders[candidates[np.argsort(-best[candidates])][:MAX_PEAKS]])

    def surprise_of(
        self, data: JointResidual, alone: FloatArray, wave: tuple[float, float, float],
        gear: FloatArray,
    ) -> float:
        """Return the `surprise` of the power of one wave at this noise level.

        ``alone`` (N,) [N m] is the residual plus that wave; ``wave`` its order, delay and the
        compliance; ``gear`` (F,) as in `peaks`.
        """
        order, delay, compliance = wave
        phase = order * (data.position + compliance * data.effort + delay * data.velocity)
        scores = data.scores(alone)
        power = np.sum((scores @ np.cos(phase))**2 + (scores @ np.sin(phase))**2, axis=1)
        column = int(np.clip(round(order) - LEAST_ORDER, 0, len(self.orders) - 1))
        rivals = len(gear) if order in gear else len(self.orders)
        return surprise(float(np.min(power / self.level[:, column])), rivals)


def remove_trends(values: FloatArray, block: NDArray[np.int64]) -> FloatArray:
    """Return ``values`` (N,) less the straight line through those of each ``block`` (N,)."""
    place = np.unique(block, return_inverse=True)[1]
    count = np.bincount(place)
    along = np.arange(len(values)) - np.repeat(np.cumsum(count) - 0.5 * count - 0.5, count)
    slope = np.bincount(place, along * values) / np.maximum(np.bincount(place, along**2), 1e-12)
    return np.asarray(values - (np.bincount(place, values) / count)[place] - slope[place] * along)


def surprise(power: float, rivals: int) -> float:
    """Return the negative log probability that the largest of ``rivals`` orders has this power.

    By Bonferroni's bound over all delays, which may exceed one; twice, for gears and all others.
    The tail of chi-squared of six is exp(-h) (1 + h + h^2 / 2), h half of the power.
    """
    half = 0.5 * power
    return float(half - np.log1p(half + 0.5 * half**2) - np.log(2.0 * rivals * len(DELAYS)))


def _sum_bins(weighted: FloatArray, angle: FloatArray, sums: FloatArray) -> None:
    """Set ``sums`` (s, PHASE_BINS) of rows ``weighted`` (s, N) by bins of ``angle`` (N,) [rad]."""
    turns = angle / (2.0 * np.pi)
    bins = ((turns - np.floor(turns)) * PHASE_BINS).astype(np.int64) & (PHASE_BINS - 1)
    for row, column in zip(sums, weighted, strict=True):
        row[:] = np.bincount(bins, column, PHASE_BINS)


def _level(power: FloatArray) -> FloatArray:
    """Return the noise (K,) of power (D, K) from the quiet orders around, because it is not white.
"""
    from scipy.ndimage import percentile_filter
    from scipy.special import chdtri

    usual = percentile_filter(np.median(power, axis=0), 100.0 * QUIET_SHARE,
                              2 * NEIGHBOUR_ORDERS + 1, mode='nearest')
    return np.maximum(usual / chdtri(WAVE_COLUMNS, 1.0 - QUIET_SHARE), np.finfo(float).tiny)


#: ridge of the coefficients, as a share of the rows, because shares of amplitudes may coincide
COEFFICIENT_RIDGE = 1e-4


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Columns (N, k), and their products with each other and the residual of ``data``, by fold.

    ``grams`` (f, k, k), ``sides`` (f, k).
    """

    data: JointResidual
    columns: FloatArray
    grams: FloatArray
    sides: FloatArray

    @classmethod
    def of(cls, data: JointResidual, columns: FloatArray) -> NormalEquations:
        """Return the equations of ``columns`` (N, k)."""
        folds, count = 1 + max(fold for fold, _ in data.stretches), columns.shape[1]
        grams, sides = np.zeros((folds, count, count)), np.zeros((folds, count))
        for fold, rows in data.stretches:
            grams[fold] += columns[rows].T @ columns[rows]
            sides[fold] += columns[rows].T @ data.residual[rows]
        return cls(data, columns, grams, sides)

    def solve(self) -> FloatArray:
        """Return the coefficients (k,) of all rows."""
        return np.asarray(np.linalg.solve(
            add_ridge(self.grams.sum(axis=0)), self.sides.sum(axis=0)))

    def errors(self) -> FloatArray:
        """Return the errors (N,) [N m] of the coefficients of all rows."""
        return np.asarray(self.data.residual - self.columns @ self.solve())

    def held_out_errors(self) -> FloatArray:
        """Return the errors (N,) [N m] of every fold with coefficients of the others."""
        errors = self.data.residual.copy()
        others = np.linalg.solve(add_ridge(self.grams.sum(axis=0) - self.grams),
                                 (self.sides.sum(axis=0) - self.sides)[..., None])[..., 0]
        for fold, rows in self.data.stretches:
            errors[rows] -= self.columns[rows] @ others[fold]
        return errors


def add_ridge(grams: FloatArray) -> FloatArray:
    """Return Gram matrices (..., k, k) with the ridge of the coefficients."""
    one = np.eye(grams.shape[-1])
    return np.asarray(grams * (1.0 + COEFFICIENT_RIDGE * one) + 1e-12 * one)


#: delays [s] are bounded by plus and minus this
LONGEST_DELAY = 20e-3
#: most steps of the search, and the change of the sum of squares that ends it
WAVE_STEPS, SQUARES_SETTLED = 12, 1e-5


@dataclass(frozen=True, eq=False)
class Phases:
    """Parameters of the phases of torque ripple: ``orders``, ``delays`` (w,), ``compliance``.

    As in `TorqueRipple`; ``delay_std`` (w,) [s] and ``compliance_std`` [rad/(N m)] if fitted.
    """

    orders: FloatArray
    delays: FloatArray
    compliance: float
    delay_std: FloatArray
    compliance_std: float = 0.0

    @classmethod
    def none(cls, compliance: float) -> Phases:
        """Return phases without a wave."""
        return cls(np.empty(0), np.empty(0), compliance, np.empty(0))

    def with_wave(self, order: float, delay: float) -> Phases:
        """Return the phases with one more wave."""
        return Phases(np.append(self.orders, order), np.append(self.delays, delay),
                      self.compliance, np.append(self.delay_std, 0.0))

    def without(self, k: int) -> Phases:
        """Return the phases without the wave of index ``k``."""
        return Phases(np.delete(self.orders, k), np.delete(self.delays, k), self.compliance,
                      np.delete(self.delay_std, k), self.compliance_std)

    def ripple(self, data: JointResidual) -> TorqueRipple:
        """Return the ripple with the coefficients of the fit."""
        coefficients = NormalEquations.of(data, self.columns(data)).solve()
        return TorqueRipple(frozen(self.orders), frozen(self.delays), self.compliance, data.slow,
                            data.fast, frozen(coefficients))

    def columns(self, data: JointResidual) -> FloatArray:
        """Return the columns (N, 6 w) of the coefficients."""
        twisted = data.position + self.compliance * data.effort
        return wave_columns(self.orders[:, None] * (
            twisted + self.delays[:, None] * data.velocity), data.shares)


@dataclass(frozen=True, eq=False)
class Fit:
    """Least-squares ``coefficients`` (k,) of ``columns``, which have the ridged ``gram``."""

    data: JointResidual
    orders: FloatArray
    columns: FloatArray
    gram: FloatArray
    coefficients: FloatArray

    @classmethod
    def of(cls, phases: Phases, data: JointResidual) -> Fit:
        """Fit the coefficients of waves to the residual."""
        columns = phases.columns(data)
        gram = add_ridge(columns.T @ columns)
        return cls(data, phases.orders, columns, gram,
                   np.asarray(np.linalg.solve(gram, columns.T @ data.residual)))

    def errors(self) -> FloatArray:
        """Return the errors (N,) [N m] of the fit."""
        return np.asarray(self.data.residual - self.columns @ self.coefficients)

    def of_wave(self, k: int) -> FloatArray:
        """Return the torque (N,) [N m] of one wave."""
        block = slice(WAVE_COLUMNS * k, WAVE_COLUMNS * (k + 1))
        return np.asarray(self.columns[:, block] @ self.coefficients[block])

    def project_out(self, values: FloatArray) -> FloatArray:
        """Return ``values`` (N, m) less their least-squares fit by the columns."""
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


def refine_phases(phases: Phases, data: JointResidual, twists: bool) -> Phases:
    """Return the least-squares phases near ``phases``, with their deviations.

    ``twists``: whether to fit the compliance; otherwise it is zero. The Jacobian is that of
    Kaufman (BIT 15, 1975) for variable projection; deviations are those of a sandwich over blocks.
    """
    from scipy.optimize import least_squares

    count = len(phases.orders)
    speed, torque = (float(np.sqrt(np.mean(x**2))) for x in (data.velocity, data.effort))
    scale = 1.0 / np.append(phases.orders * speed, np.max(phases.orders) * max(torque, 1e-9))
    bound = np.append(np.full(count, LONGEST_DELAY), np.inf)
    begin = np.append(phases.delays, phases.compliance)
    free = np.arange(count + twists)

    def at(values: FloatArray) -> Phases:
        whole = np.zeros(count + 1)
        whole[free] = values * scale[free]
        return replace(phases, delays=whole[:count], compliance=float(whole[count]))

    latest: dict[bytes, Fit] = {}

    def fit(values: FloatArray) -> Fit:
        """Return the fit; slopes are requested right after the residual."""
        key = values.tobytes()
        if key not in latest:
            latest.clear()
            latest[key] = Fit.of(at(values), data)
        return latest[key]

    def errors(values: FloatArray) -> FloatArray:
        return fit(values).errors()

    def slopes(values: FloatArray) -> FloatArray:
        current = fit(values)
        by_phase = current.by_phases(current.slopes())[:, free] * scale[free]
        return -current.project_out(by_phase)

    solution = least_squares(
        errors, np.clip(begin[free], -bound[free], bound[free]) / scale[free], slopes,
        bounds=(-bound[free] / scale[free], bound[free] / scale[free]), max_nfev=WAVE_STEPS,
        ftol=SQUARES_SETTLED, xtol=SQUARES_SETTLED)
    std = np.zeros(count + 1)
    std[free] = scale[free] * _deviations(np.asarray(solution.jac), solution.fun, data)
    return replace(at(solution.x), delay_std=std[:count], compliance_std=float(std[count]))


def compliance_of_load(phases: Phases, data: JointResidual) -> tuple[float, float]:
    """Return the compliance [rad/(N m)] that the load shows, and its deviation.

    A phase that differs with the direction of motion, wave by wave, is attributed to other causes:
    if the effort is mostly friction, it looks like compliance. One Gauss-Newton step from
    `refine_phases`, with the directions as further parameters.
    """
    fit = Fit.of(phases, data)
    slopes = fit.slopes()
    direction = np.tanh(data.velocity / data.slow)[:, None] * slopes
    by_phase = fit.by_phases(slopes)
    whole = np.column_stack([by_phase, direction])
    whole /= np.maximum(np.linalg.norm(whole, axis=0), 1e-300)
    whole, errors = fit.project_out(whole), fit.errors()
    step = np.linalg.lstsq(whole, errors, rcond=1e-6)[0]
    twist = len(phases.orders)
    scale = 1.0 / np.linalg.norm(by_phase[:, twist])
    deviation = _deviations(whole, errors - whole @ step, data)[twist]
    return phases.compliance + float(scale * step[twist]), float(scale * deviation)


def _deviations(slopes: FloatArray, errors: FloatArray, data: JointResidual) -> FloatArray:
    """Return deviations (k,) of parameters with ``slopes`` (N, k) from the ``errors`` (N,)."""
    scores = np.stack([np.bincount(data.block, column * errors) for column in slopes.T])
    bread = np.linalg.pinv(slopes.T @ slopes)
    return np.sqrt(np.diag(bread @ (scores @ scores.T) @ bread))


MAX_WAVES = 10
#: candidates of a scan that are tried before the search ends
TRIED = 3
#: least share of the held-out variance that a wave must remove, and least deviations of its gain
LEAST_GAIN, WAVE_DEVIATIONS = 2e-3, 2.0
#: least deviations of the gain of all waves together
SURE_TOGETHER = 3.0
#: largest probability of a wave by chance among all orders and delays
UNLIKELY = 1e-3
#: first waves, after each of which delays and compliance are fitted for the following scans
REFITTED_WAVES = 2
#: neighbours of the order of a scan that are then tried
NEIGHBOURS = (-2.0, -1.0, 0.0, 1.0, 2.0)
#: deviations from zero from which a compliance is used
TWISTED = 4.0
#: gears twist by less than this [rad, m], RMS
MAX_TWIST = 4e-3
#: compliances of the first scan, in shares of a turn of the phase of this order
FIRST_TWISTS, TWIST_ORDER = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), 1000.0
#: spread [N m] of the effort of a joint from which they are tried
LOADED_SPREAD = 10.0


@dataclass(frozen=True)
class Wave:
    """One identified wave of torque ripple.

    ``order`` [1/rad]; ``amplitude`` [N m], its RMS over the recordings; ``delay`` [s] and its
    deviation; ``chance`` that noise alone gives such a wave. ``aliases`` are orders [1/rad] that
    explain the rows about equally well.
    """

    order: float
    amplitude: float
    delay: float
    delay_std: float
    chance: float
    aliases: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class RippleFit:
    """Torque ripple of a joint, or None; ``waves`` identified.

    ``aliased`` waves exist, but the recordings do not show their orders: they are not used.
    ``rms_without`` and ``rms_with`` [N m] are the RMS of the held-out residual without and with
    the ripple. ``compliance`` [rad/(N m)] and its deviation are those that the load shows, see
    `compliance_of_load`; zero if the phase shows none.
    """

    ripple: TorqueRipple | None
    waves: tuple[Wave, ...]
    rms_without: float
    rms_with: float
    compliance: float = 0.0
    compliance_std: float = 0.0
    aliased: tuple[Wave, ...] = ()


def fit_ripple(data: JointResidual, ratio: float | None = None) -> RippleFit:
    """Return the torque ripple in a residual, None if it shows none beyond chance.

    ``ratio`` of the gear if known: its orders are more likely beforehand.
    """
    gear = gear_orders(ratio)
    rms_without = float(np.sqrt(np.mean(data.residual**2)))
    phases = _choose_waves(data, gear)
    chances: list[float] = []
    while len(phases.orders):
        phases = _fit_phases(phases, data)
        fit = Fit.of(phases, data)
        rest = Spectrum.of(data, fit.errors(), phases.compliance)
        chances = _chances(phases, fit, rest, gear)
        worst = int(np.argmax(chances))
        if chances[worst] <= UNLIKELY:
            break
        phases = phases.without(worst)
    if not len(phases.orders):
        return RippleFit(None, (), rms_without, rms_without)
    waves = _waves(phases, data, chances, _aliases(phases, fit, rest, gear))
    for wave in waves:
        if wave.aliases:
            phases = phases.without(int(np.argmin(np.abs(phases.orders - wave.order))))
    aliased = tuple(wave for wave in waves if wave.aliases)
    nothing = RippleFit(None, (), rms_without, rms_without, aliased=aliased)
    if not len(phases.orders):
        return nothing
    errors = NormalEquations.of(data, phases.columns(data)).held_out_errors()
    if not is_better(data.residual, errors, data, SURE_TOGETHER):
        return nothing
    rms_with = float(np.sqrt(np.mean(errors**2)))
    twist = compliance_of_load(phases, data) if phases.compliance else (0.0, 0.0)
    return RippleFit(phases.ripple(data), tuple(wave for wave in waves if not wave.aliases),
                     rms_without, rms_with, *twist, aliased)


def _choose_waves(data: JointResidual, gear: FloatArray) -> Phases:
    """Return the waves that lower the held-out error, added one by one.

    A wave that only follows the effort, through the twist of a compliance, also stands out but
    lowers nothing; then the scan restarts with a stiff gear.
    """
    scans = first_scans(data)
    first = max(scans, key=lambda c: float(scans[c].power.max()))
    phases = _add_waves(Phases.none(first), data, gear, scans[first])
    if first == 0.0 or len(phases.orders):
        return phases
    return _add_waves(Phases.none(0.0), data, gear, scans[0.0])


def _add_waves(
    phases: Phases, data: JointResidual, gear: FloatArray, spectrum: Spectrum
) -> Phases:
    """Return ``phases`` with waves that lower the error; ``spectrum`` is that of the residual."""
    error = rest = data.residual
    equations = NormalEquations.of(data, phases.columns(data))
    while len(phases.orders) < MAX_WAVES:
        if rest is not data.residual:
            spectrum = Spectrum.of(data, rest, phases.compliance)
        peaks = [p for p in spectrum.peaks(gear) if _is_distinct(p.order, phases, gear)]
        for peak in _sort_by_error(peaks, phases, data, rest)[:TRIED]:
            more = NormalEquations.of(
                data, phases.with_wave(peak.order, peak.delay).columns(data))
            now = more.held_out_errors()
            if is_better(error, now, data):
                break
        else:
            return phases
        phases, equations, error = phases.with_wave(peak.order, peak.delay), more, now
        if len(phases.orders) <= REFITTED_WAVES:
            phases = _refine_order(phases, data, gear)
            equations = NormalEquations.of(data, phases.columns(data))
            error = equations.held_out_errors()
        rest = equations.errors()
    return phases


def _is_distinct(order: float, phases: Phases, gear: FloatArray) -> bool:
    """Return True if an order is distinguishable from all waves."""
    distance = np.abs(phases.orders - order)
    return not np.any(distance < (1e-9 if order in gear else RESOLVED))


def _sort_by_error(
    peaks: Sequence[Peak], phases: Phases, data: JointResidual, residual: FloatArray
) -> list[Peak]:
    """Return the peaks by the held-out error of each wave alone in the ``residual`` (N,)."""
    rest, none = replace(data, residual=residual), Phases.none(phases.compliance)
    errors = [NormalEquations.of(rest, none.with_wave(one.order, one.delay).columns(rest))
              .held_out_errors() for one in peaks]
    return [peaks[k] for k in np.argsort([error @ error for error in errors], kind='stable')]


def first_scans(data: JointResidual) -> dict[float, Spectrum]:
    """Return scans by compliance [rad/(N m)]; a wave stands out most at the best of them."""
    spread = float(np.std(data.effort))
    twists = FIRST_TWISTS if spread >= LOADED_SPREAD else (0.0,)
    tried = [twist / (TWIST_ORDER * max(spread, 1e-9)) for twist in twists]
    return {c: Spectrum.of(data, data.residual, c) for c in tried}


def is_better(
    previous: FloatArray, candidate: FloatArray, data: JointResidual, sure: float = WAVE_DEVIATIONS
) -> bool:
    """Return True if held-out errors (N,) fell by enough, and by ``sure`` deviations of that.

    The latter without the mean error of each block, which is slow: friction and links, whose
    products with the waves are no gain, but may look like one.
    """
    blocks = data.block
    count = np.bincount(blocks)

    def squares(errors: FloatArray) -> FloatArray:
        mean = np.bincount(blocks, errors) / count
        return np.asarray(np.bincount(blocks, (errors - mean[blocks])**2))

    gains = squares(previous) - squares(candidate)
    total = float(np.sum(previous**2) - np.sum(candidate**2))
    return total > LEAST_GAIN * float(np.sum(data.residual**2)) and \
        float(gains.sum()) > sure * float(np.std(gains)) * np.sqrt(len(gains))


def _fit_phases(phases: Phases, data: JointResidual) -> Phases:
    """Return the least-squares phases, with a compliance if it is significant."""
    twisted = refine_phases(phases, data, twists=True)
    twist = twisted.compliance * float(np.sqrt(np.mean(data.effort**2)))
    if TWISTED * twisted.compliance_std < twisted.compliance and twist < MAX_TWIST:
        return twisted
    return refine_phases(phases, data, twists=False)


def _refine_order(phases: Phases, data: JointResidual, gear: FloatArray) -> Phases:
    """Return fitted phases with the best neighbouring order of the last wave.

    The load of a joint changes with its position, so a scan with a slightly wrong compliance shows
    a slightly wrong order.
    """
    order = phases.orders[-1]
    if order in gear:
        return _fit_phases(phases, data)
    tried = [_fit_phases(replace(phases, orders=np.append(phases.orders[:-1], order + shift)),
                         data)
             for shift in NEIGHBOURS]
    return min(tried, key=lambda one: float(np.sum(Fit.of(one, data).errors()**2)))


def _chances(
    phases: Phases, fit: Fit, rest: Spectrum, gear: FloatArray
) -> list[float]:
    """Return for each wave the probability of its power in the ``rest`` without all waves."""
    errors, chances = fit.errors(), []
    for k, (order, delay) in enumerate(zip(phases.orders, phases.delays, strict=True)):
        alone = errors + fit.of_wave(k)
        wave = float(order), float(delay), phases.compliance
        chances.append(float(np.exp(-max(0.0, rest.surprise_of(fit.data, alone, wave, gear)))))
    return chances


def _aliases(
    phases: Phases, fit: Fit, rest: Spectrum, gear: FloatArray
) -> list[tuple[float, ...]]:
    """Return for each wave the orders [1/rad] that explain nearly as much, none if it is resolved.

    An order that rows hardly show has its alias at equal samples. Orders of the ``gear`` (F,) are
    preferred beforehand.
    """
    data, errors = fit.data, fit.errors()
    aliases: list[tuple[float, ...]] = []
    for k, order in enumerate(phases.orders):
        if order > data.highest_order:
            aliases.append((data.alias(float(order)),))
            continue
        rivals = np.empty(0)
        if order not in gear:
            alone = Spectrum.of(data, errors + fit.of_wave(k), phases.compliance)
            rivals = alone.rivals(float(order), data.resolved, rest)
        aliases.append(tuple(rivals.tolist()))
    return aliases


def _waves(
    phases: Phases, data: JointResidual, chances: list[float], aliases: list[tuple[float, ...]]
) -> tuple[Wave, ...]:
    """Return the waves as reported, the largest first."""
    shares = amplitudes(data.velocity, data.slow, data.fast)
    coefficients = phases.ripple(data).coefficients.reshape(-1, SHARES, 2)
    power = np.mean(np.sum(np.einsum('ns,wsc->nwc', shares, coefficients)**2, axis=2), axis=0)
    waves = [Wave(float(order), float(size), float(delay), float(std), chance, same)
             for order, size, delay, std, chance, same in zip(
                 phases.orders, np.sqrt(power), phases.delays, phases.delay_std, chances, aliases,
                 strict=True)]
    return tuple(sorted(waves, key=lambda wave: -wave.amplitude))
