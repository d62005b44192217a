"""monitoring/deflected_observer.py: the monitor of a model that has learned what the deflection of
a joint tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from elastic_arms import with_motor_encoders
from learned_deflection import BEND, GMR, ROBOT, STEP, fitted, model_with, recording
from monitored import model_of
from tolerances import SAME_FORMULA

from robot_dynid.effects.deflection import RadialBasis, ResidualFit, RippleModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.monitoring.deflected_observer import DEFLECTED, SPREAD, DeflectedObserver
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings, observer_of
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.noise_levels import slow_shares
from robot_dynid.monitoring.observer import (
    EXTERNAL,
    PREDICTED,
    RESIDUAL,
    THRESHOLD,
    ContactSettings,
    Observer,
)
from robot_dynid.signals.filters import corner_of


@pytest.mark.parametrize('fit', [GMR, RadialBasis()], ids=['gmr', 'rbf'])
def test_deflected_observer_predicts_the_learned_residual(fit: ResidualFit) -> None:
    own = model_with(fit)
    motion = monitor_input(own, recording(4, 6.0))
    with_it = observer_of(own, MonitorSettings()).along(motion)[200:]
    without = Observer(own, 30.0).along(motion)[200:]
    for row in (RESIDUAL, EXTERNAL):
        errors = [np.sqrt(np.mean(r[:, row, 1]**2)) for r in (with_it, without)]
        assert errors[0] < 0.35 * errors[1], (row, errors)
    for joint in (0, 2):
        np.testing.assert_array_equal(with_it[:, EXTERNAL, joint], without[:, EXTERNAL, joint])
        assert np.isnan(with_it[:, SPREAD, joint]).all()
    measured = [r[:, PREDICTED] + r[:, RESIDUAL] for r in (with_it, without)]
    np.testing.assert_allclose(*measured, rtol=0.0, atol=1e-9)
    levels = own.noise_levels
    assert levels is not None and levels.deflected is not None
    assert levels.deflected.moving[1] < 0.5 * levels.moving[1], 'smaller pushes are seen'


def test_messages_one_by_one_are_the_recording() -> None:
    own, log = model_with(GMR), recording(4, 2.0, 3.0)
    whole = observer_of(own, MonitorSettings()).along(monitor_input(own, log))
    monitor = Monitor(own)
    assert log.velocity is not None and log.effort is not None
    assert log.motor_position is not None and log.motor_velocity is not None
    found = []
    for k, time in enumerate(log.time.tolist()):
        reading = monitor(time, log.position[k], log.velocity[k], log.effort[k])
        assert reading is not None
        monitor.take_motors(time, log.motor_position[k], log.motor_velocity[k])
        found.append((reading.external, reading.threshold, reading.deflected, reading.spread))
    np.testing.assert_allclose(
        np.array(found, dtype=np.float64), whole[:, [EXTERNAL, THRESHOLD, DEFLECTED, SPREAD]],
        rtol=SAME_FORMULA, atol=1e-9)
    assert whole[:, DEFLECTED, 1].any() and not whole[:, DEFLECTED, [0, 2]].any()


def test_thresholds_rise_where_the_model_is_unsure_and_up_to_those_without_it() -> None:
    """By the root of the share of the unusual variance; of joints without a model they stay."""
    own = model_with(GMR)
    learned_part = own.parts_of('residual')[1]
    assert learned_part is not None
    usual, speed = 0.1 * learned_part.blank, np.array([0.5, 0.6, 0.7])
    levels = NoiseLevels(np.array([3.0, 2.0, 1.0]), np.array([0.7, 0.9, 0.5]), speed)
    own = replace(own, noise_levels=replace(levels, deflected=NoiseLevels(
        np.array([2.5, 0.5, 1.0]), np.array([0.6, 0.2, 0.4]), speed,
        variance=np.array([0.0, usual, 0.0]))))
    motion = monitor_input(own, recording(5, 3.0, 4.0))
    found = observer_of(own, MonitorSettings()).along(motion)[40:]
    slow = slow_shares(motion, np.zeros_like(motion.velocity), speed[None], 30.0)[0][40:, 0]
    unsure = (found[:, SPREAD, 1]**2 - usual) / (learned_part.blank - usual)
    assert unsure.min() < 0.0 and 0.3 < np.mean(unsure > 0.99) < 0.9
    share = np.sqrt(np.clip(unsure, 0.0, 1.0))
    np.testing.assert_allclose(
        found[:, THRESHOLD, 1], 1.0 + 3.0 * share + (0.2 + 0.7 * share) * slow[:, 1])
    for joint, moving, holding in ((0, 6.0, 0.7), (2, 2.0, 0.5)):
        np.testing.assert_allclose(found[:, THRESHOLD, joint], moving + holding * slow[:, joint])


def test_the_deflection_passes_the_low_pass_of_the_effort() -> None:
    """A jump shows as it does in two first-order stages: for encoders with coarse steps, too."""
    own = model_with(GMR)
    rows = np.zeros((400, 5, 3))
    rows[200:, 3, 1] = 0.4 * BEND
    observer, steps = observer_of(own, MonitorSettings()), np.full(400, STEP)
    steps[0] = 0.0
    found = observer(rows, steps)[:, PREDICTED, 1] - Observer(own, 30.0)(
        rows[:, :3], steps)[:, PREDICTED, 1]
    share = (found - found[150]) / (found[-1] - found[150])
    once = 1.0 - np.exp(-corner_of(own.preprocessing.cutoff) * STEP)
    assert share[199] == pytest.approx(0.0, abs=1e-6)
    # the curve is about straight up to there: a tenth of the height
    assert share[200] == pytest.approx(once**2, abs=0.1)
    assert share[204] < 0.75 and share[230] == pytest.approx(1.0, abs=0.02)


def test_thresholds_of_your_own_stay() -> None:
    own = model_with(GMR)
    settings = MonitorSettings(contact=ContactSettings(thresholds=(9.0,)))
    found = observer_of(own, settings).along(monitor_input(own, recording(5, 3.0, 8.0)))
    slow = found[:, THRESHOLD, 1] - 9.0
    assert (slow >= -1e-12).all() and slow[300:].min() == pytest.approx(0.0, abs=1e-6)


def test_without_motor_states_nothing_is_expected_and_the_deviation_says_so() -> None:
    own, log = model_with(GMR), recording(4, 2.0)
    bare = replace(log, motor_position=None, motor_velocity=None)
    found = observer_of(own, MonitorSettings()).along(monitor_input(own, bare))
    levels = observer_of(own.with_learnt('residual', ()), MonitorSettings())
    assert isinstance(levels, Observer)
    plain = levels.along(monitor_input(own, bare))
    np.testing.assert_array_equal(found[:, :plain.shape[1]], plain)
    learned_part = own.parts_of('residual')[1]
    assert learned_part is not None
    np.testing.assert_allclose(found[:, SPREAD, 1], np.sqrt(learned_part.blank))


def test_ripple_of_the_gear_is_expected_by_its_phase() -> None:
    """The deflection times a wave of the motor's turn, slow enough for the filter."""
    ratio = 2.0
    robot = replace(ROBOT, drive=replace(ROBOT.drive, gear_ratios=np.full(3, ratio)))
    log = recording(2)
    assert log.motor_position is not None and log.effort is not None
    bend = log.motor_position[:, 1] - log.position[:, 1]
    phase = 2.0 * ratio * log.motor_position[:, 1]
    wave = 3000.0 * bend * np.sin(phase)
    effort = log.effort.copy()
    effort[:, 1] += wave
    part = RippleModel(np.array([3000.0, 0.0]), fitted(GMR))
    own = model_of(robot).with_learnt('residual', (None, part, None))
    log = replace(log, effort=effort)
    own = with_motor_encoders(own, [log])
    observer = observer_of(own, MonitorSettings())
    assert isinstance(observer, DeflectedObserver)
    found = observer.along(monitor_input(own, log))[200:]
    rest = np.sqrt(np.mean(found[:, RESIDUAL, 1]**2))
    assert rest < 0.3 * np.sqrt(np.mean(wave**2))


def test_a_rigid_robot_has_nothing_of_it() -> None:
    monitor, log = Monitor(model_of(ROBOT)), recording(0, 1.0)
    assert not monitor.follows_motors
    assert monitor_input(monitor.model, log).motors is None
    assert log.velocity is not None and log.effort is not None
    reading = monitor(0.0, log.position[0], log.velocity[0], log.effort[0])
    assert reading is not None and reading.deflected is None
    assert monitor.without_motors == () and monitor.unusable_motor_states == 0
