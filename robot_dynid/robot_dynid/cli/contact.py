"""`robot-dynid contact`: external torque and contacts in recordings."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
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
from robot_dynid.document import subject

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'find external torque and contacts in recordings'
EXAMPLES = (
    'robot-dynid contact M.yaml run.csv',
    'robot-dynid contact M.yaml run.csv --margin 3 --report contacts.html',
)
COLUMNS = ('largest', 'without_contact', 'static_friction', 'threshold_in_motion',
           'blind_seconds')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser, 'model')
    parser.add_argument('data', metavar='DATA', nargs='+', help='recordings')
    add_common(parser, '--robot')
    parser.add_argument('--gain', type=float, default=30.0, metavar='1/S',
                        help='gain of the momentum observer (default: 30)')
    parser.add_argument('--margin', type=float, default=2.0,
                        help='threshold as a multiple of the noise level (default: 2)')
    add_common(parser, '--report', *READING, '--accept-partial')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and recordings, observe, write the report."""
    from robot_dynid.identified.caution import usable
    from robot_dynid.monitoring.contact_events import contact_events
    from robot_dynid.monitoring.monitor import MonitorSettings
    from robot_dynid.monitoring.observer import ContactSettings
    from robot_dynid.report.contact import contact_report

    started = time.perf_counter()
    check_outputs(reports=[arguments.report], inputs=(
        arguments.model, *arguments.data, arguments.robot))
    settings = MonitorSettings(arguments.gain, ContactSettings(margin=arguments.margin))
    model = load_model(arguments.model, arguments.robot)
    with terminal.progress('contact') as progress:
        logs = load_logs(arguments.data, of_recordings(model.robot, arguments), progress,
                         arguments.accept).uncut('contact detection')
        progress('observing', 0.8)
        events = contact_events(model, logs, settings)
        progress('report', 0.9)
        report = partial(contact_report, model, events)
        chapters = reported(arguments, report, report)
    accepted = model.not_identified if arguments.accept_partial else ()
    return {
        'ok': usable(model, arguments.accept_partial) and all(
            one.begins or one.joint in accepted for p in events for one in p.blind),
        'robot': model.robot.name, 'model': arguments.model, 'report': arguments.report,
        'recordings': {p.source: {
            'joints': {joint: dict(zip(COLUMNS, map(float, values), strict=True))
                       for joint, *values in zip(
                           model.joints, abs(p.torque).max(axis=0), p.without_contact,
                           p.static_friction, p.moving, p.blind_seconds(model.joints),
                           strict=True)},
            'contacts': [asdict(c) for c in p.contacts], 'watched': p.watched,
            'blind': [asdict(b) for b in p.blind]} for p in events},
        'warnings': [note for p in events for note in p.notes],
        'seconds': time.perf_counter() - started, 'chapters': chapters}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the contacts of every recording."""
    blind = {one['joint']: one['reason'] for recording in result['recordings'].values()
             for one in recording['blind'] if not one['begins']}
    terminal.document(result['chapters'], after=bool(result['report']) + (not result['ok']))
    if not result['ok']:
        terminal.line(f'exit code 1: {subject(list(blind), "was", "were")} blind for a while, so '
                      'contacts there may be missed (--accept-partial accepts refused joints): '
                      f'{"; ".join(dict.fromkeys(blind.values()))}', style='red')
    terminal.written((('report', result['report']),))
