"""`robot-dynid identify`: from recordings to an identified model."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    add_accept,
    add_accept_partial,
    check_outputs,
    load_logs,
    recording_digests,
    report_mark,
    reported,
    written_before,
)
from robot_dynid.cli.many import add_workers, by_recording, recorded, unread
from robot_dynid.cli.scores import joint_scores, show_scores
from robot_dynid.cli.terminal import number, percent
from robot_dynid.cli.verdict import show_verdict
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal
    from robot_dynid.estimation import Estimator
    from robot_dynid.identification.by_recording import Recorded
    from robot_dynid.identification.identify import IdentificationResult
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.identification.recorded_information import RecordedInformation
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
                        help='recordings: .csv, .csv.gz, rosbag2 folder, .mcap, .db3, all of one '
                             'or a window in seconds since it began: run.csv.gz[12.0:40.5]; '
                             "folders of these, patterns ('run_*.mcap'), lists of them "
                             '(@list.txt). Those with the purpose validation, or a name that '
                             'ends in _validation, are left out of the fit and judge it. And '
                             'information of recordings, X.info, see the verb information')
    parser.add_argument('--robot', help='name, URDF file or robot YAML; without it that of the '
                                        'information')
    parser.add_argument('--recipe', metavar='R.yaml',
                        help='settings that are not to be chosen from the data')
    parser.add_argument('--method', metavar='METHOD',
                        help=f'{", ".join(ESTIMATORS)}; default: that of the recipe, or {DEFAULT}')
    for key, (setting, owners) in owned_settings().items():
        parser.add_argument(f'--{key.replace("_", "-")}', dest=f'{SETTING}{key}', metavar='VALUE',
                            help=f'{setting.help} (method {", ".join(owners)})')
    add_workers(parser)
    parser.add_argument('--out', required=True, metavar='M.yaml', help='model file to write')
    parser.add_argument('--report', metavar='R.html', help='report to write')
    add_accept_partial(parser)
    add_accept(parser)
    parser.add_argument('--urdf', metavar='OUT.urdf',
                        help="the robot's URDF with the identified inertials; needs --method "
                             f'{" or ".join(feasible)}')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read, identify, write model and report."""
    from robot_dynid.export import urdf as urdf_file
    from robot_dynid.identification.identify import judged_by
    from robot_dynid.identification.recipe import Recipe, read_recipe
    from robot_dynid.identified import model_file
    from robot_dynid.identified.caution import require_every_joint, usable
    from robot_dynid.io.purpose import by_purpose
    from robot_dynid.io.recording_names import listed
    from robot_dynid.report.identification import identification_report
    from robot_dynid.validation.next_actions import Names

    started = time.perf_counter()
    arguments.data, judges = by_purpose(listed(arguments.data))
    outputs = ((arguments.out, model_file.MARK), (arguments.urdf, urdf_file.MARK),
               (arguments.report, report_mark(arguments.report)))
    check_outputs(*outputs, inputs=(
        *arguments.data, *judges, arguments.robot, arguments.recipe))
    recipe = read_recipe(arguments.recipe) if arguments.recipe else Recipe()
    recipe = recipe.with_estimator_settings(_settings(arguments))
    estimator = recipe.estimator_for(arguments.method)
    robot, information = _inputs(arguments)
    check_outputs(*outputs, inputs=(robot.source,))
    urdf = _urdf(robot, estimator) if arguments.urdf else ''
    with terminal.progress('identify') as progress, \
            recorded(arguments, terminal) as workers:
        known = (robot, information, workers)
        result, logs = _identified(arguments, known, recipe, progress)
        result.model.save(arguments.out)
        findings = logs.findings
        if judges:
            terminal.note(f'left out of the fit, to judge by: {", ".join(judges)}')
            with written_before(arguments.out):
                unseen = load_logs(judges, robot, progress, arguments.accept)
                result = judged_by(result, unseen)
            findings |= unseen.findings
        seconds = time.perf_counter() - started
        verdict = result.verdict_with(Names(arguments.robot, arguments.out))
        progress('report', 0.9)
        with written_before(arguments.out):
            chapters = reported(arguments, lambda: identification_report(
                result, logs, verdict=verdict, command=arguments.command))
    found = {'ok': usable(result.model, arguments.accept_partial), **_result(result),
             'verdict': verdict.plain()}
    if arguments.urdf:
        with written_before(arguments.out, arguments.report):
            require_every_joint(result.model, arguments.accept_partial,
                                f'{arguments.urdf} is not written')
            found |= _exported(result, urdf, arguments.urdf)
    return {**found, 'out': arguments.out, 'report': arguments.report, 'seconds': seconds,
            'findings': findings, 'chapters': chapters}


