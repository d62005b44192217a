"""Held-out errors of the friction laws of one axis, all other parameters eliminated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary, Factor, Factors
from robot_dynid.estimation.information import triangle
from robot_dynid.estimation.least_squares import OPEN_PARAMETER_SHARE, RANK_TOLERANCE, solve_rows
from robot_dynid.friction import FrictionLaw
from robot_dynid.kernels.triangle import solve_chosen
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class LawScores:
    """The dictionary columns of one axis after elimination of all other parameters.

    `train` (f + 1, d + 1, d + 1) are triangles of ``[columns, filtered effort]`` without each
    fold, and last of all data; `test` (f, d + 1, d + 1) of ``[columns, raw effort]`` of each fold,
    less the part that the eliminated parameters explain, each joint divided by its noise;
    `samples` of every fold. `norms` (d,) of the columns before the elimination; `reach` (d,) their
    effort with value one at about 1 rad/s, relative to all measured effort.
    """

    dictionary: Dictionary
    train: FloatArray
    test: FloatArray
    samples: NDArray[np.int64]
    norms: FloatArray
    reach: FloatArray
    _fits: dict[FrictionLaw, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, factors: Factors, axis: int, laws: Sequence[FrictionLaw], noise: FloatArray
           ) -> LawScores:
        """Eliminate links, rotors and the friction of the other axes with their `laws`.

        Rows are divided by `noise` (n,) N m (N), the residual deviation of the joints.
        """
        first = factors.first
        rest = np.concatenate([np.arange(factors.links), *(
            first[a] + _dictionary(factors, a).place(law)
            for a, law in enumerate(laws) if a != axis)])
        columns = np.arange(first[axis], first[axis + 1])
        rows = np.flatnonzero(factors.friction.axes.effort[axis])
        train, test = [], []
        for joints, factor in zip(factors.train, factors.test, strict=True):
            fitted, explained = _eliminated(joints, rest, columns, noise)
            train.append(fitted)
            test.append(triangle(np.vstack([
                (factor[j].columns([*columns, -1]) - factor[j].columns(rest) @ explained)
                / noise[j]
                for j in rows])))
        train.append(_eliminated(factors.whole, rest, columns, noise)[0])
        norms = np.sqrt(sum(np.sum((factors.whole[j].columns(columns) / noise[j])**2, axis=0)
                            for j in rows))
        return cls(_dictionary(factors, axis), np.array(train), np.array(test),
                   factors.samples[:-1], norms, _relative_reach(factors)[columns - factors.links])

    def settled(self, law: FrictionLaw) -> FrictionLaw:
        """Return the law with only those of its prunable parameters that its prediction needs.

        Parameters without positive amplitude go first, then the least important one after the
        other, while the held-out error does not rise.
        """
        if not law.prunable:
            return law
        values = dict(zip(law.parameters, self.values(law).tolist(), strict=True))
        law = law.without([p for p in law.prunable if not values[p] > 0.0])
        bound = self.score(self.errors([law])[0])
        while True:
            shorter = [law.without([p]) for p in law.prunable]
            scores = [self.score(errors) for errors in self.errors(shorter)]
            if not scores or min(scores) > bound:
                return law
            law = shorter[int(np.argmin(scores))]

    def excited(self, laws: Sequence[FrictionLaw]) -> list[bool]:
        """Return for each law whether the data determines all parameters not in the first law.

        The first law of the dictionary is Coulomb's, whose parameters are always needed.
        """
        return [open_names <= self._unavoidable for open_names in self.left_open(laws)]

    @cached_property
    def _unavoidable(self) -> set[str]:
        return self.left_open(self.dictionary.laws[:1])[0]

    def left_open(self, laws: Sequence[FrictionLaw]) -> list[set[str]]:
        """Return the parameters of each law that an estimate would report as not excited.

        They are in combinations that the data does not determine, or could explain within their
        deviation (jackknife over the folds), at about 1 rad/s, all measured effort.
        """
        open_sets = []
        for law, values in zip(laws, self._fitted(laws), strict=True):
            index = self.dictionary.place(law)
            norms = self.norms[index]
            scale = np.where(norms > 0.0, norms, 1.0)
            _, s, vt = np.linalg.svd(triangle(self.train[-1][:, index] / scale))
            unclear = np.sum(vt[s <= RANK_TOLERANCE]**2, axis=0) > OPEN_PARAMETER_SHARE
            deviation = np.sqrt(len(values) - 2.0) * np.std(values[:-1], axis=0)
            is_open = unclear | (deviation * self.reach[index] > 1.0)
            open_sets.append({p for p, unexcited in zip(law.parameters, is_open, strict=True)
                              if unexcited})
        return open_sets

    def values(self, law: FrictionLaw) -> FloatArray:
        """Return the parameters (k,) of `law` from all data, nonnegative where required."""
        return np.asarray(
            self._bounded(law, self._fitted([law])[0][-1:], self.train[-1:])[0])

    def errors(self, laws: Sequence[FrictionLaw]) -> FloatArray:
        """Return the root mean square held-out errors (c, f) of c laws in each fold, in noises."""
        energy = np.empty((len(laws), len(self.test)))
        for row, law, fits in zip(energy, laws, self._fitted(laws), strict=True):
            values = self._bounded(law, fits[:-1], self.train)
            columns = self.test[:, :, self.dictionary.place(law)]
            left = self.test[:, :, -1] - (columns @ values[:, :, None])[:, :, 0]
            row[:] = np.sum(left**2, axis=1)
        return np.sqrt(energy / self.samples)

    def residual(self, law: FrictionLaw) -> float:
        """Return the sum of squared residuals of the best fit to all data, in noises."""
        left = self.train[-1][:, -1] - self.train[-1][:, self.dictionary.place(law)] @ \
            self._fitted([law])[0][-1]
        return float(left @ left)

    def score(self, errors: FloatArray) -> float:
        """Return the root mean square of the ``errors`` (f,) of all folds."""
        return float(np.sqrt(np.average(errors**2, weights=self.samples)))

    @cached_property
    def _tables(self) -> FloatArray:
        """The triangles, column by column."""
        return np.ascontiguousarray(self.train.transpose(0, 2, 1))

    def _fitted(self, laws: Sequence[FrictionLaw]) -> list[FloatArray]:
        """Return the unconstrained least-squares parameters (f + 1, k) of each law."""
        new = [law for law in dict.fromkeys(laws) if law not in self._fits]
        if new:
            places = [self.dictionary.place(law) for law in new]
            chosen = np.full((len(new), max(map(len, places))), -1)
            for row, place in zip(chosen, places, strict=True):
                row[:len(place)] = place
            values = np.empty((len(new), len(self.train), chosen.shape[1]))
            apart = np.empty(values.shape[:2])
            solve_chosen(self._tables, chosen, values, apart)
            sure = apart > RANK_TOLERANCE * np.sqrt(chosen.shape[1])  # also not if it is NaN
            for i, f in np.argwhere(~sure):
                equations = self.train[f][:, [*places[i], -1]]
                values[i, f, :len(places[i])] = solve_rows(equations).values
            self._fits.update({law: fits[:, :len(place)] for law, fits, place in zip(
                new, values, places, strict=True)})
        return [self._fits[law] for law in laws]

    def _bounded(self, law: FrictionLaw, values: FloatArray, train: FloatArray) -> FloatArray:
        """Return the parameters (f, k) of a law, nonnegative where required.

        `values` (f, k) are the unconstrained ones, from the triangles `train`.
        """
        bounded = np.array([p.nonnegative for p in law.table])
        negative = np.flatnonzero(np.any(values[:, bounded] < 0.0, axis=1))
        if len(negative):
            values, index = values.copy(), self.dictionary.place(law)
            for i in negative:
                values[i] = _nonnegative(train[i][:, [*index, -1]], bounded)
        return values


def noise_of(factors: Factors, laws: Sequence[FrictionLaw], noise: FloatArray) -> FloatArray:
    """Return the residual deviation (n,) of every joint with `laws`, weighted by `noise`."""
    columns, values = solution(factors, laws, noise)
    energy = np.array([np.sum((w.columns([-2])[:, 0] - w.columns(columns) @ values) ** 2)
                       for w in factors.whole])
    deviation = np.sqrt(energy / factors.samples.sum())
    least = 1e-9 * max(float(deviation.max(initial=0.0)), 1e-12)
    return np.asarray(np.maximum(deviation, least))


def solution(
    factors: Factors, laws: Sequence[FrictionLaw], noise: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the columns (k,) of links, rotors and `laws`, and their parameters (k,).

    Least squares, the rows of each joint divided by `noise` (n,) N m (N).
    """
    columns = np.concatenate([np.arange(factors.links), *(
        factors.first[a] + _dictionary(factors, a).place(law) for a, law in enumerate(laws))])
    equations = np.vstack([w.equations(columns) / s
                           for w, s in zip(factors.whole, noise, strict=True)])
    return columns, solve_rows(equations).values


