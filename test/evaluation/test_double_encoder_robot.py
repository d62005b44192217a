"""The experiment on a real robot with two encoders: its verdicts, without its recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.estimation.deflection_fit import DeflectionFit, Determined
from robot_dynid_evaluation.papers.double_encoder_robot import (
    CONTROL,
    DEFAULT,
    ELASTIC,
    MIXTURE,
    NO_DEFLECTION,
    RECIPES,
    effort_rows,
    encoder_rows,
    recordings,
)

LATE = Determined(3e-3, 1e-4, 2.8e-3, 3.2e-3, True)
SOFT = Determined(5e6, 1e6, 4e6, 8e6, True)
OPEN = Determined(np.inf, 1.0, 2e7, np.inf, False)
FIT = DeflectionFit('joint_1', SOFT, OPEN, LATE, OPEN, OPEN, OPEN, 7e-4, 3e-5)
ERRORS = {name: np.array([20.0, 10.0]) for name in (*RECIPES, CONTROL)}


def test_runs_agree_if_their_intervals_overlap() -> None:
    judged = [row for row in encoder_rows([[FIT], [FIT]]) if row.ok is not None]
    assert [row.ok for row in judged] == [True, True]
    later = replace(FIT, delay=Determined(4e-3, 1e-4, 3.8e-3, 4.2e-3, True))
    assert [row.ok for row in encoder_rows([[FIT], [later]]) if row.ok is not None] == [
        True, False]


def test_an_open_stiffness_shows_its_interval_only() -> None:
    first = next(encoder_rows([[replace(FIT, stiffness=OPEN)], [FIT]]))
    assert first.ours == 'open [20, inf]'


def test_the_default_may_not_be_worse_than_the_elastic_model() -> None:
    assert [row.ok for row in effort_rows('A to B', ERRORS)][-1] is True
    better = {**ERRORS, ELASTIC: np.array([20.0, 8.0])}
    last = list(effort_rows('A to B', better))[-1]
    assert last.ok is False and last.ours == pytest.approx(25.0)
    assert [row.ok for row in effort_rows(
        'A to B', {**ERRORS, DEFAULT: np.array([20.0, 9.0])})][-1] is True


def test_the_share_of_the_mixture_is_honest() -> None:
    rows = list(effort_rows('A to B', {**ERRORS, MIXTURE: np.array([20.0, 9.0]),
                                       NO_DEFLECTION: np.array([20.0, 10.0])}))
    assert rows[-2].ours == '0.0 10.0'


def test_missing_recordings_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv('ROBOT_DYNID_DATA', str(tmp_path))
    with pytest.raises(DataError, match='no folder kr300 in ROBOT_DYNID_DATA'):
        recordings()
