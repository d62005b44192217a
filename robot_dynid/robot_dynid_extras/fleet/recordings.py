"""Recordings of a fleet: which arm each is of, and when it was made."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.files import open_regular, read_text
from robot_dynid.io.recording_names import (
    LIST,
    METADATA,
    custom_data,
    is_pattern,
    is_remote,
    lines,
    listed,
    matches,
    recordings_in,
)
from robot_dynid.signals.windows import file_of
from robot_dynid.yaml_text import load_yaml

#: what a list says of each recording; ``time`` may be absent
COLUMNS = PATH, ROBOT, TIME = ('path', 'robot', 'time')
LISTS = ('.csv', '.yaml', '.yml')
#: bytes of the first line of a table that are looked at
LINE = 10_000
#: dates in names of files: 2024-06-25, 20240625, 24_06_25, behind them perhaps a time of day
DATE = re.compile(r'(?<!\d)((?:20)?\d\d)([-_]?)(\d\d)\2(\d\d)'
                  r'(?:[-_T ]?(\d\d)[-_:h]?(\d\d)(?:[-_:m]?(\d\d))?)?(?!\d)')
#: keys of a bag's own metadata (custom_data) that name the arm
SERIAL = ('serial_number', 'serial', 'robot')


@dataclass(frozen=True)
class ArmRecording:
    """A recording at ``source`` of an ``arm``.

    ``time`` [s since 1970] is known from a list, ``named`` from the name of the file: the former
    counts before the stamps of the recording, the latter where these are no times of day.
    """

    source: str
    arm: str
    time: float | None = None
    named: float | None = None


def _listed(path: str, arm: str, time: float | None = None) -> ArmRecording:
    return ArmRecording(path, arm, time, time_in_name(Path(file_of(path)).name))


def fleet_recordings(words: Sequence[str]) -> list[ArmRecording]:
    """Return the recordings of a fleet: of folders, patterns, lists of names, tables.

    A folder has one for each robot, named by its serial number; without those it is that of a
    robot. Patterns (run_*.mcap) and lists (@list.txt) name such folders, or recordings: these are
    of the robot by whose number their folder is named. A bag may name its robot itself. A table is
    CSV with the columns path, robot and time, or YAML with entries of these; paths are relative to
    it. Raises UsageError where there are none, or an entry is wrong.
    """
    return list(dict.fromkeys(one for word in words for one in _of(str(word))))


def _of(word: str) -> Iterator[ArmRecording]:
    if word.startswith(LIST):
        yield from (one for line in lines(word) for one in _of(line))
    elif is_remote(word):
        yield from (_listed(one, Path(file_of(one)).parent.name) for one in listed([word]))
    elif is_pattern(word):
        yield from (one for found in matches(word) for one in (
            _of(found) if _is_one(found) else _of_robot(Path(found), recordings_in(found))))
    elif _is_table(word):
        yield from _of_table(Path(word))
    elif _is_one(word):
        yield _listed(word, serial_of(word) or Path(file_of(word)).absolute().parent.name)
    else:
        yield from _in_folder(Path(word))


def _is_table(word: str) -> bool:
    """Return whether a file lists recordings: YAML, or CSV with a column for paths or robots."""
    place = Path(word)
    if place.suffix != '.csv' or not place.is_file():
        return place.suffix in LISTS and place.suffix != '.csv'
    with open_regular(place) as file:
        first = file.readline(LINE).decode(errors='replace')
    return not {PATH, ROBOT}.isdisjoint(next(csv.reader(_rows(first)), []))


def _rows(text: str) -> io.StringIO:
    """Return the lines of a CSV text, without the characters at which its reader gives up."""
    return io.StringIO(text.replace('\0', ''), newline=None)


def _of_table(place: Path) -> list[ArmRecording]:
    text = read_text(place)
    entries = csv.DictReader(_rows(text)) if place.suffix == '.csv' else \
        load_yaml(text, str(place), UsageError)
    found = list(_entries(entries, place))
    if not found:
        raise UsageError(f'{place}: no recordings; one per line with {", ".join(COLUMNS)}')
    return found


def _in_folder(place: Path) -> Iterator[ArmRecording]:
    """Yield the recordings in a folder of robots, or in that of one robot."""
    by_robot = {one: recordings_in(one) for one in sorted(place.iterdir())
                if one.is_dir() and not _is_one(one)}
    beside = [path for path in recordings_in(place) if Path(path).parent == place
              and not by_robot.get(Path(path)) and not _is_table(path)]
    if not any(by_robot.values()):
        yield from _of_robot(place, beside)
    elif beside:
        raise UsageError(f'{beside[0]}: lies beside folders of robots: which one is it of? Put it '
                         'into the folder of its robot, or give a table with path, robot and time')
    for robot, paths in by_robot.items():
        yield from _of_robot(robot, paths) if paths else ()


def _of_robot(place: Path, paths: Sequence[str]) -> Iterator[ArmRecording]:
    if not paths:
        raise UsageError(f'{place}: no recordings of robots; a fleet is a folder for each '
                         'robot, named by its serial number, with its recordings '
                         f'({place}/SERIAL/*.csv.gz, bags), or a table of recordings')
    for path in paths:
        yield _listed(path, serial_of(path) or place.absolute().name)


def _is_one(path: str | Path) -> bool:
    """Return whether a path is one recording; a folder with one file may be that of a robot."""
    return not Path(path).is_dir() or (Path(path) / METADATA).is_file()


def serial_of(path: str | Path) -> str | None:
    """Return the robot that the metadata of a bag names, None where it names none."""
    custom = custom_data(Path(file_of(str(path))))
    return next((str(custom[key]) for key in SERIAL if custom.get(key)), None)


def _entries(entries: Any, place: Path) -> Iterator[ArmRecording]:
    if not isinstance(entries, Iterable) or isinstance(entries, (str, Mapping)):
        raise UsageError(f'{place}: a list of entries with {", ".join(COLUMNS)} is needed')
    for number, entry in enumerate(entries, start=1):
        where = f'{place}, entry {number}'
        if not isinstance(entry, Mapping) or not entry.get(PATH):
            raise UsageError(f'{where}: has no {PATH}')
        file = place.parent / str(entry[PATH])
        robot = entry.get(ROBOT) or serial_of(str(file))
        if not robot:
            raise UsageError(f'{where}: does not say which {ROBOT} it is of (serial number)')
        yield _listed(str(file), str(robot), _time(entry.get(TIME), where))


def _time(value: Any, where: str) -> float | None:
    """Return a time [s since 1970] from seconds or a date; UTC where it has no zone."""
    if value is None or value == '':
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        pass
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        raise UsageError(f'{where}: {TIME} {value!r} is neither a date (2024-06-25T14:30) nor '
                         'seconds since 1970') from None
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


def time_in_name(name: str) -> float | None:
    """Return date and time [s since 1970, UTC] in the ``name`` of a file, None without one."""
    for year, _, month, day, *clock in DATE.findall(name):
        hour, minute, second = (int(part or 0) for part in clock)
        try:
            return datetime(int(year) + 2000 * (len(year) == 2), int(month), int(day), hour,
                            minute, second, tzinfo=timezone.utc).timestamp()
        except ValueError:  # digits that are no date
            continue
    return None
