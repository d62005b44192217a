"""Purposes of recordings: to fit a model, or to judge it by.

A bag says so in the custom data of its metadata.yaml (`ros2 bag record --custom-data
purpose=validation` writes the same); of tables, and of bags whose recorder was killed, the name
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robot_dynid.io.object_store import is_remote
from robot_dynid.io.recording_names import STORAGES, TABLES, custom_data
from robot_dynid.signals.windows import file_of
from robot_dynid.types import FIT, PURPOSES, VALIDATION

#: key in the custom data of a bag
PURPOSE = 'purpose'
#: ends the names of trajectories and recordings to judge by
ENDING = f'_{VALIDATION}'


def beside(file: str | Path) -> Path:
    """Return the name of a file about the motion to judge by, beside that of the motion to fit."""
    place = Path(file)
    return place.with_name(f'{place.stem}{ENDING}{place.suffix}')


def by_purpose(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the recordings to fit a model to, and those to judge it by.

    Where all are to judge by, whoever names them means to fit them.
    """
    judged = [path for path in paths if _purpose(path) == VALIDATION]
    fitted = [path for path in paths if path not in judged]
    return (fitted, judged) if fitted else (judged, [])


def _purpose(path: str) -> str:
    """Return the purpose that metadata, or else the name of a recording states."""
    file = Path(file_of(path))
    if not is_remote(path):
        folder = file.parent if file.name.endswith(STORAGES) else file
        stated = custom_data(folder).get(PURPOSE)
        if stated in PURPOSES:
            return str(stated)
    stem = next((file.name.removesuffix(end) for end in (*TABLES, *STORAGES)
                 if file.name.endswith(end)), file.name)
    return VALIDATION if stem.endswith(ENDING) else FIT
