"""`robot-dynid design`: excitation trajectories within the robot's limits, to fit and to judge."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    SOURCES,
    add_common,
    check_outputs,
    load_logs,
    of_recordings,
    reported,
    with_text,
    written_before,
)
from robot_dynid.document import percent
from robot_dynid.errors import DynIdError, UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.excitation.design import Design
    from robot_dynid.excitation.request import Request
    from robot_dynid.report.plan import Plan

HELP = 'plan a motion to identify from, and a distinct one to validate on'
EXAMPLES = (
    'robot-dynid design ur10e --out T.yaml',
    'robot-dynid design ur10e --duration 30 --scale 0.7 --seed 1 --out T.yaml --report plan.html',
    "robot-dynid design ur10e --options '{validation: false}' --out T.yaml",
    "robot-dynid design my_arm.yaml --type static-poses --options '{poses: 30}' --out T.yaml",
    'robot-dynid design my_arm.yaml --type sine-sequence --adaptive --data 1.csv --out T.yaml',
)
DEFAULT_RATE = 100.0
#: result of a session that has met its accuracy, for which no file is written
MET: dict[str, Any] = {'met': True, 'swings': [], 'unreachable': [], 'why': '', 'later': [],
       'outlook': 'no further recording is needed'}
NOTHING_MORE: dict[str, Any] = {
    **dict.fromkeys(('out', 'report', 'condition_number', 'log_det', 'clearance', 'validation')),
    'parts': {}, 'duration': 0.0, 'limits': {}, 'starts': [], 'ended_early': False, 'stages': [],
    'elements': [], 'warnings': []}
#: options of the types by name: kind of their value, and help
OPTIONS: dict[str, tuple[type, str]] = {
    'duration': (float, 'length of the motion [s]'),
    'harmonics': (int, 'number of harmonics (fourier)'),
    'periods': (int, 'number of periods (fourier), or of periods per swing (sine-sequence)'),
    'procedure': (str, 'order of a sine sequence: distal-to-proximal (default), body-by-body, '
                       'adaptive'),
    'swings': (int, 'swings to plan at once (adaptive)'),
    'longest': (float, 'longest total time of the swings [s] (adaptive; default 3600)'),
    'configurations': (int, 'configurations of the locked joints per stage (sine-sequence)'),
    'objective': (str, 'what to optimise: condition (default), blocks, log-det, precision'),
    'starts': (int, 'random starts of the search (default 8)'),
    'iterations': (int, 'iterations per start (default 300)'),
    'time_limit': (float, 'stop the search after this time [s]; the motion then depends on the '
                          'machine (default: none)'),
    'accuracy': (float, 'required standard deviation relative to nominal parameters (adaptive; '
                        'default 0.1)'),
    'seed': (int, 'seed of the random starts (default 0)'),
    'scale': (float, 'share of every limit to use (default 0.9)'),
}
NAMES = {'type': 'robot_dynid.excitation.families:FAMILIES',
         'objective': ('condition', 'blocks', 'log-det', 'precision'),
         'procedure': ('distal-to-proximal', 'body-by-body', 'adaptive')}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser, 'robot')
    parser.add_argument('--type', default='fourier',
                        help='one of fourier (default), bspline, sine-sequence, '
                             'constant-velocity, static-poses and composite')
    parser.add_argument('--options', metavar='YAML',
                        help="further options of the type as YAML text, '{poses: 30}', or file")
    for name, (kind, text) in OPTIONS.items():
        parser.add_argument(f'--{name.replace("_", "-")}', type=kind, help=text)
    parser.add_argument('--adaptive', action='store_const', const='adaptive',
                        help='choose swings one by one until --accuracy is met (sine-sequence)')
    parser.add_argument('--data', nargs='+', metavar='DATA', default=[],
                        help='recordings so far (adaptive)')
    add_common(parser, *SOURCES)
    parser.add_argument('--model', metavar='M.yaml',
                        help='identified model to predict efforts with (default: nominal)')
    parser.add_argument('--rate', type=float, default=DEFAULT_RATE,
                        help=f'rate of the points to check [Hz] (default {DEFAULT_RATE:g})')
    parser.add_argument('--out', required=True, metavar='T.yaml',
                        help='trajectory file to write, with T_validation.yaml for validation '
                             "(--options '{validation: false}': without)")
    parser.add_argument('--report', metavar='R.html',
                        help='HTML report to write, and R_validation.html')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Design the trajectories, check their points, write them."""
    from dataclasses import replace

    import numpy as np

    from robot_dynid.collision.scene import build_scene
    from robot_dynid.excitation.design import SessionOver, design_pair
    from robot_dynid.excitation.design_criteria import design_criteria, keeping_clear
    from robot_dynid.excitation.request import validation_request
    from robot_dynid.execution.sampled import faults, sampled
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.io.recording_names import for_validation
    from robot_dynid.io.trajectory_file import MARK
    from robot_dynid.plain import to_plain
    from robot_dynid.report.plan import Plan
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid.trajectories.limits import motion_limits
    from robot_dynid.types import VALIDATION

    started = time.perf_counter()
    request = _request(arguments)
    places = [arguments]
    if validation_request(request) is not None:
        places.append(argparse.Namespace(
            json=arguments.json, verbose=False, out=str(for_validation(arguments.out)),
            report=arguments.report and str(for_validation(arguments.report))))
    check_outputs(*((place.out, MARK) for place in places),
                  reports=[place.report for place in places], inputs=(
                      arguments.robot, arguments.model, arguments.options, *arguments.data))
    robot = load_robot(arguments.robot)
    links = None
    if arguments.model is not None:
        model = IdentifiedModel.load(arguments.model)
        model.require(robot)
        links = np.reshape(list(model.standard.values())[:10 * robot.tree.n], (robot.tree.n, 10))
    with terminal.progress('design') as progress:
        criteria = design_criteria(robot, progress, elapsed=lambda: time.perf_counter() - started,
                            links=links)
        if arguments.data:
            criteria = replace(
                criteria, recordings=load_logs(
                    arguments.data, of_recordings(robot, arguments), progress))
        scene = build_scene(robot, request.common.surroundings(robot.surroundings))
        try:
            design, judge = design_pair(motion_limits(robot, request.common.limits), request,
                                        keeping_clear(criteria, scene))
        except SessionOver as over:
            if not over.met:
                raise
            return {**NOTHING_MORE, 'robot': robot.name, 'type': request.kind,
                    'session': {**MET, 'accuracy': request.options.goal.accuracy},
                    **dict(zip(('least_known', 'largest_deviation'), over.worst)),
                    'seconds': time.perf_counter() - started}
    plans = [Plan(request.kind, robot, one, criteria, scene) for one in (design, judge) if one]
    for plan in plans:  # the points sent to a controller must keep the limits, too
        wrong = faults(sampled(plan.found.trajectory, arguments.rate), plan.found.limits,
                       longest=float('inf'))
        if wrong:
            raise DynIdError('; '.join(wrong) + '; a higher --rate or a smaller --scale helps')
    purposes = request.common.purpose, VALIDATION
    motions = [_written(plan, place, purpose)
               for plan, place, purpose in zip(plans, places, purposes)]
    return {
        'robot': robot.name, 'type': request.kind, **motions[0],
        'validation': motions[1] if judge else None,
        'starts': [vars(start) for start in design.starts], 'ended_early': design.ended_early,
        'stages': [vars(stage) for stage in design.stages],
        'session': design.session and {
            **to_plain(design.session), 'outlook': design.session.outlook},
        'seconds': time.perf_counter() - started,
    }


