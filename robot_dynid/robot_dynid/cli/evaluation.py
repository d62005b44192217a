"""`robot-dynid forward` and `inverse`: accelerations and efforts of a model in given states."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import add_common, check_outputs, load_model
from robot_dynid.cli.verbs import Command
from robot_dynid.document import joints_named, listed
from robot_dynid.files import atomic_write

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.types import FloatArray

FORWARD_CHANNELS = ('position', 'velocity', 'effort')
MOTORS = ('motor_position', 'motor_velocity')
INVERSE_CHANNELS = ('position', 'velocity', 'acceleration')
#: channels of results, in the order in which they are written
RESULTS = ('acceleration', 'motor_acceleration', 'effort', 'motor_position', 'motor_velocity')


def _add_arguments(
    parser: argparse.ArgumentParser, channels: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Declare model, states and output; ``more`` names further columns."""
    columns = ', '.join([*(f'{name}.<joint>' for name in channels), *more,
                         'with external wrenches wrench.<link>.fx to .tz'])
    add_common(parser, 'model')
    parser.add_argument('states', metavar='STATES.csv', help=f'states; columns {columns}')
    add_common(parser, '--robot')
    parser.add_argument('--out', metavar='OUT.csv', help='file to write (default: print)')
    add_common(parser, '--accept-partial')


def _add_forward_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser, FORWARD_CHANNELS, ['with elastic joints also ' + ', '.join(
        f'{name}.<joint>' for name in MOTORS)])


def _add_inverse_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser, INVERSE_CHANNELS)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument('--ripple', action='store_true',
                      help='add torque ripple; needs measured, not planned, positions')
    kind.add_argument('--dt', type=float, metavar='SECONDS',
                      help='time between the states, taken as one motion: elastic gears deflect, '
                           'and motor_position and motor_velocity are added to the result')


