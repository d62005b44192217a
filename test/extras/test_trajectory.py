"""Fit by simulation error: derivatives, known truth, never worse than its start, other plants."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from motions import lively, noisy, torque_model, truth_of, with_effort
from random_robots import random_urdf
from scipy.signal import lfilter
from scipy.stats import t as student
from tolerances import COST_GRADIENT, COST_GRADIENT_STEP, SHOT

from robot_dynid.dynamics.rigid_body import gravity_effort, inverse_dynamics
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import ESTIMATORS, estimator_from
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.feasible.simultaneous import FeasibleEstimate
from robot_dynid.estimation.information import EXTRA, FILTERED, RAW, Batch, Information
from robot_dynid.estimation.least_squares import joint_weights, solve, weighted_factor
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import pseudo_inertia
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory import trajectory_fit
from robot_dynid_extras.trajectory.arm import ArmModel
from robot_dynid_extras.trajectory.intervals import intervals_of
from robot_dynid_extras.trajectory.multiple_shooting import EquationError, MultipleShooting
from robot_dynid_extras.trajectory.simulation import GROWTH, interval_length, simulate
from robot_dynid_extras.trajectory.trajectory_fit import (
    LEVEL,
    LEVEL_OF_ONE,
    Bodies,
    Comparison,
    Definite,
    TrajectoryDetails,
    interval_rollouts,
    level_of,
    rollout_errors,
    rules_of,
    values_of,
)

TRAJECTORY = ESTIMATORS['trajectory']


def of_robot(name: str) -> TorqueModel:
    """Return the torque model of a robot of this project, or of a random tree."""
    if name != 'tree':
        return torque_model(name)
    return torque_model(robot_from_urdf(random_urdf(np.random.default_rng(5), 4, 0.5)))


def all_laws(name: str) -> TorqueModel:
    """Return a torque model with another friction law on every axis, some under load."""
    robot = load_robot(name)
    laws = ('stribeck+load', 'dahl+levelling', 'two-speed+breakaway', 'asymmetric+load')
    coulomb = Structure.uniform(robot, True, 'coulomb', {})
    names = tuple(laws[i % len(laws)] for i in range(len(coulomb.friction)))
    structure = Structure(True, names, tuple({} for _ in names),
                          tuple(tuple(row) for row in robot.nominal.tolist()))
    return structure.torque_model(robot)


def shooting_of(model: TorqueModel, free: bool) -> MultipleShooting:
    """Return a few intervals of a lively motion."""
    arm = ArmModel(model)
    experiment = Experiment.of(model, [lively(model, 300, noise=0.02)])
    return MultipleShooting(arm, tuple(intervals_of(arm, experiment, 0.25, 6)), free)


@pytest.mark.parametrize('free', [False, True])
@pytest.mark.parametrize('model', [of_robot('planar_3r'), of_robot('tree'), of_robot('tx40'),
                                   all_laws('planar_3r')], ids=['3r', 'tree', 'coupled', 'laws'])
def test_gradient_of_the_cost_is_that_of_differences(model: TorqueModel, free: bool) -> None:
    shooting = shooting_of(model, free)
    rng = np.random.default_rng(0)
    values = truth_of(model) * rng.uniform(0.97, 1.03, len(truth_of(model)))
    shot = shooting.begin(values)
    condensed = shooting.condensed(shot)
    tall = condensed.information.total.factors[0]
    b = len(values)
    cases = sum(i.states.size for i in shooting.intervals)
    gradient = -tall[:, :b].T @ tall[:, b + 1] / cases
    assert condensed.information.samples == cases
    direction = rng.normal(size=b) * np.abs(values).clip(0.1)

    def cost(size: float) -> float:
        starts = tuple(s - size * (r @ direction) for s, r in zip(
            shot.starts, condensed.response, strict=True))
        return shooting.at(values + size * direction, starts).cost

    step = COST_GRADIENT_STEP
    difference = (cost(step) - cost(-step)) / (2.0 * step)
    assert gradient @ direction == pytest.approx(difference, rel=COST_GRADIENT)


def test_motion_of_the_truth_is_simulated_as_it_was() -> None:
    shooting = shooting_of(of_robot('tx40'), free=False)
    model = shooting.arm.torque
    exact = lively(model, 300)
    experiment = Experiment.of(model, [exact])
    intervals, = intervals_of(shooting.arm, experiment, 0.5, 100)
    found = simulate(shooting.arm.with_values(truth_of(model)), intervals, intervals.states[:, 0])
    assert np.abs(found.states - intervals.states).max() < SHOT
    rows = intervals.first[:, None] + np.arange(intervals.steps + 1)
    assert np.array_equal(exact.position[rows], intervals.position)


@pytest.mark.parametrize(('cutoff', 'thinned', 'most', 'stride'), [
    (None, 5, 100, 1), (100.0, 2, 100, 1), (None, 5, 4, 3), (25.0, 5, 8, 2)])
def test_intervals_are_rows_of_the_recordings(
    cutoff: float | None, thinned: int, most: int, stride: int
) -> None:
    """Of 0.1 s in steps of 5 ms, or a quarter of the period of the cut-off; with a step before
    and one behind, one after the other in each contiguous stretch; every so many of a long one.
    """
    model = of_robot('planar_3r')
    arm = ArmModel(model)
    recordings = [replace(lively(model, count, step=0.001), cutoff=cutoff, starts=starts)
                  for count, starts in ((614, (0,)), (50, (0,)), (500, (0, 150, 160)))]
    found = intervals_of(arm, Experiment.of(model, recordings), 0.1, most)
    assert [one.recording for one in found] == [0, 2]
    steps, before = 100 // thinned, {0: 0, 2: 664}  # with one sample more another one fits
    for one in found:
        samples = recordings[one.recording]
        begins = [first for own in samples.segments
                  for first in range(own.start + thinned, own.stop - 100 - 2 * thinned + 1, 100)]
        assert one.first.tolist() == [before[one.recording] + k for k in begins[::stride]]
        assert (one.span, one.steps, len(one)) == (100, steps, len(begins[::stride]))
        assert one.step == pytest.approx(0.001 * thinned)
        rows = np.array(begins[::stride])[:, None] + thinned * np.arange(-1, steps + 2)
        np.testing.assert_array_equal(one.position, samples.position[rows[:, 1:-1]])
        np.testing.assert_array_equal(one.velocity, samples.velocity[rows])
        np.testing.assert_array_equal(one.effort, samples.effort[rows])
        np.testing.assert_array_equal(one.states, np.concatenate([
            samples.position[rows[:, 1:-1]], samples.velocity[rows[:, 1:-1]]], axis=2))
        columns = model.columns(samples)[:, ~arm.moving]
        np.testing.assert_allclose(one.columns, columns.transpose(2, 0, 1)[rows], rtol=0.0,
                                   atol=1e-12)
        parts = list(one.parts(2))
        assert [rows.start for rows, _ in parts] == list(range(0, len(one), 2))
        np.testing.assert_array_equal(
            np.concatenate([part.effort for _, part in parts]), one.effort)
    assert intervals_of(arm, Experiment.of(model, recordings), 0.7, most) == []


@pytest.mark.parametrize(('viscous', 'shortest', 'longest'), [
    (None, 0.25, 0.5), (20.0, 1.0, 1.0)], ids=['joints that pull each other', 'damped'])
def test_intervals_are_as_long_as_deviations_of_their_start_grow_little(
    viscous: float | None, shortest: float, longest: float
) -> None:
    model = torque_model('planar_3r')
    values = np.array([viscous if viscous and name.startswith('fv') else value for name, value
                       in zip(model.reduction.names, truth_of(model), strict=True)])
    seconds, growth = interval_length(
        ArmModel(model), Experiment.of(model, [lively(model, 400)]), values)
    assert shortest <= seconds <= longest and 1.0 < growth <= GROWTH


def test_noise_of_encoders_does_not_bias_the_trajectory_fit() -> None:
    """It does bias least squares; here so much that its mass matrix is indefinite."""
    model = torque_model('planar_3r')
    truth = truth_of(model)
    experiment = noisy(model, 3, 1e-4, 12.0)
    plain, found = ESTIMATORS['wls'].fit(experiment), TRAJECTORY.fit(experiment)
    off = [np.linalg.norm(e.values - truth) / np.linalg.norm(truth) for e in (plain, found)]
    assert off[0] > 0.2 and off[1] < 0.02
    assert isinstance(found.details, TrajectoryDetails)
    assert found.details.kept and found.details.free and found.details.start == 'feasible'
    assert 'not positive definite' in found.warnings[0]
    low, high = found.interval()
    assert np.mean((low < truth) & (truth < high)) >= 0.75
    sentence = found.details.sentence(model.robot.joints)
    assert 'initial states free' in sentence and '% lower than with the start: kept' in sentence
    rows = found.details.tables(model.robot.joints)[0].rows
    assert [row.cells[0] for row in rows] == list(model.robot.joints)


def disturbed(model: TorqueModel, seed: int) -> Experiment:
    """Return ten seconds under torques that nothing measures, of 5 % and some 0.1 s each."""
    rng = np.random.default_rng(seed)
    samples = lively(model, 1000)
    clean = model.effort(samples, truth_of(model))
    pushed = lfilter([0.44], [1.0, -0.9], rng.standard_normal(clean.shape), axis=0)
    return Experiment.of(model, [with_effort(samples, clean + 0.05 * clean.std(axis=0) * pushed)])


@pytest.mark.parametrize('seed', [0, pytest.param(1, marks=pytest.mark.soak)])
def test_trajectory_keeps_least_squares_when_rollouts_are_not_better(seed: int) -> None:
    model = torque_model('planar_3r')
    experiment = disturbed(model, seed)
    plain, found = ESTIMATORS['wls'].fit(experiment), TRAJECTORY.fit(experiment)
    assert isinstance(found.details, TrajectoryDetails) and not found.details.kept
    assert np.array_equal(found.values, plain.values)
    assert np.array_equal(found.covariance, plain.covariance)
    assert found.status is plain.status and found.method == 'trajectory'
    assert 'the parameters of the method wls are kept' in found.warnings[-1]
    assert 'the parameters of the start are kept' in found.details.sentence(model.robot.joints)


@pytest.mark.parametrize(('gains', 'better'), [
    ((0.05, 0.06, 0.05, 0.06), True), ((0.2, -0.1, 0.2, -0.1), False), ((-0.05,) * 4, False),
    ((0.005, 0.006, 0.005, 0.006), False)])
def test_a_fit_has_to_be_surely_better(gains: tuple[float, ...], better: bool) -> None:
    start = [np.ones((3, 4)) for _ in gains]
    fit = [np.full((3, 4), np.exp(-2.0 * gain)) for gain in gains]
    found = Comparison.of(start, fit)
    assert found.better == better
    assert found.gain == pytest.approx(np.mean(gains))
    once = Comparison.of(start, fit, LEVEL_OF_ONE)
    assert once.margin == pytest.approx(found.margin * 10.2145 / 4.5407, rel=1e-3)  # of tables
    fit[0][1, 2] = np.nan  # a rollout that stops
    assert not Comparison.of(start, fit).better
    assert np.isinf(Comparison.of(start[:1], fit[:1]).margin)
    start[0][1, 0] = np.nan  # and so it does from the start: that pair is left out
    both = Comparison.of(start, fit)
    assert both.better == better and both.gain == pytest.approx(np.mean(gains))


def test_rollouts_are_compared_by_means_of_stretches() -> None:
    """Ratios of 4 and of 1 of mean squares; overall errors are roots of the means of both."""
    start = [np.full((3, 2), 4.0), np.full((1, 2), 16.0)]
    fit = [np.array([[0.5, 0.5], [1.0, 1.0], [1.5, 1.5]]), np.full((1, 2), 16.0)]
    found = Comparison.of(start, fit)
    np.testing.assert_allclose(found.start, np.sqrt([10.0, 10.0]))
    np.testing.assert_allclose(found.fit, np.sqrt([8.5, 8.5]))
    assert found.gain == pytest.approx(0.5 * np.log(2.0))
    # half of log 4 and nothing: a deviation of log 2 / sqrt 2, over the root of 2 stretches
    assert found.margin == pytest.approx(student.ppf(LEVEL, 1) * 0.5 * np.log(2.0))
    one = Comparison.of(start[:1], fit[:1])
    assert one.gain == 0.0 and np.isnan([*one.start, *one.fit]).all() and len(one.fit) == 2


def test_rollouts_of_a_robot_at_rest_stay_where_they_began() -> None:
    """Their errors are mean squares of how far the others are off; the effort holds the arm."""
    model = of_robot('planar_3r')
    mechanism = ArmModel(model).with_values(truth_of(model)).mechanism
    rest = np.array([[0.3, -0.2, 0.5], [1.0, 0.4, -0.7]])
    states = np.repeat(np.hstack([rest, np.zeros((2, 3))])[:, None], 5, axis=1)
    off = np.arange(1.0, 5.0)[:, None] * [0.01, 0.02, -0.03, 0.1, 0.0, -0.2]
    states[:, 1:] += off
    offsets = [truth_of(model)[model.reduction.names.index(f'f0{k}')] for k in (1, 2, 3)]
    holding = gravity_effort(model.robot, rest, mechanism.links) + offsets
    errors = rollout_errors(mechanism, states, np.repeat(holding[:, None], 4, axis=1), 0.01)
    np.testing.assert_allclose(errors, [np.mean(off**2, axis=0)] * 2, rtol=1e-9, atol=1e-15)


def test_the_effort_of_a_step_is_that_of_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any cubic exactly."""
    times = np.arange(-1.0, 5.0)
    cubic = np.polynomial.Polynomial([2.0, -1.0, 0.5, 0.25])
    held: list[np.ndarray] = []
    monkeypatch.setattr(trajectory_fit, 'rollout_errors',
                        lambda mechanism, states, effort, step: held.append(effort))
    interval_rollouts(SimpleNamespace(effort=cubic(times)[None, :, None], states=None, step=0.1),
                      None)
    np.testing.assert_allclose(held[0][0, :, 0], cubic([0.5, 1.5, 2.5]))


