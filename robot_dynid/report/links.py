"""The links of a feasible model as a section."""

from __future__ import annotations

from robot_dynid.document import Row, Section, Table, number
from robot_dynid.identified.link_table import link_table
from robot_dynid.identified.model import IdentifiedModel


def links(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with mass and centre of every link, none without feasible parameters."""
    table = link_table(model)
    if not table:
        return ()
    rows = tuple(Row((r.link, number(r.mass), number(r.nominal_mass),
                      ' '.join(number(c, 3) for c in r.centre), number(r.smallest_eigenvalue, 2),
                      ', '.join(r.from_prior) or 'none')) for r in table)
    columns = ('link', 'mass [kg]', 'nominal [kg]', 'centre of mass [m]', 'least eigenvalue',
               'decided by the prior')
    active = model.record.details.active_constraints
    text = ('Every link is a body that can exist: its pseudo-inertia is positive definite. The '
            'motion shows only the base parameters; what it leaves open, the prior draws towards '
            'the nominal inertials, so those figures are no measurement. '
            + (f'At a bound: {", ".join(active)}.' if active else 'No constraint is active.'))
    return (Section('Links', text=text, tables=(Table(columns, rows, words=True),)),)
