"""`robot-dynid fleet`: many arms of one type over time, which of them changed or are off."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import check_outputs, report_mark, reported
from robot_dynid.cli.many import add_workers, kept, recorded
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal
    from robot_dynid.identification.by_recording import Keeper, Recorded
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.signals.parts import Parts
    from robot_dynid_extras.fleet.fleet import Arm, Finding, Fleet
    from robot_dynid_extras.fleet.recordings import ArmRecording
    from robot_dynid_extras.fleet.reduced import ReducedFleet
    from robot_dynid_extras.fleet.report import ArmStatus

HELP = 'many arms of one type over time: a model of each, which are off, what changed since when'
EXAMPLES = (
    'robot-dynid fleet recordings --robot ur10e --report fleet.html',
    'robot-dynid fleet recordings.csv --robot ur10e --out models --json',
    "robot-dynid fleet 'recordings/*/2026-*.mcap' --robot ur10e --workers 8 --information kept/",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('data', metavar='DATA', nargs='+',
                        help='folder with one folder per arm, named by its serial number; '
                             "patterns ('SN*/run_*.mcap') and lists (@list.txt) as of identify; "
                             'or a table of recordings (.csv, .yaml) with path, robot and time')
    parser.add_argument('--robot', required=True, help='name, URDF file or robot YAML of the type')
    parser.add_argument('--recipe', metavar='R.yaml',
                        help='settings that are not to be chosen from the data')
    parser.add_argument('--rate', metavar='SHARE', type=float,
                        help='share of false ones among the arms that are named; 0.05')
    add_workers(parser)
    parser.add_argument('--report', metavar='R.html', help='report to write')
    parser.add_argument('--out', metavar='FOLDER', help='folder for a model of each arm')
    parser.add_argument('--diagnostics', action='store_true',
                        help='publish the condition of every arm on /diagnostics, once (ROS 2)')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read and reduce the recordings, compare the arms, write report and models."""
    from robot_dynid.identification.recipe import Recipe, read_recipe
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid_extras.fleet.fleet import RATE, fleet
    from robot_dynid_extras.fleet.recordings import fleet_recordings
    from robot_dynid_extras.fleet.report import arm_statuses, fleet_report

    started = time.perf_counter()
    publish = _publisher() if arguments.diagnostics else None
    rate = RATE if arguments.rate is None else arguments.rate
    if not 0.0 < rate < 1.0:
        raise UsageError(f'--rate {rate:g}: a share between 0 and 1 is needed')
    check_outputs((arguments.report, report_mark(arguments.report)),
                  inputs=(arguments.recipe, arguments.robot))
    recipe = read_recipe(arguments.recipe) if arguments.recipe else Recipe()
    if recipe.windows:
        raise UsageError(f'{arguments.recipe}: windows are those of few recordings; name those of '
                         'a fleet with the recordings, run.csv[12.0:40.5], in a list (@list.txt)')
    robot = load_robot(arguments.robot)
    listed = fleet_recordings(arguments.data)
    check_outputs((arguments.report, report_mark(arguments.report)),
                  inputs=[one.source for one in listed])
    with terminal.progress('fleet') as progress, \
            recorded(arguments, terminal) as workers, kept(workers) as keeper:
        made = _reduced(robot, listed, (workers, keeper), recipe, progress)
        progress('comparing arms', 0.9)
        found = fleet(made.model, made, rate)
        written = _written(arguments.out, found, made, recipe, progress)
        chapters = reported(arguments, lambda: fleet_report(found, made.left_out))
    statuses = arm_statuses(found)
    if publish is not None and not publish(statuses):
        terminal.caution('nobody who listens to /diagnostics has the conditions of the arms')
    return {
        'robot': robot.name, 'recordings': len(made.recordings),
        'sessions': sum(len(arm.sessions) for arm in found.arms), 'rate': rate,
        'tests': found.tests, 'findings': [_finding(found, one) for one in found.findings],
        'watched': [_finding(found, one) | {'sessions_needed': one.sessions}
                    for one in found.watched],
        'arms': {arm.name: {'sessions': len(arm.sessions), 'model': written.get(arm.name),
                            'characteristics': _levels(found, arm)} for arm in found.arms},
        'spread': _spread(found), 'diagnostics': [_diagnostics(one) for one in statuses],
        'left_out': dict(made.left_out), 'report': arguments.report,
        'chapters': chapters, 'seconds': time.perf_counter() - started,
    }


def _publisher() -> Callable[[Sequence[ArmStatus]], bool]:
    """Return the publisher of /diagnostics; raises MissingDependency without ROS 2."""
    from robot_dynid_extras.fleet.statuses import publish

    return publish


