"""`robot-dynid identify`: from recordings to an identified model."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    READING,
    add_common,
    check_outputs,
    load_logs,
    of_recordings,
    recording_digests,
    reported,
    written_before,
)
from robot_dynid.cli.recordings import add_workers, by_recording, recorded, reduced, unread
from robot_dynid.cli.terminal import named
from robot_dynid.cli.validate import joint_scores
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal
    from robot_dynid.estimation import Estimator
    from robot_dynid.identification.by_recording import Recorded, RecordedInformation
    from robot_dynid.identification.identify import IdentificationResult
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.signals.parts import Parts

HELP = 'identify a dynamic model from recordings'
EXAMPLES = (
    'robot-dynid identify train.csv --robot ur10e --out M.yaml --report R.html',
    'robot-dynid identify bag_1/ bag_2/ --robot my_arm.yaml --recipe R.yaml --out M.yaml',
    'robot-dynid identify recordings/ --robot my_arm.yaml --out M.yaml',
    "robot-dynid identify 'run.mcap[10:60]' --robot ur10e --method feasible --out M.yaml",
    'robot-dynid identify january/ @more.txt --robot ur10e --workers 8 --information kept/ '
    '--out M.yaml',
)
NAMES = {'method': 'robot_dynid.estimation:ESTIMATORS'}
#: prefix by which the options that are settings of a method are known among the others
SETTING = 'setting_'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; methods and their settings are those of the registry."""
    from robot_dynid.estimation import DEFAULT, ESTIMATORS, owned_settings

    feasible = [name for name, one in ESTIMATORS.items() if one.physically_feasible]
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = '\n'.join(['methods:', *(
        f'  {name:20} {one.summary}' for name, one in ESTIMATORS.items())])
    parser.add_argument('data', metavar='DATA', nargs='+',
                        help='recordings (.csv, .csv.gz, rosbag2 folder, .mcap, .db3, .bag), '
                             'windows of them in seconds (run.csv.gz[12.0:40.5]), folders, '
                             "patterns ('run_*.mcap'), lists (@list.txt), or X.info of the verb "
                             'information. Names that end in _validation are held out and '
                             'validate the model')
    parser.add_argument('--robot', help='name, URDF file or robot YAML; default: the robot of '
                                        'X.info')
    add_common(parser, '--recipe')
    parser.add_argument('--method', metavar='METHOD',
                        help=f'one of {", ".join(ESTIMATORS)} (default: {DEFAULT}, or as in the '
                             'recipe)')
    for key, (setting, owners) in owned_settings().items():
        parser.add_argument(f'--{key.replace("_", "-")}', dest=f'{SETTING}{key}', metavar='VALUE',
                            help=f'{setting.help} (method {", ".join(owners)})')
    add_workers(parser)
    parser.add_argument('--out', required=True, metavar='M.yaml', help='model file to write')
    add_common(parser, '--report', '--accept-partial', *READING)
    parser.add_argument('--urdf', metavar='OUT.urdf',
                        help='URDF with the identified inertials to write; needs --method '
                             f'{" or ".join(feasible)}')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read, identify, write model and report."""
    from robot_dynid.export import urdf as urdf_file
    from robot_dynid.identification.identify import validate_result, with_command
    from robot_dynid.identification.recipe import Recipe, read_recipe
    from robot_dynid.identified import model_file
    from robot_dynid.identified.caution import require_every_joint, usable
    from robot_dynid.io.recording_names import by_purpose, listed
    from robot_dynid.report.identification import brief_report, identification_report
    from robot_dynid.validation.evidence import Names

    started = time.perf_counter()
    arguments.data, judges = by_purpose(listed(arguments.data))
    check_writable = partial(
        check_outputs, (arguments.out, model_file.MARK), (arguments.urdf, urdf_file.MARK),
        reports=[arguments.report])
    check_writable(inputs=(*arguments.data, *judges, arguments.robot, arguments.recipe))
    recipe = read_recipe(arguments.recipe) if arguments.recipe else Recipe()
    recipe = recipe.with_estimator_settings(_settings(arguments))
    estimator = recipe.estimator_for(arguments.method)
    robot, information = _inputs(arguments)
    robot = of_recordings(robot, arguments, recipe)
    check_writable(inputs=(robot.source,))
    urdf = _urdf(robot, estimator) if arguments.urdf else ''
    with terminal.progress('identify') as progress, \
            recorded(arguments, terminal) as workers:
        inputs = (robot, information, workers)
        result, logs = _identified(arguments, inputs, recipe, progress)
        result = with_command(result, arguments.command)
        result.model.save(arguments.out)
        findings = logs.findings
        if judges:
            terminal.note(f'held out for validation: {", ".join(judges)}')
            with written_before(arguments.out):
                unseen = load_logs(judges, robot, progress, arguments.accept)
                result = validate_result(result, unseen)
            findings |= unseen.findings
        seconds = time.perf_counter() - started
        verdict = result.verdict_with(Names.of(result.model, arguments.out))
        progress('report', 0.9)
        with written_before(arguments.out):
            chapters = reported(
                arguments, lambda: identification_report(
                    result, logs, verdict, arguments.command),
                lambda: brief_report(result.model, verdict, result.warnings))
    report = {'ok': usable(result.model, arguments.accept_partial), **_result(result),
              'verdict': verdict.plain()}
    if arguments.urdf:
        with written_before(arguments.out, arguments.report):
            require_every_joint(result.model, arguments.accept_partial,
                                f'{arguments.urdf} is not written')
            export = result.model.to_urdf(urdf, result.model.robot.source)
            export.save(arguments.urdf)
        for text in export.warnings:
            terminal.caution(text)
        report |= {'urdf': arguments.urdf, 'changed_links': export.changed_links,
                   'warnings': (*result.warnings, *export.warnings)}
    return {**report, 'out': arguments.out, 'report': arguments.report, 'seconds': seconds,
            'findings': findings, 'chapters': chapters}


def _inputs(arguments: argparse.Namespace) -> tuple[RobotModel, RecordedInformation | None]:
    """Return the robot, and the sum of the information files among the data, None for none.

    Raises UsageError where neither is there, or they do not belong together.
    """
    from robot_dynid.identification.by_recording import merge_information
    from robot_dynid.io.information_file import SUFFIX, load_information
    from robot_dynid.robot.robot_file import load_robot

    paths = [path for path in arguments.data if path.endswith(SUFFIX)]
    if arguments.robot is None and not paths:
        raise UsageError('--robot is missing: which robot was recorded? A name, URDF file or '
                         'robot YAML')
    robot = load_robot(arguments.robot) if arguments.robot else None

    def of_robot() -> Iterator[RecordedInformation]:
        for one in map(load_information, paths):
            if robot is not None and one.robot.hash() != robot.hash():
                raise UsageError(f"the information of {', '.join(one.record.recordings)} belongs "
                                 f'to {one.robot.name}, not to {robot.name}')
            yield one

    merged = merge_information(of_robot()) if paths else None
    if robot is None:
        assert merged is not None
        return merged.robot, merged
    return robot, merged


def _identified(
    arguments: argparse.Namespace,
    inputs: tuple[RobotModel, RecordedInformation | None, Recorded], recipe: Recipe,
    progress: Progress,
) -> tuple[IdentificationResult, Parts]:
    """Identify from recordings, from information, or from information and recordings like it."""
    from robot_dynid.identification.identify import add_recording_digests, identify, identify_with
    from robot_dynid.identification.recorded_information import identify_information
    from robot_dynid.io.information_file import SUFFIX
    from robot_dynid.signals.parts import Parts

    robot, part, workers = inputs
    paths = [path for path in arguments.data if not path.endswith(SUFFIX)]
    if part is not None:
        if paths:
            part = part.merge(reduced(
                arguments, paths, (of_recordings(part.robot, arguments, recipe), part, workers),
                recipe, progress))
        result = identify_information([part], arguments.method, recipe, progress)
        return result, Parts(part.excerpt)
    if by_recording(arguments, paths):
        result = identify_with(workers, robot, unread(arguments, paths, robot), arguments.method,
                               recipe, progress)
        return result, workers.opened
    logs = load_logs(paths, robot, progress, arguments.accept)
    result = identify(robot, logs, arguments.method, recipe, progress, time.perf_counter)
    return add_recording_digests(result, recording_digests(paths)), logs


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a method among the options, as values of YAML."""
    from robot_dynid.yaml_text import load_yaml

    given = {key.removeprefix(SETTING): value for key, value in vars(arguments).items()
             if key.startswith(SETTING) and value is not None}
    return {key: load_yaml(value, f'--{key.replace("_", "-")}', UsageError)
            for key, value in given.items()}


