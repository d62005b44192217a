"""What friction, links and the deflection of the gears are worth, as a section."""

from __future__ import annotations

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report.parts import Row, Section, Table
from robot_dynid.report.texts import number


def deflection(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about the residual models and the loops, none where there are none."""
    told = model.provenance.get('residual', {})
    tables = []
    if 'joints' in told:
        rows = tuple(Row((r['joint'], number(r['friction']), number(r['physics']),
                          number(r['with_residual']), 'yes' if r['used'] else 'no', r['note']))
                     for r in told['joints'])
        columns = ('joint', 'friction', '+ links', '+ deflection', 'used', 'remark')
        tables.append(Table(columns, rows, 'Error that is left [N m]', words=True))
    if 'seconds' in told:
        loops = tuple(Row((loop, number(seconds))) for loop, seconds in told['seconds'].items())
        tables.append(Table(('loop', 'seconds'), loops))
    if not tables:
        return ()
    how = 'Friction from sweeps, links and residual were fitted in turn' \
        if told.get('loops') == 'three' else 'Friction and links were fitted at once'
    text = (f'{how}, {told.get("rounds", 1)} round(s). Root mean squared errors on stretches of '
            'the recordings left out of all fits in turn. A model of the deflection is used only '
            'where it lowers the error by 1 % and in most of the stretches.')
    return (Section('Loops and deflection', text=text, tables=tuple(tables)),)
