"""excitation/score.py: condition, determinant and deviations of rows in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robot_dynid.excitation.score import Scorer, condition_of, log_det_of, triangle_of
from robot_dynid.trajectories.trajectory import Motion, QuinticMove
from robot_dynid.types import FloatArray


class Rows:
    """An observation of two parameters, 3 and +-4 at every instant, which are orthogonal."""

    def __init__(self, second: float = 4.0) -> None:
        self.second, self.counts = second, list[int]()

    def rows(self, motion: Motion) -> FloatArray:
        count = len(motion.position)
        self.counts.append(count)
        return np.column_stack([np.full(count, 3.0), self.second * (-1.0)**np.arange(count)])


def scored(duration: float, sizes: Any, **parts: Any) -> tuple[Any, Rows]:
    """Return the score of a move, and the observation that was asked."""
    observation: Any = Rows()
    move = QuinticMove(('a',), np.zeros(1), np.ones(1), duration)
    return Scorer(observation, ('first', 'second'), parts, sizes)(move), observation


@pytest.mark.parametrize(('duration', 'count'), [
    (10.0, 400), (15.9, 400), (18.0, 450), (200.0, 5000), (300.0, 6000)])
def test_scores_are_those_of_a_hundred_samples_per_second(duration: float, count: int) -> None:
    """Evaluated at 25 instants per second, at least 400 and at most 6000."""
    score, observation = scored(duration, np.array([0.5, 0.1]))
    assert observation.counts == [count]
    assert score.condition_number == pytest.approx(1.0)
    assert score.log_det == pytest.approx(np.log(900.0 * 1600.0 * duration**2))
    assert score.least_known == 'second'
    assert score.largest_deviation == pytest.approx(1.0 / (0.1 * 40.0 * np.sqrt(duration)))


def test_the_least_known_parameter_is_relative_to_its_size() -> None:
    score, _ = scored(10.0, np.array([0.1, 0.5]), position=Rows(), gravity=Rows(0.0))
    assert score.least_known == 'first'
    assert score.largest_deviation == pytest.approx(1.0 / (0.1 * 30.0 * np.sqrt(10.0)))
    assert score.parts == {'position': pytest.approx(1.0), 'gravity': np.inf}
    plain, _ = scored(10.0, None)
    assert plain.largest_deviation is None and plain.least_known == ''


def test_condition_and_determinant_of_triangles() -> None:
    """Columns at 60 degrees have the squared condition number (1 + c) / (1 - c) = 3."""
    rows = np.array([[2.0, 2.5], [0.0, 2.5 * np.sqrt(3.0)], [0.0, 0.0]])
    factor = triangle_of(rows)
    assert factor.shape == (2, 2)
    assert condition_of(factor) == pytest.approx(np.sqrt(3.0))
    assert log_det_of(factor) == pytest.approx(2.0 * np.log(2.0 * 2.5 * np.sqrt(3.0)))
    for short in (np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])):
        assert condition_of(short) == np.inf and log_det_of(short) == -np.inf
    same = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert condition_of(same) > 1e15 and log_det_of(same) == -np.inf
