"""dynamics/rotors.py: rotors that spin on moving links, in everything a model is asked, against
rotors as bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from geared_robots import (
    NAMES,
    Geared,
    geared_arm,
    identified,
    random_geared,
    samples_of,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from stepped_rollout import stepped_rollout
from tolerances import BEGINNING, DESCRIBED, DIFFERENCE, REDUCED, ROLLOUT

from robot_dynid import load_robot
from robot_dynid.dynamics.rigid_body import Momentum
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import RobotError
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.identified.uses import rigid_equivalent
from robot_dynid.monitoring.observer import EXTERNAL, PREDICTED, Observer
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import load_truth

SEEDS = st.integers(0, 10**6)


def states(geared: Geared, count: int = 5, seed: int = 1):
    """Return random motion, each (count, coordinates)."""
    return np.random.default_rng(seed).normal(size=(3, count, geared.robot.coordinates))


def agree(found, expected, relative: float = REDUCED) -> None:
    """Compare by the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0.0,
                               atol=relative * max(1.0, np.abs(expected).max()))


def rigid_model_agrees(geared: Geared, relative: float = REDUCED) -> None:
    """Hold everything a model of rigid joints says of a state against rotors as bodies."""
    model = identified(geared)
    q, qd, qdd = states(geared)
    still = np.zeros_like(q)
    effort = geared.effort(q, qd, qdd)
    agree(model.inverse(q, qd, qdd), effort, relative)
    agree(model.predicted(samples_of(model, q, qd, qdd)), effort, relative)
    agree(model.gravity(q), geared.effort(q, still, still), relative)
    mass = model.mass_matrix(q)
    agree(mass, geared.mass_matrix(q), relative)
    np.testing.assert_array_equal(mass, mass.transpose(0, 2, 1))
    unit = np.stack([model.inverse(q, still, still + e) - model.gravity(q)
                     for e in np.eye(model.robot.n)], axis=2)
    agree(mass, unit)
    worst = np.linalg.cond(mass).max()
    agree(model.forward(q, qd, effort), qdd, relative * worst)


@pytest.mark.parametrize('name', NAMES)
def test_robots_of_the_package_with_rotors_askew(name: str) -> None:
    rigid_model_agrees(geared_arm(name), DESCRIBED)


@settings(max_examples=40)
@example(44816)  # its regressor's singular values do not come by divide and conquer
@given(SEEDS)
def test_random_robots_with_rotors_askew(seed: int) -> None:
    """Chains and trees, prismatic joints, motors that turn with two joints."""
    rigid_model_agrees(random_geared(seed))


def gears_pull(geared: Geared, x, v):
    """Return the torque (K, N) with which gears resist the coordinates, see `identified`."""
    n, own = geared.robot.n, list(geared.robot.drive.elastic)
    pull = np.zeros_like(x)
    pull[:, n:] = 5000.0 * (x[:, n:] - x[:, own]) + 20.0 * (v[:, n:] - v[:, own]) + 0.5
    pull[:, own] = -pull[:, n:]
    return pull


@settings(max_examples=25)
@given(SEEDS)
def test_elastic_joints_of_random_robots(seed: int) -> None:
    """Mass matrix, bias, accelerations and equations of links and motors."""
    geared = random_geared(seed, gives=True)
    model, robot = identified(geared), geared.robot
    n, own = robot.n, list(robot.drive.elastic)
    x, v, a = states(geared)
    motion, still = model.elastic_motion, np.zeros_like(x)
    mass = motion.dynamics.mass_matrix(x)
    agree(mass, geared.mass_matrix(x))
    agree(motion.dynamics.bias(x, v), geared.effort(x, v, still))
    effort = geared.effort(x, v, a) + gears_pull(geared, x, v)
    rows = effort.copy()
    rows[:, own] += effort[:, n:]
    agree(model.predicted(samples_of(model, x, v, a)), rows)
    drives = np.random.default_rng(2).normal(size=(len(x), n))
    motors = motion.gears.motors(n)
    links, rotors = model.forward_elastic(x[:, :n], v[:, :n], drives, x[:, motors], v[:, motors])
    balance = geared.effort(x, v, np.hstack([links, rotors[:, own]])) + gears_pull(geared, x, v)
    balance[:, motors] -= drives
    scale = np.abs(links).max() + np.abs(rotors).max()
    agree(balance, still, REDUCED * scale * np.abs(mass).max())


