"""Slow training: no law adds open parameters, and what is outside the training is marked."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml
from identified_models import unprotected
from tolerances import EXTRAPOLATED

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.friction import law_from
from robot_dynid.identification.identify import identify
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import RANGE_MARGIN, Extent, Trained
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog, Samples
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
RATE, SECONDS, SLOW = 100.0, 25.0, 0.1


def recording(seed, speed):
    """Return a noisy recording at a share of the highest speed; friction is Stribeck's."""
    rng, truth = np.random.default_rng(seed), load_truth(ROBOT)
    trajectory = random_fourier(
        motion_limits(ROBOT).scaled(0.9, speed), FourierOptions(SECONDS, 8), rng)
    time = np.arange(round(SECONDS * RATE)) / RATE
    motion = trajectory.sample(time)
    q, qd, qdd = motion.position, motion.velocity, motion.acceleration
    fading = 1.5 - 0.5 * np.tanh(np.abs(qd) / 0.1)
    effort = inverse_dynamics(ROBOT, q, qd, qdd) + truth.rotor_inertia * qdd \
        + truth.viscous * qd + truth.coulomb * np.tanh(qd / 0.01) * fading
    effort += 0.1 * effort.std(axis=0) * rng.standard_normal(q.shape)
    return RawLog(f'recording {seed}', ROBOT.joints, time,
                  q + 1e-6 * rng.standard_normal(q.shape),
                  velocity=qd + 1e-3 * rng.standard_normal(q.shape), effort=effort)


@pytest.fixture(scope='module', params=[100, 200])
def slow(request):
    """Return a seed and what is identified from its slow motion."""
    return request.param, identify(ROBOT, [recording(request.param, SLOW)])


def test_no_law_adds_parameters_that_the_data_leaves_open(slow):
    _, result = slow
    left_open = {name for name in result.estimate.not_excited if name.startswith('f')}
    assert left_open <= {f'f0{j}' for j in (1, 2, 3)}, result.model.structure.friction


def test_prediction_at_ten_times_the_speed_does_not_explode(slow):
    seed, result = slow
    found = validate(result.model, [recording(seed + 2, 1.0)])
    errors = [score.relative_error for score in found.model['all'].values()]
    assert max(errors) < EXTRAPOLATED
    text = ' '.join(found.warnings)
    assert all(f'{name} exceeds the training range: joint_1 by up to' in text
               for name in ('position', 'velocity', 'acceleration'))
    (trace,) = found.traces
    fastest = {one.joint: one for one in trace.outside if one.quantity == 'velocity'}
    low, high = fastest['joint_1'].trained
    speed = recording(seed + 2, 1.0).velocity[:, 0]
    beyond = np.maximum(low - speed, speed - high)
    assert fastest['joint_1'].beyond == pytest.approx(beyond.max(), abs=0.02)
    assert fastest['joint_1'].share == pytest.approx(np.mean(beyond > 0.0), abs=0.05)


def test_training_itself_is_inside(slow):
    seed, result = slow
    assert not any(t.outside for t in result.training.traces)
    assert not any('outside what' in text for text in result.warnings)
    ranges = result.model.trained.quantities
    log = recording(seed, SLOW)
    for name in ('position', 'velocity'):
        low, high = ranges[name].T
        np.testing.assert_allclose(low, getattr(log, name).min(axis=0), rtol=0.0, atol=0.01)
        np.testing.assert_allclose(high, getattr(log, name).max(axis=0), rtol=0.0, atol=0.01)


def test_marks_are_kept_in_the_file_and_older_files_have_none(slow):
    _, result = slow
    model = result.model
    q, qd = np.zeros((3, 3)), np.array([[0.0] * 3, [0.05, 0.0, -5.0], [5.0, 0.0, 0.0]])
    expected = [[False] * 3, [False, False, True], [True, False, False]]
    again = IdentifiedModel.from_yaml(model.to_yaml())
    for one in (model, again):
        np.testing.assert_array_equal(one.outside(q, qd), expected)
        np.testing.assert_array_equal(one.outside(q[2], qd[2]), expected[2])
        assert one.outside(q, 0.0 * qd, np.full((3, 3), 50.0)).all()
    content = yaml.safe_load(unprotected(model.to_yaml()))
    del content['trained']
    for settings in content['blocks']['friction']['settings']:
        settings.pop('speeds', None)
    old = IdentifiedModel.from_yaml(yaml.safe_dump(content, sort_keys=False))
    assert not old.outside(q, qd).any()
    inside = np.full((1, 3), 0.05)
    np.testing.assert_allclose(old.friction(inside, inside), model.friction(inside, inside))
    damaged = content | {'trained': {'joint_1': {'position': [1.0, -1.0]}}}
    with pytest.raises(Exception, match='damaged'):
        IdentifiedModel.from_yaml(yaml.safe_dump(damaged, sort_keys=False))


