"""The simulated arm: MuJoCo against Pinocchio, true friction, energy, sensors, bad input."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
from motions import Sines
from robot_descriptions import own_robots

from robot_dynid import load_robot
from robot_dynid.errors import MissingDependency, RobotError, UsageError
from robot_dynid.export import mujoco as own_mujoco
from robot_dynid.friction import AxisMotion, law_from
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.arm import Arm, Sensors, measured, record
from robot_dynid.simulation.plant import Bristles, Plant
from robot_dynid.simulation.truth import Noise, Truth, load_truth
from robot_dynid.types import FloatArray

ROBOTS = own_robots()




def states(robot: RobotModel, count: int = 50) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Random positions, velocities and accelerations (count, n) of the size the robot moves at."""
    rng = np.random.default_rng(1)
    unit = rng.uniform(-1.0, 1.0, (3, count, robot.n))
    return 1.5 * unit[0], unit[1] * robot.limits.velocity, unit[2] * robot.limits.acceleration


def test_meshes_that_lie_elsewhere_are_not_needed(tmp_path: Path) -> None:
    """As the packages of vendors name them; nothing touches in the simulation."""
    text = Path(load_robot('planar_3r').source).read_text()
    mesh = ('<collision><geometry><mesh filename="package://arm/link.stl"/></geometry>'
            '</collision></link>')
    (tmp_path / 'arm.urdf').write_text(text.replace('</link>', mesh))
    robot = load_robot(tmp_path / 'arm.urdf')
    assert Plant(robot).model.body_mass.sum() == pytest.approx(robot.nominal[:, 0].sum())


def test_a_mujoco_that_moves_arms_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ('3.9.0', '3.15.0'):
        monkeypatch.setattr(mujoco, '__version__', version)
        with pytest.raises(MissingDependency, match=f'MuJoCo {version} .*3.16'):
            importlib.reload(own_mujoco)


def test_a_root_link_may_be_called_world(tmp_path: Path) -> None:
    """As in many URDFs; it is the name of MuJoCo's own root."""
    given = load_robot('planar_3r')
    text = Path(given.source).read_text().replace(f'"{given.base_link}"', '"world"')
    (tmp_path / 'arm.urdf').write_text(text)
    robot = load_robot(tmp_path / 'arm.urdf')
    assert robot.base_link == 'world'
    motion = states(replace(robot, limits=given.limits))
    np.testing.assert_allclose(Plant(robot).inverse(*motion), Plant(given).inverse(*motion))


@pytest.mark.parametrize('name', ROBOTS)
def test_urdf_describes_possible_bodies(name: str) -> None:
    robot = load_robot(name)
    plant = Plant(robot)
    oracle = pinocchio.buildModelFromUrdf(robot.source)
    assert plant.model.body_mass[1:].sum() == pytest.approx(
        sum(body.mass for body in oracle.inertias[1:])
    )
    inertia = np.sort(plant.model.body_inertia[1:], axis=1)
    moving = inertia[:, 2] > 0.0
    assert np.all(inertia[moving, 0] > 0.0)
    assert np.all(inertia[:, 0] + inertia[:, 1] >= inertia[:, 2] * (1.0 - 1e-9))
    for limit in (robot.limits.lower, robot.limits.upper, robot.limits.velocity,
                  robot.limits.acceleration, robot.limits.effort):
        assert np.all(np.isfinite(limit))


@pytest.mark.parametrize('name', ROBOTS)
def test_inverse_is_pinocchio_plus_the_given_friction_and_rotors(name: str) -> None:
    robot = load_robot(name)
    truth = load_truth(robot)
    q, qd, qdd = states(robot)
    model = pinocchio.buildModelFromUrdf(robot.source)
    data = model.createData()
    assert tuple(model.names)[1:] == robot.joints
    rigid = np.array([pinocchio.rnea(model, data, *row) for row in zip(q, qd, qdd, strict=True)])
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    motor_speed, motor_push = qd @ coupling.T, qdd @ coupling.T
    motor = (truth.rotor_inertia * motor_push + truth.viscous * motor_speed
             + truth.coulomb * np.clip(motor_speed / 0.05, -1.0, 1.0))
    expected = rigid + motor @ coupling
    plant = Plant(robot, truth)
    found = plant.inverse(q, qd, qdd, ramp=0.05)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())
    back = plant.acceleration(q, qd, found, ramp=0.05)
    np.testing.assert_allclose(back, qdd, rtol=0.0, atol=1e-8 * np.abs(qdd).max())


