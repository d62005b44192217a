"""The report of external torque and contacts in recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid import figures
from robot_dynid.document import (
    Card,
    Chapter,
    Conclusion,
    Figure,
    Report,
    Row,
    Section,
    Table,
    number,
)
from robot_dynid.figures import Spec, axis, line, points
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.contact_events import ContactEvents
from robot_dynid.report.texts import file_names, with_file_names
from robot_dynid.report.thinning import extremes
from robot_dynid.robot.units import effort_unit, unit

CONTACT_POINTS = 4000  # per curve
TEXT = ('A contact is shaded where the external torque exceeds its dotted threshold. At rest, '
        'static friction hides smaller pushes. Grey: the joint is blind, and a contact would not '
        'be seen.')


def contact_report(model: IdentifiedModel, found: Sequence[ContactEvents]) -> Report:
    """Return one chapter per recording, with a figure per joint."""
    names = file_names([events.source for events in found])
    count = len(found)
    return Report(f'{model.robot.name}: external torque',
                  f'{count} recording{"" if count == 1 else "s"}, model by {model.method}',
                  tuple(_chapter(model, events, names) for events in found))


def _chapter(
    model: IdentifiedModel, events: ContactEvents, names: dict[str, str]
) -> Chapter:
    name = names[events.source]
    touched = {contact.joint for contact in events.contacts}
    drawn = {joint: Figure(external_torque(model, events, j), joint, link=name)
             for j, joint in enumerate(model.joints)}
    parts = (('External torque of the touched joints', False, TEXT, touched),
             ('External torque of joints without contact', True, '', set(drawn) - touched))
    return Chapter(name, (_summary(model, events, names), *(
        Section(title, text=text, folded=folded, beside=True, figures=tuple(
            drawn[joint] for joint in model.joints if joint in parts_shown))
        for title, folded, text, parts_shown in parts if parts_shown)))


def _summary(model: IdentifiedModel, events: ContactEvents, names: dict[str, str]) -> Section:
    peak, units = np.abs(events.torque).max(axis=0), effort_unit(model.robot)
    rows = tuple(
        Row((joint, str(sum(c.joint == joint for c in events.contacts)), number(largest, 3),
             number(free, 3), number(hidden, 3), number(blind, 3)))
        for joint, largest, free, hidden, blind in zip(
            model.joints, peak, events.without_contact, events.static_friction,
            events.blind_seconds(model.joints), strict=True))
    touched = tuple(Row((c.joint, number(c.start, 4), number(c.stop, 4), number(c.peak, 3)))
                    for c in events.contacts)
    lost = tuple(Row((b.joint, number(b.start, 3), number(b.stop, 3), b.reason))
                 for b in events.blind if not b.begins)
    columns = ('joint', 'contacts', f'largest external torque [{units}]',
               f'largest without contact [{units}]', f'hidden by static friction [{units}]',
               'blind [s]')
    tables = [Table(columns, rows, detail=True)]
    if touched:
        tables.append(Table(('joint', 'from [s]', 'to [s]', f'peak [{units}]'), touched))
    if lost:
        tables.append(Table(('joint', 'from [s]', 'to [s]', 'why'), lost, 'Blind', words=True,
                            folded=len(lost) > 12, detail=True))
    return Section(
        'Contacts', status=_answer(events, units),
        tables=tuple(tables), warnings=with_file_names(events.notes, names),
        cards=(Card('contacts', str(len(events.contacts))),
               Card('joints touched', f'{len({c.joint for c in events.contacts})} of '
                                      f'{len(model.joints)}'),
               Card('length', number(float(events.time[-1] - events.time[0]), 3), 's')))


def _answer(events: ContactEvents, units: str) -> Conclusion:
    """Return the touched joints, and the strongest contact with its peak in ``units``."""
    if not events.contacts:
        return Conclusion('good', 'No contact:', 'no external torque exceeded its threshold.')
    strongest = max(events.contacts, key=lambda contact: abs(contact.peak))
    joints = ', '.join(dict.fromkeys(contact.joint for contact in events.contacts))
    return Conclusion('fair', f'Contact at {joints}:',
                      f'the strongest at {strongest.joint}, {number(strongest.start, 4)} to '
                      f'{number(strongest.stop, 4)} s, peak {number(strongest.peak, 3)} {units}.')


def external_torque(model: IdentifiedModel, events: ContactEvents, j: int) -> Spec:
    """Return the external torque of a joint over time, its thresholds and contacts."""
    high, low = (events.claimed[:, j] + side * events.threshold[:, j] for side in (1.0, -1.0))
    rows = extremes((events.torque[:, j],), CONTACT_POINTS)
    time, dotted = events.time[rows], {'line': {'dash': 'dot'}}
    curves = [
        line(time, high[rows], 'threshold', figures.SOFT, more=dotted),
        line(time, low[rows], 'threshold', figures.SOFT, more={**dotted, 'showlegend': False}),
        line(time, events.torque[rows, j], 'external torque', figures.MODEL)]
    joint = model.joints[j]
    spans = [(c.start, c.stop, '@residual/18') for c in events.contacts if c.joint == joint]
    blind = [(b.start, b.stop, '@measured/25') for b in events.blind
             if b.joint == joint and not b.begins]
    for name, there in (('contact', spans), ('blind', blind)):
        if there:  # for the legend alone
            curves.append(points([np.nan], [np.nan], name, there[0][-1], more={
                'marker': {'symbol': 'square'}}))
    return figures.figure(curves, axis('time [s]'),
                          axis(f'external torque [{unit(model.robot, j)}]'),
                          {'shapes': [figures.shade(*span) for span in (*spans, *blind)]})
