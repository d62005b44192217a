"""Robots with elastic joints: rows, spinning rotors, identification from two encoders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import closed_form_gear
import numpy as np
import pinocchio
import pytest
from elastic_arms import D, K, elastic_arm, recordings
from tolerances import DIFFERENCE, SAME_FORMULA

from robot_dynid import ESTIMATORS, IdentifiedModel, identify, load_robot
from robot_dynid.effects import RigidLinks, RotorInertia, SpinningRotors, Springs, axes_of
from robot_dynid.errors import DataError, RobotError, UsageError
from robot_dynid.identification.gathered import choose_elastic_joints
from robot_dynid.identification.recipe import Recipe
from robot_dynid.reduction.numeric import random_states, reduce_numeric
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate


def spinning(elastic: tuple[int, ...]) -> RobotModel:
    """Return a spatial arm whose rotors are mounted askew."""
    robot = load_robot('seven_axis')
    axes = np.random.default_rng(5).normal(size=(robot.n, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    ratios = np.linspace(50.0, 100.0, robot.n)
    return replace(robot, drive=Drive('torque', gear_ratios=ratios, elastic=elastic,
                                      rotor_axes=axes))


def turning(robot: RobotModel, joint: int, q: FloatArray) -> FloatArray:
    """Return S (n,): S qd is the turning of the rotor's link about its axis, over the ratio."""
    model = pinocchio.buildModelFromUrdf(robot.source)
    data = model.createData()
    pinocchio.computeJointJacobians(model, data, q)
    local = pinocchio.getJointJacobian(model, data, int(robot.parents[joint]) + 1,
                                       pinocchio.ReferenceFrame.LOCAL)
    axes, ratios = robot.drive.rotor_axes, robot.drive.gear_ratios
    assert axes is not None and ratios is not None
    return np.asarray(axes[joint] @ local[3:] / ratios[joint])


@pytest.mark.parametrize('elastic', [(), (1, 4, 6), tuple(range(7))])
def test_spinning_rotors_obey_lagrange(elastic: tuple[int, ...]) -> None:
    """The further kinetic energy is thetad S(q) qd: Euler-Lagrange by central differences."""
    robot, h = spinning(elastic), 1e-5
    axes = axes_of(robot)
    block, plain = RotorInertia(axes, SpinningRotors(robot)), RotorInertia(axes)
    states = random_states(robot, 5, np.random.default_rng(1))
    found, without = (np.zeros((robot.rows, 7, 5)) for _ in range(2))
    block.fill(states, np.empty((0, 5)), np.arange(7), found)
    plain.fill(states, np.empty((0, 5)), np.arange(7), without)
    assert np.array_equal(found[:, 0], without[:, 0]), 'the first rotor stands on the base'
    for joint in range(1, 7):
        for k in range(5):
            q, qd, qdd = states.position[k, :7], states.velocity[k, :7], states.acceleration[k, :7]
            place = 7 + elastic.index(joint) if joint in elastic else joint
            spin, rate = states.velocity[k, place], states.acceleration[k, place]
            s = turning(robot, joint, q)
            change, *slopes = (
                (turning(robot, joint, q + h * e) - turning(robot, joint, q - h * e)) / 2 / h
                for e in (qd, *np.eye(7)))
            slope = np.array(slopes) @ qd
            expected = np.zeros(robot.rows)
            expected[:7] = s * rate + spin * (change - slope)
            expected += axes.effort[joint] * (s @ qdd + change @ qd)
            np.testing.assert_allclose((found - without)[:, joint, k], expected,
                                       rtol=0.0, atol=10 * DIFFERENCE)


def test_rows_of_a_gear_are_those_of_link_and_motor() -> None:
    """Without and with torque sensor the rows are combinations of Spong's equations."""
    robot = load_robot('planar_3r')
    bare = replace(robot, drive=replace(robot.drive, elastic=(0, 2)))
    seen = replace(robot, drive=replace(robot.drive, elastic=(0, 2), torque_sensors=(2,)))
    states = random_states(bare, 20, np.random.default_rng(2))
    parts = {}
    for name, arm in (('bare', bare), ('seen', seen)):
        whole = []
        for block in (RigidLinks(arm), RotorInertia(axes_of(arm)), Springs(arm)):
            out = np.zeros((arm.rows, len(block.names), 20))
            block.fill(states, np.empty((0, 20)), np.arange(len(block.names)), out)
            whole.append(out)
        parts[name] = np.concatenate(whole, axis=1)
    links, motor, gear = (parts['seen'][row] for row in (2, 4, 5))
    np.testing.assert_allclose(parts['bare'][2], links + motor, rtol=0.0, atol=SAME_FORMULA)
    np.testing.assert_allclose(parts['bare'][4], motor + gear, rtol=0.0, atol=SAME_FORMULA)
    np.testing.assert_allclose(parts['bare'][[0, 1, 3]], parts['seen'][[0, 1, 3]])
    assert bare.row_names[3:] == ('motor of joint_1', 'motor of joint_3')
    assert seen.row_names[5:] == ('gear of joint_3',)


