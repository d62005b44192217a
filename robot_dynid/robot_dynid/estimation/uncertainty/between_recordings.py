"""Covariance of estimates from the scatter of stretches and of recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.joint_friction import JointFriction
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.information import Batch, Information, merge_factors
from robot_dynid.friction.law import DRY, OFFSET
from robot_dynid.types import FloatArray

#: number of stretches of the data; less one, the degrees of freedom
SCATTER_STRETCHES = 8


def stretches(count: int, groups: int = SCATTER_STRETCHES) -> list[list[int]]:
    """Cut `count` batches into `groups` contiguous groups, or as many as there are."""
    return [list(map(int, part)) for part in np.array_split(np.arange(count), min(groups, count))]


def recordings(information: Information) -> list[list[int]]:
    """Return the indices of the batches of every recording."""
    groups: dict[int, list[int]] = {}
    for i, batch in enumerate(information.batches):
        groups.setdefault(batch.recording, []).append(i)
    return list(groups.values())


Groups = Sequence[Sequence[int]]
#: least share of the information in a direction that remains when a group of batches is removed
LEAST_REST = 1e-3


@dataclass(frozen=True, eq=False)
class BatchScores:
    """Curvature and gradient of B batches at an estimate of b parameters, in whitened directions.

    `root` (b, r): parameters = root @ direction, in which the information of all batches is the
    identity. `curvature` (B, r, r) is the share of each batch in it, `score` (B, r) its gradient
    at the estimate. Batches are additive, so removing a group of them is one small linear solve.
    """

    root: FloatArray
    curvature: FloatArray
    score: FloatArray

    def changes(self, groups: Groups) -> tuple[FloatArray, FloatArray]:
        """Return the changes (groups, b) of the estimate if groups of batches are left out.

        Also the factors (groups, b) by which the variances grow without the group.
        """
        changes, growth = np.empty((2, len(groups), len(self.root)))
        variance = np.sum(self.root**2, axis=1)
        variance = np.where(variance > 0.0, variance, 1.0)
        whole = np.eye(self.root.shape[1])
        for i, group in enumerate(groups):
            members = list(group)
            along = self.root @ _inverse(whole - self.curvature[members].sum(axis=0))
            changes[i] = along @ self.score[members].sum(axis=0)
            growth[i] = np.sum(along * self.root, axis=1) / variance
        return changes, growth


def _inverse(rest: FloatArray) -> FloatArray:
    """Return the inverse of `rest` (r, r), its eigenvalues at least LEAST_REST.

    Only if a group determines a direction alone are they less.
    """
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(rest)
        if np.linalg.norm(inverse) < 1.0 / LEAST_REST:  # not less than its largest eigenvalue
            return np.asarray(inverse)
    values, directions = np.linalg.eigh(rest)
    return np.asarray(directions / np.maximum(values, LEAST_REST) @ directions.T)


def leave_one_out(batches: Sequence[Batch]) -> Iterator[tuple[FloatArray, ...]]:
    """Yield, for every batch, the factors (m, k) (one per joint) of all the others.

    Cumulative factors from both ends are merged once, so n batches cost 3 n merges.
    """
    def both(one: tuple[FloatArray, ...], other: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
        return tuple(merge_factors(pair) for pair in zip(one, other, strict=True))

    behind = list(accumulate((b.factors for b in reversed(batches[1:])),
                             lambda rest, factors: both(factors, rest)))
    ahead = list(accumulate((b.factors for b in batches[:-1]), both))
    yield behind[-1]
    for first, after in zip(ahead[:-1], behind[-2::-1], strict=True):
        yield both(first, after)
    yield ahead[-1]


def covariance(changes: FloatArray) -> tuple[FloatArray, int]:
    """Return the covariance (k, k) of an estimate, and its degrees of freedom.

    `changes` (batches, k) are the changes of the estimate by each batch, or the estimates without
    it. NaN for a single batch. Source: MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count, k = changes.shape
    if count < 2:
        return np.full((k, k), np.nan), 1
    centred = changes - changes.mean(axis=0)
    return centred.T @ centred * (count - 1) / count, count - 1