@settings(max_examples=25)
@given(SEEDS)
def test_stiff_gears_keep_their_rotors_on_the_links(seed: int) -> None:
    """An elastic model with its motors on its joints, and its stiffened twin."""
    geared = random_geared(seed, gives=True)
    model, n = identified(geared), geared.robot.n
    stiff, twin = np.eye(n)[[*range(n), *geared.robot.drive.elastic]], rigid_equivalent(model)
    q, qd, qdd = (part[:, :n] for part in states(geared))
    effort = geared.effort(q @ stiff.T, qd @ stiff.T, qdd @ stiff.T) @ stiff
    mass = np.einsum('ai,kab,bj->kij', stiff, geared.mass_matrix(q @ stiff.T), stiff)
    for own in (model, twin):
        agree(own.inverse(q, qd, qdd), effort)
        agree(own.mass_matrix(q), mass)
        agree(own.forward(q, qd, effort), qdd, REDUCED * np.linalg.cond(mass).max())
    agree(twin.predicted(samples_of(twin, q, qd, qdd)), effort)


@pytest.mark.parametrize(('name', 'elastic'), [
    ('planar_3r', ()), ('puma560', ()), ('tx40', ()), ('planar_3r', (0, 2))])
def test_free_motion_is_that_of_geared_bodies(name: str, elastic: tuple[int, ...]) -> None:
    """A fifth of a second against an adaptive integrator of Pinocchio's bodies; energy stays."""
    geared = geared_arm(name, 3, elastic)
    model, n = identified(geared, D=0.0, s=0.0), geared.robot.n
    q = np.random.default_rng(3).uniform(-1.0, 1.0, n)
    qd = np.random.default_rng(4).uniform(-1.0, 1.0, n)
    place = [*range(n), *elastic]

    def rate(_, state):
        x, v = state.reshape(2, 1, -1)
        pull = np.zeros_like(x)
        pull[:, n:] = 5000.0 * (x[:, n:] - x[:, list(elastic)])
        pull[:, list(elastic)] = -pull[:, n:]
        load = -geared.effort(x, v, np.zeros_like(x)) - pull
        return np.concatenate([v[0], np.linalg.solve(geared.mass_matrix(x)[0], load[0])])

    start = np.concatenate([q[place], qd[place]])
    exact = solve_ivp(rate, (0.0, 0.2), start, rtol=1e-10, atol=1e-11, method='LSODA').y[:, -1]
    motors = (q[None], qd[None]) if elastic else None
    found = model.rollout(q, qd, np.zeros((1, 1600, n)), 1.25e-4, motors)
    np.testing.assert_allclose(found.position[0, -1], exact[:n], rtol=0.0, atol=ROLLOUT)
    end = np.array([found.position[0, -1], found.velocity[0, -1]])
    if elastic:
        end = np.hstack([end, [found.motor_position[0, -1, list(elastic)],
                               found.motor_velocity[0, -1, list(elastic)]]])
    before, after = (sum(geared.lagrangian(x, v)) + 2500.0 * sum(
        (x[n + p] - x[j])**2 for p, j in enumerate(elastic))
        for x, v in (start.reshape(2, -1), end))
    kinetic = geared.lagrangian(*start.reshape(2, -1))[0]
    assert abs(after - before) < 1e-5 * max(kinetic, 1.0)


