"""`robot-dynid validate` and `compare`: scores of models on recordings, and what changed."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    READING,
    add_common,
    check_outputs,
    load_logs,
    load_model,
    of_recordings,
    reported,
)
from robot_dynid.cli.terminal import named
from robot_dynid.cli.verbs import Command
from robot_dynid.errors import ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
    from robot_dynid.validation.validate import Scores, Validation

HELP = 'score a model on held-out recordings'
EXAMPLES = (
    'robot-dynid validate M.yaml test.csv --report R.html',
    'robot-dynid validate M.yaml test_*.csv --max-nrmse 0.2 --max-nrmse joint_6=0.4',
    'robot-dynid validate M.yaml bag/ --forward --json',
    'robot-dynid validate M.yaml --plan T.yaml',
)
LARGEST_SHARE = 1e3  # share that may be asked for
#: endings of model files among the files to compare
MODELS = ('.yaml', '.yml')
#: states along a plan, and their channels
PLAN_SAMPLES, STATES = 5000, ('position', 'velocity', 'acceleration')
PARTS = ('motion', 'rest', 'near reversals')
#: keys of the scores with friction that warms up, and with all slow changes
WARM_UP, ADAPTIVE = 'warm_up', 'adaptive'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser, 'model')
    parser.add_argument('data', metavar='DATA', nargs='*',
                        help='recordings, or folders of them; if some names end in _validation, '
                             'only those')
    parser.add_argument('--plan', metavar='T.yaml',
                        help='print the error to expect of each joint on a planned motion, '
                             'beside that on DATA, if given')
    add_common(parser, '--robot', '--report')
    parser.add_argument('--forward', action='store_true',
                        help='also score accelerations and simulated motions of 0.1, 0.5 and 1 s')
    parser.add_argument('--max-nrmse', action='append', default=[], metavar='[JOINT=]SHARE',
                        help='exit with 1 if RMSE / std of any joint, or of JOINT, is above SHARE '
                             '(repeatable)')
    add_common(parser, *READING, '--accept-partial')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and recordings, score, write the report."""
    if not arguments.plan and not arguments.data:
        raise UsageError('nothing to score the model on: give recordings, or --plan T.yaml')
    return (_run_plan if arguments.plan else _run_data)(arguments, terminal)