def _inputs(arguments: argparse.Namespace) -> tuple[RobotModel, RecordedInformation | None]:
    """Return the robot, and the sum of the information files among the data, None for none.

    Raises UsageError where neither is there, or they do not belong together.
    """
    from robot_dynid.identification.by_recording import merged
    from robot_dynid.robot.robot_file import load_robot

    paths = [path for path in arguments.data if _is_information(path)]
    if arguments.robot is None and not paths:
        raise UsageError('--robot is missing: which robot was recorded? A name, URDF file or '
                         'robot YAML')
    robot = load_robot(arguments.robot) if arguments.robot else None
    known = merged(_of_robot(robot, paths)) if paths else None
    if robot is None:
        assert known is not None
        robot = known.robot
    return robot, known


def _of_robot(robot: RobotModel | None, paths: list[str]) -> Iterator[RecordedInformation]:
    """Yield information files one by one; raises UsageError where one is of another robot."""
    from robot_dynid.io.information_file import load_information

    for path in paths:
        one = load_information(path)
        if robot is not None and one.robot.hash() != robot.hash():
            raise UsageError(f'the information of {", ".join(one.record.recordings)} is of '
                             f'{one.robot.name}, not of {robot.name}')
        yield one


def _is_information(path: str) -> bool:
    from robot_dynid.io.information_file import SUFFIX

    return path.endswith(SUFFIX)


def _identified(
    arguments: argparse.Namespace,
    inputs: tuple[RobotModel, RecordedInformation | None, Recorded], recipe: Recipe,
    progress: Progress,
) -> tuple[IdentificationResult, Parts]:
    """Identify from recordings, from information, or from information and recordings like it."""
    from robot_dynid.identification.identify import identify, identify_with, with_recordings
    from robot_dynid.identification.recorded_information import identify_information
    from robot_dynid.signals.parts import Parts

    robot, known, workers = inputs
    paths = [path for path in arguments.data if not _is_information(path)]
    if known is not None:
        if paths:
            known = known.merged(_reduced(arguments, paths, (known, workers), recipe, progress))
        result = identify_information([known], arguments.method, recipe, progress)
        return result, Parts(known.excerpt)
    if by_recording(arguments, paths):
        result = identify_with(workers, robot, unread(arguments, paths, robot), arguments.method,
                               recipe, progress)
        return result, workers.opened
    logs = load_logs(paths, robot, progress, arguments.accept)
    result = identify(robot, logs, arguments.method, recipe, progress, time.perf_counter)
    return with_recordings(result, recording_digests(paths)), logs


def _reduced(
    arguments: argparse.Namespace, paths: list[str],
    like: tuple[RecordedInformation, Recorded], recipe: Recipe, progress: Progress,
) -> RecordedInformation:
    """Reduce recordings as information that is known."""
    from dataclasses import replace

    from robot_dynid.identification.identify import with_digests
    from robot_dynid.identification.recorded_information import information

    known, workers = like
    if by_recording(arguments, paths):
        logs = unread(arguments, paths, known.robot)
        return information(known.robot, logs, recipe, known, progress, workers)
    logs = load_logs(paths, known.robot, progress, arguments.accept)
    more = information(known.robot, logs, recipe, known, progress)
    record = with_digests(more.record, recording_digests(paths))
    return replace(more, record=record)


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


