"""Recordings of a fleet: which arm each is of, and when it was made."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.files import read_text
from robot_dynid.io.storage import READERS
from robot_dynid.yaml_text import load_yaml

#: what a list says of each recording; ``time`` may be absent
COLUMNS = PATH, ROBOT, TIME = ('path', 'robot', 'time')
LISTS = ('.csv', '.yaml', '.yml')
#: dates in names of files: 2024-06-25, 20240625, 24_06_25, behind them perhaps a time of day
DATE = re.compile(r'(?<!\d)((?:20)?\d\d)([-_]?)(\d\d)\2(\d\d)'
                  r'(?:[-_T ]?(\d\d)[-_:h]?(\d\d)(?:[-_:m]?(\d\d))?)?(?!\d)')
#: keys of a bag's own metadata (custom_data) that name the arm
SERIAL = ('serial_number', 'serial', 'robot')


@dataclass(frozen=True)
class Listed:
    """A recording of the robot with the name ``robot``; ``time`` [s since 1970] if a list has it.

    ``named`` [s since 1970] is the date in the name of the file, if there is one.
    """

    path: str
    robot: str
    time: float | None = None

    @property
    def named(self) -> float | None:
        """Date and time in the name of the file."""
        return time_in_name(Path(self.path).name)


def fleet_recordings(path: str | Path) -> list[Listed]:
    """Return the recordings of a fleet in a folder, or those that a list has.

    A folder has one for each robot, named by its serial number. A list is CSV with the columns
    path, robot and time, or YAML with entries of these; paths are relative to it. A bag may name
    its robot itself. Raises UsageError where there are none, or an entry is wrong.
    """
    place = Path(path)
    if place.is_dir():
        found = list(_in_folder(place))
        if not found:
            raise UsageError(f'{place}: no recordings of robots; a fleet is a folder for each '
                             'robot, named by its serial number, with its recordings '
                             f'({place}/SERIAL/*.csv.gz, bags), or a list of recordings')
        return found
    if place.suffix not in LISTS:
        raise UsageError(f'{place}: neither a folder nor a list of recordings (.csv, .yaml)')
    text = read_text(place)
    entries = csv.DictReader(io.StringIO(text)) if place.suffix == '.csv' else \
        load_yaml(text, str(place), UsageError)
    found = list(_entries(entries, place))
    if not found:
        raise UsageError(f'{place}: no recordings; one per line with {", ".join(COLUMNS)}')
    return found


def _in_folder(place: Path) -> Iterator[Listed]:
    for robot in sorted(place.iterdir()):
        if robot.is_dir():
            for file in sorted(robot.iterdir()):
                bag = (file / 'metadata.yaml').is_file()
                if bag or file.suffix in READERS or file.name.endswith(('.csv', '.csv.gz')):
                    yield Listed(str(file), (bag and serial_of(file)) or robot.name)


def serial_of(bag: Path) -> str | None:
    """Return the robot that the metadata of a bag names, None where it names none."""
    content = load_yaml(read_text(bag / 'metadata.yaml'), str(bag), UsageError)
    about = content.get('rosbag2_bagfile_information') if isinstance(content, dict) else None
    custom = (about or {}).get('custom_data') or {}
    return next((str(custom[key]) for key in SERIAL if custom.get(key)), None)


def _entries(entries: Any, place: Path) -> Iterator[Listed]:
    if not isinstance(entries, Iterable) or isinstance(entries, (str, Mapping)):
        raise UsageError(f'{place}: a list of entries with {", ".join(COLUMNS)} is needed')
    for number, entry in enumerate(entries, start=1):
        where = f'{place}, entry {number}'
        if not isinstance(entry, Mapping) or not entry.get(PATH):
            raise UsageError(f'{where}: has no {PATH}')
        file = place.parent / str(entry[PATH])
        robot = entry.get(ROBOT) or (serial_of(file) if (file / 'metadata.yaml').is_file()
                                     else None)
        if not robot:
            raise UsageError(f'{where}: does not say which {ROBOT} it is of (serial number)')
        yield Listed(str(file), str(robot), _time(entry.get(TIME), where))


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