@pytest.mark.parametrize(('gain', 'free', 'kept', 'words'), [
    (np.log(2.0), True, True, '50 % lower than with the start: kept'),
    (-np.log(1.25), False, False, '25 % higher than with the start: not sure, the parameters of '
                                  'the start are kept'),
    (0.0, True, False, '0 % lower than with the start: not sure, the parameters of the start are '
                       'kept')])
def test_a_trajectory_fit_tells_how_rollouts_compare(
    gain: float, free: bool, kept: bool, words: str
) -> None:
    found = TrajectoryDetails('wls', 12, 0.25, 3.0, 4, free, 0.1, np.arange(1.0, 5.0) / 1e3,
                              np.arange(5.0, 9.0) / 1e3, gain, 0.1, kept)
    states = 'free' if free else 'as measured'
    assert found.sentence(()) == (
        f'12 intervals of 0.25 s, initial states {states}, 4 rounds from wls, equation error '
        f'weighted by 0.1; errors of rollouts on stretches left out are {words}')
    (table,) = found.tables(('a', 'b'))
    # position of the start and of the fit, then velocity, in thousandths
    assert [row.cells for row in table.rows] == [
        ('a', '1', '5', '3', '7'), ('b', '2', '6', '4', '8')]
    assert TrajectoryDetails('wls').tables(('a',)) == ()
    assert TrajectoryDetails('wls').sentence(()) == (
        'no stretch of the recordings could be simulated: the start is kept')


