"""Feasible estimates are those of real robots, and lose nothing where the data is good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chains import random_chain
from feasible_recordings import assert_real, motion, moved, recorded, truth_of
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import torque_model
from random_robots import random_urdf
from tiers import COSTLY
from tolerances import POLISHED, RECOVERED, SAME_OPTIMUM, SAME_ROBOT, SOLVER

from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS, LeastSquares, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible import conic
from robot_dynid.estimation.feasible.bounds import Bounds
from robot_dynid.estimation.feasible.certificate import active_constraints
from robot_dynid.estimation.feasible.program import ASKED, BOUND_SLACK, LEAST_EIGENVALUE, PRIORS
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import MAX_RISE, Feasible, Task
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf

METHODS = ('feasible', 'sequential-feasible')


def spoiled(robot, rng, share):
    """Return the robot with other nominal links."""
    return robot.with_nominal([moved(body, rng, share) for body in robot.nominal])


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), noise=st.floats(0.01, 0.5), joints=st.integers(1, 4),
       method=st.sampled_from(METHODS), prior=st.sampled_from(['entropic', 'euclidean']),
       weight=st.sampled_from([None, 1e-3]))
def test_chains_with_any_noise_stay_real(seed, noise, joints, method, prior, weight):
    rng = np.random.default_rng(seed)
    robot = random_chain(rng, joints)
    data = recorded(spoiled(robot, rng, 0.3), robot.nominal, rng, noise, count=600)
    estimator = type(ESTIMATORS[method])(prior=prior, prior_weight=weight)
    estimate = estimator.fit(data.experiment)
    assert estimate.status is not Status.NOT_SOLVED
    assert_real(data.model, estimate, rng)


@settings(max_examples=COSTLY)
@given(seed=st.integers(0, 10**6), noise=st.floats(0.0, 0.2), method=st.sampled_from(METHODS))
def test_trees_with_links_without_inertial_stay_real(seed, noise, method):
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, 4, 0.6))
    truth = [moved(body, rng, 0.2) if body[0] > 0.0 else
             parameters_from_com(0.5, [0.0, 0.0, 0.05], 1e-3 * np.eye(3))
             for body in robot.nominal]
    data = recorded(robot, truth, rng, noise, count=600)
    estimate = ESTIMATORS[method].fit(data.experiment)
    assert estimate.status is not Status.NOT_SOLVED
    assert_real(data.model, estimate, rng)


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize('name', ['planar_3r', 'ur10e'])
def test_exact_data_gives_exact_effort_whatever_the_nominal_robot(method, name):
    rng = np.random.default_rng(3)
    robot = load_robot(name)
    data = recorded(spoiled(robot, rng, 0.15), robot.nominal, rng)
    estimate = ESTIMATORS[method].fit(data.experiment)
    assert_real(data.model, estimate, rng)
    true = data.model.reduction.base(data.truth)
    assert estimate.values == pytest.approx(true, rel=RECOVERED, abs=RECOVERED)
    assert estimate.prior_weight == 0.0


@pytest.mark.parametrize('method', METHODS)
def test_feasible_estimates_keep_least_squares_that_is_feasible(method):
    rng = np.random.default_rng(4)
    robot = load_robot('planar_3r')
    data = recorded(spoiled(robot, rng, 0.1), robot.nominal, rng, noise=0.01)
    estimate = ESTIMATORS[method].fit(data.experiment)
    plain = LeastSquares().fit(data.experiment)
    assert estimate.values == pytest.approx(plain.values, rel=RECOVERED, abs=RECOVERED)
    assert estimate.covariance == pytest.approx(plain.covariance)
    assert estimate.certificate.rise_of_residual == pytest.approx(0.0, abs=RECOVERED)
    assert_real(data.model, estimate, rng)


def test_rise_is_over_a_thousandth_of_the_effort_where_least_squares_leaves_less():
    rng = np.random.default_rng(6)
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, rng)
    task = Task.of(data.experiment, 'entropic', Bounds())
    base = LeastSquares().fit(data.experiment).values
    for share in (1e-4, 3e-3):  # of all parameters, thus of every effort
        rise = task.rise((1.0 + share) * base)
        assert rise == pytest.approx(max(share / 1e-3, 1.0) - 1.0, rel=1e-3)


@pytest.mark.parametrize('prior', ['entropic', 'euclidean'])
def test_prior_alone_decides_what_no_effort_shows(prior):
    rng = np.random.default_rng(5)
    robot = load_robot('ur10e')
    data = recorded(robot, robot.nominal, rng)
    estimate = Feasible(prior=prior).fit(data.experiment)
    # truth and prior agree on the links, and nothing but their split from rotors is open
    names = list(estimate.certificate.prior_share)
    for name in ('m1', 'm3', 'mx2', 'Ixx6', 'mz4'):
        i = names.index(name)
        assert estimate.standard[i] == pytest.approx(data.truth[i], rel=0.05, abs=1e-3), name
    assert estimate.certificate.prior_share['m1'] == pytest.approx(1.0)
    assert estimate.certificate.prior_share['fc3'] < 1e-6
    assert {'m1', 'mx1'} <= set(estimate.certificate.from_prior)
    rank = len(data.model.reduction.pivots)
    assert estimate.certificate.directions_from_prior == len(names) - rank


@pytest.mark.parametrize('method', METHODS)
def test_feasible_estimate_stays_near_nominal_when_one_joint_moves(method):
    rng = np.random.default_rng(6)
    robot = load_robot('ur10e')
    guess = spoiled(robot, rng, 0.1)
    data = recorded(guess, robot.nominal, rng, noise=0.02, moving=(3,))
    estimate = ESTIMATORS[method].fit(data.experiment)
    assert estimate.status is Status.NOT_EXCITED
    assert_real(data.model, estimate, rng)
    links = estimate.standard[:60].reshape(6, 10)
    assert np.all(np.abs(links[:, 0] / guess.nominal[:, 0] - 1.0) < 0.5)
    told = set(estimate.certificate.from_prior)
    assert {'fv1', 'fc1', 'Izz1', 'fv6'} <= told
    assert not {'fv4', 'fc4'} & told


def test_polishing_closes_the_gap_to_the_simultaneous_optimum():
    rng = np.random.default_rng(7)
    robot = load_robot('tx40')
    experiment = recorded(spoiled(robot, rng, 0.2), robot.nominal, rng, noise=0.1).experiment
    best = Feasible(prior_weight=1e-2).fit(experiment)
    gaps = [SequentialFeasible(prior_weight=1e-2, sweeps=sweeps).fit(experiment)
            .objective / best.objective - 1.0 for sweeps in (0, 1, 20)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert -SOLVER < gaps[2] < POLISHED
    assert best.certificate.gap < SAME_OPTIMUM


def test_entropic_and_euclidean_priors_agree_near_the_nominal_robot():
    rng = np.random.default_rng(8)
    robot = load_robot('planar_3r')
    experiment = recorded(robot, robot.nominal, rng).experiment
    tasks = [Task.of(experiment, prior, Bounds()) for prior in ('entropic', 'euclidean')]
    centre = tasks[0].feasible.whitening.centre
    step = 1e-4 * rng.normal(size=len(centre))
    entropic, euclidean = (task.prior_value(centre + step) for task in tasks)
    assert entropic == pytest.approx(euclidean, rel=1e-2)
    assert [task.prior_value(centre) for task in tasks] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_stronger_prior_is_nearer_to_the_nominal_robot():
    rng = np.random.default_rng(9)
    robot = load_robot('ur10e')
    guess = spoiled(robot, rng, 0.3)
    experiment = recorded(guess, robot.nominal, rng, noise=0.1).experiment
    found = [Feasible(prior_weight=weight).fit(experiment) for weight in (1e-4, 1e-2, 1e4)]
    distance = [np.abs(f.standard[:60] - guess.nominal.ravel()).sum() for f in found]
    rise = [f.certificate.rise_of_residual for f in found]
    assert distance[0] > distance[1] > distance[2]
    assert rise[0] < rise[1] < rise[2]
    assert found[2].standard[:60] == pytest.approx(guess.nominal.ravel(), rel=0.05, abs=1e-2)


@pytest.mark.parametrize('broken', ['zero', 'negative', 'thin'])
def test_nominal_body_that_cannot_be_is_moved_and_named(broken):
    rng = np.random.default_rng(10)
    robot = load_robot('planar_3r')
    nominal = robot.nominal.copy()
    nominal[1] = {'zero': 0.0 * nominal[1], 'negative': -nominal[1], 'thin': np.concatenate(
        [nominal[1, :4], [0.0, 0.0, 0.0, 0.0, 0.0, nominal[1, 9]]])}[broken]
    data = recorded(robot.with_nominal(nominal), robot.nominal, rng, noise=0.02)
    estimate = Feasible().fit(data.experiment)
    [warning] = estimate.warnings
    said = 'is stated for {}:' if broken == 'zero' else 'of {} is not that of a body'
    assert f'nominal inertia {said}'.format(robot.bodies[1]) in warning
    assert_real(data.model, estimate, rng)


def slow_recording(rng):
    """Return slow motion of an arm whose friction falls as soon as it moves."""
    robot = load_robot('ur10e')
    law = {'width': 0.005, 'breakaway': {'speed': 0.005}}
    model = Structure.uniform(robot, True, 'coulomb+breakaway', law).torque_model(robot)
    truth = truth_of(model, robot.nominal, rng)
    samples = motion(robot, 600, rng)
    samples = replace(samples, velocity=0.01 * samples.velocity)
    clean = model.effort(samples, model.reduction.base(truth))
    effort = clean + 0.02 * np.sqrt(np.mean(clean**2, axis=0)) * rng.normal(size=clean.shape)
    return Experiment.of(replace(model, robot=spoiled(robot, rng, 0.1)), [
        replace(samples, effort=effort, measured=effort)])


@pytest.mark.parametrize('method', METHODS)
def test_friction_that_only_slow_motion_shows_is_fitted(method):
    rng = np.random.default_rng(17)
    experiment = slow_recording(rng)
    estimate = ESTIMATORS[method].fit(experiment)
    assert_real(experiment.model, estimate, rng)
    plain = LeastSquares().fit(experiment)
    assert np.all(estimate.noise < (1.0 + MAX_RISE) * plain.noise)
    assert not any('residuals are above' in text for text in estimate.warnings)
    friction = dict(zip(estimate.certificate.prior_share, estimate.standard, strict=True))
    assert all(0.05 < friction[f'fb{j}'] < 0.6 for j in (4, 5, 6))


def test_prior_that_decides_over_the_data_is_named():
    data = recorded(spoiled(load_robot('planar_3r'), np.random.default_rng(18), 0.3),
                    load_robot('planar_3r').nominal, np.random.default_rng(18), noise=0.01)
    heavy = Feasible(prior_weight=1e3).fit(data.experiment)
    assert any('residuals are above those of least squares by [%]: joint_1' in text
               and 'prior of weight 1000 causes it' in text for text in heavy.warnings)
    chosen = Feasible().fit(data.experiment)
    assert np.all(chosen.noise < (1.0 + MAX_RISE) * LeastSquares().fit(data.experiment).noise)


@pytest.mark.parametrize('method', METHODS)
def test_constraints_that_cost_much_are_named(method):
    rng = np.random.default_rng(19)
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, rng, noise=0.01)
    lossy = data.truth.copy()
    lossy[data.model.reduction.standard.index('fv2')] = -3.0  # friction that drives
    effort = data.samples.effort + data.model.effort(
        data.samples, data.model.reduction.base(lossy - data.truth))
    estimate = ESTIMATORS[method].fit(Experiment.of(data.model, [
        replace(data.samples, effort=effort, measured=effort)]))
    told = next(text for text in estimate.warnings if 'residuals are above' in text)
    assert all(text in told for text in (
        'joint_2', 'physical consistency requires it', 'fv2 at zero'))


def test_deviations_are_those_of_the_feasible_fit():
    data = recorded(spoiled(load_robot('planar_3r'), np.random.default_rng(20), 0.3),
                    load_robot('planar_3r').nominal, np.random.default_rng(20), noise=0.01)
    loose, firm = LeastSquares().fit(data.experiment), Feasible(prior_weight=1e4).fit(
        data.experiment)
    assert np.all(firm.noise > 2.0 * loose.noise)  # the prior decides: the fit is a bad one
    assert np.median(firm.std / loose.std) > 1.5


@pytest.mark.parametrize('method', METHODS)
def test_stalled_solver_is_never_silent(method, monkeypatch):
    rng = np.random.default_rng(11)
    robot = load_robot('planar_3r')
    data = recorded(spoiled(robot, rng, 0.1), robot.nominal, rng, noise=0.05)
    experiment = data.experiment
    monkeypatch.setattr(conic, 'MAX_ITERATIONS', 2)
    estimate = ESTIMATORS[method].fit(experiment)
    assert estimate.status is Status.NOT_SOLVED
    assert any('conic solver' in warning for warning in estimate.warnings)
    assert_real(data.model, estimate, rng)


@pytest.mark.parametrize('weight', [0.0, 1e-300, 1e-9])
def test_a_vanishing_weight_of_the_prior_is_the_smallest(weight):
    rng = np.random.default_rng(13)
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, rng, noise=0.05)
    found = Feasible(prior_weight=weight).fit(data.experiment)
    assert found.status.name in ('OK', 'NOT_EXCITED'), found.status
    assert np.isfinite(found.values).all()


def test_wrong_settings_of_feasible_estimators_are_refused():
    with pytest.raises(UsageError, match="prior 'flat': choose one of entropic, euclidean"):
        Feasible(prior='flat')
    with pytest.raises(UsageError, match='prior_weight must be at least 0, is -1'):
        Feasible(prior_weight=-1.0)
    with pytest.raises(UsageError, match='sweeps must be at least 0'):
        SequentialFeasible(sweeps=-1)


def test_heavier_robot_of_the_same_shape_has_the_same_dimensionless_answer():
    robot = load_robot('planar_3r')
    guess = spoiled(robot, np.random.default_rng(14), 0.1)
    found = []
    for mass in (1.0, 50.0):
        model = torque_model(guess.with_nominal(mass * guess.nominal))
        truth = mass * np.concatenate([robot.nominal.ravel(), np.full(
            len(model.reduction.standard) - 30, 0.2)])
        rng = np.random.default_rng(15)
        samples = motion(robot, 600, rng)
        clean = model.effort(samples, model.reduction.base(truth))
        effort = clean + 0.05 * np.sqrt(np.mean(clean**2, axis=0)) * rng.normal(size=clean.shape)
        experiment = Experiment.of(model, [replace(samples, effort=effort, measured=effort)])
        estimate = Feasible(prior_weight=1e-2).fit(experiment)
        found.append(estimate.standard / mass)
    assert found[1] == pytest.approx(found[0], rel=SAME_ROBOT, abs=SAME_ROBOT)


@pytest.mark.parametrize('prior', PRIORS)
def test_minimise_bounds_eigenvalues_when_the_optimum_is_not_physical(prior):
    rng = np.random.default_rng(16)
    robot = load_robot('planar_3r')
    experiment = recorded(robot, robot.nominal, rng, count=300).experiment
    task = Task.of(experiment, prior, Bounds())
    whitening = task.feasible.whitening
    wanted = whitening.centre.copy()
    wanted[whitening.bodies] *= -1.0
    found = task.whole.minimise(np.eye(len(wanted)), wanted, 1e-6)
    assert found.usable and task.feasible.holds(found.values)
    least = whitening.least(found.values)
    assert np.all(least >= LEAST_EIGENVALUE) and LEAST_EIGENVALUE > 0.0
    if prior == 'euclidean':  # nothing but the cone keeps it up
        assert least == pytest.approx(np.full(robot.n, ASKED), abs=BOUND_SLACK)
        assert active_constraints(task.feasible, found.values)[:3] == tuple(
            f'inertia of {body} at its minimum' for body in robot.bodies)
