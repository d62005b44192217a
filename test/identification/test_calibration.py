"""identification/identify.py: truth recovered from a simulated arm with default noise, and honest
about what it does not know.

The plant is MuJoCo, the sensors are noisy, the path is the offline one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tolerances import COVERAGE, DEVIATION_RATIO, PARAMETER_ERROR

from robot_dynid.estimation import Status
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import Truth, distance, load_truth, true_base
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    """Return the arm of the demo."""
    return load_robot('seven_axis')


@pytest.fixture(scope='module')
def truth(robot: RobotModel) -> Truth:
    """Return its true friction, rotors and noise."""
    return load_truth(robot)


def recording(robot: RobotModel, truth: Truth, seed: int) -> RawLog:
    """Return what ideal sensors see of a designed motion of 20 s."""
    request = parse_request('fourier', {'duration': 20, 'starts': 1, 'seed': seed})
    return record(Arm(robot, truth), design(robot, request, design_criteria(robot)).trajectory)


@pytest.fixture(scope='module')
def log(robot: RobotModel, truth: Truth) -> RawLog:
    """Return one recording of the arm, without noise."""
    return recording(robot, truth, 0)


@pytest.fixture(scope='module')
def result(robot: RobotModel, truth: Truth, log: RawLog) -> IdentificationResult:
    """Return the identification from one noisy recording, everything chosen from the data."""
    recipe = Recipe(friction='coulomb')  # the law of the simulated arm
    return identify(robot, [noisy(robot, truth, log, 0)], recipe=recipe)


def noisy(robot: RobotModel, truth: Truth, log: RawLog, seed: int) -> RawLog:
    """Return the recording as real sensors show it."""
    return measured(log, robot, truth.noise, np.random.default_rng(seed))


def chosen(result: IdentificationResult) -> Recipe:
    """Return the choices of an identification as a recipe."""
    settings = result.choice.preprocessing
    return Recipe(settings.cutoff, result.choice.structure.settings[0]['width'],
                  settings.effort_lag, friction='coulomb', ripple='none', adaptation='none')


def scores(
    robot: RobotModel, truth: Truth, results: Sequence[IdentificationResult]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return errors (k,), hits of the 95 % intervals (k, b) and errors in deviations (k, b)."""
    true = true_base(robot, truth, results[0].model.reduction)
    bounds = [r.estimate.interval() for r in results]
    return (np.array([distance(r.estimate.values, true) for r in results]),
            np.array([(low <= true) & (true <= high) for low, high in bounds], dtype=float),
            np.array([(r.estimate.values - true) / r.estimate.std for r in results]))


def test_parameters_are_found_with_default_noise(robot, truth, result):
    errors, hits, _ = scores(robot, truth, [result])
    assert result.estimate.status is Status.OK
    assert result.estimate.rank == len(result.model.names) == 69
    assert errors.max() < PARAMETER_ERROR
    assert hits.mean() > COVERAGE[0] - 0.05


def test_friction_is_found_joint_by_joint(truth, result):
    found = result.model.standard
    for i in range(7):
        assert found[f'fc{i + 1}'] == pytest.approx(truth.coulomb[i], rel=0.05)
        assert found[f'fv{i + 1}'] == pytest.approx(truth.viscous[i], rel=0.05)


@pytest.mark.parametrize('seeds', [8, pytest.param(20, marks=pytest.mark.soak)])
def test_intervals_hold_the_truth_over_seeds(robot, truth, log, result, seeds):
    recipe = chosen(result)
    results = [identify(robot, [noisy(robot, truth, log, seed)], recipe=recipe)
               for seed in range(seeds)]
    errors, hits, deviations = scores(robot, truth, results)
    assert errors.max() < PARAMETER_ERROR
    assert COVERAGE[0] < hits.mean() < COVERAGE[1]
    assert DEVIATION_RATIO[0] < np.sqrt(np.mean(deviations**2)) < DEVIATION_RATIO[1]


