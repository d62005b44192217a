"""robot_dynid_extras/session/precision.py: adaptive sessions: what was measured decides the next
swings, until the accuracy is met."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from motions import torque_model
from single_joint_recordings import with_effort

from robot_dynid.errors import Cancelled, DynIdError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.least_squares import batch_covariance, joint_weights, solve
from robot_dynid.estimation.staged.joint_effort import single_joint_data
from robot_dynid.estimation.staged.procedure import Free, Stage, centred_rows, decompose
from robot_dynid.estimation.staged.stage_fit import coherent
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.single_joint import SineSwing
from robot_dynid.types import RawLog, Samples
from robot_dynid_extras.session import precision as module
from robot_dynid_extras.session.adaptive_swings import Candidate
from robot_dynid_extras.session.precision import (
    MeasuredInformation,
    Resting,
    measured_information,
    measured_precision,
    precision_of,
)

ROBOT = load_robot('planar_3r')
CRITERIA = design_criteria(ROBOT)
BEFORE = precision_of(CRITERIA)
STEP = 0.01


def truth():
    """Return base parameters off the nominal ones."""
    rng = np.random.default_rng(6)
    reduction = CRITERIA.model.reduction
    standard = {name: rng.uniform(0.1, 0.5) for name in reduction.standard}
    links = ROBOT.nominal.ravel() * rng.uniform(0.8, 1.2, ROBOT.nominal.size)
    return reduction.base(list((standard | dict(zip(
        CRITERIA.model.blocks[0].names, links))).values()))


def states(trajectory):
    """Return the states of a motion."""
    time = np.arange(0.0, trajectory.duration, STEP)
    motion = trajectory.sample(time)
    return Samples(ROBOT.joints, time, motion.position, motion.velocity, motion.acceleration)


def recorded(trajectory, noise, seed):
    """Return the recording of a motion with white noise (n,) of the efforts."""
    samples = states(trajectory)
    effort = CRITERIA.model.effort(samples, truth())
    effort = effort + noise * np.random.default_rng(seed).standard_normal(effort.shape)
    return RawLog(f'swings {seed}', ROBOT.joints, samples.time, samples.position, effort=effort)


def adaptive(criteria, **options):
    """Return the design of the next swings."""
    return design(ROBOT, parse_request('sine-sequence', {'procedure': 'adaptive', **options}),
                  criteria)


@pytest.mark.parametrize('seed', [0, pytest.param(1, marks=pytest.mark.soak)])
def test_a_session_ends_when_its_parameters_are_as_accurate_as_asked_for(seed):
    """The noise is not the assumed one; what is met is met by the true parameters, too."""
    accuracy, before = 0.15, BEFORE
    precision = before
    noise = 10.0 * before.density * np.array([0.3, 1.0, 2.0])
    criteria, logs, seconds = CRITERIA, [], 0.0
    while True:
        try:
            found = adaptive(criteria, accuracy=accuracy, seed=len(logs))
        except DynIdError as error:
            assert 'is met' in str(error)
            break
        logs.append(recorded(found.trajectory, noise, 10 * seed + len(logs)))
        seconds += found.trajectory.duration
        assert len(logs) <= 6
        criteria = replace(CRITERIA, recordings=tuple(logs))
        precision = precision_of(criteria)
    assert len(logs) > 1, 'the first plan believed in less noise'
    ratio = precision.density / (noise * np.sqrt(STEP))
    assert np.all((ratio > 0.5) & (ratio < 4.0)), 'coloured by the filter, not by the noise'
    recipe = Recipe(friction='coulomb', ripple='none', adaptation='none')
    result = identify(ROBOT, logs, 'staged', recipe)
    assert result.estimate.not_excited == ()
    error = (result.estimate.values - truth()) / before.sizes
    assert np.sqrt(np.mean(error**2)) < accuracy
    assert np.abs(error).max() < 3.0 * accuracy
    fixed = design(ROBOT, parse_request('sine-sequence', {'seed': seed}), CRITERIA)
    runs, told = [], replace(before)
    while told.worst[1] > accuracy:
        runs.append(recorded(fixed.trajectory, noise, 100 + 10 * seed + len(runs)))
        told = measured_precision(ROBOT, runs, CRITERIA.model, before)
    assert seconds < 0.8 * len(runs) * fixed.trajectory.duration


@pytest.mark.parametrize('stage', ['choosing swings', 'shortening swings'])
def test_a_plan_of_many_steps_can_be_cancelled(stage):
    """A fine accuracy takes minutes; whoever waits for it may want to stop."""
    def progress(found, share):
        assert 0.0 <= share <= 1.0
        if found == stage:
            raise Cancelled('asked to stop')

    with pytest.raises(Cancelled):
        adaptive(replace(CRITERIA, progress=progress), accuracy=0.5)


def test_measured_information_is_that_of_the_plan():
    """With the noise that was assumed, a recording tells what its plan promised."""
    found = adaptive(CRITERIA, accuracy=0.1)  # long enough to show the noise
    before = BEFORE
    noise = before.density / np.sqrt(STEP)
    samples = with_effort(CRITERIA.model, states(found.trajectory), truth())
    effort = samples.effort + noise * np.random.default_rng(1).standard_normal(
        samples.effort.shape)
    experiment = Experiment.of(CRITERIA.model, [replace(samples, effort=effort, measured=effort)])
    told = measured_information(experiment, STEP)
    assert told.density == pytest.approx(before.density, rel=0.6)
    assert np.all(told.held < before.held), 'no friction holds these joints'
    same = replace(before, information=told.information * np.median(
        told.density / before.density)**2, resting=Resting(told.resting, told.seconds))
    promised = found.session.swings[-1].largest_deviation
    reached = [name not in found.session.unreachable for name in before.names]
    assert 0.3 * promised < same.deviations[reached].max() < 2.0 * promised


@pytest.mark.parametrize(('amplitude', 'frequency'), [(0.6, 0.7), (1.5, 0.35)])
def test_a_short_swing_tells_of_joints_at_rest_what_was_planned(amplitude, frequency):
    """However short its recording is: 4 and 9 s here."""
    swing = SineSwing(ROBOT.joints, 'joint_1', np.array([0.3, -0.4, 0.5]), amplitude, frequency, 1)
    samples = with_effort(CRITERIA.model, states(swing), truth())
    noisy = samples.effort + 0.1 * np.random.default_rng(0).standard_normal(samples.effort.shape)
    log = RawLog('one swing', ROBOT.joints, samples.time, samples.position, effort=noisy)
    before = BEFORE
    planned = Candidate.of(CRITERIA.model, swing, before).told(1)
    found = measured_precision(ROBOT, [log], CRITERIA.model, before).resting
    assert found.seconds[0] == pytest.approx(planned.seconds, rel=0.35)  # without rise and fall
    assert not found.seconds[1:].any()
    for i in (1, 2):
        told, wanted = np.diag(found.grams[0, i]) * before.sizes**2, np.diag(planned.resting[i])
        there = wanted > 1e-3 * wanted.max()
        assert np.all(told[there] > 0.7 * wanted[there])
        assert np.median(told[there] / wanted[there]) < 1.6


def test_a_joint_that_never_moved_keeps_its_noise():
    model = torque_model(ROBOT)
    time = np.arange(0.0, 10.0, STEP)
    q, qd, qdd = np.zeros((3, len(time), 3))
    q[:, 2], qd[:, 2], qdd[:, 2] = np.sin(2 * time), 2 * np.cos(2 * time), -4 * np.sin(2 * time)
    samples = with_effort(model, Samples(ROBOT.joints, time, q, qd, qdd), np.full(
        len(model.reduction.names), 0.3), 0.01)
    told = measured_information(Experiment.of(model, [samples]), STEP)
    assert np.isnan(told.density[:2]).all() and np.isfinite(told.density[2])
    assert np.isfinite(told.held[:2]).all() and np.isnan(told.held[2])
    assert np.linalg.eigvalsh(told.information).min() > -1e-6 * np.trace(told.information)
    others = [i for i, name in enumerate(model.reduction.names) if name[-1] == '1']
    fixed = [i for i in others if model.reduction.names[i][0] == 'f']
    assert not told.information[fixed].any()


@pytest.mark.parametrize('noise', [0.05, 0.0])
def test_joints_that_no_friction_holds_tell_by_their_whole_effort(noise):
    """Like that of the joint that moves, by the noise of a sample; a millionth of it without."""
    names = ('none', 'coulomb', 'coulomb')
    model = Structure(True, names, ({},) * 3, tuple(
        tuple(row) for row in ROBOT.nominal.tolist())).torque_model(ROBOT)
    time = np.arange(0.0, 10.0, STEP)
    q, qd, qdd = np.zeros((3, len(time), 3))
    q[:] = 0.4, -0.7, 0.0
    q[:, 2], qd[:, 2], qdd[:, 2] = np.sin(2 * time), 2 * np.cos(2 * time), -4 * np.sin(2 * time)
    samples = Samples(ROBOT.joints, time, q, qd, qdd)
    exact = model.effort(samples, np.full(len(model.reduction.names), 0.3))
    effort = exact + noise * np.random.default_rng(0).standard_normal(exact.shape)
    told = measured_information(Experiment.of(model, [Samples(
        ROBOT.joints, time, q, qd, qdd, effort, effort)]), STEP)
    columns = model.columns(samples)
    own = columns[2] @ columns[2].T * STEP / told.density[2]**2
    deviation = noise or 1e-6 * np.sqrt(np.mean(exact[:, 0]**2))
    free = columns[0] @ columns[0].T / deviation**2
    np.testing.assert_allclose(told.information, own + free, rtol=0.05, atol=1e-6 * free.max())
    assert not told.resting[:, 0].any() and told.resting[2, 1].any()
    assert np.isfinite(told.density).tolist() == [False, False, True]


def test_measured_information_does_not_average_out_friction_at_rest():
    """An error that goes with the motion takes information from the locked joints alone."""
    model, names = CRITERIA.model, CRITERIA.model.reduction.names
    motion = states(adaptive(CRITERIA, accuracy=0.3).trajectory)
    samples = with_effort(model, motion, truth(), 1e-3)
    rest = np.abs(motion.velocity) < 1e-9
    taken = 0.3 * rest * np.sign(np.diff(motion.velocity.sum(axis=1), prepend=0.0))[:, None]
    stuck = replace(samples, effort=samples.effort + taken, measured=samples.effort + taken)
    clean, dirty, twice = (measured_information(Experiment.of(model, found), STEP)
                           for found in ([samples], [stuck], [stuck, stuck]))
    assert np.all(dirty.held > 10.0 * clean.held)
    assert dirty.density == pytest.approx(clean.density, rel=1e-6)
    split = names.index('Ia3')  # which only the others' efforts tell from Izz3
    total = [one.information + Resting(one.resting, one.seconds).information(
        one.density, one.held) for one in (clean, dirty, twice)]
    seen = [np.linalg.inv(one + 1e-9 * np.eye(len(names)))[split, split] for one in total]
    assert seen[1] > 20.0 * seen[0]
    assert seen[2] > 0.8 * seen[1], 'the same once more tells no more'


def swung(model, joint, pose, noise, seed, colour=0.0):
    """Return samples in which one joint swings about a pose; noise (n,) may be coloured."""
    time = np.arange(0.0, 12.0, STEP)
    q, qd, qdd = np.zeros((3, len(time), 3))
    q[:] = pose
    q[:, joint] += 0.8 * np.sin(1.7 * time)
    qd[:, joint], qdd[:, joint] = 1.36 * np.cos(1.7 * time), -2.312 * np.sin(1.7 * time)
    samples = Samples(ROBOT.joints, time, q, qd, qdd)
    white = np.random.default_rng(seed).standard_normal((len(time), 3))
    for k in range(1, len(white)):
        white[k] = colour * white[k - 1] + np.sqrt(1.0 - colour**2) * white[k]
    effort = model.effort(samples, truth()) + noise * white
    return replace(samples, effort=effort, measured=effort)


@pytest.mark.parametrize(('noise', 'colour'), [
    (0.1, 0.0), (0.1, 0.95), (0.1, -0.95), (0.0, 0.0)])
def test_measured_information_is_by_the_noise_of_batches(noise, colour):
    """Residuals of least squares, widened where batches scatter more; a millionth at least."""
    model = CRITERIA.model
    size = noise * np.array([1.0, 0.7, 0.4])
    recordings = [swung(model, 2, [0.4, -0.7, 0.2], size, 1, colour),
                  swung(model, 2, [0.1, 1.2, -0.3], size, 2, colour)]
    experiment = Experiment.of(model, recordings)
    told = measured_information(experiment, STEP)
    data = single_joint_data(experiment)
    motions = tuple(motion for motion, _ in data)
    whole = data[0][1].merge(data[1][1])
    names = model.reduction.names
    parts = {}
    for rows in ((2,), (0, 1)):
        stage = Stage('', motions, rows, names)
        found = decompose(model, stage, Free.everything(len(names)))
        parts[rows] = whole.projected(rows, found.present, np.eye(len(names))[:, found.solved],
                                      np.zeros(len(names)), centred_rows(model, stage))
    count = sum(len(one) for one in recordings)
    assert whole.samples == count and told.seconds.tolist() == [0.0, 0.0, count * STEP]
    columns = np.concatenate([model.columns(one) for one in recordings], axis=2)
    effort = np.concatenate([one.effort for one in recordings])
    fit, _, rank, _ = np.linalg.lstsq(columns[2].T, effort[:, 2], rcond=1e-10)
    variance = np.sum((effort[:, 2] - columns[2].T @ fit)**2) / (count - rank)
    solution = solve(parts[2,], np.ones(1))
    assert solution.rank == rank
    ratios = np.diag(batch_covariance(parts[2,], np.ones(1), solution)[0]) / (
        variance * np.sum(solution.root**2, axis=1))
    assert (np.median(ratios) > 3.0) == (colour > 0.0) or not noise
    least = 1e-6 * np.sqrt(np.mean(effort[:, 2]**2))
    density = np.sqrt(variance * max(np.median(ratios), 1.0) * STEP) if noise else least
    assert told.density[2] == pytest.approx(density, rel=1e-4)
    np.testing.assert_allclose(told.information, STEP / density**2 * columns[2] @ columns[2].T,
                               rtol=1e-3, atol=1e-6 * np.abs(told.information).max())
    values = solve(parts[0, 1], joint_weights(parts[0, 1])).values
    np.testing.assert_allclose(told.held[:2], coherent(parts[0, 1], values))
    assert np.isnan(told.held[2]) and np.isnan(told.density[:2]).all()
    for i in (0, 1):
        gram = sum(varying @ varying.T for one in recordings for varying in [
            part - part.mean(axis=1, keepdims=True) for part in np.split(
                model.columns(one)[i], np.arange(100, len(one), 100), axis=1)])
        np.testing.assert_allclose(told.resting[2, i], STEP * gram, rtol=1e-4,
                                   atol=1e-4 * STEP * np.abs(gram).max())
    assert not told.resting[:2].any() and not told.resting[2, 2].any()


def test_precision_before_the_first_swing_is_that_of_the_noise_of_samples():
    assert BEFORE.density == pytest.approx(CRITERIA.noise / np.sqrt(100.0), rel=1e-9)
    np.testing.assert_array_equal(BEFORE.held, CRITERIA.noise)
    np.testing.assert_array_equal(BEFORE.sizes, CRITERIA.sizes)
    assert not BEFORE.information.any() and BEFORE.names == CRITERIA.model.reduction.names
    assert BEFORE.deviations == pytest.approx(np.full(len(BEFORE.names), 1e3))


def test_friction_that_holds_a_joint_is_the_larger_one_of_all_swings():
    """Whichever joint swings; what each tells adds up."""
    model, noise = CRITERIA.model, np.array([0.1, 0.07, 0.04])
    parts = [swung(model, 2, [0.4, -0.7, 0.2], noise, 1, 0.95),
             swung(model, 1, [0.1, 1.2, -0.3], 3.0 * noise, 2, 0.95)]
    alone = [measured_information(Experiment.of(model, [one]), STEP) for one in parts]
    both = measured_information(Experiment.of(model, parts), STEP)
    np.testing.assert_allclose(both.held, np.fmax(*(one.held for one in alone)))
    assert not np.isnan(both.held).any() and alone[0].held[0] != alone[1].held[0]
    for name in ('information', 'resting', 'seconds'):
        np.testing.assert_allclose(getattr(both, name), sum(getattr(one, name) for one in alone),
                                   rtol=1e-6, atol=1e-9)
    assert np.isnan(both.density).tolist() == [True, False, False]


def test_measured_precision_adds_to_what_was_known_before(monkeypatch):
    """Joints of which nothing was measured keep their noise; steps are those of most samples."""
    rng, count = np.random.default_rng(0), len(BEFORE.names)
    told = MeasuredInformation(rng.normal(size=(count, count)), np.array([0.3, np.nan, 0.5]),
                               np.array([np.nan, 0.7, 0.9]), rng.normal(
                                   size=(3, 3, count, count)), np.array([4.0, 0.0, 6.0]))
    steps = []
    recordings = [SimpleNamespace(time=np.arange(5) * 0.02), SimpleNamespace(
        time=np.arange(90) * 0.004)]
    monkeypatch.setattr(module, 'plausible_recordings', lambda robot, parts: (parts, ()))
    monkeypatch.setattr(module, 'Recordings', lambda *_: Excerpted(recordings))
    monkeypatch.setattr(module, 'choose', lambda *_, kind: SimpleNamespace(preprocessing=None))
    monkeypatch.setattr(module, 'prepare', lambda robot, one, preprocessing: one)
    monkeypatch.setattr(module, 'Experiment', SimpleNamespace(of=lambda model, samples: samples))
    monkeypatch.setattr(module, 'measured_information', lambda experiment, step: (
        steps.append(step), told)[1])
    before = replace(BEFORE, information=rng.normal(size=(count, count)), resting=Resting(
        rng.normal(size=(3, 3, count, count)), np.array([1.0, 2.0, 3.0])))
    found = measured_precision(ROBOT, [], CRITERIA.model, before)
    assert steps == [pytest.approx(0.004)]
    np.testing.assert_allclose(found.information, before.information + told.information)
    np.testing.assert_allclose(found.resting.grams, before.resting.grams + told.resting)
    assert found.resting.seconds.tolist() == [5.0, 2.0, 9.0]
    assert found.density.tolist() == [0.3, BEFORE.density[1], 0.5]
    assert found.held.tolist() == [BEFORE.held[0], 0.7, 0.9]


class Excerpted(list):
    """Recordings of which no excerpt is needed."""

    def excerpt(self):
        """Return nothing."""