def _written(plan: Plan, place: argparse.Namespace, purpose: str) -> dict[str, Any]:
    """Write the trajectory and the report of a plan; return what is told of it."""
    from robot_dynid.io.trajectory_file import save_trajectory
    from robot_dynid.report.plan import plan_report
    from robot_dynid.trajectories.composite import elements

    design = plan.found
    save_trajectory(design.trajectory, place.out, plan.robot.name, purpose)
    with written_before(place.out):
        chapters = reported(place, partial(plan_report, plan), partial(plan_report, plan))
    return {'out': place.out, 'report': place.report, **_figures(design),
            'duration': design.trajectory.duration, 'limits': design.used,
            'elements': elements(design.trajectory), 'warnings': design.warnings,
            'chapters': chapters}


def _request(arguments: argparse.Namespace) -> Request:
    """Return the request of the options; raises UsageError where they contradict each other."""
    from robot_dynid.excitation.families import parse_request
    from robot_dynid.execution.plan import RATE
    from robot_dynid.execution.sampled import check_points

    options = {name: value for name in OPTIONS
               if (value := getattr(arguments, name)) is not None}
    if arguments.adaptive is not None:
        if arguments.procedure not in (None, arguments.adaptive):
            raise UsageError(f'--adaptive excludes --procedure {arguments.procedure}: omit one of '
                             'them')
        options['procedure'] = arguments.adaptive
    request = parse_request(arguments.type, with_text(options, arguments.options))
    if arguments.data and getattr(request.options, 'procedure', '') != 'adaptive':
        raise UsageError('--data is for adaptive sine sequences only: omit it, or add --type '
                         'sine-sequence --adaptive')
    RATE.read(arguments.rate, "option 'rate'")
    check_points(getattr(request.options, 'duration', 0.0), arguments.rate)
    return request


def _figures(found: Design) -> dict[str, Any]:
    """Return the figures of the excitation and of the clearance."""
    from robot_dynid.collision.clearance import RESOLUTION

    score, clearance = found.score, found.clearance
    assert score is not None
    return {
        'condition_number': score.condition_number, 'log_det': score.log_det,
        'parts': dict(score.parts), 'largest_deviation': score.largest_deviation,
        'least_known': score.least_known,
        'clearance': None if clearance is None or not clearance.checked else {
            'smallest': clearance.smallest, 'certain_to': RESOLUTION, 'pair': clearance.pair,
            'time': clearance.time, 'checked': clearance.checked,
            'unchecked': clearance.unchecked},
    }


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print how well the motion excites, what it uses of the limits, and the files."""
    if result['out'] is None:
        terminal.line(
            f'the accuracy {percent(result["session"]["accuracy"])} % is met: '
            f'{result["least_known"]}, deviation {percent(result["largest_deviation"])} %; no '
            'further recording is needed')
        return
    judge = result['validation'] or {'out': None, 'report': None, 'warnings': ()}
    terminal.document(result['chapters'], (
        f'validation motion: {warning}' for warning in judge['warnings']
        if warning not in result['warnings']), after=1)
    terminal.written((('fit motion', result['out']), ('validation motion', judge['out']),
                      ('report', result['report']), ('report', judge['report'])))
