"""Identifiability of every standard parameter: alone, in combinations, or not at all.

A parameter without influence is unidentifiable. One whose influence other parameters can reproduce
is linearly dependent: only its combinations with them are identifiable. One whose unit vector lies
in the row space of the regressor is independently identifiable.

Source: Lopez, Zollo, Guglielmelli, Math. Probl. Eng. 2014, 843186, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.effects.effect import Effect
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import random_states
from robot_dynid.reduction.sensor_configurations import SENSOR_CONFIGURATIONS
from robot_dynid.robot.model import RobotModel

UNIDENTIFIABLE, DEPENDENT, INDEPENDENT = CATEGORIES = (
    'unidentifiable', 'linearly dependent', 'independently identifiable')
SENTENCE_SEED = 7
#: number of measurements named in a sentence, the cheapest first
NAMED_MEASUREMENTS = 2


@dataclass(frozen=True)
class Category:
    """One of CATEGORIES; for a dependent parameter also the names of its base parameters.

    ``sensor_configurations``: pairs (key of SENSOR_CONFIGURATIONS, category it would raise this
    one to).
    """

    category: str
    combinations: tuple[str, ...] = ()
    sensor_configurations: tuple[tuple[str, str], ...] = ()
    tried: bool = True

    def plain(self) -> dict[str, Any]:
        """Return the category in plain types."""
        content: dict[str, Any] = {'category': self.category}
        if self.combinations:
            content['in'] = list(self.combinations)
        if self.category != INDEPENDENT:
            content['further'] = dict(self.sensor_configurations)
            content['advice'] = self.advice
        return content

    @property
    def advice(self) -> str:
        """Sensor configurations that raise the category, as a sentence; empty for the highest."""
        if self.category == INDEPENDENT or not self.tried:
            return ''
        for lifted, effect in ((INDEPENDENT, 'identifiable alone with'),
                               (DEPENDENT, 'identifiable in combinations with')):
            words = [SENSOR_CONFIGURATIONS[key].words
                     for key, category in self.sensor_configurations if category == lifted]
            if words:
                return f'{effect} {" or with ".join(words[:NAMED_MEASUREMENTS])}'
        return 'not identifiable with any sensor configuration that was tried'


def category_of(reduction: Reduction, index: int) -> Category:
    """Return the category of one standard parameter under a reduction."""
    rows = np.flatnonzero(reduction.matrix[:, index])
    if not len(rows):
        return Category(UNIDENTIFIABLE)
    if len(rows) == 1 and np.count_nonzero(reduction.matrix[rows[0]]) == 1:
        return Category(INDEPENDENT)
    return Category(DEPENDENT, tuple(reduction.names[row] for row in rows))


def categories(reduction: Reduction) -> dict[str, Category]:
    """Return the category of every standard parameter by name."""
    return {name: category_of(reduction, i) for i, name in enumerate(reduction.standard)}


@one_blas_thread()
def with_advice(
    robot: RobotModel, blocks: Sequence[Effect], reduction: Reduction
) -> dict[str, Category]:
    """Return the categories, with the sensor configurations that would raise them.

    Each of SENSOR_CONFIGURATIONS is tried: its equations are added to those of the robot, and the
    whole is reduced again.
    """
    current = categories(reduction)
    if robot.linkage is not None:  # sensor configurations apply to single joints only
        return {name: replace(one, tried=False) for name, one in current.items()}
    if all(one.category == INDEPENDENT for one in current.values()):
        return current
    states = random_states(robot, 20 + 3 * len(reduction.standard) // robot.rows,
                           np.random.default_rng(SENTENCE_SEED))
    lifted: dict[str, list[tuple[str, str]]] = {name: [] for name in current}
    for key, configuration in SENSOR_CONFIGURATIONS.items():
        reduced = configuration.reduced(robot, blocks, states)
        seen = {} if reduced is None else categories(reduced)
        for name, one in current.items():
            new = seen.get(name, one).category
            if CATEGORIES.index(new) > CATEGORIES.index(one.category):
                lifted[name].append((key, new))
    return {name: Category(one.category, one.combinations, tuple(lifted[name]))
            for name, one in current.items()}


def lifted_by(current: Mapping[str, Category]) -> dict[str, dict[str, list[str]]]:
    """Return the parameters that each sensor configuration would raise, by new category."""
    lifted: dict[str, dict[str, list[str]]] = {
        key: {INDEPENDENT: [], DEPENDENT: []} for key in SENSOR_CONFIGURATIONS}
    for name, one in current.items():
        for key, category in one.sensor_configurations:
            lifted[key][category].append(name)
    return lifted