def _exported(result: IdentificationResult, urdf: str, path: str) -> dict[str, Any]:
    export = result.model.to_urdf(urdf, result.model.robot.source)
    export.save(path)
    return {'urdf': path, 'changed_links': export.changed_links,
            'warnings': (*result.warnings, *export.warnings)}


def _result(result: IdentificationResult) -> dict[str, Any]:
    import numpy as np

    from robot_dynid.estimation.estimate import interval_factor
    from robot_dynid.identified.link_table import link_table
    from robot_dynid.identified.parameter_card import parameter_card
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
    """Print choices, parameters, scores, warnings, status."""
    from robot_dynid.document import counted

    _show_refused(result, terminal)
    terminal.table('base parameters', ('name', 'value', 'std', 'relative %', 'combination'), (
        (p['name'], p['value'], number(p['std'], 2), percent(p['relative_std']), p['label'])
        for p in result['parameters']))
    terminal.table('links', ('link', 'mass', 'nominal', 'least eigenvalue', 'from the prior',
                             'only in combination'), (
        (r['link'], r['mass'], r['nominal_mass'], r['smallest_eigenvalue'],
         ', '.join(r['from_prior']), ', '.join(r['combined'])) for r in result['links']))
    for section in result['sections']:
        for table in section['tables']:
            terminal.table(table['title'] or section['title'], table['columns'],
                           (row['cells'] for row in table['rows']))
    _show_gears(result, terminal)
    _show_ripple(result, terminal)
    for mean in result['averaging']:
        terminal.table(
            f'{mean["source"]}: noise of {mean["periods"]} periods of {mean["period"]:.7g} s',
            ('joint', 'position', 'effort', 'mean effort', 'residual of the fit'),
            ((joint, position, effort, effort / mean['periods'] ** 0.5, residual)
             for (joint, residual), position, effort in zip(
                 result['residual'].items(), mean['position_noise'], mean['effort_noise'])))
    terminal.table('error on data left out [N m]', (
        'joint', 'friction', 'and links', 'and deflection', 'used'), (
        (r['joint'], r['friction'], r['physics'], r['with_residual'], r['used'])
        for r in result['deflection'].get('joints', [])))
    _show_friction(result, terminal)
    show_scores('prediction of the files of the fit', result['joints'], terminal)
    terminal.table('error to expect [N m]', ('joint', 'motion left out', 'a new motion'), (
        (joint, one['left_out'], one['new_motion'])
        for joint, one in result['expected'].items()))
    if result['validation']:
        show_scores(f'prediction of {counted(len(result["validation"]["recordings"]))} that the '
                    'fit has not seen', result['validation']['joints'], terminal)
    terminal.facts((
        ('status', f'{result["status"]}: {result["advice"]}'),
        ('samples', f'{result["samples"]} (after preprocessing)'),
        ('rank', f'{result["rank"]} of {result["base"]} base parameters'),
        ('condition', f'{number(result["condition_number"])} with unit columns, '
                      f'{number(result["condition_number_raw"])} raw'),
        ('method', result['method_sentence'] or result['method']),
        ('95 % intervals', f'value +- {number(result["interval_factor"])} std'),
        ('friction between recordings', result['friction_spread_sentence']),
        *_choice_rows(result['preprocessing']),
        ('model', result['out']), ('report', result['report']), ('urdf', result.get('urdf')),
        ('seconds', f'{result["seconds"]:.1f}'),
    ))
    terminal.warnings(f'{source}: {text}' for source, texts in result['findings'].items()
                      for text in texts)
    terminal.warnings(result['warnings'])
    show_verdict(result['verdict'], terminal)


