"""States and results of `forward` and `inverse` as CSV tables."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import add_accept_partial, check_outputs, load_model
from robot_dynid.files import atomic_write

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.types import FloatArray

#: channels of results, in the order in which they are written
RESULTS = ('acceleration', 'motor_acceleration', 'effort', 'motor_position', 'motor_velocity')


def add_state_arguments(
    parser: argparse.ArgumentParser, channels: Sequence[str], more: str = ''
) -> None:
    """Declare model, states and output; ``more`` names further columns."""
    columns = ', '.join([*(f'{name}.<joint>' for name in channels), *([more] if more else []),
                         'with external wrenches wrench.<link>.fx to .tz'])
    parser.add_argument('model', metavar='M.yaml', help='identified model')
    parser.add_argument('states', metavar='STATES.csv', help=f'states; columns {columns}')
    parser.add_argument('--robot', help='check that the model belongs to this robot')
    parser.add_argument('--out', metavar='OUT.csv', help='write the result there')
    add_accept_partial(parser)


def read_model_and_states(
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


def evaluated(
    arguments: argparse.Namespace, model: IdentifiedModel, states: Mapping[str, FloatArray],
    found: Mapping[str, FloatArray], warnings: Iterable[str],
) -> dict[str, Any]:
    """Write what was ``found``, (K, n) by channel, where asked for; return it with warnings."""
    from robot_dynid.identified.caution import usable
    from robot_dynid.robot.implausible import beyond_limits

    if arguments.out:
        write_rows(arguments.out, model.joints, found)
    return {'ok': usable(model, arguments.accept_partial), 'joints': model.joints,
            **{name: rows.tolist() for name, rows in found.items()},
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(_columns(values, joints))
    for parts in zip(*values.values(), strict=True):
        writer.writerow([f'{value:.17g}' for row in parts for value in row])
    return text.getvalue()


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a CSV table for other programs, unless it went into a file."""
    if result['not_identified']:
        terminal.caution(f'not identified: {", ".join(result["not_identified"])}')
    for text in result['warnings']:
        terminal.caution(text)
    if not result['out']:
        sys.stdout.write(_table(result['joints'], {
            name: result[name] for name in RESULTS if name in result}))
