"""Recordings in, identified model out: effort kinds, coupling, choices, messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from tolerances import COUPLED, NOISE_LEVEL

from robot_dynid.errors import Cancelled, DataError, UsageError
from robot_dynid.estimation import ESTIMATORS, Status
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.signals.averaging import repeatability
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.types import RawLog, Samples
from robot_dynid.validation.validate import Trace, Validation, joint_score, validate

DT = 0.004
FIXED = Recipe(cutoff=20.0, ramp_width=0.05, effort_lag=0.0, ripple='none')


def recording(model, seconds=20.0, seed=1, noise=0.01):
    """Return what a robot that obeys ``model`` reports on a rich motion, in N m."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, DT)
    n = model.robot.n
    q, qd, qdd = np.zeros((3, len(time), n))
    for _ in range(5):
        rate, phase = rng.uniform(0.5, 4.0, n), rng.uniform(0.0, 6.0, n)
        angle, size = time[:, None] * rate + phase, rng.uniform(0.2, 0.6, n)
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    effort = model.inverse(q, qd, qdd)
    effort = effort + noise * effort.std(axis=0) * rng.normal(size=effort.shape)
    return RawLog(f'run{seed}.csv', model.joints, time, q, qd, effort)


def with_kind(robot, kind, gains=None):
    """Return the robot with another kind of effort."""
    return replace(robot, drive=replace(robot.drive, kind=kind, gains=gains))


@pytest.fixture(scope='module')
def planar():
    """Return the true model of a small robot."""
    return nominal_model('planar_3r', rotors=0.0)


@pytest.mark.parametrize('method', [m for m in ESTIMATORS if m not in ('staged', 'elastic')])
def test_every_method_finds_the_model(planar, method):
    result = identify(planar.robot, [recording(planar)], method, FIXED)
    q, qd, qdd = np.random.default_rng(5).uniform(-1.0, 1.0, (3, 50, 3))
    expected = planar.inverse(q, qd, qdd)
    assert result.model.inverse(q, qd, qdd) == pytest.approx(
        expected, abs=0.03 * np.abs(expected).max())
    assert result.estimate.status is Status.OK and result.model.method == method
    assert result.model.record.recordings == ('run1.csv',)
    scores = validate(result.model, [recording(planar, seed=2)]).model['all']
    assert max(s.relative_error for s in scores.values()) < 0.03


def test_identify_chooses_and_records_all_open_settings(planar):
    stages = []
    result = identify(planar.robot, [recording(planar)],
                      progress=lambda stage, fraction: stages.append((stage, fraction)))
    assert len(result.choice.cutoffs) > 3 and result.choice.lag is not None
    assert result.choice.preprocessing.cutoff in [c for c, _ in result.choice.cutoffs]
    assert result.model.preprocessing == result.choice.preprocessing
    fractions = [f for _, f in stages]
    assert fractions == sorted(fractions) and fractions[0] >= 0.0 and fractions[-1] <= 1.0
    again = identify(planar.robot, [recording(planar)])
    assert again.model.to_yaml() == result.model.to_yaml()
    # samples near reversals count less in the fit, and in full in what is promised
    errors = np.array([result.training.model['all'][joint].rmse for joint in planar.joints])
    assert (result.held_out.promise >= errors).all()


def test_baseline_is_scored_on_motion_left_out_of_its_fit(planar):
    result = identify(planar.robot, [recording(planar)])
    of_fit = np.array([one.rmse**2 for one in result.training.control['all'].values()])
    assert (result.held_out.baseline.raw > of_fit).all()


def test_caller_can_stop(planar):
    def stop(stage, fraction):
        if fraction > 0.2:
            raise Cancelled('enough')

    with pytest.raises(Cancelled, match='enough'):
        identify(planar.robot, [recording(planar)], progress=stop)


