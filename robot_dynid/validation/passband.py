"""The cut-off for a recording on which a model is scored: what passes is the motion's choice.

The cut-off of a fit suits the motion of the fit. A faster motion needs a higher one, or its own
filter takes off what it is scored on; a coarser recording a lower one. The measured effort says
nothing here: a measurement is never altered before it is scored, nor is what is compared with it
chosen by it.
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

#: rows of a recording by which its cut-off is chosen, the first ones
PASSBAND_ROWS = 20_000
#: a band that changes the effort by up to this factor more than the least one is as empty
EMPTY = 1.25


def settings_for(model: IdentifiedModel, recording: Repaired) -> Preprocessing:
    """Return the preprocessing by which ``model`` predicts the efforts of a recording.

    Filtered ever less, the motion predicts other efforts: at first because motion passes that did
    not before, in the end because noise does. The cut-off is where that changes least, or the
    lowest above it that is about as good; that of the fit where it is higher and the recording can
    show it.
    """
    fit = model.preprocessing
    highest = CUTOFF_RATE_SHARE / recording.step
    candidates = sorted({*(c for c in CUTOFFS if c < highest), min(fit.cutoff, highest)})
    found: list[tuple[float, FloatArray, FloatArray]] = []
    for cutoff in candidates:
        with_it = replace(fit, cutoff=cutoff, decimate=False, trim_rest=False)
        try:
            samples = prepare(model.robot, first_rows(recording), with_it)
        except DataError:
            continue  # too short for so slow a filter
        own = samples.fresh
        found.append((cutoff, samples.instants[own], model.predicted(samples)[own]))
    changes = [_change(*one, *other) for (_, *one), (_, *other) in pairwise(found)]
    chosen = next((cutoff for (cutoff, *_), change in zip(found, changes, strict=False)
                   if change <= EMPTY * min(changes)), min(fit.cutoff, highest))
    return replace(fit, cutoff=min(max(chosen, fit.cutoff), highest))


def first_rows(recording: Repaired) -> Repaired:
    """Return the first PASSBAND_ROWS rows of a recording, by which its cut-off is chosen."""
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
    """Return by how much an effort (N, n) differs from the ``other``, a mean over joints.

    Both at their instants, ``time`` and ``later``; a slower filter leaves fewer at the ends.
    """
    _, rows, others = np.intersect1d(time, later, return_indices=True)
    squares = np.mean((effort[rows] - other[others])**2, axis=0)
    moves = squares > 0.0
    return float(np.exp(0.5 * np.mean(np.log(squares[moves])))) if moves.any() else 0.0
