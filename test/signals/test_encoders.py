"""Motor and link encoders: what is wrong is named, what can be corrected is corrected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import DEFLECTION, OFFSET

from robot_dynid.errors import DataError
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.encoders import (
    Encoder,
    convert_to_joint_side,
    encoders_of,
    noise,
    resolution,
)
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare, repair
from robot_dynid.types import FloatArray, RawLog

RATIO = np.array([-62.61, 107.36, -53.69, 76.01, 71.91, 76.73])
STIFFNESS = 2e4
#: gears that bend by a share of the travel
SOFT = 300.0


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    return load_robot('puma560')


@pytest.fixture(scope='module')
def log(robot: RobotModel) -> RawLog:
    """Return 20 s in which efforts bend elastic gears; both encoders on the joint side."""
    time = np.arange(0.0, 20.0, 0.005)
    phase = np.arange(6) + 1.0
    link = 0.6 * np.sin(0.5 * time[:, None] * (1.0 + 0.1 * phase) + phase)
    effort = 30.0 * np.cos(link * phase) + 5.0 * np.sign(np.gradient(link, 0.005, axis=0))
    effort += 0.2 * np.random.default_rng(2).standard_normal(effort.shape)
    motor = link + effort / STIFFNESS
    return RawLog('test', robot.joints, time, link, effort=effort, motor_position=motor)


def changed(log: RawLog, joint: int, motor: FloatArray) -> RawLog:
    """Return the log with another motor position of one joint."""
    assert log.motor_position is not None
    position = log.motor_position.copy()
    position[:, joint] = motor
    return replace(log, motor_position=position)


def motor(log: RawLog, joint: int) -> FloatArray:
    """Return the motor position of a joint."""
    assert log.motor_position is not None
    return np.asarray(log.motor_position[:, joint])


def deflection(repaired: Repaired) -> FloatArray:
    """Return the deflection (N, n) of a repaired recording."""
    (part,) = repaired.parts
    assert part.motor_position is not None
    return np.asarray(part.motor_position - part.position)


def refused(robot: RobotModel, log: RawLog, joint: int) -> str:
    """Return why one joint was refused; all others must have stayed."""
    repaired = repair(robot, log)
    lost = np.isnan(deflection(repaired)).any(axis=0)
    assert np.flatnonzero(lost).tolist() == [joint]
    (note,) = [n for n in repaired.notes if f'motor states of {robot.joints[joint]}' in n]
    assert 'no deflection is used there' in note
    return note


def test_an_encoder_recorded_twice_is_told_once_for_all_joints(
    robot: RobotModel, log: RawLog
) -> None:
    (note,) = repair(robot, replace(log, motor_position=log.position.copy())).notes
    assert f'motor states of {", ".join(robot.joints)}: the deflection is constant' in note


def test_good_encoders_pass_without_a_word(robot: RobotModel, log: RawLog) -> None:
    repaired = repair(robot, log)
    assert not [n for n in repaired.notes if 'motor' in n]
    assert log.effort is not None
    assert np.max(np.abs(deflection(repaired) - log.effort / STIFFNESS)) < DEFLECTION


@pytest.mark.parametrize('late', [-2e-3, 2e-3])
def test_a_late_encoder_is_no_swap(robot: RobotModel, log: RawLog, late: float) -> None:
    """The deflection then goes with the velocity, as friction does, for or against the effort."""
    assert log.effort is not None and log.motor_position is not None
    velocity = np.gradient(log.position, log.time, axis=0)
    sliding = replace(log, effort=log.effort + 20.0 * np.sign(velocity),
                      motor_position=log.motor_position + late * velocity)
    assert not [n for n in repair(robot, sliding).notes if 'motor' in n]
    swapped = replace(log, motor_position=2.0 * log.position - log.motor_position)
    assert any('swapped' in note for note in repair(robot, swapped).notes)


def test_rounding_is_no_offset(robot: RobotModel, log: RawLog) -> None:
    """Of a joint that nothing bends: both encoders count the same, but for a few steps."""
    assert log.effort is not None
    step, joint = 5e-6, 5
    counted = step * np.round(log.position[:, joint] / step)
    motor = counted + step * (np.random.default_rng(1).random(len(counted)) < 0.05)
    effort, link = log.effort.copy(), log.position.copy()
    effort[:, joint], link[:, joint] = 1e-3 * np.sin(3.0 * log.time), counted
    found = encoders_of(robot, changed(replace(log, effort=effort, position=link), joint, motor))
    assert found[joint] == Encoder()


def test_channels_reach_the_samples_filtered_alike(robot: RobotModel, log: RawLog) -> None:
    samples = prepare(robot, repair(robot, log), Preprocessing(8.0))
    assert samples.motor_position is not None
    assert samples.motor_velocity is not None
    assert samples.effort is not None
    bend = samples.motor_position - samples.position
    assert np.max(np.abs(bend - samples.effort / STIFFNESS)) < DEFLECTION
    rate = np.gradient(bend, samples.time, axis=0)
    told = samples.motor_velocity - samples.velocity
    assert np.sqrt(np.mean((told - rate)[5:-5]**2)) < 0.2 * np.std(rate)


def test_motor_angles_are_divided_by_the_gear_ratio(robot: RobotModel, log: RawLog) -> None:
    assert log.motor_position is not None
    repaired = repair(robot, replace(log, motor_position=log.motor_position * RATIO))
    assert sum('divided by the gear ratio' in n for n in repaired.notes) == 6
    assert log.effort is not None
    assert np.max(np.abs(deflection(repaired) - log.effort / STIFFNESS)) < DEFLECTION


@pytest.mark.parametrize('ratio', [1.0, RATIO[2]])
def test_a_gear_that_bends_by_a_share_of_the_travel_is_no_wrong_ratio(
        robot: RobotModel, log: RawLog, ratio: float) -> None:
    """Weight that grows with the position makes the motor turn a tenth farther than the link."""
    link = log.position[:, 2]
    torque = 30.0 * np.sin(link + log.position[:, 1]) + 5.0 * np.sign(np.gradient(link, 0.005))
    assert log.effort is not None
    effort = log.effort.copy()
    effort[:, 2] = torque + 0.2 * np.random.default_rng(3).standard_normal(len(link))
    soft = replace(changed(log, 2, ratio * (link + torque / SOFT)), effort=effort)
    (note,) = [n for n in repair(robot, soft).notes if 'motor' in n] or ['']
    assert 'gear_ratios' not in note and 'correct' not in note
    bend = deflection(repair(robot, soft))[:, 2]
    assert np.ptp(bend) > 0.1 * np.ptp(link)
    assert np.std(bend - torque / SOFT) < 0.02 * np.std(bend)
    refused(robot, replace(changed(soft, 2, 0.5 * motor(soft, 2)), effort=effort), 2)


def test_a_missing_gear_ratio_is_named_with_the_slope(robot: RobotModel, log: RawLog) -> None:
    bare = replace(robot, drive=replace(robot.drive, gear_ratios=None))
    note = refused(bare, changed(log, 2, 100.0 * motor(log, 2)), 2)
    assert 'turn 100 times' in note
    assert 'gear_ratios' in note


def test_a_wrong_gear_ratio_is_named_with_the_slope(robot: RobotModel, log: RawLog) -> None:
    note = refused(robot, changed(log, 1, 50.0 * motor(log, 1)), 1)
    assert 'turn 50.01 times' in note
    assert '107.36' in note


def test_a_wrong_sign_is_named(robot: RobotModel, log: RawLog) -> None:
    assert 'correct its sign' in refused(robot, changed(log, 3, -motor(log, 3)), 3)
    note = refused(robot, changed(log, 0, 62.61 * motor(log, 0)), 0)
    assert 'correct its sign' in note


def test_swapped_sides_are_named(robot: RobotModel, log: RawLog) -> None:
    position = log.position.copy()
    position[:, 4] = motor(log, 4)
    note = refused(robot, replace(changed(log, 4, log.position[:, 4]), position=position), 4)
    assert 'swapped' in note
    small = changed(log, 4, log.position[:, 4] / RATIO[4])
    assert 'swapped' in refused(robot, small, 4)


def test_motor_states_of_another_joint_are_named(robot: RobotModel, log: RawLog) -> None:
    note = refused(robot, changed(log, 0, motor(log, 5)), 0)
    assert f'follow joint {robot.joints[5]} instead' in note


def test_motor_states_of_another_robot_are_named(robot: RobotModel, log: RawLog) -> None:
    note = refused(robot, changed(log, 0, np.sin(3.0 * log.time)), 0)
    assert 'do not follow the joint' in note


def test_an_offset_is_removed_and_told(robot: RobotModel, log: RawLog) -> None:
    repaired = repair(robot, changed(log, 1, motor(log, 1) + 0.05))
    (note,) = [n for n in repaired.notes if 'motor' in n]
    assert 'offset of +0.05 rad' in note
    assert log.effort is not None
    error = deflection(repaired)[:, 1] - log.effort[:, 1] / STIFFNESS
    assert np.max(np.abs(error)) < OFFSET


def test_a_slip_is_named_with_time_and_size(robot: RobotModel, log: RawLog) -> None:
    slipped = motor(log, 2) + np.where(log.time > 12.0, 2e-3, 0.0)
    note = refused(robot, changed(log, 2, slipped), 2)
    assert 'slipped' in note
    assert '+0.002 rad' in note
    told = float(note.split(' near ')[1].split(' s')[0])
    assert abs(told - 12.0) < 1.0


def test_friction_before_the_gear_is_no_slip(robot: RobotModel, log: RawLog) -> None:
    """A joint that goes one way for long bears friction of one sign, which bends no gear."""
    assert log.effort is not None
    link, effort = log.position.copy(), log.effort.copy()
    side = np.where(log.time < 12.0, -1.0, 1.0) * np.where(log.time % 3.0 < 0.2, -1.0, 1.0)
    link[:, 2] = 0.3 * np.cumsum(side) * 0.005
    effort[:, 2] = 40.0 * np.sin(7.0 * log.time)
    bent = link[:, 2] + effort[:, 2] / STIFFNESS
    effort[:, 2] += 5.0 * side
    turned = changed(replace(log, position=link, effort=effort), 2, bent)
    assert not [n for n in repair(robot, turned).notes if 'slipped' in n]
    slipped = np.where(log.time > 6.0, 2e-3, 0.0)
    assert 'slipped' in refused(robot, changed(turned, 2, bent + slipped), 2)


def test_a_constant_deflection_is_named(robot: RobotModel, log: RawLog) -> None:
    assert 'constant' in refused(robot, changed(log, 5, log.position[:, 5] + 0.01), 5)


def test_a_joint_without_motor_states_does_not_spoil_the_others(
        robot: RobotModel, log: RawLog) -> None:
    note = refused(robot, changed(log, 3, np.full(len(log.time), np.nan)), 3)
    assert 'there are none' in note


def test_a_joint_that_rests_cannot_be_checked(robot: RobotModel, log: RawLog) -> None:
    position = log.position.copy()
    position[:, 3] = 0.2
    rests = replace(changed(log, 3, np.full(len(log.time), 0.2003)), position=position)
    assert 'travels over' in refused(robot, rests, 3)


def test_recordings_without_motor_states_stay_without(robot: RobotModel, log: RawLog) -> None:
    samples = prepare(robot, repair(robot, replace(log, motor_position=None)), Preprocessing(8.0))
    assert samples.motor_position is None
    assert samples.motor_velocity is None


def test_currents_of_drives_that_count_the_other_way_oppose_nothing(
    robot: RobotModel, log: RawLog
) -> None:
    assert log.effort is not None
    gains = np.array([2.0, -2.0, 2.0, -3.0, 1.0, -0.5])
    amps = replace(robot, drive=replace(robot.drive, kind='current', gains=gains))
    repaired = repair(amps, replace(log, effort=log.effort / gains))
    assert not [n for n in repaired.notes if 'motor' in n]
    assert np.isfinite(deflection(repaired)).all()


ARM = load_robot('planar_3r')
SECONDS = np.arange(0.0, 10.0, 0.01)


def short_log(factor: float, scatter: float = 0.0, size: float = 0.5) -> RawLog:
    """Return 10 s of a joint, whose gear bends by 2 urad/N m, and two that follow well."""
    link = np.outer(np.sin(2.0 * SECONDS), [size, 0.4, 0.3]) + np.outer(
        np.sin(1.3 * SECONDS + 1.0), [0.0, 0.2, -0.1])
    effort = 20.0 * np.cos(np.outer(SECONDS, [3.0, 2.3, 1.7]))
    motor = link + 2e-6 * effort
    motor[:, 0] *= factor
    motor[:, 0] += scatter * np.sin(37.0 * SECONDS)
    return RawLog('short', ARM.joints, SECONDS, link, effort=effort, motor_position=motor)


MOTORS = 'motor and link side are swapped'
MISSING = 'and the gear ratio is missing: put gear_ratios into the robot YAML, or divide'


@pytest.mark.parametrize(('ratio', 'slope', 'factor', 'words'), [
    (50.0, 1.0, 1.0, ''), (50.0, 50.0, 50.0, 'divided by the gear ratio 50'),
    (-50.0, -50.0, -50.0, 'divided by the gear ratio -50'),
    # within two per cent of it
    (50.0, 50.0 * 1.018, 50.0, 'divided by the gear ratio 50'),
    (50.0, 50.0 * 1.022, 1.0, 'they turn 51.1 times as far as the joint, the gear ratio in the '
     'robot YAML is 50: correct it'),
    (50.0, 50.0 * 0.978, 1.0, 'the gear ratio in the robot YAML is 50: correct it'),
    (50.0, 1.018, 1.0, ''), (50.0, 1.022, 1.0, 'is 50: correct it'),
    (50.0, -50.0, 1.0, 'they turn -50 times as far as the joint, the gear ratio is 50: correct '
     'its sign'), (-50.0, 50.0, 1.0, 'the gear ratio is -50: correct its sign'),
    (50.0, -1.0, 1.0, 'they turn -1 times as far as the joint, the gear ratio is 50: correct'),
    (50.0, 0.02, 1.0, f'they turn 0.02 times as far as the joint, one over the gear ratio: '
     f'{MOTORS}'), (-50.0, -0.02, 1.0, MOTORS), (50.0, 0.025, 1.0, 'is 50: correct it'),
    (None, 1.0, 1.0, ''), (None, -1.0, 1.0, 'as far as the joint: correct its sign'),
    (None, 50.0, 1.0, f'they turn 50 times as far as the joint, {MISSING}'),
    (None, 0.5, 1.0, 'they turn 0.5 times as far as the joint (below one: the sides may be '
     f'swapped), {MISSING}')])
def test_the_slope_of_motor_over_link_is_the_gear_ratio_or_named(
    ratio: float | None, slope: float, factor: float, words: str
) -> None:
    drive = replace(ARM.drive, gear_ratios=None if ratio is None else np.full(3, ratio))
    found, *others = encoders_of(replace(ARM, drive=drive), short_log(slope))
    if words.startswith('divided') or not words:
        assert (found.refused, found.note) == ('', words)
        assert found.offset == pytest.approx(0.0, abs=1e-4 if abs(slope - factor) < 1e-9 else 0.1)
    else:
        assert words in found.refused and not found.note
    assert found.factor == factor
    assert [other.refused for other in others] == ['', '']


@pytest.mark.parametrize(('change', 'refused'), [
    ({'size': 0.0095}, 'the joint travels over 0.019 only, too little to show whether'),
    ({'size': 0.0105}, ''),
    # two per cent of the travel of a radian apart, as a deviation from the median of a sine
    ({'scatter': 0.96 * 0.02 / (1.4826 * np.sqrt(0.5))}, ''),
    ({'scatter': 1.04 * 0.02 / (1.4826 * np.sqrt(0.5))}, 'they do not follow the joint; check')])
def test_travel_and_scatter_that_show_a_relation(change: dict[str, float], refused: str) -> None:
    found = encoders_of(ARM, short_log(1.0, **change))[0].refused
    assert found.startswith(refused) and (refused or 'travel' not in found + 'follow')


def test_the_deflection_of_drives_without_gravity_in_the_effort_keeps_its_offset() -> None:
    log = short_log(1.0)
    assert log.motor_position is not None
    moved = replace(log, motor_position=log.motor_position + 0.03)
    found = encoders_of(ARM, moved)[0]
    assert found.offset == pytest.approx(0.03, abs=1e-5)
    assert found.note == 'offset of +0.03 rad against the joint removed'
    floating = replace(ARM, drive=replace(ARM.drive, kind='gravity_compensated_torque'))
    assert encoders_of(floating, moved)[0] == Encoder()
    with pytest.raises(DataError, match='short: holds no effort or no motor positions'):
        encoders_of(ARM, replace(log, effort=None))


def test_the_resolution_of_an_encoder_is_its_step() -> None:
    """Not of less than twenty changes, of rounding, nor of steps that are no multiples."""
    seen = 1e-4 * np.round(7000.0 + 1.3 * np.arange(60.0))
    assert resolution(seen) == pytest.approx(1e-4, rel=1e-9)
    assert resolution(np.where(np.arange(60) % 7 == 3, np.nan, seen)) == pytest.approx(1e-4)
    assert resolution(0.7 + 1e-4 * np.arange(60.0)**1.5) == 0.0
    counts = 1e-4 * np.arange(22.0)
    assert resolution(counts[:21]) == pytest.approx(1e-4) and resolution(counts[:20]) == 0.0
    assert resolution(1.0 + 5e-12 * (np.arange(60) % 3)) == 0.0
    assert resolution(1.0 + 2e-11 * (np.arange(60) % 3)) == pytest.approx(2e-11, rel=1e-4)
    for size, least in ((100.0, 1e-9), (0.1, 1e-11)):  # of the largest, or of one
        for share in (0.9, 1.2):
            found = resolution(size + share * least * (np.arange(60) % 3))
            assert (found > 0.0) == (share > 1.0)
    uneven = np.cumsum(np.where(np.arange(100) % 19 == 1, 1.5e-4, 1e-4))
    rare = np.cumsum(np.where(np.arange(100) % 25 == 7, 1.5e-4, 1e-4))
    assert resolution(uneven) == 0.0 and resolution(rare) > 0.0
    # changes of up to twenty steps count, whole to a twentieth
    for last, step in ((20.0, 2.0**-13), (21.0, 0.0)):
        assert resolution(2.0**-13 * np.cumsum([*[1.0] * 20, last])) == step
    for off, step in ((0.048, 1.0), (0.052, 0.0)):
        alternating = np.cumsum(1.0 + off * (-1.0)**np.arange(41))
        assert resolution(alternating) == pytest.approx(step)


def test_noise_of_positions_is_that_of_fourth_differences_or_of_rounding() -> None:
    alternating = 1e-3 * (-1.0)**np.arange(40)
    assert noise(np.arange(40.0)**3 + alternating) == pytest.approx(16e-3 / np.sqrt(70.0))
    assert noise(1e-3 * np.arange(40.0)) == pytest.approx(1e-3 / np.sqrt(12.0))
    assert noise(np.zeros(3)) == 0.0


def test_motors_of_another_joint_are_named_by_slope_and_scatter() -> None:
    """Not by joints that rest, whatever the gear ratio."""
    log = short_log(1.0)
    assert log.motor_position is not None
    for factor, joint in ((1.0, 2), (-70.0, 1), (0.01, 2)):
        mixed = log.motor_position.copy()
        mixed[:, 0] = factor * (mixed[:, joint] + 2e-3 * np.sin(31.0 * SECONDS))
        refused = encoders_of(ARM, replace(log, motor_position=mixed))[0].refused
        assert refused.startswith(f'they follow joint {ARM.joints[joint]} instead; correct')
        link = log.position.copy()
        link[:, joint] *= 0.01
        still = replace(log, motor_position=mixed, position=link)
        assert encoders_of(ARM, still)[0].refused.startswith('they do not follow the joint; check')


@pytest.mark.parametrize('measured', [True, False])
def test_motors_are_converted_to_the_joint_side(measured: bool) -> None:
    """Where their velocity is missing it is that of their positions."""
    ratios = np.array([50.0, -20.0, 1.0])
    robot = replace(ARM, drive=replace(ARM.drive, gear_ratios=ratios))
    log = short_log(1.0)
    assert log.motor_position is not None
    sides = log.motor_position + np.array([0.0, 0.03, 0.0])
    rate = np.gradient(sides, SECONDS, axis=0, edge_order=2)
    speed = ratios * rate
    speed[600:, 1] = np.nan
    turned = replace(log, motor_position=ratios * sides,
                     motor_velocity=speed if measured else None)
    (found,), notes = convert_to_joint_side(robot, (turned,), 0.01)
    assert found.motor_position is not None
    np.testing.assert_allclose(found.motor_position, log.motor_position, rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(found.motor_velocity, rate, rtol=0.0, atol=1e-3)
    assert notes == [
        f'short: motor states of {ARM.joints[0]}: divided by the gear ratio 50',
        f'short: motor states of {ARM.joints[1]}: divided by the gear ratio -20; offset of +0.03 '
        'rad against the joint removed']
    bare = replace(log, motor_position=None, motor_velocity=speed)
    (found,), notes = convert_to_joint_side(robot, (bare,), 0.01)
    assert found.motor_velocity is None and notes == []


@pytest.mark.parametrize(('correlation', 'swapped'), [(-0.27, False), (-0.33, True)])
def test_a_deflection_against_the_effort_is_a_swap_from_a_correlation_on(
    correlation: float, swapped: bool
) -> None:
    log = short_log(1.0)
    assert log.motor_position is not None
    phase = 5.0 * 2.0 * np.pi / 10.0 * SECONDS  # whole periods, so that both are orthogonal
    along, across = np.cos(phase), np.sin(phase)
    log.motor_position[:, 0] = log.position[:, 0] + 1e-3 * (
        correlation * along + np.sqrt(1.0 - correlation**2) * across)
    effort = np.column_stack([20.0 * along, np.asarray(log.effort)[:, 1:]])
    found = encoders_of(ARM, replace(log, effort=effort))[0].refused
    assert found.startswith('the motor lags behind the joint it drives') is swapped


@pytest.mark.parametrize(('size', 'share', 'constant'), [
    (0.3, 0.95, True), (0.3, 1.05, False), (1.0, 1.9, True), (1.0, 2.1, False)])
def test_a_deflection_within_rounding_is_of_one_encoder_recorded_twice(
    size: float, share: float, constant: bool
) -> None:
    """A billionth of the travel, at least of a radian."""
    log = short_log(1.0, size=size)
    assert log.motor_position is not None
    log.motor_position[:, 0] = log.position[:, 0] + 0.5e-9 * share * np.sin(3.0 * SECONDS)
    refused = encoders_of(ARM, log)[0].refused
    assert refused.startswith('the deflection is constant') is constant


def with_deflection(
    deflection: FloatArray, seconds: FloatArray, constant: bool = True
) -> RawLog:
    """Return a recording of which the first joint deflects, by nothing of its effort."""
    link = 0.5 * np.sin(np.outer(seconds, [9.0, 7.0, 8.0]))
    effort = 20.0 * np.cos(np.outer(seconds, [3.0, 2.3, 1.7]))
    if constant:
        effort[:, 0] = 20.0
    motor = link + 2e-6 * effort
    motor[:, 0] = link[:, 0] + deflection
    return RawLog('short', ARM.joints, seconds, link, effort=effort, motor_position=motor)


@pytest.mark.parametrize(('share', 'slipped'), [(0.95, False), (1.05, True)])
def test_a_slip_is_eight_times_the_scatter_of_half_seconds(share: float, slipped: bool) -> None:
    """Two of three levels are 0.1 mrad to either side."""
    time = 0.01 * np.arange(1003)
    window = np.floor(time / 0.5 + 1e-9)
    levels = 1e-4 * ((window + (window > 9.5) + 1.0) % 3.0 - 1.0)
    jump = share * 8.0 * 1.4826e-4
    refused = encoders_of(ARM, with_deflection(levels + jump * (time > 4.999), time))[0].refused
    assert refused.startswith('their offset changes by +0.00') is slipped
    assert refused.endswith('near 5.0 s: an encoder or the gear slipped') is slipped


@pytest.mark.parametrize(('seconds', 'at', 'told'), [
    (3.9, 2.0, ''), (4.1, 2.05, 'near 2.1 s'), (40.0, 13.4, 'near 13.4 s'),
    # from the second to the last but one
    (10.03, 1.015, 'near 1.0 s'), (10.03, 9.025, 'near 9.0 s'), (10.03, 9.525, '')])
def test_slips_are_sought_in_eight_to_sixty_windows(seconds: float, at: float, told: str) -> None:
    time = np.arange(0.0, seconds - 1e-9, 0.01)
    found = encoders_of(ARM, with_deflection(2e-3 * (time > at), time))[0].refused
    assert told in found and bool(told) is bool(found)


@pytest.mark.parametrize(('rows', 'slipped'), [(79, False), (85, True)])
def test_windows_of_slips_hold_ten_rows(rows: int, slipped: bool) -> None:
    time = 0.125 * np.arange(rows)
    found = encoders_of(ARM, with_deflection(2e-3 * (time > 5.0), time))[0].refused
    assert bool(found) is slipped


@pytest.mark.parametrize(('seconds', 'slipped'), [(2.8, True), (3.2, False)])
def test_half_of_a_slip_shows_in_three_windows(seconds: float, slipped: bool) -> None:
    """Whose middles are 1.5 s apart."""
    time = 0.01 * np.arange(1003)
    ramp = 2e-3 * np.clip((time - 5.02) / seconds + 0.5, 0.0, 1.0)
    assert bool(encoders_of(ARM, with_deflection(ramp, time))[0].refused) is slipped


@pytest.mark.parametrize('removed', [False, True])
@pytest.mark.parametrize(('seconds', 'wide'), [(1.2, 0.1), (10.0, 0.03), (40.0, 0.03)])
def test_an_offset_counts_from_five_deviations(
    seconds: float, wide: float, removed: bool
) -> None:
    """Errors are alike for half a second, or three are not; less than the scatter is not told."""
    time = np.arange(0.0, seconds - 1e-9, 0.01)
    error = 1e-4 * np.sin(37.0 * time)
    log = with_deflection(error, time, constant=False)
    assert log.effort is not None
    speed = np.gradient(log.position[:, 0], time)
    columns = np.column_stack([np.ones(len(time)), log.effort[:, 0],
                               np.clip(100.0 * speed, -1.0, 1.0), speed])
    variance = np.linalg.inv(columns.T @ columns / len(time))[0, 0]
    scatter = 1.4826 * np.median(np.abs(error))
    share = 1.0 + wide if removed else 1.0 - wide
    offset = share * 5.0 * scatter * np.sqrt(variance / max(2.0 * seconds, 3.0))
    found = encoders_of(ARM, with_deflection(error + offset, time, constant=False))[0]
    assert found.refused == '' and bool(found.note) is (removed and seconds < 20.0)
    assert found.offset == pytest.approx(offset if removed else 0.0, rel=wide)