def test_the_trajectory_fit_keeps_feasible_parameters_feasible() -> None:
    model = torque_model('planar_3r')
    experiment = noisy(model, 1, 3e-5, 8.0)
    found = estimator_from('trajectory', {'start': 'feasible'}).fit(experiment)
    assert isinstance(found.details, TrajectoryDetails) and found.details.kept
    assert found.details.start == 'feasible'
    assert found.standard is not None
    np.testing.assert_allclose(model.reduction.base(found.standard), found.values)
    bodies = found.standard[:30].reshape(-1, 10)
    assert all(np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0.0 for body in bodies)
    off = np.linalg.norm(found.values - truth_of(model)) / np.linalg.norm(truth_of(model))
    assert off < 0.02


def about(experiment: Experiment, values: FloatArray) -> Information:
    """Return the equations of an experiment as those of a step from ``values`` (b,)."""
    whole, b = experiment.information, len(values)
    weights, batches = joint_weights(whole), []
    for batch in whole.batches:
        rows = weighted_factor(whole, weights, batch)
        wide = np.zeros((len(rows), b + EXTRA))
        wide[:, :b] = rows[:, :b]
        wide[:, b + FILTERED] = wide[:, b + RAW] = rows[:, b] - rows[:, :b] @ values
        batches.append(Batch((wide,), batch.samples, batch.recording))
    return Information(whole.names, np.ones((1, b), dtype=bool), tuple(batches))


