"""The double-encoder experiment: what its rows say, a short version of it, and all of it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.papers import EXPERIMENTS
from robot_dynid_evaluation.papers.double_encoder import (
    ONCE,
    PAPER_OURS,
    PAPER_WLS,
    PHYSICS,
    RECIPES,
    TURN,
    WANTED,
    WLS,
    Judged,
    fall,
    fall_rows,
    judged,
    rows,
    stage_rows,
)
from robot_dynid_evaluation.papers.double_encoder_arm import recorded


def errors(moving: FloatArray, always: FloatArray) -> Judged:
    """Return errors without a model."""
    return Judged(cast(IdentifiedModel, None), moving, always, always, np.array([always] * 3))


def test_the_figures_of_table_4_fall_as_the_paper_says() -> None:
    percent = np.round(fall(np.array(PAPER_WLS), np.array(PAPER_OURS)))
    assert percent.tolist() == [16, 18, 25, 10, 18, 19]


def test_rows_judge_every_joint_both_ways() -> None:
    one = np.ones(6)
    better = np.array([0.79, 0.79, 0.81, 0.5, 0.79, 0.79])
    models: dict[str, Any] = {WLS: errors(one, one), ONCE: errors(better, one),
                              TURN: errors(better, one)}
    found = fall_rows(ONCE, models)
    assert [row.ok for row in found] == [False] * 6 + [True, True, False, True, True, True, None]
    assert cast(float, found[9].ours) == pytest.approx(50.0)
    assert all(row.ok is None for row in fall_rows(TURN, models))


def test_a_deflection_without_a_share_fails() -> None:
    one = np.ones(6)
    models = {WLS: errors(one, one), PHYSICS: errors(0.5 * one, 0.5 * one),
              ONCE: errors(0.495 * one, 0.495 * one)}
    assert [row.ok for row in stage_rows(models) if 'of the deflection' in row.quantity] == [
        False, False]
    models[ONCE] = errors(0.45 * one, 0.45 * one)
    assert [row.ok for row in stage_rows(models) if 'of the deflection' in row.quantity] == [
        True, True]


def test_only_one_thing_differs_between_the_recipes() -> None:
    assert {recipe.cutoff for recipe in RECIPES.values()} == {5.0}
    assert RECIPES[WLS].friction == 'coulomb'
    assert RECIPES[WLS].residual == 'none'
    assert RECIPES[PHYSICS].friction == RECIPES[ONCE].friction
    assert 'double-encoder' in EXPERIMENTS


def test_every_joint_of_the_arm_has_a_drive() -> None:
    robot = load_robot('ur10e')
    arm = Arm(robot, load_truth(robot, 'ur10e_drives'))
    assert arm.plant.elastic.all()


@pytest.mark.slow
def test_every_joint_gains_and_the_deflection_has_its_share() -> None:
    data = recorded(lambda *_: None, sweeps=False)
    models = {name: judged(data, RECIPES[name]) for name in (WLS, PHYSICS, ONCE)}
    assert fall(models[WLS].always, models[ONCE].always).min() >= WANTED
    assert fall(models[WLS].moving, models[ONCE].moving).min() >= WANTED
    assert all(row.ok for row in stage_rows(models) if row.ok is not None)
    used = [one is not None for one in models[ONCE].model.residual_models]
    assert used[1] and used[2], 'the joints that carry the weight'


@pytest.mark.soak
def test_the_whole_experiment_holds() -> None:
    found = rows(lambda *_: None)
    assert [row.quantity for row in found if row.ok is False] == []
    assert sum(row.ok is True for row in found) == 14
