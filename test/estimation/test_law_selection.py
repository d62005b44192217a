"""The choice of friction laws and their shapes: known friction is recovered, parsimony holds."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from nominal import nominal_model
from scipy.optimize import least_squares
from tolerances import AGAINST_FULL_SEARCH, PRESLIDING_AMPLITUDE

from robot_dynid.errors import UsageError
from robot_dynid.estimation.friction_selection.law_scores import LawScores
from robot_dynid.estimation.friction_selection.law_selection import choose_laws, excited_laws
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.friction import LAWS, AxisMotion, Coulomb, law_from
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identification.validate import validate
from robot_dynid.identified.export import exported_urdf
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.regressor import axes_of
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text
from robot_dynid.types import RawLog, Samples

DT, SECONDS, NOISE = 0.01, 40.0, 0.3
#: friction of the simulated joints: law, settings, parameters
TRUE = {
    'coulomb': ({'width': 0.02}, {'fv': 2.0, 'fc': 3.0, 'f0': 0.4}),
    'asymmetric': ({'width': 0.02}, {'fvp': 2.0, 'fvn': 4.0, 'fcp': 3.0, 'fcn': 1.5}),
    'stribeck': ({'width': 0.01, 'speed': 0.2}, {'fv': 2.0, 'fc': 3.0, 'fs': 2.0, 'f0': 0.4}),
    'dahl': ({'length': 0.02}, {'fv': 2.0, 'fc': 3.0, 'f0': 0.4}),
    'maxwell': ({'lengths': [2e-3, 2e-2]}, {'fv': 2.0, 'fca': 1.0, 'fcb': 2.0, 'f0': 0.4}),
    'coulomb+levelling': ({'width': 0.02, 'levelling': {'speed': 0.4}},
                          {'fv': 2.0, 'fc': 3.0, 'f0': 0.4, 'fl': 2.0}),
    'coulomb+load': ({'width': 0.02}, {'fv': 2.0, 'fc': 1.0, 'f0': 0.4, 'fw': 0.1}),
}


def motion(seed, n, reach=0.6):
    """Return time, position, velocity, acceleration of slow harmonics with many reversals."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, SECONDS, DT)
    rates = rng.uniform(0.5, 4.0, (6, n))
    size = reach * rng.uniform(0.3, 1.0, (6, n)) / rates
    phase = time[:, None, None] * rates + rng.uniform(0.0, 6.0, (6, n))
    return (time, (size * np.sin(phase)).sum(axis=1), (size * rates * np.cos(phase)).sum(axis=1),
            (-size * rates**2 * np.sin(phase)).sum(axis=1))


def recording(name, seed=0, warm=None):
    """Return what the planar arm measures, all joints with the friction of TRUE[name]."""
    model = nominal_model('planar_3r', viscous=0.0, coulomb=0.0)
    robot = model.robot
    time, q, qd, qdd = motion(seed, robot.n)
    effort = model.inverse(q, qd, qdd)
    settings, values = TRUE[name]
    law, axes = law_from(name, settings), axes_of(robot)
    links = nominal_model('planar_3r', rotors=0.0, viscous=0.0, coulomb=0.0)
    loads = links.frictionless_effort(q, qd, qdd)
    for j in range(len(axes.labels)):
        torque = law.columns(AxisMotion(time, q[:, j], qd[:, j], (0,), loads[:, j]))
        effort[:, j] += np.array([values[p] for p in law.parameters]) @ torque
        if warm is not None:
            effort[:, j] += (warm[:, j] - 30.0) * -0.1 * np.clip(qd[:, j] / 0.02, -1, 1)
    effort += NOISE * np.random.default_rng(seed + 1).normal(size=effort.shape)
    return robot, RawLog(f'{name} {seed}', robot.joints, time, q, qd, effort, temperature=warm)


RECIPE = Recipe(cutoff=12.0, effort_lag=0.0)


@pytest.mark.parametrize('name', TRUE)
def test_known_friction_is_chosen_and_found(name):
    robot, log = recording(name)
    result = identify(robot, [log], recipe=RECIPE)
    chosen = result.model.structure.friction
    added = name.split('+')[1:]
    if added == ['load']:  # the last link weighs little
        assert chosen[:2] == (name, name)
    elif added:  # a law for two speeds comes near the Coulomb part, whose ramp is not searched
        assert all(set(added) <= set(law.split('+')) for law in chosen)
    else:
        assert set(chosen) == {name}
    _, unseen = recording(name, 7)
    for score in validate(result.model, [unseen]).model['all'].values():
        assert score.rmse < 1.8 * NOISE  # raw effort: the steps at reversals pass no low-pass
    for entry in result.model.record.friction:
        ratio = entry.error_over_coulomb
        assert ratio < 0.9 if entry.law != 'coulomb' else ratio == 1.0