def test_steps_between_feasible_parameters_do_not_depend_on_where_they_begin() -> None:
    """They go where the method feasible goes, as other steps go where least squares goes."""
    model = torque_model('planar_3r')
    experiment = Experiment.of(model, [lively(model, 300, noise=0.02)])
    starts = {name: ESTIMATORS[name].fit(experiment) for name in ('wls', 'feasible')}
    assert isinstance(starts['feasible'], FeasibleEstimate)
    bodies, definite = (rules_of(starts[name], experiment) for name in ('feasible', 'wls'))
    assert isinstance(bodies, Bodies) and not isinstance(definite, Bodies)
    for values in (np.zeros(len(model.reduction.names)), 1.3 * truth_of(model) + 0.1):
        step = about(experiment, values)
        np.testing.assert_allclose(
            definite.target(step, values), starts['wls'].values, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(
            bodies.target(step, values), starts['feasible'].values, rtol=0.0, atol=1e-4)
    assert bodies.weight == 1e-6  # least squares was feasible: a prior that decides nothing
    details = replace(starts['feasible'].details, prior_weight=0.5)
    assert Bodies.like(replace(starts['feasible'], details=details), experiment).weight == 0.5


def test_rollouts_of_joints_are_told_in_milliradians() -> None:
    details = TrajectoryDetails(
        'wls', 40, 0.25, 1.5, 7, True, 0.1, np.array([1e-3, 2e-3, 3e-3, 4e-3]),
        np.array([5e-4, 6e-4, 7e-4, 8e-4]), np.log(2.0), 0.1, True)
    (table,) = details.tables(('joint_1', 'joint_2'))
    assert [row.cells for row in table.rows] == [
        ('joint_1', '1', '0.5', '3', '0.7'), ('joint_2', '2', '0.6', '4', '0.8')]
    assert table.columns == ('joint', 'position, start', 'position, fit', 'velocity, start',
                             'velocity, fit')
    assert table.title.startswith('Rollouts of 0.25 s')
    begin = ('40 intervals of 0.25 s, initial states free, 7 rounds from wls, equation error '
             'weighted by 0.1; errors of rollouts on stretches left out are ')
    assert details.sentence(()) == f'{begin}50 % lower than with the start: kept'
    worse = replace(details, gain=-np.log(1.5), kept=False)
    assert worse.sentence(()) == (f'{begin}50 % higher than with the start: not sure, the '
                                  'parameters of the start are kept')
    assert 'initial states as measured' in replace(details, free=False).sentence(())


def test_the_mass_matrix_is_looked_at_where_the_arm_was_and_may_be() -> None:
    """200 random configurations within the limits, half a turn without; 200 of a recording."""
    robot = load_robot('planar_3r')
    limits = replace(robot.limits, lower=np.array([-2.0, 0.5, -np.inf]),
                     upper=np.array([np.inf, 0.7, 1.0]))
    model = torque_model(replace(robot, limits=limits))
    short, long = lively(model, 300), lively(model, 1000)
    poses = Definite.of(Experiment.of(model, [short, long])).poses
    np.testing.assert_array_equal(poses[200:500], short.position)
    np.testing.assert_array_equal(poses[500:], long.position[::5])
    random, low, high = poses[:200], np.array([-2.0, 0.5, -np.pi]), np.array([np.pi, 0.7, 1.0])
    assert np.all((random >= low) & (random <= high))
    for end in (random.min(axis=0) - low, high - random.max(axis=0)):
        assert np.all(end < 0.05 * (high - low))


def test_a_fold_starts_as_the_fit_does() -> None:
    """By least squares, or by feasible bodies; noise has driven the former away from these."""
    model = torque_model('planar_3r')
    experiment = noisy(model, 3, 1e-4, 12.0)
    starts = {name: ESTIMATORS[name].fit(experiment).values for name in ('wls', 'feasible')}
    assert np.abs(starts['wls'] - starts['feasible']).max() > 0.1
    for name, values in starts.items():
        np.testing.assert_allclose(values_of(name, experiment), values, rtol=0.0, atol=1e-9)


def test_steps_to_an_indefinite_mass_matrix_are_halved() -> None:
    shooting = shooting_of(of_robot('planar_3r'), free=False)
    model = shooting.arm.torque
    values = truth_of(model)
    rules = Definite.of(Experiment.of(model, [lively(model, 300)]))
    assert rules.allowed(values)
    far = values.copy()
    far[model.reduction.names.index('Izz1')] = -far[model.reduction.names.index('Izz1')] - 9.0
    assert not rules.allowed(far)


def test_elastic_joints_are_refused() -> None:
    model = Structure.uniform(load_robot('elastic_2r'), True, 'coulomb', {}).torque_model(
        load_robot('elastic_2r'))
    with pytest.raises(UsageError, match=r'simulates rigid joints.*--method elastic'):
        ArmModel(model)


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(UsageError, match="start 'ols': choose one of wls, feasible"):
        estimator_from('trajectory', {'start': 'ols'})


def test_recordings_must_be_there_again() -> None:
    model = torque_model('planar_3r')
    experiment = Experiment.of(model, (s for s in [lively(model)]))
    with pytest.raises(DataError, match='give them as a list'):
        TRAJECTORY.fit(experiment)


def test_too_short_stretches_leave_the_start() -> None:
    model = torque_model('planar_3r')
    whole = lively(model, 600, noise=0.01)
    cut = replace(whole, starts=tuple(range(0, 600, 15)))
    found = TRAJECTORY.fit(Experiment.of(model, [cut]))
    assert 'no stretch of the recordings is as long as the 0.2 s' in found.warnings[-1]
    assert 'could be simulated' in found.details.sentence(model.robot.joints)
    assert found.details.tables(model.robot.joints) == ()
    start, *rest = vars(found.details).values()
    assert start == 'wls' and not any(np.any(value) for value in rest)


def test_equations_beside_the_simulation_pull_to_least_squares() -> None:
    shooting = shooting_of(of_robot('planar_3r'), free=False)
    model = shooting.arm.torque
    experiment = Experiment.of(model, [lively(model, 300, noise=0.02)])
    plain = ESTIMATORS['wls'].fit(experiment).values
    shot = shooting.begin(1.05 * plain)
    condensed = shooting.condensed(shot)
    beside = EquationError.of(experiment.information, shooting, condensed)
    far = [np.linalg.norm(shot.values + solve(replace(beside, weight=weight).joined(
        condensed.information, shot.values), np.ones(1)).values - plain)
        for weight in (0.0, 1.0, 1e3, 1e9)]
    assert far[0] > far[1] > far[2] > far[3] and far[3] < 1e-6 * far[0]
    assert replace(beside, weight=0.0).cost(1.05 * plain) == 0.0
    costs = [replace(beside, weight=2.0).cost(values) for values in (plain, 1.05 * plain)]
    assert costs[0] < costs[1] and costs[0] == pytest.approx(1.0, rel=0.1)


def test_a_step_corrects_parameters_and_initial_states() -> None:
    model = of_robot('planar_3r')
    arm, truth = ArmModel(model), truth_of(model)
    experiment = Experiment.of(model, [lively(model, 600)])
    shooting = MultipleShooting(arm, tuple(intervals_of(arm, experiment, 0.25, 100)), free=True)
    rng = np.random.default_rng(0)
    right = shooting.begin(truth).starts
    spoiled = tuple(s + 1e-3 * rng.standard_normal(s.shape) for s in right)
    shot = shooting.at(truth * rng.uniform(0.995, 1.005, len(truth)), spoiled)
    condensed = shooting.condensed(shot)
    step = solve(condensed.information, np.ones(1)).values
    assert np.abs(shot.values + step - truth).max() < 0.1 * np.abs(shot.values - truth).max()
    moved = condensed.moved(shot.starts, step, 1.0)
    for found, before, exact in zip(moved, spoiled, right, strict=True):
        assert np.abs(found - exact).max() < 0.1 * np.abs(before - exact).max()


def test_loads_of_friction_are_those_of_the_links() -> None:
    model = all_laws('planar_3r')
    samples = lively(model, 50)
    load = inverse_dynamics(model.robot, samples.position, samples.velocity, samples.acceleration)
    np.testing.assert_allclose(ArmModel(model).pressed(samples), np.abs(load))
    assert not ArmModel(torque_model('planar_3r')).pressed(samples).any()


def test_level_of_one_recording_is_stricter_than_of_several() -> None:
    intervals = shooting_of(of_robot('planar_3r'), free=False).intervals
    assert level_of(intervals) == LEVEL_OF_ONE
    assert level_of((*intervals, replace(intervals[0], recording=1))) == LEVEL < LEVEL_OF_ONE
