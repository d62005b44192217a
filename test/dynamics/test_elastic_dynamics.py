"""dynamics/elastic.py: robots with elastic joints against MuJoCo, energy, closed forms and rigid
inverse dynamics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
from elastic_arms import D, K, elastic_arm
from geared_robots import dynamics_of, energy, gears_of
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import Peer, random_urdf
from tolerances import ENERGY_RATE, SAME_FORMULA, STIFF_GEARS

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.elastic import ElasticDynamics, coordinates
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.rigid_body import forward_dynamics
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.friction import AxisFriction, law_from
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import full_regressor, random_states, reduce_numeric
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.simulation.mujoco_model import TIMESTEP
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import HarmonicDrive, Truth, load_truth
from robot_dynid.types import FloatArray, Samples

ARM = load_robot('elastic_2r')


def mujoco_accelerations(plant, q, qd, theta, thetad, torque):
    """Return MuJoCo's accelerations of links and motors, each (K, n)."""
    found = []
    for row in zip(q, qd, theta, thetad, torque, strict=True):
        data = plant.data
        data.qpos[plant.link_rows], data.qvel[plant.link_rows] = row[0], row[1]
        data.qpos[plant.motor_rows], data.qvel[plant.motor_rows] = row[2], row[3]
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[plant.motor_rows] = row[4]
        mujoco.mj_forward(plant.model, data)
        found.append((data.qacc[plant.link_rows].copy(), data.qacc[plant.motor_rows].copy()))
    return (np.array(side) for side in zip(*found, strict=True))


def random_tree(tmp_path: Path, rng):
    path = tmp_path / 'random.urdf'
    while True:
        path.write_text(random_urdf(rng, 5, 0.4))
        robot = load_robot(str(path))
        if robot.nominal[:, 0].min() > 0.0:  # MuJoCo refuses moving bodies without mass
            return robot


