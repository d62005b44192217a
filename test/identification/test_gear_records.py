"""identification/gears.py: numbers, thresholds and words of gears and encoders, in closed form.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import closed_form_gear
import numpy as np
import pytest

from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.deflection_fit import fit_deflections
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification import gears
from robot_dynid.identification.gathered import Fit
from robot_dynid.identification.gears import (
    GEAR_RECORDINGS,
    UNDETERMINED,
    compare_with_rigid,
    delays_to_undo,
    gear_table,
    gear_warnings,
    joints_to_make_rigid,
    motor_encoders,
    record_gears,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.record import GearRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.signals.encoders import noise
from robot_dynid.signals.prepare import Averaging, Preprocessing, prepare, repair
from robot_dynid.types import RawLog

GEAR = GearRecord('joint_2', 5e3, 100.0, 0.01, 1e-4, 3e-4, 1e-3, 1e-4, 2e-4, 4e-5, 0.0, 10.0, 0.1,
                  0.3, 0.01)


def gear(joint: str, stiffness: float, deviation: float) -> GearRecord:
    return replace(GEAR, joint=joint, stiffness=stiffness, stiffness_std=deviation)


def compared(joint: str, elastic: float, rigid: float) -> Any:
    return SimpleNamespace(joint=joint, elastic_error=elastic, rigid_error=rigid)


@pytest.mark.parametrize(('stiffness', 'elastic', 'reason'), [
    (1.97, 1.0, None), (1.95, 1.0, UNDETERMINED), (-3.0, 1.0, UNDETERMINED),
    (np.nan, 1.0, UNDETERMINED), (1.97, 2.2, None), (1.95, 2.3, UNDETERMINED),
    (1.97, 2.21, 'the elastic model predicts the held-out effort of two worse; record another '
     'motion')])
def test_joints_to_make_rigid_are_open_or_predicted_worse(stiffness, elastic, reason) -> None:
    model: Any = SimpleNamespace(record=SimpleNamespace(
        gears=(gear('one', 2.0, 0.1), gear('two', stiffness, 1.0)),
        rigid_beside=(compared('one', 1.0, 1.0), compared('two', elastic, 2.0),
                      compared('three', 9.0, 1.0))))
    assert joints_to_make_rigid(model) == ({} if reason is None else {'two': reason})


@pytest.mark.parametrize(('undone', 'delays'), [
    ((), {'b': 0.003, 'c': 0.004}), ((0.0, 0.003, 0.0, 0.0), {'b': 0.003, 'c': 0.004}),
    ((0.001, 0.003, 0.004, 0.0), {})])
def test_delays_to_undo_are_those_of_elastic_joints_until_they_are_undone(undone, delays) -> None:
    def encoder(joint: str, delay: float) -> Any:
        return SimpleNamespace(joint=joint, delay=SimpleNamespace(value=delay),
                               shows_delay=lambda taken: 5e-4 < abs(delay - taken) < 0.1)

    model: Any = SimpleNamespace(
        joints=tuple('abcd'), elastic_joints=('b', 'c', 'd'),
        preprocessing=SimpleNamespace(encoder_delays=undone),
        record=SimpleNamespace(encoders=[encoder('a', 0.002), encoder('b', 0.003),
                                         encoder('c', 0.004), encoder('d', 0.0001)]))
    assert delays_to_undo(model) == delays


IMPOSSIBLE = 'joint_2: the damping of its gear is -0.21 +- 0.2 N m s/rad, which is impossible: ' \
    'it absorbs friction behind the gear, hysteresis or a late encoder; use method feasible, ' \
    'which bounds it, or correct the cause; rollouts use no damping'
WAVES = 'joint_2: the model of its gear has kinematic error of 40 microrad (0.2 N m){}'
LOOP = 'hysteresis of 0.27 N m; forward dynamics of single states omits hysteresis, inverse ' \
    'with stiff gears and exports omit {}'
FEW = 'joint_2: its gear deflects by 0.3 mrad (RMS), {}: too little for its stiffness, which ' \
    '{}; load the joint more, or {}'
STEPS, LEVEL = '1.5 times the steps of its encoders, 0.2 mrad', \
    '7.5 times the noise of its encoders, 0.04 mrad'


@pytest.mark.parametrize(('changes', 'words'), [
    ({}, []),
    ({'damping': -0.21}, [IMPOSSIBLE]),
    ({'damping': -0.19}, []),
    ({'kinematic_error': 4e-5}, [
        WAVES.format('; inverse with stiff gears and exports omit it')]),
    ({'hysteresis': 0.27}, ['joint_2: the model of its gear has ' + LOOP.format('it')]),
    ({'kinematic_error': 4e-5, 'hysteresis': 0.27, 'damping': -0.21},
     [WAVES.format(' and ' + LOOP.format('both')), IMPOSSIBLE]),
    ({'attenuation': 0.0101}, [FEW.format(
        STEPS, 'least squares underestimates by about 1 %', 'use finer encoders')]),
    ({'attenuation': 0.01}, []),
    ({'attenuation': 0.04, 'resolution_link': 2.4e-4}, [FEW.format(
        '1.2 times the steps of its encoders, 0.24 mrad',
        'least squares underestimates by about 4 %', 'use finer encoders')]),
    ({'attenuation': 0.5, 'resolution_link': 0.0, 'resolution_motor': 0.0}, [FEW.format(
        LEVEL, 'least squares underestimates by about 5e+01 %', 'average a periodic motion')]),
    ({'attenuation': 0.51, 'resolution_link': 0.0, 'resolution_motor': 0.0}, [FEW.format(
        LEVEL, 'is undetermined', 'average a periodic motion')])])
def test_gear_warnings_state_effects_damping_and_deflections_in_the_noise(changes, words) -> None:
    assert gear_warnings([replace(GEAR, **changes)]) == words
    other = replace(GEAR, joint='joint_1')
    assert gear_warnings([other, replace(GEAR, **changes)]) == words


def coarse(link: float = 3e-5, motor: float = 5e-5, spread: float = 4e-5, seed: int = 3) -> RawLog:
    """Return the recording by noisy encoders of these steps [rad], the motor's on its own side."""
    log, rng = closed_form_gear.recording(), np.random.default_rng(seed)
    assert log.motor_position is not None
    q, theta = (one + spread * rng.standard_normal(one.shape)
                for one in (log.position, log.motor_position))
    return replace(log, position=link * np.round(q / link), velocity=None, motor_velocity=None,
                   motor_position=40.0 * (motor * np.round(theta / motor) + 0.3))


