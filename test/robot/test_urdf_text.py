"""robot/urdf_text.py: edits of a URDF in place keep its text and its indentation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import RobotError
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.robot.urdf_text import Element, UrdfText, decoded, generate_urdf, number_text

Edit = Callable[[UrdfText, Element], None]


def edited(text: str, edit: Edit) -> str:
    """Return a text after an edit of its element ``l``."""
    made = UrdfText(text)
    found = made.root.find('l')
    assert found is not None
    edit(made, found)
    return made.changed()


@pytest.mark.parametrize(('before', 'after'), [
    ('<l x="1"  y="2" />', '<l x="3.0"  y="2" z="4.0 -5.5" />'),
    ("<l y='7' x='1 2'/>", "<l y='7' x='3.0' z=\"4.0 -5.5\"/>"),
    ('<l x="word"></l>', '<l x="3.0" z="4.0 -5.5"></l>'),
    ('<l x="3" z="4 -5.5"/>', '<l x="3" z="4 -5.5"/>'),
    ('<l z="4.0 -5.50" x = "30e-1"\n/>', '<l z="4.0 -5.50" x = "30e-1"\n/>'),
    ('<l a="x=1 > z" x="3.1"><c x="1"/></l>', '<l a="x=1 > z" x="3.0" z="4.0 -5.5"><c x="1"/></l>')
])
def test_numbers_are_set_where_they_stand_unless_they_are_the_same(
    before: str, after: str
) -> None:
    values = {'x': [3.0], 'z': [4.0, -5.5]}
    found = edited(f'<r>é{before}<l x="1"/></r>', lambda text, one: text.set_numbers(one, values))
    assert found == f'<r>é{after}<l x="1"/></r>'


def test_zeros_are_written_without_a_sign() -> None:
    assert number_text([-0.0, 1, 1e-12]) == '0.0 1.0 1e-12'


@pytest.mark.parametrize(('before', 'after'), [
    ('<r>\n  <l>\n    <c/>\n  </l>\n</r>',
     '<r>\n  <l>\n    <m>\n      <n/>\n    </m>\n    <c/>\n  </l>\n</r>'),
    ('<r>\n\t<l>\n\t\t<c/></l>\n</r>',
     '<r>\n\t<l>\n\t\t<m>\n\t\t\t<n/>\n\t\t</m>\n\t\t<c/></l>\n</r>'),
    ('<r>\n  <l/>\n</r>', '<r>\n  <l>\n    <m>\n      <n/>\n    </m>\n  </l>\n</r>'),
    ('<r>\r\n <l></l>\r\n</r>',
     '<r>\r\n <l>\r\n   <m>\r\n     <n/>\r\n   </m>\r\n </l>\r\n</r>'),
    ('<r><l/></r>', '<r><l><m><n/></m></l></r>'),
    ('<r><l><c/></l></r>', '<r><l><m><n/></m><c/></l></r>'),
    ('<r>\n  <l>text</l>\n</r>', '<r>\n  <l>\n    <m>\n      <n/>\n    </m>text</l>\n</r>'),
    ('<r> <l>\n<c/></l></r>', '<r> <l>\n<m>\n  <n/>\n</m>\n<c/></l></r>')])
def test_an_element_is_inserted_before_the_children_with_their_indentation(
    before: str, after: str
) -> None:
    assert edited(before, lambda text, one: text.insert(one, ['<m>', '\t<n/>', '</m>'])) == after


@pytest.mark.parametrize(('before', 'after'), [
    ('<r>\n  <l>\n    <c/>\n    <d></d>\n  </l>\n</r>',
     '<r>\n  <l>\n    <c/>\n    <d></d>\n    <m/>\n  </l>\n</r>'),
    ('<r><l><c/></l></r>', '<r><l><c/><m/></l></r>')])
def test_an_element_is_appended_after_the_last_child(before: str, after: str) -> None:
    assert edited(before, lambda text, one: text.append(one, '<m/>')) == after


def test_attributes_are_added_behind_the_tag_and_edits_are_made_together() -> None:
    def edit(text: UrdfText, one: Element) -> None:
        text.append(one, '<m/>')
        text.set_numbers(one, {'x': [2.0]})
        text.add_attribute(one, 'name', 'a "b" & c')

    assert edited('<r><l x="1"><c/></l></r>', edit) == \
        '<r><l name=\'a "b" &amp; c\' x="2.0"><c/><m/></l></r>'


def test_elements_know_where_they_stand() -> None:
    root = UrdfText('<r><l name="a"><c/></l><l/><l name="b"/></r>').root
    assert list(root.named('l')) == ['a', 'b']
    outer, inner = root.children[0], root.children[0].children[0]
    assert (outer.start, outer.head, outer.tail, outer.end) == (3, 15, 19, 23)
    assert (inner.start, inner.head, inner.tail, inner.end) == (15, 19, 19, 19)
    assert inner.find('x') is None


@pytest.mark.parametrize(('content', 'text'), [
    (b'\n <?xml version="1.0" encoding="latin-1"?><r n="\xe9"/>',
     '<?xml version="1.0" encoding="UTF-8"?><r n="é"/>'),
    (b'<?xml version="1.0"' + b' ' * 500 + b'encoding="cp1252"?><r n="\x80"/>',
     '<?xml version="1.0"' + ' ' * 500 + 'encoding="UTF-8"?><r n="€"/>'),
    ('<r n="é"/>'.encode('utf-16'), '<r n="é"/>'),
    ('<r n="é"/>'.encode('utf-16-be'), '<r n="é"/>'),
    ('<?xml encoding="gbk"?><r n="臂"/>'.encode('gbk'), '<?xml encoding="UTF-8"?><r n="臂"/>')])
def test_a_file_is_read_in_the_encoding_it_declares(content: bytes, text: str) -> None:
    assert decoded(content, 'f') == text


def test_a_byte_that_is_none_of_the_encoding_is_placed() -> None:
    with pytest.raises(RobotError, match=re.escape('f: not a text in utf-8 (byte 5); convert')):
        decoded(b'<r n=\xff"/>', 'f')


def test_generated_links_have_inertials_where_they_have_mass() -> None:
    robot = robot_from_screws('r', [
        Screw(name, [0, 0, 1], [0.1, 0.2, 0.3], kind) for name, kind in (
            ('a', 'revolute'), ('b', 'prismatic'), ('c', 'revolute'))])
    limits = replace(robot.limits, lower=np.array([-1.0, -0.5, -1.0]),
                     upper=np.array([2.0, np.nan, np.nan]), effort=np.array([7.0, np.nan, 0.25]))
    links = np.zeros((3, 10))
    links[0], links[2, 0] = [0.5, 0.0, 0.0, 0.0, 1.0, 0.1, 2.0, 0.2, 0.3, 3.0], 1e-3
    text = generate_urdf(replace(robot, limits=limits), links)
    assert re.findall('<mass value="(.*?)"', text) == ['0.5', '0.001']
    assert '<inertia ixx="1.0" ixy="0.1" ixz="0.2" iyy="2.0" iyz="0.3" izz="3.0" />' in text
    assert re.findall('<origin xyz="(.*?)" rpy="(.*?)" />', text)[1] == ('0.1 0.2 0.3',
                                                                       '0.0 0.0 0.0')
    assert re.findall('type="(.*?)"', text) == ['revolute', 'prismatic', 'continuous']
    assert re.findall('<limit (.*?) />', text) == [
        'lower="-1.0" upper="2.0" velocity="0.0" effort="7.0"',
        'lower="-0.5" velocity="0.0" effort="0.0"', 'lower="-1.0" velocity="0.0" effort="0.25"']
    assert re.findall('<parent link="(.*?)"', text) == ['base_link', 'a_link', 'b_link']
