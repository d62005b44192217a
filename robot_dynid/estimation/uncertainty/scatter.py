"""Deviations from the scatter of long stretches of time, of distinct motion and of recordings.

Leaving out a second at a time takes seconds for independent. What a model lacks is alike for
longer: a motion repeats its speeds, a joint warms up, and from one recording to the next friction
is another. A few long stretches are independent, and Student's quantiles pay for their number.
Where a motion is passed again and again, what a model lacks in it is the same each time: then
stretches of distinct motion are left out, wherever they were passed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.information import Information
from robot_dynid.estimation.uncertainty.between_recordings import (
    FrictionScales,
    between_recordings,
)
from robot_dynid.estimation.uncertainty.jackknife import BatchScores, Groups, covariance
from robot_dynid.estimation.uncertainty.stretches import STRETCHES, recordings, stretches
from robot_dynid.types import FloatArray

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