def test_unknown_method_and_unstated_effort_are_refused(planar):
    with pytest.raises(UsageError, match="method 'magic': choose one of ols, wls"):
        identify(planar.robot, [recording(planar)], 'magic')
    with pytest.raises(UsageError, match=r'not stated.*torque, current, .*position_error'):
        identify(with_kind(planar.robot, ''), [recording(planar)])


def test_current_is_torque_over_gain(planar):
    gains = np.array([2.0, 5.0, 0.5])
    log = recording(planar)
    amps = replace(log, effort=log.effort / gains)
    torque = identify(planar.robot, [log], recipe=FIXED)
    current = identify(with_kind(planar.robot, 'current', gains), [amps], recipe=FIXED)
    assert current.model.values == pytest.approx(torque.model.values, rel=1e-6, abs=1e-9)
    with pytest.raises(Exception, match='needs drive_gains'):
        with_kind(planar.robot, 'current')


def test_gravity_compensated_effort_is_modelled_without_weight(planar):
    log = recording(planar)
    robot = with_kind(planar.robot, 'gravity_compensated_torque')
    without = replace(log, effort=log.effort - planar.gravity(log.position))
    result = identify(robot, [without], recipe=FIXED)
    torque = identify(planar.robot, [log], recipe=FIXED)
    assert len(result.model.names) < len(torque.model.names)
    assert not result.model.gravity(np.ones(3)).any()
    q, qd, qdd = np.random.default_rng(5).uniform(-1.0, 1.0, (3, 50, 3))
    expected = planar.inverse(q, qd, qdd) - planar.gravity(q)
    assert result.model.inverse(q, qd, qdd) == pytest.approx(
        expected, abs=0.03 * np.abs(expected).max())
    # stated wrongly, either way, the missing or surplus weight shows in the errors
    for wrong, recorded, factor in ((planar.robot, without, 3.0), (robot, log, 10.0)):
        with pytest.raises(DataError, match='gravity'):
            identify(wrong, [recorded], recipe=FIXED)
        other = identify(wrong, [recorded], recipe=replace(FIXED, accept=('gravity',)))
        assert other.held_out.score > result.held_out.score + np.log(factor)


def test_coupled_wrist_is_recovered():
    truth = nominal_model('tx40')
    own = {'fvm6': 0.616, 'fcm6': 1.95, 'fv5': 1.24, 'fv6': 0.034, 'fc5': 3.03, 'fc6': 0.282}
    values = truth.values.copy()
    for name, value in own.items():
        values[truth.names.index(name)] = value
    truth = replace(truth, values=values)
    result = identify(truth.robot, [recording(truth, 30.0)], recipe=FIXED)
    assert result.estimate.status is Status.OK
    found = result.model.standard
    for name, value in own.items():
        assert found[name] == pytest.approx(value, rel=COUPLED, abs=0.02)
    assert found['Iam6'] == pytest.approx(truth.standard['Iam6'], rel=COUPLED)
    without = replace(truth.robot, drive=replace(truth.robot.drive, coupling=None))
    plain = identify(without, [recording(truth, 30.0)], recipe=FIXED)
    for joint in ('joint_5', 'joint_6'):
        errors = [r.training.model['all'][joint].relative_error for r in (result, plain)]
        assert errors[0] < 0.2 * errors[1]


def test_rotors_can_be_left_out(planar):
    result = identify(planar.robot, [recording(planar)], recipe=replace(FIXED,
                                                                      rotor_inertia=False))
    assert not [n for n in result.model.reduction.standard if n.startswith('Ia')]


def test_repairs_show_in_the_warnings_and_in_the_model(planar):
    log = recording(planar)
    time, effort = log.time.copy(), log.effort.copy()
    time[2000:] += 3.0
    time[100] = time[99]
    effort[500, 1] = np.nan
    result = identify(planar.robot, [replace(log, time=time, effort=effort)], recipe=FIXED)
    for text in ('1 gap(s)', 'dropped 1 of', 'effort.joint_2: 1 values'):
        assert [w for w in result.warnings if text in w], text
    assert result.model.warnings == result.warnings


