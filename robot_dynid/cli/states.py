"""States and results of `forward` and `inverse` as CSV tables."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robot_dynid.cli.files import check_writable, load_model

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.types import FloatArray

Rows = Sequence[Sequence[float]]


def add_state_arguments(
    parser: argparse.ArgumentParser, channels: Sequence[str], more: str = ''
) -> None:
    """Declare model, states and output; ``more`` names further columns."""
    columns = ', '.join([*(f'{name}.<joint>' for name in channels), *([more] if more else [])])
    parser.add_argument('model', metavar='M.yaml', help='identified model')
    parser.add_argument('states', metavar='STATES.csv', help=f'states; columns {columns}')
    parser.add_argument('--robot', help='check that the model belongs to this robot')
    parser.add_argument('--out', metavar='OUT.csv', help='write the result there')


def read_model_and_states(
    arguments: argparse.Namespace, channels: tuple[str, ...], optional: tuple[str, ...] = ()
) -> tuple[IdentifiedModel, tuple[FloatArray, ...]]:
    """Return the model and one (K, n) array per channel, and ``optional`` ones where given."""
    from robot_dynid.io.csv import read_states

    check_writable(arguments.out)
    model = load_model(arguments.model, arguments.robot)
    return model, read_states(arguments.states, tuple(model.joints), channels, optional)


def write_rows(path: str, joints: Sequence[str], values: Mapping[str, FloatArray]) -> None:
    """Write (K, n) values by channel as a table with the columns ``<channel>.<joint>``."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        file.write(_table(joints, {name: rows.tolist() for name, rows in values.items()}))


def show_rows(joints: Sequence[str], values: Mapping[str, Rows]) -> None:
    """Print the same table, to be read by other programs."""
    sys.stdout.write(_table(joints, values))


def _table(joints: Sequence[str], values: Mapping[str, Rows]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow([f'{channel}.{joint}' for channel in values for joint in joints])
    for parts in zip(*values.values(), strict=True):
        writer.writerow([f'{value:.17g}' for row in parts for value in row])
    return text.getvalue()
