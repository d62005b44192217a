"""Cut-off for a recording on which a model is scored, chosen from its motion.

The cut-off of a fit suits the motion of the fit. A faster motion needs a higher one, because the
filter must not remove scored content; a coarser recording a lower one. The measured effort is not
used: scores must not depend on a choice made from it.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

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
from robot_dynid.types import FloatArray, RawLog

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
