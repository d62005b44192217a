"""Deviations from the scatter of long stretches of time, and of whole recordings.

Leaving out a second at a time takes seconds for independent. What a model lacks is alike for
longer: a motion repeats its speeds, a joint warms up, and from one recording to the next friction
is another. A few long stretches are independent, and Student's quantiles pay for their number.
"""

from __future__ import annotations

import numpy as np

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
    information: Information, scores: BatchScores, scales: FrictionScales | None = None
) -> tuple[FloatArray, int]:
    """Return the covariance (b, b) of an estimate, and its degrees of freedom.

    The variance of each parameter comes from STRETCHES stretches, from more and shorter ones
    where one of those alone decides it; and from whole recordings where these scatter more. With
    ``scales``, what friction differs by from one recording to the next is a variance component
    of its own instead: that of few recordings is known from all axes together only.
    Correlations of the rest are those of single batches. Not a number where there is a single
    batch.
    Source: Ibragimov, Mueller 2010 (few clusters); MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count, whole = len(information.batches), recordings(information)
    within, between = scores, None
    if scales is not None and 1 < len(whole) < count:
        between = between_recordings(scores, whole, scales)
        within = between.within
    found, freedom = covariance(within.changes(stretches(count, count))[0])
    variance = np.diag(found)
    for number in (4 * STRETCHES, 2 * STRETCHES, STRETCHES):
        if number < count:
            several, known = _variance(within, stretches(count, number))
            variance = np.where(known, several, variance)
    found = _scaled(found, variance)
    explained = np.zeros(len(found), dtype=bool)
    if between is not None and scales is not None:
        found = found + between.covariance
        explained = np.any(scales.directions != 0.0, axis=1)
    if 1 < len(whole) < count:
        several, known = _variance(scores, whole)
        more = known & ~explained & (several > np.diag(found))
        found = _scaled(found, np.where(more, several, np.diag(found)))
    return found, min(freedom, STRETCHES - 1)


def _scaled(found: FloatArray, variance: FloatArray) -> FloatArray:
    """Return a covariance (b, b) with other variances (b,) and the same correlations."""
    own = np.diag(found)
    scale = np.sqrt(variance / np.where(own > 0.0, own, 1.0))
    return np.asarray(found * np.outer(scale, scale))


def _variance(scores: BatchScores, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Return the variance (b,) by leaving out groups, and where no group decides alone."""
    made, growth = scores.changes(groups)
    return np.diag(covariance(made)[0]), np.all(growth < DECIDED, axis=0)