def test_whole_turns_are_no_excess_of_joints_without_limits():
    trained = Trained({'position': np.array([[-1.0, 0.5]] * 3)})
    q = np.array([[0.2, 0.2 + 2.0 * np.pi, 0.2 - 4.0 * np.pi], [1.0, -1.5, 1.0 + 2.0 * np.pi]])
    limits = replace(ROBOT.limits, lower=np.array([np.nan, -1.9, np.nan]),
                     upper=np.array([np.nan, 1.9, np.nan]))
    np.testing.assert_array_equal(
        trained.outside(replace(ROBOT, limits=limits), {'position': q}),
        [[False, True, False], [True] * 3])
    held, free = (trained.excesses(replace(ROBOT, limits=limits), {'position': one})
                  for one in (q[:1], np.array([[6.1, 0.0, 0.4 - 2.0 * np.pi]])))
    assert [(one.joint, one.beyond) for one in held] == [
        ('joint_2', pytest.approx(2.0 * np.pi - 0.3))]
    assert free == ()
    far = Trained({'position': np.array([[6.0, 12.0]] * 3)})
    near = np.array([[6.1, 5.85, 6.1 + 2.0 * np.pi], [11.9, 5.85, 11.9 - 4.0 * np.pi]])
    np.testing.assert_array_equal(far.outside(replace(ROBOT, limits=limits), {'position': near}),
                                  [[False, True, False]] * 2)
    little = np.array([[0.5 + 0.9 * RANGE_MARGIN * 1.5, 0.0, 0.0]])
    assert trained.outside(ROBOT, {'position': little})[0, 0]
    assert trained.warnings(ROBOT, {'position': little}) == ()


@pytest.mark.parametrize(('limit', 'outside'), [
    (2.0 * np.pi, False), (2.8, False), (1.9, False), (3.1, True)],
    ids=['two turns', 'recorded beyond', 'recorded far beyond', 'less than a turn'])
def test_whole_turns_are_no_excess_of_joints_whose_driver_wraps(limit, outside):
    """Of a joint with limits wider than a turn, or recorded beyond them as one without is."""
    trained = Trained({'position': np.array([[1.5, 4.7 if limit < 3.0 else 3.1]] * 3)})
    limits = replace(ROBOT.limits, lower=np.full(3, -limit), upper=np.full(3, limit))
    q = np.full((1, 3), 2.0 - 2.0 * np.pi)
    assert trained.outside(replace(ROBOT, limits=limits), {'position': q}).all() == outside


def test_several_recordings_know_the_widest_range_and_the_longest_time():
    def extent(low, high, seconds, warm=True):
        ends = np.array([[low, high]] * 3)
        return Extent({'position': ends}, 2.0 * ends, 10.0 * ends if warm else None, seconds)

    for parts in ([extent(-1.0, 2.0, 60.0), extent(-3.0, 1.0, 20.0)],
                  [extent(-3.0, 1.0, 20.0), extent(-1.0, 2.0, 60.0)]):
        found = Extent.merged(parts)
        np.testing.assert_array_equal(found.quantities['position'], [[-3.0, 2.0]] * 3)
        assert found.of_axis(1) == {
            'speeds': (-6.0, 4.0), 'longest': 60.0, 'temperatures': (-30.0, 20.0)}
    short = Extent.merged([extent(-1.0, 2.0, 0.5)])
    assert short.of_axis(2)['longest'] == 0.5
    assert 'longest' not in Extent.merged([extent(-1.0, 2.0, 0.0)]).of_axis(2)
    cold = Extent.merged([extent(-1.0, 2.0, 60.0), extent(-3.0, 1.0, 20.0, warm=False)])
    assert cold.temperatures is None


