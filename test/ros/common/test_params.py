"""The loader of node parameters: types, defaults, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
import yaml
from rclpy.parameter import Parameter, parameter_value_to_python

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import GuardSettings
from robot_dynid.numbers import NumberRange
from robot_dynid.ros.common.params import (
    applies,
    load_parameters,
    refuse_misplaced,
)
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.ros.identifier.node import IdentifierParameters
from robot_dynid.ros.simulated_robot.node import SimulatedRobotParameters
from robot_dynid.settings import setting

pytestmark = pytest.mark.ros


@dataclass(frozen=True)
class Sample:
    rate: float = setting(10.0, NumberRange(1.0, 50.0, 'Hz'), 'Hz', live=True)
    count: int = setting(3, NumberRange(1, 9, whole=True), 'passes')
    loud: bool = setting(False, text='aloud')
    mode: str = setting('slow', ('slow', 'fast'), 'how', live=True)
    gains: tuple[float, ...] = setting((), text='per joint')
    names: tuple[str, ...] = setting(('a', 'b'), text='joints', kind=str)


@pytest.fixture
def load(ros_domain: int) -> Iterator[Any]:
    """Return a function that starts a node with overrides: (node, parameters)."""
    context = rclpy.Context()
    rclpy.init(context=context)
    nodes: list[Any] = []

    def loaded(struct: type = Sample, file: Path | None = None, **given: Any) -> tuple[Any, Any]:
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        arguments = ['--ros-args', '--params-file', str(file)] if file is not None else None
        node = rclpy.create_node(f'node_{len(nodes)}', context=context, cli_args=arguments,
                                 namespace='cell', parameter_overrides=overrides)
        nodes.append(node)
        return node, *load_parameters(node, struct)

    yield loaded
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown(context=context)


def test_defaults_and_overrides(load: Any) -> None:
    assert load()[1] == Sample()
    given = load(rate=5, count=4, loud=True, mode='fast', gains=[1, 2], names=['x'])[1]
    assert given == Sample(5.0, 4, True, 'fast', (1.0, 2.0), ('x',))
    assert type(given.rate) is float


@pytest.mark.parametrize(('name', 'value', 'message'), [
    ('rate', 'quick', "parameter rate: must be a finite number, is 'quick'"),
    ('rate', True, 'parameter rate: must be a finite number, is True'),
    ('count', 1.5, 'parameter count: must be a whole number, is 1.5'),
    ('mode', 'middling', "parameter mode: 'middling': choose one of slow, fast"),
    ('gains', ['a'], "gains: must be a number, is 'a'"),
    ('names', 'a', "parameter names: must be a list, is 'a'"),
])
def test_wrong_values_are_named(load: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(**{name: value})


def test_only_live_parameters_may_change(load: Any) -> None:
    node, _ = load()
    assert node.set_parameters([Parameter('mode', value='fast')])[0].successful
    assert not node.set_parameters([Parameter('count', value=9)])[0].successful


def dumped(node: Any) -> dict[str, Any]:
    """Return what `ros2 param dump` writes for a node."""
    return {name: parameter_value_to_python(given.get_parameter_value())
            for name, given in node.get_parameters_by_prefix('').items()}


@pytest.mark.parametrize(('struct', 'given'), [
    (Sample, {'names': ['x'], 'count': 4}), (IdentifierParameters, {}),
    (ExcitationSettings, {'robot': 'planar_3r'}), (GuardSettings, {}),
    (SimulatedRobotParameters, {}),
])
@pytest.mark.parametrize('section', ['/cell/node_1', '/**'])
def test_a_dump_is_a_parameter_file(
    load: Any, struct: type, given: dict[str, Any], section: str, tmp_path: Path
) -> None:
    node, first = load(struct, **given)
    file = tmp_path / 'dump.yaml'
    content = dumped(node)
    assert None not in content.values()
    file.write_text(yaml.dump({section: {'ros__parameters': content}}))
    again, second = load(struct, file)
    assert second == first and dumped(again) == content


def test_an_empty_list_is_given(load: Any, tmp_path: Path) -> None:
    file = tmp_path / 'given.yaml'
    file.write_text('/**: {ros__parameters: {names: [], rate: 5}}')
    assert load(Sample, file)[1] == Sample(rate=5.0, names=())


def test_unknown_parameters_are_refused_by_name(load: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"node /cell/node_0 has no parameter 'raet' "
                                         r'\(nearest known: rate\)'):
        load(raet=5.0)
    file = tmp_path / 'several.yaml'
    file.write_text("""
        /**: {ros__parameters: {use_sim_time: false, qos_overrides./parameter_events.depth: 5}}
        /another_node: {ros__parameters: {gian: 3}}
        /cell/node_1: {ros__parameters: {rate: 5.0}}
    """)
    assert load(Sample, file)[1].rate == 5.0


@pytest.mark.parametrize(('section', 'reaches'), [
    ('/**', True), ('/cell/node_0', True), ('cell/node_0', True), ('/*/node_0', True),
    ('/**/node_0', True), ('/cell/*', True), ('/cell/**', True), ('/**/*', True), ('/*/*', True),
    ('/cell/**/node_0', True), ('/node_0', False), ('node_0', False), ('/*', False),
    ('/cell', False), ('/cell/node', False), ('/cell/node_01', False), ('/left/node_0', False),
    ('/*/cell/node_0', False), ('/Cell/node_0', False), ('/*/*/node_0', False),
])
def test_sections_apply_as_they_do_in_ros(
    load: Any, section: str, reaches: bool, tmp_path: Path
) -> None:
    file = tmp_path / 'given.yaml'
    file.write_text(yaml.dump({section: {'ros__parameters': {'rate': 5.0}}}))
    node, parameters = load(Sample, file)
    assert (parameters.rate == 5.0) == reaches == applies(section, node.get_fully_qualified_name())