@pytest.mark.parametrize('seed', range(8))
def test_links_and_motors_accelerate_as_in_mujoco(tmp_path: Path, seed: int) -> None:
    """Random trees and the planar arm, some joints rigid, friction viscous."""
    rng = np.random.default_rng(seed)
    robot = ARM if seed == 0 else random_tree(tmp_path, rng)
    n = robot.n
    own = tuple(sorted(rng.choice(n, size=rng.integers(1, n + 1), replace=False).tolist()))
    stiffness, damping = rng.uniform(1e3, 3e4, len(own)), rng.uniform(0.0, 20.0, len(own))
    inertia, viscous = rng.uniform(0.2, 1.5, n), rng.uniform(0.0, 5.0, n)
    drives = {robot.joints[j]: HarmonicDrive(100.0, k, d)
              for j, k, d in zip(own, stiffness, damping, strict=True)}
    plant = Plant(robot, Truth(viscous, np.zeros(n), inertia, drives=drives))
    gears = Gears(own, inertia[list(own)], stiffness, damping, np.zeros(len(own)))
    q, qd, thetad, torque = rng.uniform(-1.5, 1.5, (4, 20, n))
    theta = q + 1e-3 * rng.normal(size=q.shape)
    rigid = np.setdiff1d(np.arange(n), own)
    theta[:, rigid], thetad[:, rigid] = q[:, rigid], qd[:, rigid]
    expected = mujoco_accelerations(plant, q, qd, theta, thetad, 30.0 * torque)
    found, pivots = dynamics_of(robot, gears, np.diag(inertia))(
        coordinates(q, theta, gears), coordinates(qd, thetad, gears),
        30.0 * torque - viscous * thetad)
    assert pivots.min() > 0.0
    both = dynamics_of(robot, gears).per_joint(found)
    for ours, theirs in zip(both, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


#: kinematic errors of the gears of the arm, with their slopes at motors (K, 2)
WAVES = np.array([[160.0, 2e-3, -1e-3], [90.0, 0.5e-3, 3e-3]])


def error_and_slope(motor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the kinematic errors [rad] of the gears of the arm, and their slopes (K, 2)."""
    rate, sine, cosine = WAVES.T
    s, c = np.sin(rate * motor), np.cos(rate * motor)
    return sine * s + cosine * c, rate * (sine * c - cosine * s)


@pytest.mark.parametrize('wavy', [False, True])
def test_links_alone_feel_the_gears_and_motors_the_rest(wavy: bool) -> None:
    """By Spong's equations, with the offset between the encoders, and by the balance of power."""
    gears = replace(gears_of(ARM, damping=7.0), offset=np.array([2.0, -1.0]))
    gears = replace(gears, waves=WAVES) if wavy else gears
    rng = np.random.default_rng(1)
    x, v = rng.uniform(-1.0, 1.0, (2, 10, 4))
    x[:, 2:] = x[:, :2] + 1e-3 * rng.normal(size=(10, 2))
    effort = rng.normal(size=(10, 2))
    found, _ = dynamics_of(ARM, gears)(x, v, effort)
    error, slope = (wavy * part for part in error_and_slope(x[:, 2:]))
    torque = 2e4 * (x[:, 2:] + error - x[:, :2]) + 7.0 * (
        (1.0 + slope) * v[:, 2:] - v[:, :2]) + [2.0, -1.0]
    links, _ = forward_dynamics(ARM, (x[:, :2], v[:, :2], torque))
    np.testing.assert_allclose(found[:, :2], links, rtol=1e-9)
    np.testing.assert_allclose(found[:, 2:], (effort - (1.0 + slope) * torque) / 0.5, rtol=1e-9)


@pytest.mark.parametrize('count', [2, 3, 40])
def test_drives_turn_motors_and_bear_the_links_by_the_slope_of_their_gears(count: int) -> None:
    """The deflection accelerates by differences of its rate, of which two samples tell none."""
    step = 5e-3
    angle, rates = step * np.arange(count)[:, None] * [3.0, 5.0], np.array([3.0, 5.0])
    motion = np.array([1.0 - np.cos(angle), rates * np.sin(angle), rates**2 * np.cos(angle)])
    gears = replace(gears_of(ARM, damping=7.0), waves=WAVES)
    motors, effort = dynamics_of(ARM, gears).inverse(motion, step)
    slope = error_and_slope(motors[0])[1]
    np.testing.assert_allclose(effort, 0.5 * motors[2] + (
        1.0 + slope) * rigid_body.inverse_dynamics(ARM, *motion), rtol=1e-9)
    motors, _ = dynamics_of(ARM, replace(gears, waves=0.0 * WAVES)).inverse(motion, step)
    bent = motors - motion
    expected = np.gradient(bent[1], step, axis=0, edge_order=2) if count > 2 else 0.0 * bent[1]
    np.testing.assert_allclose(bent[2], expected, rtol=0.0, atol=1e-9)
    assert np.abs(bent[1]).max() > 1e-4


def test_rotors_on_moving_links_enter_both_sides() -> None:
    gears, rng = gears_of(ARM, (1,), damping=3.0), np.random.default_rng(2)
    plain = dynamics_of(ARM, gears)
    rotors = Rotors(np.zeros((2, 2)), np.array([0]), np.array([[0.2, 0.1, 0.3]]),
                    np.array([[0.0, 1.0]]))
    whole = ElasticDynamics(ARM, ARM.nominal, rotors, gears)
    x, v = rng.uniform(-0.01, 0.01, (2, 10, 3))
    effort = rng.normal(size=(10, 2))
    found, least = whole(x, v, effort)
    again, _ = plain(x, v, effort)
    left = np.einsum('kij,kj->ki', whole.mass_matrix(x), found) + whole.bias(x, v)
    right = np.einsum('kij,kj->ki', plain.mass_matrix(x), again) + plain.bias(x, v)
    np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-9)
    assert least.min() > 0.0
    assert np.abs(found - again).max() > 1e-3


@pytest.mark.parametrize(('change', 'message'), [
    ({'inertia': np.array([1.0, -0.2])}, 'elastic joint joint_2: inertia is -0.2; .* above zero'),
    ({'stiffness': np.array([0.0, 1e4])}, 'elastic joint joint_1: stiffness is 0; .* above zero'),
    ({'damping': np.array([0.0, np.nan])}, 'joint_2: damping is nan; it must be finite'),
])
def test_gears_that_cannot_be_are_named(change, message) -> None:
    with pytest.raises(ModelError, match=message):
        dynamics_of(ARM, replace(gears_of(ARM), **change))
    with pytest.raises(UsageError, match=r'offset of 2 elastic joints has shape \(3,\)'):
        dynamics_of(ARM, replace(gears_of(ARM), offset=np.zeros(3)))


def efforts(robot: RobotModel, parameters: dict[str, float], states: Samples) -> FloatArray:
    """Return regressor times parameters (rows, N) with Coulomb's law of friction."""
    blocks = Structure.uniform(robot, True, 'coulomb', {}).blocks(robot)
    names = [name for block in blocks for name in block.names]
    links = robot.nominal.ravel()
    values = [*links, *(parameters.get(name, 0.0) for name in names[len(links):])]
    return np.einsum('rpn,p->rn', full_regressor(robot, blocks, states), np.array(values))


def plant_of(name: str, own: tuple[int, ...]) -> tuple[RobotModel, Plant, dict[str, float]]:
    """Return a robot with elastic joints ``own`` without dry friction, in MuJoCo and for us."""
    robot = load_robot(name)
    robot = replace(robot, drive=Drive('torque', elastic=own))
    given = load_truth(robot)
    drives = {robot.joints[j]: HarmonicDrive(100.0, 3e3 + 1e3 * j, 1.0 + 0.5 * j) for j in own}
    rotors = np.full(robot.n, 0.3) + 0.05 * np.arange(robot.n)
    truth = Truth(given.viscous, np.zeros(robot.n), rotors, drives=drives)
    parameters = {f'K{j + 1}': 3e3 + 1e3 * j for j in own}
    parameters |= {f'D{j + 1}': 1.0 + 0.5 * j for j in own}
    parameters |= {f'{p}{j + 1}': float(values[j]) for j in range(robot.n)
                   for p, values in (('Ia', rotors), ('fv', truth.viscous))}
    return robot, Plant(robot, truth), parameters


@pytest.mark.parametrize(('name', 'own'), [('planar_3r', (0, 1, 2)), ('seven_axis', (1, 4, 6)),
                                           ('puma560', (0, 2, 3))])
def test_efforts_at_mujocos_accelerations_are_those_applied(name, own) -> None:
    robot, plant, parameters = plant_of(name, own)
    n, rng = robot.n, np.random.default_rng(4)
    link, motor, data = plant.link_rows, plant.motor_rows, plant.data
    states = random_states(robot, 30, rng)
    x, v, torque = states.position, states.velocity, rng.normal(size=(30, n)) * 30.0
    x[:, n:] = x[:, list(own)] + 0.01 * rng.normal(size=(30, len(own)))
    a = np.empty_like(x)
    for k in range(30):
        for column, target in ((x, data.qpos), (v, data.qvel)):
            target[link] = column[k, :n]
            target[motor[list(own)]] = column[k, n:]
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[motor] = torque[k]
        mujoco.mj_forward(plant.model, data)
        a[k] = [*data.qacc[link], *data.qacc[motor[list(own)]]]
    found = efforts(robot, parameters, replace(states, acceleration=a))
    np.testing.assert_allclose(found, torque[:, list(robot.row_joints)].T,
                               rtol=0.0, atol=1e-6 * np.abs(torque).max())


def test_power_is_the_rate_of_energy_and_what_dampers_take() -> None:
    """An arm falls and vibrates under constant torque; energies by Pinocchio and by hand."""
    robot, truth = elastic_arm()
    truth = replace(truth, coulomb=np.zeros(3), stribeck=None)
    plant, torque = Plant(robot, truth), np.array([20.0, -5.0, 2.0])
    plant.set_state([0.3, -0.5, 0.8], np.zeros(3))
    gears = Gears((0, 1, 2), truth.rotor_inertia, np.array(K), np.array(D), np.zeros(3))
    parameters = {f'{p}{j + 1}': float(values[j]) for j in range(3) for p, values in (
        ('K', K), ('D', D), ('Ia', truth.rotor_inertia), ('fv', truth.viscous))}
    rows = []
    for _ in range(2000):
        state = np.hstack([*plant.state(), *plant.motor_state()])
        plant.data.qfrc_applied[:] = 0.0
        plant.data.qfrc_applied[plant.motor_rows] = torque
        mujoco.mj_forward(plant.model, plant.data)
        qacc = plant.data.qacc
        rows.append([*state, *qacc[plant.link_rows], *qacc[plant.motor_rows]])
        plant.step(torque, 1)
    q, qd, theta, spin, qdd, spin_d = np.split(np.array(rows), 6, axis=1)
    x, v, a = np.hstack([q, theta]), np.hstack([qd, spin]), np.hstack([qdd, spin_d])
    states = Samples(robot.joints, TIMESTEP * np.arange(len(x)), x, v, a)
    whole, motor = np.split(efforts(robot, parameters, states), 2)
    power = np.sum(qd * (whole - motor).T + spin * motor.T, axis=1)
    stored = energy(robot, gears, x, v).sum(axis=0)
    rate = (8.0 * (stored[3:-1] - stored[1:-3]) - (stored[4:] - stored[:-4])) / 12.0 / TIMESTEP
    lost = np.sum(np.array(D) * (spin - qd)**2 + truth.viscous * spin**2, axis=1)
    assert np.ptp(x[:, 3:] - x[:, :3], axis=0).min() > 1e-3
    np.testing.assert_allclose(power[2:-2], rate + lost[2:-2],
                               rtol=0.0, atol=ENERGY_RATE * np.abs(rate).max())


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_motors_that_follow_make_a_rigid_robot(seed: int, joints: int) -> None:
    """With theta = q first rows are Pinocchio's inverse dynamics, rotors and friction on top."""
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, joints, 0.3)
    robot = robot_from_urdf(text)
    own = tuple(int(j) for j in np.flatnonzero(rng.random(joints) < 0.6))
    robot = replace(robot, drive=Drive('torque', elastic=own))
    peer = Peer.of(pinocchio.buildModelFromXML(text), robot)
    rotors, friction = rng.uniform(0.1, 1.0, (2, joints))
    parameters = {f'Ia{j + 1}': float(rotors[j]) for j in range(joints)}
    parameters |= {f'fv{j + 1}': float(friction[j]) for j in range(joints)}
    parameters |= {f'K{j + 1}': 1e4 for j in own} | {f'D{j + 1}': 1e2 for j in own}
    states = random_states(robot, 3, rng)
    follow = [*range(joints), *own]
    states = replace(states, position=states.position[:, follow],
                     velocity=states.velocity[:, follow],
                     acceleration=states.acceleration[:, follow])
    found = efforts(robot, parameters, states)
    for k in range(3):
        q, v, a = (values[k, :joints] for values in (states.position, states.velocity,
                                                     states.acceleration))
        expected = peer.inverse_dynamics(q, v, a) + rotors * a + friction * v
        np.testing.assert_allclose(found[:joints, k], expected,
                                   rtol=0.0, atol=SAME_FORMULA * max(np.abs(expected).max(), 1.0))
        np.testing.assert_allclose(found[joints:, k], (rotors * a + friction * v)[list(own)],
                                   rtol=0.0, atol=SAME_FORMULA * np.abs(a).max())


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_gears_add_their_own_parameters_only(seed: int) -> None:
    """A gear adds K, D, s to what a torque sensor behind a rigid one would show, no more."""
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, 3, 0.3))
    own = tuple(int(j) for j in np.flatnonzero(rng.random(3) < 0.7)) or (0,)
    soft = replace(robot, drive=Drive('torque', elastic=own))
    structure = Structure.uniform(soft, True, 'coulomb', {})
    found = reduce_numeric(soft, structure.blocks(soft))
    assert {f'{p}{j + 1}' for j in own for p in ('Ia', 'K', 'D', 's')} <= set(found.names)
    links = slice(0, 10 * robot.n)
    for row, name in zip(found.matrix, found.names):
        if name[0] in 'KDs' or (name.startswith('Ia') and int(name[2:]) - 1 in own):
            assert not row[links].any() and np.count_nonzero(row) == 1, name


