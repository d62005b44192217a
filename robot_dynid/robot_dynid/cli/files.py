"""Arguments that are files, or texts of YAML: checked before the work, not after it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.files import check_target, open_regular
from robot_dynid.robot.locate import robot_file

if TYPE_CHECKING:
    import argparse

    from robot_dynid.cli.terminal import Progress
    from robot_dynid.document import Report
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.signals.parts import Parts


def check_robot(robot: str) -> None:
    """Raise UsageError when there is no such robot, before what takes longer to import."""
    with open_regular(robot_file(robot)):
        pass


def check_outputs(
    *outputs: tuple[str | None, bytes | None], inputs: Sequence[str | None] = (),
    reports: Sequence[str | None] = (),
) -> None:
    """Raise UsageError when a file could not be written at the path of one of ``outputs``.

    Each comes with the mark of `robot_dynid.files.check_target`, ``reports`` without; a path None
    is not asked for. No output may be one of ``inputs``, nor another output; inputs may be windows
    of recordings. Raises MissingDependency where the libraries of reports are not installed.
    """
    from robot_dynid.signals.windows import file_of

    taken = {os.path.realpath(file_of(path)): 'read' for path in inputs if path}
    for path, mark in (*outputs, *((path, report_mark(path)) for path in reports)):
        if path is not None:
            check_target(path, mark)
            real = os.path.realpath(path)
            if real in taken:
                raise UsageError(f'{path}: is also {taken[real]} by this command; give the output '
                                 'another name')
            taken[real] = 'written'


def report_mark(path: str | None) -> bytes | None:
    """Return the mark of a report that is asked for at ``path``.

    Raises MissingDependency where its libraries are not installed.
    """
    if path is None:
        return None
    from robot_dynid.report.html import MARK

    return MARK


def reported(
    arguments: argparse.Namespace, report: Callable[[], Report],
    brief: Callable[[], Report] | None = None,
) -> Sequence[Any]:
    """Write the ``report`` where one is asked for; return its chapters, for JSON in plain types.

    Where neither is wanted, nor a verbose terminal, those of the ``brief`` one, none without.
    """
    from robot_dynid.document import plain_document

    if not (arguments.report or arguments.json or arguments.verbose):
        return () if brief is None else brief().chapters
    whole = report()
    if arguments.report:
        from robot_dynid.report.html import write_report

        write_report(whole, arguments.report)
    if arguments.json:
        return plain_document(whole)
    return whole.chapters if arguments.verbose or brief is None else brief().chapters


@contextmanager
def written_before(*paths: str | None) -> Iterator[None]:
    """Let the message of an error in the block say which outputs were written before it."""
    try:
        yield
    except DynIdError as error:
        there = ', '.join(path for path in paths if path)
        raise DynIdError(f'{error} ({there} is written)') from None


#: how to use a model although joints are refused
OR_PARTIAL = 'identify it again, or accept the other joints with --accept-partial'
#: options that say where in a recording is what, and all of verbs that read recordings
SOURCES = ('--columns', '--topic')
READING = (*SOURCES, '--accept')
#: arguments that several verbs have, with what `argparse` is told of them
COMMON: dict[str, dict[str, Any]] = {
    'model': {'metavar': 'M.yaml', 'help': 'identified model'},
    'robot': {'metavar': 'ROBOT', 'help': 'name, URDF file or robot YAML'},
    '--robot': {'help': 'refuse a model of another robot'},
    '--recipe': {'metavar': 'R.yaml',
                 'help': 'settings of the identification; the rest is chosen from the data'},
    '--report': {'metavar': 'R.html', 'help': 'HTML report to write'},
    '--topic': {'action': 'append', 'default': [], 'metavar': '[ROLE=]TOPIC', 'help':
                'topic of the joint states in a bag, or of a ROLE: joint_states, motor_states, '
                'effort, joint_torques, wrench (repeatable); the verb topics lists topics and '
                "fields: '{topic: /arm/state, position: measured.q}'"},
    '--columns': {'metavar': 'FILE', 'help':
                  'columns of tables: a YAML file, a preset (ur_rtde) or YAML text, '
                  "'{time: t, position: q{i}, effort: tau{i}}' (default: as in recipe or robot "
                  'YAML, else the preset that fits)'},
    '--accept': {'action': 'append', 'default': [], 'metavar': 'KIND'},
    '--accept-partial': {
        'action': 'store_true', 'help': 'use a model although some of its joints are refused '
                                        '(exit code 0)'},
}


def add_common(parser: argparse.ArgumentParser, *names: str) -> None:
    """Declare arguments of the names in COMMON."""
    for name in names:
        more: dict[str, Any] = {}
        if name == '--accept':
            from robot_dynid.plausibility.finding import KINDS

            more = {'choices': KINDS, 'help':
                    'accept recordings with findings of this kind (repeatable): '
                    f'{", ".join(KINDS)}'}
        parser.add_argument(name, **COMMON[name], **more)


def of_recordings(
    robot: RobotModel, arguments: argparse.Namespace, recipe: Recipe | None = None
) -> RobotModel:
    """Return the robot with what options, and else a recipe, say about its recordings."""
    from robot_dynid.robot.columns import read_mapping
    from robot_dynid.robot.topics import topics_from_options, with_topics

    robot = robot if recipe is None else recipe.of_recordings(robot)
    if arguments.columns is not None:
        robot = replace(robot, columns=read_mapping(arguments.columns))
    return with_topics(robot, topics_from_options(arguments.topic))


def load_logs(
    paths: Sequence[str], robot: RobotModel, progress: Progress, accept: Sequence[str] = ()
) -> Parts:
    """Read recordings in order; those that memory does not hold are read again later.

    Findings of the kinds ``accept`` are accepted of all.
    """
    from robot_dynid.io.log import read_recordings

    return replace(read_recordings(paths, robot, progress), accepted=tuple(accept))


def recording_digests(paths: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of the files of recordings, of windows that of the whole, by path."""
    from robot_dynid.files import file_digest
    from robot_dynid.signals.windows import file_of

    files = {str(Path(file_of(path))) for path in paths}
    return {file: file_digest(file) for file in files}


