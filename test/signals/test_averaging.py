"""Averaging over periods against a known motion: noise levels, derivatives, odd recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from identified_models import nominal_model
from tolerances import CUT_RECORDING, EXACT_PERIOD, NOISE_LEVEL

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError, UsageError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals import periodic
from robot_dynid.signals.averaging import Periodic, average, find_period
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.trajectories.fourier import FourierOptions, FourierTrajectory, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import RawLog, Samples, concatenate

DT, PERIOD = 0.005, 8.0
APPROACH, REST = 3.0, 1.2
WHOLE = Preprocessing(10.0, decimate=False, trim_rest=False)
POSITION_NOISE, EFFORT_NOISE = 1e-4, 0.2


@pytest.fixture(scope='module')
def robot():
    """Return a small robot with limits."""
    return load_robot('planar_3r')


def series(robot, periods, seed=0) -> FourierTrajectory:
    """Return ``periods`` of a random motion."""
    options = FourierOptions(PERIOD * periods, 4, periods)
    limits = replace(motion_limits(robot, LIMITS), joints=robot.joints)
    return random_fourier(limits, options, np.random.default_rng(seed))


LIMITS = {f'joint_{i}': {'position': [-1.5, 1.5], 'velocity': 3.0, 'acceleration': 10.0}
          for i in (1, 2, 3)}


def recording(robot, periods=5, seed=0, noise=1.0):
    """Return approach, rest, the periods, rest; and the true motion of its instants."""
    rng = np.random.default_rng(seed + 100)
    motion = series(robot, periods, seed)
    start = motion.sample(0.0).position[0]
    approach = QuinticMove(robot.joints, start + 0.5, start, APPROACH)
    time = np.arange(0.0, APPROACH + 2.0 * REST + motion.duration, DT)
    begin = APPROACH + REST
    position = np.where((time < begin)[:, None], approach.sample(time).position,
                        motion.sample(time - begin).position)
    effort = 3.0 * np.sin(position)
    log = RawLog('run', robot.joints, time,
                 position + noise * POSITION_NOISE * rng.standard_normal(position.shape), None,
                 effort + noise * EFFORT_NOISE * rng.standard_normal(position.shape))
    return log, motion, begin


def error(samples: Samples, motion: FourierTrajectory, begin: float) -> np.ndarray:
    """Return the root mean squares (3,) of the errors of q, qd, qdd at samples in the motion."""
    inside = (samples.time > begin + 0.1) & (samples.time < begin + motion.duration - 0.1)
    truth = motion.sample(samples.time[inside] - begin)
    return np.array([np.sqrt(np.mean((getattr(samples, k)[inside] - getattr(truth, k)) ** 2))
                     for k in ('position', 'velocity', 'acceleration')])


def shifted(samples: Samples, by: float) -> Samples:
    """Return the samples at ``by`` s later: a mean period begins at zero."""
    return replace(samples, time=samples.time + by)


def test_derivatives_of_a_period_are_exact(robot):
    motion = series(robot, 1)
    time = np.arange(0.0, PERIOD, DT)
    truth = motion.sample(time)
    found = periodic.motion(truth.position, 20.0, DT, np.zeros(3))
    for value, name in zip(found, ('position', 'velocity', 'acceleration'), strict=True):
        np.testing.assert_allclose(value, getattr(truth, name), rtol=0.0, atol=EXACT_PERIOD)
    late = motion.sample(time - 0.0123 + PERIOD * (time < 0.0123)).position
    np.testing.assert_allclose(periodic.undo_delay(late, 0.0123, DT), truth.position,
                               rtol=0.0, atol=EXACT_PERIOD)


def test_low_pass_is_that_of_long_recordings(robot):
    rng = np.random.default_rng(1)
    one = rng.standard_normal((800, 2))
    long = np.tile(one, (5, 1))
    from robot_dynid.signals.filters import zero_phase_low_pass
    expected = zero_phase_low_pass(long, 6.0, DT)[1600:2400]
    np.testing.assert_allclose(periodic.low_pass(one, 6.0, DT), expected,
                               rtol=0.0, atol=EXACT_PERIOD)


def test_mean_is_far_better_than_the_whole_recording(robot):
    log, motion, begin = recording(robot)
    mean = average(robot, log, Periodic(PERIOD))
    ours = error(shifted(prepare(robot, mean, WHOLE), mean.averaging.start), motion, begin)
    plain = error(prepare(robot, repair(robot, log), WHOLE), motion, begin)
    # four periods alone halve the noise; that nothing above the motion is differentiated does more
    assert np.all(ours < np.array([0.3, 0.1, 0.01]) * plain)


def test_noise_is_found_and_approach_left_out(robot):
    log, _, begin = recording(robot, periods=6)
    found = average(robot, log, Periodic(PERIOD)).averaging
    assert found.periods == 5 and found.period == PERIOD
    assert found.start == pytest.approx(begin + PERIOD, abs=0.1)
    assert found.position_noise == pytest.approx([POSITION_NOISE] * 3, rel=NOISE_LEVEL)
    assert found.effort_noise == pytest.approx([EFFORT_NOISE] * 3, rel=NOISE_LEVEL)
    samples = prepare(robot, average(robot, log, Periodic(PERIOD)), WHOLE)
    assert samples.noise == pytest.approx([EFFORT_NOISE / np.sqrt(5.0)] * 3, rel=NOISE_LEVEL)
    assert len(samples) == round(PERIOD / DT) and samples.part(slice(0, 9)).noise == samples.noise


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), jitter=st.floats(0.0, 0.4), clock=st.floats(-4e-4, 4e-4))
def test_jitter_gaps_and_another_clock(robot, seed, jitter, clock):
    log, motion, begin = recording(robot, seed=seed, noise=0.1)
    rng = np.random.default_rng(seed)
    late = np.clip(log.time + DT * jitter * rng.uniform(-1.0, 1.0, len(log.time)), 0.0, None)
    keep = np.ones(len(late), dtype=bool)
    at = int(rng.integers(int((begin + PERIOD) / DT), int((begin + 3.0 * PERIOD) / DT)))
    keep[at:at + 150] = False  # 0.75 s that the other periods have to fill
    truth = np.where((late < begin)[:, None], log.position,
                     motion.sample(late - begin).position)
    position = truth + 1e-5 * rng.standard_normal(truth.shape)
    position[rng.integers(0, len(late), 40), 1] = np.nan
    broken = RawLog('run', log.joints, (1.0 + clock) * late[keep], position[keep], None,
                    log.effort[keep])
    mean = average(robot, broken, Periodic(PERIOD))
    assert mean.averaging.period == pytest.approx((1.0 + clock) * PERIOD, abs=2e-5)
    samples = prepare(robot, mean, WHOLE)
    own = replace(samples, time=(samples.time + mean.averaging.start) / (1.0 + clock),
                  velocity=samples.velocity * (1.0 + clock),
                  acceleration=samples.acceleration * (1.0 + clock) ** 2)
    assert np.all(error(own, motion, begin) < [1e-4, 1e-4, 1e-3])


def test_period_is_found(robot):
    log, _, _ = recording(robot, periods=4)
    mean = average(robot, log, Periodic())
    assert mean.averaging.period == pytest.approx(PERIOD, abs=1e-4)
    assert mean.averaging.periods == 3
    assert 'repeats after' in mean.notes[-1]


@pytest.mark.parametrize('given_period', [7.0, 8.05, 4.0, 100.0])
def test_wrong_period_is_told_the_right_one(robot, given_period):
    log, _, _ = recording(robot)
    told = rf'the given period of {given_period:g} s .* 8(\.0\d*)? s'
    with pytest.raises(DataError, match=told) as raised:
        average(robot, log, Periodic(given_period))
    assert 'run' in str(raised.value)


def test_a_period_of_few_samples_is_none(robot):
    log, _, _ = recording(robot)
    step = float(np.median(np.diff(log.time)))
    for period in (0.011, 19.0 * step):
        with pytest.raises(DataError, match='less than 20 samples'):
            average(robot, log, Periodic(period))


def test_too_few_periods(robot):
    log, _, _ = recording(robot, periods=2)
    with pytest.raises(DataError, match=r'holds 2\S* periods of 8 s, .*first 1 .*warm_up: 0'):
        average(robot, log, Periodic(PERIOD))
    assert average(robot, log, Periodic(PERIOD, warm_up=0)).averaging.periods == 2
    once, _, _ = recording(robot, periods=1)
    with pytest.raises(DataError, match=r'for 1.0\d periods only.*no other period'):
        average(robot, once, Periodic(PERIOD))
    with pytest.raises(DataError, match='does not repeat: record at least 3'):
        average(robot, once, Periodic())


def test_a_part_that_no_period_has_measured(robot):
    log, _, begin = recording(robot)
    phase = np.mod(log.time - begin, PERIOD)
    position = log.position.copy()
    position[(phase > 2.0) & (phase < 2.5), 2] = np.nan
    with pytest.raises(DataError, match=r'no period has measured joint joint_3.*0\.495 s of 8 s'):
        average(robot, replace(log, position=position), Periodic(PERIOD))


def test_slow_first_pass_is_not_a_period(robot):
    log, _, begin = recording(robot, periods=4)
    rng = np.random.default_rng(0)
    time = np.arange(0.0, 2.0 * PERIOD, DT)
    slow = series(robot, 1).sample(0.5 * time).position
    both = np.concatenate([slow + POSITION_NOISE * rng.standard_normal(slow.shape),
                           log.position[log.time >= begin]])
    whole = RawLog('run', log.joints, DT * np.arange(len(both)), both, None, 3.0 * np.sin(both))
    found = average(robot, whole, Periodic(PERIOD, warm_up=0)).averaging
    assert found.periods == 4 and found.start == pytest.approx(2.0 * PERIOD, abs=0.1)


def test_recipe_keys():
    assert recipe_from_dict({}).periodic is None
    assert recipe_from_dict({'period': 20}).periodic == Periodic(20.0, 1)
    assert recipe_from_dict({'period': 'auto', 'warm_up': 0}).periodic == Periodic(None, 0)
    for wrong, text in (({'period': -1.0}, 'positive'), ({'period': 'often'}, 'number'),
                        ({'warm_up': 0.5}, 'whole number'),
                        ({'period': 20.0, 'warm_up': -1}, 'at least 0')):
        with pytest.raises(UsageError, match=text):
            recipe_from_dict(wrong)


def test_noise_of_several_recordings_is_pooled():
    zeros = np.zeros((4, 1))
    one = Samples(('a',), np.arange(4.0), zeros, zeros, zeros, zeros, zeros, noise=(3.0,))
    assert concatenate([one, replace(one, noise=(4.0,))]).noise == pytest.approx([12.5**0.5])
    assert concatenate([one, replace(one, noise=None)]).noise is None


def test_identify_weighs_by_the_noise_of_the_mean(robot):
    model = nominal_model('planar_3r', rotors=0.0)
    log, motion, begin = recording(robot, periods=5, noise=0.0)
    rng = np.random.default_rng(3)
    true = motion.sample(log.time - begin)
    size = np.array([1.0, 0.1, 0.3])
    effort = model.inverse(true.position, true.velocity, true.acceleration)
    log = replace(log, effort=effort + size * rng.standard_normal(effort.shape),
                  position=log.position + 1e-5 * rng.standard_normal(effort.shape))
    fixed = Recipe(cutoff=20.0, ramp_width=0.05, effort_lag=0.0, friction='coulomb', ripple='none')
    result = identify(model.robot, [log], 'wls', replace(fixed, period=PERIOD))
    assert result.experiment.information.noise == pytest.approx(size / 2.0, rel=NOISE_LEVEL)
    (told,) = result.model.record.averaging
    assert (told.periods, told.period) == (4, PERIOD)
    assert told.effort_noise == pytest.approx(size, rel=NOISE_LEVEL)
    once = identify(model.robot, [log], 'wls', fixed)
    truth = model.values
    off = [np.sqrt(np.mean(((r.model.values - truth) / r.estimate.std) ** 2))
           for r in (result, once)]
    assert off[0] < 2.0  # the deviations stay honest
    assert np.linalg.norm(result.model.values - truth) < np.linalg.norm(once.model.values - truth)


def test_command_and_report_show_the_noise(robot, tmp_path, capsys):
    log, _, _ = recording(robot, periods=4)
    write_csv(tmp_path / 'run.csv', log)
    (tmp_path / 'recipe.yaml').write_text(
        f'period: {PERIOD}\ncutoff: 20\neffort_lag: 0\nfriction: coulomb\n')
    arguments = ['identify', 'run.csv', '--robot', 'planar_3r', '--recipe', 'recipe.yaml',
                 '--out', 'm.yaml', '--report', 'r.html', '--accept-partial',
                 '--accept', 'effort_scale', '--verbose']
    # these efforts are those of no arm: joints are refused
    assert main([str(tmp_path / a) if '.' in a else a for a in arguments]) == 1
    assert 'noise of one period and of the mean' in capsys.readouterr().out
    assert f'run.csv: 3 periods of {PERIOD:g} s averaged' in (tmp_path / 'r.html').read_text()
    (tmp_path / 'recipe.yaml').write_text('period: 5\n')
    assert main([str(tmp_path / a) if '.' in a else a for a in arguments]) == 1
    assert 'nearest period is 8' in capsys.readouterr().err


def test_a_mean_period_of_currents_becomes_torque_by_the_gains(robot):
    gains = np.array([10.0, -2.0, 0.5])
    amps = replace(robot, drive=replace(robot.drive, kind='current', gains=gains))
    log, _, _ = recording(robot, periods=3)
    as_it_is, scaled = (prepare(one, average(one, log, Periodic(PERIOD)), WHOLE)
                        for one in (robot, amps))
    for name in ('measured', 'effort'):
        np.testing.assert_allclose(getattr(scaled, name), gains * getattr(as_it_is, name))
    np.testing.assert_allclose(scaled.noise, np.abs(gains) * as_it_is.noise)


def test_a_mean_period_has_no_ends(robot):
    """Friction at the first instant knows the end of the period before, wherever it is cut."""
    log, _, _ = recording(robot, periods=4, noise=0.0)
    mean = average(robot, log, Periodic(PERIOD))
    model = nominal_model('planar_3r')
    settings = Preprocessing(4.0, decimate=False, trim_rest=False)
    (part,), count = mean.parts, len(mean.parts[0].time)
    efforts = []
    for by in (0, count // 3):
        turned = replace(part, position=np.roll(part.position, by, axis=0),
                         effort=np.roll(part.effort, by, axis=0))
        samples = prepare(robot, replace(mean, parts=(turned,)), settings)
        assert len(samples) == count and samples.time[0] == part.time[0]
        efforts.append(np.roll(model.predicted(samples), -by, axis=0))
    apart = np.abs(efforts[0] - efforts[1]).max()
    assert apart < CUT_RECORDING * np.std(efforts[0])


def test_short_or_broken_motions_have_no_period() -> None:
    """A period takes two seconds at least, and a tenth of it more must show."""
    time = 0.01 * np.arange(600)
    motion = np.sin(np.outer(time, [2.0 * np.pi / 2.5, 2.0 * np.pi / 1.25]))
    whole = Samples(('a', 'b'), time, motion, motion, motion)
    assert find_period(whole) == 250
    for none in (replace(whole, starts=(0, 500)), whole.part(slice(0, 9)),
                 whole.part(slice(0, 60))):
        assert find_period(none) == 0


def test_harmonics_count_from_twenty_times_the_power_of_the_noise() -> None:
    power = np.array([[0.0, 0.0, 0.0], [42.0, 0.0, 0.0], [38.0, 21.0, 0.0], [0.0, 19.0, 0.0]])
    assert periodic.last_harmonic(power, np.array([2.0, 1.0, 1.0])) == [1, 2, 0]
    time = np.arange(64.0) / 64.0
    slow, fast = (size * np.cos(2.0 * np.pi * k * time)[:, None]
                  for size, k in ((2.0, 3), (0.1, 9)))
    for share, kept in ((0.95, True), (1.05, False)):
        # of 64 samples a wave has the power (32 * 0.1)^2, and noise 64 times its variance
        noise = np.array([np.sqrt(share * 3.2**2 / (64.0 * 20.0))])
        np.testing.assert_allclose(periodic.drop_noise(slow + fast, noise), slow + kept * fast,
                                   rtol=0.0, atol=1e-12)
        expected = periodic.motion(slow + kept * fast, 20.0, 1.0 / 64.0, np.zeros(1))
        for found, one in zip(periodic.motion(slow + fast, 20.0, 1.0 / 64.0, noise), expected,
                              strict=True):
            np.testing.assert_allclose(found, one, rtol=0.0, atol=1e-9)
    for one in periodic.motion(1.0 - 2.0 * (np.arange(64.0)[:, None] % 2), 20.0, 1.0 / 64.0,
                               np.zeros(1)):
        np.testing.assert_allclose(one, 0.0, rtol=0.0, atol=1e-9)
