"""`robot-dynid inverse`: efforts of a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.states import add_state_arguments, evaluated, read_model_and_states, show

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

__all__ = ['EXAMPLES', 'HELP', 'add_arguments', 'run', 'show']
HELP = 'compute joint efforts from position, velocity and acceleration'
EXAMPLES = (
    'robot-dynid inverse M.yaml states.csv --out efforts.csv',
    'robot-dynid inverse M.yaml states.csv --ripple --json',
    'robot-dynid inverse elastic.yaml motion.csv --dt 0.001 --out drives.csv',
)
CHANNELS = ('position', 'velocity', 'acceleration')


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
    from robot_dynid.identified.caution import stiff_leaves_out, without_refused

    model, states, external = read_model_and_states(arguments, CHANNELS, 'effort')
    q, qd, qdd = states
    warnings, found = list[str](), {}
    if arguments.dt is None:
        warnings = [*stiff_leaves_out(model)]
        if model.elastic_joints:
            warnings.append(f'elastic joints {", ".join(model.elastic_joints)} are taken as '
                            'stiff: with --dt SECONDS, the states being one motion, their gears '
                            'bend')
        effort = model.inverse(q, qd, qdd, ripple=arguments.ripple, external=external)
    else:
        drive = model.inverse_elastic(q, qd, qdd, arguments.dt, external)
        effort = drive.effort
        found = {'motor_position': drive.position, 'motor_velocity': drive.velocity}
    return evaluated(arguments, model, dict(zip(CHANNELS, states, strict=True)),
                     {'effort': without_refused(model, effort), **found}, warnings)