def _urdf(robot: RobotModel, estimator: Estimator) -> str:
    """Return the text to be written anew; raises UsageError when there is nothing to do so."""
    from robot_dynid.estimation import ESTIMATORS
    from robot_dynid.robot.urdf import source_text

    if not estimator.physically_feasible:
        able = [name for name, one in ESTIMATORS.items() if one.physically_feasible]
        raise UsageError('--urdf needs physically feasible parameters, which method '
                         f'{estimator.name} does not give; choose --method {" or ".join(able)}')
    return source_text(robot)


def _result(result: IdentificationResult) -> dict[str, Any]:
    import numpy as np

    from robot_dynid.estimation.estimate import interval_factor
    from robot_dynid.identified.parameter_card import parameter_card
    from robot_dynid.identified.uses import link_table
    from robot_dynid.plain import to_plain

    estimate, model = result.estimate, result.model
    record, rows = to_plain(result.model.record), result.model.robot.row_names
    parameters = [
        {'name': name, 'value': value, 'std': std, 'interval': interval,
         'relative_std': relative, 'label': label}
        for name, value, std, interval, relative, label in zip(
            model.names, model.values.tolist(), model.std.tolist(),
            np.transpose(estimate.interval()).tolist(), estimate.relative_std.tolist(),
            model.labels)
    ]
    return {
        'status': estimate.status.name.lower(), 'advice': model.status,
        'refused': record['refused'],
        'robot': model.robot.name, 'method': estimate.method,
        'samples': result.experiment.information.samples,
        'base': len(parameters), 'rank': estimate.rank,
        'condition_number': estimate.condition, 'condition_number_raw': estimate.condition_raw,
        'preprocessing': _choices(result), 'joints': joint_scores(result.training),
        'expected': {} if estimate.shares is not None else {
            row: {'left_out': left, 'new_motion': new} for row, left, new in zip(
                rows, np.sqrt(result.held_out.raw).tolist(), result.held_out.promise.tolist())},
        'validation': None if result.validation is None else {
            'recordings': sorted({trace.source for trace in result.validation.traces}),
            'joints': joint_scores(result.validation)},
        'parameters': parameters,
        'interval_factor': interval_factor(estimate.degrees_of_freedom),
        'friction_spread': model.record.friction_spread,
        'friction_spread_sentence': model.record.spread_sentence,
        'not_excited': estimate.not_excited,
        'not_identified': model.not_identified, 'warnings': result.warnings,
        'stages': record['details'].get('stages', []), 'friction_choice': record['friction'],
        'friction_curves': record['friction_curves'], 'estimator': record['details'],
        'averaging': record['averaging'], 'deflection': record['residual'] or {},
        'gears': record['gears'], 'rigid_beside': record['rigid_beside'],
        'encoders': [{**to_plain(one), 'determined': one.determined, 'open': one.open}
                     for one in model.record.encoders],
        'ripple': [{**to_plain(one), 'gain': one.gain, 'stiffness': one.stiffness}
                   for one in model.record.ripple],
        'method_sentence': model.record.details.sentence(rows),
        'sections': to_plain(model.record.details.sections(model.method, rows)),
        'residual': dict(zip(rows, estimate.noise.tolist())),
        'links': [vars(row) for row in link_table(model)],
        'parameter_card': [vars(row) for row in parameter_card(model)],
    }


def _choices(result: IdentificationResult) -> dict[str, Any]:
    """Return the settings prescribed or chosen from the data."""
    model, lag = result.model, result.choice.lag
    return {
        **vars(model.preprocessing), 'rotor_inertia': model.structure.rotor_inertia,
        'friction': model.structure.friction_name,
        'friction_laws': model.structure.described,
        'ramp_width': [s.get('width') for s in model.structure.settings],
        'measured_lag': None if lag is None else {'seconds': lag.seconds, 'std': lag.std},
    }


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print refusals, verdict, next actions, and what was written."""
    if not result['ok']:
        terminal.line(result['advice'], 'red')
    terminal.document(result['chapters'], named(result['findings']), after=1 + (not result['ok']))
    files = (('model', result['out']), ('report', result['report']), ('URDF', result.get('urdf')))
    seconds = f'{result["seconds"]:.1f} s'
    terminal.written(files, seconds if result['ok'] else f'{seconds}, exit code 1: joints are '
                     'refused; --accept-partial accepts the model of the others', result['ok'])
