"""`robot-dynid information`, `repair` and `topics`: recordings reduced, finished, looked into.

Who works on many recordings, and where their information is kept, is the same for every verb.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    READING,
    add_common,
    check_outputs,
    load_logs,
    of_recordings,
    recording_digests,
)
from robot_dynid.cli.verbs import Command
from robot_dynid.document import number
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
                        help='processes for the recordings (default 1)')
    parser.add_argument('--scheduler', metavar='ADDRESS',
                        help='Dask cluster instead of processes: tcp://host:8786')
    parser.add_argument('--information', metavar='FOLDER',
                        help='folder for reduced recordings; a killed run resumes from it')


def by_recording(arguments: argparse.Namespace, paths: Sequence[str]) -> bool:
    """Return whether recordings are worked on one by one, maybe by others."""
    from robot_dynid.io.recording_names import is_remote

    return bool(arguments.workers > 1 or arguments.scheduler or arguments.information
                or any(map(is_remote, paths)))


def _check(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.workers <= MOST_WORKERS:
        raise UsageError(f'--workers {arguments.workers}: give a number from 1 to {MOST_WORKERS}')
    if arguments.scheduler and arguments.workers > 1:
        raise UsageError('--workers starts processes on this machine, --scheduler uses those of a '
                         'cluster: give one of them')


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
    from robot_dynid.identification.identify import add_digests
    from robot_dynid.identification.recorded_information import information

    robot, like, workers = target
    if by_recording(arguments, paths):
        logs = unread(arguments, paths, robot)
        return information(robot, logs, recipe, like, progress, workers)
    logs = load_logs(paths, robot, progress, arguments.accept)
    made = information(robot, logs, recipe, like, progress)
    return replace(made, record=add_digests(made.record, recording_digests(paths)))


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
        stored = Recorded(workers, _folder(arguments.information))
        yield stored
    if stored.taken:
        terminal.note(f'{stored.taken} recordings were already reduced in {arguments.information}')
    if stored.redone:
        terminal.caution(f'{stored.redone} information files in {arguments.information} were '
                         f'unusable and were created again, such as {stored.wrong}')


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
        store = _folder(folder)
        assert store is not None
        yield store


def _folder(path: str | None) -> InformationFolder | None:
    if path is None:
        return None
    from robot_dynid.io.information_file import InformationFolder

    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynIdError(f'--information {path}: not a folder, and none can be created there '
                         f'({error.strerror})') from None
    return InformationFolder(str(Path(path).absolute()))


def _add_information_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('data', metavar='DATA', nargs='+', help='recordings, as for identify')
    parser.add_argument('--robot', required=True, help='name, URDF file or robot YAML')
    add_common(parser, '--recipe')
    parser.add_argument('--like', metavar='X.info',
                        help='information file whose filters and friction laws to use, so that '
                             'identify can add both')
    parser.add_argument('--out', required=True, metavar='Y.info',
                        help='information file to write')
    add_workers(parser)
    add_common(parser, *READING)


def run_information(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read the recordings, reduce them, write the file."""
    from robot_dynid.identification.recipe import Recipe, read_recipe
    from robot_dynid.io.information_file import (
        MARK,
        SUFFIX,
        load_information,
        save_information,
    )
    from robot_dynid.io.recording_names import by_purpose, listed
    from robot_dynid.robot.robot_file import load_robot

    started = time.perf_counter()
    if not arguments.out.endswith(SUFFIX):
        raise UsageError(f'--out {arguments.out}: the name of an information file ends with '
                         f'{SUFFIX}')
    arguments.data, judges = by_purpose(listed(arguments.data))
    if judges:
        terminal.note(f'held out for validation: {", ".join(judges)}')
    check_outputs((arguments.out, MARK), inputs=(
        *arguments.data, arguments.robot, arguments.recipe, arguments.like))
    recipe = read_recipe(arguments.recipe) if arguments.recipe else Recipe()
    robot = of_recordings(load_robot(arguments.robot), arguments, recipe)
    like = load_information(arguments.like) if arguments.like else None
    with terminal.progress('information') as progress, \
            recorded(arguments, terminal) as workers:
        made = reduced(arguments, arguments.data, (robot, like, workers), recipe, progress)
        save_information(made, arguments.out)
    structure = made.choice.structure
    return {
        'robot': robot.name, 'out': arguments.out, 'recordings': made.record.recordings,
        'samples': made.information.samples, 'base': len(made.information.names),
        'megabytes': os.path.getsize(arguments.out) / 1e6,
        'cutoff': made.choice.preprocessing.cutoff, 'friction_laws': structure.described,
        'warnings': made.notes, 'seconds': time.perf_counter() - started,
    }


