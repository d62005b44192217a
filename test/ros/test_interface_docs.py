"""docs/ros_interface.md: every topic, service, action, parameter and field is on the page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from nodes import made

from robot_dynid.ros.excitation.node import ExcitationNode
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.ros.simulated_robot.node import SimulatedRobot

ROOT = Path(__file__).resolve().parents[2]
REFERENCE: Any = SimpleNamespace(**runpy.run_path(str(ROOT / 'docs' / 'ros_reference.py')))
POLICY = SimpleNamespace(**runpy.run_path(
    str(Path(__file__).with_name('test_security_policy.py'))))
NODES = {'identifier': Identifier, 'excitation': ExcitationNode, 'simulated_robot': SimulatedRobot}


def names(table: str) -> set[str]:
    """Return the names in the cells of a table that hold nothing else."""
    return set(re.findall(r'\| `([\w~/]+)` \|', table))


@pytest.mark.ros
@pytest.mark.usefixtures('module_domain')
@pytest.mark.parametrize('node', NODES)
def test_topics_services_and_actions_are_those_of_the_graph(node: str) -> None:
    """The policy of SROS 2 is held to the graph of the running nodes, and lists all names."""
    allowed = {name for rule in POLICY.allowed(ROOT)[node].values() for name in rule
               if not REFERENCE.OF_RCLPY.fullmatch(name)}
    told = names(REFERENCE.table(node))
    assert {REFERENCE.own(name, node) for name in allowed} == told


@pytest.mark.ros
@pytest.mark.usefixtures('module_domain')
@pytest.mark.parametrize('node', NODES)
def test_parameters_are_those_that_the_node_declares(node: str) -> None:
    import rclpy
    from nodes import destroy

    with made(NODES[node], robot='planar_3r') as used:
        bare = rclpy.create_node('bare')
        declared = set(used.get_parameters_by_prefix('')) - set(bare.get_parameters_by_prefix(''))
        destroy(bare)
    table = REFERENCE.parameters(node)
    assert names(table) == declared
    assert all(len(row.split('|')[4]) > 8 for row in table.splitlines()[2:]), 'each has a meaning'


@pytest.mark.parametrize('path', REFERENCE.interface_files(), ids=lambda path: path.stem)
def test_every_field_and_constant_of_an_interface_is_told(path: Path) -> None:
    code = [line.split() for line in path.read_text('utf-8').splitlines()
            if line and not line.startswith(('#', '---'))]
    text = REFERENCE.interface(path)
    for kind, name, *value in code:
        shown = ' '.join([name, *value]) if value else name
        assert f'| `{shown}` | `{kind}` |' in text
    import robot_dynid_interfaces.action
    import robot_dynid_interfaces.msg
    import robot_dynid_interfaces.srv

    generated = getattr(getattr(robot_dynid_interfaces, path.parent.name), path.stem)
    parts = {'msg': [generated], 'srv': ['Request', 'Response'],
             'action': ['Goal', 'Result', 'Feedback']}[path.parent.name]
    for part in parts:
        kind = part if part is generated else getattr(generated, part)
        for name in kind.get_fields_and_field_types():
            assert f'| `{name}` |' in text


def test_the_page_has_a_place_for_each() -> None:
    page = (ROOT / 'docs' / 'ros_interface.md').read_text('utf-8')
    assert REFERENCE.PLACE.findall(page) == [*NODES, 'interfaces']


def test_a_name_without_a_sentence_is_an_error() -> None:
    new = REFERENCE.Entity('publishes', '~/news', 'std_msgs/msg/String')
    with pytest.raises(ValueError, match='no sentence for publishes ~/news of identifier'):
        REFERENCE.with_sentences('identifier', [new])
    with pytest.raises(ValueError, match='excitation has no '):
        REFERENCE.with_sentences('excitation', [])