FOR_NODE, FOR_ALL = '/cell/excitation: {ros__parameters: {a: 1}}', '/**: {ros__parameters: {a: 1}}'
RENAME = "; write '/cell/excitation', or '/**' for every node"


@pytest.mark.parametrize(('lines', 'names'), [
    (['/excitation: {ros__parameters: {a: 1}}'], "'/excitation'"),  # of `ros2 param dump`
    (['excitation: {ros__parameters: {a: 1}}'], "'excitation'"),
    (['/cell/excitaton: {ros__parameters: {a: 1}}'], "'/cell/excitaton'"),
    (['cell: {excitation_node: {ros__parameters: {a: 1}}}'], "'cell/excitation_node'"),
    (['cell: {ros__parameters: {excitation: {a: 1}}}'], "'cell'"),
    (['/arm_driver: {ros__parameters: {a: 1}}', '/gripper: {ros__parameters: {a: 1}}'],
     "'/arm_driver', '/gripper'"),
    ([FOR_ALL, '/excitation: {ros__parameters: {a: 1}}'], "'/excitation'"),
    ([FOR_ALL, '/left: {Excitation: {ros__parameters: {a: 1}}}'], "'/left/Excitation'"),
    ([''], 'an empty file'),
])
def test_parameter_files_that_miss_the_node_are_refused(
    lines: list[str], names: str, tmp_path: Path
) -> None:
    file = tmp_path / 'given.yaml'
    file.write_text('\n'.join(lines))
    with pytest.raises(UsageError) as refused:
        refuse_misplaced('/cell/excitation', ['node', '--ros-args', '--params-file', str(file)])
    assert str(refused.value) == (f'parameter file {file}: ROS does not apply {names} to the node '
                                  f'/cell/excitation{RENAME}')


@pytest.mark.parametrize('lines', [
    [FOR_NODE], [FOR_ALL], ['/*/excitation: {ros__parameters: {a: 1}}'],
    [FOR_NODE, '/excitation: {ros__parameters: {a: 1}}'],  # each of two arms has its section
    [FOR_ALL, '/arm_driver: {ros__parameters: {excitation: {a: 1}}}'],
])
def test_sections_of_other_nodes_may_stand_beside_those_of_the_node(
    lines: list[str], tmp_path: Path
) -> None:
    file = tmp_path / 'given.yaml'
    file.write_text('\n'.join(lines))
    refuse_misplaced('/cell/excitation', [
        'node', '--params-file', 'of the program itself', '--ros-args', '-p', 'rate:=5.0',
        '--params-file', str(file), '-p', 'names:=["a:b"]', '--', '--params-file', 'as before'])


def test_a_parameter_for_another_node_is_refused() -> None:
    given = ['node', '--ros-args', '-r', '__ns:=/cell', '-p', 'excitation:speed_scale:=0.1']
    with pytest.raises(UsageError) as refused:
        refuse_misplaced('/cell/excitation', given)
    assert str(refused.value) == (
        "parameter 'excitation:speed_scale:=0.1': ROS does not apply 'excitation' to the node "
        '/cell/excitation; leave out the name of the node')
    refuse_misplaced('/excitation', given)


def test_ranges_are_described_and_hold(load: Any) -> None:
    node, _ = load()
    rate, count = (node.describe_parameter(name) for name in ('rate', 'count'))
    (range_,) = rate.floating_point_range
    assert (range_.from_value, range_.to_value) == (1.0, 50.0)
    (range_,) = count.integer_range
    assert (range_.from_value, range_.to_value) == (1, 9)
    assert rate.additional_constraints == '1 to 50 Hz' and count.read_only
    assert node.set_parameters([Parameter('rate', value=7)])[0].successful
    assert not node.set_parameters([Parameter('rate', value=70.0)])[0].successful


@pytest.mark.parametrize('value', [0.5, 51, float('nan')])
def test_numbers_beyond_their_range_are_named(load: Any, value: float) -> None:
    with pytest.raises(UsageError, match='parameter rate: must be'):
        load(rate=value)
