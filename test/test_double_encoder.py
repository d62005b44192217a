"""The double-encoder experiment: what its rows say; the whole of it takes minutes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.model.robot_file import load_robot
from robot_dynid.reproduce import EXPERIMENTS
from robot_dynid.reproduce.double_encoder import (
    ONCE,
    PAPER_OURS,
    PAPER_WLS,
    RECIPES,
    TURN,
    WLS,
    Judged,
    fall,
    fall_rows,
)
from robot_dynid.simulation.arm import Arm
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray


def judged(moving: FloatArray, always: FloatArray) -> Judged:
    """Return errors without a model."""
    return Judged(cast(IdentifiedModel, None), moving, always)


def test_the_figures_of_table_4_fall_as_the_paper_says() -> None:
    percent = np.round(fall(np.array(PAPER_WLS), np.array(PAPER_OURS)))
    assert percent.tolist() == [16, 18, 25, 10, 18, 19]


def test_rows_judge_every_joint_both_ways() -> None:
    one = np.ones(6)
    better = np.array([0.79, 0.79, 0.81, 0.5, 0.79, 0.79])
    models: dict[str, Any] = {WLS: judged(one, one), ONCE: judged(better, one),
                              TURN: judged(better, one)}
    rows = fall_rows(ONCE, models)
    assert [row.ok for row in rows] == [True, True, False, True, True, True] + [False] * 6
    assert cast(float, rows[3].ours) == pytest.approx(50.0)
    assert all(row.ok is None for row in fall_rows(TURN, models))


def test_only_the_models_in_turn_see_sweeps_and_only_one_recipe_differs() -> None:
    assert {recipe.cutoff for recipe in RECIPES.values()} == {5.0}
    assert RECIPES[WLS].friction == 'coulomb'
    assert RECIPES[WLS].residual == 'none'
    assert 'double-encoder' in EXPERIMENTS


def test_every_joint_of_the_arm_has_a_drive() -> None:
    robot = load_robot('ur10e')
    arm = Arm(robot, load_truth(robot, 'ur10e_drives'))
    assert arm.plant.elastic.all()
