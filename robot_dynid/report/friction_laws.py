"""The choice of friction laws as a section."""

from __future__ import annotations

from robot_dynid.document import Row, Section, Table, number
from robot_dynid.identified.model import IdentifiedModel

#: laws shown for each axis, those with the least error
SHOWN = 6


def friction_laws(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with what was tried on each axis, none where nothing was chosen."""
    choices = model.record.friction
    if not choices:
        return ()
    rows = []
    for choice in choices:
        tried = {entry.law: entry.error_over_coulomb for entry in choice.tried}
        best = sorted(tried, key=lambda law: tried[law])[:SHOWN]
        rows.append(Row((
            choice.axis, choice.law, number(tried.get(choice.law)),
            ', '.join(f'{law} {number(tried[law])}' for law in best), choice.note)))
    columns = ('axis', 'law', "error over Coulomb's", 'best of those tried', 'remark')
    text = ('Error on stretches of the recordings left out of the fit in turn, divided by that of '
            'Coulomb friction. A law with more parameters is taken only where it lowers the error '
            'by 2 % and in most of the stretches. Axes count from one; m marks a motor that turns '
            'with several joints.')
    return (Section('Friction laws', text=text,
                    tables=(Table(columns, tuple(rows), words=True),)),)