def run_forward(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Return accelerations; effort is N m (N) on the joint side."""
    import numpy as np

    from robot_dynid.identified.caution import states_leave_out, stiff_leaves_out, usable

    model, states, external = _inputs(arguments, FORWARD_CHANNELS, 'acceleration', MOTORS)
    q, qd, effort, *motors = states
    warnings = [*(states_leave_out if motors else stiff_leaves_out)(model)]
    elastic, results = model.elastic_joints, {}
    if elastic and motors:
        results['acceleration'], results['motor_acceleration'] = model.forward_elastic(
            q, qd, effort, motors[0], motors[1], external)
    else:
        results['acceleration'] = model.forward(q, qd, effort, external)
        columns = listed(f'{name}.<joint>' for name in MOTORS)
        warnings += [f'{_stiff(elastic)} without columns {columns}'] if elastic else []
        warnings += ['the columns of motors are not used: all joints of the model are rigid'] \
            if motors else []
    if not usable(model, arguments.accept_partial):  # all joints move together
        results = {name: np.full_like(rows, np.nan) for name, rows in results.items()}
    ranges = dict(zip(FORWARD_CHANNELS, states, strict=False),
                  acceleration=results['acceleration'])
    return _outputs(arguments, model, ranges, results, warnings)


def run_inverse(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Return efforts, N m (N) on the joint side."""
    from robot_dynid.identified.caution import stiff_leaves_out, without_refused

    model, states, external = _inputs(arguments, INVERSE_CHANNELS, 'effort')
    q, qd, qdd = states
    warnings, motors = list[str](), {}
    if arguments.dt is None:
        warnings = [*stiff_leaves_out(model)]
        if model.elastic_joints:
            warnings.append(f'{_stiff(model.elastic_joints)} without --dt SECONDS')
        effort = model.inverse(q, qd, qdd, ripple=arguments.ripple, external=external)
    else:
        drive = model.inverse_elastic(q, qd, qdd, arguments.dt, external)
        effort = drive.effort
        motors = {'motor_position': drive.position, 'motor_velocity': drive.velocity}
    return _outputs(arguments, model, dict(zip(INVERSE_CHANNELS, states, strict=True)),
                    {'effort': without_refused(model, effort), **motors}, warnings)


def _stiff(elastic: Sequence[str]) -> str:
    return f'elastic {joints_named(elastic)} {"is" if len(elastic) == 1 else "are"} taken as stiff'


def _inputs(
    arguments: argparse.Namespace, channels: tuple[str, ...], result: str,
    optional: tuple[str, ...] = (),
) -> tuple[IdentifiedModel, tuple[FloatArray, ...], FloatArray | None]:
    """Return the model, one (K, n) array per channel, and the torque (K, n) of wrenches.

    The arrays include ``optional`` channels where all are given; without wrenches the torque is
    None. ``result`` is the first channel of what will be written.
    """
    from robot_dynid.io.csv import header_mark, read_states, read_wrenches

    check_outputs((arguments.out, None), inputs=(
        arguments.model, arguments.states, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    if arguments.out:
        check_outputs((arguments.out, header_mark(_columns((result,), model.joints))))
    states = read_states(arguments.states, tuple(model.joints), channels, optional)
    return model, states, read_wrenches(arguments.states, model.robot, states[0])


def _outputs(
    arguments: argparse.Namespace, model: IdentifiedModel, states: Mapping[str, FloatArray],
    results: Mapping[str, FloatArray], warnings: Iterable[str],
) -> dict[str, Any]:
    """Write ``results``, (K, n) by channel, where asked for; return them with warnings."""
    from robot_dynid.identified.caution import usable
    from robot_dynid.robot.implausible import beyond_limits

    if arguments.out:
        write_rows(arguments.out, model.joints, results)
    return {'ok': usable(model, arguments.accept_partial), 'joints': model.joints,
            **{name: rows.tolist() for name, rows in results.items()},
            'out': arguments.out, 'not_identified': model.not_identified,
            'warnings': [*warnings,
                         *beyond_limits(model.robot, states['position'], states['velocity']),
                         *model.trained.warnings(model.robot, dict(states))]}


def write_rows(path: str, joints: Sequence[str], values: Mapping[str, FloatArray]) -> None:
    """Write (K, n) values by channel as a table with the columns ``<channel>.<joint>``."""
    from robot_dynid.io.csv import header_mark

    table = _table(joints, {name: rows.tolist() for name, rows in values.items()})
    atomic_write(path, table, header_mark(_columns(values, joints)))


def _columns(channels: Iterable[str], joints: Sequence[str]) -> list[str]:
    return [f'{channel}.{joint}' for channel in channels for joint in joints]


def _table(joints: Sequence[str], values: Mapping[str, Sequence[Sequence[float]]]) -> str:
    from robot_dynid.io.csv import header_line

    rows = (','.join(f'{value:.17g}' for row in parts for value in row)
            for parts in zip(*values.values(), strict=True))
    return '\n'.join([header_line(_columns(values, joints)), *rows, ''])


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a CSV table for other programs, unless it went into a file."""
    if result['not_identified']:
        terminal.caution(f'not identified: {", ".join(result["not_identified"])}')
    for text in result['warnings']:
        terminal.caution(text)
    if not result['out']:
        sys.stdout.write(_table(result['joints'], {
            name: result[name] for name in RESULTS if name in result}))


FORWARD = Command(
    'compute accelerations from position, velocity and effort', (
        'robot-dynid forward M.yaml states.csv',
        'robot-dynid forward M.yaml states.csv --out accelerations.csv'),
    _add_forward_arguments, run_forward, show)
INVERSE = Command(
    'compute efforts from position, velocity and acceleration', (
        'robot-dynid inverse M.yaml states.csv --out efforts.csv',
        'robot-dynid inverse M.yaml states.csv --ripple --json',
        'robot-dynid inverse elastic.yaml motion.csv --dt 0.001 --out drives.csv'),
    _add_inverse_arguments, run_inverse, show)
