"""The residual models of an identification: judged on data left out, used where they help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motions import torque_model

from robot_dynid.effects.deflection import GearModel
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identification.residual_fit import CrossFit, Training
from robot_dynid.identified.caution import cautions
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.model_file import DIGEST
from robot_dynid.monitoring.motor_states import uses_motors
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.plant import Plant
from robot_dynid.types import RawLog, Samples
from robot_dynid.validation.validate import validate

STIFFNESS = np.array([8e3, 6e3, 3e3])
#: share by which a stiffness differs from what a recording of 30 s tells
STIFFNESS_FOUND = 0.02
QUICK = Recipe(cutoff=8.0, ramp_width=0.01, effort_lag=0.0, residual='gmr')


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    robot = load_robot('planar_3r')
    return replace(robot, drive=replace(robot.drive, kind='torque'))


def recording(
    robot: RobotModel, seed: int, unmodelled: float = 4.0, stiffness: float | None = None
) -> RawLog:
    """Return 30 s of an arm in which joint 2 has a torque that only its deflection tells.

    With a ``stiffness`` [N m/rad] that torque acts on the link and bends the gear with all else;
    without one it is a function of the deflection by itself.
    """
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 30.0, 0.01)
    phase, rate = rng.uniform(0.0, 6.0, (2, 3, 4)), rng.uniform(0.5, 4.0, (3, 4))
    turns = rate[:, :, None] * time + phase[0][:, :, None]
    q = 0.3 * np.sin(turns).sum(axis=1).T
    qd = 0.3 * (rate[:, :, None] * np.cos(turns)).sum(axis=1).T
    qdd = -0.3 * (rate[:, :, None] ** 2 * np.sin(turns)).sum(axis=1).T
    effort = Plant(robot).inverse(q, qd, qdd)
    unknown = np.sin(1.7 * time) * np.sin(0.31 * time + phase[1, 0, 0])
    deflection = effort / STIFFNESS
    effort[:, 1] += unmodelled * np.tanh(2.0 * unknown)
    deflection[:, 1] = 1e-3 * unknown if stiffness is None else effort[:, 1] / stiffness
    effort += 0.05 * rng.standard_normal(effort.shape)
    noise = 2e-6 * rng.standard_normal(q.shape)
    return RawLog(f'made up {seed}', robot.joints, time, q, qd, effort, q + deflection + noise)


@pytest.fixture(scope='module')
def result(robot: RobotModel) -> IdentificationResult:
    return identify(robot, [recording(robot, 1)], 'wls', QUICK)


def test_the_torque_that_shows_in_the_deflection_is_learned(
        robot: RobotModel, result: IdentificationResult) -> None:
    plain = identify(robot, [recording(robot, 1)], 'wls', replace(QUICK, residual='none'))
    test = [recording(robot, 2)]
    with_it, without = (validate(m, test).model['all'] for m in (result.model, plain.model))
    assert with_it[robot.joints[1]].rmse < 0.3 * without[robot.joints[1]].rmse


def test_joints_without_gain_are_switched_off_and_told(
        robot: RobotModel, result: IdentificationResult) -> None:
    used = [m is not None for m in result.model.parts_of('residual')]
    assert used == [False, True, False]
    for joint in (robot.joints[0], robot.joints[2]):
        assert any(f'joint {joint}: no residual model' in w and 'does not fall' in w
                   for w in result.warnings)
    assert result.model.record.residual is not None
    rows = {r.joint: r for r in result.model.record.residual.joints}
    assert rows[robot.joints[1]].with_residual < 0.3 * rows[robot.joints[1]].physics


def test_noise_alone_switches_everything_off(robot: RobotModel) -> None:
    found = identify(robot, [recording(robot, 3, unmodelled=0.0)], 'wls', QUICK)
    assert 'residual' not in found.model.learnt


def test_the_physics_is_that_of_the_whole_effort(
        robot: RobotModel, result: IdentificationResult) -> None:
    """Motor and gear see the same torque on the links, so both together know no more of these."""
    plain = identify(robot, [recording(robot, 1)], 'wls', replace(QUICK, residual='none'))
    assert np.array_equal(result.model.values, plain.model.values)
    assert np.array_equal(result.model.std, plain.model.std)


def test_a_gear_shows_the_torque_on_its_link(robot: RobotModel) -> None:
    log, other = (recording(robot, seed, stiffness=STIFFNESS[1]) for seed in (1, 2))
    found = identify(robot, [log], 'wls', replace(QUICK, residual='auto')).model
    assert found.record.residual is not None
    assert [row.kind for row in found.record.residual.joints] == ['', 'gear', '']
    plain = found.with_learnt('residual', ())
    words = 'that the deflection of gears shows'
    assert any(words in one for one in cautions(found))
    assert not any(words in one for one in cautions(plain))
    gear, bare = (validate(m, [other]).model['all'][robot.joints[1]].rmse for m in (found, plain))
    assert gear < 0.2 * bare
    one = found.parts_of('residual')[1]
    assert isinstance(one, GearModel)
    assert one.size[0] == pytest.approx(STIFFNESS[1], rel=STIFFNESS_FOUND)
    # the monitor looks for torque on links: it must not be taken off
    assert not uses_motors(found)


def test_model_files_give_the_same_prediction(
        robot: RobotModel, result: IdentificationResult, tmp_path: Path) -> None:
    path = tmp_path / 'model.yaml'
    result.model.save(path)
    again = IdentifiedModel.load(path)
    samples = prepare(robot, repair(robot, recording(robot, 2)), Preprocessing(8.0))
    assert np.array_equal(again.predicted(samples), result.model.predicted(samples))
    text = path.read_text().rpartition(DIGEST)[0].replace('kind: gmr', 'kind: svm')
    with pytest.raises(ModelError, match='svm'):
        IdentifiedModel.from_yaml(text)


def test_without_motor_states_the_model_says_so_and_predicts_without(
        robot: RobotModel, result: IdentificationResult) -> None:
    log = replace(recording(robot, 2), motor_position=None)
    validation = validate(result.model, [log])
    assert any('is not used' in w and robot.joints[1] in w for w in validation.warnings)
    samples = prepare(robot, repair(robot, log), Preprocessing(8.0))
    physics = result.model.torque_model.effort(samples, result.model.values)
    assert np.array_equal(result.model.predicted(samples), physics)


def test_asking_for_a_residual_without_motor_states(robot: RobotModel) -> None:
    log = replace(recording(robot, 1), motor_position=None)
    found = identify(robot, [log], 'wls', QUICK)
    assert 'residual' not in found.model.learnt
    assert any('needs motor states' in w for w in found.warnings)
    quiet = identify(robot, [log], 'wls', replace(QUICK, residual='auto'))
    assert not any('residual' in w for w in quiet.warnings)


def test_radial_networks_fit_the_residual_too(robot: RobotModel) -> None:
    found = identify(robot, [recording(robot, 1)], 'wls', replace(QUICK, residual='rbf'))
    assert found.model.parts_of('residual')[1] is not None


def test_unknown_residuals_are_refused() -> None:
    with pytest.raises(UsageError, match='choose one of auto, none, gear, gmr, rbf'):
        recipe_from_dict({'residual': 'svm'})


def test_what_is_explained_is_taken_off_in_the_order_of_the_recordings() -> None:
    model = torque_model('planar_3r')
    rng = np.random.default_rng(0)
    recordings = []
    for count in (30, 50):
        q, qd, qdd, effort = rng.normal(size=(4, count, 3))
        recordings.append(Samples(model.robot.joints, 0.01 * np.arange(count), q, qd, qdd, effort,
                                  effort + 1.0))
    training = Training.of(Experiment.of(model, recordings), needed=False)
    assert training is not None
    explained = rng.normal(size=(80, 3))
    left = training.without(explained).recordings
    for samples, rest, part in zip(recordings, left, (explained[:30], explained[30:]),
                                   strict=True):
        np.testing.assert_allclose(rest.effort, samples.effort - part, rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(rest.measured, samples.measured - part, rtol=0.0, atol=1e-15)


def crossed(*scales: float) -> CrossFit:
    """Return errors of two folds of 100 samples and two joints, by iteration a multiple of one."""
    one = np.array([[100.0, 400.0], [300.0, 400.0]])
    after = np.array([scale * one for scale in scales])
    return CrossFit(5.0 * after, 3.0 * after, after, 200)


@pytest.mark.parametrize(('scales', 'rounds'), [
    ((1.0,), 1), ((1.0, 0.9), 2), ((1.0, 1.1), 1), ((1.0, 0.9981), 1), ((1.0, 0.9979), 2),
    ((1.0, 0.8, 0.85, 0.7), 4), ((1.0, 0.8, 0.799), 2), ((), 0)])
def test_iterations_go_on_while_the_logarithm_of_the_error_falls_by_a_thousandth(
    scales: tuple[float, ...], rounds: int
) -> None:
    found = crossed(*scales)
    assert found.rounds == rounds
    if rounds:
        assert found.rms(found.last) == pytest.approx(np.sqrt(np.array([2.0, 4.0])
                                                              * scales[rounds - 1]))
        assert found.rms(found.plain) == pytest.approx(np.sqrt([6.0, 12.0]))


@pytest.mark.parametrize(('share', 'lower'), [(0.981, False), (0.979, True)])
def test_a_residual_model_must_lower_the_error_by_one_percent_in_most_folds(
    share: float, lower: bool
) -> None:
    found = crossed(1.0)
    one = found.last
    assert found.lower(share * one, one).tolist() == [lower, lower]
    uneven = one * [[0.5, share], [1.0, share]]  # of joint 1 in one of two folds only
    assert found.lower(uneven, one).tolist() == [False, lower]