@pytest.mark.parametrize(('periods', 'cutoff', 'passed'), [
    (1, 20.0, 0.16), (4, 20.0, 0.16), (9, 62.0, 0.496)])
def test_gear_table_states_the_share_of_noise_in_the_deflection(periods, cutoff, passed) -> None:
    """White noise of both encoders; averaging reduces what rounding, (step^2)/12, leaves of it."""
    robot, log = closed_form_gear.arm(), coarse()
    model = closed_form_gear.model_of(robot, K2=5e3, s2=-0.5)
    model = replace(model, preprocessing=replace(model.preprocessing, cutoff=cutoff))
    repaired = replace(repair(robot, log), averaging=None if periods == 1 else Averaging(
        'x', 4.0, 0.0, periods, (0.0,) * 2, (0.1,) * 2))
    (found,) = gear_table(model, log, repaired)
    assert (found.resolution_link, found.resolution_motor) == pytest.approx((3e-5, 5e-5))
    motor = log.motor_position[:, 1] / 40.0
    assert found.noise == pytest.approx(np.hypot(noise(log.position[:, 1]), noise(motor)))
    assert found.noise == pytest.approx(4e-5 * np.sqrt(2.0), rel=0.15)
    rounding = (9.0 + 25.0) * 1e-10 / 12.0
    left = passed * ((found.noise**2 - rounding) / periods + rounding)
    samples = prepare(robot, repaired, model.preprocessing)
    bent = samples.position[:, 2] - samples.position[:, 1]
    assert found.attenuation == pytest.approx(left / np.var(bent))
    assert found.deflection_rms == pytest.approx(np.sqrt(np.mean((bent - 1e-4)**2)))
    assert found.deflection_peak == pytest.approx(np.abs(bent - 1e-4).max())
    assert (found.joint, found.stiffness, found.stiffness_std) == ('joint_2', 5e3, 50.0)


