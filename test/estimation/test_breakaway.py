"""Friction at rest from simulated motions, where encoders do not tell slow motion from rest."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from robot_dynid.estimation.errors_in_variables import breakaway
from robot_dynid.estimation.errors_in_variables.latent_motion import (
    NOTHING,
    LatentProblem,
    LatentState,
)
from robot_dynid.estimation.errors_in_variables.recorded_stretches import stretches_of
from robot_dynid.estimation.errors_in_variables.simulated_motion import SimulatedMotion
from robot_dynid.regressor import axes_of
from robot_dynid.signals.prepare import repair
from robot_dynid.signals.unfiltered import AsRecorded, unfiltered
from robot_dynid_evaluation.papers import elastic_joints as paper
from robot_dynid_evaluation.papers import elastic_joints_arm as simulated

#: noise of the encoders [rad], that of 50 dB
NOISE = 1e-3


@cache
def arm_and_motion() -> tuple[simulated.ElasticArm, simulated.Motion]:
    """Return the arm of the paper and two seconds of its motion, the last third calm."""
    count, simulated.COUNT = simulated.COUNT, 2000
    try:
        arm = replace(simulated.planar(), knots=8)
        return arm, simulated.record(arm, lambda stage, share: None)
    finally:
        simulated.COUNT = count


@cache
def problem_and_truth() -> tuple[LatentProblem, LatentState]:
    """Return the problem with the law that was simulated, and the true parameters."""
    arm, motion = arm_and_motion()
    noise = NOISE * np.random.default_rng(0).standard_normal(motion.position.shape)
    repaired = repair(arm.robot, replace(motion, position=motion.position + noise).seen(arm))
    cut = stretches_of(AsRecorded(lambda: iter([unfiltered(arm.robot, repaired, 0.0)]),
                                  lambda stage, share: None))
    assert np.all(cut.slowest(axes_of(arm.robot).matrix) > arm.fallen)
    model = paper.model_of(arm, 'coulomb+levelling', {
        'width': simulated.CREEP, 'levelling': {'speed': arm.fallen}})
    problem = LatentProblem(model, cut.stretches, np.ones(len(model.reduction.names), dtype=bool))
    return problem, replace(problem.guess(values=arm.base(model)), shapes=NOTHING)


def test_simulations_of_the_truth_leave_the_noise() -> None:
    """A state per piece is fitted; the parameters are those that were simulated."""
    problem, truth = problem_and_truth()
    known = SimulatedMotion(problem.with_known_parameters, truth.values)
    _, cost = known.fit(truth)
    samples = sum(4 * len(one.time) for one in problem.stretches)
    assert cost / samples == pytest.approx(0.5, rel=0.1)


def test_friction_at_rest_is_found_where_no_equation_shows_it() -> None:
    """From friction that does not fall: static friction, all else kept."""
    arm, _ = arm_and_motion()
    problem, truth = problem_and_truth()
    names = problem.model.reduction.names
    start = truth.values.copy()
    for label, moving in zip('12', arm.truth.coulomb, strict=True):
        start[names.index(f'fc{label}')], start[names.index(f'fl{label}')] = moving, 0.0
    own = replace(problem, chosen=breakaway.friction_of(problem.model))
    fits = [SimulatedMotion(own, start).fit(one)
            for one in breakaway.starts_of(problem, replace(truth, values=start))]
    found, _ = min(fits, key=lambda one: one[1])
    for j, static in enumerate(arm.static):
        ours = found.values[names.index(f'fc{j + 1}')]
        assert ours == pytest.approx(static, rel=0.2)
    other = ~own.chosen
    np.testing.assert_array_equal(found.values[other], start[other])