def test_amplitudes_of_presliding_are_found():
    robot, log = recording('maxwell')
    law = result_law = identify(robot, [log], recipe=Recipe(
        cutoff=12.0, effort_lag=0.0, friction='maxwell')).model
    for j, own in enumerate(result_law.structure.laws):
        values = np.array([law.standard[f'{p}{j + 1}'] for p in own.holding])
        assert np.all(values >= 0.0)
        assert values.sum() == pytest.approx(3.0, rel=PRESLIDING_AMPLITUDE)
        mean = np.exp(values @ np.log(own.lengths) / values.sum())
        assert 2e-3 < mean < 2e-2


def test_temperature_enters_where_it_was_measured():
    warm = 30.0 + 10.0 * np.sin(np.arange(0.0, SECONDS, DT) / 9.0)[:, None] * np.ones(3)
    robot, log = recording('coulomb', warm=warm)
    result = identify(robot, [log], recipe=RECIPE)
    assert all('temperature' in law for law in result.model.structure.friction)
    for j in '123':
        assert result.model.standard[f'ft{j}'] == pytest.approx(-0.1, rel=0.1)
    without = identify(robot, [replace(log, temperature=None)], recipe=RECIPE)
    assert not any('temperature' in name for name in without.model.structure.friction)
    # the model answers also where the temperature is not known: at its reference
    assert np.isfinite(result.model.forward(np.zeros(3), np.ones(3), np.ones(3))).all()


def axis_data(law, values, seed=2):
    """Return the data of a single joint without a robot to speak of, its friction known."""
    robot = load_robot('planar_3r')
    time, q, qd, qdd = motion(seed, robot.n)
    effort = 0.05 * np.random.default_rng(seed).normal(size=q.shape)
    effort[:, 0] += values @ law.columns(AxisMotion(time, q[:, 0], qd[:, 0]))
    samples = Samples(robot.joints, time, q, qd, qdd, effort, effort, (0,))
    return robot, samples


@pytest.mark.parametrize('name', ['dahl', 'stribeck'])
def test_separable_search_ends_where_the_search_of_all_parameters_does(name):
    law, true = law_from(name, TRUE[name][0]), TRUE[name][1]
    robot, samples = axis_data(law, np.array([true[p] for p in law.parameters]))
    model = nominal_model('planar_3r')
    links = model.structure.blocks(robot)[:1]
    torque = type(model.torque_model).of(robot, links)
    data = FrictionData(torque, axes_of(robot), [samples])
    laws, _, _ = choose_laws(data, name, [Coulomb(0.02)] * 3, False)
    (_, found), own = laws[0], AxisMotion(samples.time, samples.position[:, 0],
                                          samples.velocity[:, 0])
    names = [s.name for s in found.shapes]
    rigid = torque.columns(samples)
    others = np.concatenate([laws[j][1].columns(AxisMotion(
        samples.time, samples.position[:, j], samples.velocity[:, j])) for j in (1, 2)])
    count = rigid.shape[1]

    def residual(x):
        shapes = dict(zip(names, np.exp(x[:len(names)])))
        friction = np.zeros_like(samples.effort)
        friction[:, 0] = x[len(names):len(names) + len(law.parameters)] @ law_from(
            name, shapes).columns(own)
        rest = x[len(names) + len(law.parameters):]
        own_rest = np.split(rest[count:] [:, None] * others, 2)
        for j in (1, 2):
            friction[:, j] = own_rest[j - 1].sum(axis=0)
        left = samples.effort - friction - np.einsum('jbn,b->nj', rigid, rest[:count])
        return (left / noise).ravel()

    start = np.concatenate([np.log([1.5 * TRUE[name][0][s] for s in names]),
                            np.ones(len(law.parameters)), np.zeros(count + len(others))])
    noise = 0.05
    full = least_squares(residual, start, x_scale='jac')
    for i, shape in enumerate(names):
        assert getattr(found, shape) == pytest.approx(np.exp(full.x[i]), rel=AGAINST_FULL_SEARCH)


@pytest.mark.parametrize(('name', 'settings', 'expected'), [
    ('two-speed', {'threshold': 0.05}, {'fqp', 'fqn', 'fkp', 'fkn', 'fvp', 'fvn'}),
    ('two-speed', {'threshold': 0.9}, {'fqp', 'fqn', 'fkp', 'fkn', 'fvp', 'fvn'}),
    ('coulomb+levelling', {'width': 0.02, 'levelling': {'speed': 9.0}}, {'fv', 'fl'}),
    ('dahl', {'length': 2e-3}, {'fv'}),
    ('asymmetric', {'width': 0.02}, set()),
])
def test_choice_finds_open_what_a_fit_reports_as_not_excited(name, settings, expected):
    robot, rng, law = load_robot('planar_3r'), np.random.default_rng(7), law_from(name, settings)
    time, q, qd, qdd = motion(7, robot.n, reach=0.03)  # slow: 0.1 rad/s
    effort = np.clip(qd / 0.02, -1.0, 1.0) + 0.05 * rng.normal(size=q.shape)
    samples = Samples(robot.joints, time, q, qd, qdd, effort, effort, (0,))
    model = nominal_model('planar_3r')
    torque = type(model.torque_model).of(robot.with_gravity(np.zeros(3)),
                                         model.structure.blocks(robot)[:1])
    data, simple = FrictionData(torque, axes_of(robot), [samples]), ('coulomb', Coulomb(0.02))
    factors = data.factors([[simple, (name, law)]] + 2 * [[simple]], None)
    scores = LawScores.of(factors, 0, 3 * [simple[1]], np.ones(3))
    reported = data.left_open([(name, law), simple, simple], None)
    unavoidable = data.left_open(3 * [simple], None)
    for found in (data.names(0, law) & reported, {f'{p}1' for p in scores.left_open(law)}):
        assert found - unavoidable == {f'{p}1' for p in expected}
    assert scores.excited(law) == (not expected)
    kept = excited_laws(data, [((name, law), simple), (simple,), (simple,)], None)
    assert kept == [simple if expected else (name, law), simple, simple]
    laws, _, _ = choose_laws(data, 'auto', 3 * [simple[1]], False)
    assert data.left_open(laws, None) <= unavoidable


