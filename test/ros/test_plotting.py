"""config/plotjuggler.xml: layouts of PlotJuggler and Foxglove, groups of diagnostics, and
descriptions of parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticArray
from nodes import Spinner, destroy, made
from rcl_interfaces.msg import ParameterType
from sensor_msgs.msg import JointState

from robot_dynid.errors import UsageError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.excitation.node import ExcitationNode
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.ros.simulated_robot.node import SimulatedRobot
from robot_dynid.yaml_text import load_yaml

CONFIG = Path(__file__).resolve().parents[2] / 'robot_dynid' / 'config'
LAYOUT = CONFIG / 'plotjuggler.xml'
#: a path of Foxglove: topic, fields, index
SERIES = re.compile(r'(/[\w/]+)\.([\w.]+)\[(\d)\]')
TYPES = {f'{kind.__module__.partition(".")[0]}/msg/{kind.__name__}': kind
         for kind in (JointState, JointTrajectoryControllerState, DiagnosticArray)}
#: a curve of a JointState in PlotJuggler: topic, joint, field
CURVE = re.compile(r'(/.+)/([^/]+)/(position|velocity|effort)')
NODES: dict[str, Callable[[], Any]] = {
    'identifier': Identifier, 'excitation': ExcitationNode, 'simulated_robot': SimulatedRobot}
#: parameters that may be set while a node runs
LIVE = {'excitation': {'first_pass_scale', 'warm_up', 'return_to_start', 'validation'},
        'simulated_robot': {'fault', 'speed_scaling'}, 'identifier': set[str]()}
NUMBERS = {ParameterType.PARAMETER_DOUBLE: 'floating_point_range',
           ParameterType.PARAMETER_INTEGER: 'integer_range'}


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
def test_the_layout_shows_topics_that_the_identifier_publishes() -> None:
    root = ET.parse(LAYOUT).getroot()
    curves = {match.groups() for one in root.iter('curve')
              if (match := CURVE.fullmatch(one.attrib['name']))}
    assert len(curves) == len({one.attrib['name'] for one in root.iter('curve')})
    asked = {topic for one in root.iter('selected_topics')
             for topic in one.attrib['value'].split(';')}
    with made(Identifier, robot='planar_3r') as node:
        published = dict(node.get_publisher_names_and_types_by_node('identifier', '/'))
    assert asked == {topic for topic, _, _ in curves}
    assert {topic: published.get(topic) for topic in asked} == {
        f'/identifier/{name}': ['sensor_msgs/msg/JointState']
        for name in ('effort_residual', 'external_torque')}
    joints = load_robot('seven_axis').joints  # of the demo
    assert curves == {(topic, joint, 'effort') for topic in asked for joint in joints}


def test_the_layout_is_one_of_plotjuggler() -> None:
    """Splitters say how many parts they have and how large each is, tabs hold one container."""
    root = ET.parse(LAYOUT).getroot()
    assert root.tag == 'root' and root.find('tabbed_widget') is not None
    for tab in root.iter('Tab'):
        assert int(tab.attrib['containers']) == len(tab.findall('Container'))
    for splitter in root.iter('DockSplitter'):
        sizes = [float(size) for size in splitter.attrib['sizes'].split(';')]
        assert len(splitter) == len(sizes) == int(splitter.attrib['count'])
        assert sum(sizes) == pytest.approx(1.0, abs=1e-5)
    assert all(area.find('plot') is not None for area in root.iter('DockArea'))


def panels(layout: Any) -> Iterator[str]:
    """Yield the panels of a part of a layout of Foxglove."""
    if isinstance(layout, str):
        yield layout
    else:
        assert set(layout) - {'splitPercentage'} == {'first', 'second', 'direction'}
        yield from (*panels(layout['first']), *panels(layout['second']))


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
def test_foxglove_shows_topics_and_fields_that_exist() -> None:
    layout = json.loads((CONFIG / 'foxglove_layout.json').read_text())
    panel = layout['configById']
    assert sorted(panels(layout['layout'])) == sorted(panel)
    known: dict[str, list[str]] = {}
    for name in ('identifier', 'excitation'):
        with made(NODES[name], robot='planar_3r') as node:
            known |= node.get_publisher_names_and_types_by_node(name, '/')
            known |= node.get_subscriber_names_and_types_by_node(name, '/')
    assert known[panel['DiagnosticSummary!all']['topicToRender']] == [
        'diagnostic_msgs/msg/DiagnosticArray']
    joints = load_robot('seven_axis').joints  # of the demo
    plots = {name: one['paths'] for name, one in panel.items() if name.startswith('Plot!')}
    assert len(plots) == 3
    for paths in plots.values():
        assert [one['label'] for one in paths] == list(joints)
        for i, one in enumerate(paths):
            topic, fields, index = SERIES.fullmatch(one['value']).groups()  # type: ignore[union-attr]
            assert int(index) == i and one['timestampMethod'] == 'headerStamp'
            value: Any = TYPES[known[topic][0]]()
            assert value.header.stamp is not None
            for field in fields.split('.'):
                value = getattr(value, field)
            assert len(value) == 0, 'a sequence of numbers, one per joint'


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
def test_every_diagnostic_is_in_one_group_of_the_aggregator() -> None:
    (node_section,) = load_yaml((CONFIG / 'diagnostics_aggregator.yaml').read_text(),
                                 'groups', UsageError).values()
    groups = node_section['ros__parameters']
    assert groups.pop('path') == 'robot_dynid'
    assert all(group['type'] == 'diagnostic_aggregator/GenericAnalyzer'
               and group['path'] == name for name, group in groups.items())
    for node_name in ('identifier', 'excitation'):
        sent = list[Any]()
        with made(NODES[node_name], robot='planar_3r') as node:
            node.create_subscription(DiagnosticArray, '/diagnostics', sent.append, 10)
            Spinner(node).wait(lambda sent=sent: bool(sent))
        names = [status.name for status in sent[0].status]
        assert names
        for name in (*names, *(f'/cell{one}' for one in names)):
            assert [group for group, one in groups.items()
                    if any(text in name for text in one['contains'])] == [node_name], name


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize('name', NODES)
def test_parameters_are_described_with_ranges_and_read_only_flags(name: str) -> None:
    with made(NODES[name], robot='planar_3r') as node:
        bare = rclpy.create_node('bare')
        own = sorted(set(node.get_parameters_by_prefix(''))
                     - set(bare.get_parameters_by_prefix('')))
        destroy(bare)
        found = dict(zip(own, node.describe_parameters(own), strict=True))
        kinds = {one: node.get_parameter(one).type_.value for one in own}
    assert {one for one, told in found.items() if not told.read_only} == LIVE[name]
    for parameter, told in found.items():
        assert len(told.description) > 5, f'{parameter} is not described'
        if kinds[parameter] in NUMBERS:
            (span,) = getattr(told, NUMBERS[kinds[parameter]])
            assert span.from_value < span.to_value, f'{parameter} has no range'
