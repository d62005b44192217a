"""The loader of node parameters: types, defaults, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip('rclpy')

import rclpy
from rclpy.parameter import Parameter

from robot_dynid.errors import UsageError
from robot_dynid.ros.common.params import load_parameters, parameter

pytestmark = pytest.mark.ros


@dataclass(frozen=True)
class Sample:
    rate: float = parameter(10.0, 'Hz')
    count: int = 3
    loud: bool = False
    mode: str = parameter('slow', 'how', choices=('slow', 'fast'), live=True)
    gains: tuple[float, ...] = parameter((), 'per joint')
    names: tuple[str, ...] = parameter(('a', 'b'), 'joints', element=str)


@pytest.fixture
def load(ros_domain: int) -> Iterator[Any]:
    """Return a function that starts a node with overrides: (node, parameters)."""
    context = rclpy.Context()
    rclpy.init(context=context)
    nodes: list[Any] = []

    def loaded(**given: Any) -> tuple[Any, Sample]:
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        node = rclpy.create_node(f'node_{len(nodes)}', context=context,
                                 parameter_overrides=overrides)
        nodes.append(node)
        return node, load_parameters(node, Sample)

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
    ('rate', 'quick', "parameter rate: must be float, is 'quick'"),
    ('rate', True, 'parameter rate: must be float, is True'),
    ('count', 1.5, 'parameter count: must be int, is 1.5'),
    ('mode', 'middling', "parameter mode: 'middling'; choose one of slow, fast"),
    ('gains', ['a'], 'gains: must be list of float'),
    ('names', 'a', "parameter names: must be list of str, is 'a'"),
])
def test_wrong_values_are_named(load: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(**{name: value})


def test_only_live_parameters_may_change(load: Any) -> None:
    node, _ = load()
    assert node.set_parameters([Parameter('mode', value='fast')])[0].successful
    assert not node.set_parameters([Parameter('count', value=9)])[0].successful
