"""Confidence intervals of single standard parameters of a feasible fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.simultaneous import SMALLEST, Feasible, FeasibleEstimate, Task
from robot_dynid.types import FloatArray

#: share of the draws below the interval, and above it
TAIL = 0.025


@dataclass(frozen=True, eq=False)
class Intervals:
    """``lower`` and ``upper`` (k,) of ``names``; infinite where the prior decided.

    ``share`` (k,) of the prior, see Certificate: the larger, the more the interval takes the
    prior for granted.
    """

    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    share: FloatArray


def standard_intervals(
    experiment: Experiment, estimator: Feasible, estimate: FeasibleEstimate, names: Sequence[str],
    rng: np.random.Generator, draws: int = 100,
) -> Intervals:
    """Return 95 % intervals of standard parameters ``names``: percentiles of a batch bootstrap.

    The estimator is fitted again, with the weight of the prior that ``estimate`` has, to as many
    batches drawn with replacement, so coloured residuals within a batch do no harm. What the prior
    pulls at is narrower than the data alone would make it; what it decided has no interval.
    Raises UsageError for an unknown name, DataError with fewer than two batches.
    Source: Efron, Tibshirani, An introduction to the bootstrap, 1993, chapters 8 and 13.
    """
    known = estimate.certificate.names
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f'no standard parameter {", ".join(unknown)}; there are '
                         f'{", ".join(known)}')
    count = len(experiment.information.batches)
    if count < 2:
        raise DataError('one batch alone has no spread; record a longer motion')
    chosen = [known.index(name) for name in names]
    task = Task.of(experiment, estimator.prior, estimator.bounds)
    found = np.empty((draws, len(chosen)))
    for row in found:
        drawn = experiment.information.subset(list(map(int, rng.integers(count, size=count))))
        answer = None if estimate.prior_weight else estimator.unconstrained(task, drawn)
        if answer is None:
            answer = estimator.fitter(task, drawn)(estimate.prior_weight or SMALLEST)
        row[:] = (task.feasible.whitening.transform @ answer.v)[chosen]
    lower, upper = np.quantile(found, [TAIL, 1.0 - TAIL], axis=0)
    guessed = np.array([name in estimate.certificate.from_prior for name in names])
    return Intervals(tuple(names), np.where(guessed, -np.inf, lower),
                     np.where(guessed, np.inf, upper), estimate.certificate.share[chosen])
