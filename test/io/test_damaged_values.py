"""signals/plausible.py: finite numbers that no robot can have measured: named, dropped, and
without a trace left."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import START, raw, write_topics
from fuzzing import may_refuse
from hypothesis import given
from hypothesis import strategies as st
from monitored import model_of
from recordings import DT, regular, smooth_recording
from recordings import recording as synthetic

from robot_dynid.errors import DataError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.io.cdr import encode_joint_states
from robot_dynid.io.csv import read_csv, write_csv
from robot_dynid.io.findings import findings_of
from robot_dynid.io.log import load_log
from robot_dynid.monitoring.monitor_input import MonitorInputStream, monitor_input
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.recording.recorder import Recorder
from robot_dynid.signals.averaging import Periodic, average
from robot_dynid.signals.plausible import DAMAGED_BEYOND, drop_implausible, possible
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import CHANNELS

MEASURED = tuple(name for name in CHANNELS if name != 'temperature')
ROWS = (1000, 1001, 3000)
#: the latest stamp a message can have [ns]
LAST_STAMP = (2**31 - 1) * 10**9


@pytest.fixture(scope='module')
def robot():
    """Return a planar arm of three joints."""
    return load_robot('planar_3r')


@pytest.fixture(autouse=True)
def overflow_fails():
    """Let every warning of NumPy fail the test."""
    with warnings.catch_warnings():
        warnings.simplefilter('error', RuntimeWarning)
        yield


def whole(seconds=10.0):
    """Return a clean recording with every channel there is."""
    log = smooth_recording(regular(seconds))
    return replace(log, motor_position=log.position, motor_velocity=log.velocity,
                   temperature=30.0 + log.position, reference_position=log.position,
                   joint_torque=log.effort, external_torque=0.1 * log.effort)


def spoiled(log, name, value, rows=ROWS):
    """Return the recording with ``value`` in some cells of joint 2."""
    values = getattr(log, name).copy()
    values[list(rows), 1] = value
    return replace(log, **{name: values})


@pytest.mark.parametrize('value', [1e187, -1e187, 1.7e308, 1e9, -1e7])
@pytest.mark.parametrize('name', CHANNELS)
def test_damaged_cells_are_named_and_dropped(robot, name, value):
    found = repair(robot, spoiled(whole(), name, value))
    told = [n for n in found.notes if f'run.csv: {name}.joint_2: 3 values that no robot' in n]
    assert len(told) == 1 and f'first {value:.3g} at t = 2 s' in told[0]
    blank = repair(robot, spoiled(whole(), name, np.nan))
    for channel in CHANNELS:
        np.testing.assert_array_equal(getattr(found.parts[0], channel),
                                      getattr(blank.parts[0], channel))


@pytest.mark.parametrize('name', ['position', 'effort', 'motor_position'])
def test_damaged_cells_do_not_reach_the_mean_of_periods(robot, name):
    time = np.arange(0.0, 24.0, DT)
    phase = np.outer(2.0 * np.pi * time / 4.0, (1.0, 2.0, 3.0))
    log = replace(smooth_recording(time), position=np.sin(phase), velocity=None,
                  effort=np.cos(phase), motor_position=np.sin(phase) + 1e-3 * np.cos(phase))
    found = average(robot, spoiled(log, name, 1e187), Periodic(4.0))
    blank = average(robot, spoiled(log, name, np.nan), Periodic(4.0))
    assert any(f'run.csv: {name}.joint_2: 3 values that no robot' in n for n in found.notes)
    for channel in ('position', 'effort', 'motor_position'):
        np.testing.assert_array_equal(getattr(found.parts[0], channel),
                                      getattr(blank.parts[0], channel))


@pytest.mark.parametrize('value', [1e152, -1e152, 1.7e308, -1.7e308, 2.0**31, 1e4])
@pytest.mark.parametrize('row', [0, 2000, 4999])
def test_a_damaged_stamp_costs_its_row_alone(robot, row, value):
    log = smooth_recording(regular())
    time = log.time.copy()
    time[row] = value
    found, notes = drop_implausible(robot, replace(log, time=time))
    if abs(value) > 1e7 or row < 4999:  # the last one is only late, and falls to the gap
        assert len(found.time) == len(time) - 1
        assert len(notes) == 1 and 'run.csv: ' in notes[0] and ' dropped' in notes[0]
    repaired = repair(robot, replace(log, time=time))
    assert sum(len(p.time) for p in repaired.parts) >= len(time) - 2


def test_stamps_in_other_units_stay(robot):
    log = smooth_recording(regular())
    found, notes = drop_implausible(robot, replace(log, time=1e18 + 1e9 * log.time))
    assert found.time.size == log.time.size and not notes


def test_wrong_units_and_careless_limits_cost_nothing(robot):
    log = smooth_recording(regular())
    tight = replace(robot, limits=replace(
        robot.limits, lower=0.0 * robot.limits.lower, upper=0.0 * robot.limits.upper,
        velocity=0.0 * robot.limits.velocity, effort=0.0 * robot.limits.effort))
    degrees = replace(log, position=np.degrees(log.position), velocity=np.degrees(log.velocity))
    counts = replace(log, position=1e6 * log.position, effort=3e4 * log.effort)
    for one in (log, degrees, counts):
        found, notes = drop_implausible(tight, one)
        assert found is one and not notes


def test_a_column_of_damage_is_no_unit(robot):
    with pytest.raises(DataError, match=r'run\.csv: effort\.joint_2 holds no finite value'):
        repair(robot, spoiled(smooth_recording(regular()), 'effort', 1e187, range(5000)))


def test_a_joint_without_end_may_turn_on(robot):
    endless = replace(robot, limits=replace(robot.limits, lower=np.full(3, np.nan),
                                            upper=np.full(3, np.nan)))
    log = smooth_recording(regular())
    time = 100.0 * log.time  # at rest for 800 s, then 318 turns
    turns = 10.0 * np.maximum(time - 800.0, 0.0)
    log = replace(log, time=time, position=np.stack([turns] * 3, axis=1))
    assert drop_implausible(endless, log)[1] == []


PLANAR, SHORT = load_robot('planar_3r'), whole(0.1)


@given(share=st.floats(-DAMAGED_BEYOND, DAMAGED_BEYOND), joint=st.integers(0, 2),
       row=st.integers(0, 49), name=st.sampled_from(MEASURED))
def test_drop_implausible_keeps_values_that_the_robot_can_reach(share, joint, row, name):
    values = np.array(getattr(SHORT, name))
    values[row, joint] = share * possible(PLANAR, SHORT.time[-1])[name][joint]
    one = replace(SHORT, **{name: values})
    found, notes = drop_implausible(PLANAR, one)
    assert found is one and not notes


def test_bounds_of_currents_are_those_of_the_drives():
    robot = load_robot('ur10e')
    strong = replace(robot, limits=replace(robot.limits, effort=1e4 * robot.limits.effort))
    gains = np.array(robot.drive.gains)
    np.testing.assert_allclose(possible(strong, 1.0)['effort'], strong.limits.effort / gains)
    np.testing.assert_allclose(possible(strong, 1.0)['joint_torque'], strong.limits.effort)


def test_measured_data_lose_nothing(shared_data: Path) -> None:
    paths = sorted(shared_data.rglob('*.csv.gz')) + sorted(shared_data.rglob('*.csv'))
    assert paths
    for path in paths:
        folder = path.relative_to(shared_data).parts[0]
        arm = load_robot(str(next((shared_data / folder).glob('*.urdf'))))
        _, notes = drop_implausible(arm, load_log(path, arm))
        assert not [n for n in notes if 'no robot' in n or 'year' in n]


@pytest.mark.parametrize('storage', ['csv', 'mcap', 'sqlite3'])
def test_damage_in_files_is_told_and_gone(robot, tmp_path, storage):
    log = smooth_recording(regular(3.0))
    position, effort, time = log.position.copy(), log.effort.copy(), log.time.copy()
    position[400, 0], effort[700:702, 2], time[900] = 1e187, -1e187, 2.0**31 - 1.0
    path = written(tmp_path, storage, replace(log, position=position, effort=effort, time=time))
    found = repair(robot, load_log(path, robot))
    assert any('position.joint_1: 1 values that no robot' in n for n in found.notes)
    assert any('effort.joint_3: 2 values that no robot' in n for n in found.notes)
    assert any('time: 1 stamps more than a year' in n for n in found.notes)
    assert np.abs(found.parts[0].position - log.position[:len(found.parts[0].time)]).max() < 1e-2


def written(folder, storage, log):
    """Write a recording as a file of the kind ``storage`` and return its path."""
    if storage == 'csv':
        write_csv(folder / 'run.csv', log)
        return folder / 'run.csv'
    stamps = [min(START + round(1e9 * t), LAST_STAMP) for t in log.time]
    rows = zip(stamps, log.position, log.velocity, log.effort, strict=True)
    messages = [(t, raw(log.joints, t, q, qd, tau))
                for t, q, qd, tau in rows]
    return write_topics(folder / 'bag', {'/joint_states': messages}, storage)


def test_a_model_does_not_see_damaged_cells(robot, tmp_path):
    log = synthetic(robot, 3, 10.0)
    damaged = log
    for name, row in (('position', 100), ('velocity', 600), ('effort', 1100)):
        damaged = spoiled(damaged, name, 1e187, (row,))
    recipe = Recipe(cutoff=10.0, friction='coulomb', ramp_width=0.05)
    clean = identify(robot, [log], 'wls', recipe)
    write_csv(tmp_path / 'damaged.csv', damaged)
    found = identify(robot, [read_csv(tmp_path / 'damaged.csv', robot.joints)], 'wls', recipe)
    said = [w for w in found.warnings if 'no robot' in w]
    assert len(said) == 3 and all('damaged.csv' in w and 'joint_2' in w for w in said)
    assert np.all(np.abs(found.model.values - clean.model.values) < clean.model.std)


def test_the_monitor_skips_damaged_states(robot):
    model = model_of(robot)
    log = smooth_recording(regular(3.0))
    damaged = spoiled(spoiled(log, 'effort', 1e187, (700,)), 'position', -1e187, (900,))
    motion = monitor_input(model, damaged)
    assert sum('no robot' in n for n in motion.notes) == 2
    assert np.abs(motion.effort).max() < 100.0
    stream, missing = MonitorInputStream(model), 0
    for row in zip(damaged.time, damaged.position, damaged.velocity, damaged.effort, strict=True):
        state = stream(*row)
        missing += state is not None and bool(stream.missing.any())
        assert state is None or np.abs(state[0]).max() < 100.0
    assert (stream.skipped, missing) == (1, 1)


def test_damage_in_live_messages_is_told_and_gone(robot, tmp_path):
    log = smooth_recording(regular(3.0))
    stamps = START + np.round(1e9 * log.time).astype(np.int64)
    stamps[900] = LAST_STAMP
    effort = spoiled(log, 'effort', 1e187, (700,)).effort
    payloads = encode_joint_states(log.joints, stamps, (log.position, log.velocity, effort))
    recorder = Recorder(tmp_path / 'run')
    store = recorder.add_topic('/joint_states')
    for k, data in enumerate(payloads):
        store.append(data, START + k)
    buffer = repair(robot, recorder.snapshot(robot.joints))
    recorder.stop()
    kept = repair(robot, load_log(tmp_path / 'run', robot))
    for found in (buffer, kept):
        assert any('effort.joint_2: 1 values that no robot' in n for n in found.notes)
        assert any('time: 1 stamps more than a year' in n for n in found.notes)
        assert np.abs(found.parts[0].effort).max() < 100.0


SHARES = {'half': slice(0, None, 2), 'a joint': (slice(None), 1), 'all': slice(None)}
WORST = (1.7e308, -1.7e308, 1e187, np.inf, np.nan, 5e-324)
PREPROCESSING = Preprocessing(10.0)
FAITHFUL = 1.5  # largest value after a damage, over that without
FIXED = Recipe(cutoff=10.0, friction='coulomb', ramp_width=0.05, effort_lag=0.0, ripple='none')


@pytest.mark.parametrize('share', SHARES)
@pytest.mark.parametrize('name', CHANNELS)
def test_no_number_breaks_the_identification(robot, name, share):
    log = whole(2.0)
    sound = prepare(robot, repair(robot, log), PREPROCESSING)
    for value in WORST:
        values = getattr(log, name).copy()
        values[SHARES[share]] = value
        with may_refuse():
            found = prepare(robot, repair(robot, replace(log, **{name: values})), PREPROCESSING)
            for channel in ('position', 'velocity', 'acceleration', 'effort'):
                was, now = (np.abs(getattr(one, channel)).max() for one in (sound, found))
                # a zero is a number like others, so it is for the comparison with the robot
                assert now <= FAITHFUL * was or value == 5e-324, f'{channel} by {value} in {name}'


@pytest.mark.parametrize('value', [2.0**63 * 1e-9, -2.0**63 * 1e-9, *WORST])
@pytest.mark.parametrize('share', ['half', 'all'])
def test_no_stamp_breaks_the_identification(robot, share, value):
    log = smooth_recording(regular(4.0))
    time = log.time.copy()
    time[SHARES[share]] = value
    with may_refuse():
        model = identify(robot, [replace(log, time=time)], 'wls', FIXED).model
        assert np.isfinite(model.inverse(*np.zeros((3, robot.n)))).all()


def test_joints_without_a_torque_sensor_do_not_disturb_the_others(robot):
    log = whole(6.0)
    torque = log.joint_torque.copy()
    torque[:, 1] = np.nan
    full, part = (prepare(robot, repair(robot, replace(log, joint_torque=t)), Preprocessing(10.0))
                  for t in (log.joint_torque, torque))
    for channel in ('position', 'velocity', 'effort'):
        np.testing.assert_array_equal(getattr(full, channel), getattr(part, channel))


def test_a_signalling_nan_is_one_like_others():
    values = whole(1.0).effort.copy()
    values[3] = np.frombuffer(bytes.fromhex('010000000000f47f'))[0]
    values[4] = np.frombuffer(bytes.fromhex('010000000000f47f') * 3)
    log = whole(1.0)
    found = findings_of(log.time, log.joints, {'position': log.position, 'effort': values})
    assert any(f.startswith('effort: NaN values: joint_1 2') for f in found)
