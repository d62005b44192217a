"""Node parameters: one frozen dataclass per node, one loader for all of them.

A node declares a dataclass whose fields have defaults of type bool, int, float, str, or tuple of
one of these, and calls ``load_parameters(node, ItsDataclass)`` once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from robot_dynid.errors import UsageError
from robot_dynid.numbers import RANGE, NumberRange

Struct = TypeVar('Struct')


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


def load_parameters(node: Node, struct: type[Struct]) -> Struct:
    """Declare every field of ``struct`` on ``node`` and return the values given.

    Whole numbers pass where a float is expected. Raises UsageError naming the parameter, its
    value and what is allowed.
    """
    values: dict[str, Any] = {}
    for entry in fields(struct):  # type: ignore[arg-type]
        meta = entry.metadata
        descriptor = ParameterDescriptor(
            description=str(meta.get('description', '')), dynamic_typing=True,
            read_only=not meta.get('live', False),
            additional_constraints=_constraints(entry.metadata),
        )
        default = entry.default
        given = node.declare_parameter(entry.name, _declared(default), descriptor).value
        values[entry.name] = check_parameter(struct, entry.name, given)
    return struct(**values)


def check_parameter(struct: type, name: str, given: Any) -> Any:
    """Return ``given`` as the type of the field ``name``; raises UsageError when it does not fit.

    For callbacks on live parameters too.
    """
    entry = next(f for f in fields(struct) if f.name == name)
    value = _converted(given, entry.default, entry.metadata.get('element', float))
    choices = entry.metadata.get('choices', ())
    if value is None:
        kind = type(entry.default).__name__
        if isinstance(entry.default, tuple):
            kind = f'list of {entry.metadata.get("element", float).__name__}'
        raise UsageError(f'parameter {name}: must be {kind}, is {given!r}')
    if choices and value not in choices:
        raise UsageError(f'parameter {name}: {given!r}; choose one of '
                         f'{", ".join(map(str, choices))}')
    allowed = entry.metadata.get(RANGE)
    if allowed is not None:
        for one in value if isinstance(value, tuple) else (value,):
            allowed.read(one, f'parameter {name}:')
    return value


def _constraints(meta: Mapping[str, Any]) -> str:
    """Return the values allowed as text."""
    choices = meta.get('choices', ())
    return f'one of {", ".join(map(str, choices))}' if choices else str(meta.get(RANGE, ''))


def _declared(default: Any) -> Any:
    """Return a default rclpy can type; an empty list has no type there, so it is left unset."""
    if isinstance(default, tuple):
        return list(default) if default else None
    return default


def _converted(given: Any, default: Any, element: type) -> Any:
    """Return ``given`` in the type of ``default``, or None when it is of another type."""
    if isinstance(default, tuple):
        if given is None:
            return default
        if isinstance(given, (str, bytes)) or not hasattr(given, '__iter__'):
            return None
        items = [_scalar(item, element) for item in given]
        return None if None in items else tuple(items)
    return _scalar(given, type(default))


def _scalar(given: Any, kind: type) -> Any:
    if kind is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given) if abs(given) < 2**63 else None  # that of ROS
    return given if type(given) is kind else None