def test_gear_table_has_noise_alone_for_a_gear_that_does_not_bend() -> None:
    """Of samples whose motor and link agree in every row."""
    robot, log = closed_form_gear.arm(), closed_form_gear.recording()
    model = closed_form_gear.model_of(robot, K2=5e3)
    repaired = repair(robot, log)
    parts = tuple(replace(part, motor_position=part.position, motor_velocity=part.velocity)
                  for part in repaired.parts)
    (found,) = gear_table(model, log, replace(repaired, parts=parts))
    assert (found.deflection_rms, found.deflection_peak, found.attenuation) == (0.0, 0.0, 1.0)


def test_records_of_gears_are_those_of_the_first_recording(monkeypatch) -> None:
    """Deflections are fitted to all recordings, at full rate, with no delay undone."""
    robot, first = closed_form_gear.arm(), closed_form_gear.recording(loop=0.0)
    assert first.motor_position is not None
    second = replace(first, source='second', motor_position=first.motor_position + 0.2)
    repaired = [repair(robot, log) for log in (first, second)]
    plain = closed_form_gear.model_of(robot, K2=5e3, s2=-0.5, D2=10.0)
    model = replace(plain, preprocessing=replace(
        plain.preprocessing, decimate=True, encoder_delays=(0.0, 1e-3)))
    gathered: Any = SimpleNamespace(excerpt=repaired, logs=[first, second])
    monkeypatch.setattr(gears, 'compare_with_rigid', lambda *given: given[1:])
    monkeypatch.setattr(gears, 'ratio_warnings', lambda *given: [given[1].source, 'ratio'])
    samples = [prepare(robot, one, plain.preprocessing) for one in repaired]
    estimate = ESTIMATORS['wls'].fit(Experiment.of(model.torque_model, samples))
    fit = Fit(model, estimate, ('before',))
    found = record_gears(fit, gathered, ESTIMATORS['wls'], Recipe())
    record = found.model.record
    assert record.gears == gear_table(model, first, repaired[0])
    assert record.gears != gear_table(model, first, repaired[1])
    assert record.rigid_beside == (repaired, Recipe())
    assert found.notes == ('before', *gear_warnings(record.gears), 'gear', 'ratio')
    assert record.encoders == fit_deflections(
        model.torque_model, estimate.values, estimate.covariance, samples)
    single: Any = SimpleNamespace(single_joint_motions=True)
    staged = record_gears(fit, gathered, single, Recipe()).model.record
    assert (staged.gears, staged.encoders) == (record.gears, ())
    blind = replace(repaired[1], parts=tuple(
        replace(part, motor_position=None) for part in repaired[1].parts))
    without: Any = SimpleNamespace(excerpt=[repaired[0], blind], logs=[first, second])
    assert record_gears(fit, without, ESTIMATORS['wls'], Recipe()).model.record.encoders == ()
    rigid = closed_form_gear.model_of(robot.rigid)
    stiff = ESTIMATORS['wls'].fit(Experiment.of(rigid.torque_model, [
        prepare(robot.rigid, repaired[0], plain.preprocessing)]))
    for data, count in ((gathered, 1), (without, 0)):
        alone = record_gears(Fit(rigid, stiff), data, ESTIMATORS['wls'], Recipe())
        assert (alone.model.record.gears, alone.notes) == ((), ())
        assert len(alone.model.record.encoders) == count


