"""The stages of a staged identification as a section."""

from __future__ import annotations

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report.parts import Row, Section, Table
from robot_dynid.report.texts import number


def stages(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with what every stage found, none where nothing was done in stages."""
    found = model.provenance.get('stages', ())
    if not found:
        return ()
    rows = tuple(
        Row((stage['stage'] if first else '', str(stage['motions']) if first else '',
             number(stage['condition_number']) if first else '', entry['combination'],
             number(entry['value']), number(entry['std'], 2)))
        for stage in found
        for first, entry in zip((True, *(False for _ in stage['found'][1:])), stage['found']))
    columns = ('stage', 'motions', 'condition', 'found', 'value', 'std')
    text = ('One joint moves at a time; what a stage finds enters the later ones as known. '
            'Deviations are those of the stage itself; the table of base parameters has them '
            'with what later stages add. Locked rows: the effort of the joints that rest. '
            'Friction may hold them, so only variations count there, and what would stay too '
            'uncertain is left at its nominal value.')
    return (Section('Stages', text=text, tables=(Table(columns, rows, words=True),)),)