def _relative_reach(factors: Factors) -> FloatArray:
    """Return the reach (d,) of all dictionary columns, relative to the joint they act on most.

    As in `estimation.least_squares.unknown_columns`.
    """
    size = np.array([np.linalg.norm(w.columns([-1])) for w in factors.whole]) / np.sqrt(
        factors.samples.sum())
    joint = np.argmax(factors.reach, axis=0)
    return np.asarray(factors.reach.max(axis=0) / np.maximum(size[joint], np.finfo(float).tiny))


def _dictionary(factors: Factors, axis: int) -> Dictionary:
    law = factors.friction.laws[axis]
    assert isinstance(law, Dictionary)
    return law


def _eliminated(
    joints: Sequence[Factor], rest: NDArray[np.int64], kept_columns: NDArray[np.int64],
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the triangle of ``[own, filtered]`` without ``rest``, and their coefficients on it.

    Columns with only rounding left are zero.
    """
    tall = triangle(np.vstack([w.equations(np.concatenate([rest, kept_columns])) / s
                               for w, s in zip(joints, noise, strict=True)]))
    count = len(rest)
    columns, others = tall[:, :count], tall[:, count:]
    root = solve_rows(np.column_stack([columns, others[:, -1]])).root
    white = columns @ root  # orthonormal
    inside = white.T @ others
    clear = others[count:] if root.shape[1] == count else triangle(others - white @ inside)
    left, whole = (np.linalg.norm(part, axis=0) for part in (clear, others))
    return np.where(left > RANK_TOLERANCE * whole, clear, 0.0), root @ inside


def _nonnegative(equations: FloatArray, bounded: NDArray[np.bool_]) -> FloatArray:
    """Return the least-squares parameters (k,), those `bounded` nonnegative."""
    from scipy.optimize import nnls

    order = np.argsort(bounded, kind='stable')  # bounded last, so their rows exclude the free
    free = int(np.count_nonzero(~bounded))
    small = triangle(equations[:, [*order, -1]])
    scale = np.linalg.norm(small[:, free:-1], axis=0)
    scale[scale == 0.0] = 1.0
    values = np.empty(len(order))
    positive = nnls(small[free:, free:-1] / scale, small[free:, -1])[0] / scale
    left = small[:free, -1] - small[:free, free:-1] @ positive
    values[order[:free]] = solve_rows(np.column_stack([small[:free, :free], left])).values
    values[order[free:]] = positive
    return values
