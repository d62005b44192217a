"""`robot-dynid forward`: accelerations of a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.states import (
    add_state_arguments,
    read_model_and_states,
    show_rows,
    write_rows,
)

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'compute joint accelerations from position, velocity and effort'
CHANNELS = ('position', 'velocity', 'effort')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_state_arguments(parser, CHANNELS)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Evaluate the model; effort is N m (N) on the joint side."""
    model, (position, velocity, effort) = read_model_and_states(arguments, CHANNELS)
    acceleration = model.forward(position, velocity, effort)
    if arguments.out:
        write_rows(arguments.out, 'acceleration', model.joints, acceleration)
    return {'joints': model.joints, 'acceleration': acceleration.tolist(), 'out': arguments.out,
            'not_identified': model.not_identified}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a CSV table, unless it went into a file."""
    if result['not_identified']:
        terminal.note(f'not identified: {", ".join(result["not_identified"])}', style='yellow')
    if not result['out']:
        show_rows('acceleration', result['joints'], result['acceleration'])
