"""Held-out errors of the friction laws of one axis, all other parameters eliminated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary, Factor, Factors
from robot_dynid.estimation.information import triangle
from robot_dynid.estimation.least_squares import OPEN_SHARE
from robot_dynid.friction import FrictionLaw
from robot_dynid.types import FloatArray

#: singular values below this share of the largest are noise, columns scaled to one
RANK_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class LawScores:
    """The dictionary columns of one axis after elimination of everything else.

    ``whole`` (d, d + 1) and ``train[f]`` are factors of ``[columns, filtered effort]`` over all
    data and over all folds but f; ``test[f]`` of ``[columns, raw effort]`` of fold f, less what
    the eliminated parameters of the fit explain, each joint divided by its own noise;
    ``samples`` of every fold. ``norms`` (d,) of the columns before the elimination; ``reach`` (d,)
    their effort at one and about 1 rad/s, over all effort that was measured.
    """

    dictionary: Dictionary
    whole: FloatArray
    train: tuple[FloatArray, ...]
    test: tuple[FloatArray, ...]
    samples: NDArray[np.int64]
    norms: FloatArray
    reach: FloatArray

    @classmethod
    def of(cls, factors: Factors, axis: int, laws: Sequence[FrictionLaw], noise: FloatArray
           ) -> LawScores:
        """Eliminate links, rotors and the friction of the other axes, as ``laws`` has them.

        ``noise`` (n,) N m (N) is the residual deviation of the joints, by which rows are divided.
        """
        first = factors.first
        rest = np.concatenate([np.arange(factors.links), *(
            first[a] + _dictionary(factors, a).index(law)
            for a, law in enumerate(laws) if a != axis)])
        own = np.arange(first[axis], first[axis + 1])
        rows = np.flatnonzero(factors.friction.axes.effort[axis])
        whole, _ = _eliminated(factors.whole, rest, own, noise)
        train, test = [], []
        for joints, factor in zip(factors.train, factors.test, strict=True):
            fitted, explained = _eliminated(joints, rest, own, noise)
            train.append(fitted)
            left = [(factor[j].columns([*own, -1]) - factor[j].columns(rest) @ explained)
                    / noise[j] for j in rows]
            test.append(triangle(np.asfortranarray(np.vstack(left))))
        norms = np.sqrt(sum(np.sum((factors.whole[j].columns(own) / noise[j])**2, axis=0)
                            for j in rows))
        return cls(_dictionary(factors, axis), whole, tuple(train), tuple(test), factors.samples,
                   norms, _relative_reach(factors)[own - factors.links])

    def settled(self, law: FrictionLaw) -> FrictionLaw:
        """Return the law with those of its prunable parameters only that its prediction needs.

        Those to which the data gives no amplitude go, then one after the other that which is
        missed least, as long as the held-out error does not rise.
        """
        if not law.prunable:
            return law
        values = dict(zip(law.parameters, self.values(law).tolist(), strict=True))
        law = law.without([p for p in law.prunable if not values[p] > 0.0])
        bound = self.score(self.errors(law))
        while True:
            shorter = [law.without([p]) for p in law.prunable]
            scores = [self.score(self.errors(s)) for s in shorter]
            if not scores or min(scores) > bound:
                return law
            law = shorter[int(np.argmin(scores))]

    def excited(self, law: FrictionLaw) -> bool:
        """Return whether the data leaves no parameter of ``law`` open but those of the first law.

        The first law of the dictionary is Coulomb's, whose parameters there is no way round.
        """
        return self.left_open(law) <= self._unavoidable

    @cached_property
    def _unavoidable(self) -> set[str]:
        return self.left_open(self.dictionary.laws[0])

    def left_open(self, law: FrictionLaw) -> set[str]:
        """Return the parameters of ``law`` that an estimate would report as not excited.

        They are in combinations with other columns that the data does not separate, or could
        explain within their deviation, at about 1 rad/s, all effort that was measured. The
        deviation is that of the folds (jackknife).
        """
        index = self.dictionary.index(law)
        norms = self.norms[index]
        scale = np.where(norms > 0.0, norms, 1.0)
        _, s, vt = np.linalg.svd(self.whole[:, index] / scale)
        s = np.pad(s, (0, len(index) - len(s)))
        unclear = np.sum(vt[s <= RANK_TOLERANCE]**2, axis=0) > OPEN_SHARE
        free = np.zeros(len(index), dtype=bool)
        found = np.array([_fitted(train, index, free) for train in self.train])
        deviation = np.sqrt(len(found) - 1.0) * np.std(found, axis=0)
        vague = deviation * self.reach[index] > 1.0
        return {p for p, is_open in zip(law.parameters, unclear | vague, strict=True) if is_open}

    def values(self, law: FrictionLaw) -> FloatArray:
        """Return the parameters (k,) of ``law`` from all data, none negative that must not be."""
        return _fitted(self.whole, self.dictionary.index(law), _bounded(law))

    def errors(self, law: FrictionLaw) -> FloatArray:
        """Return the root mean square held-out error (f,) of every fold, in units of noise."""
        index, bounded = self.dictionary.index(law), _bounded(law)
        energy = []
        for train, test in zip(self.train, self.test, strict=True):
            values = _fitted(train, index, bounded)
            left = test[:, -1] - test[:, index] @ values
            energy.append(left @ left)
        return np.sqrt(np.array(energy) / self.samples)

    def score(self, errors: FloatArray) -> float:
        """Return the root mean square of the ``errors`` (f,) of all folds."""
        return float(np.sqrt(np.average(errors**2, weights=self.samples)))


def noise_of(factors: Factors, laws: Sequence[FrictionLaw], noise: FloatArray) -> FloatArray:
    """Return the residual deviation (n,) of every joint with ``laws``, weighted by ``noise``."""
    columns, values = solution(factors, laws, noise)
    energy = np.array([np.sum((w.columns([-2])[:, 0] - w.columns(columns) @ values) ** 2)
                       for w in factors.whole])
    found = np.sqrt(energy / factors.samples.sum())
    least = 1e-9 * max(float(found.max(initial=0.0)), 1e-12)
    return np.asarray(np.maximum(found, least))


def solution(
    factors: Factors, laws: Sequence[FrictionLaw], noise: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the columns (k,) of links, rotors and ``laws``, and their parameters (k,).

    Least squares with the rows of each joint divided by ``noise`` (n,) N m (N).
    """
    columns = np.concatenate([np.arange(factors.links), *(
        factors.first[a] + _dictionary(factors, a).index(law) for a, law in enumerate(laws))])
    tall = np.vstack([w.columns([*columns, -2]) / s
                      for w, s in zip(factors.whole, noise, strict=True)])
    _, inverse = _range(tall[:, :-1])
    return columns, inverse @ tall[:, -1]


