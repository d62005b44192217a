"""The verbs of the command: those of this package, and those that other packages add."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast

from robot_dynid.errors import MissingDependency

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

#: group of entry points by which packages add verbs: the name of each, and its module
GROUP = 'robot_dynid.verbs'


class Verb(Protocol):
    """A module with one verb; importing it must be cheap.

    ``NAMES`` may hold, by argument, the names of which it is one.
    """

    HELP: str
    #: commands that show its use
    EXAMPLES: Sequence[str]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
        """Do it and return the result; ``ok`` false in it means exit code 1."""

    def show(self, result: dict[str, Any], terminal: Terminal) -> None:
        """Print the result for people."""


#: the module of every verb
VERBS = {
    **{name: f'robot_dynid.cli.{name}' for name in (
        'base', 'design', 'identify', 'validate', 'compare', 'forward', 'inverse', 'export',
        'payload', 'contact', 'resonance', 'information', 'fleet', 'repair',
        'init', 'doctor', 'check', 'session', 'completion')},
    **{entry.name: entry.value for entry in entry_points(group=GROUP)},
}


def verb_module(name: str) -> Verb:
    """Return the module of a verb; raises MissingDependency where its package is absent."""
    package = VERBS[name].partition('.')[0]
    try:
        return cast(Verb, import_module(VERBS[name]))
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingDependency(f'{name} needs the package {package}, which is not installed '
                                'here: install robot_dynid from its sources (pip install ., or '
                                'colcon build)') from None
