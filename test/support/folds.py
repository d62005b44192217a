"""The one recording of the TX40 in folds, each predicted by a model of the others."""

from __future__ import annotations

from collections.abc import Iterator

from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog, take

FOLDS = ((0.0, 2.5), (2.5, 5.0), (5.0, 7.65))
GUARD = 0.05
Fold = tuple[IdentificationResult, RawLog]


def cut(log: RawLog, first: float, last: float) -> RawLog:
    """Return the rows between two times."""
    return take(log, (log.time >= first) & (log.time < last))


def folds(log: RawLog, recipe: Recipe) -> Iterator[Fold]:
    """Yield for every fold the result of the other two, with guards between them, and the fold."""
    robot = load_robot('tx40')
    for k, (first, last) in enumerate(FOLDS):
        train = [cut(log, a + GUARD * (i == k + 1), b - GUARD * (i == k - 1))
                 for i, (a, b) in enumerate(FOLDS) if i != k]
        yield identify(robot, train, recipe=recipe), cut(log, first, last)
