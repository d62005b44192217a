"""Identifiability of every standard parameter: alone, in combinations, or not at all.

A parameter without any influence is unidentifiable; one whose influence others can imitate is
linearly dependent, and only combinations with those others are known; one whose unit vector lies
in the row space of the regressor is independently identifiable.
Source: Lopez, Zollo, Guglielmelli, Math. Probl. Eng. 2014, 843186, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import random_states
from robot_dynid.reduction.sensor_configurations import FURTHER
from robot_dynid.regressor.block import Block
from robot_dynid.robot.model import RobotModel

UNIDENTIFIABLE, DEPENDENT, INDEPENDENT = CATEGORIES = (
    'unidentifiable', 'linearly dependent', 'independently identifiable')
SEED = 7
#: measurements named in a sentence, the cheapest
NAMED = 2


@dataclass(frozen=True)
class Category:
    """One of CATEGORIES, and for dependent parameters the names of their base parameters.

    ``further`` are the measurements (keys of FURTHER) that would lift the category, with the one
    it would become.
    """

    category: str
    combinations: tuple[str, ...] = ()
    further: tuple[tuple[str, str], ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the category in plain types."""
        found: dict[str, Any] = {'category': self.category}
        if self.combinations:
            found['in'] = list(self.combinations)
        if self.category != INDEPENDENT:
            found['further'] = dict(self.further)
            found['advice'] = self.advice
        return found

    @property
    def advice(self) -> str:
        """What would tell more about the parameter, as a sentence; empty where nothing is open."""
        if self.category == INDEPENDENT:
            return ''
        for wanted, effect in ((INDEPENDENT, 'told apart by'), (DEPENDENT, 'seen, combined, by')):
            words = [FURTHER[key].words for key, category in self.further if category == wanted]
            if words:
                return f'{effect} {" or by ".join(words[:NAMED])}'
        return 'nothing that was tried tells it'


def category_of(reduction: Reduction, index: int) -> Category:
    """Return the category of one standard parameter under a reduction."""
    rows = np.flatnonzero(reduction.matrix[:, index])
    if not len(rows):
        return Category(UNIDENTIFIABLE)
    if len(rows) == 1 and np.count_nonzero(reduction.matrix[rows[0]]) == 1:
        return Category(INDEPENDENT)
    return Category(DEPENDENT, tuple(reduction.names[row] for row in rows))


def categories(reduction: Reduction) -> dict[str, Category]:
    """Return the category of every standard parameter, by name."""
    return {name: category_of(reduction, i) for i, name in enumerate(reduction.standard)}


@one_blas_thread()
def with_advice(
    robot: RobotModel, blocks: Sequence[Block], reduction: Reduction
) -> dict[str, Category]:
    """Return the categories, with what further measurements would make of them.

    Each of FURTHER is tried: its equations join those of the robot, the whole is reduced anew,
    and what is told is what that reduction shows.
    """
    found = categories(reduction)
    if all(one.category == INDEPENDENT for one in found.values()):
        return found
    states = random_states(robot, 20 + 3 * len(reduction.standard) // robot.rows,
                           np.random.default_rng(SEED))
    lifted: dict[str, list[tuple[str, str]]] = {name: [] for name in found}
    for key, further in FURTHER.items():
        reduced = further.reduced(robot, blocks, states)
        seen = {} if reduced is None else categories(reduced)
        for name, one in found.items():
            new = seen.get(name, one).category
            if CATEGORIES.index(new) > CATEGORIES.index(one.category):
                lifted[name].append((key, new))
    return {name: Category(one.category, one.combinations, tuple(lifted[name]))
            for name, one in found.items()}


def lifted_by(found: Mapping[str, Category]) -> dict[str, dict[str, list[str]]]:
    """Return by further measurement (key of FURTHER) the names it would lift, by new category."""
    told: dict[str, dict[str, list[str]]] = {
        key: {INDEPENDENT: [], DEPENDENT: []} for key in FURTHER}
    for name, one in found.items():
        for key, category in one.further:
            told[key][category].append(name)
    return told
