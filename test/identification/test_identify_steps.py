"""identification/identify.py: fits made again, with delays, rigid joints, other methods."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.estimation import ESTIMATORS
from robot_dynid.identification.identify import (
    IdentificationResult,
    add_digests,
    add_recording_digests,
    better_on_held_out_motion,
    identify,
    identify_with,
    with_command,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.record import FitRecord
from robot_dynid.robot.robot_file import load_robot

MODULE: Any = importlib.import_module('robot_dynid.identification.identify')
ROBOT = load_robot('planar_3r')
JOINTS, EMPTY = ROBOT.joints, FitRecord()


@dataclass(frozen=True)
class Model:
    """Stands for a model."""

    elastic_joints: tuple[str, ...] = JOINTS[:2]
    feasible: Any = None
    warnings: tuple[str, ...] = ('own',)
    record: FitRecord = EMPTY
    joints: tuple[str, ...] = JOINTS


def result_of(model: Model, raw: Any = (1.0, 2.0, 3.0), **changes: Any) -> IdentificationResult:
    """Return a result of which only the model and the held-out errors are known."""
    none: Any = None
    held: Any = SimpleNamespace(raw=np.array(raw))
    fake: Any = model
    return replace(IdentificationResult(none, fake, none, none, held, none, ('fit',)), **changes)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that identifies with fits that are prescribed, and tells what they got."""
    def make(delays: list[Any], rigid: list[Any], recipe: Recipe | None = None,
             method: str = 'elastic', robot: Any = ROBOT, recorded: Any = None,
             **model: Any) -> Any:
        given: list[Any] = []

        def gather(robot: Any, logs: Any, request: Any, progress: Any, watch: Any) -> Any:
            assert logs == ['log'] and request.recorded is recorded
            progress('gathering', 0.0)  # of a default that tells nothing
            given.append((request.estimator.name, request.recipe.elastic_joints,
                          request.recipe.encoder_delays))
            return request

        def fit(gathered: Any, estimator: Any, recipe: Any, *_: Any) -> Any:
            assert (gathered.estimator, gathered.recipe) == (estimator, recipe)
            soft = JOINTS[:2] if recipe.elastic_joints is None else recipe.elastic_joints
            return result_of(Model(tuple(soft), **model))

        monkeypatch.setattr(MODULE, 'gather', gather)
        monkeypatch.setattr(MODULE, 'fit_gathered', fit)
        monkeypatch.setattr(MODULE, 'delays_to_undo', lambda model: delays.pop(0))
        monkeypatch.setattr(MODULE, 'joints_to_make_rigid', lambda model: rigid.pop(0))
        logs: Any = ['log']
        found = identify(robot, logs, method, recipe) if recorded is None else identify_with(
            recorded, robot, logs, method, recipe)
        return found, given

    return make


FIRST, SECOND = {JOINTS[0]: 0.0012}, {JOINTS[0]: 0.00125, JOINTS[1]: 0.003}
CORRECTED = 'link encoders lag those of the motors: {}; corrected'
ONE, BOTH = 'joint_1 by 1.2 ms', 'joint_1 by 1.25 ms, joint_2 by 3 ms'


@pytest.mark.parametrize(('delays', 'given', 'notes'), [
    ([{}, {}], [None], ()),
    ([FIRST, {}], [None, FIRST], (CORRECTED.format(ONE),)),
    ([FIRST, SECOND], [None, FIRST, SECOND], (CORRECTED.format(BOTH),))])
def test_delays_of_encoders_are_undone_twice_at_most(fits, delays, given, notes) -> None:
    found, asked = fits(delays, [{}])
    assert asked == [('elastic', None, one) for one in given]
    assert found.warnings == (*notes, 'fit')
    assert found.model.warnings == ((*notes, 'fit') if notes else ('own',))
    found, asked = fits([], [{}], Recipe(encoder_delays=FIRST))
    assert asked == [('elastic', None, FIRST)] and found.warnings == ('fit',)


