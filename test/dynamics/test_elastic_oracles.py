"""Rows of elastic robots against MuJoCo, energy, and rigid inverse dynamics of random robots."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio
import pytest
from elastic_arms import D, K, elastic_arm
from elastic_models import energy
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import Peer, random_urdf
from tolerances import ENERGY_RATE, SAME_FORMULA, STIFF_GEARS

from robot_dynid import load_robot
from robot_dynid.dynamics.elastic import Gears
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import full_regressor, random_states, reduce_numeric
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.simulation.harmonic_drive import HarmonicDrive
from robot_dynid.simulation.mujoco_model import TIMESTEP
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.types import FloatArray, Samples


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
                               atol=1e-6 * np.abs(torque).max())


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
                               atol=ENERGY_RATE * np.abs(rate).max())


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
                                   atol=SAME_FORMULA * max(np.abs(expected).max(), 1.0))
        np.testing.assert_allclose(found[joints:, k], (rotors * a + friction * v)[list(own)],
                                   atol=SAME_FORMULA * np.abs(a).max())


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
    np.testing.assert_allclose(found[:3], rigid, atol=SAME_FORMULA * np.abs(rigid).max())
    np.testing.assert_allclose(found[3:], rigid,
                               atol=STIFF_GEARS[stiffness] * np.abs(rigid).max())
