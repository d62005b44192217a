"""Node parameters: the settings of frozen dataclasses, declared, checked and kept up to date."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.files import read_text
from robot_dynid.numbers import shown
from robot_dynid.ros.common.rclpy_compat import parameter_overrides
from robot_dynid.settings import Setting, settings_of
from robot_dynid.yaml_text import load_yaml

KINDS = {bool: Parameter.Type.BOOL, int: Parameter.Type.INTEGER, float: Parameter.Type.DOUBLE,
         str: Parameter.Type.STRING}
LISTS = {bool: Parameter.Type.BOOL_ARRAY, int: Parameter.Type.INTEGER_ARRAY,
         float: Parameter.Type.DOUBLE_ARRAY, str: Parameter.Type.STRING_ARRAY}
#: prefix of the parameters that rclpy declares when an entity asks for them
OF_RCLPY = 'qos_overrides.'
#: key of the parameters in a section of a parameter file
PARAMETERS = 'ros__parameters'
#: similarity from which on a section is taken for a misspelt name of the node
SIMILAR = 0.75


def load_parameters(node: Node, *structs: type[Any]) -> list[Any]:
    """Declare the settings of all ``structs`` on ``node``; return one object of each.

    Raises UsageError for a parameter that none of them has, for one given to another node by
    mistake, and for a value out of range.
    """
    refuse_misplaced(node.get_fully_qualified_name(), sys.argv)
    given = parameter_overrides(node)
    names = [name for struct in structs for name in settings_of(struct)]
    unknown = [name for name in given if name not in names
               and not node.has_parameter(name) and not name.startswith(OF_RCLPY)]
    if unknown:
        nearest = ', '.join(f'{shown(name)} (nearest known: '
                            f'{get_close_matches(name, names, 1, 0.0)[0]})' for name in unknown)
        raise UsageError(
            f'node {node.get_fully_qualified_name()} has no parameter {nearest}; correct or '
            'remove it in the parameter file, the launch file or after -p')
    loaded = []
    for struct in structs:
        values = {name: read_parameter(one, name, given.get(name, one.default))
                  for name, one in settings_of(struct).items()}
        for name, one in settings_of(struct).items():
            _declare(node, name, one, values[name])
        loaded.append(struct(**values))
    return loaded


def read_parameter(one: Setting, name: str, value: Any) -> Any:
    """Return the value of a parameter; rcl reads an empty list as None. Raises UsageError."""
    empty = value is None and isinstance(one.default, tuple)
    return one.read(() if empty else value, f'parameter {name}:')


def follow_changes(
    node: Node, struct: type[Any], take: Callable[[dict[str, Any]], None]
) -> None:
    """Pass the values of parameters that are set while the node runs to ``take``."""
    def changed(changes: list[Parameter]) -> SetParametersResult:
        settings = settings_of(struct)
        try:
            take({change.name: read_parameter(settings[change.name], change.name, change.value)
                  for change in changes if change.name in settings})
        except DynIdError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(changed)


def _declare(node: Node, name: str, one: Setting, value: Any) -> None:
    """Declare a parameter of the type of its setting, which an empty list does not show."""
    is_list = isinstance(one.default, tuple)
    kind = (LISTS if is_list else KINDS)[one.kind]
    descriptor = ParameterDescriptor(
        type=kind.value, description=one.help, read_only=not one.live,
        dynamic_typing=one.live,  # the node converts whole numbers itself
        additional_constraints=one.allowed)
    if one.range is not None and kind is Parameter.Type.DOUBLE:
        descriptor.floating_point_range = [FloatingPointRange(
            from_value=float(one.range.low), to_value=float(one.range.high))]
    elif one.range is not None and kind is Parameter.Type.INTEGER:
        descriptor.integer_range = [IntegerRange(
            from_value=int(one.range.low), to_value=int(one.range.high))]
    node.declare_parameter(name, kind, ignore_override=True)
    node.set_parameters([Parameter(name, kind, list(value) if is_list else value)])
    node.set_descriptor(name, descriptor)


def refuse_misplaced(node: str, arguments: Sequence[str]) -> None:
    """Raise UsageError for parameters among the arguments of a process that miss its ``node``.

    ROS ignores sections whose name does not match, so the defaults would be used silently. A
    parameter file, and a parameter after -p with a node name, needs a section for the node
    (`applies`). If that section is for many nodes (/**), no other section may have the name of the
    node in another namespace, or a similar name.
    """
    base = node.rpartition('/')[2]
    for source, sections, remedy in _given_sections(arguments, node):
        fitting = [section for section in sections if applies(section, node)]
        if any('*' not in section for section in fitting):
            continue
        near = [section for section in sections if section not in fitting and get_close_matches(
            section.rpartition('/')[2].lower(), [base], 1, SIMILAR)]
        if near or not fitting:
            names = ', '.join(map(shown, near or sections)) or 'an empty file'
            raise UsageError(f'{source}: ROS does not apply {names} to the node {node}; {remedy}')


def applies(section: str, node: str) -> bool:
    """Return whether ROS gives parameters of a ``section`` to the fully qualified name ``node``.

    The wildcard * stands for one name, ** for any number of them.
    """
    pattern = '/' + section.removeprefix('/')
    return re.fullmatch(pattern.replace('/*', r'(/\w+)'), node, re.ASCII) is not None


def _given_sections(
    arguments: Sequence[str], node: str
) -> Iterator[tuple[str, list[str], str]]:
    """Return parameter files and parameters of named nodes: source, sections, remedy."""
    of_ros = False
    for flag, value in pairwise(arguments):
        of_ros = (of_ros or flag == '--ros-args') and flag != '--'
        if of_ros and flag == '--params-file':
            yield f'parameter file {value}', list(_sections(load_yaml(
                read_text(value), value, UsageError))), f"write '{node}', or '/**' for every node"
        elif of_ros and flag in ('-p', '--param'):
            section, colon, _ = value.partition(':=')[0].rpartition(':')
            if colon:
                yield f'parameter {shown(value)}', [section], 'leave out the name of the node'


def _sections(content: Any, name: str = '') -> Iterator[str]:
    """Return the names of the sections of a parameter file, also inside namespaces."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == PARAMETERS:
            yield name
        else:
            yield from _sections(value, f'{name}/{key}' if name else str(key))
