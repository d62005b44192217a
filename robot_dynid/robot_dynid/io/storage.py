"""Read raw messages of a bag of any storage: a folder, or one .mcap, .db3 or .bag file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import Damaged, TooLarge, budget, open_regular, unpacked
from robot_dynid.io.bag_writer import LOSSES
from robot_dynid.io.cdr import Batch
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.io.messages.kinds import MESSAGE_BYTES, MESSAGE_KINDS
from robot_dynid.io.messages.rosbag1 import rosbag1_batches
from robot_dynid.io.recording_names import METADATA, read_metadata
from robot_dynid.io.sqlite import joined_batch, sqlite_batches

#: readers of storage files of rosbag2, and of all bags that are one file
STORED = {'.mcap': mcap_batches, '.db3': sqlite_batches}
READERS = {**STORED, '.bag': rosbag1_batches}
#: compressions of rosbag2, of whole files and of messages, and their suffix
ZSTD, SUFFIX = 'zstd', '.zstd'
#: largest number of files of a bag
FILES = 10_000
#: disk space that unpacking leaves free [bytes]
RESERVE = 1 << 30


def bag_batches(
    path: Path, contents: Contents, kinds: Collection[str] | None = tuple(MESSAGE_KINDS)
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of a bag folder or file, of all topics of ``kinds``, or wanted.

    None: of all topics. Raises DataError if it is not a bag.
    """
    if not os.path.exists(path):
        raise DataError(f'{path}: no such file or folder')
    if os.path.isdir(path):
        yield from _folder(path, kinds, contents)
    elif path.suffix in READERS:
        yield from READERS[path.suffix](path, kinds, contents)
    else:
        raise DataError(f'{path}: not a bag; expected a folder, or a .mcap, .db3 or .bag file')


