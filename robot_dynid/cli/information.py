"""`robot-dynid information`: reduce recordings to what they say about the parameters."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import add_accept, check_outputs
from robot_dynid.cli.many import add_workers, recorded, reduced
from robot_dynid.document import number

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'reduce recordings to information that identify adds up, without reading them again'
EXAMPLES = (
    'robot-dynid information january/*.csv.gz --robot ur10e --out january.info',
    'robot-dynid information february/*.csv.gz --robot ur10e --like january.info '
    '--out february.info',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('data', metavar='DATA', nargs='+', help='recordings, as of identify')
    parser.add_argument('--robot', required=True, help='name, URDF file or robot YAML')
    parser.add_argument('--recipe', metavar='R.yaml',
                        help='settings that are not to be chosen from the data')
    parser.add_argument('--like', metavar='X.info',
                        help='information whose filters and friction laws are taken, so that both '
                             'can be added up')
    parser.add_argument('--out', required=True, metavar='Y.info',
                        help='information file to write')
    add_workers(parser)
    add_accept(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read the recordings, reduce them, write the file."""
    from robot_dynid.errors import UsageError
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
        terminal.note(f'left out, to judge by: {", ".join(judges)}')
    check_outputs((arguments.out, MARK), inputs=(
        *arguments.data, arguments.robot, arguments.recipe, arguments.like))
    recipe = read_recipe(arguments.recipe) if arguments.recipe else Recipe()
    robot = load_robot(arguments.robot)
    like = load_information(arguments.like) if arguments.like else None
    with terminal.progress('information') as progress, \
            recorded(arguments, terminal) as workers:
        found = reduced(arguments, arguments.data, (robot, like, workers), recipe, progress)
        save_information(found, arguments.out)
    structure = found.choice.structure
    return {
        'robot': robot.name, 'out': arguments.out, 'recordings': found.record.recordings,
        'samples': found.information.samples, 'base': len(found.information.names),
        'megabytes': os.path.getsize(arguments.out) / 1e6,
        'cutoff': found.choice.preprocessing.cutoff, 'friction_laws': structure.described,
        'warnings': found.notes, 'seconds': time.perf_counter() - started,
    }


def show(result: dict[str, Any], terminal: Terminal) -> None:
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
