"""Node parameters: one frozen dataclass per node, one loader for all of them.

A node declares dataclasses whose fields have defaults of type bool, int, float, str, or tuple of
one of these. It calls ``refuse_unknown(node, ItsDataclass)``, then
``load_parameters(node, ItsDataclass)`` once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, field, fields
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from robot_dynid.errors import UsageError
from robot_dynid.files import read_text
from robot_dynid.numbers import RANGE, NumberRange, shown
from robot_dynid.ros.common.rclpy_compat import parameter_overrides
from robot_dynid.yaml_text import load_yaml

Struct = TypeVar('Struct')
KINDS = {bool: Parameter.Type.BOOL, int: Parameter.Type.INTEGER, float: Parameter.Type.DOUBLE,
         str: Parameter.Type.STRING}
LISTS = {bool: Parameter.Type.BOOL_ARRAY, int: Parameter.Type.INTEGER_ARRAY,
         float: Parameter.Type.DOUBLE_ARRAY, str: Parameter.Type.STRING_ARRAY}
#: begin of the names of parameters that rclpy declares when an entity asks for them
OF_RCLPY = 'qos_overrides.'
#: key below which a section of a parameter file has its parameters
PARAMETERS = 'ros__parameters'
#: from this ratio on a section is likely to mean the node, by a name that is misspelt
SIMILAR = 0.75


def parameter(
    default: Any, description: str, *, choices: tuple[Any, ...] = (), element: type = float,
    live: bool = False, allowed: NumberRange | None = None,
) -> Any:
    """Return a dataclass field with what ``ros2 param describe`` shall say.

    ``choices`` lists the values allowed, ``allowed`` is the range of a number, ``element`` the
    type inside a tuple, ``live`` marks a parameter that may be set while the node runs.
    """
    ranged = {} if allowed is None else {RANGE: allowed}
    return field(default=default, metadata={
        **ranged,
        'description': description, 'choices': choices, 'element': element, 'live': live,
    })


def refuse_unknown(node: Node, *structs: type[Any]) -> None:
    """Raise UsageError naming the parameters given to ``node`` that no field of ``structs`` is.

    Sections of a parameter file for other nodes do not count, nor do parameters of rclpy itself;
    but a file of which nothing is for this node does, see `refuse_misplaced`.
    """
    refuse_misplaced(node.get_fully_qualified_name(), sys.argv)
    known = [entry.name for struct in structs for entry in fields(struct)]
    unknown = [name for name in parameter_overrides(node) if name not in known
               and not node.has_parameter(name) and not name.startswith(OF_RCLPY)]
    if not unknown:
        return
    told = []
    for name in unknown:
        nearest = get_close_matches(name, known, 1, 0.0)
        told.append(f'{shown(name)} (nearest known: {nearest[0]})')
    raise UsageError(
        f'node {node.get_fully_qualified_name()} has no parameter {", ".join(told)}; correct or '
        'remove it in the parameter file, the launch file or after -p')


def refuse_misplaced(node: str, arguments: Sequence[str]) -> None:
    """Raise UsageError for parameters among the arguments of a process that miss its ``node``.

    ROS ignores sections whose name does not match, and the defaults would be used unnoticed. A
    parameter file, and a parameter after -p with a node name, needs a section for the node
    (`applies`). Where that is for many nodes (/**), no other may have the name of the node in
    another namespace, or one like it.
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
    """Return parameter files and parameters of named nodes: source, sections, what to write."""
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
    """Return the names of the sections of a parameter file, which may lie inside namespaces."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == PARAMETERS:
            yield name
        else:
            yield from _sections(value, f'{name}/{key}' if name else str(key))


def load_parameters(node: Node, struct: type[Struct]) -> Struct:
    """Declare every field of ``struct`` on ``node`` and return the values given.

    Whole numbers pass where a float is expected. Raises UsageError naming the parameter, its
    value and what is allowed.
    """
    given, values = parameter_overrides(node), dict[str, Any]()
    for entry in fields(struct):  # type: ignore[arg-type]
        value = given.get(entry.name, entry.default)
        values[entry.name] = check_parameter(struct, entry.name, value)
        _declare(node, entry, values[entry.name])
    return struct(**values)


def _declare(node: Node, entry: Field[Any], value: Any) -> None:
    """Declare a parameter of the type of its field, which an empty list does not tell."""
    meta, is_list = entry.metadata, isinstance(entry.default, tuple)
    kind = LISTS[meta.get('element', float)] if is_list else KINDS[type(entry.default)]
    live = bool(meta.get('live', False))
    descriptor = ParameterDescriptor(
        type=kind.value, description=str(meta.get('description', '')), read_only=not live,
        dynamic_typing=live,  # the node converts whole numbers itself
        additional_constraints=_constraints(meta))
    allowed = meta.get(RANGE)
    if allowed is not None and kind is Parameter.Type.DOUBLE:
        descriptor.floating_point_range = [FloatingPointRange(
            from_value=float(allowed.low), to_value=float(allowed.high))]
    elif allowed is not None and kind is Parameter.Type.INTEGER:
        descriptor.integer_range = [IntegerRange(
            from_value=int(allowed.low), to_value=int(allowed.high))]
    node.declare_parameter(entry.name, kind, ignore_override=True)
    node.set_parameters([Parameter(entry.name, kind, list(value) if is_list else value)])
    node.set_descriptor(entry.name, descriptor)


def check_parameter(struct: type, name: str, given: Any) -> Any:
    """Return ``given`` as the type of the field ``name``; raises UsageError when it does not fit.

    For callbacks on live parameters too.
    """
    entry = next(f for f in fields(struct) if f.name == name)
    value = _converted(given, entry.default, entry.metadata.get('element', float))
    choices, allowed = entry.metadata.get('choices', ()), entry.metadata.get(RANGE)
    if value is None:
        kind = type(entry.default).__name__
        if isinstance(entry.default, tuple):
            kind = f'list of {entry.metadata.get("element", float).__name__}'
        span = '' if allowed is None else f' (range {allowed})'
        raise UsageError(f'parameter {name}: must be {kind}, is {given!r}{span}')
    if choices and value not in choices:
        raise UsageError(f'parameter {name}: {given!r}; choose one of '
                         f'{", ".join(map(str, choices))}')
    if allowed is not None:
        for one in value if isinstance(value, tuple) else (value,):
            allowed.read(one, f'parameter {name}:')
    return value


def _constraints(meta: Mapping[str, Any]) -> str:
    """Return the values allowed as text."""
    choices = meta.get('choices', ())
    return f'one of {", ".join(map(str, choices))}' if choices else str(meta.get(RANGE, ''))


def _converted(given: Any, default: Any, element: type) -> Any:
    """Return ``given`` in the type of ``default``, or None when it is of another type."""
    if isinstance(default, tuple):
        if given is None:  # rcl reads [] as a parameter without value
            return ()
        if isinstance(given, (str, bytes)) or not hasattr(given, '__iter__'):
            return None
        items = [_scalar(item, element) for item in given]
        return None if None in items else tuple(items)
    return _scalar(given, type(default))


def _scalar(given: Any, kind: type) -> Any:
    if kind is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given) if abs(given) < 2**63 else None  # that of ROS
    return given if type(given) is kind else None