def test_excesses_are_in_the_unit_of_their_joint():
    robot = load_robot('stanford_arm')
    trained = Trained({'velocity': np.array([[-1.0, 1.0]] * robot.n)})
    found = trained.excesses(robot, {'velocity': np.full((1, robot.n), 1.5)})
    units = {one.joint: one.unit for one in found}
    assert units == {joint: 'm/s' if kind == PRISMATIC else 'rad/s'
                     for joint, kind in zip(robot.joints, robot.types)}
    assert set(units.values()) == {'m/s', 'rad/s'}


@pytest.mark.parametrize('verb', ['inverse', 'forward'])
def test_commands_say_what_is_outside(slow, verb, tmp_path, capsys):
    _, result = slow
    model, states = tmp_path / 'm.yaml', tmp_path / 's.csv'
    result.model.save(model)
    third = 'acceleration' if verb == 'inverse' else 'effort'
    columns = [f'{name}.{joint}' for name in ('position', 'velocity', third)
               for joint in ROBOT.joints]
    for speed, told in ((4.0, True), (0.0, False)):
        values = [0.01] * 3 + [speed] * 3 + [0.0] * 3
        if verb == 'forward':
            values[6:] = result.model.inverse([0.01] * 3, [speed] * 3, [0.0] * 3).tolist()
        states.write_text(f'{",".join(columns)}\n{",".join(map(str, values))}\n')
        assert main([verb, str(model), str(states)]) == 0
        said = capsys.readouterr().err.replace('\n', ' ')
        assert ('velocity exceeds the training range' in said) == told
        assert main([verb, str(model), str(states), '--json']) == 0
        warnings = json.loads(capsys.readouterr().out)['warnings']
        assert any('joint_2 by up to' in text for text in warnings) == told
    degrees = [0.01, 30.0, 0.01, *[0.0] * 6]
    states.write_text(f'{",".join(columns)}\n{",".join(map(str, degrees))}\n')
    assert main([verb, str(model), str(states), '--json']) == 0
    assert 'if these are degrees, give 0.5236 rad' in json.loads(
        capsys.readouterr().out)['warnings'][0]


def test_validate_lists_what_is_outside(slow, tmp_path, capsys):
    seed, result = slow
    model, fast = tmp_path / 'm.yaml', tmp_path / 'fast.csv'
    result.model.save(model)
    write_csv(fast, recording(seed + 2, 1.0))
    assert main(['validate', str(model), str(fast), '--json']) == 0
    (found,) = json.loads(capsys.readouterr().out)['outside'].values()
    assert {one['quantity'] for one in found} >= {'position', 'velocity', 'acceleration'}
    assert all(one['beyond'] > 0.0 and 0.0 < one['share'] <= 1.0 for one in found)


def test_laws_of_a_model_know_their_speeds(slow):
    _, result = slow
    for j, law in enumerate(result.model.structure.laws):
        known = getattr(law, 'speeds', None)
        assert known is None or known == tuple(result.model.trained.quantities['velocity'][j])
    assert replace(result.model, trained=Trained()).outside([0.0] * 3, [9.0] * 3).sum() == 0


def test_drift_of_a_recording_of_two_days_is_a_law() -> None:
    """The law is warm long before: its longest time is bounded, the recording is not."""
    extent = Extent({}, np.array([[-1.0, 1.0]]), None, 2e5)
    law = law_from('coulomb+drift', {}).within(extent.of_axis(0))
    assert law.settings()['drift']['longest'] == 1e5


@pytest.mark.parametrize(('velocity', 'beyond', 'share'), [
    ([0.0, 2.0, -1.0, 1.0], None, 0.0), ([0.0, 2.14, -1.14, 0.0], None, 0.5),
    ([2.16, 0.0, 2.1, 0.0], 0.16, 0.5), ([-1.2, 0.0, 0.0, 0.0], 0.2, 0.25)])
def test_excesses_are_more_than_a_twentieth_of_the_range(velocity, beyond, share) -> None:
    robot = load_robot('planar_3r')
    values = np.array(velocity)[:, None] * [0.0, 1.0, 0.0]
    trained = Trained({'velocity': np.tile([-1.0, 2.0], (3, 1))})
    found = trained.excesses(robot, {'velocity': values, 'effort': values, 'position': values[:0]})
    outside = trained.outside(robot, {'velocity': values, 'effort': values})
    assert outside[:, 1].mean() == share and not outside[:, [0, 2]].any()
    if beyond is None:
        assert found == ()
        return
    (one,) = found
    assert (one.joint, one.unit, one.trained) == ('joint_2', 'rad/s', (-1.0, 2.0))
    assert (one.beyond, one.share) == (pytest.approx(beyond), share)
    assert one.words == (f'joint_2 by up to {beyond:.3g} rad/s in {100 * share:.3g} % of the '
                         'samples (trained from -1 to 2)')


