"""Categories of parameters, and that what is said of other sensor configurations is so."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pinocchio
import pytest
from elastic_arms import elastic_arm
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import random_urdf
from tolerances import SAME_FORMULA, SAME_SPACE

from robot_dynid import load_robot
from robot_dynid.cli.main import main
from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import Effect, RigidLinks, RotorInertia, Springs, axes_of
from robot_dynid.reduction.identifiability import (
    DEPENDENT,
    INDEPENDENT,
    UNIDENTIFIABLE,
    categories,
    with_advice,
)
from robot_dynid.reduction.numeric import full_regressor, random_states, reduce_numeric
from robot_dynid.reduction.sensor_configurations import SENSOR_CONFIGURATIONS, freed
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.urdf import robot_from_urdf


def blocks_of(robot: RobotModel) -> tuple[Effect, ...]:
    """Return links, rotors and gears."""
    gears = (Springs(robot),) if robot.drive.elastic else ()
    return (RigidLinks(robot), RotorInertia(axes_of(robot)), *gears)


def random_arm(seed: int) -> RobotModel:
    """Return a random tree of three joints, some of them elastic."""
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, 3, 0.3))
    elastic = tuple(int(j) for j in np.flatnonzero(rng.random(3) < 0.5))
    return replace(robot, drive=Drive('torque', elastic=elastic))


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_categories_are_those_of_the_definition(seed: int) -> None:
    """By the rank of the regressor with and without a column, whatever the reduction says."""
    robot = random_arm(seed)
    blocks = blocks_of(robot)
    found = categories(reduce_numeric(robot, blocks))
    states = random_states(robot, 60, np.random.default_rng(1))
    tall = full_regressor(robot, blocks, states).transpose(2, 0, 1).reshape(
        -1, len(found))
    size = np.linalg.norm(tall, axis=0)
    unit = tall / np.where(size > 1e-9 * size.max(), size, np.inf)
    rank = np.linalg.matrix_rank(unit, 1e-6)
    for i, one in enumerate(found.values()):
        apart = np.linalg.matrix_rank(np.delete(unit, i, axis=1), 1e-6) < rank
        expected = UNIDENTIFIABLE if not unit[:, i].any() else INDEPENDENT if apart else DEPENDENT
        assert one.category == expected


def test_a_rotor_is_told_from_its_link_behind_a_gear_only() -> None:
    robot, _ = elastic_arm()
    rigid = robot.rigid
    stiff = with_advice(rigid, blocks_of(rigid), reduce_numeric(rigid, blocks_of(rigid)))
    assert stiff['Ia1'].category == DEPENDENT and stiff['Ia1'].combinations == ('Izz1',)
    assert dict(stiff['Ia1'].sensor_configurations)['motor encoders'] == INDEPENDENT
    assert dict(stiff['Ia1'].sensor_configurations)['joint torque'] == INDEPENDENT
    assert 'motor encoders' in stiff['Ia1'].advice
    soft = with_advice(robot, blocks_of(robot), reduce_numeric(robot, blocks_of(robot)))
    for name in ('Ia1', 'K1', 'D1', 's1'):
        assert soft[name].category == INDEPENDENT
    assert soft['m2'].category == DEPENDENT and soft['m2'].combinations == ('mx1', 'Izz1')
    assert 'joint torque' not in dict(soft['m2'].sensor_configurations)
    assert dict(soft['m2'].sensor_configurations) == {
        'joint wrenches': INDEPENDENT, 'all of them': INDEPENDENT}


def test_with_advice_states_what_each_further_measurement_shows() -> None:
    robot = load_robot('ur10e')
    found = with_advice(robot, blocks_of(robot), reduce_numeric(robot, blocks_of(robot)))
    assert found['mx1'].category == UNIDENTIFIABLE  # a vertical axis does not feel weight
    assert dict(found['mx1'].sensor_configurations)['mounting'] == INDEPENDENT
    assert found['m1'].category == UNIDENTIFIABLE
    assert dict(found['m1'].sensor_configurations) == {
        'base wrench': DEPENDENT, 'joint wrenches': INDEPENDENT, 'all of them': INDEPENDENT}
    for name, one in found.items():
        assert one.category == INDEPENDENT or \
            dict(one.sensor_configurations)['all of them'] == INDEPENDENT, name


@pytest.mark.parametrize('joint', range(-1, 6))
def test_held_joints_feel_force_and_torque(joint: int) -> None:
    """Six joints that do not move measure what Pinocchio says a joint transmits."""
    robot = load_robot('ur10e')
    free, own = freed(robot, joint)
    rng = np.random.default_rng(3)
    motion = np.zeros((3, 4, free.n))
    motion[:, :, own] = rng.normal(size=(3, 4, robot.n))
    found = rigid_body.inverse_dynamics(free, *motion, free.nominal)
    held = [k for k in range(free.n) if k not in own]
    model = pinocchio.buildModelFromUrdf(robot.source)
    data = model.createData()
    for k in range(4):
        q, v, a = motion[:, k, own]
        pinocchio.rnea(model, data, q, v, a)
        at = data.liMi[max(joint, 0) + 1]  # in the frame of the link before
        force, torque = (at.rotation @ part for part in (data.f[max(joint, 0) + 1].linear,
                                                         data.f[max(joint, 0) + 1].angular))
        if joint < 0:  # about the origin of the base
            torque = torque + np.cross(at.translation, force)
        else:
            force, torque = (robot.rotations[joint].T @ part for part in (force, torque))
        np.testing.assert_allclose(found[k, held], [*force, *torque],
                                   rtol=0.0, atol=SAME_FORMULA * np.abs(force).max())


def test_the_command_tells_categories_and_gears(capsys) -> None:
    assert main(['base', 'elastic_2r', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert {'Ia1', 'K1', 'D1', 's1'} <= set(found['kept'])
    assert found['categories']['K2'] == {'category': INDEPENDENT}
    mass = found['categories']['m2']
    assert mass['category'] == DEPENDENT and mass['in'] == ['mx1', 'Izz1']
    assert 'six-axis' in mass['advice']
    assert [row['measurement'] for row in found['further']] == list(
        SENSOR_CONFIGURATIONS)
    assert main(['base', 'planar_3r', '--method', 'analytic', '--verbose']) == 0
    told = capsys.readouterr().out
    assert 'unidentifiable' in told and 'sensor configuration' in told


def test_reductions_with_more_rows_know_at_least_as_much() -> None:
    robot = load_robot('planar_3r')
    blocks = blocks_of(robot)
    base = reduce_numeric(robot, blocks)
    states = random_states(robot, 40, np.random.default_rng(0))
    for configuration in SENSOR_CONFIGURATIONS.values():
        more = configuration.reduced(robot, blocks, states)
        if more is None or more.standard != base.standard:
            continue
        whole = np.linalg.lstsq(more.matrix.T, base.matrix.T, rcond=None)[0]
        np.testing.assert_allclose(more.matrix.T @ whole, base.matrix.T, rtol=0.0, atol=SAME_SPACE)
