"""Raw messages of a bag, whatever its storage: a folder, or one .mcap or .db3 file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.bag_writer import LOSSES
from robot_dynid.io.cdr import LEADING, Batch
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.io.sqlite import ROWS, joined_batch, sqlite_batches

READERS = {'.mcap': mcap_batches, '.db3': sqlite_batches}


def bag_batches(path: Path, contents: Contents) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) with joint states of a bag folder or storage file.

    Raises DataError when it is no bag.
    """
    if not path.exists():
        raise DataError(f'{path}: no such file or folder')
    files = _storage_files(path, contents) if path.is_dir() else [path]
    if files is None:
        yield from _compressed(path, contents)
        return
    for file in files:
        if file.suffix not in READERS:
            raise DataError(f'{file}: not a bag; expected a folder, a .mcap or a .db3 file')
        yield from READERS[file.suffix](file, LEADING, contents)


def _storage_files(folder: Path, contents: Contents) -> list[Path] | None:
    """Return the storage files in order of recording; None when rosbags must decompress them."""
    there = sorted((f for f in folder.iterdir() if f.suffix in READERS), key=_split_number)
    info = _metadata(folder, contents)
    custom = info.get('custom_data')
    if isinstance(custom, dict) and custom.get(LOSSES):
        contents.findings.append(clipped(f'recording: {custom[LOSSES]}', 2000))
    if info.get('compression_mode') and info.get('compression_format'):
        return None
    named = [folder / Path(name).name for name in info.get('relative_file_paths') or []]
    absent = [file.name for file in named if not file.exists()]
    if absent:
        contents.findings.append(f'files named in metadata.yaml are missing: {", ".join(absent)}')
    files = [file for file in named if file.exists()]
    files += [file for file in there if file not in files]
    if not files:
        raise DataError(f'{folder}: not a bag: the folder has no .mcap and no .db3 file')
    return files


def _split_number(file: Path) -> tuple[int, str]:
    number = file.stem.rpartition('_')[2]
    return (int(number) if number.isdecimal() else 0, file.name)


def _metadata(folder: Path, contents: Contents) -> dict[str, Any]:
    try:
        text = (folder / 'metadata.yaml').read_text('utf-8')
        return dict(yaml.safe_load(text)['rosbag2_bagfile_information'])
    except FileNotFoundError:
        contents.findings.append(
            'metadata.yaml is missing (crash while recording?); the storage was read directly'
        )
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError):
        contents.findings.append('metadata.yaml is damaged; the storage was read directly')
    return {}


def _compressed(path: Path, contents: Contents) -> Iterator[tuple[str, Batch]]:
    """Read a bag that rosbag2 compressed file by file or message by message."""
    from rosbags.rosbag2 import Reader
    from rosbags.rosbag2.errors import ReaderError

    try:
        with Reader(path) as reader:
            contents.topics |= {c.topic: c.msgtype for c in reader.connections}
            for connection in reader.connections:
                if connection.msgtype in LEADING:
                    messages = ((t, data) for _, t, data in reader.messages([connection]))
                    yield from ((connection.topic, b) for b in _joined(messages))
    except (ReaderError, OSError) as error:
        raise DataError(f'{path}: the compressed bag cannot be read: {error}') from None


def _joined(messages: Iterable[tuple[int, bytes]]) -> Iterator[Batch]:
    received: list[int] = []
    data: list[bytes] = []
    for stamp, raw in messages:
        received.append(stamp)
        data.append(raw)
        if len(data) == ROWS:
            yield joined_batch(received, data)
            received, data = [], []
    if data:
        yield joined_batch(received, data)
