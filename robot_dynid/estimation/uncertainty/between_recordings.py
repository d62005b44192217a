"""Deviations of estimates from the scatter of stretches and of recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.joint_friction import JointFriction
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.information import Batch, Information, merged, merged_batch
from robot_dynid.friction.law import DRY, OFFSET
from robot_dynid.types import FloatArray

#: stretches the data is cut into; their number less one is the degrees of freedom
STRETCHES = 8


def stretches(count: int, groups: int = STRETCHES) -> list[list[int]]:
    """Cut ``count`` batches into ``groups`` contiguous groups, or as many as there are."""
    return [list(map(int, part)) for part in np.array_split(np.arange(count), min(groups, count))]


def long_batches(information: Information) -> list[Batch]:
    """Return the information in a few long batches."""
    batches = information.batches
    return [merged_batch([batches[i] for i in part]) for part in stretches(len(batches))]


def recordings(information: Information) -> list[list[int]]:
    """Return the batches of every recording."""
    found: dict[int, list[int]] = {}
    for i, batch in enumerate(information.batches):
        found.setdefault(batch.recording, []).append(i)
    return list(found.values())


Groups = Sequence[Sequence[int]]
#: share of the information in a direction that counts as left when a group of batches is removed
LEAST_REST = 1e-3


@dataclass(frozen=True, eq=False)
class BatchScores:
    """Curvature and gradient of B batches at an estimate of b parameters, in whitened directions.

    ``root`` (b, r): parameters = root @ direction, in which the information of all batches is the
    identity. ``curvature`` (B, r, r) is the share of each batch in it, ``score`` (B, r) its
    gradient at the estimate. What batches have is added up, so a group of them is removed by one
    small linear solve.
    """

    root: FloatArray
    curvature: FloatArray
    score: FloatArray

    def changes(self, groups: Groups) -> tuple[FloatArray, FloatArray]:
        """Return changes of the estimate as groups of batches are left out, (groups, b).

        Beside each, how many times larger the variance of the parameter is without the group.
        """
        found, growth = np.empty((2, len(groups), len(self.root)))
        before = np.sum(self.root**2, axis=1)
        before = np.where(before > 0.0, before, 1.0)
        whole = np.eye(self.root.shape[1])
        for i, group in enumerate(groups):
            own = list(group)
            along = self.root @ _inverse(whole - self.curvature[own].sum(axis=0))
            found[i] = along @ self.score[own].sum(axis=0)
            growth[i] = np.sum(along * self.root, axis=1) / before
        return found, growth

    def moved(self, shifts: FloatArray) -> BatchScores:
        """Return the scores where the parameters of each batch are ``shifts`` (B, r) off."""
        return replace(self, score=self.score - np.einsum('bij,bj->bi', self.curvature, shifts))


def _inverse(rest: FloatArray) -> FloatArray:
    """Return the inverse of what is ``rest`` (r, r), its eigenvalues at least LEAST_REST.

    Only where a group decides a direction alone they are less.
    """
    with suppress(np.linalg.LinAlgError):
        found = np.linalg.inv(rest)
        if np.linalg.norm(found) < 1.0 / LEAST_REST:  # no less than its largest eigenvalue
            return np.asarray(found)
    values, directions = np.linalg.eigh(rest)
    return np.asarray(directions / np.maximum(values, LEAST_REST) @ directions.T)


def leave_one_out(batches: Sequence[Batch]) -> Iterator[tuple[FloatArray, ...]]:
    """Yield, for every batch, the factors (m, k) (one per joint) of all the others.

    Factors from the front and from the back are merged once, so n batches cost 3 n merges.
    """
    joints = range(len(batches[0].factors))
    behind = [batches[-1].factors]
    for batch in batches[-2:0:-1]:
        behind.append(tuple(merged([batch.factors[j], behind[-1][j]]) for j in joints))
    ahead: tuple[FloatArray, ...] | None = None
    for batch in batches:
        rest = behind.pop() if behind else None
        sides = [side for side in (ahead, rest) if side is not None]
        yield tuple(merged([side[j] for side in sides]) for j in joints)
        ahead = batch.factors if ahead is None else tuple(
            merged([ahead[j], batch.factors[j]]) for j in joints)


def deviations(changed: Sequence[FloatArray]) -> FloatArray:
    """Return the standard deviations (k,) from the estimates that each leave one batch out.

    Source: MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    found = np.asarray(changed)
    count = len(found)
    centred = found - found.mean(axis=0)
    return np.asarray(np.sqrt((count - 1) / count * np.sum(centred**2, axis=0)))


