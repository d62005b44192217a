"""The monitor: sample by sample like a whole recording, through gaps, jumps and bad states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from monitored import external_torque, model_of, motion
from tolerances import SAME_FORMULA

from robot_dynid.friction import ADDITIONS, LAWS, law_from
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings
from robot_dynid.monitoring.monitor_input import MonitorInput, monitor_input
from robot_dynid.monitoring.noise_levels import recorded_motions
from robot_dynid.monitoring.observer import (
    FRICTION,
    PREDICTED,
    RESIDUAL,
    ContactSettings,
    Observer,
)
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.filters import Delay, delay_of
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, RawLog, Samples, take

GAINS = np.linspace(2.0, 8.0, 7)


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
    whole = external_torque(model, monitor_input(model, log), monitor.settings.gain)
    single = followed(monitor, log)
    assert monitor.restarts == 1
    np.testing.assert_allclose(single, whole, rtol=0.0, atol=SAME_FORMULA * np.abs(whole).max())


def friction_along(model: IdentifiedModel, along: MonitorInput) -> FloatArray:
    """Return the friction torque (N, n) as the identification computes it."""
    friction = model.structure.friction_of(model.torque_model.robot)
    columns = friction.history(Samples(
        model.joints, along.time, along.position, along.velocity, np.zeros_like(along.position),
        starts=along.starts))
    values = np.array([model.standard[name] for name in friction.names])
    owners = [i for i, law in enumerate(friction.laws) for _ in law.parameters]
    found: FloatArray = (values[:, None] * columns).T @ friction.axes.matrix[owners]
    return found


def carried(model: IdentifiedModel, along: MonitorInput) -> FloatArray:
    """Return the friction torque (N, n) of the monitor."""
    return Observer(model, 30.0).along(along)[:, FRICTION]


@pytest.mark.parametrize('law', [
    *LAWS, *(f'{law}+{added}' for law in ('maxwell', 'two-speed') for added in ADDITIONS
             if added != 'drift'),  # a monitored joint counts as warm
    'dahl+levelling', 'stribeck+breakaway', 'coulomb+temperature'])
def test_friction_carries_its_past(law: str) -> None:
    robot = load_robot('tx40')  # with a motor that turns two joints
    structure = Structure.uniform(robot, True, law, {})
    if 'load' in law:
        structure = replace(structure, load=tuple(
            tuple(float(v) for v in row) for row in robot.nominal))
    model = replace(model_of(robot, law), structure=structure)
    along = monitor_input(model, motion(robot))
    whole = friction_along(model, along)
    found = carried(model, along)
    assert np.abs(whole).max() > 1.0
    np.testing.assert_allclose(found, whole, rtol=0.0, atol=SAME_FORMULA * np.abs(whole).max())


def test_additions_of_all_kinds_are_followed_together() -> None:
    robot = load_robot('seven_axis')
    names = ('maxwell+load+breakaway', 'dahl+levelling+temperature', 'coulomb+load', 'asymmetric',
             'stribeck+load', 'two-speed', 'dahl+load')
    model = model_of(robot)
    structure = Structure.of(True, [(name, law_from(name)) for name in names], robot.nominal)
    reduction = structure.torque_model(robot).reduction
    standard = np.random.default_rng(3).uniform(1.0, 2.0, len(reduction.standard))
    standard[:10 * robot.n] = robot.nominal.ravel()
    values = reduction.base(standard)
    model = replace(model, structure=structure, reduction=reduction, values=values,
                    std=np.zeros_like(values), control=values)
    along = monitor_input(model, motion(robot))
    whole = friction_along(model, along)
    np.testing.assert_allclose(
        carried(model, along), whole, rtol=0.0, atol=SAME_FORMULA * np.abs(whole).max())


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
    assert set(monitor.blind) == set(model.joints)
    assert 'has no noise levels' in monitor.blind['joint_1']


def smoothed(cutoff: float, step: float, effort: FloatArray) -> FloatArray:
    """Return effort (N,) of one joint through the low-pass, in the middle of each step."""
    model = replace(model_of(load_robot('seven_axis')), preprocessing=Preprocessing(cutoff))
    states = np.zeros((len(effort), 3, 7))
    states[:, 2] = effort[:, None]
    steps = np.full(len(effort), step)
    steps[0] = 0.0
    results = Observer(model, 30.0)(states, steps)
    found: FloatArray = (results[:, PREDICTED] + results[:, RESIDUAL])[1:, 0]
    return found


@pytest.mark.parametrize('step', [1e-3, 7e-3])
def test_low_pass_delays_a_ramp_as_it_says(step: float) -> None:
    found = smoothed(8.0, step, step * np.arange(400))
    assert 398.5 * step - found[-1] == pytest.approx(delay_of(8.0, step), rel=1e-9)


def test_low_pass_halves_the_power_at_its_cut_off() -> None:
    step = 1e-4
    found = smoothed(5.0, step, np.sin(10.0 * np.pi * step * np.arange(20_000)))
    assert np.abs(found[10_000:]).max() == pytest.approx(np.sqrt(0.5), rel=1e-3)


def test_delay_looks_back_between_samples() -> None:
    rng = np.random.default_rng(0)
    time, delay = np.cumsum(rng.uniform(1e-3, 3e-3, 200)), Delay(0.0123)
    found = np.array([delay(float(t), np.array([t]))[0] for t in time])
    np.testing.assert_allclose(found, np.maximum(time - 0.0123, time[0]), rtol=0.0, atol=1e-12)


def seam_faults(log: RawLog, fault: str) -> RawLog:
    """Return a recording without what comes just when the first joint passes a seam at pi."""
    shown = np.mod(log.position[:, 0] + np.pi, 2.0 * np.pi)
    seams = np.flatnonzero(np.abs(np.diff(shown)) > np.pi) + 1
    rows = np.concatenate([np.arange(seam - 5, seam + 5) for seam in seams])
    assert len(rows) >= 20
    if fault == 'messages lost':
        return take(log, np.setdiff1d(np.arange(len(log.time)), rows))
    position = log.position.copy()
    if fault == 'no numbers':
        position[rows] = np.nan
    return replace(log, position=position)


@pytest.mark.parametrize('fault', ['', 'messages lost', 'no numbers'])
@pytest.mark.parametrize('least', [-np.pi, 0.0], ids=['+-pi', '0 to 2 pi'])
@pytest.mark.parametrize('direction', [1.0, -1.0])
@pytest.mark.parametrize('velocity', [True, False])
def test_positions_that_turn_over_are_no_contact(
    velocity: bool, direction: float, least: float, fault: str
) -> None:
    """The readings are those of encoders that count on."""
    model = model_of(load_robot('seven_axis'), lag=0.0037)
    time = 2e-3 * np.arange(2500)
    ahead = direction * np.linspace(3.0, 1.0, 7)
    q, qd = (np.outer(time, ahead) + 0.2 * np.sin(np.outer(time, np.full(7, 3.0))),
             ahead + 0.6 * np.cos(np.outer(time, np.full(7, 3.0))))
    qdd = -1.8 * np.sin(np.outer(time, np.full(7, 3.0)))
    log = seam_faults(RawLog('turning', model.joints, time, q, qd if velocity else None,
                             model.inverse(q, qd, qdd)), fault)
    shown = replace(log, position=least + np.mod(log.position - least, 2.0 * np.pi))
    truth, found = (followed(Monitor(model), one) for one in (log, shown))
    size = np.abs(model.inverse(q, qd, qdd)).max()
    # a difference of large angles is less exact by what they are rounded to
    np.testing.assert_allclose(found, truth, rtol=0.0, atol=1e-6 * size)
    whole, along = (external_torque(model, monitor_input(model, one), MonitorSettings().gain)
                    for one in (log, shown))
    np.testing.assert_allclose(along, whole, rtol=0.0, atol=1e-6 * size)


def test_states_too_far_apart_for_the_monitor_give_no_levels() -> None:
    robot = load_robot('planar_3r')
    time = 40.0 * np.arange(50.0)
    position = np.sin(np.outer(time, [3e-4, 5e-4, 7e-4]))
    log = RawLog('slow.csv', robot.joints, time, position, effort=position)
    model = model_of(robot, 'coulomb')
    lagging = replace(model, preprocessing=replace(model.preprocessing, effort_lag=0.01))
    for one in (model, lagging):
        assert not len(monitor_input(one, log).time)
        assert recorded_motions(one, [log]) == []


def test_predictions_begin_after_four_delays_of_the_low_pass() -> None:
    """The delay is that of the low-pass, and of the middle of the steps."""
    monitor, step, rest = Monitor(model_of(load_robot('planar_3r'))), 0.002, np.zeros(3)
    delay = delay_of(10.0, step) + 0.5 * step
    assert monitor.delay == 0.0
    begun = []
    for k in range(90):
        reading = monitor(k * step, rest, rest, rest)
        assert reading is not None
        begun.append(reading.predicted is not None)
    assert monitor.delay == pytest.approx(delay, rel=1e-12)
    assert begun == [k * step >= 4.0 * delay for k in range(90)] and begun[-1]