def _folder(
    folder: Path, kinds: Collection[str] | None, contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield the messages of all storage files, and check metadata.yaml against them."""
    info = _metadata(folder, contents)
    custom = info.get('custom_data')
    if isinstance(custom, dict) and custom.get(LOSSES):
        contents.findings.append(clipped(f'recording: {custom[LOSSES]}', 2000))
    by_message = _by_message(info, folder)
    damages = contents.damages
    for file in _storage_files(folder, info, contents):
        with _plain(file, contents) as plain:
            for topic, batch in STORED[plain.suffix](plain, kinds, contents):
                yield topic, _inflated(topic, batch, contents) if by_message else batch
    if not contents.whole or contents.damages > damages:
        return  # reported already
    _compare(info, contents)


def _storage_files(folder: Path, info: Mapping[str, Any], contents: Contents) -> list[Path]:
    """Return the storage files in order of recording."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(FILES + 1), strict=False)]
    except OSError as error:
        raise DataError(f'{folder}: cannot be read ({error.strerror})') from None
    if len(names) > FILES:
        raise DataError(f'{folder}: has more than {FILES} files; is it a bag?')
    there = sorted((name for name in names if _storage(name)), key=split_number)
    named = _named(info, contents)
    absent = [name for name in named if name not in names]
    if absent:
        contents.damaged(f'files named in metadata.yaml are missing: {", ".join(absent)}')
    ordered = dict.fromkeys([name for name in named if name in there] + there)
    files = [folder / name for name in ordered if _inside(folder, name, contents)]
    if not files:
        raise DataError(f'{folder}: not a bag: the folder has no .mcap and no .db3 file')
    return files


def _storage(name: str) -> bool:
    return Path(name.removesuffix(SUFFIX)).suffix in STORED


def _named(info: Mapping[str, Any], contents: Contents) -> list[str]:
    """Return the files in metadata.yaml, without the folder that old ones contain."""
    paths = info.get('relative_file_paths') or []
    names = []
    for path in paths if isinstance(paths, list) else [paths]:
        pure = PurePosixPath(path) if isinstance(path, str) else PurePosixPath('/')
        if pure.is_absolute() or len(pure.parts) > 2 or '..' in pure.parts or not pure.name:
            contents.damaged(f'metadata.yaml names {clipped(repr(path))}, which is not a file of '
                             'the bag, and was not read')
        else:
            names.append(pure.name)
    return names


def _inside(folder: Path, name: str, contents: Contents) -> bool:
    """Return True if a file lies in the folder; report links that leave it."""
    try:
        inside = (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        inside = False
    if not inside:
        contents.damaged(f'{name} is a link out of the folder and was not read')
    return inside


def split_number(path: str | Path) -> tuple[int, str]:
    """Return the sort key of the files of a bag in order of recording."""
    name = Path(path).name
    number = Path(name.removesuffix(SUFFIX)).stem.rpartition('_')[2]
    return (int(number) if number.isdecimal() else 0, name)


def _metadata(folder: Path, contents: Contents) -> dict[str, Any]:
    if not os.path.lexists(folder / METADATA):
        contents.findings.append(
            'metadata.yaml is missing (crash while recording?); the storage was read directly; '
            f'robot-dynid repair {folder} writes it')
        return {}
    info = read_metadata(folder)
    if info is None:
        contents.findings.append('metadata.yaml is damaged; the storage was read directly')
    return info or {}


def _by_message(info: Mapping[str, Any], folder: Path) -> bool:
    """Return True if messages are compressed one by one; raises DataError for other formats."""
    mode, form = (info.get(f'compression_{key}') or '' for key in ('mode', 'format'))
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode in ('', 'none'):
        return False
    if mode not in ('file', 'message') or form != ZSTD:
        raise DataError(f'{folder}: compressed as {clipped(f"{form} by {mode}")}; zstd by file or '
                        'message is read')
    return bool(mode == 'message')


@contextmanager
def _plain(file: Path, contents: Contents) -> Iterator[Path]:
    """Unpack a compressed storage file to a temporary one while it is read.

    Raises DataError if it does not fit.
    """
    if file.suffix != SUFFIX:
        yield file
        return
    with TemporaryDirectory(prefix='robot_dynid_') as place, \
            open_regular(file, DataError) as packed:
        plain = Path(place) / file.stem
        size = os.fstat(packed.fileno()).st_size
        limit = min(budget(size), max(shutil.disk_usage(place).free - RESERVE, 0))
        try:
            with plain.open('xb') as out:
                for piece in unpacked(packed, ZSTD, limit):
                    out.write(piece)
        except TooLarge as error:
            raise DataError(f'{file}: {error}; unpack it by hand if it is a recording') from None
        except Damaged as damage:
            contents.whole = False
            contents.damaged(f'{file.name}: {damage}; what lies before was read')
        except OSError as error:
            raise DataError(f'{file}: cannot be unpacked in {place} ({error.strerror})') from None
        yield plain


def _inflated(topic: str, batch: Batch, contents: Contents) -> Batch:
    """Decompress messages that were compressed one by one; damaged ones become empty."""
    data, bad = [], 0
    raw = batch.buffer.data
    for start, size in zip(batch.starts.tolist(), batch.sizes.tolist(), strict=True):
        try:
            packed = BytesIO(raw[start:start + size])
            data.append(b''.join(unpacked(packed, ZSTD, MESSAGE_BYTES)))
        except Damaged:
            data.append(b'')
            bad += 1
    if bad:
        contents.damaged(f'{clipped(topic)}: {bad} messages do not decompress and were left out')
    return joined_batch(batch.received.tolist(), data)


def _compare(info: Mapping[str, Any], contents: Contents) -> None:
    """Compare counts and times in metadata.yaml with the messages read."""
    try:
        counts = {topic['topic_metadata']['name']: topic['message_count']
                  for topic in info['topics_with_message_count']}
        first = info['starting_time']['nanoseconds_since_epoch']
        times = first, first + info['duration']['nanoseconds']
        total = info['message_count']
        other = [topic for topic, count in contents.counts.items() if counts.get(topic) != count]
    except (KeyError, TypeError):
        if info:
            contents.findings.append('metadata.yaml has no message count')
        return
    if other or total != contents.messages:
        contents.damaged(
            f'it has {contents.messages} messages, {clipped(str(total))} by metadata.yaml; '
            + (f'other numbers on {clipped(", ".join(other))}' if other else ''))
    elif contents.messages and times != (contents.first, contents.last):
        contents.findings.append('metadata.yaml and the messages differ in their receive times')