def test_an_extent_has_the_ends_of_all_quantities_and_of_coupled_axes() -> None:
    row = np.array([0.0, -0.5, 2.0])
    robot = replace(ROBOT, drive=replace(ROBOT.drive, coupling=np.array(
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], row])))
    rng = np.random.default_rng(1)
    q, qd, qdd, warm, effort = rng.normal(size=(5, 9, 3))
    qd[:, 0] = 0.3 + np.abs(qd[:, 0])
    samples = Samples(robot.joints, 3.0 + 0.5 * np.arange(9.0), q, qd, qdd, effort=effort,
                      temperature=warm, began=1.0)
    found = Extent.of(robot, samples)
    for name, values in (('position', q), ('acceleration', qdd), ('effort', effort),
                         ('temperature', warm)):
        np.testing.assert_array_equal(found.quantities[name].T, [values.min(axis=0),
                                                                 values.max(axis=0)])
    assert found.quantities['velocity'][0].tolist() == [0.0, qd[:, 0].max()]
    turning = np.column_stack([qd, qd @ row])
    np.testing.assert_allclose(found.speeds.T, [np.minimum(turning.min(axis=0), 0.0),
                                                np.maximum(turning.max(axis=0), 0.0)])
    shared = 0.2 * warm[:, 1] + 0.8 * warm[:, 2]
    assert found.temperatures is not None
    np.testing.assert_allclose(found.temperatures[3], [shared.min(), shared.max()])
    assert found.seconds == 6.0
    sensed = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(1,), torque_sensors=(1,)))
    assert 'effort' not in Extent.of(ROBOT, replace(samples, effort=None)).quantities
    place = [0, 1, 2, 1]
    moved = replace(samples, position=q[:, place], velocity=qd[:, place],
                    acceleration=qdd[:, place], temperature=None)
    assert set(Extent.of(sensed, moved).quantities) == {'position', 'velocity', 'acceleration'}


def test_poses_are_within_the_ranges_or_the_limits() -> None:
    ranges = np.array([[0.1, 0.2], [-3.0, -2.5], [7.0, 9.0]])
    for trained, (low, high) in (
            (Trained({'position': ranges}), ranges.T),
            (Trained(), ([-1.0, -np.pi, -np.pi], [0.5, np.pi, 2.0]))):
        limits = replace(ROBOT.limits, lower=np.array([-1.0, np.nan, -np.inf]),
                         upper=np.array([0.5, np.nan, 2.0]))
        poses = trained.poses(replace(ROBOT, limits=limits), 400)
        assert poses.shape == (400, 3)
        np.testing.assert_allclose(poses.min(axis=0), low, rtol=0.0, atol=0.1)
        np.testing.assert_allclose(poses.max(axis=0), high, rtol=0.0, atol=0.1)
        assert np.all((poses >= low) & (poses <= high))


@pytest.mark.parametrize(('change', 'says'), [
    ({'joint_3': None}, 'its joints or quantities'), ({'joint_1': {}}, 'its joints or quantities'),
    ({joint: {'colour': np.array([0.0, 1.0])} for joint in ROBOT.joints},
     'its joints or quantities'),
    ({'joint_2': {'position': np.array([0.0, 1.0, 2.0])}}, r'trained.joint_2.position must be'),
    ({'joint_2': {'position': np.array([1.0, 0.9])}}, r'trained.joint_2.position must be')])
def test_damaged_ranges_are_refused(change, says) -> None:
    whole = {joint: {'position': np.array([k, k])} for k, joint in enumerate(ROBOT.joints)}
    found = Trained.of(whole, ROBOT.joints)
    assert found.plain(ROBOT.joints)['joint_3'] == {'position': [2.0, 2.0]}
    content = {key: value for key, value in {**whole, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=says):
        Trained.of(content, ROBOT.joints)
    assert Trained.of(None, ROBOT.joints).quantities == {}
