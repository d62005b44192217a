"""Cut-offs for a recording on which a model is scored, chosen from its motion and from the fit.

The cut-off of a fit suits the motion of the fit. A faster motion needs a higher one, because the
filter must not remove scored content; a coarser recording a lower one. The measured effort is not
used: scores must not depend on a choice made from it. Joints whose effort the recordings of the
fit show better at a higher cut-off are predicted with that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.signals.prepare import (
    CUTOFF_RATE_SHARE,
    CUTOFFS,
    Efforts,
    Preprocessing,
    Repaired,
    prepare,
)
from robot_dynid.types import FloatArray, RawLog, Samples

Timed = TypeVar('Timed', RawLog, Efforts)

#: rows at the beginning of a recording from which its cut-off is chosen
PASSBAND_ROWS = 20_000
#: changes within this factor of the smallest one count as equal
EMPTY = 1.25


def settings_for(model: IdentifiedModel, recording: Repaired) -> Preprocessing:
    """Return the preprocessing by which ``model`` predicts the efforts of a recording.

    With rising cut-off the predicted effort changes: first because more motion passes, finally
    because noise does. The cut-off is that of the smallest change, or the lowest above it of about
    equal change; that of the fit if it is higher and the recording resolves it.
    """
    fit = model.preprocessing
    highest = CUTOFF_RATE_SHARE / recording.step
    candidates = sorted({*(c for c in CUTOFFS if c < highest), min(fit.cutoff, highest)})
    trials: list[tuple[float, FloatArray, FloatArray]] = []
    for cutoff in candidates:
        with_it = replace(fit, cutoff=cutoff, decimate=False, trim_rest=False)
        try:
            samples = prepare(model.robot, first_rows(recording), with_it)
        except DataError:
            continue  # too short for this filter
        fresh = samples.fresh
        trials.append((cutoff, samples.instants[fresh], model.predicted(samples)[fresh]))
    changes = [_change(*one, *other) for (_, *one), (_, *other) in pairwise(trials)]
    chosen = next((cutoff for (cutoff, *_), change in zip(trials, changes, strict=False)
                   if change <= EMPTY * min(changes)), min(fit.cutoff, highest))
    return replace(fit, cutoff=min(max(chosen, fit.cutoff), highest))


@dataclass(frozen=True, eq=False)
class Passbands:
    """Samples of a recording at the common cut-off, and at the ``higher`` ones of some equations.

    Those are undecimated, with the equations (k,) that they serve.
    """

    samples: Samples
    higher: tuple[tuple[Samples, NDArray[np.int64]], ...]

    @classmethod
    def of(cls, model: IdentifiedModel, recording: Repaired) -> Passbands:
        """Prepare a recording for the prediction by ``model``."""
        common = settings_for(model, recording)
        samples = prepare(model.robot, recording, common)
        cutoffs = np.minimum(model.record.passbands, CUTOFF_RATE_SHARE / recording.step)
        higher = []
        for cutoff in np.unique(cutoffs[cutoffs > common.cutoff]):
            settings = replace(common, cutoff=float(cutoff), decimate=False, trim_rest=False)
            higher.append((prepare(model.robot, recording, settings),
                           np.flatnonzero(cutoffs == cutoff)))
        return cls(samples, tuple(higher))

    def merge(self, common: FloatArray, of: Callable[[Samples], FloatArray]) -> FloatArray:
        """Return the effort (N, rows) ``of`` the samples with each equation at its cut-off.

        ``common`` (N, rows) is that at the common one.
        """
        effort = common.copy()
        for samples, equations in self.higher:
            _, here, there = np.intersect1d(self.samples.instants, samples.instants,
                                            return_indices=True)
            effort[np.ix_(here, equations)] = of(samples)[np.ix_(there, equations)]
        return effort


def first_rows(recording: Repaired) -> Repaired:
    """Return the first PASSBAND_ROWS rows of a recording."""
    part, *_ = recording.parts
    if len(part.time) <= PASSBAND_ROWS:
        return recording
    return replace(recording, parts=(_within(part, part.time[PASSBAND_ROWS]),), measured=tuple(
        _within(one, part.time[PASSBAND_ROWS]) for one in recording.measured[:1]))


def _within(rows: Timed, end: float) -> Timed:
    """Return the rows before a time [s]."""
    count = int(np.searchsorted(rows.time, end))
    values: dict[str, Any] = {
        f.name: value[:count] for f in fields(rows)
        if isinstance(value := getattr(rows, f.name), np.ndarray)}
    return replace(rows, **values)


def _change(
    time: FloatArray, effort: FloatArray, later: FloatArray, other: FloatArray
) -> float:
    """Return the mean change over joints from effort (N, n) to the ``other``.

    Both at their instants, ``time`` and ``later``; a slower filter leaves fewer samples at the
    ends.
    """
    _, rows, others = np.intersect1d(time, later, return_indices=True)
    squares = np.mean((effort[rows] - other[others])**2, axis=0)
    moves = squares > 0.0
    return float(np.exp(0.5 * np.mean(np.log(squares[moves])))) if moves.any() else 0.0