def test_joint_that_never_leaves_presliding_keeps_coulomb_and_is_named():
    robot, log = recording('maxwell')
    still = log.position.copy()
    still[:, 2] = 0.3 + 1e-3 * np.sin(log.time)
    velocity = log.velocity.copy()
    velocity[:, 2] = 1e-3 * np.cos(log.time)
    result = identify(robot, [replace(log, position=still, velocity=velocity)],
                      recipe=replace(RECIPE, accept=('position_unit',)))
    assert result.model.structure.friction[2] == 'coulomb'
    assert any('axis 3' in w and 'presliding' in w for w in result.warnings)


def test_joint_without_reversal_keeps_coulomb_and_is_named():
    robot, log = recording('coulomb')
    position, velocity = log.position.copy(), log.velocity.copy()
    velocity[:, 2] = 0.5 + 0.1 * np.sin(log.time)
    position[:, 2] = 0.5 * log.time - 0.1 * np.cos(log.time)
    result = identify(robot, [replace(log, position=position, velocity=velocity)],
                      recipe=replace(RECIPE, accept=('position_unit',)))
    assert result.model.structure.friction[2] == 'coulomb'
    assert any('axis 3' in w and 'one direction' in w for w in result.warnings)


@pytest.mark.parametrize('name', [n for n in TRUE if n != 'coulomb'] + ['maxwell+load+levelling'])
def test_model_with_any_law_serves_and_is_read_back(name):
    robot, log = recording('coulomb+load')
    result = identify(robot, [log], recipe=replace(RECIPE, friction=name))
    model = result.model
    assert set(model.structure.friction) == {name}
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.structure == model.structure
    rng = np.random.default_rng(4)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 20, 3))
    effort = model.inverse(q, qd, qdd)
    np.testing.assert_allclose(again.inverse(q, qd, qdd), effort, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.forward(q, qd, effort), qdd, rtol=1e-7, atol=1e-7)
    found = model.rollout(q[:2], qd[:2], np.repeat(effort[:2, None], 20, axis=1), 2e-3)
    ends = model.rollout(q[:2], qd[:2], np.repeat(effort[:2, None], 40, axis=1), 1e-3)
    assert np.isfinite(found.position).all()
    np.testing.assert_allclose(found.position[:, -1], ends.position[:, -1], atol=1e-3)


@pytest.mark.parametrize(('name', 'friction'), [('maxwell', 3.0), ('asymmetric', 2.25)])
def test_exported_urdf_has_the_friction_of_sliding(name, friction):
    robot, log = recording(name)
    recipe = replace(RECIPE, friction=name, estimator={'prior_weight': 1e-3})
    model = identify(robot, [log], 'feasible', recipe).model
    for joint in ET.fromstring(exported_urdf(model, source_text(robot)).text).iter('joint'):
        if joint.attrib['name'] in robot.joints:
            dynamics = joint.find('dynamics')
            assert float(dynamics.attrib['friction']) == pytest.approx(friction, rel=0.1)


def test_prescribed_law_and_width():
    robot, log = recording('coulomb')
    width = identify(robot, [log], recipe=replace(RECIPE, ramp_width=0.05)).model.structure
    assert set(width.friction) == {'coulomb'} and width.settings[0] == {'width': 0.05}
    with pytest.raises(UsageError, match='ramp_width is that of the law coulomb'):
        Recipe(ramp_width=0.05, friction='maxwell')
    with pytest.raises(UsageError, match='choose one of coulomb, asymmetric'):
        recipe_from_dict({'friction': 'sticky'})
    assert recipe_from_dict({'friction': 'auto'}).friction == 'auto'


def test_grid_keeps_the_order_of_speeds():
    for name in ('stribeck', 'two-speed'):
        kind = LAWS[name]
        made = kind.candidates()
        assert made and len(made) <= np.prod([s.count for s in kind.shapes])
