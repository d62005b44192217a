"""`robot-dynid fleet`: many arms of one type over time, which of them changed or are off."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    SOURCES,
    add_common,
    check_outputs,
    of_recordings,
    report_mark,
    reported,
)
from robot_dynid.cli.recordings import add_workers, kept, recorded
from robot_dynid.document import counted
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid_extras.fleet.report import ArmStatus

HELP = 'find which of many arms of one type differ, and what changed when'
EXAMPLES = (
    'robot-dynid fleet recordings --robot ur10e --report fleet.html',
    'robot-dynid fleet recordings.csv --robot ur10e --out models --json',
    "robot-dynid fleet 'recordings/*/2026-*.mcap' --robot ur10e --workers 8 --information kept/",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('data', metavar='DATA', nargs='+',
                        help='folder with one folder per arm, named by its serial number; '
                             "patterns ('SN*/run_*.mcap') and lists (@list.txt) as for identify; "
                             'or a table of recordings (.csv, .yaml) with path, robot and time')
    parser.add_argument('--robot', required=True, help='name, URDF file or robot YAML of the type')
    parser.add_argument('--recipe', metavar='R.yaml',
                        help='settings of the identification')
    add_common(parser, *SOURCES)
    parser.add_argument('--rate', metavar='SHARE', type=float,
                        help='share of false findings to allow (default 0.05)')
    add_workers(parser)
    parser.add_argument('--report', metavar='R.html', help='report to write')
    parser.add_argument('--out', metavar='FOLDER', help='folder to write a model of each arm to')
    parser.add_argument('--diagnostics', action='store_true',
                        help='publish the state of every arm on /diagnostics (ROS 2)')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read and reduce the recordings, compare the arms, write report and models."""
    from robot_dynid.identification.recipe import Recipe, read_recipe
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid_extras.fleet.fleet import RATE, fleet
    from robot_dynid_extras.fleet.recordings import fleet_recordings
    from robot_dynid_extras.fleet.reduced import reduce_fleet, write_models
    from robot_dynid_extras.fleet.report import (
        arm_facts,
        arm_statuses,
        finding_facts,
        findings_report,
        fleet_report,
        spread_facts,
        status_facts,
    )

    started = time.perf_counter()
    publish = publisher() if arguments.diagnostics else None
    rate = RATE if arguments.rate is None else arguments.rate
    if not 0.0 < rate < 1.0:
        raise UsageError(f'--rate {rate:g}: a share between 0 and 1 is needed')
    check_outputs((arguments.report, report_mark(arguments.report)),
                  inputs=(arguments.recipe, arguments.robot))
    recipe = read_recipe(arguments.recipe) if arguments.recipe else Recipe()
    if recipe.windows:
        raise UsageError(f'{arguments.recipe}: windows are those of few recordings; name those of '
                         'a fleet with the recordings, run.csv[12.0:40.5], in a list (@list.txt)')
    robot = of_recordings(load_robot(arguments.robot), arguments, recipe)
    listed = fleet_recordings(arguments.data)
    check_outputs((arguments.report, report_mark(arguments.report)),
                  inputs=[one.source for one in listed])
    with terminal.progress('fleet') as progress, \
            recorded(arguments, terminal) as workers, kept(workers) as keeper:
        made = reduce_fleet(robot, listed, (workers, keeper), recipe, progress)
        progress('comparing arms', 0.9)
        found = fleet(made.model, made, rate)
        written = {} if arguments.out is None else write_models(
            arguments.out, found, made, recipe, progress)
        chapters = reported(arguments, lambda: fleet_report(found, made.left_out),
                            lambda: findings_report(found, made.left_out))
    statuses = arm_statuses(found)
    if publish is not None and not publish(statuses):
        terminal.caution('nobody who listens to /diagnostics has the conditions of the arms')
    return {
        'robot': robot.name, 'recordings': len(made.recordings),
        'sessions': sum(len(arm.sessions) for arm in found.arms), 'rate': rate,
        'tests': found.tests, 'findings': [finding_facts(found, one) for one in found.findings],
        'watched': [finding_facts(found, one) | {'sessions_needed': one.sessions}
                    for one in found.watched],
        'arms': {arm.name: {'sessions': len(arm.sessions), 'model': written.get(arm.name),
                            'characteristics': arm_facts(found, arm)} for arm in found.arms},
        'spread': spread_facts(found), 'diagnostics': [status_facts(one) for one in statuses],
        'left_out': dict(made.left_out), 'report': arguments.report,
        'chapters': chapters, 'seconds': time.perf_counter() - started,
    }


def publisher() -> Callable[[Sequence[ArmStatus]], bool]:
    """Return the publisher of /diagnostics; raises MissingDependency without ROS 2."""
    from robot_dynid_extras.fleet.statuses import publish

    return publish


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what was found."""
    terminal.document(result['chapters'], after=2)
    counts = ', '.join(counted(result[key] if key != 'arms' else len(result[key]), key[:-1])
                       for key in ('arms', 'sessions', 'recordings', 'tests'))
    terminal.line(f'{counts}; at most {100.0 * result["rate"]:g} % of the arms listed are false '
                  'alarms', 'dim')
    terminal.written((('report', result['report']),))
