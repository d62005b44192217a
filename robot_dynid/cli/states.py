"""States and results of `forward` and `inverse` as CSV tables."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from robot_dynid.cli.files import add_accept_partial, check_outputs, load_model
from robot_dynid.files import atomic_write

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.types import FloatArray

Rows = Sequence[Sequence[float]]


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
) -> tuple[IdentifiedModel, tuple[FloatArray, ...]]:
    """Return the model and one (K, n) array per channel, and ``optional`` ones where given.

    ``result`` is the first channel of what will be written.
    """
    from robot_dynid.io.csv import header_mark, read_states

    check_outputs((arguments.out, None), inputs=(
        arguments.model, arguments.states, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    if arguments.out:
        check_outputs((arguments.out, header_mark(columns_of((result,), model.joints))))
    return model, read_states(arguments.states, tuple(model.joints), channels, optional)


def external_of(
    arguments: argparse.Namespace, model: IdentifiedModel, position: FloatArray
) -> FloatArray | None:
    """Return the torque (K, n) of the wrenches in the states, None where there are none."""
    from robot_dynid.io.wrenches import read_wrenches

    return read_wrenches(arguments.states, model.robot, position)


def write_rows(path: str, joints: Sequence[str], values: Mapping[str, FloatArray]) -> None:
    """Write (K, n) values by channel as a table with the columns ``<channel>.<joint>``."""
    from robot_dynid.io.csv import header_mark

    table = _table(joints, {name: rows.tolist() for name, rows in values.items()})
    atomic_write(path, table, header_mark(columns_of(values, joints)))


def columns_of(channels: Iterable[str], joints: Sequence[str]) -> list[str]:
    """Return the header of a table of results."""
    return [f'{channel}.{joint}' for channel in channels for joint in joints]


def show_rows(joints: Sequence[str], values: Mapping[str, Rows]) -> None:
    """Print the same table, to be read by other programs."""
    sys.stdout.write(_table(joints, values))


def _table(joints: Sequence[str], values: Mapping[str, Rows]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(columns_of(values, joints))
    for parts in zip(*values.values(), strict=True):
        writer.writerow([f'{value:.17g}' for row in parts for value in row])
    return text.getvalue()
