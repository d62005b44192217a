"""The verbs of the command: those of this package, and those that other packages add."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from robot_dynid.registry import Place, Registry

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

#: group of entry points by which packages add verbs: the name of each, and its module
GROUP = 'robot_dynid.verbs'


class Verb(Protocol):
    """A module with one verb, or a `Command`; importing it must be cheap.

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


@dataclass(eq=False)
class Command:
    """A verb in a module with others, of the same parts as `Verb`."""

    HELP: str
    EXAMPLES: Sequence[str]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Terminal], dict[str, Any]]
    show: Callable[[dict[str, Any], Terminal], None]
    NAMES: Mapping[str, Any] = field(default_factory=dict)


#: the place of every verb: a module of its name, or a command in another
VERBS: Registry[Verb] = Registry(GROUP, {
    name: Place(*f'robot_dynid.cli.{place or name}'.split(':')) for name, place in {
        'base': '', 'design': '', 'identify': '', 'validate': '', 'compare': 'validate:COMPARE',
        'forward': 'evaluation:FORWARD', 'inverse': 'evaluation:INVERSE', 'export': '',
        'payload': '', 'contact': '', 'information': 'recordings:INFORMATION',
        'repair': 'recordings:REPAIR', 'topics': 'recordings:TOPICS', 'init': 'doctor:INIT',
        'doctor': '', 'check': 'excite:CHECK', 'excite': '', 'stop': 'excite:STOP',
        'completion': ''}.items()})