def _reduced(
    robot: RobotModel, listed: Sequence[ArmRecording], workers: tuple[Recorded, Keeper],
    recipe: Recipe, progress: Progress,
) -> ReducedFleet:
    """Choose filters and laws from a few recordings, reduce all with them."""
    from dataclasses import replace

    from robot_dynid.identification.recorded_information import information
    from robot_dynid.identification.selection import between
    from robot_dynid.io.log import recording_files
    from robot_dynid_extras.fleet.reduced import choosing, reduced

    few = recording_files([one.source for one in choosing(listed)], robot)
    like = information(robot, few, recipe, None, between(progress, 0.0, 0.3),
                       replace(workers[0], keeper=None))
    logs = recording_files([one.source for one in listed], robot)
    return reduced(like, (listed, logs), workers, recipe, between(progress, 0.3, 0.9))


def _written(
    folder: str | None, found: Fleet, made: ReducedFleet, recipe: Recipe, progress: Progress
) -> dict[str, str]:
    """Write a model of each arm to ``folder``; return their paths."""
    from pathlib import Path

    from robot_dynid.io.log import RecordingFile
    from robot_dynid.signals.parts import Parts
    from robot_dynid_extras.fleet.reduced import models

    if folder is None:
        return {}
    def read(sources: Sequence[str]) -> Parts:
        return Parts(tuple(RecordingFile(one, made.like.robot).opened()[0] for one in sources))

    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, model in models(found, made, read, recipe):
        progress(f'model of {name}', 0.95)
        paths[name] = str(Path(folder) / f'{name}.model.yaml')
        model.save(paths[name])
    return paths


def _finding(found: Fleet, one: Finding) -> dict[str, Any]:
    """Return a finding, and what each session of its arm says, with intervals of 95 %.

    Those are by what the session knows and what days differ by.
    """
    import numpy as np

    from robot_dynid.estimation.estimate import interval_factor
    from robot_dynid_extras.fleet.report import day

    own = one.characteristic
    k, [arm] = found.characteristics.all.index(own), [
        arm for arm in found.arms if arm.name == one.arm]
    half = interval_factor(np.inf)
    by_session = [{
        'day': day(session.time), 'value': float(session.reading.values[k]),
        'half_interval': half * float(np.hypot(found.usual[k].spread, np.sqrt(
            session.reading.covariance[k, k])))}
        for session in arm.sessions if session.reading.known[k]]
    return {'arm': one.arm, 'part': own.part, 'characteristic': own.name, 'kind': own.kind,
            'words': own.words, 'unit': own.unit or '1', 'pattern': one.pattern,
            'size': one.size, 'half_interval': one.half_interval,
            'since': None if one.since is None else day(one.since),
            'probability': one.probability, 'cause': one.cause, 'by_session': by_session}


def _diagnostics(one: ArmStatus) -> dict[str, Any]:
    """Return the condition of an arm as `diagnostic_msgs/DiagnosticStatus` has it."""
    return {'level': 'warn' if one.changed else 'ok', 'name': one.arm, 'hardware_id': one.arm,
            'message': one.message, 'values': dict(one.values)}


def _levels(found: Fleet, arm: Arm) -> dict[str, Any]:
    """Return the pooled characteristics of an arm with 95 % intervals, and those by itself."""
    import numpy as np

    from robot_dynid.estimation.estimate import interval_factor

    half = interval_factor(np.inf) * np.sqrt(np.diag(arm.covariance))
    return {own.name: {'value': arm.values[i], 'half_interval': half[i], 'alone': arm.alone[i],
                       'alone_half_interval': interval_factor(np.inf) * arm.deviations[i]}
            for i, own in enumerate(found.characteristics.all[:found.characteristics.own])}


def _spread(found: Fleet) -> dict[str, Any]:
    return {own.name: {'between_arms': None if levels is None else levels.spread,
                       'day_to_day': usual.spread, 'unit': own.unit or '1'}
            for own, usual, levels in zip(found.characteristics.all, found.usual, found.spread)}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what was found."""
    from robot_dynid_extras.fleet.report import COLUMNS, NEEDED

    def size(one: dict[str, Any]) -> str:
        scale, unit = (100.0, '%') if one['unit'] == '1' else (1.0, one['unit'])
        return f'{scale * one["size"]:+.3g} ± {scale * one["half_interval"]:.2g} {unit}'

    terminal.facts((('arms', str(len(result['arms']))), ('sessions', str(result['sessions'])),
                    ('recordings', str(result['recordings'])), ('tests', str(result['tests'])),
                    ('false among the arms named', f'{100.0 * result["rate"]:g} % at most')))
    rows = {key: [(one['arm'], one['part'], one['words'], one['pattern'], size(one),
                   one['since'] or '', f'{one["probability"]:.1g}', one['cause'])
                  for one in result[key]] for key in ('findings', 'watched')}
    needed = [str(one['sessions_needed'] or '') for one in result['watched']]
    terminal.table('changed, or off the other arms', COLUMNS, rows['findings'])
    terminal.table('strongest of what is not beyond chance, one by one', (*COLUMNS, NEEDED), [
        (*row, own) for row, own in zip(rows['watched'], needed, strict=True)])
    if not result['findings']:
        terminal.line('nothing changed beyond what is usual in this fleet')
    terminal.warnings(f'left out: {reason}' for reason in result['left_out'].values())
    terminal.facts((('report', result['report']),))
