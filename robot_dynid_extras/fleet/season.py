"""Season: what days do to all arms of a fleet alike, a cold week say, is no change of an arm.

Values of sessions are taken apart into the level of their arm and what is common to their time,
by medians in turns (Tukey, Exploratory Data Analysis, 1977, chapter 11), which a few arms that
changed do not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from robot_dynid.types import FloatArray
from robot_dynid_extras.fleet.scatter import LEAST_UNITS, Path

Own = TypeVar('Own', bound=Path)
#: rounds of medians in turns
ROUNDS = 4


def without_season(paths: Sequence[Own], days: Sequence[FloatArray]) -> list[Own]:
    """Return ``paths`` of arms without what they have in common along their ``days`` (S,) each.

    Common to a day is the median of as many sessions next to it in time as there are arms. Fewer
    than LEAST_UNITS arms with several sessions do not tell: they stay as they are.
    """
    several = sum(path.freedom > 0 for path in paths)
    if several < LEAST_UNITS:
        return list(paths)
    arms = np.repeat(np.arange(len(paths)), [len(path.values) for path in paths])
    values, day = np.concatenate([path.values for path in paths]), np.concatenate(days)
    places, inverse = np.unique(day, return_inverse=True)
    near = [_near(day, place, several) for place in places]
    common = np.zeros(len(places))
    for _ in range(ROUNDS):
        left = values - common[inverse]
        levels = np.array([np.median(left[arms == r]) if len(path.values) else 0.0
                           for r, path in enumerate(paths)])
        off = values - levels[arms]
        common = np.array([np.median(off[own]) for own in near])
        common -= np.median(common[inverse])
    return [replace(path, values=path.values - common[inverse[arms == r]])
            for r, path in enumerate(paths)]


def _near(day: FloatArray, place: float, count: int) -> FloatArray:
    """Return a mask of the ``count`` sessions nearest in time, and of others as near."""
    distance = np.abs(day - place)
    return np.asarray(distance <= np.partition(distance, count - 1)[count - 1])