def deviations(changes: Sequence[FloatArray]) -> FloatArray:
    """Return the standard deviations (k,) of the `covariance` of `changes` (k,) by batches."""
    return np.asarray(np.sqrt(np.diag(covariance(np.asarray(changes))[0])))


#: a stretch determines a parameter alone if the variance without it is this many times larger
DECIDED = 10.0


def scatter_covariance(
    information: Information, scores: BatchScores, scales: FrictionScales | None = None,
    by_motion: BatchScores | None = None,
) -> tuple[FloatArray, int]:
    """Return the covariance (b, b) of an estimate, and its degrees of freedom.

    The variance of each parameter comes from SCATTER_STRETCHES stretches, from more and shorter
    ones if one of those alone determines it; and from whole recordings, or from as many stretches
    of distinct motion, if these scatter more: `by_motion` are the scores of its cells. With
    `scales`, the difference of friction between recordings is a separate variance component,
    estimated from all axes together because recordings are few. The other correlations are those
    of single batches. NaN for a single batch. Scores with fewer rows of `root` give the covariance
    of as many parameters.

    Source: Ibragimov, Mueller 2010 (few clusters); MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count, size = len(information.batches), len(scores.root)
    whole = recordings(information)
    several = 1 < len(whole) < count
    component, scaled = None, np.zeros(size, dtype=bool)
    if several and scales is not None:
        component = between_recordings(scores, whole, scales)
        scaled = np.any(scales.directions != 0.0, axis=1)
    within = component.within if component else scores
    by_batch, freedom = covariance(within.changes(stretches(count, count))[0])
    variance, unsure = np.diag(by_batch).copy(), np.ones(size, dtype=bool)
    for number in (SCATTER_STRETCHES, 2 * SCATTER_STRETCHES, 4 * SCATTER_STRETCHES):
        if number < count and unsure.any():
            longer, sure = _variance(within, stretches(count, number))
            variance = np.where(sure & unsure, longer, variance)
            unsure &= ~sure
    total = _rescaled(by_batch, variance)
    if component:
        total = total + component.covariance
    variance = np.diag(total)
    if several:
        larger, sure = _variance(scores, whole)
        variance = np.where(sure & ~scaled, np.maximum(variance, larger), variance)
    if by_motion is not None:
        larger, sure = _variance(by_motion, stretches(len(by_motion.score)))
        variance = np.where(sure, np.maximum(variance, larger), variance)
    return _rescaled(total, variance), min(freedom, SCATTER_STRETCHES - 1)


def _rescaled(matrix: FloatArray, variance: FloatArray) -> FloatArray:
    """Return a covariance (b, b) with other variances (b,) and the same correlations."""
    diagonal = np.diag(matrix)
    scale = np.sqrt(variance / np.where(diagonal > 0.0, diagonal, 1.0))
    return np.asarray(matrix * np.outer(scale, scale))


def _variance(scores: BatchScores, groups: Groups) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the variance (b,) by leaving out groups; True where no group determines it alone."""
    changes, growth = scores.changes(groups)
    return np.diag(covariance(changes)[0]), np.asarray(np.all(growth < DECIDED, axis=0))


#: a recording with less than this share of the information about a scale does not count for it
INFORMATION_SHARE = 1e-6
#: deviations of recordings below this [-] do not change their weights
EXACT_DEVIATION = 1e-6
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class FrictionScales:
    """Directions in which friction changes as a whole.

    `directions` (b, m): change of the b parameters per unit; `kinds` (m,) of friction: viscous,
    dry, offset; `axes` (m,) their axis numbers.
    """

    directions: FloatArray
    kinds: tuple[str, ...]
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class BetweenRecordings:
    """Spread of friction between recordings.

    `spread` is the deviation of each kind of friction, relative to its values; `covariance` (b, b)
    of the estimate by it; `within` are the scores without the differences between recordings.
    """

    spread: Mapping[str, float]
    covariance: FloatArray
    within: BatchScores