def _show_refused(result: dict[str, Any], terminal: Terminal) -> None:
    """Print, before anything else, the joints the model must not be used for."""
    for joint, reason in result['refused'].items():
        terminal.line(f'joint {joint} is refused: {reason}', style='red')
    if not result['ok']:
        terminal.line(f'{result["out"]} is written, but not to be used for '
                      f'{", ".join(result["refused"])}, so the exit code is 1: check the effort, '
                      'or accept a model of the other joints with --accept-partial', style='red')


def _show_friction(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the laws that were chosen, and curves from sweeps."""
    terminal.table('friction laws', ('axis', 'law', 'held-out error over that of coulomb'), (
        (c['axis'], c['law'], number(_ratio(c))) for c in result['friction_choice']))
    terminal.table('friction over speed, from sweeps', ('joint', 'speeds', 'law', 'parameters'), (
        (c['joint'], str(len(c['points'])), c['law'] or 'none',
         ', '.join(f'{p["name"]} {number(p["value"])} +- {number(p["std"], 2)}'
                   for p in c['parameters'])) for c in result['friction_curves']))


def _show_gears(result: dict[str, Any], terminal: Terminal) -> None:
    """Print elastic joints with their encoders, and the rigid fit beside the elastic one."""
    terminal.table('elastic joints: gears, and encoders [mrad]', (
        'joint', 'K', 'std', 'D', 'J', 'offset', 'deflection', 'peak', 'steps', 'noise in K %'), (
        (g['joint'], g['stiffness'], number(g['stiffness_std'], 2), g['damping'],
         g['rotor_inertia'], f'{1e3 * g["offset"]:.4g} +- {1e3 * g["offset_std"]:.2g}',
         number(1e3 * g['deflection_rms'], 3), number(1e3 * g['deflection_peak'], 3),
         f'{1e3 * g["resolution_link"]:.2g}, {1e3 * g["resolution_motor"]:.2g}',
         number(100.0 * g['attenuation'], 2)) for g in result['gears']))
    terminal.table('effects of gears', ('joint', 'kinematic error [mrad]', 'hysteresis [N m]'), (
        (g['joint'], *(f'{number(size * g[key])} +- {number(size * g[f"{key}_std"], 2)}'
                       if g[key] else 'none seen'
                       for key, size in (('kinematic_error', 1e3), ('hysteresis', 1.0))))
        for g in result['gears'] if g['kinematic_error'] or g['hysteresis']))
    terminal.table('error on data left out [N m], rigid beside elastic', (
        'joint', 'fitted as', 'rigid model', 'elastic model', 'elasticity matters'), (
        (r['joint'], 'elastic' if r['elastic'] else 'rigid', r['rigid_error'],
         r['elastic_error'], r['matters']) for r in result['rigid_beside']))


def _show_ripple(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the torque ripple of the joints, and where there is none."""
    terminal.table('torque ripple, error on data left out [N m]', (
        'joint', 'without', 'with', 'variance explained %', 'waves per turn'), (
        (r['joint'], r['before'], r['after'], percent(r['gain']),
         ', '.join(number(w['order']) for w in r['waves']))
        for r in result['ripple'] if r['waves']))
    silent = ', '.join(r['joint'] for r in result['ripple'] if not r['waves'])
    if silent:
        terminal.note(f'no torque ripple beyond chance: {silent}')


def _ratio(choice: dict[str, Any]) -> float:
    return next(float(t['error_over_coulomb']) for t in choice['tried']
                if t['law'] == choice['law'])


def _choice_rows(choices: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the choices with their units."""
    lag = f'{number(1e3 * choices["effort_lag"])} ms'
    if choices['measured_lag']:
        measured = choices['measured_lag']
        lag += f' (measured {1e3 * measured["seconds"]:.3g} +- {1e3 * measured["std"]:.2g} ms)'
    return (
        ('cut-off', f'{number(choices["cutoff"])} Hz'), ('lag removed', lag),
        ('friction', '; '.join(choices['friction_laws'])),
        ('rotor inertia', number(choices['rotor_inertia'])),
    )
