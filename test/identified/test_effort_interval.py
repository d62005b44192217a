"""identified/uncertainty.py: the interval of the effort holds parameters, and what the model
leaves in other motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from motions import lively, repeated_motion, torque_model, truth_of, with_effort

from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identified.uncertainty import parameter_variance


@pytest.fixture
def model():
    """Return a model whose parameters have deviations, of ten degrees of freedom."""
    found = nominal_model('planar_3r')
    count = len(found.values)
    return replace(
        found, std=0.1 * (1.0 + np.arange(count)), correlation_factor=np.eye(count),
        record=replace(found.record, degrees_of_freedom=10.0, left_over=(0.3, 0.2, 0.1)))


def test_effort_interval_equals_that_of_parameter_draws_and_residual(model):
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 4, 3))
    columns = model.inverse_by_parameters(q, qd, qdd)
    draws = rng.normal(size=(20_000, len(model.values))) * model.std
    spread = (draws @ columns.transpose(0, 2, 1)).std(axis=1)
    expected = np.sqrt((interval_factor(10.0) * spread)**2
                       + (interval_factor(np.inf) * np.array([0.3, 0.2, 0.1]))**2)
    assert model.effort_interval(q, qd, qdd) == pytest.approx(expected, rel=0.03)
    assert model.effort_interval(q[0], qd[0], qdd[0]) == pytest.approx(expected[0], rel=0.03)


def test_unknown_parameters_and_old_records_count_as_nothing(model):
    rest = np.zeros((1, 3))
    known = replace(model, std=np.zeros(len(model.std)))
    assert known.effort_interval(rest, rest, rest)[0] == pytest.approx(
        interval_factor(np.inf) * np.array([0.3, 0.2, 0.1]))
    bare = replace(known, record=replace(known.record, left_over=()))
    assert not bare.effort_interval(rest, rest, rest).any()


def test_the_variance_on_any_motion_is_within_the_ranges_of_the_fit(model):
    ranges = {name: np.array([[-size, size]] * 3) for name, size in (
        ('position', 2.0), ('velocity', 1.0), ('acceleration', 3.0))}
    slow, fast = (replace(model, trained=replace(model.trained, quantities={
        **ranges, 'acceleration': scale * ranges['acceleration']})) for scale in (1.0, 4.0))
    assert np.all(parameter_variance(fast) > 2.0 * parameter_variance(slow))


def test_a_new_motion_is_promised_more_than_what_is_left_out():
    torque = torque_model('planar_3r')
    samples = repeated_motion(1, 8.0, 3)
    effort = torque.effort(samples, truth_of(torque)) + np.sin(3.0 * samples.position)
    found = held_out(Experiment.of(torque, [with_effort(samples, effort)]).information)
    assert found.motions == 1
    assert found.promise == pytest.approx(np.sqrt(found.raw + found.filtered))
    known = replace(found, spread=found.raw)
    assert known.promise == pytest.approx(np.sqrt(2.0 * found.raw + found.filtered))
    long = held_out(Experiment.of(torque, [lively(torque, 6000, 0.01)]).information)
    assert long.motions == len(long.folds) > 1
