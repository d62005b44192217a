"""The exported URDF: same dynamics in Pinocchio and MuJoCo, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from exported import (
    ARM,
    BALL,
    INERTIAL,
    arm_model,
    assert_same_dynamics,
    states,
)
from feasible_models import feasible_model, random_links
from nominal import nominal_model
from random_robots import random_urdf

from robot_dynid.errors import ModelError, RobotError
from robot_dynid.identified.export import exported_urdf, is_physical
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.locate import known_robots
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf, source_text


@pytest.mark.parametrize('seed', range(12))
@pytest.mark.parametrize('branching', [0.0, 0.5])
def test_random_robots_move_the_same_everywhere(seed: int, branching: float) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 1 + seed % 7, branching)
    robot = robot_from_urdf(text)
    model = feasible_model(robot, random_links(rng, robot.n), rng)
    export = exported_urdf(model, text)
    assert_same_dynamics(export, model)
    read = robot_from_urdf(export.text)
    assert set(export.changed_links) >= set(robot.bodies)
    assert all(is_physical(link.parameters) for link in read.links if link.has_inertial)
    found = {j.attrib['name']: j.find('dynamics') for j in
             ET.fromstring(export.text).iter('joint')}
    for i, name in enumerate(robot.joints, 1):
        dynamics = found[name]
        assert dynamics is not None
        assert float(dynamics.attrib['damping']) == model.standard[f'fv{i}']
        assert float(dynamics.attrib['friction']) == model.standard[f'fc{i}']


@pytest.mark.parametrize('name', known_robots())
def test_robots_of_the_package(name: str) -> None:
    robot = load_robot(name)
    text = source_text(robot)
    model = feasible_model(robot, robot.nominal + BALL, np.random.default_rng(0))
    export = exported_urdf(model, text)
    assert_same_dynamics(export, model)
    assert export.changed_links == robot.bodies


def test_what_a_urdf_cannot_say_is_said() -> None:
    model = arm_model()
    assert exported_urdf(model, ARM).warnings == (
        'only in the model file, a URDF cannot hold them: Ia1, Ia2, f01, f02 (rotor inertia, '
        'offsets, friction other than damping and friction of one joint)',)
    robot = model.robot.with_gravity([0.0, 9.81, 0.0])
    tilted = replace(model, robot=robot, not_identified=('elbow',))
    _, gravity, lost = exported_urdf(tilted, ARM).warnings
    assert gravity.startswith('gravity is [0.0, 9.81, 0.0] m/s^2 in the base frame')
    assert lost == 'not identified, do not rely on them: elbow'
    collides = ARM.replace('<link name="flange">', '<link name="flange"><collision/>')
    assert exported_urdf(model, collides).warnings[-1].startswith(
        'flange: no inertial but a collision shape')
    wrist = feasible_model(load_robot('tx40'), load_robot('tx40').nominal + BALL,
                           np.random.default_rng(0))
    left, = (w for w in exported_urdf(wrist, source_text(wrist.robot)).warnings if 'only' in w)
    assert {'fvm6', 'fcm6', 'Iam6'} <= set(re.findall(r'\w+', left))


def test_negative_friction_is_not_written() -> None:
    model = arm_model()
    index = model.reduction.standard.index('fc2')
    standard = model.feasible.copy()
    standard[index] = -1e-9
    export = exported_urdf(replace(model, feasible=standard), ARM)
    assert 'joint elbow: the identified friction -1e-09 is negative; 0 is written' \
        in export.warnings
    assert 'friction="0.0"' in export.text


def test_friction_by_direction_is_averaged() -> None:
    robot = robot_from_urdf(ARM)
    structure = Structure.uniform(robot, False, 'asymmetric', {'width': 0.05})
    torque = structure.torque_model(robot)
    friction = {'fvp1': 2.0, 'fvn1': 3.0, 'fcp1': 0.5, 'fcn1': 0.75}
    links = dict(zip(torque.blocks[0].names, np.ravel([BALL, BALL])))
    standard = np.array([{**links, **friction}.get(n, 0.0) for n in torque.reduction.standard])
    base = torque.reduction.base(standard)
    model = replace(arm_model(), structure=structure, reduction=torque.reduction, values=base,
                    std=0.1 * np.abs(base), control=base, feasible=standard)
    text = exported_urdf(model, ARM).text
    numbers = re.search(r'<dynamics friction = "([^"]+)" damping="([^"]+)"/>', text)
    assert numbers is not None and [float(n) for n in numbers.groups()] == pytest.approx(
        [0.625, 2.5])


def test_models_without_possible_parameters_are_refused() -> None:
    with pytest.raises(ModelError, match=r'no physically feasible parameters \(method wls\), '
                                         'so n.*identify with --method feasible'):
        exported_urdf(nominal_model('planar_3r'), ARM)
    model = arm_model()
    flat = model.feasible.copy()
    flat[4] -= 1.0
    for wrong in (flat, -model.feasible):
        with pytest.raises(ModelError, match="link 'upper': no body has the parameters"):
            exported_urdf(replace(model, feasible=wrong), ARM)


@pytest.mark.parametrize(('old', 'new', 'error', 'message'), [
    ('xyz="0 0 1"', 'xyz="0 0 2"', ModelError, 'joints, geometry or gravity differ'),
    ('"elbow"', '"knee"', ModelError, 'another robot: arm.urdf: no movable joint elbow'),
    ('"base"', '"root"', ModelError, "another robot: arm.urdf: no link 'base'"),
    ('</robot>', '', RobotError, 'arm.urdf: not well-formed XML'),
    ('<robot name="arm">', '<!DOCTYPE robot [<!ENTITY i "' + INERTIAL.replace('"', "'")
     + '">]><robot name="arm">&i;', RobotError, 'arm.urdf: <inertial> stands in an entity'),
])
def test_other_robots_and_bad_texts_are_refused(
    old: str, new: str, error: type[Exception], message: str
) -> None:
    assert old in ARM
    with pytest.raises(error, match=re.escape(message)):
        exported_urdf(arm_model(), ARM.replace(old, new), 'arm.urdf')


def test_feasible_parameters_in_use() -> None:
    rng = np.random.default_rng(3)
    text = random_urdf(rng, 6, 0.5)
    robot = robot_from_urdf(text)
    links = random_links(rng, robot.n)
    model = feasible_model(robot, links, rng)
    plain = replace(model, feasible=None)
    motion = states(robot, 20)
    effort = plain.inverse(*motion)
    assert np.allclose(model.inverse(*motion), effort, rtol=1e-9, atol=1e-9)
    assert np.allclose(model.forward(*motion[:2], effort), motion[2], rtol=1e-6, atol=1e-6)
    assert np.array_equal(model.feasible_links, links)
    assert plain.feasible_links is None
    q = rng.uniform(-3.0, 3.0, (1000, robot.n))
    assert np.linalg.eigvalsh(model.mass_matrix(q)).min() > 0.0