# Not the TX40: opposite speeds of its joints 5 and 6 leave motor 6 at rest, where it sticks.
@pytest.mark.parametrize('name', [n for n in ROBOTS if n != 'tx40'])
def test_dry_friction_is_the_coulomb_value_above_3_mm_per_second(name: str) -> None:
    robot = load_robot(name)
    plant = Plant(robot, load_truth(robot))
    q, qd, qdd = states(robot)
    slow = np.where(qd < 0.0, -3e-3, 3e-3)
    torque = plant.inverse(q, slow, 0.5 * qdd, ramp=0.0)
    felt = plant.inverse(q, slow, plant.acceleration(q, slow, torque), ramp=0.0)
    assert np.all(np.abs(felt - torque) <= 5e-3 * plant.truth.coulomb)


def test_a_motor_that_turns_with_several_joints_rubs_once_where_others_have_bristles() -> None:
    robot = load_robot('tx40')
    truth = replace(load_truth(robot), presliding=np.array([1e-2, 0.0, 0.0, 0.0, 0.0, 0.0]))
    plant = Plant(robot, truth)
    plant.step(np.zeros(robot.n))
    own = plant.model.dof_frictionloss[plant.motor_rows]
    np.testing.assert_array_equal(own, [0.0, *truth.coulomb[1:5], 0.0])
    assert plant.model.tendon_frictionloss == pytest.approx(truth.coulomb[5:])


def test_dry_friction_sticks_at_rest() -> None:
    robot = load_robot('seven_axis')
    plant = Plant(robot, load_truth(robot))
    start = np.full(robot.n, 0.3)
    plant.set_state(start, np.zeros(robot.n))
    rest = plant.torque_for(start, np.zeros(robot.n), np.zeros(robot.n))
    plant.step(rest + 0.9 * plant.truth.coulomb, steps=2000)
    assert np.abs(plant.state()[0] - start).max() < 1e-5
    plant.step(rest + 1.5 * plant.truth.coulomb, steps=2000)
    assert np.abs(plant.state()[0] - start).max() > 1e-2


def test_a_free_arm_without_friction_keeps_its_energy() -> None:
    robot = load_robot('seven_axis')
    truth = load_truth(robot)
    zero = np.zeros(robot.n)
    plant = Plant(robot, replace(truth, viscous=zero, coulomb=zero))
    plant.set_state(np.full(robot.n, 0.4), zero)

    def energy() -> tuple[float, float]:
        mujoco.mj_forward(plant.model, plant.data)
        mujoco.mj_energyPos(plant.model, plant.data)
        mujoco.mj_energyVel(plant.model, plant.data)
        return float(plant.data.energy.sum()), float(plant.data.energy[1])

    before, _ = energy()
    plant.step(zero, steps=4000)
    after, kinetic = energy()
    assert kinetic > 1.0
    assert abs(after - before) < 1e-6 * kinetic


@pytest.mark.parametrize('name', ['seven_axis', 'stanford_arm', 'ur10e'])
def test_recorded_effort_is_the_inverse_dynamics_of_the_recorded_motion(name: str) -> None:
    robot = load_robot(name)
    truth = load_truth(robot)
    arm = Arm(robot, replace(truth, coulomb=np.zeros(robot.n)))
    motion = Sines(robot)
    log = record(arm, motion, rate=1000.0)
    wanted = motion.sample(log.time)
    assert np.abs(log.position - wanted.position).max() < 2e-3
    assert log.velocity is not None
    assert log.effort is not None
    torque = log.effort * (1.0 if robot.drive.gains is None else robot.drive.gains)
    push = np.gradient(log.velocity, log.time, axis=0)
    expected = arm.plant.inverse(log.position, log.velocity, push)
    inside = slice(5, -5)
    error = np.linalg.norm((torque - expected)[inside], axis=0)
    assert np.all(error < 1e-3 * np.linalg.norm(torque[inside], axis=0))


def test_sensors_quantise_and_add_the_stated_noise() -> None:
    robot = load_robot('seven_axis')
    noise = Noise(position_step=1e-4, position=0.0, velocity=2e-3, effort=1e-3)
    sensors = Sensors(robot, noise, np.random.default_rng(3))
    true = np.tile(np.linspace(-1.0, 1.0, robot.n), (4000, 1))
    counts = sensors.position(true) / 1e-4
    np.testing.assert_allclose(counts, np.round(counts), rtol=0.0, atol=1e-6)
    assert np.abs(sensors.position(true) - true).max() <= 0.5e-4 + 1e-12
    assert (sensors.velocity(true) - true).std() == pytest.approx(2e-3, rel=0.05)
    spread = (sensors.effort(true) - true).std(axis=0)
    np.testing.assert_allclose(spread, 1e-3 * robot.limits.effort, rtol=0.1)


def test_noise_is_reproducible_and_ideal_sensors_change_nothing() -> None:
    robot = load_robot('planar_3r')
    truth = load_truth(robot)
    log = record(Arm(robot, truth), Sines(robot, 0.5))
    twice = [measured(log, robot, truth.noise, np.random.default_rng(7)) for _ in range(2)]
    np.testing.assert_array_equal(twice[0].effort, twice[1].effort)
    np.testing.assert_array_equal(
        measured(log, robot, Noise(), np.random.default_rng(7)).position, log.position
    )


