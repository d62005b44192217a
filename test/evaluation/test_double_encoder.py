"""The double-encoder experiment: tables as a trajectory, rows, a short version, and all."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from tolerances import SAME_FORMULA

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.limits import violations
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.papers import EXPERIMENTS
from robot_dynid_evaluation.papers import double_encoder_excitation as paper
from robot_dynid_evaluation.papers.double_encoder import (
    ONCE,
    PAPER_OURS,
    PAPER_WLS,
    PHYSICS,
    RECIPES,
    TURN,
    WANTED,
    WLS,
    Scored,
    fall,
    fall_rows,
    rows,
    scored,
    stage_rows,
)
from robot_dynid_evaluation.papers.double_encoder_arm import recorded

JOINTS = tuple('abcdef')


def test_coefficients_are_those_of_the_velocity() -> None:
    motion = paper.trajectory(JOINTS)
    assert motion.duration == paper.PERIOD
    time = np.linspace(0.0, paper.PERIOD, 50)
    phase = 2.0 * np.pi / paper.PERIOD * np.outer(time, paper.ORDER)
    velocity = np.cos(phase) @ np.array(paper.A).T + np.sin(phase) @ np.array(paper.B).T
    np.testing.assert_allclose(motion.sample(time).velocity, velocity, atol=SAME_FORMULA)


def test_tables_agree_with_each_other() -> None:
    rows = {row.quantity: row for row in paper.table_rows() + paper.limit_rows()}
    assert all(row.ok is not False for row in rows.values())
    # of joint 6 four decimals do not explain what is left at the start
    assert sum(row.ok is None for row in rows.values()) == 4
    assert violations(paper.trajectory(JOINTS).peaks(), paper.limits(JOINTS)) == ()


@pytest.mark.parametrize('broken', ['A', 'OFFSET'])
def test_another_reading_would_differ(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array(getattr(paper, broken))
    other = values.ravel().reshape(5, 6).T if broken == 'A' else -values
    monkeypatch.setattr(paper, broken, tuple(map(tuple, other)) if broken == 'A' else tuple(other))
    assert any(row.ok is False for row in paper.table_rows())


def test_blocks_lower_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, 'SETTINGS', {**paper.SETTINGS, 'starts': 1})
    told: list[float] = []
    rows = paper.arm_rows(load_robot('puma560'), lambda _, fraction: told.append(fraction))
    scored = [row for row in rows if row.ok is not None]
    assert len(scored) == 6
    assert all(row.ok for row in scored)
    assert told == [0.0, 0.5]


def errors(moving: FloatArray, always: FloatArray) -> Scored:
    """Return errors without a model."""
    return Scored(cast(IdentifiedModel, None), moving, always, always, np.array([always] * 3))


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
    models = {name: scored(data, RECIPES[name]) for name in (WLS, PHYSICS, ONCE)}
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