def is_robot(path: str) -> bool:
    """Return whether ``path`` is a robot, by its name, URDF or robot YAML, not a model file."""
    from robot_dynid.files import read_text
    from robot_dynid.robot.locate import YAML_SUFFIXES, known_robots

    if Path(path).suffix not in YAML_SUFFIXES:
        return path in known_robots() or Path(path).suffix in ('.urdf', '.xacro')
    try:
        return bool(re.search(r'^(urdf|screws)\s*:', read_text(path), re.MULTILINE))
    except UsageError:  # whoever reads the model says so
        return False


def load_model(path: str, robot: str | None) -> IdentifiedModel:
    """Read an identified model, checked against ``robot`` where one is named."""
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.robot.robot_file import load_robot

    return IdentifiedModel.load(path, None if robot is None else load_robot(robot))


def with_text(flags: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return the options given as ``flags`` and those of a YAML ``text``, or file of that name.

    Raises UsageError when it is no mapping, or when an option is given in both ways.
    """
    from robot_dynid.files import read_text
    from robot_dynid.yaml_text import load_yaml

    if text is None:
        return dict(flags)
    is_file = Path(text).suffix in ('.yaml', '.yml')
    source = f'{text}: options' if is_file else 'options'
    content = load_yaml(read_text(text) if is_file else text, source, UsageError)
    if not isinstance(content, Mapping):
        raise UsageError(f"{source} must be a mapping such as '{{dwell: 2, poses: 30}}'")
    twice = [name for name in content if name in flags]
    if twice:
        raise UsageError(f"option '{twice[0]}' is given as --{twice[0]} and in --options")
    return {**content, **flags}
