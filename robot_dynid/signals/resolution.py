"""Resolution of encoders: the step positions are rounded to, and their noise."""

from __future__ import annotations

import numpy as np

from robot_dynid.types import FloatArray

#: steps are found from this many changes of position of at most so many counts, which are whole
#: numbers of counts to within a share
CHANGES, COUNTS, WHOLE = 20, 20.0, 0.05
#: what is below this share of the positions is rounding of numbers
ROUNDING = 1e-11


def resolution(position: FloatArray) -> float:
    """Return the step [rad, m] of the encoder that gave ``position`` (T,), 0 where none shows.

    The smallest change of position is a step when almost all other changes of a few steps are
    whole numbers of it.
    """
    change = np.abs(np.diff(position[np.isfinite(position)]))
    change = change[change > ROUNDING * max(float(np.abs(position).max(initial=0.0)), 1.0)]
    step = float(change.min(initial=np.inf))
    few = change[change <= COUNTS * step]
    if len(few) < CHANGES:
        return 0.0
    step = float(few.sum() / np.round(few / step).sum())
    counts = few / step
    whole = np.abs(counts - np.round(counts)) < WHOLE
    return step if np.mean(whole) > 1.0 - WHOLE else 0.0


def noise(position: FloatArray) -> float:
    """Return the deviation [rad, m] of single positions (T,) from a smooth motion.

    From fourth differences, and not below that of rounding to the steps of the encoder.
    """
    differences = np.diff(position, 4)
    white = float(np.sqrt(np.mean(differences**2) / 70.0)) if len(differences) else 0.0
    return max(white, resolution(position) / float(np.sqrt(12.0)))
