"""Spread of friction from one recording to the next: a variance component.

Joints are warmer, grease is older, another season: friction is another in every recording, links
are not. Two or three recordings tell little about one joint, but all joints together do: viscous
friction of every axis, as a share of its value, is taken to differ alike, and so are dry friction
and, in parts of the dry friction, offsets. What a recording says about these scales, all else
as estimated from all, scatters by more than its own stretches of time let expect: the rest is the
component.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_dynid.effects.joint_friction import JointFriction
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.uncertainty.jackknife import BatchScores, Groups, covariance
from robot_dynid.estimation.uncertainty.stretches import stretches
from robot_dynid.friction.law import DRY, OFFSET
from robot_dynid.types import FloatArray

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
