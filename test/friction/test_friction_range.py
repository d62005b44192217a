"""friction/law.py: friction beyond what it was fitted to: linear in the speed, held in time and
temperature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from monitored import model_of
from tolerances import BEGINNING, CONTINUED, SAME_FORMULA

from robot_dynid.errors import UsageError
from robot_dynid.friction import ADDITIONS, LAWS, AxisFriction, AxisMotion, law_from
from robot_dynid.friction.law import both_ways
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.monitoring.observer import FRICTION, Observer
from robot_dynid.robot.robot_file import load_robot

LOW, HIGH = -0.7, 0.9
RANGES = {'speeds': (LOW, HIGH), 'temperatures': (20.0, 30.0), 'longest': 40.0}
NAMES = [*LAWS, *(f'{law}+{added}' for law in LAWS for added in ADDITIONS),
         'maxwell+levelling+load+drift+temperature']


def states(velocity, temperature=27.0):
    """Return unrelated states that slide."""
    zero = np.zeros_like(velocity)
    return AxisMotion(np.arange(float(len(velocity))), zero, velocity, tuple(range(len(velocity))),
                      zero + 3.0, zero + temperature)


def wide(name):
    """Return a law whose additions bend slowly, and the same within RANGES."""
    settings = {key: {'speed': 0.8} for key in ('levelling', 'breakaway') if key in name}
    law = law_from(name, {**settings, **({'speed': 0.5} if 'stribeck' in name else {})})
    return law, law.within(RANGES)


@pytest.mark.parametrize('name', NAMES)
def test_law_is_itself_inside_and_linear_outside(name):
    law, known = wide(name)
    inside = states(np.linspace(LOW, HIGH, 301))
    same = replace(inside, temperature=None) if 'drift' in name else inside
    lasting = [i for i, p in enumerate(law.parameters) if p != 'fd']  # a warm joint has some of it
    np.testing.assert_array_equal(known.columns(same)[lasting], law.columns(same)[lasting])
    top = max(-LOW, HIGH)
    for way in (-1.0, 1.0):
        beyond = known.columns(states(way * np.linspace(top, 20.0 * top, 50)))
        size = np.abs(beyond).max(axis=1, initial=1.0)
        assert np.all(np.abs(np.diff(beyond, 2, axis=1)).max(axis=1) <= CONTINUED * size)
    # value and slope go on where the direction has its end: central and one-sided differences
    step = 1e-6
    for edge in (LOW, HIGH, -top):
        before, at, after = known.columns(states(edge + step * np.array([-1.0, 0.0, 1.0]))).T
        slope = np.abs(at - before).max() / step
        np.testing.assert_allclose(after - at, at - before,
                                   rtol=0.0, atol=1e-4 * step * max(slope, 1.0))
    assert law_from(name, known.settings()) == known


@pytest.mark.parametrize(('parameter', 'power'), [('fvp', 1), ('fqp', 2), ('fkp', 3)])
def test_powers_of_each_direction_end_at_its_own_speed(parameter, power):
    law = law_from('two-speed').within(RANGES)
    other = parameter[:-1] + 'n'
    forth, back = (law.columns(states(np.array([way * 5.0])))[law.parameters.index(p), 0]
                   for way, p in ((1.0, parameter), (-1.0, other)))
    for found, edge in ((forth, HIGH), (-back, -LOW)):
        tangent = edge**power + power * edge**(power - 1) * (5.0 - edge)
        assert found == pytest.approx(tangent, rel=1e-12)


@pytest.mark.parametrize(('speeds', 'top'), [((-0.7, 0.9), 0.9), ((-0.9, 0.7), 0.9),
                                             ((-0.9, 0.0), 0.9), ((0.0, 0.7), 0.7)])
def test_laws_alike_in_both_ways_know_the_higher_speed_of_the_two(speeds, top):
    assert both_ways(speeds) == (-top, top)
    law = law_from('stribeck', {'width': 1e-3, 'speed': 0.5, 'speeds': speeds})
    known = 1.0 - law.columns(states(np.array([top, 2.0])))[2]
    edge, slope = np.tanh(2.0 * top), 2.0 * (1.0 - np.tanh(2.0 * top) ** 2)
    beyond = edge + slope * (2.0 - top)
    np.testing.assert_allclose(known, [edge, beyond], rtol=1e-12)
    back = -1.0 - law.columns(states(np.array([-top, -2.0])))[2]
    np.testing.assert_allclose(back, [-edge, -beyond], rtol=1e-12)


def test_levelling_that_was_not_reached_does_not_level():
    law = law_from('coulomb+levelling', {'levelling': {'speed': 1.5}}).within(RANGES)
    assert law.columns(states(np.array([6.0])))[-1, 0] == pytest.approx(4.0)


def test_drift_and_temperature_are_held_at_their_ends():
    law = law_from('coulomb+drift+temperature', {'drift': {'seconds': 20.0}}).within(RANGES)
    time = np.array([0.0, 20.0, 40.0, 400.0])
    motion = AxisMotion(time, time, np.ones(4), (0,), None, np.array([25.0, 35.0, 30.0, -50.0]))
    drift, dry, viscous = law.columns(motion)[3:]
    np.testing.assert_allclose(drift, np.exp([0.0, -1.0, -2.0, -2.0]))
    np.testing.assert_allclose(dry, [0.0, 5.0, 5.0, -5.0])
    np.testing.assert_allclose(viscous, dry)
    # a state without a past is as warm as the longest recording has left it
    single = law.columns(states(np.array([1.0])))[3, 0]
    assert single == pytest.approx(np.exp(-2.0))
    torque = AxisFriction.of(np.eye(1), [law], [np.array([0.0, 0.0, 0.0, 5.0, 0.0, 0.0])]).torque
    assert torque(np.ones((1, 1))) == pytest.approx(5.0 * np.exp(-2.0))


@pytest.mark.parametrize('law', [*LAWS, 'coulomb+breakaway', 'maxwell+drift', 'dahl+levelling',
                                 'stribeck+load+drift', 'asymmetric+levelling'])
def test_users_of_friction_agree_beyond_the_fitted_range(law):
    robot = load_robot('planar_3r')
    own = wide(law)[1]
    structure = Structure.of(True, [(law, own)] * 3, robot.nominal)
    model = replace(model_of(robot, law, own.settings()), structure=structure)
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1.0, 1.0, (40, 3)), rng.uniform(-6.0, 6.0, (40, 3))
    values = np.array([[model.standard[f'{p}{j}'] for p in own.parameters] for j in (1, 2, 3)])
    load = None if structure.load is None else \
        structure.load_of(robot)(q, qd, np.zeros_like(q))
    expected = np.stack([values[j] @ own.columns(replace(
        states(qd[:, j]), load=None if load is None else load[:, j], temperature=None))
        for j in range(3)], axis=1)
    scale = SAME_FORMULA * np.abs(expected).max()
    np.testing.assert_allclose(model.friction(q, qd), expected, rtol=0.0, atol=scale)
    moved = model.frictionless_effort(q, qd, 0.0 * q)
    np.testing.assert_allclose(model.inverse(q, qd, 0.0 * q) - moved, expected,
                               rtol=0.0, atol=10.0 * scale)
    fresh = Observer(model, 30.0)(np.stack([q, qd, 0.0 * q], axis=1), np.zeros(len(q)))
    np.testing.assert_allclose(fresh[:, FRICTION], expected, rtol=0.0, atol=scale)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    np.testing.assert_array_equal(again.friction(q, qd), model.friction(q, qd))


@pytest.mark.parametrize('law', NAMES)
def test_rollout_has_the_friction_of_the_law_beyond_the_range(law):
    """By the change of velocity in a step too short for all else to change."""
    model = model_of(load_robot('planar_3r'), law, wide(law)[1].settings())
    q, qd = np.zeros((1, 3)), np.array([[3.0, -4.0, 5.0]])
    step = 3e-8
    found = (model.rollout(q, qd, np.zeros((1, 1, 3)), step).velocity[:, 0] - qd) / step
    expected = model.forward(q, qd, np.zeros((1, 3)))
    np.testing.assert_allclose(found, expected, rtol=BEGINNING)


@pytest.mark.parametrize('bad', [[1.0], [2.0, 1.0], 'fast', [0.0, np.nan]])
def test_bad_ranges_are_refused(bad):
    with pytest.raises(UsageError, match='speeds'):
        law_from('stribeck', {'speeds': bad})