def test_thinning_keeps_the_fit(planar):
    from robot_dynid.estimation.experiment import Experiment
    from robot_dynid.signals.prepare import Preprocessing, prepare, repair

    repaired = repair(planar.robot, recording(planar))
    model = planar.structure.torque_model(planar.robot)
    fits = [ESTIMATORS['wls'].fit(Experiment.of(model, [
        prepare(planar.robot, repaired, Preprocessing(8.0, decimate=thin))]))
        for thin in (True, False)]
    change = fits[0].values - fits[1].values
    assert np.linalg.norm(change) < 2e-3 * np.linalg.norm(fits[1].values)
    assert np.sqrt(np.mean((change / fits[1].std) ** 2)) < 1.0


def test_several_recordings_are_better_than_one(planar):
    one = identify(planar.robot, [recording(planar, noise=0.1)], recipe=FIXED)
    logs = [recording(planar, seed=s, noise=0.1) for s in range(1, 5)]
    four = identify(planar.robot, logs, recipe=FIXED)
    assert four.model.record.samples > 3.9 * one.model.record.samples
    assert np.median(four.estimate.std / one.estimate.std) < 0.75


def test_too_little_data_is_refused(planar):
    log = recording(planar)
    short = replace(log, time=log.time[:40], position=log.position[:40],
                    velocity=log.velocity[:40], effort=log.effort[:40])
    with pytest.raises(DataError, match=r'too few|no stretch is longer'):
        identify(planar.robot, [short], recipe=replace(FIXED, cutoff=15.0))
    with pytest.raises((DataError, UsageError), match='no recording'):
        identify(planar.robot, [])


def test_dead_effort_is_refused(planar):
    log = recording(planar)
    with pytest.raises(DataError, match='zero throughout'):
        identify(planar.robot, [replace(log, effort=0.0 * log.effort)])


@pytest.mark.parametrize(('content', 'message'), [
    ({'cutof': 3.0}, 'unknown key cutof; choose from'),
    ({'cutoff': -1.0}, 'cutoff must be positive'),
    ({'cutoff': 'fast'}, "cutoff must be a finite number, is 'fast'"),
    ({'ramp_width': 0.0}, 'ramp_width must be positive'),
    ({'friction': 'magic'}, "friction 'magic': choose one of coulomb"),
    ({'rotor_inertia': 'no'}, 'rotor_inertia must be true or false'),
    ({'rate': float('nan')}, 'rate must be a finite'),
])
def test_impossible_recipes_are_refused(content, message):
    with pytest.raises(UsageError, match=message):
        recipe_from_dict(content)


def test_recipe_of_plain_values():
    assert recipe_from_dict({}) == Recipe()
    assert recipe_from_dict({'cutoff': 5, 'effort_lag': 0, 'rotor_inertia': False}) == Recipe(
        cutoff=5.0, effort_lag=0.0, rotor_inertia=False)


def test_cutoff_above_the_nyquist_frequency_is_refused(planar):
    with pytest.raises(UsageError, match='Nyquist'):
        identify(planar.robot, [recording(planar)], recipe=Recipe(cutoff=200.0))


def test_joint_scores_are_those_by_hand():
    measured = np.array([3.0, 1.0, 5.0, -1.0])  # root mean square 3, deviation root of 5
    found = joint_score(measured, measured - np.array([0.1, 0.1, 0.1, 0.4]))
    assert found.rmse == pytest.approx(np.sqrt((3 * 0.01 + 0.16) / 4))
    assert found.nrmse == pytest.approx(found.rmse / np.sqrt(5.0))
    assert found.relative_error == pytest.approx(found.rmse / 3.0)
    assert found.r2 == pytest.approx(1.0 - found.rmse**2 / 5.0)
    assert found.quartiles == pytest.approx((0.1, 0.1, 0.175)) and found.samples == 4
    assert found.outliers == 0.25  # 0.4 is 3 ranges above the upper quartile
    dead = joint_score(np.zeros(3), np.ones(3))
    assert dead.nrmse == np.inf and dead.r2 == -np.inf


