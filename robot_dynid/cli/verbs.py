"""The verbs of the command: those of this package, and those that other packages add."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Protocol

from robot_dynid.registry import Registry

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

#: group of entry points by which packages add verbs: the name of each, and its module
GROUP = 'robot_dynid.verbs'


class Verb(Protocol):
    """A module with one verb; importing it must be cheap.

    ``NAMES`` may hold, by argument, the names of which it is one, or the registry that has them
    ('module:NAME').
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
VERBS: Registry[Verb] = Registry(GROUP, {
    name: EntryPoint(name, f'robot_dynid.cli.{name}', GROUP) for name in (
        'base', 'design', 'identify', 'validate', 'compare', 'forward', 'inverse', 'export',
        'payload', 'contact', 'information', 'repair',
        'init', 'doctor', 'check', 'completion')})
