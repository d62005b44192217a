"""The section of a report that compares what was identified with the simulated truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robot_dynid import figures
from robot_dynid.document import Card, Figure, Row, Section, Table, number, percent
from robot_dynid.figures import axis


def truth(parameters: Sequence[Mapping[str, Any]], distance: float, acceleration: float
          ) -> Section:
    """Return identified beside true parameters of a simulated robot.

    ``parameters`` hold name, true, value, std, deviations, and half of the 95 % interval;
    ``distance`` and ``acceleration`` are relative errors of all parameters and of the served
    accelerations.
    """
    off = [float(p['deviations']) for p in parameters]
    inside = [abs(p['value'] - p['true']) <= p['half_interval'] for p in parameters]
    rows = [Row((p['name'], float(p['true']), float(p['value']), number(p['std'], 2),
                 number(d, 2)), '' if held else 'fair')
            for p, d, held in zip(parameters, off, inside)]
    cards = (Card('parameters', percent(distance), '% from the truth'),
             Card('acceleration', percent(acceleration), '% from MuJoCo'),
             Card('inside their 95 % interval', percent(float(np.mean(inside))), '%'))
    curves = [{**figures.points([], [off[i] for i in rows_], name, colour),
               'x': [parameters[i]['name'] for i in rows_]}
              for name, colour, rows_ in (
                  ('inside their 95 % interval', figures.GOOD,
                   [i for i, held in enumerate(inside) if held]),
                  ('outside', figures.POOR, [i for i, held in enumerate(inside) if not held]))]
    names = [p['name'] for p in parameters]
    plot = figures.figure(
        curves, axis(more={'tickfont': {'size': 9}, 'dtick': 1, 'tickangle': -60,
                           'categoryorder': 'array', 'categoryarray': names}),
        axis('(identified − true) / std'), {'height': 320, 'hovermode': 'closest'})
    columns = ('parameter', 'true', 'identified', 'std', 'deviation / std')
    return Section('Against the truth', cards=cards, figures=(
        Figure(plot, 'Deviation in standard deviations'),),
        tables=(Table(columns, rows, 'All parameters beside the truth', folded=True),))