def test_joints_become_rigid_whose_stiffness_is_open(fits) -> None:
    """With the method for elastic joints until none is left."""
    given = SECOND | {JOINTS[2]: 0.01}
    found, asked = fits([], [{JOINTS[0]: 'open'}, {JOINTS[1]: 'worse'}, {}],
                        Recipe(encoder_delays=given))
    assert asked == [('elastic', None, given), ('elastic', JOINTS[1:2], {JOINTS[1]: 0.003}),
                     ('wls', (), {})]
    notes = tuple(f'{joint}: rigid in the dynamics, because {reason}'
                  for joint, reason in zip(JOINTS, ('open', 'worse'), strict=False))
    assert found.warnings == found.model.warnings == (*notes, 'fit')
    found, asked = fits([FIRST, {}], [{JOINTS[0]: 'open', JOINTS[1]: 'open'}, {}], method='ols')
    assert [name for name, *_ in asked] == ['ols'] * 3 and asked[-1][1:] == ((), {})
    assert found.warnings[0] == CORRECTED.format(ONE)
    recorded = SimpleNamespace()
    found, asked = fits([FIRST, {}], [{}], recorded=recorded)
    assert len(asked) == 2 and found.warnings == (CORRECTED.format(ONE), 'fit')


@pytest.mark.parametrize(('feasible', 'sensors', 'soft', 'compared'), [
    ('feasible', (), JOINTS[:2], True), (None, (), JOINTS[:2], False),
    ('feasible', (0,), JOINTS[:2], False), ('feasible', (), (), False)])
def test_near_the_nominal_links_elastic_joints_are_compared_with_rigid_ones(
    fits, monkeypatch, feasible, sensors, soft, compared
) -> None:
    robot = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0, 1), torque_sensors=sensors))
    held: list[Any] = []

    def better(elastic: Any, rigid: Any) -> Any:
        held.extend([elastic.model.elastic_joints, rigid.model.elastic_joints])
        return rigid, ['stiffer']

    monkeypatch.setattr(MODULE, 'better_on_held_out_motion', better)
    found, asked = fits([], [{}], Recipe(encoder_delays=FIRST, elastic_joints=soft), robot=robot,
                        feasible=feasible)
    assert asked == [('elastic', soft, FIRST), ('wls', (), {})][:1 + compared]
    assert held == ([JOINTS[:2], ()] if compared else [])
    assert found.warnings == (('stiffer', 'fit') if compared else ('fit',))


@pytest.mark.parametrize(('raw', 'worse'), [
    ((1.2, 2.4, 3.6), ''), ((1.2, 2.44, 3.6), 'joint_2'), ((1.22, 0.1, 3.64),
                                                           'joint_1, joint_3')])
def test_rigid_joints_are_better_if_any_is_predicted_better_by_a_tenth(raw, worse) -> None:
    elastic, rigid = result_of(Model(), raw), result_of(Model(()))
    found, notes = better_on_held_out_motion(elastic, rigid)
    assert found is (rigid if worse else elastic)
    assert notes == ([
        'joint_1, joint_2: rigid in the dynamics, because the elastic model predicts the held-out '
        f'effort of {worse} worse; record another motion'] if worse else [])


def test_verdicts_are_on_unseen_recordings_if_there_are_any(monkeypatch) -> None:
    monkeypatch.setattr(MODULE, 'judged', lambda *given, names: (*given[1:], names))
    training: Any = 'training'
    for shares, held in ((None, 'held'), (np.ones(3), None)):
        estimate: Any = SimpleNamespace(shares=shares)
        one: Any = result_of(Model(), estimate=estimate, training=training)
        one = replace(one, held_out='held')
        assert one.verdict == ('training', held, None)
        names: Any = 'names'
        assert one.verdict_with(names) == ('training', held, 'names')
        unseen: Any = 'unseen'
        assert replace(one, validation=unseen).verdict_with(names) == ('unseen', 'names')


def test_records_have_the_digests_of_files_and_the_command() -> None:
    record = FitRecord(recordings=('a.csv', 'b.csv[1:2]', 'c.csv', 'd.csv[3:4]'))
    digests = {'a.csv': 'A', 'b.csv': 'B', 'd.csv[3:4]': 'D', 'd.csv': 'other', 'e': 'E'}
    assert add_digests(record, digests).recording_digests == ('A', 'B', '', 'D')
    result = result_of(Model(record=record))
    found = add_recording_digests(result, digests).model.record
    assert found.recording_digests == ('A', 'B', '', 'D')
    assert with_command(result, ['robot-dynid', 'x']).model.record.command == ('robot-dynid', 'x')
    assert ESTIMATORS['elastic'].seeks_elastic_joints
