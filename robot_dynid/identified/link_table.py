"""Table of link inertials of a feasible fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.parameter_card import by_link, parameter_card
from robot_dynid.reduction.numeric import COMBINED, PRIOR
from robot_dynid.robot.inertia import pseudo_inertia


@dataclass(frozen=True)
class LinkRow:
    """One link: ``mass`` and ``nominal_mass`` [kg], ``centre`` of mass (3,) [m] in its frame.

    ``smallest_eigenvalue`` of its pseudo-inertia [kg, kg m^2]; ``from_prior`` names of its
    parameters that the prior decided rather than the data, ``combined`` of those that are known
    only in combination with others.
    """

    link: str
    mass: float
    nominal_mass: float
    centre: tuple[float, float, float]
    smallest_eigenvalue: float
    from_prior: tuple[str, ...]
    combined: tuple[str, ...] = ()


def link_table(model: IdentifiedModel) -> tuple[LinkRow, ...]:
    """Return a row per link, none for a model without feasible parameters."""
    links = model.feasible_links
    if links is None:
        return ()
    card = parameter_card(model)
    prior, combined = by_link(card, PRIOR), by_link(card, COMBINED)
    rows = []
    for name, own, nominal in zip(
            model.robot.bodies, links, model.robot.nominal, strict=True):
        x, y, z = own[1:4] / own[0]
        rows.append(LinkRow(
            name, float(own[0]), float(nominal[0]), (float(x), float(y), float(z)),
            float(np.linalg.eigvalsh(pseudo_inertia(own))[0]),
            prior[name], combined[name]))
    return tuple(rows)
