"""Recordings by what names them: folders, patterns and lists, of this machine and of stores."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.files import read_text
from robot_dynid.io.object_store import below, is_remote, matching
from robot_dynid.signals.windows import file_of
from robot_dynid.yaml_text import load_yaml

#: endings of recordings that are tables, and of the storage files of bags; in the folder of a bag
TABLES, STORAGES, METADATA = ('.csv', '.csv.gz'), ('.mcap', '.db3'), 'metadata.yaml'
#: begins the name of a file with a recording on every line
LIST = '@'


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
                         f'{", ".join((*TABLES, *STORAGES))} files and rosbag2 folders')
    return inside


def _in_store(word: str) -> list[str]:
    """Return the recordings in a folder of a store; the word where it names no folder, or a bag.

    Objects whose names say that they are recordings are not asked for.
    """
    if file_of(word).endswith((*TABLES, *STORAGES)) or (objects := below(word)) is None:
        return [word]
    bags = {one.rpartition('/')[0] for one in objects if one.endswith(f'/{METADATA}')}
    found = [next((bag for bag in bags if one.startswith(f'{bag}/')), one) for one in objects
             if one.endswith((*TABLES, *STORAGES))]
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
    found = matching(pattern) if is_remote(pattern) else sorted(glob(pattern, recursive=True))
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


def custom_data(bag: Path) -> dict[str, Any]:
    """Return the custom data in the metadata of a bag, empty where there is none."""
    try:
        about = load_yaml(read_text(bag / METADATA), METADATA, UsageError)
        found = about['rosbag2_bagfile_information'].get('custom_data')
    except (UsageError, TypeError, KeyError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def recordings_in(folder: str | Path) -> list[str]:
    """Return the recordings in a folder and in those below it, by name."""
    found: list[str] = []
    for entry in sorted(Path(folder).iterdir()):
        if entry.is_dir():
            found += [str(entry)] if is_bag(entry) else recordings_in(entry)
        elif entry.name.endswith((*TABLES, *STORAGES)) and not entry.name.startswith('.'):
            found.append(str(entry))
    return found
