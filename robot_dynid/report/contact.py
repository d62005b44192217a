"""The report of external torque and contacts in recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.document import Card, Figure, Row, Section, Table, number
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.contact_events import ContactEvents
from robot_dynid.report import figures
from robot_dynid.report.html import Report
from robot_dynid.report.libraries import make_subplots

ROW = 130  # pixels per joint
POINTS = 4000  # per curve


def contact_report(model: IdentifiedModel, found: Sequence[ContactEvents]) -> Report:
    """Return one section per recording, with its figure."""
    return Report(f'{model.robot.name}: external torque', f'{len(found)} recording(s)',
                  tuple(_section(model, events) for events in found))


def _section(model: IdentifiedModel, events: ContactEvents) -> Section:
    peak = np.abs(events.torque).max(axis=0)
    rows = tuple(
        Row((joint, number(largest, 3), number(free, 3), number(hidden, 3),
             str(sum(c.joint == joint for c in events.contacts)), number(blind, 3)))
        for joint, largest, free, hidden, blind in zip(
            model.joints, peak, events.without_contact, events.static_friction,
            events.blind_seconds(model.joints), strict=True))
    lost = tuple(Row((b.joint, number(b.start, 3), number(b.stop, 3), b.reason))
                 for b in events.blind if not b.begins)
    columns = ('joint', 'largest [N m]', 'largest without contact [N m]',
               'static friction may hide [N m]', 'contacts seen', 'blind [s]')
    return Section(
        Path(events.source).name,
        text='External torque by the momentum observer, threshold dotted, contacts shaded. At '
             'rest static friction hides what is smaller than it, and takes as much off the rest. '
             'While a joint is blind nothing is known of its contact.',
        cards=(Card('contacts', str(len(events.contacts))),
               Card('length', number(float(events.time[-1] - events.time[0]), 3), 's')),
        tables=(Table(columns, rows), *(
            [Table(('joint', 'from [s]', 'to [s]', 'why'), lost, 'Blind')] if lost else [])),
        figures=(Figure(figures.as_html(external_torque(model, events))),))


def external_torque(model: IdentifiedModel, events: ContactEvents) -> Any:
    """Return the external torque of every joint over time, thresholds and contacts."""
    n = len(model.joints)
    figure = make_subplots(rows=n, cols=1, shared_xaxes=True, vertical_spacing=0.02)
    thin = slice(None, None, max(1, len(events.time) // POINTS))
    time = events.time[thin].astype(np.float32)
    for j, joint in enumerate(model.joints):
        for side in (1.0, -1.0):
            threshold = (events.claimed + side * events.threshold)[thin, j].astype(np.float32)
            figure.add_scatter(
                x=time, y=threshold, mode='lines', row=j + 1, col=1, name='threshold',
                line={'color': figures.MEASURED, 'width': 1, 'dash': 'dot'},
                showlegend=j == 0 and side > 0.0)
        figure.add_scatter(
            x=time, y=events.torque[thin, j].astype(np.float32), mode='lines', row=j + 1, col=1,
            line={'color': figures.MODEL, 'width': 1.2}, name='external torque',
            showlegend=j == 0)
        for contact in events.contacts:
            if contact.joint == joint:
                figure.add_vrect(x0=contact.start, x1=contact.stop, row=j + 1, col=1,
                                 fillcolor=figures.RESIDUAL, opacity=0.18, line_width=0)
        for blind in events.blind:
            if blind.joint == joint and not blind.begins:
                figure.add_vrect(x0=blind.start, x1=blind.stop, row=j + 1, col=1,
                                 fillcolor=figures.MEASURED, opacity=0.25, line_width=0)
        figure.update_yaxes(title={'text': joint, 'font': {'size': 10}}, row=j + 1, col=1)
    figure.update_xaxes(title='time [s]', row=n, col=1)
    figure.update_layout(
        template='none', height=ROW * n + 80, font=figures.FONT, hovermode='x unified',
        margin={'l': 90, 'r': 16, 't': 40, 'b': 44},
        legend={'orientation': 'h', 'x': 0.0, 'y': 1.0, 'yanchor': 'bottom'})
    figure.update_xaxes(gridcolor=figures.GRID)
    return figure.update_yaxes(gridcolor=figures.GRID, zerolinecolor='#b8bfcb')
