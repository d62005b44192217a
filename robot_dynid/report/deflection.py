"""Held-out errors after friction, links and the deflection of the gears, as a section."""

from __future__ import annotations

from robot_dynid.document import Row, Section, Table, number
from robot_dynid.identified.model import IdentifiedModel


def deflection(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about the residual models and the loops, none where there are none."""
    record = model.record.residual
    if record is None:
        return ()
    tables = []
    if record.joints:
        rows = tuple(Row((r.joint, number(r.friction), number(r.physics),
                          number(r.with_residual), (r.kind or 'yes') if r.used else 'no', r.note))
                     for r in record.joints)
        columns = ('joint', 'friction', '+ links', '+ deflection', 'used', 'remark')
        tables.append(Table(columns, rows, 'Error that is left [N m]', words=True))
    if record.seconds:
        loops = tuple(Row((loop, number(seconds))) for loop, seconds in record.seconds.items())
        tables.append(Table(('loop', 'seconds'), loops))
    how = 'Friction from sweeps, links and residual were fitted in turn' \
        if record.loops == 'three' else 'Friction and links were fitted at once'
    text = (f'{how}, {record.rounds} round(s). Root mean squared errors on stretches of '
            'the recordings left out of all fits in turn. A model of the deflection is used only '
            'where it lowers the error by 1 % and by more than chance.')
    return (Section('Loops and deflection', text=text, tables=tuple(tables)),)
