"""export/mjcf.py: elements and attributes of the file, number by number."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from exported import ARM, arm_model
from identified_models import model_named, random_model
from position_servos import ERROR_LIMIT, GAIN, servo_robot

from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.errors import MissingDependency
from robot_dynid.export.mjcf import (
    FORM,
    Shapes,
    axis_inertia,
    exported_mjcf,
    placed,
    time_step,
    urdf_shapes,
)
from robot_dynid.export.mujoco import urdf_model
from robot_dynid.export.written import Written
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf

named = cache(model_named)


def numbers(text: str | None) -> list[float]:
    assert text is not None
    return [float(word) for word in text.split()]


def root_of(model: IdentifiedModel, shapes: Shapes | None = None) -> ET.Element:
    return ET.fromstring(exported_mjcf(model.arm, shapes).text)


def by_name(root: ET.Element, path: str) -> dict[str | None, ET.Element]:
    return {element.get('name'): element for element in root.iterfind(path)}


def with_standard(model: IdentifiedModel, **values: float) -> IdentifiedModel:
    standard = model.feasible.copy()
    for name, value in values.items():
        standard[model.reduction.standard.index(name)] = value
    return replace(model, feasible=standard, values=model.reduction.base(standard))


def test_places_are_given_where_they_differ_from_the_parent() -> None:
    turned = np.array([[0.0, -1.0, 0.0], [0.6, 0.0, 0.8], [-0.8, 0.0, 0.6]])
    assert placed(np.eye(3), np.zeros(3)) == {}
    assert placed(np.eye(3), np.array([0.0, 0.25, 0.0])) == {'pos': '0.0 0.25 0.0'}
    assert placed(turned, np.zeros(3)) == {'xyaxes': '0.0 0.6 -0.8 -1.0 0.0 0.0'}


def test_a_rigid_arm_has_its_joints_limits_friction_and_motors() -> None:
    model = arm_model()
    root, found = root_of(model), model.standard
    assert [part.tag for part in root] == ['compiler', 'option', 'worldbody', 'actuator']
    option = root.find('option')
    assert (option.get('timestep'), option.get('tolerance')) == ('0.0005', '1e-10')
    assert numbers(option.get('gravity')) == [0.0, 0.0, -9.81]
    base = root.find('worldbody/body')
    upper = base.find('body')
    assert (base.get('name'), upper.get('name'), upper.get('pos')) == (
        'base', 'upper', '0.0 0.0 1.0')
    joints = by_name(root, './/joint')
    assert joints['shoulder'].get('range') == '-1.0 1.0'
    assert joints['elbow'].get('range') is None
    for i, joint in enumerate(('shoulder', 'elbow'), start=1):
        own = joints[joint]
        assert (own.get('type'), own.get('axis')) == ('hinge', '0.0 1.0 0.0')
        assert float(own.get('damping')) == found[f'fv{i}']
        assert float(own.get('frictionloss')) == pytest.approx(found[f'fc{i}'], rel=1e-12)
        assert float(own.get('armature')) == pytest.approx(
            model.mechanism.rotors.inertia[i - 1, i - 1], rel=1e-12)
        assert numbers(own.get('solreffriction')) == [-1.0, -2000.0]
        assert numbers(own.get('solimpfriction')) == [0.9999, 0.9999, 1e-3, 0.5, 2.0]
    motors = by_name(root, 'actuator/general')
    assert motors['shoulder'].get('ctrlrange') == '-30.0 30.0'
    assert motors['elbow'].get('ctrlrange') is None
    assert numbers(motors['elbow'].get('biasprm')) == [-found['f02'], 0.0, 0.0]
    links = by_name(root, './/body')
    inertial = links['lower'].find('inertial')
    assert numbers(inertial.get('pos')) == pytest.approx([0.1, 0.0, 0.2])
    assert float(inertial.get('mass')) == pytest.approx(6.0)
    frictionless = root_of(with_standard(model, fc1=0.0, fv2=0.0, f01=0.0, fc2=0.5))
    joints = by_name(frictionless, './/joint')
    assert not {'frictionloss', 'solreffriction', 'solimpfriction'} & set(
        joints['shoulder'].keys())
    assert joints['elbow'].get('damping') is None
    assert float(joints['elbow'].get('frictionloss')) == pytest.approx(0.5, rel=1e-12)
    assert joints['elbow'].get('solreffriction') is not None
    assert by_name(frictionless, 'actuator/general')['shoulder'].get('biasprm') is None


def test_moments_of_inertia_are_in_the_order_of_mujoco() -> None:
    link = np.array([2.0, 0.0, 0.0, 0.0, 1.0, 0.01, 1.1, 0.02, 0.03, 1.2])
    model = arm_model()
    standard = model.feasible.copy()
    standard[10:20] = link
    root = root_of(replace(model, feasible=standard, values=model.reduction.base(standard)))
    inertial = by_name(root, './/body')['lower'].find('inertial')
    # xx, yy, zz, xy, xz, yz
    assert numbers(inertial.get('fullinertia')) == pytest.approx(
        [1.0, 1.1, 1.2, 0.01, 0.02, 0.03])


def test_limits_that_are_no_range_and_zero_efforts_are_not_written() -> None:
    robot = robot_from_urdf(ARM)
    limits = replace(robot.limits, lower=np.array([0.25, -np.inf]), upper=np.array([0.25, 1.0]),
                     effort=np.array([0.0, np.inf]))
    weak = root_of(random_model(replace(robot, limits=replace(
        limits, effort=np.array([0.5, 0.0]))))).iterfind('.//general')
    assert [one.get('ctrlrange') for one in weak] == ['-0.5 0.5', None]
    root = root_of(random_model(replace(robot, limits=limits)))
    assert all(one.get('range') is None for one in root.iterfind('.//joint'))
    assert all(one.get('ctrlrange') is None for one in root.iterfind('.//general'))


@pytest.mark.parametrize(('offset', 'forward'), [(2.0, -1.0), (-3.0, 1.0)])
def test_an_elastic_gear_is_a_tendon_between_a_rotor_and_its_joint(
    offset: float, forward: float
) -> None:
    model = with_standard(named('elastic_2r'), s2=offset, K2=8000.0)
    root, gears = root_of(model), model.mechanism.gears
    assert gears is not None
    bodies, joints = by_name(root, './/body'), by_name(root, './/body/joint')
    rotor = bodies['joint_2_rotor']
    assert rotor.get('gravcomp') == '1' and rotor in list(root.find('worldbody'))
    inertial = rotor.find('inertial')
    assert (inertial.get('mass'), inertial.get('pos')) == ('0.001', '0 0 0')
    assert numbers(inertial.get('diaginertia')) == 3 * [gears.inertia[1]]
    assert (joints['joint_2_rotor'].get('type'), joints['joint_2_rotor'].get('axis')) == (
        'hinge', '0 0 1')
    assert float(joints['joint_2_rotor'].get('damping')) == model.standard['fv2']
    assert joints['joint_2_rotor'].get('armature') is None
    assert not {'damping', 'armature', 'frictionloss'} & set(joints['joint_2'].keys())
    tendon = by_name(root, 'tendon/fixed')['joint_2_gear']
    assert float(tendon.get('springlength')) == pytest.approx(abs(offset) / 8000.0, rel=1e-12)
    assert float(tendon.get('stiffness')) == pytest.approx(8000.0, rel=1e-12)
    assert float(tendon.get('damping')) == model.standard['D2']
    assert [(one.get('joint'), float(one.get('coef'))) for one in tendon] == [
        ('joint_2_rotor', forward), ('joint_2', -forward)]
    assert by_name(root, 'actuator/general')['joint_2'].get('joint') == 'joint_2_rotor'


@pytest.mark.parametrize('joint', [0, 1])
def test_the_step_follows_the_fastest_gear(joint: int) -> None:
    """A quarter of a radian per step, to one digit, unless half a millisecond is less."""
    model, stiffness = named('elastic_2r'), [1e3, 1e3]
    q, _, _ = model.arm.states(64)
    assert model.mechanism.gears is not None
    compliance = max(np.linalg.inv(one)[joint, joint]
                     for one in mass_matrix(model.robot, q, model.mechanism.links))
    fastest = 0.25 / 1.55e-5  # is written as 2e-5
    stiffness[joint] = fastest**2 / (1.0 / model.mechanism.gears.inertia[joint] + compliance)
    model = with_standard(model, K1=stiffness[0], K2=stiffness[1])
    written = Written(model.arm, FORM)
    assert time_step(written) == 2e-5
    assert root_of(model).find('option').get('timestep') == repr(time_step(written))
    assert time_step(Written(named('elastic_2r').arm, FORM)) == 5e-4


def test_a_motor_of_several_joints_is_a_tendon_with_its_rotor_and_friction() -> None:
    model = named('tx40')
    root, found = root_of(model), model.standard
    tendon = by_name(root, 'tendon/fixed')['joint_6_motor']
    for key, name in (('armature', 'Iam6'), ('damping', 'fvm6'), ('frictionloss', 'fcm6')):
        assert float(tendon.get(key)) == pytest.approx(found[name], rel=1e-9)
    assert [(one.get('joint'), one.get('coef')) for one in tendon] == [
        ('joint_5', '1.0'), ('joint_6', '1.0')]
    motors = by_name(root, 'actuator/general')
    assert numbers(motors['joint_5'].get('biasprm'))[0] == pytest.approx(
        -found['f05'] - found['f0m6'], rel=1e-12)
    written = Written(model.arm, FORM)
    np.testing.assert_allclose(axis_inertia(written), [
        found[f'Ia{name}'] for name in ('1', '2', '3', '4', '5', '6', 'm6')], rtol=1e-9)
    without = with_standard(model, Ia3=0.0, Iam6=0.0)
    found_ = axis_inertia(Written(without.arm, FORM))
    assert (found_[2], found_[6]) == (0.0, 0.0) and found_.min() == 0.0


@pytest.mark.parametrize(('delay', 'steps'), [(0.00024, 0), (0.00026, 1), (0.0062, 12)])
def test_position_servos_have_gain_damping_force_limit_and_delay(delay: float, steps: int) -> None:
    late = np.array([0.01, 0.02, 0.03, 0.04, 0.05])
    model = random_model(servo_robot(derivative_time=late))
    model = replace(model, preprocessing=replace(model.preprocessing, effort_lag=delay))
    for given, times in ((late, model), (None, replace(model, robot=replace(
            model.robot, drive=replace(model.robot.drive, derivative_time=None))))):
        servo = by_name(root_of(times), 'actuator/general')['lift']
        offset, limit = model.standard['f02'], GAIN * ERROR_LIMIT
        assert (servo.get('joint'), float(servo.get('gainprm'))) == ('lift', GAIN)
        assert numbers(servo.get('biasprm')) == pytest.approx(
            [-offset, -GAIN, 0.0 if given is None else -GAIN * 0.02])
        assert numbers(servo.get('forcerange')) == pytest.approx([-limit - offset, limit - offset])
        assert servo.get('nsample') == (str(steps) if steps else None)
        if steps:
            assert float(servo.get('delay')) == pytest.approx(steps * 5e-4)
        assert servo.get('ctrlrange') is None


SHAPES = {
    'box': ('<box size="0.2 0.4 0.6"/>', {'type': 'box', 'size': '0.1 0.2 0.3'}),
    'sphere': ('<sphere radius="0.25"/>', {'type': 'sphere', 'size': '0.25'}),
    'cylinder': ('<cylinder radius="0.1" length="0.5"/>',
                 {'type': 'cylinder', 'size': '0.1 0.25'}),
    'capsule': ('<capsule radius="0.1" length="0.7"/>', {'type': 'capsule', 'size': '0.1 0.35'})}


def shapes_of(inside: str, source: str = 'arm.urdf', more: str = '') -> Shapes:
    """Return the shapes of the arm with elements in its flange, and others beside the links."""
    text = ARM.replace('<link name="flange">', f'<link name="flange">{inside}').replace(
        '</robot>', f'{more}</robot>')
    return urdf_shapes(robot_from_urdf(ARM), text, source)


def geoms(shapes: Shapes) -> list[dict[str, Any]]:
    (flange,) = (link for link in shapes.links if link.name == 'flange')
    return [dict(one.attrib) for one in flange.geoms]


@pytest.mark.parametrize('name', SHAPES)
def test_sizes_are_halves_as_mujoco_takes_them(name: str) -> None:
    text, attributes = SHAPES[name]
    seen = {'contype': '0', 'conaffinity': '0', 'group': '2'}
    where = '<origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/>'
    first, second = geoms(shapes_of(
        f'<visual>{where}<geometry>{text}</geometry></visual>'
        f'<collision><geometry>{text}</geometry></collision>'))
    axes = numbers(first.pop('xyaxes'))
    np.testing.assert_allclose(axes, [0.0, 1.0, 0.0, -1.0, 0.0, 0.0], rtol=0.0, atol=1e-15)
    assert first == {**seen, **attributes, 'pos': '0.1 0.0 0.0'}
    assert second == {'group': '3', **attributes}


def test_colours_are_those_of_materials_and_grey_where_they_are_wrong() -> None:
    def visual(material: str) -> str:
        return f'<visual><geometry><sphere radius="1"/></geometry>{material}</visual>'

    shapes = shapes_of(
        visual('<material name="red"/>') + visual('<material name="own"><color rgba="0 1 0.5 1"/>'
                                                  '</material>')
        + visual('') + visual('<material name="none"/>') + visual('<material name="empty"/>')
        + visual('<material name="bad"><color rgba="0 1.01 0 1"/></material>'),
        more='<material name="red"><color rgba="1 0 0 0.25"/></material>'
             '<material name="empty"><color/></material>')
    assert [one.get('rgba') for one in geoms(shapes)] == [
        '1.0 0.0 0.0 0.25', '0.0 1.0 0.5 1.0', None, None, '0.5 0.5 0.5 1.0', None]
    (warning,) = shapes.warnings
    assert warning.startswith("arm.urdf: link 'flange' visual rgba") and warning.endswith(
        '; it is grey')


def test_shapes_that_mujoco_lacks_are_left_out(tmp_path: Path) -> None:
    (tmp_path / 'part.ply').write_text('')
    shapes = shapes_of(
        '<visual><geometry><ellipsoid/></geometry></visual><visual/><visual><geometry/></visual>'
        '<visual><geometry><sphere radius="-1"/></geometry></visual>'
        '<collision><geometry><mesh filename="part.ply"/></geometry></collision>',
        str(tmp_path / 'arm.urdf'))
    assert geoms(shapes) == [] and shapes.any
    first, second, third = shapes.warnings
    assert first == "link 'flange' visual: MuJoCo does not support <ellipsoid>; it is left out"
    assert 'radius' in second and second.endswith('; it is left out')
    assert third == ("link 'flange' collision: mesh part.ply is none of .stl, .obj, .msh; it is "
                     'left out')
    assert not Shapes.none(robot_from_urdf(ARM)).any


def test_meshes_are_shared_by_file_and_scale(tmp_path: Path) -> None:
    (tmp_path / 'part.obj').write_text('v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n'
                                       'f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n')
    mesh = '<visual><geometry><mesh filename="part.obj"{}/></geometry></visual>'
    shapes = shapes_of(mesh.format('') + mesh.format(' scale="1 1 2"') + mesh.format(''),
                       str(tmp_path / 'arm.urdf'))
    assert [(one.get('name'), one.get('scale')) for one in shapes.assets] == [
        ('part_0', '1 1 1'), ('part_1', '1 1 2')]
    assert [one['mesh'] for one in geoms(shapes)] == ['part_0', 'part_1', 'part_0']


def test_first_links_do_not_collide_with_a_fixed_base_and_fixed_links_are_bodies() -> None:
    text = ARM.replace('<child link="flange"/>',
                       '<child link="flange"/><origin xyz="0.5 0 0.25"/>')
    robot = robot_from_urdf(text)
    model = random_model(robot)
    root = root_of(model, urdf_shapes(robot, text, 'arm.urdf'))
    (exclude,) = root.find('contact')
    assert (exclude.get('body1'), exclude.get('body2')) == ('base', 'upper')
    flange = by_name(root, './/body')['flange']
    assert flange.attrib == {'name': 'flange', 'pos': '0.5 0.0 0.25'}
    assert flange in list(by_name(root, './/body')['lower'])
    assert root_of(model).find('contact') is None
    post = '<link name="post"/><joint name="foot" type="fixed"><parent link="base"/>' \
        '<child link="post"/><origin xyz="0 0 0.75"/></joint></robot>'
    more = urdf_shapes(robot, text.replace('</robot>', post.replace('</robot>', (
        post.replace('post', 'sign').replace('foot', 'pole').replace('base', 'upper')))),
        'arm.urdf')
    held = by_name(root_of(model, more), './/body')
    assert held['sign'] in list(held['upper'])
    assert held['post'] in list(held['base']) and held['post'].get('pos') == '0.0 0.0 0.75'
    world = replace(model, robot=replace(robot, base_link='world'))
    bare = root_of(world, urdf_shapes(robot, text, 'arm.urdf'))
    assert bare.find('worldbody/body').get('name') == 'upper'
    assert bare.find('contact/exclude').get('body1') == 'world'


@pytest.mark.parametrize(('version', 'wanted'), [
    ('3.15.9', False), ('3.16.0', True), ('4.0.1', True), ('2.20.1', False)])
def test_mujoco_before_3_16_is_refused(
    version: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec('robot_dynid.export.mujoco')
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    monkeypatch.setattr('mujoco.__version__', version)
    if wanted:
        spec.loader.exec_module(fresh)
        assert fresh.HELD_STEPS == 2.0
    else:
        with pytest.raises(MissingDependency, match=rf'MuJoCo {version} merges fixed links'):
            spec.loader.exec_module(fresh)


def test_a_urdf_in_mujoco_has_the_joints_of_the_robot_and_dry_friction_at_once() -> None:
    robot = robot_from_urdf(ARM, Selection(joints=('elbow',)))
    model = urdf_model(replace(robot, gravity=np.array([1.0, 2.0, -3.0])),
                       arm_model().to_urdf(ARM).text)
    assert [model.joint(i).name for i in range(model.njnt)] == ['elbow']
    assert model.ngeom == 0 and model.opt.gravity.tolist() == [1.0, 2.0, -3.0]
    np.testing.assert_allclose(model.dof_solref, [[-1.0, -1.0 / model.opt.timestep]], rtol=1e-12)
    np.testing.assert_allclose(model.dof_solimp[:, :2], 0.9999, rtol=1e-12)
