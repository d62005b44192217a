"""identification/identify.py: torque sensors behind the gears of a simulated arm show neither
rotors nor their friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.simulation.arm import Arm, Setpoint, measured, record
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits

MOTORS = load_robot('seven_axis')
BEHIND = replace(MOTORS, drive=replace(MOTORS.drive, sensor='link'))
TRUTH = load_truth(MOTORS)
#: prescribed where only the sensor matters
FIXED = Recipe(cutoff=20.0, effort_lag=0.0, friction='coulomb', ramp_width=0.01, ripple='none')


def recorded(robot, truth=TRUTH):
    """Return 8 s at 1 kHz in which 3 % of the rows repeat the row before, as on a busy bus."""
    generator = np.random.default_rng(5)
    motion = random_fourier(motion_limits(MOTORS).scaled(0.8), FourierOptions(8.0, 6), generator)
    log = measured(record(Arm(robot, truth), motion, 1000.0), robot, truth.noise, generator)
    rows = np.arange(len(log.time))
    rows[1:][generator.random(len(rows) - 1) < 0.03] = 0
    rows = np.maximum.accumulate(rows)
    return replace(log, position=log.position[rows], velocity=log.velocity[rows],
                   effort=log.effort[rows])


@pytest.fixture(scope='module')
def behind():
    return recorded(BEHIND)


@pytest.fixture(scope='module')
def result(behind):
    return identify(BEHIND, [behind])


def told(result, text):
    return [w for w in result.warnings if text in w]


def test_links_are_found_without_rotors_and_friction(result):
    model = result.model
    assert set(model.structure.friction) == {'none'} and not model.structure.rotor_inertia
    assert not [n for n in model.names if n.startswith(('Ia', 'fv', 'fc'))]
    assert told(result, 'stale rows') and not told(result, 'as if from')
    generator = np.random.default_rng(2)
    q, qd, qdd = generator.uniform(-1.0, 1.0, (3, 200, 7))
    expected = rigid_body.inverse_dynamics(BEHIND, q, qd, qdd)
    error = np.sqrt(np.mean((model.inverse(q, qd, qdd) - expected)**2, axis=0))
    noise = TRUTH.noise.effort * BEHIND.limits.effort
    assert np.all(error < 0.3 * noise)  # of one row
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.robot.drive.sensor == 'link'


def test_intervals_hold_the_links(result):
    """Of a recording whose parameters are known."""
    model = result.model
    true = model.reduction.base([*BEHIND.nominal.ravel(), *np.zeros(
        len(model.reduction.standard) - 70)])
    low, high = result.estimate.interval()
    assert np.mean((low <= true) & (true <= high)) > 0.85


def test_friction_that_rubs_behind_the_sensor_is_found_where_it_is(behind):
    effort = behind.effort.copy()
    effort[:, 3] += 2.0 * np.tanh(behind.velocity[:, 3] / 0.02) + 1.5 * behind.velocity[:, 3]
    found = identify(BEHIND, [replace(behind, effort=effort)], recipe=Recipe(
        cutoff=50.0, effort_lag=0.0))
    laws = found.model.structure.friction
    assert laws[3] != 'none' and {*laws[:3], *laws[4:]} == {'none'}
    assert not told(found, 'as if from')


def test_the_wrong_side_is_named(behind):
    found = identify(MOTORS, [behind], recipe=FIXED)
    assert told(found, 'in that case put sensor: link into the robot YAML')
    last = np.arange(7) < 6  # whose motor has neither rotor nor friction
    motors = recorded(MOTORS, replace(TRUTH, **{name: last * getattr(TRUTH, name) for name in (
        'viscous', 'coulomb', 'rotor_inertia')}))
    found = identify(BEHIND, [motors], recipe=FIXED)
    (warning,) = told(found, 'in that case put sensor: motor into the robot YAML')
    assert all(joint in warning for joint in MOTORS.joints[2:6])
    assert not told(identify(MOTORS, [motors], recipe=FIXED), 'as if from')


def test_the_simulated_sensor_shows_what_moves_the_links():
    """At rest their weight and no friction; in motion their torque, beside that of a hand."""
    arm, still = Arm(BEHIND, TRUTH), np.zeros(7)
    arm.place(np.full(7, 0.4))
    weight = rigid_body.gravity_effort(BEHIND, arm.position[None])[0]
    np.testing.assert_allclose(arm.effort(), weight, rtol=0.0, atol=1e-6)
    arm.plant.external = np.array([0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for _ in range(1500):
        arm.control(Setpoint(np.full(7, 0.4), still, still))
        arm.advance()
    weight = rigid_body.gravity_effort(BEHIND, arm.position[None])[0]
    np.testing.assert_allclose(arm.effort(), weight - arm.plant.external, rtol=0.0, atol=1e-3)


def test_the_simulated_sensor_misses_rotors_and_friction():
    """Of a falling arm, by the change of its speed."""
    plant = Plant(BEHIND, replace(TRUTH, coulomb=np.zeros(7)))
    plant.set_state(np.full(7, 0.4), np.full(7, 0.5))
    torque, step = np.linspace(20.0, -5.0, 7), 0.25e-3
    plant.step(torque, 100)
    before = plant.state()[1].copy()
    plant.step(torque, 1)
    speed, sensed = plant.state()[1].copy(), plant.transmitted(torque)
    plant.step(torque, 1)
    acceleration = (plant.state()[1] - before) / (2.0 * step)
    lost = TRUTH.rotor_inertia * acceleration + TRUTH.viscous * speed
    assert np.abs(lost).min() > 0.1
    np.testing.assert_allclose(sensed, torque - lost, rtol=0.0, atol=1e-3)


def test_file_says_where_the_effort_is_measured(tmp_path):
    path = tmp_path / 'arm.yaml'

    def load(text):
        path.write_text(f'urdf: urdf/seven_axis.urdf\neffort_kind: torque\n{text}\n')
        return load_robot(path)

    assert load('').drive.sensor == 'motor'
    robot = load('sensor: link')
    assert robot.drive.sensor == 'link' and not robot.drive.shows_motors
    assert robot_from_plain(robot_to_plain(robot), '').drive.sensor == 'link'
    assert 'sensor' not in robot_to_plain(load('sensor: motor'))['drive']
    for text, message in (
            ('sensor: gear', "sensor 'gear': choose motor .* or link"),
            ('sensor: link\nelastic_joints: [joint_1]', 'but elastic_joints need the effort'),
            ('sensor: link\ncoupling: {joint_7: {joint_6: 1.0, joint_7: 1.0}}', 'but coupling')):
        with pytest.raises(RobotError, match=message):
            load(text)
    with pytest.raises(RobotError, match='but effort_kind: current is that of motors'):
        replace(robot.drive, kind='current', gains=np.ones(7))


def test_rotors_that_no_sensor_sees_are_not_looked_for():
    with pytest.raises(UsageError, match=r'rotor_inertia is true, but .* behind the gear'):
        identify(BEHIND, [object()], recipe=Recipe(rotor_inertia=True))
    assert Recipe().rotors_of(MOTORS) and not Recipe().rotors_of(BEHIND)
    assert not Recipe(rotor_inertia=False).rotors_of(MOTORS)
