"""export/: what is exported is read back by its tool before it is written, and the exit code says
so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.dom import minidom
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import pytest
from exported import ARM
from fuzzing import fault_of
from identified_models import random_model
from robot_descriptions import public_urdfs
from tolerances import MUJOCO_ACCELERATION

from robot_dynid.cli.main import main
from robot_dynid.errors import DynIdError, MissingDependency, ModelError, UsageError
from robot_dynid.export.c_code import CCode, c_code
from robot_dynid.export.description import Description
from robot_dynid.export.mjcf import Mjcf
from robot_dynid.export.urdf import Export
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import read_urdf, robot_from_urdf
from robot_dynid.robot.urdf_text import FreeNames
from robot_dynid.simulation.mujoco_model import build_model
from robot_dynid.simulation.truth import Truth

pin = pytest.importorskip('pinocchio')

Capture = pytest.CaptureFixture[str]
FORMS = {'out': 'urdf', 'mjcf': 'xml', 'sdf': 'sdf'}
PLAIN = ('<robot name="arm"><link name="base"/><link name="upper">{shape}<inertial>'
         '<mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
         '</inertial></link><link name="tool"/>'
         '<joint name="turn" type="revolute"><parent link="base"/><child link="upper"/>'
         '<limit lower="-1" upper="1" velocity="2" effort="{effort}"/></joint>'
         '<joint name="mount" type="fixed"><parent link="upper"/><child link="tool"/></joint>'
         '</robot>')
TETRAHEDRON = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n'


def plain(shape: str = '', effort: float = 30.0, **names: str) -> str:
    """Return a URDF of one joint; ``names`` replace those of its links and joints."""
    text = PLAIN.format(shape=shape, effort=effort)
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return text


def read_by_others(path: Path, form: str, selection: Selection) -> None:
    """Load a written file with what is installed for it."""
    if form == 'mjcf':
        mujoco.MjModel.from_xml_path(str(path))
    elif form == 'out':
        minidom.parse(str(path))
        read_urdf(path, selection)
        pin.buildModelFromUrdf(str(path))
    else:
        model = ET.parse(path).getroot()[0]
        names = [model.attrib['name'], *(child.attrib['name'] for child in model)]
        assert len(set(names[1:])) == len(model)
        assert not [n for n in names if n == 'world' or '::' in n or n[:2] == n[-2:] == '__']
        joints = {child.attrib['name'] for child in model.findall('joint')}
        assert len(joints) == len(selection.joints) + 1
        assert all(float(str(limit.text)) > 0.0 for tag in ('effort', 'velocity')
                   for limit in model.iter(tag))


def exported(words: list[str], capsys: Capture) -> tuple[int, dict[str, Any]]:
    """Return exit code and result of `export`."""
    code = main(['export', *words, '--json', '--quiet'])
    return code, json.loads(capsys.readouterr().out)


DESCRIPTIONS = {
    'declaration': '<?xml version="1.0"?>\n' + plain(),
    'instructions': '<?xml version="1.0"?>\n<?xml-model href="x"?>\n' + plain(),
    'byte order mark': '\ufeff<?xml version="1.0" encoding="UTF-8"?>\r\n' + plain(),
    'other encoding': '<?xml version="1.0" encoding="gb2312"?>' + plain(upper='Oberarm ä'),
    'without a name': plain().replace(' name="arm"', ''),
    'base is world': plain(base='world'),
    'base is world, a link world_link': plain(base='world', tool='world_link'),
    'fixed link is world': plain(tool='world'),
    'body is world': plain(upper='world'),
    'reserved names': plain(base='__root__', upper='__model__', turn='world', arm='__model__'),
    'separators': plain(upper='a::b', turn='c::d', arm='e::f'),
    'joint and link of one name': plain(upper='turn'),
    'link as the joint of the base': plain(tool='base_fixed'),
    'without limits of effort': plain(effort=0.0),
}


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', DESCRIPTIONS)
def test_descriptions_are_read_by_others(
    name: str, form: str, tmp_path: Path, capsys: Capture
) -> None:
    given, path = tmp_path / 'arm.urdf', tmp_path / f'out.{FORMS[form]}'
    given.write_text(DESCRIPTIONS[name], encoding='utf-8', newline='')
    code, found = exported([str(given), f'--{form}', str(path)], capsys)
    assert code == 0, found
    robot = load_robot(given)
    read_by_others(path, form, Selection(joints=robot.joints))
    if form == 'out':
        assert read_urdf(path).hash() == robot.hash()


def test_names_that_are_free_stay() -> None:
    names = FreeNames(('world',), ('world', 'world_link'))
    assert names.take('world') == 'world_link_link'
    assert names.take('world_link') == 'world_link'


@pytest.mark.parametrize('base', ['world', 'base'])
@pytest.mark.parametrize('tool', ['world', 'tool'])
def test_models_of_robots_with_the_names_of_simulators(base: str, tool: str) -> None:
    """`to_mujoco`, and all forms with the shapes of the URDF; touching links stay apart."""
    if base == tool:
        tool = 'world_link'
    text = plain('<collision><geometry><sphere radius="1"/></geometry></collision>',
                 base=base, tool=tool, turn='a', upper='a')
    text = text.replace(f'<link name="{base}"/>', f'<link name="{base}"><collision><geometry>'
                        '<box size="1 1 1"/></geometry></collision></link>')
    model = random_model(robot_from_urdf(text))
    assert model.to_mujoco().body('a').id > 0
    shown = model.to_mjcf(text)
    peer = shown.model()
    data = mujoco.MjData(peer)
    assert (peer.ngeom, peer.nbody) == (2, 3 if base == 'world' else 4)
    mujoco.mj_forward(peer, data)
    assert data.ncon == 0
    for export in (shown, model.to_mjcf(), model.to_sdf(), model.to_urdf(text),
                   model.to_urdf(), model.to_solver_parameters()):
        export.facts()
    told = ' '.join((*shown.warnings, *model.to_sdf().warnings))
    assert ("link 'world' is renamed to" in told) == ('world' in (base, tool))
    assert "link 'a' is renamed to 'a_link' in SDF" in told


SHAPES = {
    'box of size 0': '<box size="0 0 0"/>', 'sphere of size 0': '<sphere radius="0"/>',
    'disc': '<cylinder radius="0.1" length="0"/>', 'line': '<cylinder radius="0" length="1"/>',
    'negative': '<sphere radius="-1"/>', 'no number': '<sphere radius="big"/>',
    'two numbers': '<box size="1 1"/>', 'unknown kind': '<cone radius="1"/>',
    'missing mesh': '<mesh filename="nowhere.stl"/>', 'no file name': '<mesh/>',
    'missing package': '<mesh filename="package://nowhere/a.stl"/>',
    'no address': '<mesh filename="package://[a"/>',
    'name too long': f'<mesh filename="{300 * "x"}.stl"/>',
    'no mesh': '<mesh filename="arm.stl"/>', 'text of STL': '<mesh filename="text.stl"/>',
    'scale of two': '<mesh filename="solid.obj" scale="1 1"/>',
}


@pytest.mark.parametrize('shape', SHAPES)
def test_shapes_that_cannot_be_are_left_out_and_told(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'solid.obj').write_text(TETRAHEDRON)
    (tmp_path / 'arm.stl').write_bytes(bytes(84))
    (tmp_path / 'text.stl').write_text('solid a\nendsolid\n' + 100 * ' ')
    parts = [f'<{tag}><geometry>{SHAPES[shape]}</geometry></{tag}>'
             '<visual><geometry><mesh filename="solid.obj"/></geometry></visual>'
             for tag in ('visual', 'collision')]
    (tmp_path / 'arm.urdf').write_text(plain(''.join(parts)))
    code, found = exported(['arm.urdf', '--mjcf', 'arm.xml'], capsys)
    assert code == 0, found
    assert mujoco.MjModel.from_xml_path('arm.xml').ngeom == 2
    told = [text for text in found['warnings'] if text.endswith('; it is left out')]
    assert [tag in text for tag, text in zip(('visual', 'collision'), told, strict=True)] == [
        True, True]


def test_export_prints_omitted_shapes_among_the_first_lines(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_text(plain('<visual><geometry><box size="0 0 0"/></geometry></visual>'))
    assert main(['export', str(path), '--mjcf', str(tmp_path / 'o.xml'), '--quiet']) == 0
    first = capsys.readouterr().out.splitlines()[:5]  # a long path takes two
    assert any(line.startswith('! ') for line in first), first


@pytest.mark.parametrize(('rgba', 'shown'), [
    ('1 0 0 1', [1.0, 0.0, 0.0, 1.0]), ('1 0 0 1 1', [0.5] * 3 + [1.0]),
    ('255 0 0 1', [0.5] * 3 + [1.0]), ('red', [0.5] * 3 + [1.0])])
def test_a_shape_without_a_possible_colour_is_grey(rgba: str, shown: list[float]) -> None:
    text = plain('<visual><geometry><sphere radius="1"/></geometry><material name="m">'
                 f'<color rgba="{rgba}"/></material></visual>')
    mjcf = random_model(robot_from_urdf(text)).to_mjcf(text)
    assert mjcf.model().geom_rgba[0].tolist() == shown
    assert any('rgba' in text for text in mjcf.warnings) == (rgba != '1 0 0 1')


def test_thin_meshes_are_shown(tmp_path: Path) -> None:
    (tmp_path / 'thin.obj').write_text(TETRAHEDRON)
    text = plain('<visual><geometry><mesh filename="thin.obj" scale="1e-5 1e-5 1e-5"/></geometry>'
                 '</visual>')
    mjcf = random_model(robot_from_urdf(text)).to_mjcf(text, str(tmp_path / 'arm.urdf'))
    assert mjcf.model().nmesh == 1, mjcf.warnings


#: MuJoCo takes neither for a body that moves; Pinocchio reads both
TINY = plain().replace('"0.1"', '"1e-17"').replace('value="2"', 'value="1e-8"')


def test_export_writes_no_file_when_mujoco_refuses_one(tmp_path: Path, capsys: Capture) -> None:
    given = tmp_path / 'arm.urdf'
    given.write_text(TINY)
    outputs = {form: tmp_path / f'out.{end}' for form, end in FORMS.items()}
    words = [word for form, path in outputs.items() for word in (f'--{form}', str(path))]
    code, found = exported([str(given), *words], capsys)
    assert code == 1
    assert 'out.xml is not written: MuJoCo refuses the MJCF: ' in found['error']
    assert "Element name 'upper'" in found['error']
    assert not any(path.exists() for path in outputs.values())
    code, found = exported([str(given), '--out', str(outputs['out'])], capsys)
    assert code == 0 and 'as it is described, but MuJoCo refuses the URDF' in found['warnings'][0]
    model = random_model(robot_from_urdf(plain()))
    model = replace(model, feasible=np.concatenate([
        robot_from_urdf(TINY).nominal[0], model.feasible[10:]]))
    for convert in (model.to_mujoco, lambda: model.to_urdf(plain()).save(tmp_path / 'm.urdf')):
        with pytest.raises(ModelError, match=r'MuJoCo refuses the (MJCF|URDF): '):
            convert()
    assert not (tmp_path / 'm.urdf').exists()


def test_export_writes_no_urdf_that_pinocchio_refuses(tmp_path: Path, capsys: Capture) -> None:
    given, path = tmp_path / 'arm.urdf', tmp_path / 'out.urdf'
    given.write_text(plain().replace(
        '<limit lower="-1" upper="1" velocity="2" effort="30.0"/>', ''))
    path.write_text('')
    code, found = exported([str(given), '--out', str(path)], capsys)
    assert code == 1 and 'Pinocchio refuses the URDF' in found['error']
    assert path.read_text() == ''
    with pytest.raises(DynIdError, match='not well-formed XML'):
        Export('<robot name="a">').save(path)
    model = random_model(robot_from_urdf(plain()))
    with pytest.raises(ModelError, match='Pinocchio refuses the URDF'):
        model.to_urdf(given.read_text()).save(path)
    assert path.read_text() == ''


def without_tool(*_: object) -> None:
    raise MissingDependency('MuJoCo is not here: pip install it')


@pytest.mark.parametrize(('old', 'new'), [
    ('</body>', ''), ('"upper"', '"base"'), ('"upper"', '"world"'), ('"tool"', '"\x01"')])
def test_a_parser_reads_where_there_is_no_tool(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mjcf, 'load', without_tool)
    mjcf = random_model(robot_from_urdf(plain())).to_mjcf()
    assert mjcf.facts()['tool'] == (
        'read by robot_dynid only: MuJoCo is not here: pip install it')
    with pytest.raises(DynIdError, match='MJCF'):
        replace(mjcf, text=mjcf.text.replace(old, new)).facts()


def test_joints_that_mimic_locked_ones_are_no_fault(tmp_path: Path, capsys: Capture) -> None:
    text = plain().replace('</robot>', '<link name="finger"/><joint name="grip" type="prismatic">'
                           '<parent link="tool"/><child link="finger"/><axis xyz="1 0 0"/><limit '
                           'lower="0" upper="1" velocity="1" effort="1"/><mimic joint="turn"/>'
                           '</joint></robot>')
    (tmp_path / 'arm.urdf').write_text(text)
    (tmp_path / 'arm.yaml').write_text('urdf: arm.urdf\njoints: [turn]\n')
    path = tmp_path / 'out.urdf'
    code, found = exported([str(tmp_path / 'arm.yaml'), '--out', str(path)], capsys)
    assert (code, found['warnings']) == (0, [])
    robot = load_robot(tmp_path / 'arm.yaml')
    export = random_model(robot).to_urdf(text)
    assert export.facts()['error'] < MUJOCO_ACCELERATION
    assert build_model(robot, Truth.ideal(1)).njnt == 1


def test_limits_without_end_do_not_spoil_the_comparison() -> None:
    text = plain().replace('lower="-1" upper="1"', 'lower="-1e16" upper="1e16"')
    assert random_model(robot_from_urdf(text)).to_mjcf().facts()['error'] < MUJOCO_ACCELERATION


def test_generate_urdfs_name_no_joint_twice() -> None:
    export = random_model(robot_from_urdf(plain(turn='tool_fixed'))).to_urdf()
    assert export.facts()['error'] < MUJOCO_ACCELERATION
    assert {e.attrib['name'] for e in ET.fromstring(export.content).iter('joint')} == {
        'tool_fixed', 'tool_fixed_joint'}


def test_impossible_inertia_at_rest_is_raised_too() -> None:
    bad = ('<link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
           'iyz="0" izz="5"/></inertial></link>')
    text = plain().replace('<link name="base"/>', bad)
    export = random_model(robot_from_urdf(text)).to_urdf(text)
    assert export.facts()['error'] < MUJOCO_ACCELERATION
    assert export.changed_links == ('base', 'upper')
    assert "link 'base': no body has its inertia" in export.warnings[0]


def test_c_code_is_compiled_and_its_folder_made(tmp_path: Path) -> None:
    model = random_model(robot_from_urdf(ARM))
    model.save(tmp_path / 'm.yaml')
    folder = tmp_path / 'new' / 'code'
    words = ['export', str(tmp_path / 'm.yaml'), '--quiet', '--c']
    assert main([*words, str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ['arm.c', 'arm.h']
    (tmp_path / 'file').write_text('')
    for place in (tmp_path / 'file', tmp_path / 'file' / 'below'):
        assert main([*words, str(place), '--mjcf', str(tmp_path / 'arm.xml')]) == 2
    assert not (tmp_path / 'arm.xml').exists()
    code = c_code(model.mechanism)
    with pytest.raises(UsageError, match='is not a folder; give another folder'):
        code.save(tmp_path / 'file')
    with pytest.raises(DynIdError, match='/proc/nowhere: '):
        code.save('/proc/nowhere')


def test_c_code_that_does_not_compile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CCode('arm', 'int arm;\n', '#include "arm.h"\nint arm(void) { return 0; }\n')
    if 'no C compiler' in c_code(random_model(robot_from_urdf(ARM)).mechanism).facts()['tool']:
        pytest.skip('no compiler: cc is not installed')
    with pytest.raises(ModelError, match=r'cc refuses the C code: .*arm'):
        code.save(tmp_path / 'code')
    assert not (tmp_path / 'code').exists()
    monkeypatch.setenv('PATH', str(tmp_path))
    alone = CCode(code.name, code.header, code.source)
    assert alone.facts()['tool'] == 'not compiled: there is no C compiler, cc or gcc'


@pytest.mark.parametrize('path', public_urdfs())
@pytest.mark.parametrize('form', FORMS)
def test_public_descriptions(
    path: Path, form: str, tmp_path: Path, capsys: Capture
) -> None:
    """Each that `base` reads is written so that others read it, unless no body has its mass."""
    try:
        robot = load_robot(path)
    except DynIdError as error:
        assert not fault_of(error), error
        return
    out = tmp_path / f'out.{FORMS[form]}'
    code, found = exported([str(path), f'--{form}', str(out)], capsys)
    if code:
        assert (form, code) != ('out', 1) and not out.exists()
        assert 'has no physically valid mass and inertia' in found['error']
        return
    read_by_others(out, form, Selection(base_link=robot.base_link, joints=robot.joints))


def test_accelerations_without_a_limit_are_compared_where_nothing_rubs() -> None:
    robot = load_robot('planar_3r')
    fast = replace(robot, limits=replace(robot.limits, acceleration=np.full(3, 1e7)))
    assert Description(fast).to_mjcf().facts()['error'] < MUJOCO_ACCELERATION


def test_motions_slower_than_friction_develops_are_not_compared() -> None:
    model = random_model(load_robot('planar_3r'))
    slow = np.tile([-1e-9, 1e-9], (model.robot.n, 1))
    still = replace(model, trained=replace(model.trained, quantities={'velocity': slow}))
    assert still.to_mjcf().facts()['error'] is None
