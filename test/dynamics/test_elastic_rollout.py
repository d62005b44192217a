"""dynamics/rollout.py: motion of robots with elastic joints: MuJoCo, an adaptive integrator,
energy, stiff gears."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from geared_robots import dynamics_of, energy, friction_of, gears_of, integrator_of
from scipy.integrate import solve_ivp
from tolerances import ELASTIC_MOTION, ELASTIC_TWIST, ENERGY_DRIFT, LATE_ORDER, PLANT_MOTION

from robot_dynid import load_robot
from robot_dynid.dynamics.elastic import coordinates
from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.kernels.rollout import IMPLICIT, SPRING
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import HarmonicDrive, Truth

ARM = load_robot('elastic_2r')
SEVEN = load_robot('seven_axis')
WEIGHTLESS = ARM.with_gravity(np.zeros(3))


def oscillator_steps(turn, damping):
    """Return the matrices (N, 2, 2) by which one step takes (turn * stretch, speed).

    Of a unit mass on a spring with natural frequency times step ``turn`` (N,), and a damper.
    """
    ones, weights = np.ones(3), IMPLICIT[-1]
    square = (turn**2)[:, None, None]
    stages = np.eye(3) + square * (IMPLICIT @ SPRING) + damping[:, None, None] * IMPLICIT
    start = np.stack([-turn[:, None]**2 * (IMPLICIT @ ones), np.tile(ones, (len(turn), 1))], 2)
    speeds = np.linalg.solve(stages, start)
    step = np.empty((len(turn), 2, 2))
    step[:, 0] = np.array([1.0, 0.0]) + np.einsum('s,nsk->nk', weights, speeds)
    step[:, 1] = speeds[:, 2]
    step[:, 0, 1] *= turn
    step[:, 1, 0] /= turn
    return step


@pytest.mark.parametrize('ratio', [0.0, 0.01, 0.3, 1.0, 10.0, 1e3])
def test_an_oscillator_never_grows_and_fades_where_the_step_is_long(ratio: float) -> None:
    turn = np.logspace(-3, 5, 4001)
    steps = oscillator_steps(turn, 2.0 * ratio * turn)
    size = np.abs(np.linalg.eigvals(steps)).max(axis=1)
    assert size.max() < 1.0 + 1e-12
    if ratio <= 1.0:  # beyond, the slow mode of an overdamped spring fades slowly by itself
        assert size[turn > 1e3].max() < 0.01
    assert IMPLICIT[-1] @ SPRING.sum(axis=1) == pytest.approx(0.5, abs=1e-15)
    if ratio == 0.0:
        small = turn < 0.3
        cosine, sine = np.cos(turn), np.sin(turn)
        exact = np.array([[cosine, sine], [-sine, cosine]]).transpose(2, 0, 1)
        assert np.all(np.abs(steps - exact).max(axis=(1, 2))[small] < 0.02 * turn[small]**3)


def adaptive(robot, gears, start, effort, dt, viscous=0.0):
    """Return the coordinates and their rates (T, 2, n+e) by an implicit adaptive integrator."""
    moving, own, count = dynamics_of(robot, gears), list(gears.motors(robot.n)), len(start[0])
    state, found = np.concatenate(start), []
    for held in effort:
        def rate(_, y, held=held):
            x, v = y[None, :count], y[None, count:]
            return np.concatenate([y[count:], moving(x, v, held - viscous * v[:, own])[0][0]])

        state = solve_ivp(rate, (0.0, dt), state, 'Radau', rtol=1e-9, atol=1e-11).y[:, -1]
        found.append(state.reshape(2, -1))
    return np.array(found)


@pytest.mark.parametrize(('stiffness', 'damping'), [
    (3e2, 1.0), (2e4, 10.0), (1e6, 200.0), (1e7, 1e3)])
def test_motion_is_that_of_an_adaptive_integrator(stiffness, damping) -> None:
    """At 1 ms, from rest under the weight; errors of the deflection in its own size, too."""
    gears, count = gears_of(ARM, stiffness=stiffness, damping=damping, inertia=0.8), 100
    q0 = np.array([[0.4, -0.9]])
    weight = gravity_effort(ARM, q0)
    x0 = np.hstack([q0, q0 + weight / stiffness])
    swing = np.sin(2.0 * np.pi * np.outer(np.arange(count) * 1e-3, [6.0, 4.0])) * [60.0, 25.0]
    effort = weight + swing
    found = integrator_of(ARM, gears, friction_of(2, 1.5))(
        x0, np.zeros((1, 4)), np.pad(effort, ((0, 0), (2, 0)))[None], 1e-3)
    expected = adaptive(ARM, gears, (x0[0], np.zeros(4)), effort, 1e-3, 1.5)
    twist = expected[:, 0, 2:] - expected[:, 0, :2]
    ours = found.position[0, :, 2:] - found.position[0, :, :2]
    assert np.abs(ours - twist).max() < ELASTIC_TWIST[stiffness] * np.ptp(twist)
    assert np.abs(found.position[0] - expected[:, 0]).max() < ELASTIC_MOTION
    assert np.abs(found.velocity[0] - expected[:, 1]).max() < 1e-3 * np.abs(expected[:, 1]).max()


def test_elastic_rollouts_converge_with_their_order() -> None:
    gears = gears_of(ARM, damping=20.0)
    moving = integrator_of(ARM, gears, friction_of(2, 2.0))
    x0, v0 = np.array([[0.3, -1.0, 0.303, -1.001]]), np.array([[2.0, -3.0, 2.0, -3.0]])

    def end(dt):
        found = moving(x0, v0, np.zeros((1, round(0.3 / dt), 4)), dt)
        return np.concatenate([found.position[0, -1], found.velocity[0, -1]])

    best = end(1e-3 / 64)
    errors = [np.abs(end(1e-3 / part) - best).max() for part in (2, 4, 8)]
    for coarse, fine in pairwise(errors):
        assert np.log2(coarse / fine) > 2.0 - LATE_ORDER


@pytest.mark.parametrize('own', [(0, 1), (1,)])
def test_two_seconds_end_where_mujoco_ends(own) -> None:
    """MuJoCo takes Runge-Kutta steps of 0.25 ms, ours are of 1 ms; deflections swing freely."""
    gears = gears_of(ARM, own, damping=15.0, inertia=0.6)
    drives = {ARM.joints[j]: HarmonicDrive(100.0, 2e4, 15.0) for j in own}
    plant = Plant(ARM, Truth(np.full(2, 3.0), np.zeros(2), np.full(2, 0.6), drives=drives))
    rng, count = np.random.default_rng(4), 2000
    start = np.array([-0.5, 0.8])
    plant.set_state(start, np.zeros(2))
    q0, theta0 = plant.state()[0], plant.motor_state()[0]
    waves = np.sin(np.outer(1e-3 * np.arange(count), [2.0, 7.0, 15.0]) + rng.uniform(0, 6, 3))
    effort = gravity_effort(ARM, start[None]) + waves @ rng.normal(size=(3, 2)) * [30.0, 8.0]
    padded = np.pad(effort, ((0, 0), (0, len(own))))
    for place, j in enumerate(own):
        padded[:, 2 + place], padded[:, j] = effort[:, j], 0.0
    found = integrator_of(ARM, gears, friction_of(2, 3.0), 0.6 * np.eye(2))(
        coordinates(q0, theta0, gears)[None], np.zeros((1, 2 + len(own))), padded[None], 1e-3)
    for row in effort:
        plant.step(row)
    assert np.ptp(found.position[0], axis=0).max() > 1.0
    last = found.of_joints(own)
    for ours, theirs in ((last.position, plant.state()[0]), (last.velocity, plant.state()[1]),
                         (last.motor_position, plant.motor_state()[0]),
                         (last.motor_velocity, plant.motor_state()[1])):
        assert np.abs(ours[0, -1] - theirs).max() < PLANT_MOTION


@pytest.mark.parametrize('stiffness', [2e2, 2e4, 1e6, 1e7, 1e9])
@pytest.mark.parametrize('robot', [ARM, SEVEN], ids=['2r', '7r'])
def test_a_free_arm_with_undamped_gears_gains_no_energy(robot, stiffness) -> None:
    gears, rng = gears_of(robot, stiffness=stiffness, inertia=0.3), np.random.default_rng(5)
    x0 = np.tile(rng.uniform(-1.0, 1.0, (1, robot.n)), 2)
    x0[:, robot.n:] += 1.0 / stiffness
    count = 3000
    found = integrator_of(robot, gears)(
        x0, np.zeros_like(x0), np.zeros((1, count, 2 * robot.n)), 1e-3)
    kinetic, potential = energy(robot, gears, found.position[0], found.velocity[0])
    whole = kinetic + potential
    assert kinetic.max() > 5.0
    assert np.all(whole - whole[0] < 10.0 * ENERGY_DRIFT * kinetic.max())
    if stiffness < 1e3:  # resolved: what the arm has it keeps
        assert np.abs(whole - whole[0]).max() < 0.01 * kinetic.max()


def rigid_end(robot, rotors, q0, effort, dt):
    found = Integrator(robot, robot.nominal, rotors * np.eye(robot.n), friction_of(robot.n, 1.0))(
        q0, np.zeros_like(q0), effort, dt)
    return found.position[0, -1]


def test_stiffer_gears_come_ever_nearer_to_the_rigid_arm() -> None:
    q0 = np.array([[0.2, 0.5]])
    weight = gravity_effort(ARM, q0)
    effort = np.tile(weight + np.array([15.0, -4.0]), (1, 800, 1))
    expected = rigid_end(ARM, 0.4, q0, effort, 1e-3)
    apart = []
    for stiffness in (2e4, 2e5, 2e6, 2e7, 1e10):
        gears = gears_of(ARM, stiffness=stiffness, damping=2e-3 * stiffness, inertia=0.4)
        x0 = np.hstack([q0, q0 + weight / stiffness])
        padded = np.pad(effort, ((0, 0), (0, 0), (2, 0)))
        found = integrator_of(ARM, gears, friction_of(2, 1.0))(x0, 0.0 * x0, padded, 1e-3)
        apart.append(np.abs(found.position[0, -1, :2] - expected).max())
    assert apart[0] < 0.02 * np.abs(expected - q0).max()
    assert all(fine < 0.2 * coarse for coarse, fine in pairwise(apart[:3]))
    assert max(apart[3:]) < 1e-5


@pytest.mark.parametrize('stiffness', [2e4, 1e7])
@pytest.mark.parametrize('width', [1e-5, 1e-3, 0.05])
def test_arm_sticks_under_its_weight(stiffness, width) -> None:
    gears = gears_of(ARM, stiffness=stiffness, damping=5.0)
    q0 = np.array([[0.4, -0.2]])
    x0 = np.hstack([q0, q0 + gravity_effort(ARM, q0) / stiffness])
    held = np.zeros((1, 500, 4))
    held[:, :, 2:] = gravity_effort(ARM, q0)
    found = integrator_of(ARM, gears, friction_of(2, 0.5, 3.0, width))(x0, 0.0 * x0, held, 1e-3)
    assert np.abs(found.position - x0).max() < 1e-9
    assert np.abs(found.velocity).max() < 1e-8


@pytest.mark.parametrize('stiffness', [2e4, 1e6, 1e7])
@pytest.mark.parametrize('width', [1e-5, 1e-3, 0.05])
@pytest.mark.parametrize('inertia', [0.005, 0.5])
def test_moving_arm_comes_to_rest_without_chatter(stiffness, width, inertia) -> None:
    gears = gears_of(ARM, stiffness=stiffness, damping=2e-3 * stiffness, inertia=inertia)
    rng = np.random.default_rng(3)
    q0, qd0 = rng.uniform(-1.0, 1.0, (2, 5, 2))
    count = 3000
    found = integrator_of(WEIGHTLESS, gears, friction_of(2, 0.1, 4.0, width))(
        np.tile(q0, 2), np.tile(qd0, 2), np.zeros((5, count, 4)), 1e-3)
    speed = found.velocity[:, :, 2:]
    assert np.abs(found.velocity[:, -1]).max() < 1e-3
    late = speed[:, count // 2:]
    assert np.abs(late[:, 1:] - late[:, :-1]).max() < max(1e-4, 0.1 * width)


def test_a_motor_held_by_friction_lets_its_link_swing_out() -> None:
    """A stuck rotor is a wall: the link rings at the frequency of its own inertia and fades."""
    gears = gears_of(WEIGHTLESS, (1,), stiffness=2e4, damping=5.0, inertia=0.3)
    link = 0.305333 + 10 * 0.25**2
    heavy = np.diag([1e9, 0.0])
    x0, v0 = np.zeros((1, 3)), np.array([[0.0, 0.05, 0.0]])
    found = integrator_of(WEIGHTLESS, gears, friction_of(2, 0.0, 100.0, 1e-4), heavy)(
        x0, v0, np.zeros((1, 2000, 3)), 2.5e-4)
    swing = found.position[0, :, 1]
    rising = np.flatnonzero((swing[:-1] < 0.0) & (swing[1:] >= 0.0))
    exact = rising - swing[rising] / (swing[rising + 1] - swing[rising])
    period = np.diff(exact).mean() * 2.5e-4
    assert 2.0 * np.pi / period == pytest.approx(np.sqrt(2e4 / link), rel=5e-3)
    assert np.abs(found.position[0, :, 2]).max() < 1e-5
    assert np.abs(swing[-400:]).max() < 0.35 * np.abs(swing).max()


def test_elastic_rollouts_are_independent_and_watch_the_limits_of_links() -> None:
    gears, rng = gears_of(SEVEN, (1, 4), damping=10.0), np.random.default_rng(2)
    moving = integrator_of(SEVEN, gears, friction_of(7, 1.0, 2.0), 0.2 * np.eye(7))
    x0 = rng.uniform(-0.5, 0.5, (11, 9))
    x0[:, 7:] = x0[:, [1, 4]]
    effort = np.tile(60.0 * rng.normal(size=(11, 1, 9)), (1, 400, 1))
    many = moving(x0, np.zeros((11, 9)), effort, 1e-3)
    for k in (0, 8, 10):
        alone = moving(x0[k:k + 1], np.zeros((1, 9)), effort[k:k + 1], 1e-3)
        np.testing.assert_array_equal(many.position[k], alone.position[0])
    lower, upper = SEVEN.limits.lower, SEVEN.limits.upper
    outside = (many.position[..., :7] < lower) | (many.position[..., :7] > upper)
    expected = np.where(outside.any(axis=(1, 2)), outside.any(axis=2).argmax(axis=1), -1)
    np.testing.assert_array_equal(many.limit_step, expected)
    assert (expected >= 0).any()
    stiff = replace(gears, stiffness=np.full(2, 1e30))
    assert integrator_of(SEVEN, stiff)(x0, np.zeros((11, 9)), effort, 1e-3).position.shape
