"""What `forward` and `inverse` share: states from a table, results as a table."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from robot_dynid.cli.files import check_writable, load_model

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.types import FloatArray


def add_state_arguments(parser: argparse.ArgumentParser, channels: Sequence[str]) -> None:
    """Declare model, states and output."""
    columns = ', '.join(f'{name}.<joint>' for name in channels)
    parser.add_argument('model', metavar='M.yaml', help='identified model')
    parser.add_argument('states', metavar='STATES.csv', help=f'states; columns {columns}')
    parser.add_argument('--robot', help='check that the model belongs to this robot')
    parser.add_argument('--out', metavar='OUT.csv', help='write the result there')


def read_model_and_states(
    arguments: argparse.Namespace, channels: tuple[str, ...]
) -> tuple[IdentifiedModel, tuple[FloatArray, ...]]:
    """Return the model and one (K, n) array per channel."""
    from robot_dynid.io.csv import read_states

    check_writable(arguments.out)
    model = load_model(arguments.model, arguments.robot)
    return model, read_states(arguments.states, tuple(model.joints), channels)


def write_rows(path: str, channel: str, joints: Sequence[str], values: FloatArray) -> None:
    """Write (K, n) values as a table with the columns ``<channel>.<joint>``."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        file.write(_table(channel, joints, values.tolist()))


def show_rows(channel: str, joints: Sequence[str], values: Iterable[Sequence[float]]) -> None:
    """Print the same table, to be read by other programs."""
    sys.stdout.write(_table(channel, joints, values))


def _table(channel: str, joints: Sequence[str], values: Iterable[Sequence[float]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow([f'{channel}.{joint}' for joint in joints])
    writer.writerows([f'{value:.17g}' for value in row] for row in values)
    return text.getvalue()
