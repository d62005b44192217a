"""simulation/plant.py: harmonic drives of the simulated arm against closed forms, Pinocchio and
the rigid arm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
from motions import Sines
from scipy.linalg import eigh
from tolerances import DRIVE_ENERGY, DRIVE_RESONANCE, DRIVE_STATICS

from robot_dynid import load_robot
from robot_dynid.errors import RobotError
from robot_dynid.robot.locate import shared_folders
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Setpoint, measured, record
from robot_dynid.simulation.plant import Plant, Transmissions
from robot_dynid.simulation.truth import HarmonicDrive, Noise, Truth, load_truth
from robot_dynid.types import FloatArray

ROBOT = load_robot('planar_3r')
RIGID = replace(load_truth(ROBOT), viscous=np.zeros(3), coulomb=np.zeros(3))
PENDULUM = HarmonicDrive(gear_ratio=100.0, stiffness=4e3)


def with_drives(truth: Truth = RIGID, **changes: float) -> Truth:
    """All three joints with drives as stiff for their size."""
    drives = {name: replace(PENDULUM, stiffness=k, **changes)
              for name, k in zip(ROBOT.joints, (2e4, 1e4, 4e3))}
    return replace(truth, drives=drives)


def hold(arm: Arm, position: FloatArray, seconds: float) -> None:
    still = np.zeros_like(position)
    for _ in range(round(seconds / CONTROL_PERIOD)):
        arm.control(Setpoint(position, still, still))
        arm.advance()


def test_at_rest_a_link_sags_by_gravity_over_stiffness() -> None:
    truth = with_drives(damping=5.0)
    arm = Arm(ROBOT, truth)
    motors = np.array([0.3, -0.4, 0.5])
    arm.place(motors)
    placed = arm.position.copy()
    hold(arm, motors, 0.5)
    model = pinocchio.buildModelFromUrdf(ROBOT.source)
    gravity = pinocchio.computeGeneralizedGravity(model, model.createData(), arm.position)
    stiffness = np.array([d.stiffness for d in truth.drives.values()])
    sag = arm.motor_position - arm.position
    np.testing.assert_allclose(sag, gravity / stiffness, rtol=0.0, atol=DRIVE_STATICS)
    np.testing.assert_allclose(placed, motors - sag, rtol=0.0, atol=2 * DRIVE_STATICS)
    np.testing.assert_allclose(arm.effort(), gravity, rtol=1e-4)


def test_the_resonance_is_that_of_stiffness_and_inertias() -> None:
    robot = replace(ROBOT, gravity=np.zeros(3))
    plant = Plant(robot, replace(RIGID, drives={'joint_3': PENDULUM}))
    pose = np.array([0.2, 0.7, -0.5])
    model = pinocchio.buildModelFromUrdf(ROBOT.source)
    data = model.createData()
    mass = np.zeros((4, 4))
    upper = pinocchio.crba(model, data, pose)
    mass[:3, :3] = np.triu(upper) + np.triu(upper, 1).T + np.diag([*RIGID.rotor_inertia[:2], 0.0])
    mass[3, 3] = RIGID.rotor_inertia[2]
    twist = np.array([0.0, 0.0, -1.0, 1.0])
    expected = np.sqrt(eigh(PENDULUM.stiffness * np.outer(twist, twist), mass)[0][-1])
    plant.set_state(pose, np.zeros(3))
    plant.data.qpos[3] += 1e-5
    apart = []
    for _ in range(2000):
        plant.step(np.zeros(3), steps=1)
        apart.append(plant.motor_state()[0][2] - plant.state()[0][2])
    rising = np.flatnonzero((np.array(apart[:-1]) < 0.0) & (np.array(apart[1:]) >= 0.0))
    exact = [i - apart[i] / (apart[i + 1] - apart[i]) for i in rising]
    period = (exact[-1] - exact[0]) / (len(exact) - 1) * 2.5e-4
    assert 2.0 * np.pi / period == pytest.approx(expected, rel=DRIVE_RESONANCE)


def energy(plant: Plant) -> tuple[float, float]:
    """Return the whole energy, with what the kinematic error adds to the springs; kinetic."""
    mujoco.mj_forward(plant.model, plant.data)
    mujoco.mj_energyPos(plant.model, plant.data)
    mujoco.mj_energyVel(plant.model, plant.data)
    (rotor, _), (link, _) = plant.motor_state(), plant.state()
    springs = 0.0
    for i, drive in enumerate(plant.truth.drives.values()):
        error = drive.kinematic_error * np.sin(2.0 * drive.gear_ratio * rotor[i])
        springs += 0.5 * drive.stiffness * (
            (rotor[i] + error - link[i])**2 - (rotor[i] - link[i])**2)
    return float(plant.data.energy.sum()) + springs, float(plant.data.energy[1])


@pytest.mark.parametrize('error', [0.0, 1e-4])
def test_a_free_arm_with_drives_keeps_its_energy(error: float) -> None:
    plant = Plant(ROBOT, with_drives(kinematic_error=error))
    plant.set_state(np.full(3, 0.4), np.zeros(3))
    before, _ = energy(plant)
    plant.step(np.zeros(3), steps=4000)
    after, kinetic = energy(plant)
    assert kinetic > 1.0
    assert abs(after - before) < DRIVE_ENERGY * kinetic


def test_damping_and_hysteresis_only_take_energy() -> None:
    plant = Plant(ROBOT, with_drives(damping=2.0, hysteresis=0.5, kinematic_error=5e-5))
    plant.set_state(np.full(3, 0.4), np.zeros(3))
    seen = []
    for _ in range(40):
        seen.append(energy(plant)[0])
        plant.step(np.zeros(3), steps=100)
    stored = 3 * 0.5 * 2e-4  # hysteresis holds at most amplitude times length per joint
    assert seen[-1] < seen[0] - 10.0 * stored
    assert np.diff(seen).max() < stored + DRIVE_ENERGY * abs(seen[0])


def test_the_area_of_the_hysteresis_loop_is_that_of_dahls_law() -> None:
    drive = replace(PENDULUM, hysteresis=1.5, hysteresis_length=2e-4)
    gear, reach = Transmissions([drive]), 5e-4
    gear.relax(np.zeros(1), np.zeros(1))
    deflection = reach * np.sin(np.linspace(0.0, 6.0 * np.pi, 6001))
    torque = np.array([gear.torques(np.array([[d], [0.0]]), np.zeros((2, 1)))[1][0]
                       for d in deflection])
    last = slice(4000, 6001)
    area = np.trapezoid(torque[last], deflection[last])
    expected = 4.0 * 1.5 * (reach - 2e-4 * np.tanh(reach / 2e-4))
    assert area == pytest.approx(expected, rel=1e-3)


def test_stiffer_drives_come_ever_nearer_to_the_rigid_arm() -> None:
    torque, errors = np.array([6.0, 2.0, 0.5]), []
    soft = with_drives(damping=5.0)
    stiff = {j: replace(d, stiffness=4.0 * d.stiffness) for j, d in soft.drives.items()}
    for truth in (RIGID, soft, replace(soft, drives=stiff)):
        plant = Plant(ROBOT, truth)
        plant.set_state(np.full(3, 0.4), np.zeros(3))
        plant.step(torque, steps=2000)
        errors.append(plant.state()[0])
    apart = np.abs(np.array(errors[1:]) - errors[0]).max(axis=1)
    assert apart[0] < 0.02 * np.abs(errors[0] - 0.4).max()
    assert apart[1] < 0.3 * apart[0]


def test_the_kinematic_error_shows_twice_per_motor_turn() -> None:
    size, ratio = 1e-4, 50.0
    robot = replace(ROBOT, gravity=np.zeros(3))
    drives = {'joint_3': HarmonicDrive(ratio, 4e3, 5.0, kinematic_error=size)}
    arm = Arm(robot, replace(RIGID, drives=drives))
    arm.place(np.zeros(3))
    speed = np.array([0.0, 0.0, 0.2])
    apart, turned = [], []
    for i in range(4000):
        at = speed * i * CONTROL_PERIOD
        arm.control(Setpoint(at, speed, np.zeros(3)))
        arm.advance()
        apart.append(arm.position[2] - arm.motor_position[2])
        turned.append(arm.motor_position[2])
    phase = 2.0 * ratio * np.array(turned[1000:])
    waves = np.column_stack([np.sin(phase), np.cos(phase), np.ones_like(phase)])
    found, rest, *_ = np.linalg.lstsq(waves, np.array(apart[1000:]))
    assert np.hypot(*found[:2]) == pytest.approx(size, rel=0.02)
    assert np.sqrt(rest[0] / len(phase)) < 0.05 * size


def test_stribeck_friction_holds_more_than_it_takes_to_slide() -> None:
    truth = replace(RIGID, coulomb=np.full(3, 1.0), stribeck=np.full(3, 0.5),
                    stribeck_speed=np.full(3, 0.05))
    robot = replace(ROBOT, gravity=np.zeros(3))
    for elastic in (truth, with_drives(truth, damping=5.0)):
        plant = Plant(robot, elastic)
        plant.set_state(np.zeros(3), np.zeros(3))
        torque = np.array([0.0, 0.0, 1.4])
        plant.step(torque, steps=2000)
        assert abs(plant.motor_state()[0][2]) < 1e-4
        plant.step(torque + np.array([0.0, 0.0, 0.2]), steps=400)
        assert plant.motor_state()[1][2] > 0.1
        plant.step(np.array([0.0, 0.0, 1.1]), steps=400)
        assert plant.motor_state()[1][2] > 0.1


def test_motor_and_link_encoders_count_for_themselves() -> None:
    truth = with_drives(replace(RIGID, noise=Noise(position_step=1e-4, motor_position_step=1e-6)))
    log = record(Arm(ROBOT, truth), Sines(ROBOT, 0.5))
    assert log.motor_position is not None
    assert log.motor_velocity is not None
    seen = measured(log, ROBOT, truth.noise, np.random.default_rng(0))
    for values, true, step in ((seen.position, log.position, 1e-4),
                               (seen.motor_position, log.motor_position, 1e-6)):
        np.testing.assert_allclose(values / step, np.round(values / step), rtol=0.0, atol=1e-6)
        assert 0.2 * step < np.abs(values - true).max() <= 0.5 * step + 1e-12
    assert record(Arm(ROBOT, RIGID), Sines(ROBOT, 0.5)).motor_position is None


def test_the_arm_with_drives_that_comes_along_follows_a_motion() -> None:
    robot = load_robot('seven_axis')
    truth = load_truth(robot, 'seven_axis_drives')
    assert set(truth.drives) == set(robot.joints)
    log = record(Arm(robot, truth), Sines(robot, 2.0))
    wanted = Sines(robot, 2.0).sample(log.time).position
    assert log.motor_position is not None
    assert np.abs(log.motor_position - wanted).max() < 5e-3
    assert 1e-4 < np.abs(log.motor_position - log.position).max() < 2e-2


@pytest.mark.parametrize(('text', 'message'), [
    ('{drive: {stiffness: 1.0e4}}', 'joint_1: drive: gear_ratio is missing'),
    ('{drive: {gear_ratio: 100}}', 'joint_1: drive: stiffness is missing'),
    ('{drive: {gear_ratio: 100, stiffness: -1}}', 'stiffness must be at least 0, is -1'),
    ('{drive: {gear_ratio: 100, stiffness: soft}}', 'stiffness must be a finite number'),
    ('{drive: {gear_ratio: 100, stiffness: 1.0e4, grease: 1}}', "unknown key 'grease'"),
    ('{drive: {gear_ratio: 100, stiffness: 1.0e4, kinematic_error: 0.01}}', 'below 0.005'),
    ('{stribeck: 1.0}', 'stribeck and stribeck_speed belong together'),
])
def test_bad_settings_are_named(tmp_path, text, message) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / 'robot.yaml'
    path.write_text(f'simulation: {{joint_1: {text}}}')
    with pytest.raises(RobotError, match=message):
        load_truth(ROBOT, path)


def test_friction_that_the_urdf_states_is_on_no_side_of_a_gear(tmp_path: Path) -> None:
    given = load_robot('planar_3r')
    text = Path(given.source).read_text()
    (tmp_path / 'arm.urdf').write_text(text.replace(
        '<limit', '<dynamics damping="1.0" friction="1.0"/>\n    <limit'))
    model = Plant(load_robot(tmp_path / 'arm.urdf'), with_drives()).model
    same = Plant(given, with_drives()).model
    np.testing.assert_array_equal(model.dof_damping, same.dof_damping)
    np.testing.assert_array_equal(model.dof_frictionloss, same.dof_frictionloss)


def test_plant_refuses_harmonic_drives_that_it_cannot_simulate() -> None:
    stiff = dict.fromkeys(('joint_2', 'joint_3'), replace(PENDULUM, stiffness=1e8))
    with pytest.raises(RobotError, match=r'too stiff.*are: joint_2 [^;]*, [^;]*; joint_3 '):
        Plant(ROBOT, replace(RIGID, drives=stiff))
    with pytest.raises(RobotError, match='joint_3 needs a positive rotor_inertia'):
        Plant(ROBOT, replace(Truth.ideal(3), drives={'joint_3': PENDULUM}))
    tx40 = load_robot('tx40')
    with pytest.raises(RobotError, match='motor of joint_6 drives several joints'):
        Plant(tx40, replace(load_truth(tx40), drives={'joint_6': PENDULUM}))
    assert (shared_folders()[0] / 'config' / 'simulation').is_dir()
