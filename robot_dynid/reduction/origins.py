"""Origins of standard parameters: measured, only in combination, or from the prior.

Efforts show base parameters. A standard parameter that is one of them alone is measured; one that
enters a base parameter together with others is known in this combination only, and what it is by
itself was assumed; one that enters none is assumed altogether.

What efforts leave open are the directions N (p, d) with K N = 0. Two parameters whose rows of N
are multiples of each other are separated by the same measurement: knowing one gives the other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from robot_dynid.reduction.base import Reduction
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.types import FloatArray

MEASURED, COMBINED, PRIOR = 'measured', 'only in combination', 'prior'
#: how much it takes to measure a parameter by itself: masses, first moments, inertias, others
EFFORT = dict(zip((*PARAMETERS, ''), (0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3), strict=True))
#: rows of unit length whose cosine is this near to one are multiples of each other
PARALLEL = 1e-9


@dataclass(frozen=True)
class Origin:
    """The origin of the standard parameter ``name``: ``kind``, one of the three.

    ``base`` are the indices of the base parameters it enters. ``separated_by`` is the parameter
    whose measurement would give it, the easiest there is (a weighed mass before a balanced first
    moment before an inertia); empty where it is measured.
    """

    name: str
    kind: str
    base: tuple[int, ...]
    separated_by: str = ''


def origins(reduction: Reduction, unknown: Collection[str] = ()) -> tuple[Origin, ...]:
    """Return the origin of every standard parameter (p,).

    ``unknown`` are names that come from the prior whatever they enter: the data left them open.
    """
    matrix = reduction.matrix
    open_directions = _open_directions(reduction)
    found = []
    for i, name in enumerate(reduction.standard):
        base = tuple(np.flatnonzero(matrix[:, i]).tolist())
        alone = len(base) == 1 and np.count_nonzero(matrix[base[0]]) == 1
        kind = PRIOR if not base or name in unknown else MEASURED if alone else COMBINED
        found.append(Origin(name, kind, base, '' if alone else _easiest(
            reduction, open_directions, i)))
    return tuple(found)


def _open_directions(reduction: Reduction) -> FloatArray:
    """Return N (p, d), one direction per dependent parameter, which it has with factor one."""
    count = len(reduction.standard)
    dependent = np.setdiff1d(np.arange(count), reduction.kept)
    directions = np.zeros((count, len(dependent)))
    directions[dependent, np.arange(len(dependent))] = 1.0
    directions[reduction.kept] = -reduction.matrix[:, dependent]
    return directions


def _easiest(reduction: Reduction, directions: FloatArray, i: int) -> str:
    """Return the parameter that is measured most easily and gives parameter ``i``."""
    length = np.linalg.norm(directions, axis=1) * np.linalg.norm(directions[i])
    cosine = np.abs(directions @ directions[i])
    same = np.flatnonzero((length > 0.0) & (cosine >= (1.0 - PARALLEL) * length))
    best = min(same, key=lambda j: (EFFORT[kind_of(reduction.standard[j])], j != i, j))
    return reduction.standard[int(best)]


def kind_of(name: str) -> str:
    """Return ``m``, ``mx``, ``Ixx`` ... of a parameter of a link, an empty text of others."""
    stem = name.rstrip('0123456789')
    return stem if stem in PARAMETERS else ''
