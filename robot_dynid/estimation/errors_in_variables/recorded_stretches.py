"""Stretches of recordings as recorded, the noise of their encoders, parts to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.estimation.errors_in_variables.latent_motion import (
    SAMPLES,
    SPACING,
    Channel,
    Part,
    Stretch,
)
from robot_dynid.estimation.errors_in_variables.motion_spline import DEGREE, MotionSpline
from robot_dynid.estimation.uncertainty.stretches import STRETCHES, stretches
from robot_dynid.signals.resolution import noise
from robot_dynid.signals.unfiltered import AsRecorded, Unfiltered
from robot_dynid.types import FloatArray

#: length of a stretch [s], up to twice that where a recording ends; how many at most, evenly
#: spaced. What the first and the last 0.3 s tell is lost, for nothing holds the motion there
SECONDS, MOST = 5.0, 12
#: length [s] of the parts that are left out in turn, shorter ones of short recordings
PART = 1.0
#: time [s] around a reversal by which the speed there is known; so many deviations make it known
WINDOW, KNOWN = 0.02, 1.5
#: least knots of a stretch and of a part
KNOTS = 20
#: noise [rad, m] below which there is nothing but rounding of numbers
ROUNDING = 1e-10
#: seconds whose noise is looked at, of every part of a recording
LOOKED_AT = 10.0


@dataclass(frozen=True, eq=False)
class Cut:
    """Stretches of all recordings, and the noise (m,) [rad, m] of the encoders in them."""

    stretches: tuple[Stretch, ...]
    noise: FloatArray

    def slowest(self, axes: FloatArray) -> FloatArray:
        """Return the speeds (a,) [rad/s, m/s] of ``axes`` (a, m) that encoders tell from rest.

        That of a straight line through the positions of WINDOW, KNOWN times its deviation.
        """
        time = self.stretches[0].time
        step = float(time[1] - time[0])
        deviation = self.noise * np.sqrt(12.0 * step / WINDOW**3)
        return np.asarray(KNOWN * np.sqrt(axes**2 @ deviation**2))


def stretches_of(recordings: AsRecorded) -> Cut:
    """Cut recordings into stretches of about SECONDS, MOST at most.

    Raises DataError where all are too short.
    """
    parts = [(number, part) for number, own in _numbered(recordings) for part in own]
    total = sum(float(part.time[-1] - part.time[0]) for _, part in parts)
    spans = [(number, part, rows) for number, part in parts for rows in _rows(part)]
    spans = spans[::-(-len(spans) // MOST)] if spans else []
    found: list[Stretch] = []
    deviation = _noise([part for _, part in parts]) if spans else np.empty(0)
    for number, part, rows in spans:
        begin, end = part.time[rows.start], part.time[rows.stop - 1]
        told = (part.stamps >= begin) & (part.stamps < end)
        before = found[-1] if found else None
        goes_on = before is not None and before.recording == number \
            and before.time[-1] == begin
        found.append(Stretch(
            part.time[rows], (Channel(0, part.position[rows], deviation),), part.stamps[told],
            part.effort[told], None if part.temperature is None else part.temperature[told],
            goes_on, number, part.began))
    if len(groups_of(found)) < 2:
        raise DataError(f'the recordings last {total:.3g} s together: the method latent needs '
                        'two contiguous stretches of '
                        f'{KNOTS * SPACING:.2g} s or more, at 250 Hz; record longer')
    return Cut(tuple(found), deviation)


def groups_of(cut: Sequence[Stretch]) -> list[list[Part]]:
    """Return parts of about PART of all stretches, in groups that are left out in turn."""
    lengths = [float(one.time[-1] - one.time[0]) for one in cut]
    seconds = min(PART, sum(lengths) / STRETCHES)
    found: list[Part] = []
    for i, (one, length) in enumerate(zip(cut, lengths, strict=True)):
        count = max(1, round(length / max(seconds, KNOTS * one.spacing)))
        edges = np.linspace(one.time[0], one.time[-1], count + 1).tolist()
        found += [Part(i, begin, end) for begin, end in pairwise(edges)]
    return [[found[i] for i in group] for group in stretches(len(found))]


def _numbered(recordings: AsRecorded) -> list[tuple[int, tuple[Unfiltered, ...]]]:
    """Return the parts with the number of the recording they belong to."""
    found: list[tuple[int, tuple[Unfiltered, ...]]] = []
    number, began = -1, None
    for own in recordings.read():
        if not own:
            continue
        if began is None or own[0].began != began:
            number += 1
        began = own[0].began
        found.append((number, own))
    return found


def _rows(part: Unfiltered) -> list[slice]:
    """Return the rows of the stretches of a part, which share their ends."""
    step, last = float(part.time[1] - part.time[0]), len(part.time) - 1
    if last < round(KNOTS * max(SPACING, SAMPLES * step) / step):
        return []
    firsts = np.linspace(0, last, max(1, int(last * step / SECONDS)) + 1).astype(np.int64)
    found = [slice(a, b + 1) for a, b in pairwise(firsts.tolist())]
    return [rows for rows in found if _told(part, rows) >= KNOTS]


def _told(part: Unfiltered, rows: slice) -> int:
    """Return the number of efforts within rows."""
    first, last = np.searchsorted(part.stamps, [part.time[rows.start], part.time[rows.stop - 1]])
    return int(last - first)


def _noise(parts: list[Unfiltered]) -> FloatArray:
    """Return the noise (m,) of the encoders: what a smooth motion or a fine spline leaves."""
    squares, counts = [], []
    for part in parts:
        step = float(part.time[1] - part.time[0])
        position = part.position[:int(LOOKED_AT / step)]
        if len(position) < KNOTS * SAMPLES:
            continue
        spline = MotionSpline(part.time[:len(position)], max(SPACING, SAMPLES * step))
        rest = position - spline.motion(spline.fitted(position))[0]
        free = len(position) - spline.intervals - DEGREE
        left = np.sum(rest**2, axis=0) / max(free, 1)
        squares.append(np.maximum(left, [noise(column)**2 for column in position.T]))
        counts.append(len(position))
    found = np.average(squares, axis=0, weights=counts)
    return np.asarray(np.sqrt(np.maximum(found, ROUNDING**2)))
