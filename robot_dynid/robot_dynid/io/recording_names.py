"""Find recordings by folders, patterns and lists, local or in object stores.

Object stores, such as s3://bucket/run.mcap, are accessed through fsspec. The purpose of a
recording, fit or validation, is in the custom data of its metadata.yaml (`ros2 bag record
--custom-data purpose=validation`), or in its name for tables and for bags of a crashed recorder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from robot_dynid.errors import DataError, MissingDependency, UsageError
from robot_dynid.files import read_text
from robot_dynid.io.tables.opened import TABLE_FILES
from robot_dynid.signals.windows import file_of
from robot_dynid.types import FIT, PURPOSES, VALIDATION
from robot_dynid.yaml_text import load_yaml

#: endings of recordings that are tables, and of the storage files of bags; in the folder of a bag
TABLES, STORAGES, METADATA = ('.csv', '.csv.gz'), ('.mcap', '.db3'), 'metadata.yaml'
#: endings of bags that are one file: storage files of rosbag2, and bags of ROS 1
BAGS = (*STORAGES, '.bag')
#: largest metadata.yaml [bytes]
METADATA_BYTES = 4_000_000
#: prefix of a file that lists one recording per line
LIST = '@'
#: separates the protocol of an object store from the path
REMOTE = '://'
#: key of the purpose in the custom data of a bag
PURPOSE = 'purpose'
#: suffix of trajectories and recordings for validation
ENDING = f'_{VALIDATION}'


def is_remote(word: str) -> bool:
    """Return True if a word names something in an object store."""
    return REMOTE in word


@contextmanager
def store_of(path: str) -> Iterator[tuple[Any, str]]:
    """Provide an object store and a path in it; its errors become those of this package.

    Raises MissingDependency without the library of the store, DataError if it does not respond.
    """
    try:
        import fsspec
    except ImportError:
        raise MissingDependency.of('object stores need fsspec', 'fleet') from None
    try:
        yield fsspec.core.url_to_fs(path)
    except FileNotFoundError:
        raise UsageError(f'{path}: no such object') from None
    except (ImportError, ValueError) as error:
        raise MissingDependency(f'{path}: {error}') from None
    except Exception as error:  # stores have errors of their own kinds
        raise DataError(f'{path}: cannot be read: {error}') from None


def listed(words: Sequence[str]) -> list[str]:
    """Return the recordings named by folders, patterns with * or ?, and lists, @list.txt.

    Other words are returned unchanged. Raises UsageError if one of them names none.
    """
    return [path for word in words for path in _listed(word)]


def _listed(word: str) -> list[str]:
    if word.startswith(LIST):
        return listed(lines(word))
    if is_pattern(word):
        return [path for one in matches(word) for path in (
            _listed(one) if is_remote(one) or not is_recording(one) else [one])]
    if is_recording(word) and not is_remote(word):
        return [word]
    inside = _in_store(word) if is_remote(word) else recordings_in(word)
    if not inside:
        raise UsageError(f'{word}: no recording in this folder; recordings are '
                         f'{", ".join((*TABLES, *BAGS))} files and rosbag2 folders; select other '
                         f'tables by a pattern such as {word}/*.txt')
    return inside


def _in_store(word: str) -> list[str]:
    """Return the recordings in a folder of a store, or the word if it is no folder, or a bag.

    Objects named like recordings are not queried.
    """
    if file_of(word).endswith((*TABLES, *BAGS)):
        return [word]
    with store_of(word) as (store, place):
        if not store.isdir(place):
            return [word]
        objects = sorted(map(store.unstrip_protocol, store.find(place)))
    bags = {one.rpartition('/')[0] for one in objects if one.endswith(f'/{METADATA}')}
    recordings = [next((bag for bag in bags if one.startswith(f'{bag}/')), one) for one in objects
                  if one.endswith((*TABLES, *BAGS))]
    return list(dict.fromkeys(recordings))


def lines(word: str) -> list[str]:
    """Return the lines of a list, @list.txt, relative to its folder.

    Raises UsageError if they name nothing, or other lists.
    """
    file = Path(word.removeprefix(LIST))
    stripped = [line.strip() for line in read_text(file).splitlines()]
    named = [line for line in stripped if line and not line.startswith('#')]
    if not named:
        raise UsageError(f'{word}: empty; write one recording per line')
    if any(line.startswith(LIST) for line in named):
        raise UsageError(f'{word}: a list names recordings, not other lists')
    return [line if is_remote(line) else str(file.parent / line) for line in named]


def is_pattern(word: str) -> bool:
    """Return True if a word is a pattern with * or ?."""
    return '*' in word or '?' in word


def matches(pattern: str) -> list[str]:
    """Return files and folders that match a pattern, sorted; raises UsageError without any."""
    if is_remote(pattern):
        with store_of(pattern) as (store, place):
            paths = sorted(map(store.unstrip_protocol, store.glob(place)))
    else:
        paths = sorted(glob(pattern, recursive=True))
    if not paths:
        raise UsageError(f'{pattern}: no recording matches')
    return paths


def is_recording(path: str | Path) -> bool:
    """Return True if a path is a recording: a file, or a bag."""
    return not Path(path).is_dir() or is_bag(Path(path))


def is_bag(folder: Path) -> bool:
    """Return True if a folder is a rosbag2 bag, also without metadata."""
    if (folder / METADATA).is_file():
        return True
    entries = sorted(folder.iterdir())
    storages = [one for one in entries if one.name.endswith(STORAGES)]
    others = [one for one in entries if one.is_dir() or one.name.endswith(TABLES)]
    return bool(storages) and not others and (
        len(storages) == 1 or any(s.name.startswith(f'{folder.name}_') for s in storages))


def read_metadata(bag: Path) -> dict[str, Any] | None:
    """Return the content of metadata.yaml of a bag, None if it cannot be read."""
    try:
        text = read_text(bag / METADATA, DataError, DataError, METADATA_BYTES)
        information = load_yaml(text, METADATA, DataError)['rosbag2_bagfile_information']
    except (DataError, TypeError, KeyError):
        return None
    return information if isinstance(information, dict) else None


def custom_data(bag: Path) -> dict[str, Any]:
    """Return the custom data in the metadata of a bag, empty if there are none."""
    data = (read_metadata(bag) or {}).get('custom_data')
    return data if isinstance(data, dict) else {}


def recordings_in(folder: str | Path) -> list[str]:
    """Return the recordings in a folder and its subfolders, sorted."""
    recordings: list[str] = []
    for entry in sorted(Path(folder).iterdir()):
        if entry.is_dir():
            recordings += [str(entry)] if is_bag(entry) else recordings_in(entry)
        elif entry.name.endswith((*TABLES, *BAGS)) and not entry.name.startswith('.'):
            recordings.append(str(entry))
    return recordings


def for_validation(file: str | Path) -> Path:
    """Return the name of the validation file that belongs to a file for the fit."""
    place = Path(file)
    return place.with_name(f'{place.stem}{ENDING}{place.suffix}')


def by_purpose(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the recordings for the fit, and those for validation.

    If all are marked for validation they are used for the fit.
    """
    judged = [path for path in paths if _purpose(path) == VALIDATION]
    fitted = [path for path in paths if path not in judged]
    return (fitted, judged) if fitted else (judged, [])


def _purpose(path: str) -> str:
    """Return the purpose of a recording from its metadata, or else its name."""
    file = Path(file_of(path))
    if not is_remote(path):
        folder = file.parent if file.name.endswith(STORAGES) else file
        stated = custom_data(folder).get(PURPOSE)
        if stated in PURPOSES:
            return str(stated)
    stem = next((file.name.removesuffix(end) for end in (*TABLE_FILES, *BAGS)
                 if file.name.endswith(end)), file.name)
    return VALIDATION if stem.endswith(ENDING) else FIT
