"""What identification tells of elastic joints: encoders, noise in the stiffness, a rigid fit."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import closed_form_gear
import numpy as np
import pytest
from elastic_arms import NOISE, D, K, elastic_arm, recordings
from tolerances import ATTENUATION, ENCODER_OFFSET

from robot_dynid import IdentifiedModel, identify
from robot_dynid.cli.main import main
from robot_dynid.effects import GearEffects, Springs
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.gears import (
    gear_table,
    gear_warnings,
    other_wave,
    ratio_warnings,
)
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.record import GearRecord
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.encoders import encoders_of, noise, resolution
from robot_dynid.signals.prepare import repair
from robot_dynid.simulation.arm import measured
from robot_dynid.simulation.truth import Noise
from robot_dynid.types import RawLog

FIXED = Recipe(friction='coulomb', cutoff=30.0, ripple='none')
OFFSETS = np.array([0.01, 0.0, -0.002])
#: noise of a torque sensor [N m]
SENSOR_NOISE = 0.05


@cache
def clean(seconds: float = 8.0) -> RawLog:
    """Return a recording by ideal sensors."""
    return recordings(seconds, Noise())[0]


def log_of(step: float, seconds: float = 8.0) -> RawLog:
    """Return a recording by encoders of ``step`` [rad], those of the motors off by OFFSETS."""
    counted = replace(NOISE, position_step=step, motor_position_step=step)
    robot, _ = elastic_arm()
    log = measured(clean(seconds), robot, counted, np.random.default_rng(0))
    assert log.motor_position is not None
    return replace(log, motor_position=log.motor_position + OFFSETS)


@pytest.mark.parametrize('step', [5e-6, 2.0**-16, 1e-3])
def test_steps_of_encoders_are_found(step: float) -> None:
    rng = np.random.default_rng(0)
    smooth = np.sin(0.01 * np.arange(5000)) + 3.0
    assert resolution(smooth) == 0.0
    assert resolution(smooth + 1e-5 * rng.normal(size=5000)) == 0.0
    assert resolution(np.full(100, 2.0)) == 0.0
    counted = step * np.round(smooth / step)
    assert resolution(counted) == pytest.approx(step, rel=1e-6)
    assert noise(smooth + step * rng.normal(size=5000)) == pytest.approx(step, rel=0.05)
    assert noise(counted) == pytest.approx(step / 12**0.5, rel=0.15)


@cache
def fine() -> IdentificationResult:
    """Return the arm identified with fine encoders."""
    return identify(elastic_arm()[0], [log_of(5e-6)], 'wls', FIXED)


def test_fine_encoders_are_told_without_a_warning() -> None:
    (robot, truth), result = elastic_arm(), fine()
    assert not any('deflects' in text or 'below zero' in text for text in result.warnings)
    gears = result.model.record.gears
    for j, gear in enumerate(gears):
        assert gear.joint == robot.joints[j]
        assert gear.stiffness == pytest.approx(K[j], rel=1e-3)
        assert gear.damping == pytest.approx(D[j], rel=0.1)
        assert gear.rotor_inertia == pytest.approx(truth.rotor_inertia[j], rel=0.02)
        assert abs(gear.offset - OFFSETS[j]) < ENCODER_OFFSET
        assert gear.resolution_link == pytest.approx(5e-6, rel=1e-6)
        assert gear.resolution_motor == pytest.approx(5e-6, rel=1e-6)
        assert gear.deflection_rms < gear.deflection_peak < 0.02
        assert gear.attenuation < 1e-5
    own, levels = result.model.record.motor_encoders, result.model.noise_levels
    for encoder, gear in zip(own, gears, strict=True):  # what the monitor takes the torque from
        unbent = encoder.offset - result.model.standard[f's{gear.joint[-1]}'] / gear.stiffness
        assert (encoder.joint, unbent) == (gear.joint, pytest.approx(gear.offset, abs=1e-12))
        assert encoder.noise == pytest.approx(gear.noise, rel=0.01)
    assert levels is not None and levels.deflected is not None
    assert (levels.deflected.holding < 0.1 * levels.holding).all()
    again = IdentifiedModel.from_yaml(result.model.to_yaml())
    assert (again.record.gears, again.record.motor_encoders) == (gears, own)


def test_damping_below_zero_is_told() -> None:
    """As a motor encoder makes it that runs ahead of the deflection."""
    log = clean()
    assert log.motor_position is not None
    rate = np.gradient(log.motor_position - log.position, log.time, axis=0)
    early = replace(log, motor_position=log.motor_position + 3.0 * np.divide(D, K) * rate)
    found = identify(elastic_arm()[0], [early], 'wls', FIXED)
    assert [gear.damping for gear in found.model.record.gears] == pytest.approx(
        -2.0 * np.array(D), rel=0.2)
    told = [text for text in found.warnings if 'which is impossible' in text]
    assert [text.split(':')[0] for text in told] == list(elastic_arm()[0].joints)
    assert 'the damping of its gear is -' in told[0]


def test_gears_are_told_by_the_effects_they_have() -> None:
    gear = replace(fine().model.record.gears[0], attenuation=0.0)
    waves, loop = {'kinematic_error': 4e-5}, {'hysteresis': 0.27}
    (both,), (first,), (second,) = (gear_warnings([replace(gear, **effects)]) for effects in (
        {**waves, **loop}, waves, loop))
    assert 'kinematic error of 40 microrad (0.2 N m) and hysteresis of 0.27 N m;' in both
    assert both.endswith('inverse with stiff gears and exports omit both')
    assert 'hysteresis' not in first and 'kinematic' not in second
    assert gear_warnings([gear]) == []
    (lost,) = gear_warnings([replace(gear, attenuation=2.0)])
    assert 'its stiffness, which is undetermined; load' in lost


def test_coarse_encoders_draw_the_stiffness_down_as_told() -> None:
    robot, _ = elastic_arm()
    result = identify(robot, [log_of(1.2e-3)], 'wls', FIXED)
    told = [text for text in result.warnings if 'deflects' in text]
    assert len(told) == 1 and told[0].startswith('joint_3: its gear deflects by 2 mrad')
    assert 'steps of its encoders, 1.2 mrad' in told[0]
    gear = result.model.record.gears[2]
    missing = 1.0 - gear.stiffness / K[2]
    assert gear.attenuation > 0.01
    assert missing == pytest.approx(gear.attenuation, rel=ATTENUATION)


def test_a_rigid_fit_stands_beside_the_elastic_one() -> None:
    robot, _ = elastic_arm()
    log = log_of(5e-6)
    rows = fine().model.record.rigid_beside
    assert [row.joint for row in rows] == list(robot.joints)
    assert rows[0].matters and rows[0].rigid_error > 1.5 * rows[0].elastic_error
    alone = identify(robot.rigid, [log], 'wls', FIXED)
    information = Experiment.of(alone.experiment.model, alone.experiment.recordings).information
    assert np.sqrt(held_out(information).raw) == pytest.approx([r.rigid_error for r in rows])
    assert alone.model.record.gears == alone.model.record.motor_encoders == ()
    assert alone.model.noise_levels is not None and alone.model.noise_levels.deflected is None


def test_behind_torque_sensors_the_whole_effort_is_compared() -> None:
    robot, _ = elastic_arm()
    log = log_of(5e-6, 4.0)
    assert log.motor_position is not None
    torque = np.array(K) * (log.motor_position - OFFSETS - log.position)
    # equations without any noise would weigh so much that the others are rounding beside them
    noise = SENSOR_NOISE * np.random.default_rng(1).standard_normal(torque.shape)
    seen = replace(log, joint_torque=torque + noise)
    arm = replace(robot, drive=replace(robot.drive, torque_sensors=(1,)))
    rows = identify(arm, [seen], 'wls', FIXED).model.record.rigid_beside
    plain = identify(robot, [log], 'wls', FIXED).model.record.rigid_beside
    for key in ('rigid_error', 'elastic_error'):
        assert [getattr(r, key) for r in rows] == pytest.approx(
            [getattr(r, key) for r in plain], rel=0.2)


def geared(robot: RobotModel) -> RobotModel:
    """Return the arm with gear ratios of 100."""
    return replace(robot, drive=replace(robot.drive, gear_ratios=np.full(robot.n, 100.0)))


@pytest.mark.parametrize(('change', 'message'), [
    (lambda motor: -motor, r'joint_1: they turn -.* times.*correct its sign.*joint_1 is elastic'),
    (lambda motor: -100.0 * motor, r'joint_1: they turn -.* times.*gear ratio is 100.*sign'),
    (lambda motor: 50.0 * motor, r'joint_1: they turn .* times.*robot YAML is 100: correct it'),
    (lambda motor: motor / 100.0, 'joint_1: they turn 0.0.* times.*link side are swapped'),
    (lambda motor: motor[:, [1, 0, 2]], 'joint_1: they follow joint joint_2 instead'),
    (lambda motor: None,
     'no motor states of joint_1; joint_1 is elastic, so.*two encoders.*record'),
])
def test_identify_names_what_is_wrong_with_motor_encoders(change, message) -> None:
    robot, log = geared(elastic_arm()[0]), log_of(5e-6, 4.0)
    wrong = replace(log, motor_position=change(log.motor_position), motor_velocity=None)
    with pytest.raises(DataError, match=message):
        identify(robot, [wrong], 'elastic', FIXED)


def test_effort_without_weight_is_refused() -> None:
    robot, log = elastic_arm()[0], log_of(5e-6, 4.0)
    robot = replace(robot, drive=replace(robot.drive, kind='gravity_compensated_torque'))
    with pytest.raises(UsageError, match='gravity deflects gears'):
        identify(robot, [log], 'wls', FIXED)


def test_command_and_report_show_gears_and_the_rigid_fit(tmp_path: Path, capsys) -> None:
    source = Path(__file__).parents[2] / 'robot_dynid' / 'config' / 'robots' / 'planar_3r.yaml'
    arm = tmp_path / 'arm.yaml'
    arm.write_text(source.read_text() + 'elastic_joints: [joint_1, joint_3]\n')
    (tmp_path / 'r.yaml').write_text('friction: coulomb\ncutoff: 30.0\n')
    write_csv(tmp_path / 'log.csv', log_of(5e-6, 4.0))
    paths = {name: str(tmp_path / name) for name in ('log.csv', 'm.yaml', 'r.html', 'r.yaml')}
    command = ['identify', paths['log.csv'], '--robot', str(arm), '--recipe', paths['r.yaml'],
               '--out', paths['m.yaml'], '--report', paths['r.html']]
    assert main([*command, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert [g['joint'] for g in found['gears']] == ['joint_1', 'joint_3']
    assert [(r['joint'], r['elastic']) for r in found['rigid_beside']] == [
        ('joint_1', True), ('joint_2', False), ('joint_3', True)]
    assert {'joint_2', 'motor of joint_3'} <= set(found['joints']) & set(found['residual'])
    page = Path(paths['r.html']).read_text()
    for text in ('Elastic joints', 'Rigid compared with elastic', 'motor of joint_1',
                 'What can be identified', 'independently identifiable'):
        assert text in page
    assert main([*command, '--verbose']) == 0
    told = capsys.readouterr().out
    assert 'Rigid compared with elastic' in told and 'Gears and encoders' in told


def test_the_table_of_gears_is_that_of_the_closed_form() -> None:
    """A motor encoder on the motor side, 0.3 rad off; values known to a hundredth."""
    robot, ideal = closed_form_gear.arm(), closed_form_gear.recording()
    assert ideal.motor_position is not None and ideal.motor_velocity is not None
    log = replace(ideal, motor_position=40.0 * (ideal.motor_position + 0.3),
                  motor_velocity=40.0 * ideal.motor_velocity)
    effects = GearEffects(closed_form_gear.ERROR, (6e-5, 2e-4), states='dahl')
    model = closed_form_gear.model_of(robot, (effects,), K2=5e3, D2=10.0, s2=-0.5, Ia2=0.3,
                                      Ks2=0.3, Kc2=-0.4, ha2=0.1, hb2=0.3)
    (gear,) = gear_table(model, log, repair(robot, log))
    assert gear.kinematic_error == pytest.approx(1e-4)
    # sine and cosine, each known to a hundredth of itself
    assert gear.kinematic_error_std == pytest.approx(1e-2 * np.hypot(0.09, 0.16) / 0.5 / 5e3)
    assert (gear.hysteresis, gear.hysteresis_std) == pytest.approx((0.4, np.hypot(1e-3, 3e-3)))
    offset = encoders_of(robot, log)[1].offset
    assert offset == pytest.approx(0.3, abs=1e-3)  # a load on average, which s takes back
    assert (gear.offset, gear.offset_std) == pytest.approx((offset + 1e-4, 1e-6))
    bent = (ideal.motor_position - ideal.position)[25:-25, 1] + 0.3 - offset - 1e-4
    assert gear.deflection_rms == pytest.approx(np.sqrt(np.mean(bent**2)), rel=5e-3)
    assert gear.deflection_peak == pytest.approx(np.abs(bent).max(), rel=2e-2)
    (plain,) = gear_table(closed_form_gear.model_of(robot, K2=5e3), log, repair(robot, log))
    assert (plain.kinematic_error, plain.kinematic_error_std) == (0.0, 0.0)


GEAR = GearRecord('joint_2', 5e3, 1.0, 0.0, 0.0, 3e-4, 1e-3, 1e-4, 2e-4, 4e-5, 0.02, 10.0, 0.1,
                  0.3, 0.01)


@pytest.mark.parametrize(('changes', 'texts'), [
    ({'attenuation': 0.01}, ()),
    ({}, ('deflects by 0.3 mrad (RMS), 1.5 times the steps of its encoders, 0.2 mrad: too',
          'underestimates by about 2 %; load the joint more, or use finer encoders')),
    ({'resolution_link': 3e-4}, ('1 times the steps of its encoders, 0.3 mrad',)),
    ({'resolution_link': 0.0, 'resolution_motor': 0.0},
     ('7.5 times the noise of its encoders, 0.04 mrad', 'or average a periodic motion')),
    ({'attenuation': 0.5}, ('underestimates by about 5e+01 %',)),
    ({'attenuation': 0.51}, ('its stiffness, which is undetermined;',)),
])
def test_a_deflection_in_the_noise_is_told_by_what_hides_it(changes, texts) -> None:
    warnings = gear_warnings([replace(GEAR, **changes)])
    assert len(warnings) == bool(texts)
    assert all(text in warnings[0] for text in texts)


@pytest.mark.parametrize(('apart', 'order'), [(-1.05, 80.0), (-0.95, None), (0.95, None)])
def test_a_wave_of_a_gear_is_found_unless_it_is_the_expected_one(
    apart: float, order: float | None
) -> None:
    """Orders differ by a wave over the travel of 1.15 rad; this motor is read on its own side."""
    robot, log = closed_form_gear.arm(), closed_form_gear.recording()
    (gear,) = Springs(robot).gears
    assert log.motor_position is not None
    expected = 80.0 + apart * 2.0 * np.pi / np.ptp(log.motor_position[:, 1])
    turns = replace(log, motor_position=40.0 * log.motor_position)
    assert other_wave(robot, turns, gear, expected) == order


def test_no_wave_is_found_without_one_or_without_a_usable_encoder() -> None:
    robot, log = closed_form_gear.arm(), closed_form_gear.recording()
    (gear,) = Springs(robot).gears
    assert log.motor_position is not None
    smooth = replace(log, motor_position=log.position + 1e-3 * np.cos(log.position))
    for without in (smooth, replace(log, motor_position=-log.motor_position)):
        assert other_wave(robot, without, gear, 320.0) is None


def test_a_gear_with_the_waves_of_another_ratio_is_told() -> None:
    robot, log = closed_form_gear.arm(60.0), closed_form_gear.recording(loop=0.0)
    recordings = [repair(robot, log)]
    (warning,) = ratio_warnings(closed_form_gear.model_of(robot), log, recordings)
    assert warning.startswith('joint_2: its gear shows no kinematic error with gear_ratios 60, '
                              'but one of 80 waves per turn of the joint')
    assert 'a ratio of about 40 has: correct gear_ratios' in warning
    effects = (GearEffects(closed_form_gear.ERROR),)
    assert ratio_warnings(closed_form_gear.model_of(robot, effects), log, recordings) == []
    unknown = replace(robot, drive=replace(robot.drive, gear_ratios=None))
    assert ratio_warnings(closed_form_gear.model_of(unknown), log, recordings) == []
