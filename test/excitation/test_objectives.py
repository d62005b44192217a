"""excitation/search/objective.py: objectives of excitation designs: exact gradients, and what they
mean."""

import numpy as np
import pytest
from random_robots import random_urdf
from tolerances import SAME_FORMULA

from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.score import condition_of, log_det_of, triangle_of
from robot_dynid.excitation.search.basis import FourierBasis, motion_of
from robot_dynid.excitation.search.constraints import EffortLimits
from robot_dynid.excitation.search.objective import (
    NAMES,
    log_condition,
    log_largest_deviation,
    log_mean_deviation,
)
from robot_dynid.excitation.search.optimise import Problem
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.trajectories.fourier import FourierOptions
from robot_dynid.trajectories.limits import MotionLimits

STEP = 1e-5
# Central difference with a step of 1e-5 of the logarithms, whose third derivatives reach 1e4.
SLOPE = 1e-5


def robots():
    """A wrist with a coupled motor, a prismatic joint, a random tree."""
    return {'tx40': load_robot('tx40'), 'stanford_arm': load_robot('stanford_arm'),
            'tree': robot_from_urdf(random_urdf(np.random.default_rng(5), 5, 0.5))}


def wide(robot):
    ones = np.ones(robot.n)
    return MotionLimits(robot.joints, -2.0 * ones, 1.5 * ones, 3.0 * ones, 9.0 * ones,
                        np.nan * ones, 1e4 * ones)


def problem_of(robot, name, limits):
    criteria = design_criteria(robot)
    basis = FourierBasis(robot.joints, FourierOptions(7.0, 3))
    start = basis.random(limits, np.random.default_rng(1))
    typical = motion_of(basis.matrices(np.linspace(0.0, 7.0, 100)), start)
    effort = EffortLimits(criteria.inverse, robot.joints, limits.effort)
    return Problem(basis, limits, criteria.objective(name, typical, 7.0), (effort,)), start


def differs(function, place, way):
    ahead, behind = (function(place + sign * STEP * way)[0] for sign in (1.0, -1.0))
    return (ahead - behind) / (2.0 * STEP)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('which', ['tx40', 'stanford_arm', 'tree'])
def test_gradients_in_the_coefficients_are_exact(which, name):
    robot = robots()[which]
    problem, start = problem_of(robot, name, wide(robot))
    rng = np.random.default_rng(2)
    for function in (problem.value, problem.constraint_barrier):
        slope = function(start)[1]
        for _ in range(3):
            way = rng.normal(size=start.shape)
            assert differs(function, start, way) == pytest.approx(
                np.sum(slope * way), abs=SLOPE * np.linalg.norm(slope) * np.linalg.norm(way))


def test_gradient_and_hessian_of_the_limits():
    robot = load_robot('stanford_arm')
    problem, start = problem_of(robot, 'log-det', wide(robot))
    start, way = 0.7 * start, np.random.default_rng(3).normal(size=start.shape)
    slope, hessian = problem.barrier.slopes(start)
    ahead, behind = (problem.barrier.slopes(start + sign * STEP * way)[0] for sign in (1.0, -1.0))
    assert (ahead - behind) / (2.0 * STEP) == pytest.approx(
        np.einsum('jpq,jq->jp', hessian, way), rel=1e-5)
    values = [problem.barrier.value(start + sign * STEP * way) for sign in (1.0, -1.0)]
    assert (values[0] - values[1]) / (2.0 * STEP) == pytest.approx(np.sum(slope * way), rel=1e-6)
    far = problem.barrier.longest(start, way)
    assert np.isfinite(problem.barrier.value(start + 0.999 * far * way))
    assert problem.barrier.value(start + 1.001 * far * way) == np.inf


def test_measures_of_information():
    """Condition from above by the p-norm; the deviations are those of the inverse."""
    rows = np.random.default_rng(0).normal(size=(90, 6)) * [1.0, 20.0, 0.1, 3.0, 5.0, 1e2]
    information, factor = rows.T @ rows, triangle_of(rows)
    exact = np.log(condition_of(factor))
    assert exact <= log_condition(information)[0] <= exact + np.log(6.0) / 8.0
    assert log_mean_deviation(information)[0] == pytest.approx(-log_det_of(factor) / 12.0)
    sizes = np.arange(1.0, 7.0)
    deviation = np.log(np.max(np.sqrt(np.diag(np.linalg.inv(information))) / sizes))
    found = log_largest_deviation(information, sizes)[0]
    assert deviation <= found <= deviation + np.log(6.0) / 16.0


def test_measures_of_what_cannot_be_told_apart():
    """Values are large, and gradients say what would tell them apart."""
    rows = np.random.default_rng(0).normal(size=(90, 4))
    twice = np.hstack([rows[:, :3], rows[:, :1]])
    for measure, rise in ((log_mean_deviation, 3.0), (log_condition, 10.0)):
        value, slope = measure(twice.T @ twice)
        assert value > measure(rows.T @ rows)[0] + rise
        assert np.isfinite(slope).all()
        assert np.sum(slope * (rows.T @ rows - twice.T @ twice)) < -1.0


def test_blocks_are_weighted_by_the_variance_of_their_columns():
    """Equation 14 of the source, for the motion the search starts from and for another one."""
    robot = load_robot('stanford_arm')
    basis = FourierBasis(robot.joints, FourierOptions(7.0, 3))
    times = basis.matrices(np.linspace(0.0, 7.0, 100))
    motions = [motion_of(times, basis.random(wide(robot), np.random.default_rng(seed)))
               for seed in (1, 2)]
    blocks = design_criteria(robot).objective('blocks', motions[0], 7.0)
    observations = [one.observation for one in blocks.objectives]
    weights = [np.mean(np.mean(rows**2, axis=0) - np.mean(rows, axis=0)**2) for rows in (
        part.rows(motions[0]) for part in observations[1:])]
    assert len(weights) == 3 and max(weights) > 2.0 * min(weights)
    for motion in motions:
        whole, *parts = (np.exp(log_condition(o.information(o.columns(motion)))[0])
                         for o in observations)
        expected = np.log(whole + np.dot(weights, parts) / np.sum(weights))
        value, _ = blocks(motion)
        assert value == pytest.approx(expected, rel=SAME_FORMULA)