def friction_scales(model: TorqueModel, values: FloatArray) -> FrictionScales | None:
    """Return the scales of friction with parameters `values` (b,); None without friction."""
    directions: dict[tuple[str, int], FloatArray] = {}
    place = 0
    for block, pivots in zip(model.blocks, model.pivots_by_block, strict=True):
        if isinstance(block, JointFriction):
            for i, parameter in enumerate(pivots.tolist(), start=place):
                key = block.kinds[parameter], block.owners[parameter]
                directions.setdefault(key, np.zeros(len(values)))[i] = values[i]
        place += len(pivots)
    for (kind, axis), direction in directions.items():
        if kind == OFFSET:
            dry = directions.get((DRY, axis), direction)
            direction[direction != 0.0] = np.abs(dry).sum()
    shown = {key: direction for key, direction in directions.items() if np.any(direction)}
    if not shown:
        return None
    kinds, axes = zip(*shown, strict=True)
    return FrictionScales(np.array(list(shown.values())).T, kinds, axes)


def between_recordings(
    scores: BatchScores, recordings: Groups, scales: FrictionScales
) -> BetweenRecordings:
    """Return the variance component between two or more `recordings`.

    Method of moments: the scatter of the recordings, less the part explained by their stretches of
    time. The difference of a recording is its best predictor, zero without a component. Source:
    DerSimonian, Laird 1986; Kacker 2004 (any weights).
    """
    directions = np.asarray(np.linalg.lstsq(scores.root, scales.directions, rcond=None)[0],
                            np.float64)
    value, variance, weight = (np.array(part) for part in zip(*(
        _scales_of(scores, list(batches), directions) for batches in recordings), strict=True))
    weight[weight < INFORMATION_SHARE * weight.sum(axis=0)] = 0.0
    share = weight / np.maximum(weight.sum(axis=0), TINY)
    off = value - np.sum(share * value, axis=0)
    scatter = np.sum(share * off**2, axis=0)
    expected = np.sum(share * (1.0 - share) * variance, axis=0)
    freedom = np.sum(share * (1.0 - share), axis=0)
    exact = 1.0 / (np.sum(share * variance, axis=0) + EXACT_DEVIATION**2)
    spread, squares = {}, np.zeros(len(scales.kinds))
    for kind in dict.fromkeys(scales.kinds):
        of_kind = np.array(scales.kinds) == kind
        total = float((exact * freedom)[of_kind].sum())
        if total > 0.0:
            excess = float((exact * (scatter - expected))[of_kind].sum())
            squares[of_kind] = max(excess, 0.0) / total
            spread[kind] = float(np.sqrt(squares[of_kind][0]))
    score = scores.score.copy()
    added = np.zeros((len(scores.root), len(scores.root)))
    guesses = off * squares / np.maximum(squares + variance, TINY)
    for batches, guess in zip(map(list, recordings), guesses, strict=True):
        score[batches] -= scores.curvature[batches] @ (directions @ guess)
        moved = scores.root @ (scores.curvature[batches].sum(axis=0) @ directions)
        added += (moved * squares) @ moved.T
    return BetweenRecordings(spread, added, replace(scores, score=score))


def _scales_of(
    scores: BatchScores, batches: list[int], directions: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scales (m,) of one recording, their variance and weight, (m,) each.

    `directions` (r, m) are those of the scales in whitened parameters. The variance is that of
    left-out stretches; the weight is its inverse for white residuals.
    """
    curvature = directions.T @ scores.curvature[batches] @ directions
    score = scores.score[batches] @ directions
    # a scale that a recording does not show leaves rounding of either sign
    size = np.sqrt(np.maximum(np.einsum('bii->i', curvature), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    curvature, score = curvature / np.outer(unit, unit), score / unit
    inverse = np.linalg.pinv(curvature.sum(axis=0), hermitian=True)
    value = inverse @ score.sum(axis=0)
    changes = []
    for part in stretches(len(batches)):
        rest = curvature.sum(axis=0) - curvature[part].sum(axis=0)
        left = score.sum(axis=0) - score[part].sum(axis=0)
        changes.append(value - np.linalg.pinv(rest, hermitian=True) @ left)
    variance, white = np.diag(covariance(np.array(changes))[0]), np.diag(inverse)
    weight = np.where((size > 0.0) & np.isfinite(variance), unit**2, 0.0)
    return (value / unit, np.nan_to_num(variance) / unit**2,
            weight / np.where(white > 0.0, white, 1.0))
