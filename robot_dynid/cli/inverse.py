"""`robot-dynid inverse`: efforts of a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.states import (
    add_state_arguments,
    external_of,
    read_model_and_states,
    show_rows,
    write_rows,
)

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'compute joint efforts from position, velocity and acceleration'
EXAMPLES = (
    'robot-dynid inverse M.yaml states.csv --out efforts.csv',
    'robot-dynid inverse M.yaml states.csv --ripple --json',
)
CHANNELS = ('position', 'velocity', 'acceleration')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_state_arguments(parser, CHANNELS)
    parser.add_argument('--ripple', action='store_true',
                        help='with torque ripple: positions are measured ones, not planned ones')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Evaluate the model; efforts are N m (N) on the joint side."""
    from robot_dynid.identified.caution import stiff_leaves_out, usable

    model, states = read_model_and_states(arguments, CHANNELS, 'effort')
    q, qd, qdd = states
    external = external_of(arguments, model, q)
    effort = model.inverse(q, qd, qdd, ripple=arguments.ripple, external=external)
    warnings = [*stiff_leaves_out(model), *model.trained.warnings(
        model.robot, dict(zip(CHANNELS, states, strict=True)))]
    if arguments.out:
        write_rows(arguments.out, model.joints, {'effort': effort})
    return {'ok': usable(model, arguments.accept_partial),
            'joints': model.joints, 'effort': effort.tolist(), 'out': arguments.out,
            'not_identified': model.not_identified, 'warnings': warnings}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a CSV table, unless it went into a file."""
    if result['not_identified']:
        terminal.caution(f'not identified: {", ".join(result["not_identified"])}')
    for text in result['warnings']:
        terminal.caution(text)
    if not result['out']:
        show_rows(result['joints'], {'effort': result['effort']})
