"""Many recordings: who works on them, where their information is kept."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from robot_dynid.cli.files import load_logs, recording_digests
from robot_dynid.errors import DynIdError, UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal
    from robot_dynid.identification.by_recording import Keeper, Recorded, RecordedInformation
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.io.information_file import InformationFolder
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.signals.parts import Parts

    #: a robot, information that more has to be like, who works on recordings
    Reduced = tuple[RobotModel, RecordedInformation | None, Recorded]

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


def by_recording(arguments: argparse.Namespace, paths: Sequence[str]) -> bool:
    """Return whether recordings are worked on one by one, maybe by others."""
    from robot_dynid.io.recording_names import is_remote

    return bool(arguments.workers > 1 or arguments.scheduler or arguments.information
                or any(map(is_remote, paths)))


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
    from robot_dynid.io.log import recording_files

    return replace(recording_files(paths, robot), accepted=tuple(arguments.accept))


def reduced(
    arguments: argparse.Namespace, paths: Sequence[str], target: Reduced, recipe: Recipe,
    progress: Progress,
) -> RecordedInformation:
    """Return the information of recordings of a robot, like some that is known, if any is."""
    from dataclasses import replace

    from robot_dynid.identification.identify import with_digests
    from robot_dynid.identification.recorded_information import information

    robot, like, workers = target
    if by_recording(arguments, paths):
        logs = unread(arguments, paths, robot)
        return information(robot, logs, recipe, like, progress, workers)
    logs = load_logs(paths, robot, progress, arguments.accept)
    found = information(robot, logs, recipe, like, progress)
    return replace(found, record=with_digests(found.record, recording_digests(paths)))


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


@contextmanager
def kept(workers: Recorded) -> Iterator[Keeper]:
    """Give the store of the information of recordings, one for this command if none is asked for.

    The latter is written to by this process alone.
    """
    from tempfile import TemporaryDirectory

    if workers.keeper is not None:
        yield workers.keeper
        return
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        found = _folder(folder)
        assert found is not None
        yield found


def _folder(path: str | None) -> InformationFolder | None:
    if path is None:
        return None
    from robot_dynid.io.information_file import InformationFolder

    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynIdError(f'--information {path}: is no folder and cannot become one '
                         f'({error.strerror})') from None
    return InformationFolder(str(Path(path).absolute()))