@pytest.mark.parametrize('elastic', [(), (1, 4)])
def test_compiled_motion_is_that_of_python(elastic: tuple[int, ...]) -> None:
    """With friction, several motions at once."""
    geared = geared_arm('puma560', 1, elastic)
    model, n = identified(geared, fv=2.0, fc=1.5), geared.robot.n
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1.0, 1.0, (2, 3, n))
    effort = np.repeat(model.gravity(q)[:, None] + rng.normal(size=(3, 1, n)), 40, axis=1)
    motors = (q, qd) if elastic else None
    found = model.rollout(q, qd, effort, 1e-3, motors)
    again = stepped_rollout(model, q, qd, effort, 1e-3, motors)
    np.testing.assert_allclose(found.position, again.position, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(found.velocity, again.velocity, rtol=0.0, atol=1e-6)


@settings(max_examples=25)
@given(SEEDS)
def test_momentum_and_its_rate(seed: int) -> None:
    """Against the Lagrangian of Pinocchio's bodies, by central differences."""
    geared, step = random_geared(seed), 1e-5
    links = identified(geared).links
    q, qd, _ = states(geared, 2)
    p, rate = Momentum(links.robot, links.parameters, links.rotors)(q, qd)
    agree(p, np.einsum('kij,kj->ki', geared.mass_matrix(q), qd))

    def difference(at, v):
        kinetic, potential = geared.lagrangian(at, v)
        return kinetic - potential

    slopes = [[(difference(x + step * e, v) - difference(x - step * e, v)) / (2.0 * step)
               for e in np.eye(geared.robot.n)] for x, v in zip(q, qd, strict=True)]
    agree(rate, np.array(slopes), 10.0 * DIFFERENCE)


@pytest.mark.parametrize(('name', 'elastic'), [('seven_axis', ()), ('tx40', ()),
                                               ('seven_axis', (1, 3))])
def test_the_monitor_knows_of_rotors(name: str, elastic: tuple[int, ...]) -> None:
    """The effort of Pinocchio's bodies along a motion is predicted, and none is external."""
    geared, step, n = geared_arm(name, 2, elastic), 1e-4, load_robot(name).n
    model = replace(identified(geared), preprocessing=Preprocessing(1e9))
    rate, phase = np.random.default_rng(6).uniform(1.0, 6.0, (2, n))
    stiff = np.eye(n)[[*range(n), *elastic]]

    def along(time):
        turn = np.outer(time, rate) + phase
        motion = np.sin(turn), rate * np.cos(turn), -rate**2 * np.sin(turn)
        return *motion[:2], geared.effort(*(part @ stiff.T for part in motion)) @ stiff

    time = step * np.arange(300)
    steps = np.diff(time, prepend=0.0)
    found = Observer(model, 100.0)(np.stack(along(time), axis=1), steps)
    effort = along(time[1:] - 0.5 * step)[2]
    agree(found[1:, PREDICTED], effort, BEGINNING)
    agree(found[:, EXTERNAL], np.zeros((300, n)), BEGINNING * np.abs(effort).max())


def test_an_inertia_alone_is_that_of_rotors_that_no_link_carries() -> None:
    found = Rotors.of([[0.5, 0.1], [0.1, 0.7]])
    assert not found.coupled and [len(one) for one in found.tables] == [2, 0, 0, 0]
    assert (found.axes.shape, found.motions.shape) == ((0, 3), (0, 2))
    assert Rotors.of(found) is found


def test_planned_excitations_look_for_what_is_fitted() -> None:
    """Rotors askew can be told from their links."""
    robot = geared_arm('seven_axis').robot
    planned, fitted = design_criteria(robot).model, identified(geared_arm('seven_axis'))
    assert planned is not None and planned.reduction.names == fitted.names
    assert set(fitted.names) > set(design_criteria(load_robot('seven_axis')).model.reduction.names)


def test_a_simulated_robot_has_no_such_rotors() -> None:
    robot = geared_arm('planar_3r').robot
    with pytest.raises(RobotError,
                       match='remove rotor_axes of joint_2, joint_3 from the robot YAML'):
        Plant(robot, load_truth(robot))
    Plant(robot)
