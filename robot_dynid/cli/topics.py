"""`robot-dynid topics`: the topics of a bag, and what can be read of each."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from robot_dynid.document import number

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'list the topics of a bag, their fields, and what can be read of each'
EXAMPLES = (
    'robot-dynid topics recordings/my_arm_2026-01-31 --robot my_arm.yaml',
    'robot-dynid topics old.bag --robot panda --json',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('bag', metavar='BAG', help='bag folder, .mcap, .db3 or ROS 1 .bag file')
    parser.add_argument('--robot', metavar='ROBOT',
                        help='name, URDF file or robot YAML: marks what has its joints')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Look into the first message of every topic, and count all."""
    from pathlib import Path

    from robot_dynid.io.messages.survey import survey, uses
    from robot_dynid.robot.robot_file import load_robot

    joints = load_robot(arguments.robot).joints if arguments.robot else ()
    topics = survey(Path(arguments.bag))
    return {'path': arguments.bag, 'robot': arguments.robot, 'joints': list(joints), 'topics': [{
        'name': one.name, 'type': one.kind, 'messages': one.messages,
        'rate': one.rate if math.isfinite(one.rate) else None, 'joints': one.joints,
        'fields': one.fields, 'texts': one.texts, 'uses': list(uses(one, joints)),
        'problem': one.problem} for one in topics]}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a row per topic, then its fields and uses."""
    terminal.table(result['path'], ('topic', 'type', 'messages', 'Hz', 'fields'), [(
        one['name'], one['type'], one['messages'],
        '' if one['rate'] is None else number(one['rate'], 3),
        ', '.join([*(f'{path} ({length})' for path, length in one['fields'].items()),
                   *(f'{path}: {" ".join(texts)}' for path, texts in one['texts'].items()
                     if texts), *([one['problem']] if one['problem'] else [])]))
        for one in result['topics']])
    terminal.facts([(one['name'], use) for one in result['topics'] for use in one['uses']])
