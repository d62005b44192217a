"""Known external torque in samples, mean periods, excerpts, sweeps and the input of the monitor.

An arm that is helped by a torque, and has it as a channel, looks like the arm that is not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from elastic_arms import random_states, true_model
from identified_models import nominal_model, random_model, with_friction
from tolerances import EXACT_PERIOD, SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.effects.joint_friction import Load
from robot_dynid.friction import law_from
from robot_dynid.identification.sequential_fit import single_joint_motions_of
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.plausibility.excerpt import excerpt
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import drop_stale_rows
from robot_dynid.signals.averaging import Periodic, average
from robot_dynid.signals.external import check_external
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, RawLog, Samples, interpolated
from robot_dynid.validation.forward_scores import forward_accelerations

SETTINGS = Preprocessing(10.0)
STEP, PERIOD = 0.002, 2.0


def motion(seconds: float = 6.0) -> RawLog:
    """Return a motion of the planar arm with a period of two seconds."""
    time = STEP * np.arange(round(seconds / STEP))
    phase = np.pi * time[:, None] * [1.0, 2.0, 3.0]
    rate = np.pi * np.array([1.0, 2.0, 3.0])
    return RawLog('run', load_robot('planar_3r').joints, time, np.sin(phase), rate * np.cos(phase),
                  10.0 * np.sin(phase + 0.5) + [5.0, -4.0, 3.0])


def helped(log: RawLog, robot: RobotModel) -> tuple[RawLog, FloatArray]:
    """Return the recording under a torque that has another period, and the torque (T, n)."""
    torque = np.sin(log.time[:, None] * [1.3, 2.1, 2.9][:robot.n]) * [8.0, 5.0, 2.0][:robot.n]
    assert log.effort is not None
    return replace(log, effort=log.effort - torque / robot.torque_factors,
                   external_torque=torque), torque


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    return load_robot('planar_3r')


@pytest.mark.parametrize('gains', [None, (4.0, 3.0, 2.0)])
def test_samples_are_those_without_it(robot: RobotModel, gains: tuple[float, ...] | None) -> None:
    if gains is not None:
        robot = replace(robot, drive=replace(
            robot.drive, kind='current', gains=np.array(gains)))
    log = motion()
    plain, own = (prepare(robot, repair(robot, one), SETTINGS)
                  for one in (log, helped(log, robot)[0]))
    assert plain.effort is not None and plain.measured is not None and plain.external is None
    for name in ('effort', 'measured', 'position', 'velocity', 'acceleration'):
        np.testing.assert_allclose(getattr(own, name), getattr(plain, name), rtol=0.0, atol=1e-9)
    assert own.external is not None and own.moved.external is not None


def test_the_lag_is_that_of_the_effort_alone(robot: RobotModel) -> None:
    log, torque = helped(motion(), robot)
    settings = replace(SETTINGS, effort_lag=0.0123, decimate=False)
    own, bare = (prepare(robot, repair(robot, one), settings)
                 for one in (log, replace(log, external_torque=None)))
    assert own.measured is not None and bare.measured is not None and own.stamps is not None
    expected = interpolated(log.time, torque, own.stamps, degree=1)
    np.testing.assert_allclose(own.measured - bare.measured, expected, rtol=0.0, atol=1e-9)


def test_efforts_with_stamps_of_their_own(robot: RobotModel) -> None:
    """Messages in a stretch whose wrench is not known are left out."""
    log, torque = helped(motion(), robot)
    stamps = log.time[:-1] + 0.4 * STEP
    effort = interpolated(log.time, log.effort, stamps)
    torque = torque.copy()
    torque[1000:1300] = np.nan
    whole = replace(log, effort_messages=(stamps, effort))
    apart = replace(whole, external_torque=torque)
    found, full = (prepare(robot, repair(robot, one), SETTINGS) for one in (apart, whole))
    assert full.measured is not None and found.measured is not None
    lost = (full.time > 2.0) & (full.time < 2.6)
    assert lost.any() and not np.any((found.time > 2.0) & (found.time < 2.6))
    rows = np.isin(full.time, found.time)
    np.testing.assert_allclose(full.measured[rows], found.measured[
        np.isin(found.time, full.time)], rtol=0.0, atol=1e-6)


def test_motors_of_elastic_joints_keep_their_rows() -> None:
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(0, 1, 2)))
    log = motion()
    assert log.effort is not None and log.velocity is not None
    log = replace(log, motor_position=log.position + 1e-3 * log.effort,
                  motor_velocity=np.gradient(log.position + 1e-3 * log.effort, STEP, axis=0))
    torque = np.sin(log.time[:, None] * [1.3, 2.1, 2.9]) * [8.0, 5.0, 2.0]
    bare, own = (prepare(robot, repair(robot, one), SETTINGS)
                 for one in (log, replace(log, external_torque=torque)))
    assert bare.measured is not None and own.measured is not None and own.stamps is not None
    more = own.measured - bare.measured
    np.testing.assert_allclose(more[:, :3], interpolated(
        log.time, torque, own.stamps, degree=1), rtol=0.0, atol=1e-9)
    assert np.array_equal(more[:, 3:], np.zeros_like(more[:, 3:]))


def test_mean_periods_need_not_repeat_the_push(robot: RobotModel) -> None:
    log = motion(10.0)
    rng = np.random.default_rng(0)
    assert log.effort is not None
    log = replace(log, effort=log.effort + 0.2 * rng.standard_normal(log.effort.shape))
    own, torque = helped(log, robot)
    plain, mean = (average(robot, one, Periodic(PERIOD)) for one in (log, own))
    assert mean.averaging is not None and plain.averaging is not None
    np.testing.assert_allclose(mean.averaging.effort_noise, plain.averaging.effort_noise)
    first, second = (prepare(robot, one, SETTINGS) for one in (plain, mean))
    np.testing.assert_allclose(second.effort, first.effort, rtol=0.0, atol=EXACT_PERIOD)
    torque[1300:1500] = np.nan  # longer than what is interpolated: that period does not count
    holed = average(robot, replace(own, external_torque=torque), Periodic(PERIOD))
    left = prepare(robot, holed, SETTINGS)
    assert left.effort is not None and first.effort is not None
    assert np.abs(left.effort - first.effort).max() < 0.1


def test_rows_are_stale_though_the_wrench_goes_on(robot: RobotModel) -> None:
    log, _ = helped(motion(), robot)
    rows = np.arange(len(log.time))
    rows[700:705] = 699
    assert log.velocity is not None and log.effort is not None
    stale = replace(log, position=log.position[rows], velocity=log.velocity[rows],
                    effort=log.effort[rows])
    assert '5 stale rows' in drop_stale_rows(stale)[1][0]


def test_friction_under_load_sees_what_the_gears_carry() -> None:
    """Also where motors turn with several joints."""
    robot = load_robot('tx40')
    axes = axes_of(robot)
    load = Load(robot, axes, robot.nominal)
    friction = JointFriction(axes, tuple(law_from('coulomb+load') for _ in axes.labels), load)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 20, robot.n))
    carried = load(q, v, a)[:, :robot.n]
    samples = Samples(robot.joints, np.arange(20.0), q, v, a, starts=tuple(range(20)))
    free = list(friction.motions(replace(samples, external=carried)))
    loaded = list(friction.motions(samples))
    size = np.abs(carried).max()
    assert all(one.load is not None and np.abs(one.load).max() < SAME_FORMULA * size
               for one in free)
    assert any(one.load is not None and np.abs(one.load).max() > 0.1 * size for one in loaded)


def sweep() -> RawLog:
    """Return one joint that goes there and back at constant speed, with rests."""
    time = STEP * np.arange(4000)
    place = np.interp(time, [0.0, 1.0, 3.0, 4.0, 6.0, 8.0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    position = np.zeros((len(time), 3))
    position[:, 0] = place
    speed = np.gradient(position, STEP, axis=0)
    return RawLog('sweep', load_robot('planar_3r').joints, time, position, speed,
                  3.0 * np.sign(speed) + [5.0, -4.0, 3.0])


def test_sweeps_show_the_sum(robot: RobotModel) -> None:
    log = sweep()
    plain, own = (single_joint_motions_of(robot, repair(robot, one), SETTINGS)
                  for one in (log, helped(log, robot)[0]))
    assert [one.joint for one in plain] == [0, 0]
    for first, second in zip(plain, own, strict=True):
        assert len(first.torque)
        np.testing.assert_allclose(second.torque, first.torque, rtol=0.0, atol=1e-9)


def test_gate_and_monitor_look_at_the_sum(robot: RobotModel) -> None:
    log = motion()
    own, _ = helped(log, robot)
    np.testing.assert_allclose(excerpt(robot, own).torque, excerpt(robot, log).torque,
                               rtol=0.0, atol=1e-9)
    model = nominal_model('planar_3r')
    np.testing.assert_allclose(
        monitor_input(model, own).effort, monitor_input(model, log).effort, rtol=0.0, atol=1e-9)


def test_forward_dynamics_are_scored_with_it() -> None:
    """Of links whose gears give, and of friction that feels the load."""
    model, rng = true_model(), np.random.default_rng(4)
    q, qd, theta, theta_d, effort = random_states(model.robot, rng, 20)
    external, own = 5.0 * rng.normal(size=q.shape), list(model.robot.drive.elastic)
    links, motors = model.forward_elastic(q, qd, effort, theta, theta_d, external)
    samples = Samples(
        model.joints, np.arange(20.0), np.hstack([q, theta[:, own]]),
        np.hstack([qd, theta_d[:, own]]), np.zeros((20, model.robot.coordinates)),
        np.hstack([effort + external, effort[:, own]]), external=external)
    np.testing.assert_allclose(
        forward_accelerations(model, samples), np.hstack([links, motors[:, own]]), rtol=1e-9)
    loaded = with_friction(random_model(load_robot('planar_3r')), ['coulomb+load'] * 3,
                           load_robot('planar_3r').nominal)
    assert loaded.feasible is not None
    standard = np.where([name.startswith('fw') for name in loaded.reduction.standard], 0.15,
                        loaded.feasible)  # shares that gears have
    loaded = replace(loaded, feasible=standard, values=loaded.reduction.base(standard))
    q, qd, effort, external = rng.normal(size=(4, 20, 3)) * [[[1.0]], [[1.0]], [[9.0]], [[9.0]]]
    samples = Samples(loaded.joints, np.arange(20.0), q, qd, np.zeros_like(q),
                      effort + external, external=external)
    np.testing.assert_allclose(forward_accelerations(loaded, samples),
                               loaded.forward(q, qd, effort, external), rtol=1e-9)


@pytest.mark.parametrize(('factor', 'noise', 'step', 'told'), [
    (0.48, 0.01, 0.01, '0.48'), (0.52, 0.01, 0.01, ''), (1.98, 0.01, 0.01, ''),
    (2.02, 0.01, 0.01, '2'), (-1.0, 0.01, 0.01, '-1'),
    # within five deviations, of noise that is alike for a quarter of a second, or a step
    (-1.0, 2.2, 0.01, '-1'), (-1.0, 2.6, 0.01, ''), (-1.0, 150.0, 1.0, '-1'),
    (-1.0, 160.0, 1.0, '')])
def test_a_wrench_that_efforts_contradict_is_told(
    factor: float, noise: float, step: float, told: str
) -> None:
    """By a factor below a half, or above two; noise (of this power) counts joint by joint."""
    phase = 0.02 * np.pi * np.arange(1000)
    wave, other = np.sin(phase), np.sqrt(noise) * np.cos(phase)
    external = 3.0 * np.column_stack([wave, 0.0 * wave])
    residual = 3.0 * np.column_stack([(1.0 - factor) * wave + other, 50.0 * other])
    still = np.zeros((1000, 2))
    samples = Samples(('a', 'b'), step * np.arange(1000.0), still, still, still, still, still,
                      external=external)
    expected = (f'the effort shows {told} times the external torque: check the sign (what the '
                'surroundings exert on the link), the units (N, N m) and the frame of the wrench')
    assert check_external(samples, residual) == (expected if told else '')
    for silent in (replace(samples, external=None), replace(samples, external=still),
                   samples.part(slice(0, 1))):
        assert check_external(silent, residual[:len(silent)]) == ''