def _relative_reach(factors: Factors) -> FloatArray:
    """Return the reach (d,) of all dictionary columns over the effort of the joint it is most in.

    As `estimation.least_squares.unknown_columns`.
    """
    size = np.array([np.linalg.norm(w.columns([-1])) for w in factors.whole]) / np.sqrt(
        factors.samples.sum())
    most = np.argmax(factors.reach, axis=0)
    return np.asarray(factors.reach.max(axis=0) / np.maximum(size[most], np.finfo(float).tiny))


def _dictionary(factors: Factors, axis: int) -> Dictionary:
    law = factors.friction.laws[axis]
    assert isinstance(law, Dictionary)
    return law


def _bounded(law: FrictionLaw) -> NDArray[np.bool_]:
    return np.array([p in law.nonnegative for p in law.parameters], dtype=bool)


def _range(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis of ``columns`` (N, k) and their pseudo-inverse (k, N)."""
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0.0] = 1.0
    u, s, vt = np.linalg.svd(columns / scale, full_matrices=False)
    kept = s > RANK_TOLERANCE * s[0]
    return u[:, kept], (vt[kept].T / s[kept] / scale[:, None]) @ u[:, kept].T


def _eliminated(
    joints: Sequence[Factor], rest: NDArray[np.int64], own: NDArray[np.int64],
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the factor of ``[own, filtered]`` clear of ``rest``, and what each is of ``rest``."""
    tall = np.vstack([w.columns([*rest, *own, -2]) / s
                      for w, s in zip(joints, noise, strict=True)])
    target = tall[:, len(rest):]
    basis, inverse = _range(tall[:, :len(rest)])
    clear = target - basis @ (basis.T @ target)
    return triangle(np.asfortranarray(clear)), inverse @ target


def _fitted(
    factor: FloatArray, index: NDArray[np.int64], bounded: NDArray[np.bool_]
) -> FloatArray:
    """Return the least-squares parameters; those ``bounded`` are not negative."""
    columns, target = factor[:, index], factor[:, -1]
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0.0] = 1.0
    columns = columns / scale
    values = np.linalg.lstsq(columns, target, rcond=RANK_TOLERANCE)[0]
    if np.any(values[bounded] < 0.0):
        basis, inverse = _range(columns[:, ~bounded]) if np.any(~bounded) else (
            np.zeros((len(target), 0)), np.zeros((0, len(target))))
        clear = columns[:, bounded] - basis @ (basis.T @ columns[:, bounded])
        values[bounded] = nnls(clear, target - basis @ (basis.T @ target))[0]
        values[~bounded] = inverse @ (target - columns[:, bounded] @ values[bounded])
    return np.asarray(values / scale)