def test_noise_and_what_the_robot_does_differently_are_told_apart(planar):
    rng = np.random.default_rng(6)
    time = np.arange(0.0, 8.0, DT)
    q = np.sin(np.outer(time, 0.5 * np.pi * np.arange(1.0, 4.0)))
    noise = np.array([0.1, 0.2, 0.3]) * rng.normal(size=q.shape)
    drift = np.array([0.3, 0.0, 0.1]) * (time[:, None] > 4.0)
    cutoff = 0.05 / DT
    smooth, passed = (zero_phase_low_pass(one, cutoff, DT) for one in (q + drift, noise))
    samples = Samples(planar.joints, time, q, q, q, effort=smooth + passed,
                      measured=q + drift + noise, cutoff=cutoff)
    robot, found = repeatability(samples)
    assert found == pytest.approx([0.1, 0.2, 0.3], rel=NOISE_LEVEL)
    assert robot[[0, 2]] == pytest.approx(np.array([0.3, 0.1]) / np.sqrt(2.0), rel=0.2)
    assert robot[1] < 0.05
    trace = Trace('a', time, q, q, q, time, robot, noise=found)
    twice = Validation({}, {}, (trace, replace(trace, repeatability=7.0 * robot)), ())
    assert twice.repeatability == pytest.approx(5.0 * robot)
    assert twice.noise == pytest.approx(found)


def test_junk_effort_is_noise_and_no_repeatability(planar):
    time = np.arange(0.0, 12.0, DT)
    q = np.sin(np.outer(time, 0.5 * np.pi * np.arange(1.0, 4.0)))
    junk = np.random.default_rng(7).normal(size=q.shape)
    cutoff = 0.05 / DT
    samples = Samples(planar.joints, time, q, q, q, measured=junk, cutoff=cutoff,
                      effort=zero_phase_low_pass(junk, cutoff, DT))
    robot, noise = repeatability(samples)
    assert (robot < 0.25).all()
    assert noise == pytest.approx(np.ones(3), rel=NOISE_LEVEL)


def test_control_row_has_nominal_links_and_fitted_friction(planar):
    heavier = planar.robot.with_nominal(1.3 * planar.robot.nominal)
    log = recording(planar)
    right = identify(planar.robot, [log], recipe=FIXED).training
    wrong = identify(heavier, [log], recipe=FIXED).training
    for joint in planar.joints:
        # the links are right, so nothing is left to learn; 30 % wrong shows in the control only
        assert right.control['all'][joint].rmse < 1.1 * right.model['all'][joint].rmse
        assert wrong.model['all'][joint].rmse == pytest.approx(right.model['all'][joint].rmse)
    assert wrong.control['all']['joint_1'].rmse > 3.0 * right.control['all']['joint_1'].rmse


def test_motion_and_rest_are_scored_apart(planar):
    log = recording(planar)
    still = 2000
    hold = [np.concatenate([c[:2500], np.repeat(c[2500:2501], still, axis=0), c[2500:]])
            for c in (log.position, log.velocity)]
    hold[1][2500:2500 + still] = 0.0
    effort = planar.inverse(hold[0], hold[1], np.zeros_like(hold[0]))
    time = DT * np.arange(len(effort))
    result = identify(planar.robot, [log], recipe=FIXED)
    scored = validate(result.model, [RawLog('hold', planar.joints, time, *hold, effort)])
    assert set(scored.model) == {'all', 'motion', 'rest', 'near reversals'}
    turning = scored.model['near reversals']['joint_1'].samples
    assert 0 < turning < scored.model['motion']['joint_1'].samples
    parts = [scored.model[s]['joint_1'].samples for s in ('motion', 'rest', 'all')]
    assert parts[0] + parts[1] == parts[2] and parts[1] > 0.25 * parts[2]
    assert scored.model['rest']['joint_1'].rmse < scored.model['motion']['joint_1'].rmse
    with pytest.raises(DataError, match='no recording to validate'):
        validate(result.model, [])