def test_an_elastic_joint_tells_its_rotor_from_its_link() -> None:
    robot, _ = elastic_arm()
    rigid = reduce_numeric(robot.rigid, (RigidLinks(robot.rigid),
                                         RotorInertia(axes_of(robot.rigid))))
    elastic = reduce_numeric(robot, (RigidLinks(robot), RotorInertia(axes_of(robot)),
                                     Springs(robot)))
    assert 'Ia1' not in rigid.names
    assert {'Ia1', 'Ia2', 'Ia3', 'K1', 'D1', 's1'} <= set(elastic.names)


def test_stiffness_and_rotors_are_found_within_their_intervals() -> None:
    robot, truth = elastic_arm()
    logs = recordings()
    result = identify(robot, logs[:1], 'elastic', Recipe(friction='coulomb', ripple='none'))
    names, estimate = result.model.names, result.estimate
    low, high = estimate.interval(0.999)
    expected = {**{f'K{j + 1}': K[j] for j in range(3)}, **{f'D{j + 1}': D[j] for j in range(3)},
                **{f'Ia{j + 1}': truth.rotor_inertia[j] for j in range(3)}}
    for name, value in expected.items():
        i = names.index(name)
        assert low[i] < value < high[i], name
        assert estimate.std[i] < 0.02 * value, name
    again = IdentifiedModel.from_yaml(result.model.to_yaml())
    assert again.robot.drive.elastic == (0, 1, 2)
    scores = validate(again, logs[1:]).model['all']
    rigid = identify(robot, logs[:1], 'wls', Recipe(
        friction='coulomb', ripple='none', elastic_joints=())).model
    plain = validate(rigid, logs[1:]).model['all']
    assert not rigid.robot.drive.elastic
    # the softest joint hardly loads its gear: there the noise of a second encoder costs more
    for joint in robot.joints[:2]:
        assert scores[joint].rmse < 0.8 * plain[joint].rmse, joint
    sizes = [[found[joint].rmse for joint in robot.joints] for found in (scores, plain)]
    assert np.prod(sizes[0]) < 0.8 * np.prod(sizes[1])
    for joint in robot.joints:
        assert scores[f'motor of {joint}'].relative_error < 0.05


def test_a_torque_sensor_tells_links_from_motors() -> None:
    """Links seen by the sensor alone: exact torque of the gear makes a row of its own."""
    robot, _ = elastic_arm()
    drive = replace(robot.drive, torque_sensors=(0, 1, 2))
    log = recordings()[0]
    gear = np.array(K) * (log.motor_position - log.position) \
        + np.array(D) * (log.motor_velocity - log.velocity)
    seen = replace(log, joint_torque=gear)
    model = identify(replace(robot, drive=drive), [seen], 'elastic',
                     Recipe(friction='coulomb', ripple='none')).model
    for name, value in zip(('K1', 'K2', 'K3'), K, strict=True):
        assert model.standard[name] == pytest.approx(value, rel=1e-3)
    assert model.robot.row_names[-1] == 'gear of joint_3'
    with pytest.raises(DataError, match=r'no joint torque of joint_1.*joint_torque'):
        identify(replace(robot, drive=drive), [log], 'elastic')


def test_the_method_finds_elastic_joints_in_the_data() -> None:
    robot, log = elastic_arm()[0].rigid, recordings()[0]
    assert log.motor_position is not None
    lost = log.motor_position.copy()
    lost[:, 1] = np.nan
    found = identify(robot, [replace(log, motor_position=lost)], 'elastic',
                     Recipe(friction='coulomb', cutoff=20.0, ripple='none')).model
    assert found.robot.drive.elastic == (0, 2)
    with pytest.raises(DataError, match=r'no motor states.*motor_states'):
        identify(robot, [replace(log, motor_position=None, motor_velocity=None)], 'elastic')


