"""estimation/uncertainty/held_out.py: the test of [H tau]: nothing outside without noise, the
noise itself with it."""

from __future__ import annotations

import numpy as np
import pytest
from motions import torque_model
from single_joint_recordings import planned, truth_of, with_effort

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.held_out import consistency, surely_lower
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

NOISE = 0.05


def outside(noise):
    """Return the consistency of a recording, and the noise as a share of its effort."""
    model = torque_model(load_robot('planar_3r'))
    states, truth = planned(model), truth_of(model)
    samples = with_effort(model, states, truth, noise)
    information = Experiment.of(model, [samples]).information
    largest = np.abs(model.effort(states, truth)).max(axis=0)
    return consistency(information), noise * largest / information.size()


def test_noise_free_effort_does_not_raise_the_rank():
    found, _ = outside(0.0)
    assert not found.raised
    assert found.warnings(('a', 'b', 'c')) == []


def test_the_share_outside_is_that_of_the_noise():
    found, share = outside(NOISE)
    assert found.raised
    assert found.outside == pytest.approx(share, rel=0.05)
    assert found.warnings(('a', 'b', 'c')) == []


def test_a_joint_with_much_noise_is_named():
    found, _ = outside(1.0)
    assert 'joint b: ' in ' '.join(found.warnings(('a', 'b', 'c')))
    assert 'rank [H tau] exceeds rank H' in found.warnings(('a', 'b', 'c'))[0]


@pytest.mark.parametrize(('missing', 'joints'), [(0.0, []), (40.0, ['b'])])
def test_joints_that_move_in_turn_are_tested_while_they_move(missing, joints):
    """A spring about joint b that no parameter has; noise of resting joints says nothing."""
    model = torque_model(load_robot('planar_3r'))
    states = planned(model)
    samples = with_effort(model, states, truth_of(model, 0.2), 1e-3)
    effort = samples.effort.copy()
    effort[:, 1] += missing * np.sin(9.0 * samples.position[:, 1])
    log = RawLog('run', model.robot.joints, samples.time, samples.position, effort=effort)
    warnings = identify(model.robot, [log], 'staged', Recipe(
        cutoff=20.0, ramp_width=0.05, effort_lag=0.0)).warnings
    named = [one.split(':')[0] for one in warnings if 'rank [H tau] exceeds rank H' in one]
    assert named == [f'joint {model.robot.joints[1]}' for _ in joints]


def test_errors_are_surely_lower_by_the_ranks_of_their_gains() -> None:
    """One-sided: of ten gains all above zero, chance makes one in 2^10."""
    rng = np.random.default_rng(0)
    errors = rng.uniform(1.0, 2.0, 10)
    better = errors - rng.uniform(0.1, 0.2, 10)
    assert surely_lower(better, errors, 1.0 - 1.01 / 2**10)
    assert not surely_lower(better, errors, 1.0 - 0.99 / 2**10)
    assert not surely_lower(errors, better, 0.5)
    assert not surely_lower(errors, errors, 0.5)
    once = np.where(np.arange(10) == 3, errors + 5.0, better)  # worse on average
    assert not surely_lower(once, errors, 0.5)
