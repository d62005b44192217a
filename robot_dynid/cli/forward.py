"""`robot-dynid forward`: accelerations of a model."""

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

HELP = 'compute joint accelerations from position, velocity and effort'
EXAMPLES = (
    'robot-dynid forward M.yaml states.csv',
    'robot-dynid forward M.yaml states.csv --out accelerations.csv',
)
CHANNELS = ('position', 'velocity', 'effort')
MOTORS = ('motor_position', 'motor_velocity')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_state_arguments(parser, CHANNELS, 'with elastic joints also ' + ', '.join(
        f'{name}.<joint>' for name in MOTORS))


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Evaluate the model; effort is N m (N) on the joint side."""
    import numpy as np

    from robot_dynid.identified.caution import states_leave_out, stiff_leaves_out, usable
    from robot_dynid.robot.beyond_limits import beyond_limits

    model, states = read_model_and_states(arguments, CHANNELS, 'acceleration', MOTORS)
    q, qd, effort, *motors = states
    external, given = external_of(arguments, model, q), bool(motors)
    elastic = model.elastic_joints
    warnings = [*(states_leave_out if given else stiff_leaves_out)(model)]
    found = {}
    if elastic and given:
        found['acceleration'], found['motor_acceleration'] = model.forward_elastic(
            q, qd, effort, motors[0], motors[1], external)
    else:
        found['acceleration'] = model.forward(q, qd, effort, external)
        stiff = f'elastic joints {", ".join(elastic)} are taken as stiff: there are no columns '
        warnings += [stiff + ', '.join(f'{name}.<joint>' for name in MOTORS)] if elastic else []
        warnings += ['all joints of the model are rigid: the columns of motors are not used'] \
            if given else []
    whole = usable(model, arguments.accept_partial)
    if not whole:  # all joints move together
        found = {name: np.full_like(rows, np.nan) for name, rows in found.items()}
    warnings += [*beyond_limits(model.robot, q, qd), *model.trained.warnings(
        model.robot, dict(zip(CHANNELS, states, strict=False),
                          acceleration=found['acceleration']))]
    if arguments.out:
        write_rows(arguments.out, model.joints, found)
    return {'ok': whole,
            'joints': model.joints, **{name: rows.tolist() for name, rows in found.items()},
            'out': arguments.out, 'not_identified': model.not_identified, 'warnings': warnings}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a CSV table, unless it went into a file."""
    if result['not_identified']:
        terminal.caution(f'not identified: {", ".join(result["not_identified"])}')
    for text in result['warnings']:
        terminal.caution(text)
    if not result['out']:
        show_rows(result['joints'], {name: result[name] for name in
                                     ('acceleration', 'motor_acceleration') if name in result})