def covariance(changes: FloatArray) -> tuple[FloatArray, int]:
    """Return the covariance (k, k) of an estimate, and its degrees of freedom.

    ``changes`` (batches, k) is what each batch has changed in the estimate. Not a number where
    there is a single batch. Source: MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count, k = changes.shape
    if count < 2:
        return np.full((k, k), np.nan), 1
    centred = changes - changes.mean(axis=0)
    return centred.T @ centred * (count - 1) / count, count - 1


#: a stretch decides a parameter alone when its variance without it is this many times larger
DECIDED = 10.0


def scatter_covariance(
    information: Information, scores: BatchScores, scales: FrictionScales | None = None,
    by_motion: BatchScores | None = None,
) -> tuple[FloatArray, int]:
    """Return the covariance (b, b) of an estimate, and its degrees of freedom.

    The variance of each parameter comes from STRETCHES stretches, from more and shorter ones
    where one of those alone decides it; and from whole recordings, or from as many stretches of
    distinct motion, where these scatter more: ``by_motion`` are the scores of its cells. With
    ``scales``, what friction differs by from one recording to the next is a variance component
    of its own instead: that of few recordings is known from all axes together only.
    Correlations of the rest are those of single batches. Not a number where there is a single
    batch.
    Source: Ibragimov, Mueller 2010 (few clusters); MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count = len(information.batches)
    parts = _Parts.of(information, scores, scales, by_motion)
    found, freedom = covariance(parts.within.changes(stretches(count, count))[0])
    found = _scaled(found, parts.variance(count, np.diag(found)))
    if parts.between is not None:
        found = found + parts.between
    return _scaled(found, parts.raised(np.diag(found))), min(freedom, STRETCHES - 1)