def show_information(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what the file holds."""
    terminal.facts((
        ('recordings', str(len(result['recordings']))),
        ('samples', f'{result["samples"]} (after preprocessing)'),
        ('base parameters', str(result['base'])),
        ('cut-off', f'{number(result["cutoff"])} Hz'),
        ('friction', '; '.join(result['friction_laws'])), ('information', result['out']),
        ('size', f'{number(result["megabytes"], 3)} MB'),
        ('seconds', f'{result["seconds"]:.1f}')))
    terminal.warnings(result['warnings'])


def _add_repair_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('bag', metavar='BAG', help='bag folder, .mcap or .db3 file; what is '
                        'replaced is renamed to *.unrepaired')


def run_repair(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Finish storage files and metadata.yaml, as far as they need it."""
    from robot_dynid.io.repair import repair_bag

    started = time.perf_counter()
    with terminal.progress('repair') as progress:
        repair = repair_bag(arguments.bag, progress)
    return {'path': arguments.bag, 'messages': sum(repair.messages.values()),
            'topics': repair.messages, 'lost_bytes': repair.lost_bytes, 'lost': repair.findings,
            'written': repair.written, 'kept': repair.kept,
            'seconds': time.perf_counter() - started}


def show_repair(result: dict[str, Any], terminal: Terminal) -> None:
    """Print messages by topic, and what was written."""
    terminal.table(result['path'], ('topic', 'messages'), result['topics'].items())
    terminal.facts((*(('written', path) for path in result['written']),
                    *(('as it was', path) for path in result['kept'])))
    if not result['written']:
        terminal.line('nothing had to be repaired')
    terminal.warnings(result['lost'])


def _add_topics_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('bag', metavar='BAG', help='bag folder, .mcap, .db3 or ROS 1 .bag file')
    parser.add_argument('--robot', metavar='ROBOT',
                        help='name, URDF file or robot YAML; marks topics with its joints')


def run_topics(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Look into the first message of every topic, and count all."""
    from robot_dynid.io.messages.survey import survey, uses
    from robot_dynid.robot.robot_file import load_robot

    joints = load_robot(arguments.robot).joints if arguments.robot else ()
    topics = survey(Path(arguments.bag))
    return {'path': arguments.bag, 'robot': arguments.robot, 'joints': list(joints), 'topics': [{
        'name': one.name, 'type': one.kind, 'messages': one.messages,
        'rate': one.rate if math.isfinite(one.rate) else None, 'joints': one.joints,
        'fields': one.fields, 'texts': one.texts, 'uses': list(uses(one, joints)),
        'problem': one.problem} for one in topics]}


def show_topics(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a row per topic, then the uses of topics; if verbose, their fields."""
    terminal.table(result['path'], ('topic', 'type', 'messages', 'Hz'), [(
        one['name'], one['type'], one['messages'],
        '' if one['rate'] is None else number(one['rate'], 3)) for one in result['topics']])
    if not terminal.verbose:
        terminal.facts((one['name'], use) for one in result['topics'] for use in one['uses'])
        terminal.line('fields of all topics: --verbose', 'dim')
        return
    for one in result['topics']:
        terminal.facts([(one['name'], ', '.join([
            *(f'{path} ({length})' for path, length in one['fields'].items()),
            *(f'{path}: {" ".join(texts)}' for path, texts in one['texts'].items() if texts),
            *([one['problem']] if one['problem'] else [])])),
            *(('use', use) for use in one['uses'])])


INFORMATION = Command(
    'reduce recordings to a small file that identify can add to others', (
        'robot-dynid information january/*.csv.gz --robot ur10e --out january.info',
        'robot-dynid information february/*.csv.gz --robot ur10e --like january.info '
        '--out february.info'),
    _add_information_arguments, run_information, show_information)
REPAIR = Command(
    'finish a bag whose recorder was killed', (
        'robot-dynid repair recordings/my_arm_2026-01-31', 'robot-dynid repair cut_off.mcap'),
    _add_repair_arguments, run_repair, show_repair)
TOPICS = Command(
    'list the topics of a bag, and what identify can read from each', (
        'robot-dynid topics recordings/my_arm_2026-01-31 --robot my_arm.yaml',
        'robot-dynid topics old.bag --robot panda --json'),
    _add_topics_arguments, run_topics, show_topics)
