"""export/sdf.py: elements of the file number by number, and what Drake is given and asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache, cached_property
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from exported import ARM, arm_model
from identified_models import model_named, random_model

from robot_dynid.export import sdf
from robot_dynid.export.sdf import PLANT, drake_plant, exported_sdf, sdf_of
from robot_dynid.export.written import Form, Written, accelerations
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray

named = cache(model_named)


def numbers(element: ET.Element, path: str) -> list[float]:
    return [float(word) for word in element.findtext(path, '').split()]


def facts(joint: ET.Element, tag: str) -> dict[str, float]:
    """Return the numbers of the limits or dynamics of a joint."""
    return {one.tag: float(one.text or '') for one in joint.find(f'axis/{tag}')}


def by_name(root: ET.Element, tag: str) -> dict[str, ET.Element]:
    return {one.attrib['name']: one for one in root.iterfind(f'model/{tag}')}


def test_joints_have_limits_that_are_some_and_friction_as_written() -> None:
    model = arm_model()
    made = exported_sdf(model.arm)
    root, found = ET.fromstring(made.text), model.standard
    assert 'rotor inertia' in made.warnings[0] and 'offset of the effort' in made.warnings[0]
    assert 'dry friction' not in made.warnings[0] and 'viscous' not in made.warnings[0]
    joints, links = by_name(root, 'joint'), by_name(root, 'link')
    base, shoulder, elbow = (joints[name] for name in ('base_fixed', 'shoulder', 'elbow'))
    assert (base.findtext('parent'), base.findtext('child')) == ('world', 'base')
    assert (shoulder.get('type'), elbow.get('type')) == ('revolute', 'continuous')
    assert facts(shoulder, 'limit') == {
        'lower': -1.0, 'upper': 1.0, 'effort': 30.0, 'velocity': 2.0}
    assert facts(elbow, 'limit') == {}
    assert facts(elbow, 'dynamics') == {'damping': found['fv2'],
                                        'friction': pytest.approx(found['fc2'], rel=1e-12)}
    assert numbers(shoulder, 'pose') == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert numbers(shoulder, 'axis/xyz') == [0.0, 1.0, 0.0]
    inertial = links['lower'].find('inertial')
    assert numbers(inertial, 'pose') == pytest.approx([0.1, 0.0, 0.2, 0.0, 0.0, 0.0])
    assert numbers(inertial, 'mass') == pytest.approx([6.0])
    assert numbers(links['lower'], 'pose') == 6 * [0.0]
    (frame,) = root.iterfind('model/frame')
    assert (frame.get('name'), frame.get('attached_to')) == ('flange', 'lower')
    assert numbers(frame, 'pose') == 6 * [0.0]


def test_limits_of_zero_are_none_and_half_a_range_is_none() -> None:
    robot = robot_from_urdf(ARM)
    limits = replace(robot.limits, lower=np.array([-np.inf, 0.5]), upper=np.array([1.0, 0.75]),
                     effort=np.array([0.0, 0.5]), velocity=np.array([0.25, np.inf]))
    root = ET.fromstring(exported_sdf(random_model(replace(robot, limits=limits)).arm).text)
    joints = by_name(root, 'joint')
    assert facts(joints['shoulder'], 'limit') == {'velocity': 0.25}
    assert facts(joints['elbow'], 'limit') == {'lower': 0.5, 'upper': 0.75, 'effort': 0.5}
    assert (joints['shoulder'].get('type'), joints['elbow'].get('type')) == (
        'continuous', 'revolute')


def test_an_elastic_gear_is_a_rotor_and_a_twist_with_a_spring() -> None:
    model = named('elastic_2r')
    written, root, _ = sdf_of(model.arm, PLANT)
    joints, links, gears = by_name(root, 'joint'), by_name(root, 'link'), written.mechanism.gears
    assert gears is not None
    rotor, twist = joints['joint_2_rotor'], joints['joint_2_gear']
    assert (rotor.findtext('parent'), rotor.findtext('child')) == ('link_1', 'joint_2_rotor_link')
    assert (twist.findtext('parent'), twist.findtext('child')) == ('joint_2_rotor_link', 'link_2')
    assert (rotor.get('type'), twist.get('type')) == ('continuous', 'revolute')
    assert facts(rotor, 'limit') == {'effort': 120.0, 'velocity': 4.0}
    assert facts(twist, 'limit') == {} and numbers(twist, 'pose') == 6 * [0.0]
    assert facts(twist, 'dynamics') == {
        'damping': gears.damping[1], 'spring_stiffness': gears.stiffness[1],
        'spring_reference': gears.offset[1] / gears.stiffness[1]}
    empty = links['joint_2_rotor_link']
    assert numbers(empty, 'inertial/mass') == [0.0]
    assert {float(one.text or '') for one in empty.find('inertial/inertia')} == {0.0}
    assert numbers(empty, 'inertial/pose') == 6 * [0.0]
    assert (rotor.find('pose').get('relative_to'), twist.find('pose').get('relative_to')) == (
        'link_1', 'joint_2_rotor_link')
    assert links['link_2'].find('pose').get('relative_to') == 'joint_2_gear'
    assert empty.find('pose').get('relative_to') == 'joint_2_rotor'


def test_sliding_joints_are_prismatic_and_names_that_sdf_reserves_are_changed() -> None:
    tree = named('tree')
    root = ET.fromstring(exported_sdf(tree.arm).text)
    kinds = [by_name(root, 'joint')[name].get('type') for name in tree.joints]
    assert [kind == 'prismatic' for kind in kinds] == (tree.robot.types == PRISMATIC).tolist()
    assert 'prismatic' in kinds and len(set(kinds)) > 1
    robot = robot_from_urdf(ARM.replace('"elbow"', '"lower"').replace('name="arm"',
                                                                     'name="__arm__"'))
    made = exported_sdf(random_model(robot).arm)
    root = ET.fromstring(made.text)
    assert 'lower' in by_name(root, 'joint') and 'lower' not in by_name(root, 'link')
    assert root.find('model').get('name') != '__arm__'
    assert any('lower' in text for text in made.warnings)


class FakePlant:
    """What Drake's plant computes, from accelerations of a mechanism, with joints in disorder."""

    made: FakePlant
    written: Written

    def __init__(self, step: float) -> None:
        FakePlant.made, self.step = self, step
        self.actuators: dict[str, tuple[str, float, list[float]]] = {}
        self.done: list[str] = []

    def mutable_gravity_field(self) -> Any:
        return SimpleNamespace(set_gravity_vector=lambda g: setattr(self, 'gravity', g.tolist()))

    def GetJointByName(self, name: str) -> Any:
        names = sorted(one.attrib['name'] for one in ET.fromstring(self.text).iterfind(
            'model/joint') if one.get('type') != 'fixed')
        return SimpleNamespace(velocity_start=lambda: names[::-1].index(name), name=name)

    def AddJointActuator(self, name: str, joint: Any, limit: float) -> Any:
        facts: list[float] = []
        self.actuators[name] = joint.name, limit, facts
        return SimpleNamespace(set_default_rotor_inertia=facts.append,
                               set_default_gear_ratio=facts.append)

    def GetJointActuatorByName(self, name: str) -> Any:
        count = self.written.arm.robot.n
        return SimpleNamespace(input_start=lambda: (self.written.arm.robot.joints.index(name) + 1
                                                    ) % count)

    def Finalize(self) -> None:
        self.done.append('finalised')

    def RemoveAllJointActuatorEffortLimits(self) -> None:
        self.done.append('no limits')

    def CreateDefaultContext(self) -> dict[str, FloatArray]:
        return {}

    def SetPositions(self, context: dict[str, FloatArray], values: FloatArray) -> None:
        context['q'] = values

    def SetVelocities(self, context: dict[str, FloatArray], values: FloatArray) -> None:
        context['v'] = values

    def get_actuation_input_port(self) -> Any:
        return SimpleNamespace(FixValue=lambda context, values: context.update(u=values))

    def num_positions(self) -> int:
        return len(self.order)

    @cached_property
    def order(self) -> list[int]:
        """Places of the joints or motors, then of the twists of gears."""
        robot, gears = self.written.arm.robot, self.written.mechanism.gears
        elastic = gears.joints if gears is not None else ()
        names = [f'{name}_rotor' if j in elastic else name for j, name in enumerate(robot.joints)]
        return [self.GetJointByName(name).velocity_start()
                for name in (*names, *(f'{robot.joints[j]}_gear' for j in elastic))]

    def EvalTimeDerivatives(self, context: dict[str, FloatArray]) -> Any:
        mechanism, n = self.mechanism, self.written.arm.robot.n
        elastic = list(mechanism.gears.joints) if mechanism.gears is not None else []
        chained = [context[key][self.order] for key in 'qv']
        states = []
        for own in chained:  # of links, then of motors
            links = own[:n].copy()
            links[elastic] += own[n:]
            states.append(np.concatenate([links, own[elastic]])[None])
        drives = context['u'][(np.arange(n) + 1) % n][None]
        found = accelerations(mechanism, *states, drives)[0]
        rates = found[:n].copy()
        rates[elastic] = found[n:]
        rates = np.concatenate([rates, found[elastic] - found[n:]])
        placed = np.empty(len(rates))
        placed[self.order] = rates
        return SimpleNamespace(CopyToVector=lambda: np.concatenate([context['v'], placed]))


