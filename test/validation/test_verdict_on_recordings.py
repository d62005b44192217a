"""validation/verdict.py: the verdict on a model of a real arm: six recordings it tells apart."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot_dynid.cli.main import parser
from robot_dynid.errors import DataError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.suitability import FEED_FORWARD, GRAVITY, USES, UseVerdict, Verdict
from robot_dynid.io.log import load_log
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog
from robot_dynid.validation import verdict as verdicts
from robot_dynid.validation.verdict import refused_recordings

#: nothing is chosen from the data, for time
QUICK = Recipe(cutoff=8.0, effort_lag=0.0, friction='dahl', ripple='none', adaptation='none')


@pytest.fixture(autouse=True)
def _stops_are_not_asked_for(monkeypatch) -> None:
    """Contact is judged here without asking for motion that stops."""
    monkeypatch.setattr(verdicts, 'LEAST_STOPS', 0)


Verdicts = Callable[[str], Verdict]


def of(verdict: Verdict, joint: int, use: str) -> UseVerdict:
    """Return the verdict on one joint and use."""
    return verdict.joints[joint].uses[USES.index(use)]


def words_of(verdict: Verdict, joint: int) -> list[str]:
    """Return the verdicts of one joint, in the order of the uses."""
    return [use.word for use in verdict.joints[joint].uses]


@pytest.fixture(scope='module')
def told(shared_data: Path) -> Verdicts:
    """Return the verdict on a named set of recordings, each made once."""
    ur10e, tx40 = load_robot('ur10e'), load_robot('tx40')
    train = [load_log(f, ur10e) for f in sorted((shared_data / 'ur10e' / 'train').iterdir())]
    one = train[0]
    noise = 0.05 * np.random.default_rng(0).normal(size=len(one.time))
    dead = replace(one, effort=np.column_stack([one.effort[:, :5], noise]))
    torque = replace(ur10e, drive=replace(ur10e.drive, kind='torque', gains=None))
    alone = replace(tx40, drive=replace(tx40.drive, coupling=None))
    fast = replace(QUICK, cutoff=40.0)
    known: dict[str, Verdict] = {}
    cases: dict[str, Callable[[], tuple[RobotModel, list[RawLog], Recipe]]] = {
        'ur10e': lambda: (ur10e, train, QUICK), 'one file': lambda: (ur10e, [one], QUICK),
        'tx40': lambda: (tx40, [load_log(shared_data / 'tx40' / 'exciting.csv.gz', tx40)], fast),
        'tx40 without coupling': lambda: (
            alone, [load_log(shared_data / 'tx40' / 'exciting.csv.gz', tx40)], fast),
        'dead wrist': lambda: (ur10e, [dead], QUICK),
        'mA': lambda: (torque, [replace(one, effort=1e3 * one.effort)], QUICK),
        'A': lambda: (torque, [one], QUICK),
        'degrees': lambda: (ur10e, [replace(one, position=np.degrees(one.position),
                                            velocity=np.degrees(one.velocity))], QUICK)}

    def verdict(name: str) -> Verdict:
        if name not in known:
            robot, logs, recipe = cases[name]()
            try:
                known[name] = identify(robot, logs, recipe=recipe).verdict
            except DataError as error:
                known[name] = refused_recordings(error.findings)
        return known[name]

    return verdict


def test_six_recordings_are_told_apart(told: Verdicts) -> None:
    verdicts = [told(name) for name in ('ur10e', 'one file', 'tx40', 'dead wrist', 'mA',
                                        'degrees')]
    assert len({one.words for one in verdicts}) == len({one.actions for one in verdicts}) == 6
    for words in (shlex.split(action.command) for one in verdicts for action in one.actions):
        assert not words or parser(words).parse_args(words[1:])


def test_the_ur10e_is_good_for_everything(told: Verdicts) -> None:
    verdict = told('ur10e')
    assert verdict.words.startswith(f'Good for {", ".join(USES[:3])} and {USES[3]} in all joints')
    assert all(use.ok is True for joint in verdict.joints for use in joint.uses)
    assert ['unseen' in one.command for one in verdict.actions] == [True]


def test_verdict_calls_one_file_thin_evidence(told: Verdicts) -> None:
    verdict, whole = told('one file'), told('ur10e')
    assert 'Weak evidence' in verdict.words
    wider = [of(verdict, j, GRAVITY).value / of(whole, j, GRAVITY).value for j in range(6)]
    assert np.median(wider) > 1.5 and min(wider) > 1.0
    assert any('another motion on another day' in one.words for one in verdict.actions)


def test_verdict_leaves_all_uses_open_for_one_motion_of_the_tx40(told: Verdicts) -> None:
    verdict = told('tx40')
    for joint in verdict.joints:
        assert [use.ok for use in joint.uses] == [None] * 4
    assert any('contain only one motion' in one.words for one in verdict.actions)
    assert not any('coupling' in one.words for one in verdict.actions)


def test_a_wrist_that_two_motors_turn_is_named(told: Verdicts) -> None:
    verdict = told('tx40 without coupling')
    assert [of(verdict, j, FEED_FORWARD).ok for j in range(6)] == [None] * 4 + [False] * 2
    assert verdict.actions[0].words.startswith('joint_5 and joint_6 share a motor (')


def test_a_dead_wrist_is_refused_and_the_other_joints_are_not(told: Verdicts) -> None:
    verdict = told('dead wrist')
    assert words_of(verdict, 5) == ['not good'] * 4
    words = [words_of(verdict, j) for j in range(5)]
    assert [one[1:] for one in words] == [['good'] * 2 + ['not good']] * 5
    assert all(one[0] in ('good', 'not shown') for one in words)
    assert 'Feed-forward: not good in wrist_3_joint: refused' in verdict.words
    assert 'Simulation: not good: wrist_3_joint is refused, and' in verdict.words
    assert verdict.actions[0].words.startswith('joint wrist_3_joint is refused: ')


@pytest.mark.parametrize(('name', 'looks_like', 'remedy'), [
    ('mA', 'currents in mA', 'divide efforts by 1000, so that they are A'),
    ('degrees', 'look like degrees', 'to rad')])
def test_units_that_are_wrong_give_no_model_but_what_to_do(
    told: Verdicts, name: str, looks_like: str, remedy: str
) -> None:
    verdict = told(name)
    assert verdict.words.startswith('No model') and looks_like in verdict.words
    assert not verdict.joints
    assert remedy in verdict.actions[0].words


def test_currents_taken_for_torque_are_good_for_nothing(told: Verdicts) -> None:
    verdict = told('A')
    assert not any(use.ok for joint in verdict.joints for use in joint.uses)
    assert 'state effort_kind: current' in verdict.actions[0].words
