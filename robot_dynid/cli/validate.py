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
)
from robot_dynid.cli.scores import joint_scores, show_scores

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'score a model on recordings it was not fitted to'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('model', metavar='M.yaml', help='identified model')
    parser.add_argument('data', metavar='DATA', nargs='+', help='recordings')
    parser.add_argument('--robot', help='check that the model belongs to this robot')
    parser.add_argument('--report', metavar='R.html', help='report to write')
    add_accept(parser)
    add_accept_partial(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and recordings, score, write the report."""
    from robot_dynid.identification.validate import validate
    from robot_dynid.identified.caution import usable

    started = time.perf_counter()
    check_outputs((arguments.report, report_mark(arguments.report)), inputs=(
        arguments.model, *arguments.data, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    with terminal.progress('validate') as progress:
        logs = load_logs(arguments.data, model.robot, progress, arguments.accept)
        progress('scoring', 0.8)
        validation = validate(model, logs)
        if arguments.report:
            from robot_dynid.report.html import validation_report, write_report

            progress('report', 0.9)
            write_report(validation_report(model, validation, logs), arguments.report)
    return {
        'ok': usable(model, arguments.accept_partial),
        'robot': model.robot.name, 'model': arguments.model, 'files': len(logs.recordings),
        'joints': joint_scores(validation), 'not_identified': model.not_identified,
        'outside': {t.source: [vars(one) for one in t.outside]
                    for t in validation.traces if t.outside},
        'findings': logs.findings,
        'warnings': validation.warnings, 'report': arguments.report,
        'seconds': time.perf_counter() - started,
    }


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the scores."""
    show_scores(f'{result["model"]} on {result["files"]} recording(s)', result['joints'], terminal)
    if result['report']:
        terminal.facts((('report', result['report']),))
    terminal.warnings(f'{source}: {text}' for source, texts in result['findings'].items()
                      for text in texts)
    terminal.warnings(result['warnings'])
