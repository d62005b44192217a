"""`robot-dynid compare`: models of one robot side by side, and what changed between them."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    add_accept,
    check_outputs,
    load_logs,
    load_model,
    report_mark,
    reported,
)
from robot_dynid.cli.scores import joint_scores
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.validation.validate import Validation

HELP = 'compare models of one robot: what changed beyond its intervals, and errors on recordings'
EXAMPLES = (
    'robot-dynid compare old.yaml new.yaml',
    'robot-dynid compare spring.yaml autumn.yaml test.csv --report changes.html',
)
MODELS = ('.yaml', '.yml')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('files', metavar='M.yaml M.yaml ... [DATA ...]', nargs='+',
                        help='two models or more, the first of which the others are compared '
                             'with, and recordings on which all are scored')
    parser.add_argument('--report', metavar='R.html', help='report to write')
    add_accept(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read models and recordings, compare, write the report."""
    from robot_dynid.identified.comparison import differences
    from robot_dynid.report.comparison import comparison_report

    paths = [path for path in arguments.files if path.lower().endswith(MODELS)]
    data = [path for path in arguments.files if path not in paths]
    if len(paths) < 2:
        raise UsageError('nothing to compare: give two models or more, then recordings, if any')
    check_outputs((arguments.report, report_mark(arguments.report)), inputs=arguments.files)
    models = [load_model(path, None) for path in paths]
    with terminal.progress('compare') as progress:
        changes = {}
        for path, model in zip(paths[1:], models[1:], strict=True):
            progress(f'comparing {path}', 0.1)
            changes[path] = differences(models[0], model)
        scores = _scores(models, data, arguments.accept, progress)
        progress('report', 0.9)
        report = partial(comparison_report, dict(zip(paths, models, strict=True)), changes,
                         dict(zip(paths, scores)))
        chapters = reported(arguments, report, report)
    return {
        'ok': True, 'robot': models[0].robot.name, 'models': paths, 'files': data,
        'changes': {path: [vars(one) for one in found] for path, found in changes.items()},
        'not_identified': {path: model.not_identified for path, model in zip(paths, models)},
        'joints': {path: joint_scores(one) for path, one in zip(paths, scores)},
        'warnings': list(dict.fromkeys(text for one in scores for text in one.warnings)),
        'report': arguments.report, 'chapters': chapters,
    }


def _scores(
    models: list[IdentifiedModel], data: list[str], accept: list[str], progress: Any
) -> list[Validation]:
    """Return the scores of every model, none without recordings."""
    from robot_dynid.validation.validate import validate

    if not data:
        return []
    logs = load_logs(data, models[0].robot, progress, accept)
    found = []
    for i, model in enumerate(models):
        progress('scoring', 0.2 + 0.6 * i / len(models))
        found.append(validate(model, logs))
    return found


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what changed, joint by joint, and the errors of the models."""
    terminal.document(result['chapters'])
    terminal.facts((('report', result['report']),))
    terminal.warnings(result['warnings'])
