"""The choice of friction laws and their shapes: known friction is recovered, parsimony holds."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from identified_models import nominal_model
from motions import lively
from scipy.optimize import least_squares
from tolerances import AGAINST_FULL_SEARCH, BREAKAWAY, PRESLIDING_AMPLITUDE

from robot_dynid.effects import axes_of
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.friction_selection.law_request import COULOMB, LawRequest
from robot_dynid.estimation.friction_selection.law_scores import LawScores
from robot_dynid.estimation.friction_selection.law_selection import (
    ScoredLaw,
    choose_laws,
    choose_simplest,
    excited_laws,
    laws_to_extend,
    score_laws,
)
from robot_dynid.estimation.friction_selection.second_motion import (
    breakaway,
    remove_breakaway,
    validate_breakaway,
)
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.friction import LAWS, AxisMotion, Coulomb, law_from
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text
from robot_dynid.types import RawLog, Samples, take
from robot_dynid.validation.validate import validate

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
    'dahl+breakaway': ({'length': 2e-3, 'breakaway': {'speed': 0.05}},
                       {'fv': 2.0, 'fc': 3.0, 'f0': 0.4, 'fb': -1.5}),
    'maxwell+breakaway': ({'lengths': [2e-3], 'breakaway': {'speed': 0.05}},
                          {'fv': 2.0, 'fca': 3.0, 'f0': 0.4, 'fb': 1.5}),
}
#: laws that are the same but for the shape of the ramp
SAME = {'stribeck': {'stribeck', 'coulomb+breakaway'}}


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


RECIPE = Recipe(cutoff=12.0, effort_lag=0.0, ripple='none')


@pytest.mark.parametrize('name', [name for name in TRUE if 'breakaway' not in name])
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
        assert set(chosen) <= SAME.get(name, {name})
    _, unseen = recording(name, 7)
    for score in validate(result.model, [unseen]).model['all'].values():
        assert score.rmse < 1.8 * NOISE  # raw effort: the steps at reversals pass no low-pass
    for entry in result.model.record.friction:
        ratio = entry.error_over_coulomb
        assert ratio < 0.9 if entry.law != 'coulomb' else ratio == 1.0
        assert not any('stribeck' in one.law and 'breakaway' in one.law for one in entry.tried)


def test_friction_that_is_smaller_at_rest_is_no_breakaway():
    """It levels off at a low speed: nothing of it is below zero."""
    robot, log = recording('dahl+breakaway')
    model = identify(robot, [log], recipe=RECIPE).model
    assert TRUE['dahl+breakaway'][1]['fb'] < 0.0
    for j, law in enumerate(model.structure.laws):
        assert 'levelling' in law.settings() and 'breakaway' not in law.settings()
        assert all(model.standard[f'{name}{j + 1}'] >= 0.0 for name in law.nonnegative)


def test_breakaway_is_chosen_and_found():
    name = 'maxwell+breakaway'
    robot, log = recording(name)
    model, true = identify(robot, [log], recipe=RECIPE).model, TRUE[name][1]['fb']
    for j, law in enumerate(model.structure.laws):
        assert 'breakaway' in law.settings() and 'levelling' not in law.settings()
        assert model.standard[f'fb{j + 1}'] == pytest.approx(true, rel=BREAKAWAY)
        assert law.settings()['breakaway']['speed'] == pytest.approx(0.05, rel=BREAKAWAY)


def resting(seed, reverse=1.0):
    """Return samples of a joint whose friction is larger at rest, or smaller in another motion."""
    law = law_from('coulomb+breakaway', {'width': 0.01, 'breakaway': {'speed': 0.1}})
    return axis_data(law, np.array([2.0, 3.0, 0.4, 2.0 * reverse]), seed)


def kept(recordings, laws):
    """Return the laws that hold on other motions than those they are fitted to, by name."""
    robot = load_robot('planar_3r')
    model = nominal_model('planar_3r')
    torque = type(model.torque_model).of(robot, model.structure.blocks(robot)[:1])
    data = FrictionData(torque, axes_of(robot), recordings)
    plain = [remove_breakaway(own, Coulomb(0.01)) if breakaway(own[1]) else None for own in laws]
    return [name for name, _ in validate_breakaway(data, laws, plain, None)]


def test_breakaway_is_kept_where_it_holds_on_another_motion():
    names = ('coulomb+breakaway', 'coulomb', 'coulomb')
    laws = [(names[0], law_from(names[0], {'width': 0.01, 'breakaway': {'speed': 0.1}})),
            *(2 * [(COULOMB, Coulomb(0.01))])]
    first, second = (resting(seed)[1] for seed in (2, 3))
    assert kept([first, second], laws) == list(names)
    assert kept([first], laws) == list(names), 'parts of it are motions'
    dropped = ['coulomb', 'coulomb', 'coulomb']
    assert kept([first, first, resting(3, -1.0)[1]], laws) == dropped
    assert kept([repeated(first)], laws) == list(names), 'one motion, repeated: its parts'
    assert kept([first, first], laws) == list(names), 'one motion in two recordings: its parts'


def repeated(samples):
    """Return the same motion twice in one recording."""
    parts = [np.concatenate([own, own]) for own in (
        samples.position, samples.velocity, samples.acceleration, samples.effort,
        samples.measured)]
    return Samples(samples.joints, DT * np.arange(len(parts[0])), *parts)


def test_a_motion_that_repeats_gives_the_law_that_it_gives_once():
    robot, samples = resting(2)
    model = nominal_model('planar_3r')
    torque = type(model.torque_model).of(robot, model.structure.blocks(robot)[:1])
    request = 'auto without asymmetric two-speed dahl maxwell levelling'
    for recorded in (samples, repeated(samples)):
        data = FrictionData(torque, axes_of(robot), [recorded])
        laws, choices, _ = choose_laws(data, request, [Coulomb(0.01)] * 3, False)
        assert laws[0][0] == choices[0].law
        assert laws[0][0] != COULOMB and choices[0].error_over_coulomb < 0.9


@pytest.mark.parametrize(('request_text', 'load', 'seconds', 'warm', 'expected'), [
    ('auto', False, 40.0, False, {'levelling', 'breakaway'}),
    ('auto', True, 40.0, False, {'levelling', 'breakaway', 'load'}),
    ('auto', False, 90.0, False, {'levelling', 'breakaway', 'drift'}),
    ('auto', False, 40.0, True, {'levelling', 'breakaway', 'temperature'}),
    ('auto without levelling drift', True, 90.0, True, {'breakaway', 'load', 'temperature'}),
    ('maxwell+load', False, 90.0, True, {'load'}), ('coulomb', True, 90.0, True, set()),
])
def test_additions_to_try_are_all_that_the_data_can_show_or_those_of_the_law(
        request_text, load, seconds, warm, expected):
    time = np.linspace(0.0, seconds, 50)
    still = np.zeros((50, 3))
    samples = Samples(('a', 'b', 'c'), time, still, still, still,
                      temperature=still + 31.0 if warm else None)
    short = replace(samples, time=time / 10.0)
    model = nominal_model('planar_3r')
    data = FrictionData(model.torque_model, axes_of(model.robot), [short, samples])
    additions = data.additions(LawRequest.of(request_text), load)
    assert set(additions) == expected
    assert additions.get('temperature', {'reference': 31.0}) == {'reference': 31.0}
    if warm:  # unless every recording tells the temperature, none can be fitted to it
        some = replace(data, recordings=[samples, replace(short, temperature=None)])
        assert set(some.additions(LawRequest.of(request_text), load)) == expected - {'temperature'}


def test_laws_without_breakaway_keep_all_else():
    coulomb = Coulomb(0.02)
    for name, plain in (('stribeck', 'coulomb'), ('stribeck+load', 'coulomb+load'),
                        ('maxwell+load+breakaway+levelling', 'maxwell+load+levelling')):
        law = law_from(name)
        assert breakaway(law)
        found, bare = remove_breakaway((name, law), coulomb)
        assert found == plain
        assert not breakaway(bare)
        assert bare.parameters == law_from(plain).parameters
    assert not breakaway(law_from('dahl+load'))


class KnownScores:
    """Scores of Coulomb laws by their width; those asked whether they are excited are noted."""

    def __init__(self, scores, excited):
        self.known, self.without_doubt, self.asked = scores, excited, []

    def errors(self, laws):
        return np.array([[self.known[law.width]] for law in laws])

    def score(self, errors):
        return float(errors[0])

    def excited(self, laws):
        self.asked += [law.width for law in laws]
        return [law.width in self.without_doubt for law in laws]


@pytest.mark.parametrize(('excited', 'best', 'asked'), [
    ({1.0, 2.0, 3.0}, 2.0, [2.0]), ({1.0, 3.0}, 1.0, [2.0, 1.0]), (set(), 2.0, [2.0, 1.0, 3.0])])
def test_shapes_are_examined_from_the_best_on_until_one_is_excited(excited, best, asked):
    scores = KnownScores({1.0: 0.5, 2.0: 0.4, 3.0: 0.6}, excited)
    found, = score_laws(scores, [('any', Coulomb(width)) for width in (1.0, 2.0, 3.0)])
    assert found.law.width == best and found.excited == (best in excited)
    assert found.score == scores.known[best] == found.errors[0]
    assert scores.asked == asked


def test_equal_shapes_give_the_first_one():
    scores = KnownScores(dict.fromkeys((1.0, 2.0), 0.5), {1.0, 2.0})
    found, = score_laws(scores, [('any', Coulomb(width)) for width in (2.0, 1.0)])
    assert found.law.width == 2.0


def test_the_best_law_that_is_as_good_is_extended_too():
    def law(name, score, excited=True):
        return ScoredLaw(name, law_from(name), np.full(5, score), score, excited)

    found = [law('coulomb', 1.0), law('asymmetric', 0.817), law('stribeck', 0.81, False),
             law('dahl', 0.8), law('two-speed', 0.812), law('maxwell', 0.81)]
    names = [name for name, _ in laws_to_extend(found, found[3])]
    assert names == ['coulomb', 'dahl', 'maxwell']
    worse = [*found[:4], law('maxwell', 0.817)]
    assert [name for name, _ in laws_to_extend(worse, worse[3])] == ['coulomb', 'dahl']
    alone = [found[0], law('maxwell', 0.99)]
    assert laws_to_extend(alone, alone[0]) == [('coulomb', found[0].law)]


def test_searched_shapes_of_additions_count_as_parameters():
    def law(name, score):
        return ScoredLaw(name, law_from(name), np.full(5, score), score, True)

    found = [law('coulomb', 1.0), law('coulomb+breakaway', 0.963), law('dahl', 0.955)]
    assert found[1].size == 5 and law('coulomb+load', 1.0).size == 4
    assert choose_simplest(found, 0.02).name == 'dahl'


def test_amplitudes_of_presliding_are_found():
    robot, log = recording('maxwell')
    law = result_law = identify(robot, [log], recipe=Recipe(
        cutoff=12.0, effort_lag=0.0, friction='maxwell', ripple='none')).model
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
    for found in (data.names(0, law) & reported, {f'{p}1' for p in scores.left_open([law])[0]}):
        assert found - unavoidable == {f'{p}1' for p in expected}
    assert scores.excited([law]) == [not expected]
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


@pytest.mark.parametrize('name', ['dahl+breakaway', 'maxwell+load+levelling'])  # all: contract
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
    np.testing.assert_allclose(found.position[:, -1], ends.position[:, -1], rtol=0.0, atol=1e-3)


@pytest.mark.parametrize(('name', 'friction'), [('maxwell', 3.0), ('asymmetric', 2.25)])
def test_exported_urdf_has_the_friction_of_sliding(name, friction):
    robot, log = recording(name)
    recipe = replace(RECIPE, friction=name, estimator={'prior_weight': 1e-3})
    model = identify(robot, [log], 'feasible', recipe).model
    for joint in ET.fromstring(model.to_urdf(source_text(robot)).text).iter('joint'):
        if joint.attrib['name'] in robot.joints:
            dynamics = joint.find('dynamics')
            assert float(dynamics.attrib['friction']) == pytest.approx(friction, rel=0.1)


def test_prescribed_law_and_width():
    robot, log = recording('coulomb')
    width = identify(robot, [log], recipe=replace(RECIPE, ramp_width=0.05)).model.structure
    assert set(width.friction) == {'coulomb'} and width.settings[0] == {'width': 0.05}
    with pytest.raises(UsageError, match='ramp_width belongs to the law coulomb, not to maxwell'):
        Recipe(ramp_width=0.05, friction='maxwell')
    with pytest.raises(UsageError, match='choose one of coulomb, asymmetric'):
        recipe_from_dict({'friction': 'sticky'})
    assert recipe_from_dict({'friction': 'auto'}).friction == 'auto'


def test_laws_are_named_by_joint_and_joints_are_left_out():
    robot, log = recording('maxwell')
    laws = {'joint_1': 'dahl', 'joint_3': 'none', 'others': 'auto without maxwell, dahl'}
    result = identify(robot, [log], recipe=replace(RECIPE, friction=laws))
    model = result.model
    first, chosen, left_out = model.structure.friction
    assert (first, left_out) == ('dahl', 'none')
    tried = {one.law.split('+')[0] for one in model.record.friction[1].tried}
    assert chosen.split('+')[0] in tried == {name for name, law in LAWS.items() if not (
        law.by_name or name in ('none', 'dahl', 'maxwell'))}
    assert {name for name in model.names if name.startswith('f') and name[-1] == '3'} <= {'f03'}
    assert IdentifiedModel.from_yaml(model.to_yaml()).structure == model.structure
    still = model.inverse(np.zeros((2, 3)), np.array([[0.0] * 3, [0.0, 0.0, 1e-6]]),
                          np.zeros((2, 3)))
    np.testing.assert_allclose(still[0], still[1], rtol=0.0, atol=1e-4)
    # what is named alone is what is named for all
    alone = identify(robot, [log], recipe=replace(RECIPE, friction={'others': 'dahl'}))
    uniform = identify(robot, [log], recipe=replace(RECIPE, friction='dahl'))
    assert alone.model.structure == uniform.model.structure


def test_ramp_width_of_joints_that_are_named():
    robot, log = recording('coulomb')
    recipe = replace(RECIPE, ramp_width=0.05, friction={'joint_2': 'none'})
    structure = identify(robot, [log], recipe=recipe).model.structure
    assert structure.friction == ('coulomb', 'none', 'coulomb')
    assert structure.settings == ({'width': 0.05}, {}, {'width': 0.05})


@pytest.mark.parametrize(('friction', 'message'), [
    ({'joint_9': 'dahl'}, 'no joint joint_9; choose one of joint_1, joint_2, joint_3, others'),
    ({'m6': 'dahl'}, 'no joint m6'),
])
def test_joints_the_robot_does_not_have_are_refused_before_the_work(friction, message):
    robot = load_robot('planar_3r')
    with pytest.raises(UsageError, match=message):
        identify(robot, [RawLog('none', robot.joints, np.empty(0), np.empty((0, 3)))],
                 recipe=Recipe(friction=friction))


@pytest.mark.parametrize(('friction', 'message'), [
    ('auto without', 'write auto, or auto without and the laws'),
    ('auto without coulomb', 'that are not to be chosen'),
    ('auto dahl', 'write auto, or auto without'),
    ({'joint_1': 'sticky'}, 'choose one of coulomb'),
    ({'joint_1': 3}, 'or a mapping of joints to laws such as'),
    ({'joint_1': False}, 'or a mapping of joints to laws'),
    (['dahl'], 'or a mapping of joints to laws'),
])
def test_requests_that_cannot_be_are_refused(friction, message):
    with pytest.raises(UsageError, match=message):
        recipe_from_dict({'friction': friction})


def test_motors_that_turn_with_several_joints_are_named_by_their_label():
    robot = load_robot('tx40')
    requests = Recipe(friction={'m6': 'none', 'others': 'dahl'}).law_requests(robot)
    assert [one.law for one in requests] == ['dahl'] * 6 + ['none']


def test_grid_keeps_the_order_of_speeds():
    for name in ('stribeck', 'two-speed'):
        kind = LAWS[name]
        made = kind.candidates()
        assert made and len(made) <= np.prod([s.count for s in kind.shapes])


def test_choices_are_the_same_on_one_core_and_on_two(monkeypatch):
    robot, log = recording('dahl')
    found = []
    for cores in (1, 2):
        monkeypatch.setattr('os.sched_getaffinity', lambda _, cores=cores: set(range(cores)))
        found.append(identify(robot, [take(log, log.time < 15.0)]).model.to_yaml())
    assert found[0] == found[1]


def test_choose_laws_refuses_recordings_too_short_to_hold_out_a_part():
    model = nominal_model('planar_3r')
    torque = type(model.torque_model).of(model.robot, model.structure.blocks(model.robot)[:1])
    short = lively(torque, 200).part(slice(100, 115))
    with pytest.raises(DataError, match='too short to choose a friction law'):
        choose_laws(FrictionData(torque, axes_of(model.robot), [short]), 'auto',
                    [Coulomb(0.01)] * 3, load=False)
