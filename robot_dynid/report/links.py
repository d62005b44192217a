"""The links of a feasible model as a section."""

from __future__ import annotations

from robot_dynid.document import Row, Section, Table, number
from robot_dynid.identified.link_table import link_table
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.parameter_card import parameter_card


def links(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return mass and centre of every link, and the card of their parameters.

    None without feasible parameters.
    """
    table = link_table(model)
    if not table:
        return ()
    rows = tuple(Row((r.link, number(r.mass), number(r.nominal_mass),
                      ' '.join(number(c, 3) for c in r.centre), number(r.smallest_eigenvalue, 2),
                      ', '.join(r.from_prior) or 'none', ', '.join(r.combined) or 'none'))
                 for r in table)
    columns = ('link', 'mass [kg]', 'nominal [kg]', 'centre of mass [m]', 'least eigenvalue',
               'decided by the prior', 'only in combination')
    active = model.record.details.active_constraints
    text = ('Every link is a body that can exist: its pseudo-inertia is positive definite. The '
            'motion shows only the base parameters; what it leaves open, the prior draws towards '
            'the nominal inertials, so those figures are no measurement. '
            + (f'At a bound: {", ".join(active)}.' if active else 'No constraint is active.'))
    return (Section('Links', text=text, tables=(Table(columns, rows, words=True),)), card(model))


def card(model: IdentifiedModel) -> Section:
    """Return the parameter card: where every standard parameter comes from."""
    rows = tuple(Row((
        r.part, r.name, number(r.value), r.origin,
        '' if r.deviation is None else number(r.deviation, 2),
        '' if r.share is None else f'{100.0 * r.share:.2g} %',
        '; '.join(r.combinations), r.measurement)) for r in parameter_card(model))
    columns = ('part', 'parameter', 'value', 'origin', 'std', 'left to the prior',
               'known combinations', 'to know it by itself')
    text = ('Efforts show base parameters. A standard parameter is measured where it is one of '
            'them alone. One that is known only in combination with others, or not at all, was '
            'chosen near the nominal robot: it may be far off, although efforts are right.')
    return Section('Parameter card', text=text, tables=(Table(columns, rows, words=True),))
