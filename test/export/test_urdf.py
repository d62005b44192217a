"""The exported URDF: same dynamics elsewhere, bodies of several links, text kept as it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import pytest
from exported import (
    ARM,
    BALL,
    INERTIAL,
    arm_model,
    assert_same_dynamics,
    mujoco_effort,
    rigid,
    states,
)
from identified_models import feasible_model, nominal_model, random_links
from random_robots import random_urdf
from robot_descriptions import own_robots
from tolerances import READ_BY_OTHERS

from robot_dynid.errors import ModelError, RobotError
from robot_dynid.export.identified_arm import is_physical
from robot_dynid.export.urdf import CARD
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import move_parameters
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf, source_text


@pytest.mark.parametrize('seed', range(12))
@pytest.mark.parametrize('branching', [0.0, 0.5])
def test_random_robots_move_the_same_everywhere(seed: int, branching: float) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 1 + seed % 7, branching)
    robot = robot_from_urdf(text)
    model = feasible_model(robot, random_links(rng, robot.n), rng)
    export = model.to_urdf(text)
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


@pytest.mark.parametrize('name', own_robots())
def test_robots_of_the_package(name: str) -> None:
    robot = load_robot(name)
    text = source_text(robot)
    model = feasible_model(robot, robot.nominal + BALL, np.random.default_rng(0))
    export = model.to_urdf(text)
    assert_same_dynamics(export, model)
    assert export.changed_links == robot.bodies


def test_a_saved_urdf_tells_the_origin_of_its_parameters(tmp_path: Path) -> None:
    """In a comment, once, however often it is exported; the robot is the same."""
    model, path = arm_model(), tmp_path / 'arm.urdf'
    model.to_urdf(ARM).save(path)
    first = path.read_text()
    model.to_urdf(first).save(path)
    assert path.read_text() == first
    assert first.count(CARD) == 1
    card = first[first.index(CARD):first.index('-->', first.index(CARD))].splitlines()[1:]
    assert len(card) == 10 * model.robot.n
    for name, value in model.standard.items():
        lines = [line for line in card if f' {name} ' in line.split(':')[0]]
        assert len(lines) == (name[0] in 'mI' and name[:2] != 'Ia')
        assert all(f' {value:.6g}: ' in line for line in lines)
    kinds = {line.split(': ')[1].split(',')[0].strip() for line in card}
    assert kinds == {'measured', 'only in combination', 'prior'}
    assert robot_from_urdf(first).hash() == robot_from_urdf(model.to_urdf(ARM).text).hash()


def test_to_urdf_warns_of_what_a_urdf_cannot_hold() -> None:
    model = arm_model()
    rotors, offsets = ([f'{model.standard[f"{name}{i}"]:.3g}' for i in (1, 2)]
                       for name in ('Ia', 'f0'))
    left, missing = model.to_urdf(ARM).warnings
    assert left == (
        'only in the model file, a URDF cannot hold them: rotor inertia [kg m^2]: shoulder '
        f'{rotors[0]}, elbow {rotors[1]}; offset of the effort [N m]: shoulder {offsets[0]}, '
        f'elbow {offsets[1]}')
    start = 'error of the effort of a URDF relative to the model, rms (maximum) [N m]: '
    assert missing.startswith(start)
    rows = {row['joint']: (row['rms'], row['most'])
            for row in model.to_urdf(ARM).facts()['missing']}
    assert all(0.0 < rms < most for rms, most in rows.values())
    assert missing.removeprefix(start).partition(';')[0] == ', '.join(
        f'{joint} {rms:.3g} ({most:.3g})' for joint, (rms, most) in rows.items())
    robot = model.robot.with_gravity([0.0, 9.81, 0.0])
    tilted = replace(model, robot=robot, not_identified=('elbow',))
    _, _, lost, gravity = tilted.to_urdf(ARM).warnings
    assert gravity.startswith('gravity is [0.0, 9.81, 0.0] m/s^2 in the base frame')
    assert lost == 'not identified, do not use: elbow'
    collides = ARM.replace('<link name="flange">', '<link name="flange"><collision/>')
    assert model.to_urdf(collides).warnings[-1].startswith(
        'flange: no inertial but a collision shape')
    wrist = feasible_model(load_robot('tx40'), load_robot('tx40').nominal + BALL,
                           np.random.default_rng(0))
    left, = (w for w in wrist.to_urdf(source_text(wrist.robot)).warnings if 'only' in w)
    assert 'other friction, rms [N m]: joint_5 ' in left


def test_negative_friction_is_not_written() -> None:
    model = arm_model()
    index = model.reduction.standard.index('fc2')
    standard = model.feasible.copy()
    standard[index] = -1e-9
    export = replace(model, feasible=standard).to_urdf(ARM)
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
    text = model.to_urdf(ARM).text
    numbers = re.search(r'<dynamics friction = "([^"]+)" damping="([^"]+)"/>', text)
    assert numbers is not None and [float(n) for n in numbers.groups()] == pytest.approx(
        [0.625, 2.5])


def test_models_without_possible_parameters_are_refused() -> None:
    with pytest.raises(ModelError, match=r'no physically feasible parameters \(method wls\); '
                                         'identify with --method feasible'):
        nominal_model('planar_3r').to_urdf(ARM)
    model = arm_model()
    flat = model.feasible.copy()
    flat[4] -= 1.0
    for wrong in (flat, -model.feasible):
        with pytest.raises(ModelError, match="link 'upper': its parameters are not"):
            replace(model, feasible=wrong).to_urdf(ARM)


@pytest.mark.parametrize(('old', 'new', 'error', 'message'), [
    ('xyz="0 0 1"', 'xyz="0 0 2"', ModelError, 'joints, geometry or gravity differ'),
    ('"elbow"', '"knee"', ModelError, 'another robot: arm.urdf: no movable joint elbow'),
    ('"base"', '"root"', ModelError, "another robot: arm.urdf: no link 'base'"),
    ('</robot>', '', RobotError, 'arm.urdf: not well-formed XML'),
    ('<robot name="arm">', '<!DOCTYPE robot [<!ENTITY i "' + INERTIAL.replace('"', "'")
     + '">]><robot name="arm">&i;', RobotError, 'document types (<!DOCTYPE>) are not read'),
])
def test_urdf_export_refuses_other_robots_and_bad_texts(
    old: str, new: str, error: type[Exception], message: str
) -> None:
    assert old in ARM
    with pytest.raises(error, match=re.escape(message)):
        arm_model().to_urdf(ARM.replace(old, new), 'arm.urdf')


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


def with_tool(mass: float, ixx: float = 0.02, kind: str = 'fixed') -> str:
    """Return the arm with a tool, which has an inertial, on its flange."""
    tool = ('<link name="tool"><inertial><origin xyz="0 0 0.1" rpy="0 0 1"/>'
            f'<mass value="{mass}"/><inertia ixx="{ixx}" ixy="0" ixz="0" iyy="0.02" iyz="0" '
            f'izz="0.02"/></inertial></link><joint name="grip" type="{kind}">'
            '<parent link="flange"/><child link="tool"/>'
            '<origin xyz="0.1 0 0"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" '
            'velocity="1"/></joint></robot>')
    return ARM.replace('</robot>', tool)


def tool_of(text: str) -> str:
    found = re.search(r'<link name="tool">.*?</link>', text)
    assert found is not None
    return found.group()


def test_fixed_children_keep_their_own_inertials() -> None:
    text = with_tool(1.0)
    export = arm_model().to_urdf(text)
    assert tool_of(export.text) == tool_of(text)
    assert export.changed_links == ('upper', 'lower')
    read = {link.name: link for link in robot_from_urdf(export.text).links}
    assert read['lower'].parameters[0] == pytest.approx(5.0, rel=1e-12)
    assert not [w for w in export.warnings if 'multiplied' in w]
    assert_same_dynamics(export, arm_model())


def test_inertia_without_mass_is_not_handed_on() -> None:
    """Others add it to the body; here it counted as none when the body was identified."""
    inertia = ('<inertial><mass value="0"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" '
               'izz="0.1"/></inertial>')
    text = ARM.replace('<link name="flange">', f'<link name="flange">{inertia}')
    model = arm_model()
    flange = model.to_urdf(text).text.partition('<link name="flange">')[2].partition('</link>')[0]
    assert sorted(set(re.findall(r'="([^"]*)"', flange))) == ['0', '0.0']
    assert flange.count('"0.0"') == 3, 'those that were not zero'
    assert model.to_urdf(text).text == model.to_urdf(
        text.replace('ixx="0.1"', 'ixx="0.0"').replace('yy="0.1"', 'yy="0.0"').replace(
            'zz="0.1"', 'zz="0.0"')).text


def test_fixed_children_too_heavy_are_scaled() -> None:
    text = with_tool(20.0)
    export = arm_model().to_urdf(text)
    assert export.changed_links == ('upper', 'lower', 'tool')
    warning, = (w for w in export.warnings if 'multiplied' in w)
    assert warning.startswith("link 'lower': the inertials of tool, fixed to it, exceed the")
    links = {link.name: link for link in robot_from_urdf(export.text).links}
    nominal = {link.name: link for link in robot_from_urdf(text).links}
    scale = float(warning.split()[-1])
    assert links['tool'].parameters == pytest.approx(scale * nominal['tool'].parameters, rel=1e-2)
    assert 0.0 < scale < 0.3
    assert is_physical(links['lower'].parameters)
    assert_same_dynamics(export, arm_model())


def test_impossible_fixed_children_become_possible() -> None:
    text = with_tool(1.0, ixx=0.5)
    with pytest.raises(ValueError, match=r'A \+ B >= C'):
        mujoco.MjModel.from_xml_string(text)
    export = arm_model().to_urdf(text)
    assert [w for w in export.warnings if w.startswith("link 'tool': no body has its inertia")]
    assert_same_dynamics(export, arm_model())
    flat = with_tool(1.0, ixx=0.04)
    assert tool_of(arm_model().to_urdf(flat).text) == tool_of(flat)


@pytest.mark.parametrize('mass', [1.0, 20.0])
def test_locked_joints_stay_joints(mass: float) -> None:
    text = with_tool(mass, kind='revolute')
    robot = robot_from_urdf(text, Selection(joints=('shoulder', 'elbow')))
    model = replace(arm_model(), robot=robot)
    export = model.to_urdf(text)
    whole = robot_from_urdf(export.text)
    assert whole.joints == ('shoulder', 'elbow', 'grip')
    motion = [np.pad(m, ((0, 0), (0, 1))) for m in states(robot, 10)]
    theirs = mujoco_effort(export.text, whole, *motion)[:, :2]
    ours = rigid(model).inverse(*(m[:, :2] for m in motion))
    assert np.abs(theirs - ours).max() <= READ_BY_OTHERS * np.abs(ours).max()
    assert 'dynamics' not in export.text[export.text.index('name="grip"'):]


def test_part_of_a_robot() -> None:
    text = with_tool(1.0)
    robot = robot_from_urdf(text, Selection(base_link='upper'))
    model = feasible_model(robot, np.array([2.0 * BALL]))
    export = model.to_urdf(text)
    assert export.changed_links == ('lower',)
    read = robot_from_urdf(export.text)
    assert read.nominal[1] == pytest.approx(2.0 * BALL, rel=1e-12)
    assert np.array_equal(read.nominal[0], robot_from_urdf(text).nominal[0])
    assert 'friction = "0.7"' in export.text


def test_bodies_keep_their_place() -> None:
    """A body that hangs on a rotated fixed joint is the same seen from the moving link."""
    text = with_tool(1.0)
    read = robot_from_urdf(arm_model().to_urdf(text).text)
    moved = sum(move_parameters(link.parameters, link.placement)
                for link in read.links if link.body == 1)
    assert moved == pytest.approx(2.0 * BALL, rel=1e-12, abs=1e-15)


def without_numbers(text: str) -> str:
    """Return a URDF with the numbers of inertials and of dynamics blanked."""
    tags = r'(<!--.*?-->|<(?:mass|inertia|dynamics)\b[^>]*>|<origin[^>]*rpy=[^>]*>)'
    return ''.join(
        re.sub(r'(value|i[xyz]{2}|xyz|rpy|friction|damping)(\s*=\s*)(["\'])[^"\']*["\']',
               r'\1\2\3\3', part) if part.startswith('<') and '<!--' not in part else part
        for part in re.split(tags, text))


@pytest.mark.parametrize('end', ['\n', '\r\n'])
@pytest.mark.parametrize('begin', ['', '\ufeff'])
def test_every_other_character_stays(end: str, begin: str) -> None:
    text = begin + ARM.replace('\n', end)
    export = arm_model().to_urdf(text)
    assert ('\r\n' in export.text) == (end == '\r\n')
    assert export.content.count('\r\n') == export.content.count('\n') * (end == '\r\n')
    assert export.content.startswith(f'{begin}<?xml version="1.0" encoding="UTF-8"?>{end}<!-- ')
    assert export.text.count(end) == export.text.count('\n')
    added = re.compile(
        r'\s*<inertial>\s*<origin xyz="[^"]*" rpy="0 0 0"/>\s*<mass[^>]*/>\s*<inertia[^>]*/>\s*'
        r'</inertial>(?=\s*</link>)')
    assert len(added.findall(export.text)) == 1
    rest = added.sub('', export.text).replace(f'<link name="lower">{end}  </link>',
                                              '<link name="lower"/>')
    rest, count = re.subn(r'\s*<dynamics damping="[^"]*" friction="[^"]*"/>', '', rest)
    assert count == 1
    rest, count = re.subn(r' damping="[^"]*"/> <!-- measured', '/> <!-- measured', rest)
    assert count == 1
    assert without_numbers(rest) == without_numbers(text)
    assert rest != text
    assert_same_dynamics(export, arm_model())


def test_added_elements_look_like_their_neighbours() -> None:
    lines = arm_model().to_urdf(ARM).text.splitlines()
    place = lines.index('  <link name="lower">')
    assert [line[:14] for line in lines[place + 1:place + 6]] == [
        '    <inertial>', '      <origin ', '      <mass va', '      <inertia', '    </inertial']
    assert lines[place + 6] == '  </link>'
    assert sum(line.startswith('    <dynamics damping') for line in lines) == 1


def test_axes_that_are_those_of_the_link_need_no_word() -> None:
    text = ARM.replace('<origin xyz="0.1 0 0" rpy=\'0 0 0.5\'/>', '<origin xyz="0.1 0 0"/>')
    export = arm_model().to_urdf(text)
    inertial = export.text[export.text.index('<link name="upper">'):].partition('</inertial>')[0]
    assert 'rpy' not in inertial
    assert_same_dynamics(export, arm_model())
    turned = arm_model().to_urdf(ARM).text
    turned = turned[turned.index('<link name="upper">'):].partition('</inertial>')[0]
    assert re.findall(r"rpy='([^']*)'", turned) == ['0.0 0.0 0.0'], 'they were turned by 0.5'


def test_to_urdf_keeps_the_text_of_identified_links_byte_for_byte() -> None:
    model = arm_model()
    once = model.to_urdf(ARM)
    assert once.changed_links == ('upper', 'lower')
    again = model.to_urdf(once.text)
    assert again.text == once.text
    assert again.changed_links == ()
    for name in ('ur10e', 'tx40'):
        robot = load_robot(name)
        model = feasible_model(robot, robot.nominal)
        text = source_text(robot)
        export = model.to_urdf(text)
        assert (export.text, export.changed_links) == (text, ())


@pytest.mark.parametrize(('share', 'rest'), [(0.9985, 6.0 * 0.0015), (0.9995, 3.0)])
def test_a_body_keeps_a_thousandth_or_half_of_it_beside_links_fixed_to_it(
    share: float, rest: float
) -> None:
    """A flange like the body: below that it stays, above that it is half of the body."""
    inertia = ' '.join(f'i{axes}="{0.1 * share}"' for axes in ('xx', 'yy', 'zz'))
    own = (f'<inertial><mass value="{6.0 * share}"/><origin xyz="0.1 0 0.2"/><inertia {inertia} '
           'ixy="0" ixz="0" iyz="0"/></inertial>')
    text = ARM.replace('<link name="flange">', f'<link name="flange">{own}')
    export = arm_model().to_urdf(text)
    links = {link.name: link.parameters for link in robot_from_urdf(export.text).links}
    assert links['lower'] == pytest.approx(rest / 6.0 * 2.0 * BALL, rel=1e-6, abs=1e-12)
    assert links['flange'] == pytest.approx((6.0 - rest) / 6.0 * 2.0 * BALL, rel=1e-6, abs=1e-12)
    said = [text for text in export.warnings if 'multiplied' in text]
    assert said == ([] if share < 0.999 else [
        "link 'lower': the inertials of flange, fixed to it, exceed the identified body; they are "
        'multiplied by 0.5'])


def test_an_impossible_inertia_of_a_link_at_rest_is_raised_to_a_millionth_over_flat() -> None:
    wrong = INERTIAL.replace('ixx="1"', 'ixx="4"')
    export = arm_model().to_urdf(ARM.replace('<link name="base" />',
                                             f'<link name="base">{wrong}</link>'))
    assert export.changed_links == ('base', 'upper', 'lower')
    assert ("link 'base': no body has its inertia, which was not identified; raised by 2 kg m^2 "
            'about every axis') in export.warnings
    values = re.search(r'<link name="base">.*?<inertia ([^>]*)/>', export.text, re.DOTALL)
    assert values is not None
    found = {key: float(value) for key, value in re.findall(
        r'(i[xyz]{2})\s*=\s*"([^"]*)"', values.group(1))}
    matrix = np.array([[found['i' + ''.join(sorted(a + b))] for a in 'xyz'] for b in 'xyz'])
    low, middle, high = np.linalg.eigvalsh(matrix)
    # 1 + 1 - 4 = -2 of 6
    assert (low, middle, high) == pytest.approx((3.0, 3.0, 6.0), rel=1e-5)
    assert low + middle - high == pytest.approx(6e-6, rel=1e-6)
    assert arm_model().to_urdf(ARM.replace(
        '<link name="base" />', f'<link name="base">{INERTIAL}</link>')).changed_links == (
            'upper', 'lower')