def test_motor_encoders_are_combined_over_the_first_recordings() -> None:
    """Mean and scatter of the offsets, root mean squares of the noise; whole turns are dropped."""
    robot = closed_form_gear.arm()
    offsets = np.array([0.3, 0.31, 0.33, 0.3, 0.35, 9.0])
    sizes = np.array([2e-5, 4e-5, 3e-5, 5e-5, 2e-5, 9e-3])
    assert len(offsets) == GEAR_RECORDINGS + 1
    logs = []
    for k, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        log = coarse(1e-9, 1e-9, float(size), k)
        turns = 2.0 * np.pi * (k - 2)
        logs.append(replace(log, motor_position=log.motor_position + 40.0 * (
            offset - 0.3 + turns)))
    blind = replace(logs[0], motor_position=None)
    (found,) = motor_encoders(closed_form_gear.model_of(robot), [logs[0], *logs[1:]])
    assert (found.joint, found.factor) == ('joint_2', 40.0)
    spread = offsets[:5].std(ddof=1)
    (alone,) = motor_encoders(closed_form_gear.model_of(robot), [blind, logs[0]])
    assert alone.offset_std == 0.0 and alone.offset == pytest.approx(0.3, abs=1e-3)
    assert found.offset - alone.offset == pytest.approx(offsets[:5].mean() - 0.3, abs=1e-5)
    assert found.offset_std == pytest.approx(spread, rel=2e-3)
    size = np.sqrt(2.0 * np.mean(sizes[:5]**2))
    assert found.noise == pytest.approx(size, rel=0.1)
    assert found.rate_noise == pytest.approx(np.sqrt(2.0) * found.noise / 4e-3)
    assert alone.rate_noise == pytest.approx(np.sqrt(2.0) * alone.noise * 250.0)
    assert motor_encoders(closed_form_gear.model_of(robot), [blind]) == ()
    rigid = closed_form_gear.model_of(robot.rigid)
    assert motor_encoders(rigid, logs[:1]) == ()


def test_motor_encoders_have_the_noise_of_their_own_velocities() -> None:
    robot, rng, log = closed_form_gear.arm(), np.random.default_rng(7), coarse(1e-9, 1e-9)
    ideal = closed_form_gear.recording()
    assert ideal.velocity is not None and ideal.motor_velocity is not None
    link = ideal.velocity + 3e-3 * rng.standard_normal(ideal.velocity.shape)
    motor = ideal.motor_velocity + 4e-3 * rng.standard_normal(ideal.velocity.shape)
    whole = replace(log, velocity=link, motor_velocity=40.0 * motor)
    (found,) = motor_encoders(closed_form_gear.model_of(robot), [whole])
    assert found.rate_noise == pytest.approx(5e-3, rel=0.1)
    (without,) = motor_encoders(closed_form_gear.model_of(robot), [replace(whole, velocity=None)])
    assert without.rate_noise == pytest.approx(np.sqrt(2.0) * without.noise * 250.0)


def test_rigid_comparison_holds_both_models_against_the_same_effort() -> None:
    """Each with its own equations of the same recording, in the order of the joints."""
    robot, log = closed_form_gear.arm(), closed_form_gear.recording((0.0, 0.0), 0.0)
    model, recordings = closed_form_gear.model_of(robot), [repair(robot, log)]
    rows = compare_with_rigid(model, recordings, Recipe(
        cutoff=13.0, effort_lag=0.0, friction='coulomb', ramp_width=0.05, ripple='none'))
    assert [(row.joint, row.elastic, row.matters) for row in rows] == [
        ('joint_1', False, False), ('joint_2', True, True)]
    for arm, name in ((robot, 'elastic_error'), (robot.rigid, 'rigid_error')):
        structure = Structure.uniform(arm, True, 'coulomb', {'width': 0.05} if arm is not robot
                                      else {})
        samples = prepare(arm, recordings[0], Preprocessing(
            20.0, decimate=arm is not robot, effort_lag=0.0))
        errors = held_out(Experiment.of(structure.torque_model(arm), [samples]).information).raw
        assert [getattr(row, name) for row in rows] == pytest.approx(np.sqrt(errors[:2]))
