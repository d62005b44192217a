"""Stretches of recordings as they were recorded, with the noise of their encoders."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.estimation.uncertainty.between_recordings import SCATTER_STRETCHES
from robot_dynid.signals.encoders import noise
from robot_dynid.signals.unfiltered import AsRecorded, Unfiltered
from robot_dynid.types import FloatArray
from robot_dynid_extras.latent.motion import (
    SAMPLES,
    SPACING,
    Channel,
    Stretch,
)
from robot_dynid_extras.latent.motion_spline import DEGREE, MotionSpline

#: length of a stretch [s], shorter ones of short recordings; how many at most, evenly spaced
SECONDS, MOST = 1.0, 60
#: time [s] around a reversal by which the speed there is known; so many deviations make it known
WINDOW, KNOWN = 0.02, 1.5
#: least knots of a stretch: at its ends its motion is known less well
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
    seconds = min(SECONDS, total / SCATTER_STRETCHES)
    spans = [(number, part, rows) for number, part in parts for rows in _rows(part, seconds)]
    spans = spans[::-(-len(spans) // MOST)] if spans else []
    if len(spans) < 2:
        raise DataError(f'the recordings last {total:.3g} s together: the method latent needs '
                        'two contiguous stretches of '
                        f'{KNOTS * SPACING:.2g} s or more, at 250 Hz; record longer')
    deviation = _noise([part for _, part in parts])
    found: list[Stretch] = []
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
    return Cut(tuple(found), deviation)


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


def _rows(part: Unfiltered, seconds: float) -> list[slice]:
    """Return the rows of the stretches of a part, which share their ends."""
    step = float(part.time[1] - part.time[0])
    count = max(round(seconds / step), round(KNOTS * max(SPACING, SAMPLES * step) / step))
    pieces = (len(part.time) - 1) // count
    firsts = np.linspace(0, len(part.time) - 1, pieces + 1).astype(np.int64)
    found = [slice(a, b + 1) for a, b in pairwise(firsts.tolist())] if pieces else []
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