def test_bad_input_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    robot = load_robot('planar_3r')
    plant = Plant(robot)
    with pytest.raises(UsageError, match=r'planar_3r.*\(K, 3\)'):
        plant.acceleration(np.zeros(3), np.zeros(2), np.zeros(3))
    with pytest.raises(RobotError, match='root of the URDF'):
        Plant(replace(robot, base_link='link_1'))
    for text, message in (
        ('simulation: {joint_9: {viscous: 1.0}}', "no joint 'joint_9'"),
        ('simulation: {joint_1: {grease: 1.0}}', "unknown key 'grease'"),
        ('simulation: {joint_1: {viscous: -1.0}}', 'viscous must be at least 0, is -1'),
    ):
        path = tmp_path / 'robot.yaml'
        path.write_text(text)
        with pytest.raises(RobotError, match=message):
            load_truth(robot, path)


def test_a_robot_without_a_simulation_section_is_ideal() -> None:
    truth = load_truth(replace(load_robot('planar_3r'), name='another'))
    assert isinstance(truth, Truth)
    assert not truth.coulomb.any()
    assert truth.noise == Noise()


def test_current_driven_robot_reports_amperes() -> None:
    robot = load_robot('ur10e')
    arm = Arm(robot)
    pose = np.full(robot.n, 0.3)
    arm.place(pose)
    torque = arm.plant.torque_for(pose, np.zeros(robot.n), np.zeros(robot.n))
    assert robot.drive.gains is not None
    np.testing.assert_allclose(arm.effort() * robot.drive.gains, torque, rtol=0.0, atol=1e-12)


ROBOT = replace(load_robot('planar_3r'), gravity=np.zeros(3))
LENGTH = 2e-4


def truth(**changes: object) -> Truth:
    """Return joints with Coulomb friction of 1 N m that builds up over LENGTH."""
    given = replace(load_truth(ROBOT), viscous=np.zeros(3), coulomb=np.ones(3),
                    presliding=np.full(3, LENGTH))
    return replace(given, **changes)  # type: ignore[arg-type]


def test_states_are_those_of_the_friction_law() -> None:
    position = 1e-3 * np.sin(np.linspace(0.0, 9.0, 500))
    bristles = Bristles(np.array([LENGTH, 0.0]))
    bristles.relax(np.full(2, position[0]))
    found = np.array([bristles.states(np.full(2, x)) for x in position])
    still = np.zeros(len(position))
    expected = law_from('dahl', {'length': LENGTH}).columns(
        AxisMotion(still, position, still))[1]
    np.testing.assert_allclose(found[:, 0], expected, rtol=0.0, atol=1e-12)
    assert not found[:, 1].any()
    assert Bristles.of(None) is None
    assert Bristles.of(np.zeros(2)) is None


def test_a_joint_gives_before_it_slides() -> None:
    """At rest under a torque u the state is u / coulomb, so the travel is -length log(1 - u)."""
    plant = Plant(ROBOT, truth(viscous=np.full(3, 5.0)))
    plant.set_state(np.zeros(3), np.zeros(3))
    for torque in np.linspace(0.0, 0.5, 4000):
        plant.step(np.array([0.0, 0.0, torque]), steps=4)
    plant.step(np.array([0.0, 0.0, 0.5]), steps=4000)
    assert plant.state()[0][2] == pytest.approx(-LENGTH * np.log(0.5), rel=0.02)
    plant.step(np.array([0.0, 0.0, 1.2]), steps=8000)
    assert plant.state()[0][2] > 100.0 * LENGTH


def test_friction_only_takes_energy() -> None:
    plant = Plant(ROBOT, truth())
    plant.set_state(np.full(3, 0.4), np.array([1.0, -1.0, 1.0]))
    plant.step(np.zeros(3), steps=8000)
    assert np.abs(plant.state()[1]).max() < 0.02


def test_plant_and_load_truth_refuse_impossible_presliding(tmp_path: Path) -> None:
    with pytest.raises(RobotError, match=r'presliding of joint_3 is too short.*or more'):
        Plant(ROBOT, truth(presliding=np.array([0.0, 0.0, 1e-9])))
    tx40 = load_robot('tx40')
    with pytest.raises(RobotError, match='motor of joint_6 drives several joints'):
        Plant(tx40, replace(load_truth(tx40), presliding=np.full(6, LENGTH)))
    path = tmp_path / 'robot.yaml'
    path.write_text('simulation: {joint_1: {presliding: -1.0}}')
    with pytest.raises(RobotError, match='presliding must be at least 0'):
        load_truth(ROBOT, path)
    path.write_text('simulation: {joint_1: {presliding: 1.0e-4}}')
    found = load_truth(ROBOT, path).presliding
    assert found is not None
    assert found.tolist() == [1e-4, 0.0, 0.0]
