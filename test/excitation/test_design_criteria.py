"""Judging excitations by the base regressor of a robot and by predicted efforts."""

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.effects import RigidLinks
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.search.observation import PARTS, PartOfLinks, part_observations
from robot_dynid.reduction import reduce_numeric
from robot_dynid.reduction.numeric import full_regressor, random_states
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import Samples


@pytest.mark.parametrize('name', ['planar_3r', 'ur10e', 'tx40', 'stanford_arm'])
def test_score_is_that_of_the_weighted_base_regressor(name):
    robot = load_robot(name)
    blocks = (RigidLinks(robot),)
    fourier = random_fourier(motion_limits(robot).scaled(0.5), FourierOptions(10.0, 4),
                             np.random.default_rng(2))
    noise = 1.0 + np.arange(robot.n)
    score = design_criteria(robot, blocks=blocks, noise=noise).score(fourier)
    motion = fourier.sample(np.linspace(0.0, 10.0, 400))
    samples = Samples(robot.joints, np.arange(400.0), motion.position, motion.velocity,
                      motion.acceleration)
    reduction = reduce_numeric(robot, blocks)
    tall = full_regressor(robot, blocks, samples)[:, reduction.pivots] / noise[:, None, None]
    tall = tall.transpose(0, 2, 1).reshape(-1, len(reduction.pivots))
    assert score.condition_number == pytest.approx(
        np.linalg.cond(tall / np.linalg.norm(tall, axis=0)), rel=1e-6)
    information = 100.0 * 10.0 / 400.0 * tall.T @ tall
    assert score.log_det == pytest.approx(np.linalg.slogdet(information)[1], abs=1e-6)


@pytest.mark.parametrize('name', ['tx40', 'seven_axis'])
def test_predicted_deviations_are_those_of_least_squares(name):
    """Efforts of many noisy executions, fitted: the spread of the parameter least known."""
    robot = load_robot(name)
    criteria = design_criteria(robot)
    fourier = random_fourier(motion_limits(robot).scaled(0.9), FourierOptions(20.0, 5),
                             np.random.default_rng(2))
    score, scorer = criteria.score(fourier), criteria.score
    rows = scorer.observation.rows(fourier.sample(np.linspace(0.0, 20.0, 2000)))
    q, r = np.linalg.qr(rows)
    worst = scorer.names.index(score.least_known)
    noise = np.random.default_rng(0).standard_normal((len(rows), 400))
    found = np.linalg.solve(r, q.T @ noise)[worst] / scorer.sizes[worst]
    assert np.std(found) == pytest.approx(score.largest_deviation, rel=0.1)


def test_parts_add_up_to_the_links():
    """Acceleration, velocity and position terms, with the columns that each of them has."""
    robot = load_robot('tx40')
    states = random_states(robot, 20, np.random.default_rng(1))
    chosen = np.arange(10 * robot.n)
    found = []
    for block in (RigidLinks(robot), *(PartOfLinks.of(robot, name) for name in PARTS)):
        out = np.zeros((robot.n, len(chosen), len(states)))
        block.fill(states, block.history(states), chosen, out)
        found.append(out)
    assert sum(found[1:]) == pytest.approx(found[0], abs=1e-9)
    parts = part_observations(robot, np.ones(robot.n))
    assert parts['position'].size < parts['velocity'].size <= parts['acceleration'].size


def test_predicted_efforts_are_those_of_the_nominal_inertials():
    robot = load_robot('ur10e')
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, robot.n))
    still = np.zeros_like(q)
    assert np.allclose(design_criteria(robot).inverse(q, still, still), gravity_effort(robot, q))
    doubled = design_criteria(robot, links=2.0 * robot.nominal).inverse(q, still, still)
    assert np.allclose(doubled, 2.0 * gravity_effort(robot, q))
    unknown = robot.with_nominal(np.zeros((robot.n, 10)))
    criteria = design_criteria(unknown)
    assert criteria.inverse is None
    result = design(unknown, parse_request('', {'starts': 1, 'harmonics': 2}), criteria)
    assert any('efforts were not predicted' in warning for warning in result.warnings)
    assert result.score.largest_deviation is None
    with pytest.raises(DynIdError, match='omit it, or give the links inertials'):
        design(
            unknown, parse_request('', {'starts': 1, 'harmonics': 2, 'accuracy': 0.1}), criteria
        )
    with pytest.raises(DynIdError, match="objective 'precision' is relative to nominal"):
        design(unknown, parse_request('', {'objective': 'precision'}), criteria)


def test_links_in_other_units_predict_no_efforts():
    """With them no motion keeps the effort limits, which says nothing of the motion."""
    robot = load_robot('planar_3r')
    nominal = robot.nominal.copy()
    nominal[1, 4:] *= 1e6
    criteria = design_criteria(robot.with_nominal(nominal))
    assert criteria.inverse is None
    assert [text for text in criteria.warnings if 'inertia looks like kg mm^2' in text]
    assert design_criteria(robot.with_nominal(nominal), links=robot.nominal).inverse is not None


def test_noise_is_a_hundredth_of_the_effort_limits_if_all_are_known():
    robot = load_robot('planar_3r')
    criteria = design_criteria(robot)
    np.testing.assert_allclose(criteria.noise, 0.01 * robot.limits.effort)
    assert criteria.warnings == ()
    effort = np.where(np.arange(3) == 1, np.nan, robot.limits.effort)
    unknown = replace(robot, limits=replace(robot.limits, effort=effort))
    equal = design_criteria(unknown)
    assert equal.noise.tolist() == [1.0, 1.0, 1.0]
    assert equal.warnings == (
        'all joints have equal weight, because not all effort limits are known',)
    assert design_criteria(unknown, noise=0.5).warnings == ()
    assert design_criteria(unknown, noise=0.5).noise.tolist() == [0.5] * 3


def test_friction_ramps_of_the_search_are_a_twentieth_of_the_speed_limits():
    robot = load_robot('planar_3r')
    speeds = np.array([2.0, np.nan, 3.5])
    robot = replace(robot, limits=replace(robot.limits, velocity=speeds))
    still = np.zeros((2, 3))
    measured = design_criteria(robot).objective('log-det', Motion(still, still, still, still), 7.0)
    assert measured.samples == 700.0
    np.testing.assert_allclose(measured.observation.blocks[-1].widths, [0.1, 0.05, 0.175])


def test_sizes_of_parameters_are_nominal_or_what_the_noise_shows():
    """A parameter whose effort is below the noise needs no relative accuracy."""
    robot = load_robot('planar_3r')
    criteria = design_criteria(robot, noise=[0.1, 0.2, 0.3])
    model = criteria.model
    standard = np.zeros(len(model.reduction.standard))
    standard[:30] = np.ravel(robot.nominal)
    least = 1.0 / np.max(model.moderate_effort / np.array([[0.1], [0.2], [0.3]]), axis=0)
    expected = np.maximum(np.abs(model.reduction.base(standard)), least)
    np.testing.assert_allclose(criteria.sizes, expected)
    assert np.any(expected == least) and np.any(expected > least)
    doubled = design_criteria(robot, noise=[0.1, 0.2, 0.3], links=2.0 * robot.nominal)
    assert np.all(doubled.sizes >= criteria.sizes)
