"""Friction below zero is never reported: a passive axis has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import recording

from robot_dynid import load_robot
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.passive_friction import bound_friction
from robot_dynid.friction import law_from
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import RawLog

ROBOT = load_robot('planar_3r')
#: friction of the last joint rises over this speed [rad/s] from rest, by so much [N m]
SPEED, RISE = 0.05, 1.0
RECIPE = Recipe(cutoff=10.0, effort_lag=0.0, ripple='none', adaptation='none',
                friction='coulomb+breakaway')


def rising() -> RawLog:
    """Return a recording whose friction in motion is above that at rest: no break-away."""
    log = recording(ROBOT, 1, 10.0)
    assert log.velocity is not None and log.effort is not None
    v, effort = log.velocity[:, 2], log.effort.copy()
    effort[:, 2] += RISE * np.tanh(np.abs(v) / SPEED) * np.sign(v)
    return replace(log, effort=effort)


@pytest.fixture(scope='module')
def data() -> Experiment:
    law = {'width': 0.01, 'breakaway': {'speed': SPEED}}
    model = Structure.uniform(ROBOT, True, 'coulomb+breakaway', law).torque_model(ROBOT)
    return Experiment.of(model, [prepare(ROBOT, repair(ROBOT, rising()), Preprocessing(10.0))])


def test_a_break_away_below_zero_is_none(data: Experiment) -> None:
    free = ESTIMATORS['wls'].fit(data)
    place = free.names.index('fb3')
    assert free.values[place] < -0.5 * RISE
    found = bound_friction(free, data)
    assert found.values[place] == 0.0
    names = [name for block in data.model.blocks for name in block.nonnegative
             if name.startswith('f')]
    assert all(found.values[found.names.index(name)] >= 0.0 for name in names)
    (warning,) = set(found.warnings) - set(free.warnings)
    assert f'fb3 ({free.values[place]:.3g} +- ' in warning
    assert found.values[found.names.index('fc3')] < free.values[free.names.index('fc3')]


def test_bounded_friction_leaves_the_other_parameters_to_least_squares(data: Experiment) -> None:
    """The active bounds are those of the solution, so leaving their columns out is the same."""
    found = bound_friction(ESTIMATORS['wls'].fit(data), data)
    bound = found.values == 0.0
    from robot_dynid.estimation.least_squares import joint_weights, weighted_factor

    tall = weighted_factor(data.information, joint_weights(data.information))
    expected = np.linalg.lstsq(tall[:, :-1][:, ~bound], tall[:, -1], rcond=1e-12)[0]
    np.testing.assert_allclose(found.values[~bound], expected, rtol=1e-3, atol=1e-3)


def test_friction_above_zero_stays_as_it_is(data: Experiment) -> None:
    model = Structure.uniform(ROBOT, True, 'coulomb', {'width': 0.01}).torque_model(ROBOT)
    whole = Experiment.of(model, [prepare(ROBOT, repair(ROBOT, recording(ROBOT, 1, 10.0)),
                                          Preprocessing(10.0))])
    estimate = ESTIMATORS['wls'].fit(whole)
    assert bound_friction(estimate, whole) is estimate


def test_models_report_no_breakaway_friction_below_zero() -> None:
    model = identify(ROBOT, [rising()], recipe=RECIPE).model
    values = dict(zip(model.names, model.values.tolist(), strict=True))
    assert [name for name, value in values.items() if name.startswith('fb') and value < 0.0] == []
    assert 'fb' in law_from('coulomb+breakaway').nonnegative