@pytest.fixture
def drake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the plant above in the place of Drake's."""
    def add(plant: FakePlant) -> Any:
        return SimpleNamespace(AddModelsFromString=lambda text, kind: setattr(plant, 'text', text))

    for name, member, value in (('parsing', 'Parser', add), ('plant', 'MultibodyPlant',
                                                             FakePlant)):
        module = ModuleType(f'pydrake.multibody.{name}')
        setattr(module, member, value)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ('pydrake', 'pydrake.multibody'):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sdf, 'version', lambda package: f'1.2 of {package}')
    monkeypatch.setattr('robot_dynid.export.written.COMPARED_STATES', 30)


@pytest.mark.parametrize('name', ['elastic_2r', 'ur10e'])
def test_a_plant_has_motors_with_rotors_and_is_asked_in_its_own_order(
    name: str, drake: None
) -> None:
    model = named(name)
    limits = replace(model.robot.limits, effort=np.where(
        np.arange(model.robot.n) == 1, 0.0, model.robot.limits.effort))
    model = replace(model, robot=replace(model.robot, limits=limits).with_gravity([1.0, 2.0, 9.0]))
    found, plant = drake_plant(model.arm, 0.125), FakePlant.made
    FakePlant.written, plant.mechanism = found.written, found.written.mechanism
    assert (plant.step, plant.gravity) == (0.125, [1.0, 2.0, 9.0])
    efforts = [one.findtext('effort') for one in ET.fromstring(plant.text).iter('limit')]
    assert set(efforts) == {'0'}
    gears = found.written.mechanism.gears
    for j, joint in enumerate(model.joints):
        inertia = found.written.mechanism.rotors.inertia[j, j] if gears is None \
            else gears.inertia[j]
        assert plant.actuators[joint] == (
            joint if gears is None else f'{joint}_rotor',
            np.inf if j == 1 else limits.effort[j], [inertia, 1.0])
    assert found.error() < 1e-9
    assert plant.done == ['finalised', 'no limits']
    assert 'dry friction' in found.warnings[0]
    drake_plant(model.arm)
    assert FakePlant.made.step == 0.0


def test_drakes_error_with_a_file_is_without_its_dry_friction(drake: None) -> None:
    model: IdentifiedModel = arm_model()
    made = exported_sdf(model.arm)
    FakePlant.written = made.written
    FakePlant.mechanism = Written(model.arm, Form('F', damping=True)).mechanism
    assert made.facts()['error'] < 1e-9
    assert made.facts()['tool'] == 'Drake 1.2 of drake' and FakePlant.made.step == 0.0
    FakePlant.mechanism = made.written.mechanism
    assert exported_sdf(model.arm).facts()['error'] > 1e-3
    del FakePlant.mechanism
