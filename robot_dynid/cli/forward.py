"""`robot-dynid forward`: accelerations of a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.states import add_state_arguments, evaluated, read_model_and_states, show

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

__all__ = ['EXAMPLES', 'HELP', 'add_arguments', 'run', 'show']
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

    model, states, external = read_model_and_states(arguments, CHANNELS, 'acceleration', MOTORS)
    q, qd, effort, *motors = states
    warnings = [*(states_leave_out if motors else stiff_leaves_out)(model)]
    elastic, found = model.elastic_joints, {}
    if elastic and motors:
        found['acceleration'], found['motor_acceleration'] = model.forward_elastic(
            q, qd, effort, motors[0], motors[1], external)
    else:
        found['acceleration'] = model.forward(q, qd, effort, external)
        stiff = f'elastic joints {", ".join(elastic)} are taken as stiff: there are no columns '
        warnings += [stiff + ', '.join(f'{name}.<joint>' for name in MOTORS)] if elastic else []
        warnings += ['all joints of the model are rigid: the columns of motors are not used'] \
            if motors else []
    if not usable(model, arguments.accept_partial):  # all joints move together
        found = {name: np.full_like(rows, np.nan) for name, rows in found.items()}
    seen = dict(zip(CHANNELS, states, strict=False), acceleration=found['acceleration'])
    return evaluated(arguments, model, seen, found, warnings)
