"""identified/model.py: identified models with elastic joints: accelerations and motion against
MuJoCo, other laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from elastic_arms import ARM, TRUTH, WIDTH, random_states, start_at_rest, true_model
from tolerances import PLANT_MOTION, SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import INDEFINITE, impossible
from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.mujoco_model import elastic_accelerations
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import HarmonicDrive, Truth, load_truth


def mixed() -> tuple[RobotModel, Truth]:
    """Return the seven-axis arm, three of its joints elastic."""
    robot = load_robot('seven_axis')
    drives = {f'joint_{j + 1}': HarmonicDrive(100.0, 2e4 / (j + 1), 10.0 / (j + 1))
              for j in (1, 3, 6)}
    return (replace(robot, drive=replace(robot.drive, elastic=(1, 3, 6))),
            replace(load_truth(robot), drives=drives))




@pytest.mark.parametrize('case', [(ARM, TRUTH), mixed()], ids=['2r', 'mixed'])
def test_links_and_motors_accelerate_as_in_mujoco(case, tmp_path) -> None:
    robot, truth = case
    model = true_model(robot, truth)
    model.save(tmp_path / 'model.yaml')
    again = IdentifiedModel.load(tmp_path / 'model.yaml')
    q, qd, theta, theta_d, effort = states = random_states(robot, np.random.default_rng(0))
    expected = elastic_accelerations(robot, truth, states, WIDTH)
    for used in (model, again):
        found = used.forward_elastic(q, qd, effort, theta, theta_d)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
    single = model.forward_elastic(*(a[3] for a in (q, qd, effort, theta, theta_d)))
    np.testing.assert_allclose(single[1], expected[1][3], rtol=1e-7, atol=1e-7)


def test_motors_of_rigid_joints_are_not_looked_at() -> None:
    model, rng = true_model(*mixed()), np.random.default_rng(1)
    q, qd, theta, theta_d, effort = random_states(model.robot, rng)
    rigid = [0, 2, 4, 5]
    odd, odd_d = theta.copy(), theta_d.copy()
    odd[:, rigid] += 1.0
    odd_d[:, rigid] -= 1.0
    for ours, theirs in zip(model.forward_elastic(q, qd, effort, theta, theta_d),
                            model.forward_elastic(q, qd, effort, odd, odd_d), strict=True):
        np.testing.assert_array_equal(ours, theirs)




@pytest.mark.parametrize('case', [(ARM, TRUTH), mixed()], ids=['2r', 'mixed'])
def test_a_second_of_motion_ends_where_mujoco_ends(case) -> None:
    robot, truth = case
    truth = replace(truth, coulomb=np.zeros(robot.n))
    model, plant, rng = true_model(robot, truth), Plant(robot, truth), np.random.default_rng(2)
    q, qd, motors = start_at_rest(model, rng.uniform(-0.5, 0.5, (1, robot.n)))
    reach = np.diagonal(model.mass_matrix(q[0]))
    waves = np.sin(np.outer(1e-3 * np.arange(1000), [3.0, 8.0]) + rng.uniform(0, 6, 2))
    effort = model.gravity(q) + 8.0 * waves @ rng.normal(size=(2, robot.n)) * reach
    found = model.rollout(q, qd, effort, 1e-3, motors)
    plant.set_state(motors[0][0], np.zeros(robot.n))
    for row in effort:
        plant.step(row)
    assert np.abs(found.position[0, -1] - q).max() > 0.3
    assert found.motor_position is not None and found.motor_velocity is not None
    for ours, theirs in ((found.position, plant.state()[0]), (found.velocity, plant.state()[1]),
                         (found.motor_position, plant.motor_state()[0]),
                         (found.motor_velocity, plant.motor_state()[1])):
        assert np.abs(ours[0, -1] - theirs).max() < PLANT_MOTION


def test_elastic_models_with_stribeck_or_spinning_rotors_move() -> None:
    """A Stribeck law; a rotor that spins on the first link."""
    plain = true_model()
    drive = replace(ARM.drive, rotor_axes=np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    spinning = true_model(replace(ARM, drive=drive))
    stribeck = true_model(ARM, load_truth(ARM), 'stribeck', speed=0.05)
    q, qd, motors = start_at_rest(plain, np.array([[0.3, -0.6]]))
    effort = np.tile(plain.gravity(q)[:, None] + [40.0, 15.0], (1, 150, 1))
    ends = [m.rollout(q, qd, effort, 1e-3, motors).position[0, -1]
            for m in (plain, stribeck, spinning)]
    moved = np.abs(ends[0] - q[0]).max()
    assert moved > 0.02
    for end in ends[1:]:
        assert 1e-5 < np.abs(end - ends[0]).max() < 0.2 * moved
    states = random_states(ARM, np.random.default_rng(4), 5)
    q, qd, theta, theta_d, effort = states
    links, rotors = spinning.forward_elastic(q, qd, effort, theta, theta_d)
    x = np.hstack([q, theta])
    mass, bias = (spinning.elastic_motion.dynamics.mass_matrix(x),
                  spinning.elastic_motion.dynamics.bias(x, np.hstack([qd, theta_d])))
    # J/r about the same axis couples the second motor with the first link by a constant
    assert mass[:, 0, 3] == pytest.approx(np.full(5, TRUTH.rotor_inertia[1] / 100.0))
    gears = spinning.elastic_motion.gears
    torque = gears.torque(np.array([theta - q, theta_d - qd]))
    rest = effort - torque - spinning.friction(theta, theta_d)
    np.testing.assert_allclose(
        np.einsum('kij,kj->ki', mass, np.hstack([links, rotors])) + bias,
        np.hstack([torque, rest]), rtol=1e-8, atol=1e-8)


def test_stiff_joints_are_the_rigid_model() -> None:
    """forward and rollout without motors are of stiff gears; so are stiff gears with them."""
    rigid = true_model(ARM.rigid)
    stiff = replace(TRUTH, drives={j: HarmonicDrive(100.0, 1e10, 1e5) for j in ARM.joints})
    model = true_model(ARM, stiff)
    q, qd, motors = start_at_rest(model, np.array([[0.3, -0.6]]))
    effort = np.tile(model.gravity(q)[:, None] + [40.0, 15.0], (1, 300, 1))
    expected = rigid.rollout(q, qd, effort, 1e-3)
    np.testing.assert_allclose(model.forward(q, qd, effort[:, 0]),
                               rigid.forward(q, qd, effort[:, 0]), rtol=SAME_FORMULA)
    np.testing.assert_allclose(model.rollout(q, qd, effort, 1e-3).position, expected.position,
                               rtol=0.0, atol=1e-12)
    assert model.rollout(q, qd, effort, 1e-3).motor_position is None
    both = model.rollout(q, qd, effort, 1e-3, motors)
    np.testing.assert_allclose(both.position, expected.position, rtol=0.0, atol=2e-5)


def test_links_that_cannot_be_are_told_though_their_motors_make_up_for_them() -> None:
    """Inertia of a link given to its rotor: stiff gears move alike, and links alone cannot."""
    model = true_model(ARM, TRUTH)
    assert not impossible(model)
    moved = dict(zip(model.names, model.values.tolist(), strict=True))
    more = 2.0 * float(model.mass_matrix(np.zeros(2))[0, 0])
    moved |= {'Izz1': moved['Izz1'] - more, 'Ia1': moved['Ia1'] + more}
    wrong = replace(model, values=np.array([moved[name] for name in model.names]))
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 2))
    np.testing.assert_allclose(wrong.mass_matrix(q), model.mass_matrix(q), rtol=0.0, atol=1e-9)
    (told,) = impossible(wrong)
    assert told.startswith(INDEFINITE) and '--method feasible' in told
    with pytest.raises(ModelError, match='not positive definite'):
        wrong.forward_elastic(*(np.zeros(2) for _ in range(5)))


@pytest.mark.parametrize('damping', [-40.0, 0.0, 8.0])
def test_gears_do_not_drive_motion(damping: float) -> None:
    """A damping below zero would shake the gear ever more; the estimate stays as it is."""
    model = true_model()
    place = model.names.index('D2')
    told = replace(model, values=np.where(np.arange(len(model.values)) == place, damping,
                                          model.values))
    assert told.standard['D2'] == damping
    still = replace(told, values=np.where(np.arange(len(model.values)) == place,
                                          max(damping, 0.0), model.values))
    q, qd, motors = start_at_rest(model, np.array([[0.4, -0.3]]))
    bent = (motors[0] + 1e-3, motors[1])
    effort = np.tile(model.gravity(q)[:, None], (1, 300, 1))
    ours, theirs = (one.rollout(q, qd, effort, 1e-3, bent) for one in (told, still))
    np.testing.assert_array_equal(ours.position, theirs.position)
    assert ours.motor_velocity is not None
    swing = np.abs(ours.motor_velocity[0, :, 1])
    assert swing[-50:].max() < swing[:50].max()


def test_elastic_model_refuses_bad_motor_states_and_stiffness() -> None:
    model, zero = true_model(), np.zeros(2)
    with pytest.raises(UsageError, match='this model has rigid joints only'):
        true_model(ARM.rigid).forward_elastic(*[zero] * 5)
    with pytest.raises(UsageError, match='motor_velocity has shape'):
        model.forward_elastic(*[zero] * 4, np.zeros(3))
    with pytest.raises(UsageError, match='motor_position of joint joint_2 in state 0 is nan'):
        model.rollout(zero, zero, np.zeros((1, 5, 2)), 1e-3, ([0.0, np.nan], zero))
    with pytest.raises(UsageError, match='position and velocity of motors'):
        model.rollout(zero, zero, np.zeros((1, 5, 2)), 1e-3, (zero,))  # type: ignore[arg-type]
    values = model.values.copy()
    values[model.names.index('K2')] = -5.0
    with pytest.raises(ModelError, match=r'joint_2: stiffness is -5; .* method feasible'):
        replace(model, values=values).forward_elastic(*[zero] * 5)


def test_the_effort_is_linear_in_the_parameters_behind_sensors_too() -> None:
    robot, truth = mixed()
    robot = replace(robot, drive=replace(robot.drive, torque_sensors=(3,)))
    model = true_model(robot, truth)
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 20, robot.n))
    found = effort_by_parameters(model, *states) @ model.values
    np.testing.assert_allclose(found, model.inverse(*states), rtol=1e-9, atol=1e-9)
