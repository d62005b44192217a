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
    'robot-dynid inverse elastic.yaml motion.csv --dt 0.001 --out drives.csv',
)
CHANNELS = ('position', 'velocity', 'acceleration')
FOUND = ('effort', 'motor_position', 'motor_velocity')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_state_arguments(parser, CHANNELS)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument('--ripple', action='store_true',
                      help='with torque ripple: positions are measured ones, not planned ones')
    kind.add_argument('--dt', type=float, metavar='SECONDS',
                      help='the states are one motion of the links, so far apart: gears of '
                           'elastic joints bend, motors move (motor_position, motor_velocity), '
                           'and effort is what they need')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Evaluate the model; efforts are N m (N) on the joint side."""
    from robot_dynid.identified.caution import stiff_leaves_out, usable, without_refused
    from robot_dynid.robot.beyond_limits import beyond_limits

    model, states = read_model_and_states(arguments, CHANNELS, 'effort')
    q, qd, qdd = states
    external = external_of(arguments, model, q)
    elastic = ', '.join(model.elastic_joints)
    if arguments.dt is None:
        warnings = [*stiff_leaves_out(model), *([
            f'elastic joints {elastic} are taken as stiff: with --dt SECONDS, the states being '
            'one motion, their gears bend'] if elastic else [])]
        effort = model.inverse(q, qd, qdd, ripple=arguments.ripple, external=external)
        found = {}
    else:
        warnings = []
        drive = model.inverse_elastic(q, qd, qdd, arguments.dt, external)
        effort = drive.effort
        found = {'motor_position': drive.position, 'motor_velocity': drive.velocity}
    found = {'effort': without_refused(model, effort), **found}
    warnings += [*beyond_limits(model.robot, q, qd), *model.trained.warnings(
        model.robot, dict(zip(CHANNELS, states, strict=True)))]
    if arguments.out:
        write_rows(arguments.out, model.joints, found)
    return {'ok': usable(model, arguments.accept_partial),
            'joints': model.joints, **{name: rows.tolist() for name, rows in found.items()},
            'out': arguments.out, 'not_identified': model.not_identified, 'warnings': warnings}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a CSV table, unless it went into a file."""
    if result['not_identified']:
        terminal.caution(f'not identified: {", ".join(result["not_identified"])}')
    for text in result['warnings']:
        terminal.caution(text)
    if not result['out']:
        show_rows(result['joints'], {name: result[name] for name in FOUND if name in result})
