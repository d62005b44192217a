"""Deviations from the scatter of long stretches of time, and of whole recordings.

Leaving out a second at a time takes seconds for independent. What a model lacks is alike for
longer: a motion repeats its speeds, a joint warms up, and from one recording to the next friction
is another. A few long stretches are independent, and Student's quantiles pay for their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from robot_dynid.estimation.information import Batch, Information, merged_batch
from robot_dynid.estimation.uncertainty.jackknife import covariance
from robot_dynid.types import FloatArray

Groups = Sequence[Sequence[int]]
#: stretches the data is cut into; their number less one is the degrees of freedom
STRETCHES = 8
#: a stretch decides a parameter alone when its variance without it is this many times larger
DECIDED = 10.0


class Changes(Protocol):
    """Changes of an estimate of b parameters as groups of batches are left out (jackknife)."""

    def __call__(self, groups: Groups) -> tuple[FloatArray, FloatArray]:
        """Return changes and growth of the variance, (groups, b) each."""


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


def scatter_covariance(information: Information, changes: Changes) -> tuple[FloatArray, int]:
    """Return the covariance (b, b) of an estimate, and its degrees of freedom.

    The variance of each parameter comes from STRETCHES stretches, from more and shorter ones
    where one of those alone decides it; and from whole recordings where these scatter more.
    Correlations are those of single batches. Not a number where there is a single batch.
    Source: Ibragimov, Mueller 2010 (few clusters); MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count = len(information.batches)
    found, freedom = covariance(changes(stretches(count, count))[0])
    fine = variance = np.diag(found)
    for number in (4 * STRETCHES, 2 * STRETCHES, STRETCHES):
        if number < count:
            several, known = _variance(changes, stretches(count, number))
            variance = np.where(known, several, variance)
    whole = recordings(information)
    if 1 < len(whole) < count:
        several, known = _variance(changes, whole)
        variance = np.where(known, np.maximum(variance, several), variance)
    scale = np.sqrt(variance / np.where(fine > 0.0, fine, 1.0))
    return found * np.outer(scale, scale), min(freedom, STRETCHES - 1)


def _variance(changes: Changes, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Return the variance (b,) by leaving out groups, and where no group decides alone."""
    made, growth = changes(groups)
    return np.diag(covariance(made)[0]), np.all(growth < DECIDED, axis=0)
