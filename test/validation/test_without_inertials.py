"""validation/validate.py: a description without inertials, or with impossible ones, is compared
with nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording

from robot_dynid.cli.validate import joint_scores
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.plausibility.finding import KINDS
from robot_dynid.report import trust
from robot_dynid.robot.implausible import described, without_inertials
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.ros.excitation.checklist import gravity_effort
from robot_dynid.types import RawLog
from robot_dynid.validation.forward_scores import validate_forward
from robot_dynid.validation.validate import Validation, validate
from robot_dynid.validation.verdict import judged

#: nothing is chosen from the data, for time
PLAIN = Recipe(cutoff=8.0, effort_lag=0.0, friction='coulomb', ramp_width=0.01, ripple='none',
               adaptation='none', accept=tuple(KINDS))
ARM = load_robot('planar_3r')
NOTHING = ('the description of the robot has no inertials: nothing is compared with nominal '
           'links',)


def changed(pattern: str, by: str, count: int = 0) -> RobotModel:
    """Return the arm with a change of its URDF."""
    text = re.sub(pattern, by, Path(ARM.source).read_text(), count=count, flags=re.DOTALL)
    return replace(robot_from_urdf(text), drive=ARM.drive, gravity=ARM.gravity)


@pytest.fixture(scope='module')
def logs() -> list[RawLog]:
    return [recording(ARM, seed, 10.0) for seed in (1, 2)]


@pytest.fixture(scope='module', params=['none', 'in g'])
def result(request: pytest.FixtureRequest, logs: list[RawLog]) -> IdentificationResult:
    """Return what is identified with links that have no mass, or one in g."""
    robot = changed('<inertial>.*?</inertial>', '') if request.param == 'none' else \
        changed(r'<mass value="([\d.]+)"', r'<mass value="\g<1>e3"')
    return identify(robot, logs[:1], recipe=PLAIN)


@pytest.fixture(scope='module')
def unseen(result: IdentificationResult, logs: list[RawLog]) -> Validation:
    return validate(result.model, logs[1:])


def test_scores_without_inertials_have_no_row_of_nominal_links(
    result: IdentificationResult, unseen: Validation,
) -> None:
    for scores in (result.training, unseen):
        assert not scores.control and all(np.isnan(t.control).all() for t in scores.traces)
        assert not any('control' in one for one in joint_scores(scores).values())
    assert all(one.relative_error < 0.2 for one in unseen.model['all'].values())


def test_the_verdict_says_nothing_about_them(
    result: IdentificationResult, unseen: Validation,
) -> None:
    verdict = judged(result.model, unseen)
    texts = [verdict.words, *(one.words for one in verdict.actions),
             *(use.words for joint in verdict.joints for use in joint.uses)]
    assert not any(word in text for text in texts for word in (
        'nominal', 'of the URDF', 'weight differs'))


def test_warnings_state_why_nominal_links_are_not_compared(
    result: IdentificationResult, unseen: Validation
) -> None:
    for warnings in (result.warnings, unseen.warnings):
        told = [text for text in warnings if text in NOTHING or 'mass looks like g' in text]
        assert len(told) == (1 if NOTHING[0] in told else 3 * (warnings is result.warnings))


def test_the_report_compares_with_nothing(
    result: IdentificationResult, unseen: Validation,
) -> None:
    section = trust.scores(result.model, unseen, 'Prediction')
    assert 'no inertials to compare with' in section.text


def test_rollouts_are_not_beside_those_of_nominal_links(
    result: IdentificationResult, logs: list[RawLog],
) -> None:
    found = validate_forward(result.model, logs[1:])
    assert not found.control and not any('control' in one.scores for one in found.horizons)


def test_efforts_at_rest_are_not_compared() -> None:
    assert gravity_effort(changed('<inertial>.*?</inertial>', ''), np.ones(3)) is None
    only = changed(r'<mass value="([\d.]+)"', r'<mass value="\g<1>e3"', count=2)
    effort, truth = gravity_effort(only, np.ones(3)), gravity_effort(ARM, np.ones(3))
    assert effort is not None and truth is not None
    np.testing.assert_array_equal(np.isnan(effort), [True, True, False])
    assert effort[2] == truth[2] != 0.0


def test_links_without_inertials_are_named() -> None:
    assert without_inertials(ARM) == () and described(ARM).all()
    some = changed(r'<inertial>.*?</inertial>', '', count=1)
    assert without_inertials(some) == (
        'no inertial in the description: link_1; nominal links lack their mass',)
    assert described(some).all()
    last = replace(ARM, nominal=ARM.nominal * np.array([[1.0], [1.0], [0.0]]))
    np.testing.assert_array_equal(described(last), [True, True, False])