def scatter_variance(
    information: Information, scores: BatchScores, scales: FrictionScales | None = None,
    by_motion: BatchScores | None = None,
) -> FloatArray:
    """Return the variances (b,) of `scatter_covariance`, without its correlations.

    These take most of its time. Scores whose ``root`` has some rows only give those of as many
    parameters.
    """
    parts = _Parts.of(information, scores, scales, by_motion)
    found = parts.variance(len(information.batches))
    return parts.raised(found if parts.between is None else found + np.diag(parts.between))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Components of the variance of an estimate of b parameters.

    The ``scores`` of all batches, and those ``within`` recordings; the covariance ``between``
    (b, b) of recordings, or None; the batches of the ``recordings``, none where they say nothing;
    ``explained`` (b,) what of the scatter of recordings is in it already; the scores of cells of
    distinct motion, ``by_motion``, or None.
    """

    scores: BatchScores
    within: BatchScores
    between: FloatArray | None
    recordings: Groups
    explained: NDArray[np.bool_]
    by_motion: BatchScores | None

    @classmethod
    def of(cls, information: Information, scores: BatchScores, scales: FrictionScales | None,
           by_motion: BatchScores | None) -> _Parts:
        whole = recordings(information)
        if not 1 < len(whole) < len(information.batches):
            whole = []
        if scales is None or not whole:
            return cls(scores, scores, None, whole, np.zeros(len(scores.root), dtype=bool),
                       by_motion)
        found = between_recordings(scores, whole, scales)
        return cls(scores, found.within, found.covariance, whole,
                   np.any(scales.directions != 0.0, axis=1), by_motion)

    def variance(self, count: int, single: FloatArray | None = None) -> FloatArray:
        """Return the variance (b,) by stretches of ``count`` batches.

        ``single`` is that by single ones, which counts where no longer stretches tell.
        """
        found = np.full(len(self.scores.root), np.nan)
        known = np.zeros(len(found), dtype=bool)
        for number in (STRETCHES, 2 * STRETCHES, 4 * STRETCHES):
            if number < count and not known.all():
                several, sure = _variance(self.within, stretches(count, number))
                found[sure & ~known] = several[sure & ~known]
                known |= sure
        if known.all():
            return found
        if single is None:
            single = np.diag(covariance(self.within.changes(stretches(count, count))[0])[0])
        return np.where(known, found, single)

    def raised(self, variance: FloatArray) -> FloatArray:
        """Return the ``variance`` (b,), that of recordings or of motion where these scatter more.
        """
        if self.recordings:
            several, known = _variance(self.scores, self.recordings)
            variance = np.where(
                known & ~self.explained & (several > variance), several, variance)
        if self.by_motion is not None:
            several, known = _variance(self.by_motion, stretches(len(self.by_motion.score)))
            variance = np.where(known & (several > variance), several, variance)
        return variance


def _scaled(found: FloatArray, variance: FloatArray) -> FloatArray:
    """Return a covariance (b, b) with other variances (b,) and the same correlations."""
    own = np.diag(found)
    scale = np.sqrt(variance / np.where(own > 0.0, own, 1.0))
    return np.asarray(found * np.outer(scale, scale))


def _variance(
    scores: BatchScores, groups: Groups
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the variance (b,) by leaving out groups, and where no group decides alone."""
    made, growth = scores.changes(groups)
    return np.diag(covariance(made)[0]), np.asarray(np.all(growth < DECIDED, axis=0))


#: a recording with less than this share of the information about a scale says nothing about it
LEAST_SHARE = 1e-6
#: deviations of recordings as exact as this [-] do not differ in weight
EXACT = 1e-6


@dataclass(frozen=True, eq=False)
class FrictionScales:
    """Directions in which friction changes as a whole.

    ``directions`` (b, m): change of the b parameters by a change of one; ``kinds`` (m,) of
    friction: viscous, dry, offset; ``axes`` (m,) the numbers of the axes it is of.
    """

    directions: FloatArray
    kinds: tuple[str, ...]
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class BetweenRecordings:
    """Spread of friction from one recording to the next.

    ``spread`` is the deviation of each kind of friction, relative to its values; ``covariance``
    (b, b) of the estimate by it; ``within`` are the scores without what recordings differ by.
    """

    spread: Mapping[str, float]
    covariance: FloatArray
    within: BatchScores


def friction_scales(model: TorqueModel, values: FloatArray) -> FrictionScales | None:
    """Return the scales of friction with parameters ``values`` (b,); None without friction."""
    found: dict[tuple[str, int], FloatArray] = {}
    first = 0
    for block, chosen in zip(model.blocks, model.kept_by_block, strict=True):
        if isinstance(block, JointFriction):
            for place, parameter in enumerate(chosen.tolist(), start=first):
                key = block.kinds[parameter], block.owners[parameter]
                found.setdefault(key, np.zeros(len(values)))[place] = values[place]
        first += len(chosen)
    for (kind, axis), direction in found.items():
        if kind == OFFSET:
            dry = found.get((DRY, axis), direction)
            direction[direction != 0.0] = np.abs(dry).sum()
    kept = {key: direction for key, direction in found.items() if np.any(direction)}
    if not kept:
        return None
    kinds, axes = zip(*kept, strict=True)
    return FrictionScales(np.array(list(kept.values())).T, kinds, axes)