def test_identify_and_drive_refuse_impossible_elastic_joints() -> None:
    robot, log = elastic_arm()[0], recordings(4.0)[0]
    one = replace(log, motor_position=None, motor_velocity=None)
    with pytest.raises(DataError,
                       match='joint_1 is elastic, so its deflection needs two encoders'):
        identify(robot, [one], 'wls')
    assert log.motor_position is not None
    swapped = RawLog(log.source, log.joints, log.time, log.motor_position, log.motor_velocity,
                     log.effort, log.position, log.velocity)
    with pytest.raises(DataError,
                       match=r'motor states of joint_1, .*: the motor lags behind.*swapped'):
        identify(robot, [swapped], 'wls')
    turned = replace(log, motor_position=-log.motor_position)
    with pytest.raises(DataError, match='correct its sign'):
        identify(robot, [turned], 'wls')
    with pytest.raises(UsageError, match='staged is for rigid joints'):
        identify(robot, [log], 'staged')
    with pytest.raises(UsageError, match='loops: three'):
        identify(robot, [log], 'wls', Recipe(loops='three'))
    with pytest.raises(UsageError, match='no joint'):
        identify(robot, [log], 'wls', Recipe(elastic_joints=('elbow',)))
    with pytest.raises(RobotError, match='torque_sensors must be on elastic'):
        Drive('torque', torque_sensors=(0,))
    with pytest.raises(RobotError, match='rotor_axes need gear_ratios'):
        Drive('torque', rotor_axes=np.eye(3))
    with pytest.raises(RobotError, match='rotor_axes: a gear ratio is zero'):
        Drive('torque', gear_ratios=np.array([50.0, 0.0]), rotor_axes=np.eye(3)[:2])
    with pytest.raises(RobotError, match='several joints'):
        Drive('torque', coupling=np.array([[1.0, 0.0], [1.0, 1.0]]), elastic=(0,))


def test_a_robot_keeps_its_gears_in_files(tmp_path) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text('urdf: planar_3r.urdf\neffort_kind: torque\n'
                    'elastic_joints: [joint_3, joint_1]\n'
                    'joint_torque_sensors: [joint_3]\n'
                    'gear_ratios: {joint_1: 50, joint_2: 50, joint_3: 20}\n'
                    'rotor_axes: {joint_2: [0, 2, 0]}\n')
    robot = load_robot(path)
    assert robot.drive.elastic == (0, 2) and robot.drive.torque_sensors == (2,)
    again = robot_from_plain(robot_to_plain(robot), 'file')
    assert again.drive.elastic == (0, 2) and again.drive.torque_sensors == (2,)
    np.testing.assert_array_equal(again.drive.rotor_axes, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert again.rigid.drive.elastic == ()
    path.write_text(path.read_text().replace('[joint_3, joint_1]', '[joint_9]'))
    with pytest.raises(RobotError, match='elastic_joints: no joint joint_9'):
        load_robot(path)


def chosen(log: RawLog, elastic: tuple[int, ...] = (), method: str = 'elastic', **recipe: Any
           ) -> tuple[int, ...]:
    """Return the elastic joints of an arm whose first motor position is that of its link."""
    robot = closed_form_gear.arm()
    robot = replace(robot, drive=replace(robot.drive, elastic=elastic))
    found = choose_elastic_joints(robot, [log], ESTIMATORS[method], Recipe(**recipe))
    return found.drive.elastic


def test_elastic_joints_are_those_of_the_recipe_the_robot_or_the_data() -> None:
    log = closed_form_gear.recording()
    assert log.motor_position is not None
    assert chosen(log) == (1,)
    assert chosen(log, (0,)) == (0,)
    assert chosen(log, method='wls') == ()
    assert chosen(log, (0,), elastic_joints=('joint_2', 'joint_1')) == (0, 1)
    with pytest.raises(UsageError, match='no elastic joints: name some in elastic_joints'):
        chosen(log, (0,), elastic_joints=())
    with pytest.raises(DataError, match='gear: there are no motor states; the method elastic'):
        chosen(replace(log, motor_position=None, motor_velocity=None))
    reverse = replace(log, motor_position=-log.motor_position, motor_velocity=None)
    with pytest.raises(DataError, match='gear: motor states of joint_1: they turn -1 times'):
        chosen(reverse)
