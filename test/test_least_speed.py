"""What sticks near zero speed can be left out of the fit, joint by joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_recordings import recording

from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.experiment import Experiment
from robot_dynid.identified.identify import identify
from robot_dynid.identified.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.model.robot_file import load_robot
from robot_dynid.types import Samples

SLOW = 0.2


def sticking(seed: int = 0) -> tuple[Samples, Samples]:
    """Return samples of a law of the speed, and the same with sticking joints where slow."""
    rng = np.random.default_rng(seed)
    robot = load_robot('planar_3r')
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 2000, 3))
    model = Structure.uniform(robot, True, 'coulomb', {'width': 1e-3}).torque_model(robot)
    samples = Samples(robot.joints, np.arange(2000) * 0.01, q, qd, qdd)
    effort = model.effort(samples, rng.uniform(0.5, 2.0, len(model.reduction.kept)))
    stuck = np.where(np.abs(qd) < SLOW, effort + rng.uniform(0.0, 3.0, effort.shape), effort)
    return (replace(samples, effort=effort, measured=effort),
            replace(samples, effort=stuck, measured=stuck))


def test_fit_without_slow_samples_is_exact() -> None:
    robot = load_robot('planar_3r')
    model = Structure.uniform(robot, True, 'coulomb', {'width': 1e-3}).torque_model(robot)
    clean, stuck = sticking()
    fit = ESTIMATORS['wls'].fit
    true = fit(Experiment.of(model, [clean])).values
    biased = fit(Experiment.of(model, [stuck])).values
    without = fit(Experiment.of(model, [stuck], SLOW)).values
    assert np.abs(biased - true).max() > 0.05
    np.testing.assert_allclose(without, true, atol=1e-8)


def test_recipe_decides_and_the_model_remembers() -> None:
    robot = load_robot('planar_3r')
    log = recording(robot, 1)
    slow = identify(robot, [log], recipe=Recipe(least_speed=0.05)).model
    assert slow.preprocessing.least_speed == 0.05
    assert identify(robot, [log]).model.preprocessing.least_speed == 0.0
    with pytest.raises(UsageError, match='least_speed'):
        Recipe(least_speed=-1.0)