@pytest.mark.soak
def test_intervals_hold_the_truth_over_motions(robot, truth):
    results = []
    recipe = Recipe(friction='coulomb')  # the law of the simulated arm
    for motion in range(10):
        ideal = recording(robot, truth, motion)
        results += [identify(robot, [noisy(robot, truth, ideal, 10 * motion + s)], recipe=recipe)
                    for s in range(2)]
    errors, hits, deviations = scores(robot, truth, results)
    assert errors.max() < PARAMETER_ERROR
    assert COVERAGE[0] < hits.mean() < COVERAGE[1]
    assert DEVIATION_RATIO[0] < np.sqrt(np.mean(deviations**2)) < DEVIATION_RATIO[1]


@pytest.mark.parametrize('late', [0.0, 0.003, 0.012])
def test_late_effort_is_found_and_corrected(robot, truth, log, result, late):
    delayed = np.stack([np.interp(log.time - late, log.time, c) for c in log.effort.T], axis=1)
    spoiled = noisy(robot, truth, replace(log, effort=delayed), 1)
    found = identify(robot, [spoiled], recipe=replace(chosen(result), effort_lag=None))
    assert found.choice.preprocessing.effort_lag == pytest.approx(late, abs=5e-4)
    errors, _, _ = scores(robot, truth, [found])
    assert errors.max() < PARAMETER_ERROR
    assert any('later than the motion; corrected' in w for w in found.warnings) == (late > 0.0)


def forty_values(log: RawLog, rng: np.random.Generator) -> RawLog:
    """Return the recording with the effort of the wrist replaced by noise of 40 values."""
    effort = log.effort.copy()
    effort[:, -1] = 0.05 * rng.integers(-20, 20, len(effort)) + 0.025
    assert len(np.unique(effort[:, -1])) == 40
    return replace(log, effort=effort)


def test_wrist_without_information_is_refused_and_harms_no_other_joint(
    robot, truth, log, result
):
    wrist = robot.joints[-1]
    spoiled = forty_values(noisy(robot, truth, log, 0), np.random.default_rng(5))
    found = identify(robot, [spoiled], recipe=Recipe(friction='coulomb'))  # as `result` was
    assert found.estimate.status is Status.NOT_IDENTIFIED
    assert found.estimate.not_identified == (wrist,) == found.model.not_identified
    assert [w for w in found.warnings if wrist in w and 'do not use the model' in w]
    test = noisy(robot, truth, log, 9)
    whole, rest = (validate(m, [test]).model['all'] for m in (result.model, found.model))
    for joint in robot.joints[:-1]:
        assert rest[joint].relative_error < 1.05 * whole[joint].relative_error + 1e-3
    assert [w for w in validate(found.model, [test]).warnings if wrist in w]


def test_single_moving_joint_leaves_named_parameters_open(robot, truth, log):
    sine, cosine = np.zeros((2, 7, 3))
    sine[3], cosine[3] = [0.5, -0.1, -0.1], [0.4, 0.0, -0.4 / 9.0]
    trajectory = FourierTrajectory(robot.joints, 0.1, np.full(7, 0.3), sine, cosine, 2)
    still = noisy(robot, truth, record(Arm(robot, truth), trajectory), 2)
    found = identify(robot, [still], recipe=Recipe(
        cutoff=10.0, ramp_width=0.01, effort_lag=0.0, friction='coulomb', ripple='none',
        adaptation='none'))
    estimate = found.estimate
    assert estimate.status is Status.NOT_EXCITED
    assert estimate.rank < len(estimate.names)
    # nothing that needs joint 1 in motion can be known; friction of the moving joint can
    assert {'Izz1', 'fv1', 'fc1', 'Ia5', 'fv7'} <= set(estimate.not_excited)
    assert not {'fv4', 'fc4'} & set(estimate.not_excited)
    assert np.isinf(estimate.std[estimate.names.index('fv1')])
    named = [w for w in found.warnings if w.startswith('not excited by the motion')]
    assert len(named) == 1 and all(n in named[0] for n in estimate.not_excited)
    assert 'all joints move' in named[0]
    assert estimate.values[estimate.names.index('fc4')] == pytest.approx(truth.coulomb[3],
                                                                         rel=0.1)
