"""`robot-dynid validate`: scores of a model on recordings it was not fitted to."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    add_accept,
    add_accept_partial,
    check_outputs,
    load_logs,
    load_model,
    report_mark,
    reported,
)
from robot_dynid.cli.scores import forward_scores, joint_scores, rollout_score
from robot_dynid.errors import ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robot_dynid.cli.terminal import Terminal

HELP = 'score a model on recordings it was not fitted to'
EXAMPLES = (
    'robot-dynid validate M.yaml test.csv --report R.html',
    'robot-dynid validate M.yaml test_*.csv --max-nrmse 0.2 --max-nrmse joint_6=0.4',
    'robot-dynid validate M.yaml bag/ --forward --json',
)
LARGEST = 1e3  # share that may be asked for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('model', metavar='M.yaml', help='identified model')
    parser.add_argument('data', metavar='DATA', nargs='+',
                        help='recordings, or folders of them; where some have the purpose '
                             'validation, or a name that ends in _validation, only those')
    parser.add_argument('--robot', help='check that the model belongs to this robot')
    parser.add_argument('--report', metavar='R.html', help='report to write')
    parser.add_argument('--forward', action='store_true',
                        help='score forward dynamics, too: accelerations under the measured '
                             'effort, and motions of 0.1, 0.5 and 1 s')
    parser.add_argument('--max-nrmse', action='append', default=[], metavar='[JOINT=]SHARE',
                        help='exit with 1 where RMSE / std of a joint is above this (may be given '
                             'several times, with a joint for that alone)')
    add_accept(parser)
    add_accept_partial(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and recordings, score, write the report."""
    from robot_dynid.identified.caution import require_every_joint, usable
    from robot_dynid.io.recording_names import by_purpose, listed
    from robot_dynid.report.identification import brief_validation, validation_report
    from robot_dynid.validation.evidence import Names
    from robot_dynid.validation.forward_scores import validate_forward
    from robot_dynid.validation.validate import validate
    from robot_dynid.validation.verdict import judged

    started = time.perf_counter()
    fitted, judges = by_purpose(listed(arguments.data))
    if judges:
        terminal.note(f'to fit, and not judged by: {", ".join(fitted)}')
    arguments.data = judges or fitted
    check_outputs((arguments.report, report_mark(arguments.report)), inputs=(
        arguments.model, *arguments.data, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    allowed = _allowed(arguments.max_nrmse, model.robot.row_names)
    if arguments.forward:
        require_every_joint(model, arguments.accept_partial,
                            'leave --forward out, or say --accept-partial')
    forward, failed = None, ''
    with terminal.progress('validate') as progress:
        logs = load_logs(arguments.data, model.robot, progress, arguments.accept)
        progress('scoring', 0.8)
        validation = validate(model, logs)
        if arguments.forward:
            progress('forward dynamics', 0.85)
            try:
                forward = validate_forward(model, logs)
            except ModelError as error:  # all else is shown
                failed = f'no forward dynamics: {error}'
                terminal.caution(failed)
        names = Names(arguments.robot, arguments.model) if arguments.robot else \
            Names.without_file(model.robot.name, arguments.model)
        verdict = judged(model, validation, forward=forward, names=names)
        progress('report', 0.9)
        chapters = reported(
            arguments, lambda: validation_report(
                model, validation, logs, forward, verdict, arguments.command),
            lambda: brief_validation(model, validation, forward, verdict))
    joints = joint_scores(validation)
    above = [joint for joint, most in allowed.items() if not joints[joint]['nrmse'] <= most]
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
        'warnings': tuple(dict.fromkeys((*validation.warnings, *([failed] if failed else (
            () if forward is None else forward.warnings))))), 'report': arguments.report,
        'seconds': time.perf_counter() - started, 'chapters': chapters,
    }


def _allowed(texts: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Return the largest allowed RMSE / std by name; what is said of a joint comes first."""
    from robot_dynid.numbers import NumberRange

    found: dict[str, float] = {}
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
        NumberRange(0.0, LARGEST).read(number, f'option --max-nrmse {text}:')
        found.update(dict.fromkeys([joint] if joint else names, number))
    return found


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print verdict, next actions and scores."""
    terminal.document(result['chapters'])
    for joint in result['above_max_nrmse']:
        terminal.line(f'{joint}: RMSE / std is {result["joints"][joint]["nrmse"]:.3f}, allowed '
                      f'is {result["max_nrmse"][joint]:g}', style='red')
    terminal.warnings(f'{source}: {text}' for source, texts in result['findings'].items()
                      for text in texts)
    terminal.facts((('report', result['report']),))
