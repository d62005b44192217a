"""Many recordings: where they are listed, who works on them, where their information is kept."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from robot_dynid.errors import DynIdError, UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identification.by_recording import Recorded
    from robot_dynid.io.information_folder import InformationFolder
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.signals.parts import Parts

TABLES, STORAGES, METADATA = ('.csv', '.csv.gz'), ('.mcap', '.db3'), 'metadata.yaml'
#: begins the name of a file with a recording on every line
LIST = '@'
MOST_WORKERS = 1024


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Declare who works on recordings, and where their information is kept."""
    parser.add_argument('--workers', metavar='N', type=int, default=1,
                        help='processes that work on the recordings side by side (default 1)')
    parser.add_argument('--scheduler', metavar='ADDRESS',
                        help='the same by the workers of a Dask cluster: tcp://host:8786')
    parser.add_argument('--information', metavar='FOLDER',
                        help='keep the information of every recording in FOLDER, and take from '
                             'there what an earlier run has kept: one that was killed goes on')


def listed(words: Sequence[str]) -> list[str]:
    """Return recordings: those of folders, of patterns with * or ?, and of lists, @list.txt.

    Others stay as they are. Raises UsageError where one of them holds none.
    """
    return [path for word in words for path in _listed(word)]


def _listed(word: str) -> list[str]:
    if word.startswith(LIST):
        return _of_list(word)
    if '*' in word or '?' in word:
        found = _matches(word)
        if not found:
            raise UsageError(f'{word}: no recording has such a name')
        return [path for one in found for path in ([one] if _is_recording(one) else _listed(one))]
    if Path(word).is_dir() and not _is_bag(Path(word)):
        inside = _inside(Path(word))
        if not inside:
            raise UsageError(f'{word}: there is no recording in this folder; recordings are '
                             f'{", ".join((*TABLES, *STORAGES))} files and rosbag2 folders')
        return inside
    return [word]


def _of_list(word: str) -> list[str]:
    """Return the recordings that the lines of a file name, relative to its folder."""
    from robot_dynid.files import read_text

    file = Path(word.removeprefix(LIST))
    lines = [line.strip() for line in read_text(file).splitlines()]
    named = [line for line in lines if line and not line.startswith('#')]
    if not named:
        raise UsageError(f'{word}: names no recording; it wants one on every line')
    if any(line.startswith(LIST) for line in named):
        raise UsageError(f'{word}: a list names recordings, not other lists')
    return listed([line if _is_remote(line) else str(file.parent / line) for line in named])


def _matches(pattern: str) -> list[str]:
    if not _is_remote(pattern):
        return sorted(glob(pattern, recursive=True))
    from robot_dynid.io.recording_file import matching

    return matching(pattern)


def _is_remote(word: str) -> bool:
    from robot_dynid.io.recording_file import REMOTE

    return REMOTE in word


def _is_recording(path: str) -> bool:
    return not Path(path).is_dir() or _is_bag(Path(path))


def _is_bag(folder: Path) -> bool:
    """Return whether a folder is a rosbag2 bag, also one whose metadata was not written."""
    if (folder / METADATA).is_file():
        return True
    entries = sorted(folder.iterdir())
    storages = [one for one in entries if one.name.endswith(STORAGES)]
    others = [one for one in entries if one.is_dir() or one.name.endswith(TABLES)]
    return bool(storages) and not others and (
        len(storages) == 1 or any(s.name.startswith(f'{folder.name}_') for s in storages))


def _inside(folder: Path) -> list[str]:
    """Return the recordings in a folder and in those below it, by name."""
    found: list[str] = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            found += [str(entry)] if _is_bag(entry) else _inside(entry)
        elif entry.name.endswith((*TABLES, *STORAGES)) and not entry.name.startswith('.'):
            found.append(str(entry))
    return found


def by_recording(arguments: argparse.Namespace, paths: Sequence[str]) -> bool:
    """Return whether recordings are worked on one by one, maybe by others."""
    return bool(arguments.workers > 1 or arguments.scheduler or arguments.information
                or any(map(_is_remote, paths)))


def _check(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.workers <= MOST_WORKERS:
        raise UsageError(f'--workers {arguments.workers}: give a number from 1 to {MOST_WORKERS}')
    if arguments.scheduler and arguments.workers > 1:
        raise UsageError('--workers are processes of this machine, --scheduler has workers of its '
                         'own: give one of them')


def unread(
    arguments: argparse.Namespace, paths: Sequence[str], robot: RobotModel
) -> Parts:
    """Return recordings that are read by whoever works on them."""
    from robot_dynid.io.recording_file import RecordingFile
    from robot_dynid.signals.parts import Parts

    here = arguments.scheduler is None
    return Parts(tuple(RecordingFile(path, robot, here) for path in paths),
                 accepted=tuple(arguments.accept))


@contextmanager
def recorded(arguments: argparse.Namespace, terminal: Terminal) -> Iterator[Recorded]:
    """Give who works on recordings; say in the end what was kept, and what could not be used.

    Raises UsageError for options that are wrong, or a scheduler that does not answer.
    """
    from robot_dynid.identification.by_recording import Recorded
    from robot_dynid.workers import Cluster, Processes, ThisProcess, Workers

    _check(arguments)
    with ExitStack() as stack:
        workers: Workers = ThisProcess()
        if arguments.scheduler:
            workers = stack.enter_context(Cluster(arguments.scheduler))
        elif arguments.workers > 1:
            workers = stack.enter_context(Processes(arguments.workers))
        found = Recorded(workers, _folder(arguments.information))
        yield found
    if found.taken:
        terminal.note(f'the information of {found.taken} recordings was taken from '
                      f'{arguments.information}')
    if found.anew:
        terminal.caution(f'{found.anew} information files in {arguments.information} could not be '
                         f'used and were made anew, such as {found.wrong}')


def _folder(path: str | None) -> InformationFolder | None:
    if path is None:
        return None
    from robot_dynid.io.information_folder import InformationFolder

    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynIdError(f'--information {path}: is no folder and cannot become one '
                         f'({error.strerror})') from None
    return InformationFolder(str(Path(path).absolute()))
