"""The exported text: every character that has nothing to do with it stays."""

from __future__ import annotations

import re

import pytest
from exported import (
    ARM,
    arm_model,
    assert_same_dynamics,
)
from feasible_models import feasible_model

from robot_dynid.identified.export import exported_urdf
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text


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
    export = exported_urdf(arm_model(), text)
    assert ('\r\n' in export.text) == (end == '\r\n')
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
    lines = exported_urdf(arm_model(), ARM).text.splitlines()
    place = lines.index('  <link name="lower">')
    assert [line[:14] for line in lines[place + 1:place + 6]] == [
        '    <inertial>', '      <origin ', '      <mass va', '      <inertia', '    </inertial']
    assert lines[place + 6] == '  </link>'
    assert sum(line.startswith('    <dynamics damping') for line in lines) == 1


def test_axes_that_are_those_of_the_link_need_no_word() -> None:
    text = ARM.replace('<origin xyz="0.1 0 0" rpy=\'0 0 0.5\'/>', '<origin xyz="0.1 0 0"/>')
    export = exported_urdf(arm_model(), text)
    inertial = export.text[export.text.index('<link name="upper">'):].partition('</inertial>')[0]
    assert 'rpy' not in inertial
    assert_same_dynamics(export, arm_model())


def test_what_is_identified_already_stays_byte_for_byte() -> None:
    model = arm_model()
    once = exported_urdf(model, ARM)
    assert once.changed_links == ('upper', 'lower')
    again = exported_urdf(model, once.text)
    assert again.text == once.text
    assert again.changed_links == ()
    for name in ('ur10e', 'tx40'):
        robot = load_robot(name)
        model = feasible_model(robot, robot.nominal)
        text = source_text(robot)
        assert exported_urdf(model, text)[:2] == (text, ())
