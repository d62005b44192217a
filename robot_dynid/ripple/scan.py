"""Scan of a residual for waves over position: all orders at once, with their significance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.ripple.model import COLUMNS, amplitudes
from robot_dynid.types import FloatArray

#: orders [1/rad] of the scan: below, waves are what links and friction look like
LEAST_ORDER, MOST_ORDER = 20, 4000
#: bins of a turn of the phase, a power of two: a wave of the highest order passes one in one and
#: a half rad
BINS = 16384
#: delays [s] that are tried
DELAYS = np.arange(-12.0, 6.1, 0.75) * 1e-3
#: delays of which the sums are transformed at once, side by side in the registers of a core
AT_ONCE = 4
#: orders on either side of one that tell the level of noise there, and which share of them is
#: free of waves and their side lobes
AROUND, QUIET = 400, 0.25
#: an order this near to a wave is not told from it
RESOLVED = 1.5
#: peaks that a scan returns for their surprise, and for their size
MOST_PEAKS = 5
#: a joint moves above this share of its top speed
MOVING = 0.02
#: an order that is so many times as likely as another is told from it
UNLIKELIER = 100.0
#: share of the rows that must be slow enough to show an order
SHOWING = 0.05


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
        return np.flatnonzero(speed > MOVING * speed.max())

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
        sums = np.empty((AT_ONCE, len(weighted), BINS))
        for first in range(0, len(DELAYS), AT_ONCE):
            own = slice(first, first + AT_ONCE)
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
    """Set ``sums`` (s, BINS) of rows ``weighted`` (s, N) by the bins of ``angle`` (N,) [rad]."""
    turns = angle / (2.0 * np.pi)
    bins = ((turns - np.floor(turns)) * BINS).astype(np.int64) & (BINS - 1)
    for own, column in zip(sums, weighted, strict=True):
        own[:] = np.bincount(bins, column, BINS)


def _level(power: FloatArray) -> FloatArray:
    """Return the noise (K,) of power (D, K): of the quiet orders around, as it is not white."""
    from scipy.ndimage import percentile_filter
    from scipy.special import chdtri

    usual = percentile_filter(np.median(power, axis=0), 100.0 * QUIET, 2 * AROUND + 1,
                              mode='nearest')
    return np.maximum(usual / chdtri(COLUMNS, 1.0 - QUIET), np.finfo(float).tiny)
