"""Identification of the dynamics of robot manipulators, and the models that come out of it.

The names here load on first use, so that importing one part does not import all others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from robot_dynid.version import VERSION as __version__

if TYPE_CHECKING:
    from robot_dynid.identification.identify import identify
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.identification.validate import validate
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.io.log import load_log
    from robot_dynid.robot.robot_file import load_robot

__all__ = ['IdentifiedModel', 'Recipe', '__version__', 'identify', 'load_log', 'load_robot',
           'validate']

_HOMES = {
    'IdentifiedModel': 'identified.model', 'Recipe': 'identification.recipe',
    'identify': 'identification.identify', 'load_log': 'io.log', 'load_robot': 'robot.robot_file',
    'validate': 'identification.validate',
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'{__name__}.{_HOMES[name]}'), name)
