"""What changed between two models: found where something did, and not where nothing did."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import EFFORT_NOISE, RATE, VELOCITY_NOISE
from scipy import stats

from robot_dynid.cli.main import main
from robot_dynid.errors import ModelError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified import comparison
from robot_dynid.identified.comparison import FRICTION, INERTIA, WEIGHT, differences
from robot_dynid.identified.trained import Trained
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog
from robot_dynid_evaluation.bench.arms import effort

ROBOT, TRUTH = load_robot('planar_3r'), load_truth(load_robot('planar_3r'))
RECIPE = Recipe(friction='coulomb', cutoff=15.0, effort_lag=0.0, ramp_width=0.01, ripple='none',
                adaptation='none')
SECONDS = 16.0


def recording(seed, robot=ROBOT, truth=TRUTH):
    """Return a noisy recording of a robot that moves."""
    rng = np.random.default_rng(seed)
    trajectory = random_fourier(
        motion_limits(ROBOT).scaled(0.9), FourierOptions(SECONDS, 10), rng)
    time = np.arange(round(SECONDS * RATE)) / RATE
    motion = trajectory.sample(time)
    torque = effort(robot, truth, motion)
    return RawLog(f'seed {seed}', ROBOT.joints, time, motion.position,
                  velocity=motion.velocity + VELOCITY_NOISE * rng.standard_normal(torque.shape),
                  effort=torque + EFFORT_NOISE * rng.standard_normal(torque.shape))


def model(seed, robot=ROBOT, truth=TRUTH, recipe=RECIPE):
    return identify(ROBOT, [recording(seed, robot, truth)], recipe=recipe).model


@pytest.fixture(scope='module')
def models():
    """Return models of one robot from motions of their own."""
    return [model(seed) for seed in range(8)]


def changed(first, second):
    return {(one.joint, one.effect) for one in differences(first, second) if one.changed}


def test_little_is_found_where_nothing_changed(models):
    found = [one for first, second in itertools.pairwise(models)
             for one in differences(first, second)]
    assert len(found) == 7 * 3 * ROBOT.n
    likely = np.sort([one.probability for one in found])
    assert np.mean(likely < 0.05) < 0.15
    links = [one.probability for one in found if one.effect != FRICTION]
    assert np.mean(np.array(links) < 0.5) > 0.25, 'chances that are too large hide what changed'
    assert sum(one.changed for one in found) <= 2


def test_friction_that_rose_is_found_at_its_joint(models):
    more = [1.0, 1.15, 1.0]
    worn = replace(TRUTH, coulomb=TRUTH.coulomb * more, viscous=TRUTH.viscous * more)
    found = differences(models[0], model(20, truth=worn))
    assert {(one.joint, one.effect) for one in found if one.changed} == {('joint_2', FRICTION)}
    risen = next(one for one in found if (one.joint, one.effect) == ('joint_2', FRICTION))
    rise = 0.15 * risen.before
    assert abs(risen.most - rise) < risen.half_interval < 0.5 * rise
    assert 0.7 * rise < risen.size < 1.3 * rise and risen.unit == 'N m'


def test_effects_are_those_of_the_model(models):
    """The inertia of the last joint is the same in all poses, its friction a closed form."""
    one = models[0]
    found = {d.effect: d for d in differences(one, one) if d.joint == 'joint_3'}
    assert found[INERTIA].before == pytest.approx(one.mass_matrix(np.zeros(3))[2, 2], rel=1e-9)
    speed = np.abs(one.trained.quantities['velocity'][2]).max() * np.array([0.1, 0.3, 0.6, 1.0])
    values = dict(zip(one.names, one.values, strict=True))
    friction = values['fv3'] * speed + values['fc3']
    assert found[FRICTION].before == pytest.approx(np.sqrt(np.mean(friction**2)), rel=1e-6)
    assert all(d.size == 0.0 and not d.changed for d in differences(one, one))


def test_a_payload_that_was_left_on_is_no_friction(models):
    nominal = ROBOT.nominal.copy()
    place = np.array([0.2, 0.0, 0.0])
    inertia = 0.3 * (place @ place * np.eye(3) - np.outer(place, place))
    nominal[2] += [0.3, *0.3 * place, *inertia[np.triu_indices(3)][[0, 1, 3, 2, 4, 5]]]
    loaded = replace(ROBOT, nominal=nominal)
    found = changed(models[0], model(21, robot=loaded))
    assert {('joint_3', WEIGHT), ('joint_3', INERTIA)} <= found
    assert not any(effect == FRICTION for _, effect in found)


def test_models_with_other_laws_of_friction_are_compared(models):
    """The truth is symmetric: a law with more parameters finds the same friction."""
    other = model(3, recipe=replace(RECIPE, friction='asymmetric', ramp_width=None))
    assert len(other.names) > len(models[0].names)
    assert not changed(models[0], other)


def test_differences_refuses_models_that_cannot_be_compared(models):
    with pytest.raises(ModelError, match=r'for seven_axis .* not for planar_3r'):
        differences(models[0], replace(models[1], robot=load_robot('seven_axis')))
    with pytest.raises(ModelError, match='no covariance'):
        differences(models[0], replace(models[1], correlation_factor=None))
    with pytest.raises(ModelError, match='no training ranges'):
        differences(models[0], replace(models[1], trained=Trained()))
    refused = replace(models[1], not_identified=('joint_2',))
    assert {one.joint for one in differences(models[0], refused)} == {'joint_1', 'joint_3'}


def test_the_command_compares_models_on_recordings(models, tmp_path, capsys):
    paths = [tmp_path / f'{name}.yaml' for name in ('before', 'after')]
    worn = model(22, truth=replace(TRUTH, viscous=TRUTH.viscous * [1.3, 1.0, 1.0]))
    for path, one in zip(paths, (models[0], worn), strict=True):
        one.save(path)
    data, report = tmp_path / 'today.csv', tmp_path / 'compared.html'
    write_csv(data, recording(30))
    words = ['compare', *map(str, paths), str(data), '--report', str(report)]
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    later = found['changes'][str(paths[1])]
    assert {one['joint'] for one in later if one['changed']} == {'joint_1'}
    errors = [found['joints'][str(path)]['joint_1']['relative_error'] for path in paths]
    assert errors[0] < errors[1], 'the recording is one of the robot as it was'
    text = report.read_text(encoding='utf-8')
    assert 'after.yaml against before.yaml' in text and 'friction of joint_1' in text
    assert main(words[:-2]) == 0
    shown = capsys.readouterr().out
    assert 'after.yaml against before.yaml: changes in friction of joint_1.' in shown
    assert 'median error, before.yaml' in shown and 'median error, after.yaml' in shown
    assert main(['compare', str(paths[0]), str(data)]) == 2
    assert 'two models or more' in capsys.readouterr().err


def known(name='planar_3r', ends=(0.0, 1.0), std=1e-12, freedom=10, scale=1.0, **fields):
    """Return a nominal model times ``scale``, with ranges, deviation, and degrees of freedom."""
    own = nominal_model(name, coulomb=3.0, width=0.001)
    size, joints = len(own.values), own.robot.n
    quantities = {'position': np.tile(ends, (joints, 1)),
                  'velocity': np.tile([-1.0, 2.0], (joints, 1))}
    return replace(own, values=scale * own.values, std=np.full(size, std), not_identified=(),
                   correlation_factor=np.eye(size), trained=Trained(quantities),
                   record=replace(own.record, degrees_of_freedom=freedom, **fields))


def of_joint(first, second, effect, joint='joint_3'):
    return next(one for one in differences(first, second)
                if (one.joint, one.effect) == (joint, effect))


@pytest.mark.parametrize(('freedoms', 'scale'), [
    ((10, 20), 1.2), ((20, 10), 1.2), ((2, 20), 1.2), ((20, 1), 1.2), ((3, 3), 0.8)])
def test_an_inertia_that_is_alike_in_all_poses_is_judged_by_students_test(freedoms, scale):
    first, second = known(std=0.05, freedom=freedoms[0]), known(
        std=0.1, freedom=freedoms[1], scale=scale)
    still, unit = np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]])
    row = (first.inverse_by_parameters(still, still, unit)
           - first.inverse_by_parameters(still, still, still))[0, 2]
    variances = np.array([0.05, 0.1])**2 * (row @ row)
    errors = variances / (1.0 - 2.0 / np.array(freedoms)) if min(freedoms) > 2 else variances
    freedom = errors.sum()**2 / np.sum(errors**2 / freedoms) if min(freedoms) > 2 else min(
        freedoms)
    found, deviation = of_joint(first, second, INERTIA), np.sqrt(variances.sum())
    change = (scale - 1.0) * row @ first.values
    assert (found.most, found.size, found.before) == pytest.approx(
        (change, abs(change), row @ first.values), rel=1e-9)
    assert found.half_interval == pytest.approx(stats.t.ppf(0.975, freedom) * deviation, rel=1e-6)
    chance = 2.0 * stats.t.sf(abs(change) / deviation, freedom)
    assert found.probability == pytest.approx(chance, abs=4.0 * np.sqrt(chance / comparison.DRAWS))


@pytest.mark.parametrize(('fields', 'viscous'), [
    ({}, 0.05), ({'friction_spread': {'viscous': 0.1}, 'recordings': ('a', 'b', 'c')},
                 np.sqrt((4.0 * 0.05**2 + 6.0 * 0.1**2) / 10.0))])
def test_friction_that_grew_by_one_factor_is_seen_best_as_a_whole(fields, viscous):
    """Known but for changes from day to day: of viscous friction by 5 %, of dry friction by 2 %.

    Spreads that the recordings of either model show moderate the usual ones.
    """
    first, second = known(), known(scale=1.1, **fields)
    found = of_joint(first, second, FRICTION)
    speed = 2.0 * np.array([0.1, 0.3, 0.6, 1.0])
    size = np.sqrt(np.mean((2.0 * speed + 3.0)**2))
    assert (found.before, found.size, found.most) == pytest.approx(
        (size, 0.1 * size, 0.1 * size), rel=1e-6)
    share = np.sqrt((1.0 + 1.1**2) / (viscous**-2 + 0.02**-2))
    assert found.half_interval == pytest.approx(1.96 * share * size, rel=1e-3)


@pytest.mark.parametrize(('ends', 'others', 'pose'), [
    ((0.0, 1.0), (1.0, 1.5), 1.0), ((0.0, 1.0), (2.0, 3.5), 1.5), ((2.0, 3.5), (0.0, 1.0), 1.5)])
def test_weight_is_compared_in_poses_of_both_ranges(ends, others, pose):
    """Without common poses, halfway between them."""
    first, second = known(ends=ends), known(ends=others, scale=1.2)
    still = np.zeros((1, 3))
    weight = first.inverse(np.full((1, 3), pose), still, still)[0]
    found = [one for one in differences(first, second) if one.effect == WEIGHT]
    assert [one.before for one in found] == pytest.approx(np.abs(weight), rel=1e-9)
    assert [one.most for one in found] == pytest.approx(0.2 * weight, rel=1e-9)


@pytest.mark.filterwarnings('ignore::robot_dynid.errors.RefusedJointWarning')
def test_units_are_those_of_the_joint():
    own = known('stanford_arm')
    joints = own.joints[1:3]  # the first of them turns, the second slides
    refused = replace(own, not_identified=tuple(j for j in own.joints if j not in joints))
    assert [(d.joint, d.effect, d.unit) for d in differences(own, refused)] == [
        (joint, effect, unit) for joint, units in zip(joints, (
            ('N m', 'N m', 'kg m^2'), ('N', 'N', 'kg')), strict=True)
        for effect, unit in zip((WEIGHT, FRICTION, INERTIA), units, strict=True)]
