"""Judging excitations by the base regressor of a robot and by predicted efforts."""

import numpy as np
import pytest

from robot_dynid.errors import Cancelled
from robot_dynid.excitation.design import design, parse_request
from robot_dynid.excitation.fourier import FourierOptions, random_fourier
from robot_dynid.excitation.judge import robot_judge
from robot_dynid.excitation.limits import motion_limits
from robot_dynid.model.dynamics import gravity_effort
from robot_dynid.model.robot_file import load_robot
from robot_dynid.reduction import reduce_numeric
from robot_dynid.reduction.numeric import full_regressor
from robot_dynid.regressor import RigidLinks
from robot_dynid.types import Samples


@pytest.mark.parametrize('name', ['planar_3r', 'ur10e', 'tx40', 'stanford_arm'])
def test_score_is_that_of_the_base_regressor(name):
    robot = load_robot(name)
    blocks = (RigidLinks(robot),)
    fourier = random_fourier(motion_limits(robot).scaled(0.5), FourierOptions(10.0, 4),
                             np.random.default_rng(2))
    motion = fourier.sample(np.linspace(0.0, 10.0, 300))
    score = robot_judge(robot, blocks=blocks).score(motion)
    samples = Samples(robot.joints, np.arange(300.0), motion.position, motion.velocity,
                      motion.acceleration)
    kept = reduce_numeric(robot, blocks).kept
    tall = full_regressor(robot, blocks, samples)[:, kept].transpose(0, 2, 1)
    tall = tall.reshape(-1, len(kept))
    assert score.condition_number == pytest.approx(
        np.linalg.cond(tall / np.linalg.norm(tall, axis=0)), rel=1e-6)
    assert score.log_det == pytest.approx(np.linalg.slogdet(tall.T @ tall)[1], abs=1e-6)


def test_more_draws_are_better_and_the_seed_decides():
    robot = load_robot('ur10e')
    judge = robot_judge(robot)
    numbers = [design(robot, parse_request('', {'starts': draws, 'duration': 10}), judge)
               .score.condition_number for draws in (1, 10, 40)]
    assert numbers[0] >= numbers[1] >= numbers[2] and numbers[0] > numbers[2]
    again = design(robot, parse_request('', {'starts': 40, 'duration': 10}), judge)
    assert again.score.condition_number == numbers[2]


def test_predicted_efforts_are_those_of_the_nominal_inertials():
    robot = load_robot('ur10e')
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, robot.n))
    still = np.zeros_like(q)
    assert np.allclose(robot_judge(robot).inverse(q, still, still), gravity_effort(robot, q))
    unknown = robot.with_nominal(np.zeros((robot.n, 10)))
    assert robot_judge(unknown).inverse is None
    result = design(unknown, parse_request('', {'starts': 1}), robot_judge(unknown))
    assert any('efforts were not predicted' in warning for warning in result.warnings)


def test_a_design_can_be_stopped():
    def progress(stage, fraction):
        if fraction > 0.2:
            raise Cancelled('enough')

    robot = load_robot('planar_3r')
    with pytest.raises(Cancelled):
        design(robot, parse_request('', {}), robot_judge(robot, progress))
