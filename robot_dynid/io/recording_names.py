"""Recordings by what names them: folders, patterns and lists, of this machine and of stores.

Object stores have names like s3://bucket/run.mcap and are asked through fsspec. A recording is
to fit a model, or to judge it by. A bag says so in the custom data of its metadata.yaml (`ros2 bag
record --custom-data purpose=validation` writes the same); of tables, and of bags whose recorder
was killed, the name does.
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
#: begins the name of a file with a recording on every line
LIST = '@'
#: between the protocol and the place of a recording in an object store
REMOTE = '://'
#: key of the purpose in the custom data of a bag
PURPOSE = 'purpose'
#: ends the names of trajectories and recordings to judge by
ENDING = f'_{VALIDATION}'


def is_remote(word: str) -> bool:
    """Return whether a word names something in an object store."""
    return REMOTE in word


@contextmanager
def store_of(path: str) -> Iterator[tuple[Any, str]]:
    """Give an object store and a place in it; its errors are those of this package.

    Raises MissingDependency without the library of the store, DataError where it does not answer.
    """
    try:
        import fsspec
    except ImportError:
        raise MissingDependency.of('object stores need fsspec', 'fleet') from None
    try:
        yield fsspec.core.url_to_fs(path)
    except FileNotFoundError:
        raise UsageError(f'{path}: there is no such object') from None
    except (ImportError, ValueError) as error:
        raise MissingDependency(f'{path}: {error}') from None
    except Exception as error:  # stores have errors of their own kinds
        raise DataError(f'{path}: cannot be read: {error}') from None


def listed(words: Sequence[str]) -> list[str]:
    """Return recordings: those of folders, of patterns with * or ?, and of lists, @list.txt.

    Others stay as they are. Raises UsageError where one of them holds none.
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
        raise UsageError(f'{word}: there is no recording in this folder; recordings are '
                         f'{", ".join((*TABLES, *BAGS))} files and rosbag2 folders; name '
                         f'tables of other kinds by a pattern such as {word}/*.txt')
    return inside


def _in_store(word: str) -> list[str]:
    """Return the recordings in a folder of a store; the word where it names no folder, or a bag.

    Objects whose names say that they are recordings are not asked for.
    """
    if file_of(word).endswith((*TABLES, *BAGS)):
        return [word]
    with store_of(word) as (store, place):
        if not store.isdir(place):
            return [word]
        objects = sorted(map(store.unstrip_protocol, store.find(place)))
    bags = {one.rpartition('/')[0] for one in objects if one.endswith(f'/{METADATA}')}
    found = [next((bag for bag in bags if one.startswith(f'{bag}/')), one) for one in objects
             if one.endswith((*TABLES, *BAGS))]
    return list(dict.fromkeys(found))


def lines(word: str) -> list[str]:
    """Return the words on the lines of a list, @list.txt, relative to its folder.

    Raises UsageError where they name nothing, or other lists.
    """
    file = Path(word.removeprefix(LIST))
    stripped = [line.strip() for line in read_text(file).splitlines()]
    named = [line for line in stripped if line and not line.startswith('#')]
    if not named:
        raise UsageError(f'{word}: names no recording; it wants one on every line')
    if any(line.startswith(LIST) for line in named):
        raise UsageError(f'{word}: a list names recordings, not other lists')
    return [line if is_remote(line) else str(file.parent / line) for line in named]


def is_pattern(word: str) -> bool:
    """Return whether a word is a pattern with * or ?."""
    return '*' in word or '?' in word


def matches(pattern: str) -> list[str]:
    """Return files and folders whose names match, in order; raises UsageError without any."""
    if is_remote(pattern):
        with store_of(pattern) as (store, place):
            found = sorted(map(store.unstrip_protocol, store.glob(place)))
    else:
        found = sorted(glob(pattern, recursive=True))
    if not found:
        raise UsageError(f'{pattern}: no recording has such a name')
    return found


def is_recording(path: str | Path) -> bool:
    """Return whether a path is no folder of recordings: a file, or a bag."""
    return not Path(path).is_dir() or is_bag(Path(path))


def is_bag(folder: Path) -> bool:
    """Return whether a folder is a rosbag2 bag, also one whose metadata was not written."""
    if (folder / METADATA).is_file():
        return True
    entries = sorted(folder.iterdir())
    storages = [one for one in entries if one.name.endswith(STORAGES)]
    others = [one for one in entries if one.is_dir() or one.name.endswith(TABLES)]
    return bool(storages) and not others and (
        len(storages) == 1 or any(s.name.startswith(f'{folder.name}_') for s in storages))


def read_metadata(bag: Path) -> dict[str, Any] | None:
    """Return the content of metadata.yaml of a bag, None where it cannot be read."""
    try:
        text = read_text(bag / METADATA, DataError, DataError, METADATA_BYTES)
        found = load_yaml(text, METADATA, DataError)['rosbag2_bagfile_information']
    except (DataError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) else None


def custom_data(bag: Path) -> dict[str, Any]:
    """Return the custom data in the metadata of a bag, empty where there is none."""
    found = (read_metadata(bag) or {}).get('custom_data')
    return found if isinstance(found, dict) else {}


def recordings_in(folder: str | Path) -> list[str]:
    """Return the recordings in a folder and in those below it, by name."""
    found: list[str] = []
    for entry in sorted(Path(folder).iterdir()):
        if entry.is_dir():
            found += [str(entry)] if is_bag(entry) else recordings_in(entry)
        elif entry.name.endswith((*TABLES, *BAGS)) and not entry.name.startswith('.'):
            found.append(str(entry))
    return found


def for_validation(file: str | Path) -> Path:
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
    stem = next((file.name.removesuffix(end) for end in (*TABLE_FILES, *BAGS)
                 if file.name.endswith(end)), file.name)
    return VALIDATION if stem.endswith(ENDING) else FIT