@pytest.mark.parametrize('stiffness', STIFF_GEARS)
def test_stiff_gears_come_near_the_rigid_robot(stiffness: float) -> None:
    """At equilibrium of the gear the whole effort differs from the rigid one by its deflection."""
    robot, _ = elastic_arm()
    states = random_states(robot, 20, np.random.default_rng(2))
    q, qd, qdd = (values[:, :3] for values in (states.position, states.velocity,
                                               states.acceleration))
    rigid = efforts(robot.rigid, {'Ia1': 0.5, 'Ia2': 0.4, 'Ia3': 0.3},
                    replace(states, position=q, velocity=qd, acceleration=qdd))
    links = efforts(robot.rigid, {}, replace(states, position=q, velocity=qd, acceleration=qdd))
    theta = q + links.T / stiffness
    values = {f'K{j}': stiffness for j in (1, 2, 3)} | {'Ia1': 0.5, 'Ia2': 0.4, 'Ia3': 0.3}
    found = efforts(robot, values, replace(
        states, position=np.hstack([q, theta]), velocity=np.hstack([qd, qd]),
        acceleration=np.hstack([qdd, qdd])))
    np.testing.assert_allclose(found[:3], rigid, rtol=0.0, atol=SAME_FORMULA * np.abs(rigid).max())
    np.testing.assert_allclose(found[3:], rigid,
                               rtol=0.0, atol=STIFF_GEARS[stiffness] * np.abs(rigid).max())


