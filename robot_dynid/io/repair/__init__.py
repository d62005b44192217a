"""Bags that were never closed, as after a crash: finished so that every rosbag2 reader opens them.

The new storage file grows beside the old one and takes its name once it is whole and on the disk;
the old one stays under a name that ends with UNREPAIRED.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from robot_dynid.errors import DataError, UsageError
from robot_dynid.files import atomic_write, atomic_writer, open_regular, read_text, set_aside
from robot_dynid.io.bag_writer import STORAGES
from robot_dynid.io.mcap import MAGIC, Contents, mcap_batches
from robot_dynid.io.repair.bag_information import (
    StorageInformation,
    bag_information,
    merged_topics,
)
from robot_dynid.io.repair.mcap_file import finish_mcap
from robot_dynid.io.repair.sqlite_file import finished_sqlite
from robot_dynid.io.sqlite import JOURNALS
from robot_dynid.io.storage import METADATA_BYTES, SUFFIX, split_number
from robot_dynid.types import Progress
from robot_dynid.yaml_text import load_yaml, yaml_text

UNREPAIRED = '.unrepaired'
KINDS = dict(zip(('.mcap', '.db3'), STORAGES, strict=True))
#: a file that changed less than RECENT s ago may be growing: it is looked at again after PAUSE s
RECENT, PAUSE = 2.0, 1.0


@dataclass(frozen=True)
class Repair:
    """Content of a bag after its repair: ``messages`` by topic, ``lost_bytes`` and why.

    ``written`` are the files that were made, ``kept`` the ones they replaced, under new names.
    """

    messages: dict[str, int]
    lost_bytes: int
    findings: tuple[str, ...]
    written: tuple[str, ...]
    kept: tuple[str, ...]


class _Nothing:
    """Takes what is not to be written."""

    def write(self, data: bytes, /) -> int:
        return len(data)


def repair_bag(path: str | Path, progress: Progress | None = None) -> Repair:
    """Finish a bag folder, or a single storage file; nothing is changed where nothing has to be.

    Raises DataError when it is no bag, is still being recorded, or holds files that were
    compressed as a whole; UsageError where an earlier original is in the way; DynIdError when
    the disk is full.
    """
    place, progress = Path(path), progress or (lambda *_: None)
    files = _files(place)
    storage = KINDS[files[0].suffix]
    written: list[str] = []
    kept: list[str] = []
    found: list[StorageInformation] = []
    for number, file in enumerate(files):
        progress(file.name, number / len(files))
        finish = _finished_mcap if storage == STORAGES[0] else _finished_sqlite
        found.append(finish(file, kept))
        if not found[-1].sound:
            written.append(str(file))
    if place.is_dir():
        _metadata(place, storage, found, written, kept)
    topics = merged_topics(found)
    return Repair({topic.name: topic.messages for topic in topics},
                  sum(file.lost for file in found),
                  tuple(f'{file.name}: {one}' for file in found for one in file.findings),
                  tuple(written), tuple(kept))


def _files(place: Path) -> list[Path]:
    """Return the storage files of a bag in order of recording."""
    if not os.path.lexists(place):
        raise DataError(f'{place}: no such file or folder')
    try:
        there = sorted(place.iterdir() if place.is_dir() else [place], key=split_number)
    except OSError as error:
        raise DataError(f'{place}: cannot be read ({error.strerror})') from None
    packed = [file.name for file in there if file.name.endswith(SUFFIX)]
    if packed:
        raise DataError(f'{place}: {packed[0]} is compressed as a whole; unpack such files first '
                        '(zstd -d --rm)')
    files = [file for file in there if file.suffix in KINDS]
    if not files:
        raise DataError(f'{place}: not a bag; expected a folder with .mcap or .db3 files, or one '
                        'such file')
    if len({file.suffix for file in files}) > 1:
        raise DataError(f'{place}: has .mcap and .db3 files; a bag has one kind, so take the '
                        'others out')
    return files


def _require_rest(file: Path) -> int:
    """Return the size of a file. Raises DataError when it is growing."""
    with open_regular(file, DataError) as opened:
        before = os.fstat(opened.fileno())
    if abs(time.time() - before.st_mtime) < RECENT:
        time.sleep(PAUSE)
    _require_size(file, before.st_size)
    return before.st_size


def _require_size(file: Path, size: int) -> None:
    if file.stat().st_size != size:
        raise DataError(f'{file}: is growing: end the recording first, or the program that writes '
                        'it')


def _finished_mcap(file: Path, kept: list[str]) -> StorageInformation:
    size, contents = _require_rest(file), Contents()
    for _ in mcap_batches(file, (), contents):
        pass
    with open_regular(file, DataError) as source:
        source.seek(-min(len(MAGIC), os.fstat(source.fileno()).st_size), os.SEEK_END)
        closed = source.read() == MAGIC
        if closed and contents.whole and not contents.told:
            return finish_mcap(source, file.name, _Nothing())
        backup = _backup(file)
        with atomic_writer(file, keep=backup.name) as out:
            found = finish_mcap(source, file.name, out)
            _require_size(file, size)
    found.sound = False
    kept.append(str(backup))
    return found


def _finished_sqlite(file: Path, kept: list[str]) -> StorageInformation:
    size = _require_rest(file)
    with finished_sqlite(file) as (base, found):
        if found.sound:
            return found
        backup = _backup(file)
        journals = [Path(f'{file}{end}') for end in JOURNALS]
        moved = {journal: _backup(journal) for journal in journals if journal.is_file()}
        with open_regular(base, DataError) as source, \
                atomic_writer(file, keep=backup.name) as out:
            shutil.copyfileobj(source, out)
            _require_size(file, size)
    kept.append(str(backup))
    for journal, name in moved.items():  # SQLite would take them for those of the new file
        set_aside(journal, name.name)
        kept.append(str(name))
    with suppress(FileNotFoundError):
        os.unlink(f'{file}-shm')  # holds places in the -wal only
    return found


def _backup(file: Path) -> Path:
    """Return the name that the original gets. Raises UsageError when it is taken."""
    backup = file.with_name(f'{file.name}{UNREPAIRED}')
    if os.path.lexists(backup):
        raise UsageError(f'{backup}: is there from an earlier repair; move it away first')
    return backup


def _metadata(folder: Path, storage: str, found: list[StorageInformation], written: list[str],
              kept: list[str]) -> None:
    """Write metadata.yaml where it is missing, unreadable, or not of these files."""
    file = folder / 'metadata.yaml'
    wanted = bag_information(storage, found)
    there = os.path.lexists(file)
    if there and not written and _agrees(file, wanted):
        return
    if there:
        backup = _backup(file)
        with atomic_writer(file, keep=backup.name) as out:
            out.write(yaml_text(wanted).encode())
        kept.append(str(backup))
    else:
        atomic_write(file, yaml_text(wanted))
    written.append(str(file))


def _agrees(file: Path, wanted: dict[str, dict[str, object]]) -> bool:
    """Return whether metadata.yaml names these files and numbers of messages."""
    try:
        text = read_text(file, DataError, DataError, METADATA_BYTES)
        info = load_yaml(text, str(file), DataError)['rosbag2_bagfile_information']
        names = [Path(str(one)).name for one in info['relative_file_paths']]
        return (names, info['message_count']) == tuple(
            wanted['rosbag2_bagfile_information'][key]
            for key in ('relative_file_paths', 'message_count'))
    except (DataError, TypeError, KeyError):
        return False
