"""Friction that warms up, from recordings of a whole robot: found, predicted, carried on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bags import START, states, write_topics
from identified_models import nominal_model
from monitored import model_of

from robot_dynid.cli.validate import ADAPTIVE, WARM_UP, joint_scores
from robot_dynid.document import number
from robot_dynid.effects.slow_changes import SlowChanges
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.gathered import Fit, Gathered
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.learnt import learn_slow_changes
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Extent
from robot_dynid.io.bag import read_bag
from robot_dynid.io.csv import read_csv
from robot_dynid.report.effects import predictions_beside
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Averaging, Repaired, prepare, repair
from robot_dynid.types import FloatArray, Part, RawLog
from robot_dynid.validation.slow_changes import gap_between
from robot_dynid.validation.validate import validate

STEP, SECONDS, NOISE = 0.01, 40.0, 0.2
#: viscous friction of the second joint falls by this share at this power, over this time
FALL, POWER, TIME = 0.4, 6.0, 12.0
RECIPE = recipe_from_dict({
    'cutoff': 6.0, 'friction': 'coulomb', 'ramp_width': 0.01, 'effort_lag': 0.0, 'rate': 100,
    'ripple': 'none'})

#: of no recording
EXTENT = Extent({}, np.empty((0, 2)), None, 0.0)


@pytest.fixture(scope='module')
def arm() -> IdentifiedModel:
    """Return an arm with viscous friction of 4 N m s/rad beside dry friction."""
    robot = load_robot('planar_3r')
    model = model_of(replace(robot, drive=Drive(kind='torque')), settings={'width': 0.01})
    values = [4.0 if name.startswith('fv') else value for name, value in zip(
        model.names, model.values.tolist(), strict=True)]
    return replace(model, values=np.array(values))


def recorded(arm: IdentifiedModel, seed: int, warm: bool, began: float = 0.0
             ) -> tuple[RawLog, FloatArray]:
    """Return a recording, and the factor (N,) of the viscous friction of the second joint.

    The warmth, ``began`` at first, follows the power of the friction there is, in small steps.
    """
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, SECONDS, STEP)
    waves = [(rng.uniform(0.2, 0.5, 3), rng.uniform(0.8, 2.5, 3), rng.uniform(0.0, 6.0, 3))
             for _ in range(3)]
    q, qd, qdd = (np.sum([size * rate ** k * np.sin(
        np.outer(time, rate) + phase + 0.5 * np.pi * k) for size, rate, phase in waves], axis=0)
        for k in range(3))
    effort, viscous = arm.inverse(q, qd, qdd), 4.0 * qd[:, 1]
    friction, factors, warmth = arm.friction(q, qd)[:, 1], [], began
    for k in range(len(time)):
        factors.append(1.0 - FALL * warmth * warm)
        power = (friction[k] + (factors[-1] - 1.0) * viscous[k]) * qd[k, 1]
        warmth += STEP * (power / POWER - warmth) / TIME
    effort[:, 1] += (np.array(factors) - 1.0) * viscous
    effort += rng.normal(0.0, NOISE, effort.shape)
    return RawLog(f'{seed}.csv', arm.joints, time, q, qd, effort), np.array(factors)


@pytest.fixture(scope='module')
def found(arm: IdentifiedModel) -> IdentificationResult:
    """Return the identification from four recordings of an arm whose second joint warms up."""
    return identify(arm.robot, [recorded(arm, i, True)[0] for i in range(4)], 'wls', RECIPE)


@pytest.fixture(scope='module')
def unchanged(arm: IdentifiedModel) -> IdentifiedModel:
    """Return the model from three recordings of an arm that does not warm up."""
    logs = [recorded(arm, i, False)[0] for i in range(3)]
    return identify(arm.robot, logs, 'wls', RECIPE).model


def test_the_joint_that_warms_up_is_found(arm: IdentifiedModel, found: IdentificationResult
                                          ) -> None:
    adaptations = found.model.parts_of('adaptation')
    warms = [one is not None and one.warming is not None for one in adaptations]
    assert warms == [False, True, False]
    warming = adaptations[1].warming
    assert abs(warming.seconds[0] - TIME) < 4.0 * warming.seconds_std[0]
    power = warming.power / POWER  # to what the warmth of the simulation tends
    ends = np.array([1.0, 1.0 - FALL * power]) * 4.0
    fitted = found.model.standard['fv2'] * warming.scales(np.array([[0.0], [1.0]]))[:, 0]
    # the simulated power falls with the friction, that of the model does not: 10 % of the fall
    np.testing.assert_allclose(fitted, ends, rtol=0.0, atol=0.12 * FALL * 4.0)


def test_warming_of_one_joint_changes_the_parameters_that_were_fitted_without_it(
        arm: IdentifiedModel) -> None:
    repaired = [repair(arm.robot, recorded(arm, i, True)[0]) for i in range(2)]
    experiment = Experiment.of(arm.torque_model, [
        prepare(arm.robot, one, arm.preprocessing) for one in repaired])
    estimate = ESTIMATORS['wls'].fit(experiment)
    constant = replace(arm, values=estimate.values, std=estimate.std)
    data: Any = SimpleNamespace(excerpt=repaired, experiment=experiment)
    fit = learn_slow_changes(Fit(constant, estimate), data, ESTIMATORS['wls'], RECIPE)
    changes = fit.model.parts_of('adaptation')
    assert [one is not None and one.warming is not None for one in changes] == [
        False, True, False]
    cold = changes[1].warming.scales(np.zeros((1, 1)))[0, 0] * fit.model.standard['fv2']
    assert constant.standard['fv2'] < 3.5 and cold == pytest.approx(4.0, rel=0.03)
    assert np.any(fit.estimate.values != estimate.values)
    np.testing.assert_array_equal(fit.model.values, fit.estimate.values)
    np.testing.assert_array_equal(fit.model.std, fit.estimate.std)


def test_no_slow_changes_are_searched_where_none_are_wanted_or_can_be_told(
        arm: IdentifiedModel) -> None:
    plain = repair(arm.robot, recorded(arm, 0, True)[0])
    estimate = ESTIMATORS['wls'].fit(Experiment.of(
        arm.torque_model, [prepare(arm.robot, plain, arm.preprocessing)]))
    mean = replace(plain, averaging=Averaging('x.csv', 10.0, 0.0, 4, (0.0,) * 3, (0.1,) * 3))
    fit, wls, staged = Fit(arm, estimate), ESTIMATORS['wls'], ESTIMATORS['staged']
    elastic = replace(fit, model=nominal_model('elastic_2r'))
    for given, repaired, estimator, recipe in (
            (fit, plain, wls, replace(RECIPE, adaptation='none')), (fit, plain, staged, RECIPE),
            (fit, mean, wls, RECIPE), (elastic, plain, wls, RECIPE)):
        data: Any = SimpleNamespace(excerpt=[repaired], experiment=None)
        assert learn_slow_changes(given, data, estimator, recipe) is given


def test_a_joint_that_is_refused_is_not_followed(
        arm: IdentifiedModel, found: IdentificationResult) -> None:
    recordings = [repair(arm.robot, recorded(arm, i, True)[0]) for i in range(4)]
    for refused in ({}, {'joint_2': 'its effort is no model'}):
        model = replace(found.model.with_learnt('adaptation', ()),
                        record=replace(found.model.record, refused=refused))
        fit = learn_slow_changes(Fit(model, found.estimate), Gathered(
            arm.robot, found.choice, found.experiment, EXTENT, model.record, (), (), (),
            recordings), ESTIMATORS['wls'], RECIPE)
        kept = fit.model.parts_of('adaptation')
        assert (kept[1] is None) == bool(refused)


def test_a_recording_left_out_is_predicted_as_if_nothing_changed(
        arm: IdentifiedModel, found: IdentificationResult, unchanged: IdentifiedModel) -> None:
    floor = validate(unchanged, [recorded(arm, i, False)[0] for i in (20, 21)])
    least = floor.model['all']['joint_2'].rmse
    scores = validate(found.model, [recorded(arm, i, True)[0] for i in (20, 21)])
    static, warm, adaptive = (one['all']['joint_2'].rmse for one in (
        scores.model, scores.warm_up, scores.adaptive))
    assert static > 1.1 * least
    assert warm < 1.01 * least
    assert adaptive < 1.01 * least
    others = [(scores.model['all'][j].rmse, scores.warm_up['all'][j].rmse)
              for j in ('joint_1', 'joint_3')]
    assert all(a == b for a, b in others)


def test_the_three_predictions_are_shown_side_by_side(
        arm: IdentifiedModel, found: IdentificationResult, unchanged: IdentifiedModel) -> None:
    scores = validate(found.model, [recorded(arm, 20, True)[0]])
    told = joint_scores(scores)['joint_2']
    for key, own in ((WARM_UP, scores.warm_up), (ADAPTIVE, scores.adaptive)):
        assert told[key]['rmse'] == own['all']['joint_2'].rmse
    (section,) = predictions_beside(found.model, scores)
    cells = section.tables[0].rows[1].cells
    assert cells[:4] == ('joint_2', *(number(one['all']['joint_2'].rmse) for one in (
        scores.model, scores.warm_up, scores.adaptive)))
    (section,) = SlowChanges.sections(found.model)
    assert 'shows at joint_2.' in section.text
    assert [row.cells[0] for row in section.tables[1].rows] == ['joint_2']
    (section,) = SlowChanges.sections(unchanged)
    assert 'show no friction that warms up' in section.text
    plain = validate(unchanged, [recorded(arm, 9, False)[0]])
    assert predictions_beside(unchanged, plain) == ()
    assert ADAPTIVE not in joint_scores(plain)['joint_2']


def test_without_a_warm_up_nothing_is_claimed(
        arm: IdentifiedModel, unchanged: IdentifiedModel) -> None:
    assert 'adaptation' not in unchanged.learnt
    assert len(unchanged.record.slow_changes) == 3
    scores = validate(unchanged, [recorded(arm, 9, False)[0]])
    assert scores.warm_up == {} and scores.adaptive == {}


def test_a_joint_is_as_warm_as_the_recording_before_left_it(
        arm: IdentifiedModel, found: IdentificationResult) -> None:
    first = recorded(arm, 30, True)[0]
    warmth = (1.0 - recorded(arm, 30, True)[1][-1]) / FALL
    later = recorded(arm, 31, True, warmth * np.exp(-3.0 / TIME))[0]
    stamped = [replace(first, epoch=1.7e9), replace(later, epoch=1.7e9 + SECONDS + 3.0)]
    squares = []
    for logs in (stamped, [first, later]):
        trace = validate(found.model, logs).traces[1]
        assert trace.warmed is not None
        rows = trace.time < 10.0
        squares.append(np.mean((trace.measured - trace.warmed)[rows, 1] ** 2))
    assert squares[0] < 0.75 * squares[1]


def test_the_time_between_recordings_is_known_from_times_of_day_alone() -> None:
    def repaired(epoch: float | None, source: str = 'a', place: Part | None = None) -> Repaired:
        return Repaired(source, (), STEP, (), place=place, epoch=epoch,
                        began=None if place is None else place.began)

    assert gap_between(None, 0.0, repaired(5.0), 0.0) is None
    assert gap_between(repaired(100.0), 7.0, repaired(120.0), 2.0) == pytest.approx(15.0)
    assert gap_between(repaired(100.0), 7.0, repaired(90.0), 2.0) is None, 'not in order'
    assert gap_between(repaired(100.0), 7.0, repaired(None), 2.0) is None
    before, part = Part(0.0, 10.0, 0.0, 'a'), Part(10.0, 20.0, 0.0, 'a')
    gap = gap_between(repaired(None, 'a', before), 10.0, repaired(None, 'a', part), 10.01)
    assert gap == pytest.approx(0.01), 'parts of one recording'
    other = repaired(None, 'b', replace(before, recording='b'))
    assert gap_between(other, 10.0, repaired(None, 'a', part), 10.01) is None


@pytest.mark.parametrize(('first', 'epoch'), [(0.0, None), (1.7e9, 0.0)])
def test_stamps_of_csv_files_may_be_times_of_day(tmp_path: Path, first: float,
                                                 epoch: float | None) -> None:
    rows = '\n'.join(f'{first + 0.01 * k:.3f},0.1,0.2' for k in range(20))
    path = tmp_path / 'a.csv'
    path.write_text(f'time,position.a,effort.a\n{rows}\n')
    assert read_csv(path).epoch == epoch


def test_stamps_of_bags_are_times_of_day(tmp_path: Path) -> None:
    folder = write_topics(tmp_path / 'bag', {'/joint_states': states()[0]})
    found = read_bag(folder)
    assert found.epoch == START * 1e-9 + found.time[0]