def test_gears_sum_the_amplitudes_of_their_hysteresis() -> None:
    states = np.array([[0.0, 0.0, 1e-3, 2.0], [1.0, 0.0, 2e-3, 3.0], [1.0, 1.0, 5e-3, 4.0]])
    gears = Gears((0, 2, 3), *np.ones((4, 3)), states=states)
    np.testing.assert_array_equal(gears.amplitudes, [2.0, 7.0, 0.0])
    np.testing.assert_array_equal(gears.hysteretic, [True, True, False])


def test_stiff_gears_bear_friction_under_load_as_rigid_joints_do() -> None:
    """Motors with the friction, under the load of the nominal links, that rigid joints have."""
    rng, law = np.random.default_rng(0), law_from('coulomb+load')
    values = [rng.uniform(0.5, 2.0, len(law.parameters)) for _ in range(2)]
    friction = AxisFriction.of(np.eye(2), [law, law], values, (np.eye(2), ARM.nominal))
    gears = gears_of(ARM, stiffness=1e9)
    loaded = friction.on(gears.motors(2), 4)
    step = 1e-2
    angle = step * np.arange(200)[:, None] * [1.0, 1.7]
    rates = np.array([1.0, 1.7])
    motion = np.array([1.0 - np.cos(angle), rates * np.sin(angle), rates**2 * np.cos(angle)])
    _, effort = ElasticDynamics(ARM, ARM.nominal, np.zeros((2, 2)), gears, loaded).inverse(
        motion, step)
    rigid = rigid_body.InverseDynamics(ARM.rigid, ARM.nominal, 0.5 * np.eye(2), friction)(*motion)
    np.testing.assert_allclose(effort[5:-5], rigid[5:-5], rtol=0.0,
                               atol=1e-3 * np.abs(rigid).max())
    without = rigid_body.InverseDynamics(ARM.rigid, ARM.nominal, 0.5 * np.eye(2))(*motion)
    assert np.abs(rigid - without).max() > 0.1 * np.abs(rigid).max()


def test_the_kinematic_error_of_a_gear_is_a_wave_of_the_motor_with_its_derivatives() -> None:
    """By its amplitude and phase, which the sine and cosine of it add up to."""
    rate, sine, cosine = waves = np.array([[4.0, 7.0], [3e-3, -2e-3], [5e-3, 1e-3]])
    motor = np.linspace(-2.0, 3.0, 22).reshape(11, 2)
    size, phase = np.hypot(sine, cosine), rate * motor - np.arctan2(sine, cosine)
    gears = Gears((0, 1), *np.ones((3, 2)), np.zeros(2), waves.T)
    np.testing.assert_allclose(gears.error(motor), [
        size * np.cos(phase), -rate * size * np.sin(phase), -rate**2 * size * np.cos(phase)],
        rtol=0.0, atol=1e-15)
