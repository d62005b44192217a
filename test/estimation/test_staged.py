"""estimation/staged/: staged identification: truth found stage by stage, knowledge carried on,
honesty about rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import torque_model
from random_robots import random_urdf
from single_joint_recordings import planned, truth_of, with_effort
from tolerances import COVERAGE, RECOVERED, STAGED

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import LeastSquares, StagedLeastSquares, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.staged.least_squares import fit_stages
from robot_dynid.estimation.staged.procedure import (
    PROCEDURES,
    Free,
    LockedJointsMotion,
    Stage,
    decompose,
    distal_to_proximal,
)
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import RawLog, Samples


@pytest.mark.parametrize(('name', 'procedure'), [
    pytest.param(name, procedure, marks=() if name == 'planar_3r' or k % 2 == i else
                 pytest.mark.soak)
    for k, name in enumerate(('planar_3r', 'stanford_arm', 'ur10e', 'tx40'))
    for i, procedure in enumerate(PROCEDURES)])
def test_truth_is_found_without_noise(procedure, name):
    model = torque_model(load_robot(name))
    truth = truth_of(model)
    samples = with_effort(model, planned(model, procedure=procedure), truth)
    estimate = StagedLeastSquares(procedure).fit(Experiment.of(model, [samples]))
    assert estimate.status is Status.OK, estimate.not_excited
    assert estimate.rank == len(truth)
    assert estimate.values == pytest.approx(truth, rel=STAGED, abs=STAGED)


def test_stages_of_a_planar_arm_find_what_the_published_ones_do():
    model = torque_model(load_robot('planar_3r'))
    samples = with_effort(model, planned(model), truth_of(model, 0.5), 0.01)
    estimate = StagedLeastSquares().fit(Experiment.of(model, [samples]))
    stages = estimate.details.stages
    found = {one.stage: {entry.combination for entry in one.found} for one in stages}
    assert found['joint_3'] == {'mx3', 'my3', 'Izz3 + Ia3', 'fv3', 'fc3', 'f03'}
    assert found['joint_3, locked rows'] == {'Ia3'}
    assert found['joint_1'] == {'mx1', 'my1', 'Izz1', 'fv1', 'fc1', 'f01'}
    assert next(iter(found)) == 'joint_3'
    assert all(one.condition_number < 20.0 for one in stages)


def test_covariance_is_carried_through_the_stages():
    """95 % intervals hold the truth, also those of sums found in one stage and split in another.
    """
    model = torque_model(load_robot('planar_3r'))
    truth = truth_of(model, 0.01)
    states, names = planned(model), model.reduction.names
    inside, ratio, told = [], [], []
    for seed in range(20):
        samples = with_effort(model, states, truth, 0.02, seed)
        estimate = StagedLeastSquares().fit(Experiment.of(model, [samples]))
        low, high = estimate.interval()
        inside.append((low <= truth) & (truth <= high))
        ratio.append((estimate.values - truth) / estimate.std)
        first = estimate.details.stages[0]  # its deviations do not hold those of others
        told += [(one.value - truth[names.index(one.combination)]) / one.std
                 for one in first.found if one.combination in names]
        assert np.linalg.eigvalsh(estimate.covariance).min() > -1e-12
    assert COVERAGE[0] <= np.mean(inside) <= 1.0
    for deviations in (ratio, told):
        assert 0.7 < np.sqrt(np.mean(np.square(deviations))) < 1.4


def test_stages_agree_with_least_squares_on_everything_at_once():
    model = torque_model(load_robot('stanford_arm'))
    truth = truth_of(model)
    samples = with_effort(model, planned(model), truth, 1e-3)
    experiment = Experiment.of(model, [samples])
    staged = StagedLeastSquares().fit(experiment)
    once = LeastSquares().fit(experiment)
    apart = np.abs(staged.values - once.values) / np.hypot(staged.std, once.std)
    assert apart.max() < 5.0


def test_staged_keeps_nominal_values_that_no_stage_determines():
    robot = load_robot('ur10e')
    model = torque_model(robot)
    motions = [LockedJointsMotion(j, np.zeros(6), 1.0) for j in range(6)]
    time = np.arange(0.0, 12.0, 0.01)
    recordings, truth = [], truth_of(model)
    for motion in motions:
        q, qd, qdd = np.zeros((3, len(time), 6))
        q[:, motion.moving] = np.sin(1.7 * time)
        qd[:, motion.moving] = 1.7 * np.cos(1.7 * time)
        qdd[:, motion.moving] = -1.7**2 * np.sin(1.7 * time)
        recordings.append(with_effort(model, Samples(robot.joints, time, q, qd, qdd), truth))
    estimate = StagedLeastSquares().fit(Experiment.of(model, recordings))
    assert estimate.status is Status.NOT_EXCITED
    assert estimate.rank < len(truth)
    left_open = estimate.names.index('Ixx4')
    assert 'Ixx4' in estimate.not_excited and np.isinf(estimate.std[left_open])
    assert 'swinging with' in estimate.remedy and 'locked at' in estimate.remedy
    nominal = model.reduction.matrix[left_open, :60] @ robot.nominal.ravel()
    assert estimate.values[left_open] == pytest.approx(nominal)
    known = [i for i, n in enumerate(estimate.names) if n not in estimate.not_excited]
    assert estimate.values[known] == pytest.approx(truth[known], abs=STAGED)


def test_a_missing_motion_is_named_with_joint_and_stage():
    model = torque_model(load_robot('planar_3r'))
    samples = with_effort(model, planned(model), truth_of(model))
    still = np.abs(samples.velocity[:, 1]) < 1e-9
    runs = np.flatnonzero(np.diff(still.astype(int))) + 1
    starts = (0, *(int(r) for r in runs))
    cut = replace(samples, starts=starts)
    without = [cut.part(s) for s in cut.segments if still[s.start]]
    with pytest.raises(DataError, match="stage 'joint_2': joint joint_2 never moves alone"):
        StagedLeastSquares().fit(Experiment.of(model, without))


def test_motion_of_all_joints_at_once_is_refused():
    model = torque_model(load_robot('planar_3r'))
    samples = with_effort(model, planned(model), truth_of(model))
    together = np.repeat(samples.position[:, :1], 3, axis=1)
    with pytest.raises(DataError, match='one joint moves while all others rest'):
        StagedLeastSquares().fit(Experiment.of(model, [replace(samples, position=together)]))


@pytest.mark.parametrize('procedure', PROCEDURES)
def test_recordings_become_a_model(procedure):
    """From positions and noisy efforts alone; the stages are kept with the model."""
    robot = load_robot('planar_3r')
    model = torque_model(robot)
    truth = truth_of(model, 0.2)
    samples = with_effort(model, planned(model, procedure=procedure), truth, 1e-3)
    log = RawLog('run', robot.joints, samples.time, samples.position, effort=samples.effort)
    result = identify(robot, [log], 'staged', Recipe(
        cutoff=20.0, ramp_width=0.05, effort_lag=0.0, estimator={'procedure': procedure}))
    assert result.estimate.status is Status.OK
    assert np.abs(result.model.values - truth).max() < 0.01
    stages = result.model.record.details.stages
    assert stages[0].stage == 'joint_3'
    assert stages[0].found[0].combination == 'mx3'
    assert IdentifiedModel.from_yaml(result.model.to_yaml()).record.details.stages == stages


def test_an_unknown_procedure_is_refused():
    with pytest.raises(UsageError, match=r"'x': choose one of distal-to-proximal, body-by-body"):
        StagedLeastSquares('x')


def test_friction_that_holds_a_locked_joint_does_not_spoil_the_others():
    """Locked joints take any constant load up to their friction, so only variations count."""
    model = torque_model(load_robot('planar_3r'))
    truth = truth_of(model, 0.5)
    states = planned(model)
    samples = with_effort(model, states, truth)
    resting = np.abs(states.velocity) < 1e-9
    borders = np.flatnonzero(np.any(np.diff(resting.astype(int), axis=0), axis=1)) + 1
    rng = np.random.default_rng(5)
    stuck = np.zeros_like(samples.effort)
    for part in np.split(np.arange(len(samples)), borders):
        stuck[part] = rng.uniform(-0.5, 0.5, 3) * resting[part]
    spoiled = replace(samples, effort=samples.effort + stuck, measured=samples.effort + stuck)
    estimate = StagedLeastSquares().fit(Experiment.of(model, [spoiled]))
    assert estimate.status is Status.OK
    assert np.abs(estimate.values - truth).max() < 0.02


def test_friction_that_takes_load_from_locked_joints_is_in_the_deviations():
    """A tenth of the load, always against it: that does not average out as noise does.

    Without its part of the covariance the errors are 8 deviations, root mean square.
    """
    model = torque_model(load_robot('planar_3r'))
    truth, states = truth_of(model, 0.5), planned(model)
    resting = np.abs(states.velocity) < 1e-9
    borders = np.flatnonzero(np.any(np.diff(resting.astype(int), axis=0), axis=1)) + 1
    errors = []
    for seed in range(3):
        samples = with_effort(model, states, truth, 1e-3, seed)
        effort = samples.effort.copy()
        for part in np.split(np.arange(len(samples)), borders):
            load = effort[part] - effort[part].mean(axis=0)
            effort[part] -= np.clip(0.1 * load, -0.5, 0.5) * resting[part]
        estimate = StagedLeastSquares().fit(Experiment.of(model, [
            replace(samples, effort=effort, measured=effort)]))
        assert estimate.status is Status.OK
        errors.append((estimate.values - truth) / estimate.std)
    assert np.sqrt(np.mean(np.square(errors))) < 3.0


def test_staged_deviations_include_what_earlier_stages_leave_open():
    """Noise in the last joint only, whose stage is the first.

    Taken as exact, its parameters make errors of joint 2 of 80 deviations.
    """
    model = torque_model(load_robot('planar_3r'))
    truth, states = truth_of(model, 0.5), planned(model)
    errors = []
    for seed in range(4):
        samples = with_effort(model, states, truth, 1e-3, seed)
        noise = np.random.default_rng(100 + seed).normal(
            0.0, [0.0, 0.0, 0.3], samples.effort.shape)
        effort = samples.effort + noise
        estimate = StagedLeastSquares().fit(Experiment.of(model, [
            replace(samples, effort=effort, measured=effort)]))
        errors.append((estimate.values - truth) / estimate.std)
    assert np.sqrt(np.mean(np.square(errors), axis=0)).max() < 4.0


def test_combinations_that_noise_hides_stay_nominal_but_what_a_joint_shows_is_kept():
    """Links are nominal in truth, but for the last one: what is refused is exact."""
    model = torque_model(load_robot('stanford_arm'))
    truth, last = truth_of(model), model.reduction.names.index('Izz6')
    truth[last] += 0.3
    samples = with_effort(model, planned(model), truth, 0.3)
    estimate = StagedLeastSquares().fit(Experiment.of(model, [samples]))
    assert estimate.status is Status.NOT_EXCITED and 5 <= len(estimate.not_excited) <= 12
    off = (estimate.values - truth) * model.moderate_effort.max(axis=0)
    assert np.sqrt(np.mean(off**2)) < 0.4, 'all that is left open solved: 0.69'
    assert abs(estimate.values[last] - truth[last]) < 3.0 * estimate.std[last] < 0.1


@pytest.mark.parametrize(('name', 'configurations', 'slight'),
                         [('stanford_arm', 4, 'Izz2'), ('tx40', 1, 'Ixz4')])
def test_a_crumb_in_an_open_direction_is_deviation_not_ignorance(name, configurations, slight):
    """Two columns that are nearly dependent leave it in the combinations of a stage."""
    model = torque_model(load_robot(name))
    states = planned(model, procedure='body-by-body', configurations=configurations, periods=1)
    truth = truth_of(model)
    estimate = StagedLeastSquares(procedure='body-by-body').fit(
        Experiment.of(model, [with_effort(model, states, truth, 0.03)]))
    own = estimate.names.index(slight)
    assert estimate.status is Status.NOT_EXCITED and slight not in estimate.not_excited
    assert abs(estimate.values[own] - truth[own]) < 2.0 * estimate.std[own] < 1.0


def test_a_stage_can_be_written_by_hand():
    model = torque_model(load_robot('planar_3r'))
    truth = truth_of(model)
    samples = with_effort(model, planned(model), truth)
    experiment = Experiment.of(model, [samples])
    stage = Stage('all', tuple(LockedJointsMotion(j, np.zeros(3)) for j in range(3)), (0, 1, 2),
                  model.reduction.names)
    estimate = fit_stages(experiment, [stage], [experiment.information])
    assert tuple(entry.combination for entry in estimate.details.stages[0].found) == \
        model.reduction.names
    assert estimate.values == pytest.approx(truth, rel=RECOVERED, abs=RECOVERED)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_stages_never_find_more_than_there_is(seed):
    """Over random robots: free directions and found combinations always add up."""
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, 4, 0.2))
    model = torque_model(robot)
    motions = [LockedJointsMotion(j, rng.uniform(-1.0, 1.0, robot.n)) for j in range(robot.n)]
    free = Free.everything(len(model.reduction.names))
    for stage in distal_to_proximal(model, motions):
        found = decompose(model, stage, free)
        after = free.without(found)
        assert len(after.owners) == len(free.owners) - len(found.solved)
        assert found.combination[:, found.solved] == pytest.approx(np.eye(len(found.solved)))
        free = after
