"""Client of the checklist action of an excitation node, for programs that run no node."""

from __future__ import annotations

from typing import Any

from robot_dynid.ros.common.action_caller import calling
from robot_dynid_interfaces.action import Check

LEVELS = ('OK', 'WARN', 'ERROR')


def checklist(node: str, timeout: float) -> dict[str, Any]:
    """Return the checklist of an excitation ``node``: ok, message and items.

    Raises DynIdError when it does not answer within ``timeout`` s.
    """
    with calling(Check, f'{node}/check', timeout) as caller:
        found = caller.called(Check.Goal())
    return {'ok': bool(found.success), 'message': found.message, 'items': [{
        'name': item.name, 'level': LEVELS[item.level[0]], 'message': item.message,
        'values': {pair.key: pair.value for pair in item.values}} for item in found.items]}
