"""signals/prepare.py: recordings with every flaw, repaired and prepared; every repair shows in the
notes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import (
    DT,
    JOINTS,
    effort_error,
    motion_errors,
    prepared,
    regular,
    smooth_motion,
    smooth_recording,
)
from tolerances import ENDS, RESAMPLED

from robot_dynid.errors import DataError, UsageError
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import (
    drop_stale_rows,
    fill_holes,
    resample_uniform,
    split_at_gaps,
    typical_step,
)
from robot_dynid.signals.filters import derivative
from robot_dynid.signals.prepare import (
    CUTOFFS,
    Preprocessing,
    Repaired,
    check_usable,
    grid_step,
    late_encoders,
    moving,
    prepare,
    repair,
)
from robot_dynid.types import RawLog, Samples, concatenate, take


@pytest.fixture(scope='module')
def robot():
    """Return a planar arm of three joints."""
    return load_robot('planar_3r')


@pytest.mark.parametrize('velocity', [True, False])
def test_clean_recording_comes_through(robot, velocity):
    samples, notes = prepared(robot, smooth_recording(regular(), velocity))
    assert notes == ()
    assert np.all(motion_errors(samples) < RESAMPLED)
    assert np.all(motion_errors(samples, 0.0) < ENDS)
    assert effort_error(samples) < RESAMPLED
    assert samples.measured is not None and samples.cutoff == 20.0


def test_jittery_stamps_are_resampled(robot):
    rng = np.random.default_rng(1)
    time = regular() + rng.uniform(-0.3, 0.3, len(regular())) * DT
    samples, _ = prepared(robot, smooth_recording(time))
    assert np.ptp(np.diff(samples.time)) < 1e-12
    assert np.all(motion_errors(samples) < [RESAMPLED, RESAMPLED, 20 * RESAMPLED])


def test_skipped_ticks_are_filled(robot):
    rng = np.random.default_rng(2)
    keep = rng.random(len(regular())) > 0.2
    keep[:2] = keep[-1] = True
    samples, notes = prepared(robot, smooth_recording(regular()[keep]))
    assert len(samples.starts) == 1
    assert not [n for n in notes if 'gap' in n]
    assert np.all(motion_errors(samples) < [RESAMPLED, RESAMPLED, 20 * RESAMPLED])


def test_stale_rows_in_motion_are_dropped_and_counted(robot):
    log = smooth_recording(regular())
    rows = np.arange(100, 4900, 50)
    arrays = {name: getattr(log, name).copy() for name in ('position', 'velocity', 'effort')}
    for values in arrays.values():
        values[rows] = values[rows - 1]
    samples, notes = prepared(robot, replace(log, **arrays))
    assert any(f'{len(rows)} stale rows' in n for n in notes)
    assert np.all(motion_errors(samples) < [RESAMPLED, RESAMPLED, 20 * RESAMPLED])


def test_repeated_rows_at_rest_stay(robot):
    log = smooth_recording(regular(), rest=2.0)
    _, notes = prepared(robot, log)
    assert not [n for n in notes if 'stale' in n]


def test_gap_splits_the_recording(robot):
    time = regular()
    time = time[(time < 3.0) | (time > 4.0)]
    samples, notes = prepared(robot, smooth_recording(time))
    assert any('1 gap(s)' in n and 'longest 1' in n for n in notes)
    assert len(samples.starts) == 2
    assert np.all(motion_errors(samples) < ENDS)
    assert not np.any((samples.time > 3.0) & (samples.time < 4.0))
    first, second = samples.segments
    assert samples.time[first][-1] < 3.0 < 4.0 < samples.time[second][0]


def test_backward_and_duplicate_and_infinite_stamps_are_dropped(robot):
    time = regular()
    spoiled = time.copy()
    spoiled[500] = spoiled[499]
    spoiled[1500:1503] = spoiled[1490]
    spoiled[2500] = np.nan
    spoiled[2600] = -np.inf
    samples, notes = prepared(robot, replace(smooth_recording(time), time=spoiled))
    assert any('dropped 6 of 5000 rows' in n for n in notes)
    assert np.all(motion_errors(samples) < [RESAMPLED, RESAMPLED, 20 * RESAMPLED])


def test_stamp_far_ahead_costs_the_rows_it_overtakes_and_says_so(robot):
    time = regular().copy()
    time[-1] = 1e6
    _, notes = prepared(robot, replace(smooth_recording(regular()), time=time))
    assert any('gap(s)' in n for n in notes)


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_cells_that_are_not_finite_are_filled_and_named(robot, bad):
    log = smooth_recording(regular())
    position, effort = log.position.copy(), log.effort.copy()
    position[1000, 1] = effort[2000:2003, 2] = bad
    samples, notes = prepared(robot, replace(log, position=position, effort=effort))
    assert any('position.joint_2: 1 values' in n for n in notes)
    assert any('effort.joint_3: 3 values' in n for n in notes)
    assert np.isfinite(samples.effort).all()
    assert motion_errors(samples)[0] < 1e-3


def test_channel_without_any_finite_value_is_refused(robot):
    log = smooth_recording(regular())
    effort = log.effort.copy()
    effort[:, 1] = np.nan
    with pytest.raises(DataError, match=r'run\.csv: effort\.joint_2 holds no finite value'):
        repair(robot, replace(log, effort=effort))


def test_missing_and_dead_effort_are_refused(robot):
    log = smooth_recording(regular())
    with pytest.raises(DataError, match='holds no effort; record'):
        repair(robot, replace(log, effort=None))
    effort = log.effort.copy()
    effort[:, [0, 2]] = 0.0
    with pytest.raises(DataError, match='zero throughout for joint_1, joint_3'):
        repair(robot, replace(log, effort=effort))


def test_joints_of_another_robot_are_refused(robot):
    log = replace(smooth_recording(regular()), joints=('a', 'b', 'c'))
    with pytest.raises(UsageError, match='not those of planar_3r'):
        repair(robot, log)


@pytest.mark.parametrize('rows', [0, 1])
def test_recording_of_no_length_is_refused(robot, rows):
    log = smooth_recording(regular())
    cut = replace(log, time=log.time[:rows], position=log.position[:rows],
                  velocity=log.velocity[:rows], effort=log.effort[:rows] + 1.0)
    with pytest.raises(DataError, match=r'run\.csv'):
        prepared(robot, cut)


def test_recording_shorter_than_the_filter_is_refused(robot):
    with pytest.raises(DataError, match='no stretch is longer than'):
        prepared(robot, smooth_recording(regular(0.3)), cutoff=2.0)


def test_wrong_shapes_are_refused():
    with pytest.raises(DataError, match='effort has shape'):
        RawLog('x', JOINTS, np.zeros(5), np.zeros((5, 3)), effort=np.zeros((5, 2)))


def test_rest_at_the_ends_is_trimmed(robot):
    log = smooth_recording(regular(), rest=2.0)
    samples, _ = prepared(robot, log)
    assert 1.8 < samples.time[0] < 2.6 and 7.4 < samples.time[-1] < 8.2
    whole, _ = prepared(robot, log, trim_rest=False)
    assert whole.time[0] < 0.1 and whole.time[-1] > 9.9
    still = moving(whole)
    assert still[0] == still[-1] == 0.0 and still[len(still) // 2] == 1.0


def test_recording_wholly_at_rest_stays_whole(robot):
    time = regular()
    log = RawLog('rest.csv', JOINTS, time, np.full((len(time), 3), 0.4),
                 np.zeros((len(time), 3)), np.ones((len(time), 3)))
    samples, _ = prepared(robot, log)
    assert samples.time[-1] - samples.time[0] > 9.9
    assert not moving(samples).any()
    assert samples.velocity == pytest.approx(0.0, abs=1e-12)


def test_thinning_takes_every_nth_sample(robot):
    log = smooth_recording(regular())
    thin, _ = prepared(robot, log, cutoff=5.0)
    full, _ = prepared(robot, log, cutoff=5.0, decimate=False)
    stride = round((thin.time[1] - thin.time[0]) / DT)
    assert stride == int(1.0 / (8.0 * 5.0 * DT)) > 5
    for name in ('time', 'position', 'velocity', 'acceleration', 'effort', 'measured'):
        assert np.array_equal(getattr(thin, name), getattr(full, name)[::stride])


def test_rate_resamples(robot):
    log = smooth_recording(regular())
    whole = Preprocessing(20.0, 400.0, decimate=False)
    samples = prepare(robot, repair(robot, log, rate=400.0), whole)
    assert np.diff(samples.time) == pytest.approx(0.0025)
    with pytest.raises(UsageError, match='omit rate'):
        repair(robot, log, rate=100.0)
    with pytest.raises(UsageError, match='more than 20 times as fine'):
        repair(robot, log, rate=1e5)


def test_current_becomes_torque_by_the_gains():
    robot = load_robot('ur10e')
    time = regular()
    wave = np.sin(np.outer(time, np.arange(1.0, 7.0)))
    log = RawLog('amps', robot.joints, time, wave, None, np.ones_like(wave))
    samples = prepare(robot, repair(robot, log), Preprocessing(20.0))
    assert samples.measured == pytest.approx(np.tile(robot.drive.gains, (len(samples), 1)))
    assert samples.effort == pytest.approx(samples.measured)


def test_typical_step_is_a_median_over_recordings():
    logs = [smooth_recording(regular()), smooth_recording(np.arange(0.0, 1.0, 0.1))]
    assert typical_step(logs) == pytest.approx(DT)


def test_parts_and_joined_samples_keep_their_segments(robot):
    samples, _ = prepared(robot, smooth_recording(regular()))
    joined = concatenate([samples.part(slice(0, 100)), samples.part(slice(200, 260))])
    assert joined.starts == (0, 100) and len(joined) == 160
    assert joined.part(slice(90, 120)).starts == (0, 10)
    assert np.array_equal(joined.position[100:], samples.position[200:260])
    assert derivative(joined.position[:100], DT).shape == (100, 3)


def test_positions_between_stamps_follow_a_cubic_spline():
    """A straight line between samples would be 5e-6 off and put steps into the velocity."""
    time = regular()
    late = np.where(np.arange(len(time)) % 2, time + 0.3 * DT, time)
    even = resample_uniform(smooth_recording(late), DT)
    inside = slice(10, -10)
    assert even.position[inside] == pytest.approx(smooth_motion(even.time)[0][inside], abs=1e-9)


@pytest.mark.parametrize(('pause', 'parts'), [(0.2, 1), (0.45, 1), (0.6, 2)])
def test_slow_recordings_may_pause_for_ten_steps(pause, parts):
    time = np.arange(0.0, 5.0, 0.05)
    log = smooth_recording(np.where(time > 2.0, time + pause - 0.05, time))
    found, notes = split_at_gaps(log, 0.05)
    assert (len(found), len(notes)) == (parts, parts - 1)


def test_a_reference_that_begins_later_is_no_hole():
    """The controller publishes less often than joint states come."""
    log = smooth_recording(regular())
    reference = log.position + 0.01
    reference[:3] = reference[-2:] = np.nan
    filled, notes = fill_holes(replace(log, reference_position=reference))
    assert notes == [] and np.isfinite(filled.reference_position).all()
    reference[50, 0] = np.nan
    _, notes = fill_holes(replace(log, reference_position=reference))
    assert len(notes) == 1 and ': 1 values that are not finite' in notes[0]


def test_rows_are_stale_even_where_the_reference_goes_on():
    log = smooth_recording(regular())
    reference = log.position + 0.01
    for values in (log.position, log.velocity, log.effort):
        values[100] = values[99]
    kept, notes = drop_stale_rows(replace(log, reference_position=reference))
    assert len(kept.time) == len(log.time) - 1 and '1 stale rows' in notes[0]


def test_fewer_than_four_uneven_rows_are_no_motion() -> None:
    time = np.array([0.0, 0.1, 0.25, 0.3])
    log = RawLog('short', ('a',), time, time[:, None])
    assert len(resample_uniform(take(log, slice(0, 3)), 0.05).time) == 0
    np.testing.assert_allclose(resample_uniform(log, 0.05).time, 0.05 * np.arange(7), rtol=0.0,
                               atol=1e-12)


@pytest.mark.parametrize(('rate', 'step'), [
    (None, DT), (500.0, DT), (334.0, 1.0 / 334.0), (333.0, 'is below the rate of the recording'),
    (9999.0, 1.0 / 9999.0), (10001.0, 'is more than 20 times as fine as the recording')])
def test_a_grid_is_neither_coarse_nor_far_too_fine(rate, step):
    """Steps up to half as long again as those of the recording, and to a twentieth of them."""
    log = smooth_recording(regular(1.0))
    if isinstance(step, str):
        with pytest.raises(UsageError, match=rf'a grid of {rate:g} Hz {step} \(500 Hz\)'):
            grid_step(log, rate)
    else:
        assert grid_step(log, rate) == pytest.approx(step)


def test_joints_move_above_two_hundredths_of_their_peak_and_a_milliradian_per_second():
    speed = np.array([[1.0, 9e-4], [0.021, 0.0], [0.019, 1e-3], [0.0, 1.1e-3], [-0.021, 0.0]])
    still = np.zeros_like(speed)
    samples = Samples(('a', 'b'), np.arange(5.0), still, speed, still)
    assert moving(samples).tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]


def test_cutoffs_that_are_tried_are_about_half_as_high_again_from_two_hertz_on():
    ratios = np.divide(CUTOFFS[1:], CUTOFFS[:-1])
    assert CUTOFFS[0] == 2.0 and CUTOFFS[-1] == 110.0
    assert np.all((ratios > 1.4) & (ratios < 1.6))


def test_cutoffs_are_limited_by_the_rate_and_delays_by_joint():
    settings = Preprocessing(40.0, encoder_delays=(0.0, 2e-3, -1e-3))
    assert late_encoders(settings.encoder_delays) == [(1, 2e-3), (2, -1e-3)]
    for step, cutoff in ((0.01, 30.0), (0.005, 40.0)):
        assert settings.limited_to(Repaired('run', (), step, ())).cutoff == pytest.approx(cutoff)


@pytest.mark.parametrize(('late', 'told'), [(0.04 * DT, False), (0.06 * DT, True)])
def test_velocity_that_is_late_by_a_twentieth_of_a_step_is_corrected(robot, late, told):
    _, velocity, _ = smooth_motion(regular() - late)
    notes = repair(robot, replace(smooth_recording(regular()), velocity=velocity)).notes
    assert any('later than position; corrected' in note for note in notes) is told


@pytest.mark.parametrize(('key', 'low', 'high'), [
    ('cutoff', 0.01, 1e4), ('effort_lag', -10.0, 10.0), ('rate', 1.0, 1e5),
    ('encoder_delays', -0.1, 0.1)])
def test_settings_of_preprocessing_have_limits(key, low, high):
    for edge, beyond in ((low, low - 0.1 * abs(low)), (high, 1.1 * high)):
        recipe_from_dict({key: {'j': edge} if key == 'encoder_delays' else edge})
        with pytest.raises(UsageError, match=key):
            recipe_from_dict({key: {'j': beyond} if key == 'encoder_delays' else beyond})


@pytest.mark.parametrize(('findings', 'hint'), [
    ((), ''), (('position: one; two', 'effort: empty in all messages; it is on /currents'),
               '; it is on /currents')])
def test_missing_effort_is_reported_with_the_hint_of_its_reader(robot, findings, hint):
    log = replace(smooth_recording(regular(1.0)), effort=None, findings=findings)
    with pytest.raises(DataError) as raised:
        check_usable(robot, log)
    assert str(raised.value) == (
        'run.csv: holds no effort; record JointState.effort, or name a topic that carries it'
        f'{hint}')


def test_rows_without_any_complete_effort_are_scored_by_interpolation(robot):
    log = smooth_recording(regular(2.0))
    log.effort[::2, 0] = log.effort[1::2, 2] = np.nan
    repaired = repair(robot, log)
    assert repaired.notes[-1] == (
        'run.csv: no row holds the effort of all joints at once; scored against interpolated '
        'effort, so errors look smaller than they are')
    (efforts,) = repaired.measured
    np.testing.assert_array_equal(efforts.time, log.time)


def test_the_lag_of_velocity_is_that_of_the_longest_part(robot):
    """Noise of a short part before a gap hides no delay."""
    time = regular()
    time = time[(time < 0.5) | (time > 2.0)]
    log = smooth_recording(time)
    _, late, _ = smooth_motion(time - 0.004)
    late[time < 0.5] = -3.0 * late[time < 0.5]
    notes = repair(robot, replace(log, velocity=late)).notes
    (note,) = [one for one in notes if 'velocity' in one]
    assert note.startswith('run.csv: velocity is 4.01 +- 0.04') and note.endswith(
        ' ms later than position; corrected')


@pytest.mark.parametrize(('seconds', 'words'), [(1.5, ''), (0.9, 'no stretch is longer than 1 s, '
                                                 'twice the edge the 4 Hz filter needs')])
def test_a_stretch_in_motion_is_longer_than_twice_the_edge(robot, seconds, words):
    log = smooth_recording(regular(seconds))
    log = replace(log, position=log.position + np.outer(log.time, [1.0, 1.0, 1.0]), velocity=None)
    if not words:
        samples = prepare(robot, repair(robot, log), Preprocessing(4.0, decimate=False))
        assert samples.time[0] == pytest.approx(0.5, abs=DT)
        assert samples.time[-1] == pytest.approx(log.time[-1] - 0.5, abs=DT)
        return
    with pytest.raises(DataError, match=words):
        prepare(robot, repair(robot, log), Preprocessing(4.0))