def between_recordings(
    scores: BatchScores, recordings: Groups, scales: FrictionScales
) -> BetweenRecordings:
    """Return the variance component from the batches of two or more ``recordings``.

    Method of moments: the scatter of the recordings, less what their own stretches of time make
    of it. Source: DerSimonian, Laird 1986; Kacker 2004 (any weights).
    """
    directions = np.asarray(np.linalg.lstsq(scores.root, scales.directions, rcond=None)[0],
                            np.float64)
    said = [_said(scores, list(own), directions) for own in recordings]
    found, variance, weight = (np.array(part) for part in zip(*said, strict=True))
    weight[weight < LEAST_SHARE * weight.sum(axis=0)] = 0.0
    share = weight / np.maximum(weight.sum(axis=0), np.finfo(np.float64).tiny)
    mean = np.sum(share * found, axis=0)
    scatter = np.sum(share * (found - mean) ** 2, axis=0)
    expected = np.sum(share * (1.0 - share) * variance, axis=0)
    freedom = np.sum(share * (1.0 - share), axis=0)
    exact = 1.0 / (np.sum(share * variance, axis=0) + EXACT**2)
    spread, squares = {}, np.zeros(len(mean))
    for kind in dict.fromkeys(scales.kinds):
        own = np.array(scales.kinds) == kind
        known = float((exact * freedom)[own].sum())
        if known > 0.0:
            squares[own] = max(float((exact * (scatter - expected))[own].sum()), 0.0) / known
            spread[kind] = float(np.sqrt(squares[own][0]))
    return BetweenRecordings(
        spread, *_without(scores, (recordings, directions), squares, (found - mean, variance)))


def _said(
    scores: BatchScores, batches: list[int], directions: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scales (m,) as one recording has them, their variance and weight, (m,) each.

    ``directions`` (r, m) are those of the scales in whitened parameters. The variance is that of
    stretches left out; the weight is the inverse of what it is with white residuals.
    """
    curvature = directions.T @ scores.curvature[batches] @ directions
    score = scores.score[batches] @ directions
    # of a scale that a recording does not show rounding is left, of either sign
    whole = np.sqrt(np.maximum(np.einsum('bii->i', curvature), 0.0))
    unit = np.where(whole > 0.0, whole, 1.0)
    curvature, score = curvature / np.outer(unit, unit), score / unit
    inverse = np.linalg.pinv(curvature.sum(axis=0), hermitian=True)
    found = inverse @ score.sum(axis=0)
    changes = []
    for part in stretches(len(batches)):
        rest = curvature.sum(axis=0) - curvature[part].sum(axis=0)
        left = score.sum(axis=0) - score[part].sum(axis=0)
        changes.append(found - np.linalg.pinv(rest, hermitian=True) @ left)
    variance = np.diag(covariance(np.array(changes))[0])
    white = np.diag(inverse)
    weight = np.where((whole > 0.0) & np.isfinite(variance), unit**2, 0.0)
    weight = weight / np.where(white > 0.0, white, 1.0)
    return found / unit, np.nan_to_num(variance) / unit**2, weight


def _without(
    scores: BatchScores, groups: tuple[Groups, FloatArray], squares: FloatArray,
    said: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, BatchScores]:
    """Return the covariance (b, b) by the component, and the scores without it.

    ``groups`` are the recordings and the directions (r, m); ``squares`` (m,) the component;
    ``said`` what the recordings say about the scales, beyond their mean, and its variance, (R, m).
    What a recording differs by is the best guess of it, which is zero without a component.
    """
    recordings, directions = groups
    off, variance = said
    off = off * squares / np.maximum(squares + variance, np.finfo(np.float64).tiny)
    shifts = np.empty_like(scores.score)
    found = np.zeros((len(scores.root), len(scores.root)))
    for own, shift in zip(recordings, off, strict=True):
        shifts[list(own)] = directions @ shift
        moved = scores.root @ (scores.curvature[list(own)].sum(axis=0) @ directions)
        found += (moved * squares) @ moved.T
    return found, scores.moved(shifts)
