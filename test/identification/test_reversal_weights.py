"""identification/gathered.py: rows near reversals, where dry friction sticks, count by their own
residual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import STEP, lively
from tolerances import NOISE_LEVEL

from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.experiment import Experiment, swift
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.identification import gathered
from robot_dynid.identification.gathered import reversal_weights
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare, repair
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import Truth, distance, load_truth, true_base
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, RawLog, Samples

ROBOT = load_robot('planar_3r')
SETTINGS = Preprocessing(15.0)
#: hardly smooths recordings of 100 Hz, so errors near and far from reversals stay apart
FINE = Preprocessing(40.0)
MODEL = Structure.uniform(ROBOT, True, 'coulomb', {'width': 0.002}).torque_model(ROBOT)


def recorded(truth: Truth, seed: int = 0) -> Repaired:
    """Return a recording of the best of 50 random motions."""
    score, limits = design_criteria(ROBOT).score, motion_limits(ROBOT).scaled(0.9)
    rng = np.random.default_rng(seed)
    drawn = [random_fourier(limits, FourierOptions(10.0), rng) for _ in range(50)]
    trajectory = min(drawn, key=lambda motion: score(motion).condition_number)
    log = measured(record(Arm(ROBOT, truth), trajectory), ROBOT, truth.noise,
                   np.random.default_rng(1))
    return repair(ROBOT, log)


@pytest.fixture(scope='module')
def sticking() -> Repaired:
    return recorded(load_truth(ROBOT))


def test_sticking_joints_count_less() -> None:
    weights = reversal_weights(MODEL, [recorded(load_truth(ROBOT))], SETTINGS)
    assert np.all(weights <= 1.0) and weights.min() < 0.8


def test_the_fit_gains_on_average_over_motions() -> None:
    true = true_base(ROBOT, load_truth(ROBOT), MODEL.reduction)
    plain, weighted = [], []
    for seed in range(4):
        recording = recorded(load_truth(ROBOT), seed)
        samples = prepare(ROBOT, recording, SETTINGS)
        weights = reversal_weights(MODEL, [recording], SETTINGS)
        for found, used in ((plain, None), (weighted, weights)):
            estimate = ESTIMATORS['wls'].fit(Experiment.of(MODEL, [samples], used))
            found.append(distance(estimate.values, true))
    assert np.mean(weighted) < 0.9 * np.mean(plain)


def test_without_dry_friction_all_rows_count_alike() -> None:
    truth = load_truth(ROBOT)
    smooth = recorded(replace(truth, coulomb=np.zeros(ROBOT.n)))
    assert reversal_weights(MODEL, [smooth], SETTINGS).min() > 0.8


def test_swift_rows_are_far_from_reversals_in_time(sticking: Repaired) -> None:
    samples = prepare(ROBOT, sticking, SETTINGS)
    far = swift(ROBOT, samples)
    step = samples.time[1] - samples.time[0]
    reach = round(1.0 / (SETTINGS.cutoff * step))
    for j in range(ROBOT.n):
        reversals = np.flatnonzero(np.diff(np.sign(samples.velocity[:, j])))
        assert len(reversals)
        for k in reversals:
            assert not far[max(k - reach + 1, 0):k + reach, j].any()
        assert far[:, j].any()


def spoiled(near: FloatArray, far: FloatArray | None = None) -> Repaired:
    """Return a recording with errors ``near`` (N, n) reversals, and others ``far`` from them."""
    clean = lively(MODEL, len(near))
    swiftly = swift(ROBOT, replace(clean, cutoff=FINE.cutoff)) > 0.5
    assert clean.effort is not None
    effort = clean.effort + np.where(swiftly, 0.0 if far is None else far, near)
    return Repaired('run', (RawLog('run', clean.joints, clean.time, clean.position,
                                   clean.velocity, effort),), STEP, ())


def test_weights_are_the_root_of_the_ratio_of_residuals() -> None:
    noise = np.random.default_rng(3).normal(size=(6000, 3))
    ratio = np.array([0.8, 0.6, 0.4])
    weights = reversal_weights(MODEL, [spoiled(0.3 * noise, 0.3 * ratio * noise)], FINE)
    np.testing.assert_allclose(weights, np.sqrt(ratio), rtol=NOISE_LEVEL)


def test_weights_that_would_spoil_the_prediction_are_not_used() -> None:
    """What is left over near reversals is no noise here, but would be predicted worse."""
    position = lively(MODEL, 6000).position
    noise = 0.01 * np.random.default_rng(4).normal(size=(6000, 3))
    weights = reversal_weights(MODEL, [spoiled(3.0 * np.cos(position) + noise, noise)], FINE)
    assert weights.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(('rows', 'known'), [(49, False), (50, True)])
def test_residuals_near_reversals_are_those_of_fifty_rows_or_more(
    monkeypatch: pytest.MonkeyPatch, rows: int, known: bool
) -> None:
    """Of the second joint; the others are far from theirs all the time."""
    noise = 0.03 * np.random.default_rng(5).normal(size=(3000, 3))
    noise[1400:1600, 1] *= 20.0
    recording = spoiled(noise, noise)
    near = np.abs(prepare(ROBOT, recording, FINE).time - 1500.0 * STEP).argsort()[:rows]

    def far(robot: RobotModel, samples: Samples) -> FloatArray:
        found = np.ones((len(samples), 3))
        found[near, 1] = 0.0
        return found

    monkeypatch.setattr(gathered, 'swift', far)
    weights = reversal_weights(MODEL, [recording], FINE)
    assert weights[[0, 2]].tolist() == [1.0, 1.0]
    assert (weights[1] < 0.8) == known and (weights[1] == 1.0) != known
