"""The monitor: sample by sample like a whole recording, through gaps, jumps and bad states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tolerances import SAME_FORMULA

from robot_dynid.errors import DataError, UsageError
from robot_dynid.friction import LAWS
from robot_dynid.identified.contact import ContactDetector, ContactSettings
from robot_dynid.identified.friction_stream import FrictionStream, friction_along
from robot_dynid.identified.live import live
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.monitor import Monitor, MonitorSettings
from robot_dynid.identified.observer import external_torque
from robot_dynid.identified.quiet import QUANTILE, QUIET, Quiet, quiet_levels
from robot_dynid.identified.structure import Structure
from robot_dynid.model.robot import Drive, RobotModel
from robot_dynid.model.robot_file import load_robot
from robot_dynid.signals.causal import CausalLowPass, Delay
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, RawLog

GAINS = np.linspace(2.0, 8.0, 7)


def model_of(
    robot: RobotModel, law: str = 'coulomb', settings: Mapping[str, Any] | None = None,
    lag: float = 0.0,
) -> IdentifiedModel:
    """Return a model with the nominal links and friction of 1 to 2 for every parameter."""
    structure = Structure.uniform(robot, True, law, settings or {})
    reduction = structure.torque_model(robot).reduction
    rng = np.random.default_rng(0)
    standard = np.concatenate([
        robot.nominal.ravel(), rng.uniform(1.0, 2.0, len(reduction.standard) - 10 * robot.n)])
    values = reduction.base(standard)
    return IdentifiedModel(robot, structure, reduction, values, np.zeros_like(values), values,
                           Preprocessing(cutoff=10.0, effort_lag=lag))


def motion(robot: RobotModel, count: int = 1500, seed: int = 0) -> RawLog:
    """Return a recording with uneven steps, a gap, and efforts that belong to nothing."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(1.5e-3, 2.5e-3, count))
    time[count // 2:] += 0.3
    rate = rng.uniform(2.0, 5.0, robot.n)
    q = np.sin(np.outer(time, rate))
    qd = rate * np.cos(np.outer(time, rate))
    return RawLog('motion', robot.joints, time, q, qd, rng.normal(size=(count, robot.n)))


def followed(monitor: Monitor, log: RawLog) -> FloatArray:
    """Return the external torque of every state that gave one."""
    found = []
    for k in range(len(log.time)):
        qd = None if log.velocity is None else log.velocity[k]
        assert log.effort is not None
        reading = monitor(float(log.time[k]), log.position[k], qd, log.effort[k])
        if reading is not None:
            found.append(reading.external)
    return np.array(found)


@pytest.mark.parametrize('lag', [0.0, 0.0037, -0.0037])
@pytest.mark.parametrize('velocity', [True, False])
def test_samples_one_by_one_are_the_recording(lag: float, velocity: bool) -> None:
    model = model_of(load_robot('seven_axis'), lag=lag)
    log = motion(model.robot)
    if not velocity:
        log = replace(log, velocity=None)
    monitor = Monitor(model)
    whole = external_torque(model, live(model, log), monitor.settings.gain)
    single = followed(monitor, log)
    assert monitor.restarts == 1
    np.testing.assert_allclose(single, whole, atol=SAME_FORMULA * np.abs(whole).max())


@pytest.mark.parametrize('law', [*LAWS, 'dahl+levelling', 'maxwell+load', 'coulomb+temperature'])
def test_friction_carries_its_past(law: str) -> None:
    robot = load_robot('tx40')  # with a motor that turns two joints
    structure = Structure.uniform(robot, True, law, {})
    if 'load' in law:
        structure = replace(structure, load=tuple(
            tuple(float(v) for v in row) for row in robot.nominal))
    model = replace(model_of(robot, law), structure=structure)
    along = live(model, motion(robot))
    whole = friction_along(model, along)
    stream, fresh = FrictionStream(model), set(along.starts)
    single = np.array([stream(along.position[k], along.velocity[k], k in fresh)
                       for k in range(len(along.time))])
    assert np.abs(whole).max() > 1.0
    np.testing.assert_allclose(single, whole, atol=SAME_FORMULA * np.abs(whole).max())


@pytest.mark.parametrize(('kind', 'factor'), [
    ('torque', np.ones(7)), ('gravity_compensated_torque', np.ones(7)), ('current', GAINS)])
def test_residual_vanishes_for_the_effort_of_the_model(kind: str, factor: FloatArray) -> None:
    robot = load_robot('seven_axis')
    gains = GAINS if kind == 'current' else None
    model = model_of(replace(robot, drive=Drive(kind=kind, gains=gains)))
    time = 2e-3 * np.arange(2000)
    rate = np.linspace(1.0, 3.0, 7)
    phase = np.outer(time, rate)
    q, qd, qdd = np.sin(phase), rate * np.cos(phase), -rate**2 * np.sin(phase)
    effort = model.inverse(q, qd, qdd) / factor
    monitor = Monitor(model)
    residuals, sizes = [], []
    for k in range(len(time)):
        reading = monitor(float(time[k]), q[k], qd[k], effort[k])
        assert reading is not None
        if reading.residual is not None and reading.predicted is not None:
            residuals.append(reading.residual)
            sizes.append(reading.predicted)
    assert len(residuals) > 1800
    assert monitor.delay == pytest.approx(0.0195, abs=0.001)
    # products of velocities do not commute with the low-pass; the rest is rounding
    assert np.abs(residuals).max() < 0.02 * np.abs(sizes).max()


def test_bad_states_are_skipped_and_jumps_begin_anew() -> None:
    model = model_of(load_robot('seven_axis'))
    monitor = Monitor(model)
    zeros, bad = np.zeros(7), np.full(7, np.nan)
    hold = model.gravity(zeros)
    assert monitor(1.0, zeros, zeros, hold) is not None
    assert monitor(1.002, bad, zeros, hold) is None
    assert monitor(1.002, zeros, bad, hold) is None
    assert monitor(1.002, zeros, zeros, bad) is None
    assert monitor(np.nan, zeros, zeros, hold) is None
    assert monitor(1.0, zeros, zeros, hold) is None, 'a repeated stamp'
    assert (monitor.skipped, monitor.restarts) == (5, 0)
    assert monitor(1.002, zeros, zeros, hold) is not None
    assert monitor(0.2, zeros, zeros, hold) is not None, 'time went back'
    assert monitor(5.0, zeros, zeros, hold) is not None, 'a long pause'
    assert monitor.restarts == 2


def test_a_gain_too_high_for_the_rate_is_said() -> None:
    model = model_of(load_robot('seven_axis'))
    contact = ContactSettings(thresholds=(9.0,))
    monitor = Monitor(model, MonitorSettings(gain=60.0, contact=contact))
    for k in range(300):
        monitor(0.01 * k, np.zeros(7), np.zeros(7), np.zeros(7))
    assert monitor.advice() == (
        'joint states at 100 Hz are too slow for an observer gain of 60 1/s: lower it to 50, or '
        'publish faster',)


def test_without_levels_no_contact_is_claimed() -> None:
    model = model_of(load_robot('seven_axis'))
    monitor = Monitor(model)
    followed(monitor, motion(model.robot, 300))
    assert monitor.contact == ()
    assert 'knows no levels of quiet motion' in monitor.advice()[0]


def quiet(n: int = 2) -> Quiet:
    return Quiet(np.full(n, 1.0), np.full(n, 3.0), np.full(n, 0.01), 30.0)


def test_contact_has_hysteresis_and_lasts() -> None:
    robot = load_robot('planar_3r')
    detector = ContactDetector(robot, quiet(3), 30.0, ContactSettings(1.5, 0.6, 0.01))
    fast = np.ones(3)
    detector(np.zeros(3), fast, 10.0)

    def after(torque: float, steps: int) -> bool:
        for _ in range(steps):
            detector(np.array([0.0, -torque, 0.0]), fast, 0.002)
        assert not detector.contact[[0, 2]].any()
        return bool(detector.contact[1])

    assert detector.threshold == pytest.approx(1.5)
    assert not after(1.49, 100)
    assert not after(1.6, 4), 'not for long enough'
    assert not after(1.4, 1)
    assert not after(1.6, 4), 'counts from the beginning'
    assert after(1.6, 1)
    assert after(0.95, 100), 'above 60 % of the threshold'
    assert after(0.8, 4)
    assert not after(0.8, 1)


def test_slow_joints_need_more_torque_and_are_forgotten_like_the_torque() -> None:
    robot = load_robot('planar_3r')
    detector = ContactDetector(robot, quiet(3), 30.0, ContactSettings(1.5))
    assert detector.threshold == pytest.approx(4.5), 'at rest to begin with'
    detector(np.zeros(3), np.array([1.0, 0.0, -1.0]), 1.0 / 30.0)
    assert detector.threshold == pytest.approx([1.5 + 3.0 / np.e, 4.5, 1.5 + 3.0 / np.e])


def test_levels_bound_the_motion_they_are_from() -> None:
    model = model_of(load_robot('seven_axis'))
    log = motion(model.robot)
    levels = quiet_levels(model, [live(model, log)])
    carried = replace(model, provenance={QUIET: levels.plain(model.joints)})
    again = IdentifiedModel.from_yaml(carried.to_yaml())
    monitor = Monitor(again)
    assert monitor.levels is not None
    np.testing.assert_array_equal(monitor.levels.moving, levels.moving)
    above = []
    for k in range(len(log.time)):
        assert log.velocity is not None
        assert log.effort is not None
        reading = monitor(float(log.time[k]), log.position[k], log.velocity[k], log.effort[k])
        assert reading is not None
        bound = reading.threshold - levels.moving  # the threshold has twice the level
        above.append(np.abs(reading.external) > bound)
    assert np.mean(above, axis=0).max() < 2.0 * (1.0 - QUANTILE)
    assert np.any(above)
    with pytest.raises(DataError, match='levels of quiet motion are damaged'):
        Monitor(replace(model, provenance={QUIET: {'gain': 30.0}}))


@pytest.mark.parametrize(('settings', 'words'), [
    ({'margin': 0.5}, 'contact margin must be at least 1'),
    ({'release': 0.0}, 'contact release'),
    ({'duration': -1.0}, 'contact duration'),
    ({'thresholds': (1.0, -2.0)}, 'contact thresholds must be positive'),
])
def test_impossible_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ContactSettings(**settings)


def test_thresholds_fit_the_robot() -> None:
    model = model_of(load_robot('seven_axis'))
    with pytest.raises(UsageError, match='2 contact thresholds for 7 joints'):
        Monitor(model, MonitorSettings(contact=ContactSettings(thresholds=(1.0, 2.0))))


@pytest.mark.parametrize('step', [1e-3, 7e-3])
def test_low_pass_delays_a_ramp_as_it_says(step: float) -> None:
    low_pass = CausalLowPass(8.0)
    found = np.zeros(1)
    for k in range(400):
        found = low_pass(np.array([k * step]), step)
    assert 399 * step - found[0] == pytest.approx(low_pass.delay(step), rel=1e-9)


def test_low_pass_halves_the_power_at_its_cut_off() -> None:
    low_pass, step = CausalLowPass(5.0), 1e-4
    time = step * np.arange(20_000)
    found = np.array([low_pass(np.array([x]), step)[0] for x in np.sin(10.0 * np.pi * time)])
    assert np.abs(found[10_000:]).max() == pytest.approx(np.sqrt(0.5), rel=1e-3)


def test_delay_looks_back_between_samples() -> None:
    rng = np.random.default_rng(0)
    time, delay = np.cumsum(rng.uniform(1e-3, 3e-3, 200)), Delay(0.0123)
    found = np.array([delay(float(t), np.array([t]))[0] for t in time])
    np.testing.assert_allclose(found, np.maximum(time - 0.0123, time[0]), atol=1e-12)
