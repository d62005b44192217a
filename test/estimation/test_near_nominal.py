"""Fits drawn to the nominal links: between those and least squares, and never worse than both."""

from __future__ import annotations

import numpy as np
import pytest
from chains import random_chain
from feasible_recordings import moved, recorded

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.near_nominal import (
    NOISE,
    PULLS,
    NearNominal,
    best_held_out,
    by_fold,
    worse_than_nominal,
)
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.identify import control_parameters


def experiment(count: int, off: float = 0.0, noise: float = 0.3) -> Experiment:
    """Return a recording of a chain whose links are ``off`` their description."""
    rng = np.random.default_rng(3)
    robot = random_chain(rng, 4)
    links = [moved(body, rng, off) for body in robot.nominal]
    return recorded(robot, links, rng, noise, count=count).experiment


def test_the_ends_are_nominal_links_with_fitted_friction_and_least_squares() -> None:
    data = experiment(600, 0.2)
    values = NearNominal.of(data).values(data.information)
    control = control_parameters(data.model, data.information)
    free = solve(data.information, joint_weights(data.information)).values
    assert values[0] == pytest.approx(control, rel=1e-6, abs=1e-6 * np.abs(control).max())
    assert np.array_equal(values[-1], free)
    assert len(values) == len(PULLS)


def test_the_best_is_hardly_worse_than_either_of_them() -> None:
    data = experiment(300, 0.1)
    errors = best_held_out(data).mean(axis=0)
    information = by_fold(data.information)
    nominal = held_out(information, fit=lambda own: control_parameters(
        data.model, information.subset(own)))
    for other in (nominal, held_out(information)):
        assert ((1.0 - NOISE)**2 * errors <= 1.0001 * other.folds.mean(axis=0)).all()


def test_noise_that_least_squares_learn_is_told_by_joint() -> None:
    """Of short recordings, where the description is right; not of long or other ones."""
    worse = worse_than_nominal(experiment(120))
    assert worse
    assert all(nominal < 0.9 * free for free, nominal in worse.values())
    assert not worse_than_nominal(experiment(3000))
    assert not worse_than_nominal(experiment(600, 0.3, 0.05))