def _run_plan(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and plan, compute the errors to expect, and those on recordings, if any."""
    import numpy as np

    from robot_dynid.identified.expected_error import expected_errors
    from robot_dynid.io.trajectory_file import load_trajectory
    from robot_dynid.report.expected import expected_report
    from robot_dynid.validation.validate import validate

    if arguments.forward or arguments.max_nrmse:
        raise UsageError('--plan prints errors to expect: omit --forward and --max-nrmse')
    check_outputs(reports=[arguments.report], inputs=(
        arguments.model, arguments.plan, *arguments.data, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    trajectory = load_trajectory(arguments.plan)
    if trajectory.joints != model.joints:
        raise UsageError(f'{arguments.plan}: moves {", ".join(trajectory.joints)}, the joints of '
                         f'the model are {", ".join(model.joints)}')
    instants = np.linspace(0.0, trajectory.duration, PLAN_SAMPLES)
    motion = trajectory.sample(instants)
    states = motion.position, motion.velocity, motion.acceleration
    expected = expected_errors(model, instants, *states)
    scored: dict[str, Any] = {}
    with terminal.progress('validate') as progress:
        logs = load_logs(arguments.data, of_recordings(model.robot, arguments), progress,
                         arguments.accept)
        if arguments.data:
            progress('scoring', 0.8)
            scored = joint_scores(validate(model, logs))
    measured = {joint: score['rmse'] for joint, score in scored.items()}
    warnings = model.trained.warnings(model.robot, dict(zip(STATES, states, strict=True)))
    report = partial(expected_report, model, expected, measured, warnings)
    return {'ok': True, 'robot': model.robot.name, 'model': arguments.model,
            'plan': arguments.plan, 'expected': [vars(one) for one in expected],
            'joints': scored, 'above_max_nrmse': [], 'findings': logs.findings,
            'warnings': warnings, 'report': arguments.report,
            'chapters': reported(arguments, report, report)}


def _run_data(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and recordings, score, write the report."""
    from robot_dynid.identified.caution import require_every_joint, usable
    from robot_dynid.io.recording_names import by_purpose, listed
    from robot_dynid.report import identification as reports
    from robot_dynid.validation.evidence import Names
    from robot_dynid.validation.forward_scores import validate_forward
    from robot_dynid.validation.validate import validate
    from robot_dynid.validation.verdict import judged

    started = time.perf_counter()
    fitted, judges = by_purpose(listed(arguments.data))
    if judges:
        terminal.note(f'fit recordings, not scored: {", ".join(fitted)}')
    arguments.data = judges or fitted
    check_outputs(reports=[arguments.report], inputs=(
        arguments.model, *arguments.data, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    allowed = _allowed(arguments.max_nrmse, model.robot.row_names)
    if arguments.forward:
        require_every_joint(model, arguments.accept_partial,
                            'omit --forward, or add --accept-partial')
    forward, failed = None, ''
    with terminal.progress('validate') as progress:
        logs = load_logs(arguments.data, of_recordings(model.robot, arguments), progress,
                         arguments.accept)
        progress('scoring', 0.8)
        validation = validate(model, logs)
        if arguments.forward:
            progress('forward dynamics', 0.85)
            try:
                forward = validate_forward(model, logs)
            except ModelError as error:  # all else is shown
                failed = f'no forward dynamics: {error}'
                terminal.caution(failed)
        names = Names.of(model, arguments.model, arguments.robot)
        verdict = judged(model, validation, forward=forward, names=names)
        warnings = tuple(filter(None, (
            *reports.validation_warnings(validation, forward), failed)))
        progress('report', 0.9)
        chapters = reported(
            arguments, lambda: reports.validation_report(
                model, validation, logs, forward, verdict, arguments.command),
            lambda: reports.brief_report(model, verdict, warnings))
    joints = joint_scores(validation)
    above = [joint for joint, limit in allowed.items() if not joints[joint]['nrmse'] <= limit]
    return {
        'ok': usable(model, arguments.accept_partial) and not above and not failed,
        'robot': model.robot.name, 'model': arguments.model, 'files': len(logs.recordings),
        'joints': joints, 'max_nrmse': allowed, 'above_max_nrmse': above,
        'not_identified': model.not_identified,
        'outside': {t.source: [vars(one) for one in t.outside]
                    for t in validation.traces if t.outside},
        'rollout': rollout_score(validation),
        'verdict': verdict.plain(),
        'forward': {} if forward is None else forward_scores(model, forward),
        'findings': logs.findings,
        'warnings': warnings, 'report': arguments.report,
        'seconds': time.perf_counter() - started, 'chapters': chapters,
    }


def _allowed(texts: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Return the largest allowed RMSE / std by name; what is said of a joint comes first."""
    from robot_dynid.numbers import NumberRange

    limits: dict[str, float] = {}
    for text in sorted(texts, key=lambda text: '=' in text):
        joint, _, share = text.rpartition('=')
        if joint and joint not in names:
            raise UsageError(f"option --max-nrmse {text}: the model has no joint '{joint}'; it "
                             f'has {", ".join(names)}')
        try:
            number = float(share)
        except ValueError:
            raise UsageError(f'option --max-nrmse {text}: must be a share such as 0.2, or '
                             f'{names[0]}=0.2') from None
        NumberRange(0.0, LARGEST_SHARE).read(number, f'option --max-nrmse {text}:')
        limits.update(dict.fromkeys([joint] if joint else names, number))
    return limits


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print verdict, next actions, and joints whose error is not allowed."""
    above = result['above_max_nrmse']
    terminal.document(result['chapters'], named(result['findings']),
                      after=bool(above) + bool(result['report']))
    if above:
        terminal.line('exit code 1, RMSE / std is above --max-nrmse: ' + ', '.join(
            f'{joint} {result["joints"][joint]["nrmse"]:.3f} (limit '
            f'{result["max_nrmse"][joint]:g})' for joint in above), 'red')
    terminal.written((('report', result['report']),))


def _add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('files', metavar='M.yaml|DATA', nargs='+',
                        help='two or more models, compared with the first, and recordings '
                             'to score all of them on')
    add_common(parser, '--report', *READING)


def run_compare(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read models and recordings, compare, write the report."""
    from robot_dynid.identified.comparison import differences
    from robot_dynid.report.comparison import comparison_report

    paths = [path for path in arguments.files if path.lower().endswith(MODELS)]
    data = [path for path in arguments.files if path not in paths]
    if len(paths) < 2:
        raise UsageError('nothing to compare: give two models or more, then recordings, if any')
    check_outputs(reports=[arguments.report], inputs=arguments.files)
    models = [load_model(path, None) for path in paths]
    with terminal.progress('compare') as progress:
        changes = {}
        for path, model in zip(paths[1:], models[1:], strict=True):
            progress(f'comparing {path}', 0.1)
            changes[path] = differences(models[0], model)
        scores = _scores_of(models, data, arguments, progress)
        progress('report', 0.9)
        report = partial(comparison_report, dict(zip(paths, models, strict=True)), changes,
                         dict(zip(paths, scores)))
        chapters = reported(arguments, report, report)
    return {
        'ok': True, 'robot': models[0].robot.name, 'models': paths, 'files': data,
        'changes': {path: [vars(one) for one in changed] for path, changed in changes.items()},
        'not_identified': {path: model.not_identified for path, model in zip(paths, models)},
        'joints': {path: joint_scores(one) for path, one in zip(paths, scores)},
        'warnings': list(dict.fromkeys(text for one in scores for text in one.warnings)),
        'report': arguments.report, 'chapters': chapters,
    }


def _scores_of(
    models: list[IdentifiedModel], data: list[str], arguments: argparse.Namespace,
    progress: Any
) -> list[Validation]:
    """Return the scores of every model, none without recordings."""
    from robot_dynid.validation.validate import validate

    if not data:
        return []
    logs = load_logs(data, of_recordings(models[0].robot, arguments), progress, arguments.accept)
    scores = []
    for i, model in enumerate(models):
        progress('scoring', 0.2 + 0.6 * i / len(models))
        scores.append(validate(model, logs))
    return scores


def show_compare(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what changed, joint by joint, and the errors of the models."""
    terminal.document(result['chapters'], result['warnings'], after=bool(result['report']))
    terminal.written((('report', result['report']),))


def joint_scores(validation: Validation) -> dict[str, Any]:
    """Return joint -> score over all samples, with motion, rest and the control row inside.

    So are, where the model has slow changes, the scores with these.
    """
    repeatability, noise = validation.repeatability, validation.noise
    slow = {key: scores for key, scores in (
        (WARM_UP, validation.warm_up), (ADAPTIVE, validation.adaptive)) if scores}
    return {joint: {
        **vars(score), 'repeatability': None if repeatability is None else float(repeatability[i]),
        'noise': None if noise is None else float(noise[i]),
        **_parts(validation.model, validation.control, joint),
        **{key: vars(scores['all'][joint]) for key, scores in slow.items()},
    } for i, (joint, score) in enumerate(validation.model['all'].items())}


def _parts(model: Scores, control: Scores, joint: str) -> dict[str, Any]:
    """Return the scores of a joint by part of the samples, and that of the control row."""
    parts = {part: vars(model[part][joint]) for part in PARTS if joint in model.get(part, {})}
    if joint in control.get('all', {}):
        parts['control'] = vars(control['all'][joint])
    return parts


def rollout_score(validation: Validation) -> dict[str, Any]:
    """Return length and number of simulated motions, and the errors of every joint."""
    score = validation.rollout
    if score is None:
        return {}
    errors = zip(validation.model['all'], score.position.tolist(), score.velocity.tolist(),
                 strict=True)
    return {'seconds': score.seconds, 'count': score.count, 'stopped': score.stopped, 'joints': {
        joint: {'position': position, 'velocity': velocity}
        for joint, position, velocity in errors} if score.stopped < score.count else {}}


def forward_scores(model: IdentifiedModel, found: ForwardValidation) -> dict[str, Any]:
    """Return the scores of accelerations by joint, and of rollouts by horizon."""
    accelerations = {
        joint: {**vars(score), 'floor': floor, **_parts(found.model, found.control, joint)}
        for (joint, score), floor in zip(found.model['all'].items(), found.floor.tolist(),
                                         strict=True)}
    return {'accelerations': accelerations,
            'rollouts': [_horizon(model.joints, horizon) for horizon in found.horizons]}


def _horizon(joints: Sequence[str], horizon: Horizon) -> dict[str, Any]:
    """Return the errors of a horizon by joint: of the model, and what stands beside it."""
    scores = horizon.scores
    errors = {name: list(zip(one.position.tolist(), one.velocity.tolist(), strict=True))
              for name, one in scores.items() if one.stopped < one.count}
    return {'seconds': horizon.seconds, 'count': max(one.count for one in scores.values()),
            'stopped': {name: one.stopped for name, one in scores.items()},
            'joints': {joint: {name: {'position': values[j][0], 'velocity': values[j][1]}
                               for name, values in errors.items()}
                       for j, joint in enumerate(joints)}}


COMPARE = Command(
    'compare models of one robot: significant changes, errors on recordings', (
        'robot-dynid compare old.yaml new.yaml',
        'robot-dynid compare spring.yaml autumn.yaml test.csv --report changes.html'),
    _add_compare_arguments, run_compare, show_compare)
