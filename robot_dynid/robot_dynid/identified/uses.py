"""Uses of an identified model: recordings for it, the table of its links, its rigid equivalent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.parameter_card import by_link, parameter_card
from robot_dynid.plausibility.finding import ACCEPTED, KINDS
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.reduction.numeric import COMBINED, PRIOR
from robot_dynid.robot.inertia import pseudo_inertia
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import RawLog


def rigid_equivalent(model: IdentifiedModel) -> IdentifiedModel:
    """Return the model with its links, rotors and friction but rigid joints.

    Deviations of single parameters are not those of their combinations: they are NaN.
    """
    robot = model.robot.rigid
    if robot is model.robot:
        return model
    structure = replace(model.structure, rotor_inertia=True)
    reduction = structure.torque_model(robot).reduction
    columns = [model.reduction.standard.index(name) for name in reduction.standard]
    control = model.reduction.standard_values(model.control)[columns]
    standard = np.array([model.standard[name] for name in reduction.standard])
    return replace(
        model, robot=robot, structure=structure, reduction=reduction,
        values=reduction.base(standard), std=np.full(len(reduction.pivots), np.nan),
        correlation_factor=None,
        control=reduction.base(control), feasible=None if model.feasible is None else standard)


#: end of the sentence about such a finding
THEN = f', accepted when the model was identified{ACCEPTED}'


def recordings_for(
    model: IdentifiedModel | None, robot: RobotModel, logs: Sequence[RawLog],
    accept: Iterable[str] = (),
) -> tuple[Sequence[RawLog], tuple[str, ...]]:
    """Return the recordings without copies, and warnings, as `plausible_recordings` does.

    ``robot`` is that of the ``model``, or of its rigid equivalent; ``accept`` holds further kinds.
    Raises DataError for findings that are not accepted.
    """
    then = () if model is None else tuple(k for k in model.record.accepted if k in KINDS)
    logs, warnings = plausible_recordings(robot, logs, (*then, *accept))
    return logs, tuple(
        text.removesuffix(ACCEPTED) + THEN if text.endswith(ACCEPTED) and any(
            f': {kind}' in text for kind in then) else text for text in warnings)


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
    for name, link, nominal in zip(
            model.robot.tree.bodies, links, model.robot.tree.nominal, strict=True):
        x, y, z = link[1:4] / link[0]
        rows.append(LinkRow(
            name, float(link[0]), float(nominal[0]), (float(x), float(y), float(z)),
            float(np.linalg.eigvalsh(pseudo_inertia(link))[0]),
            prior[name], combined[name]))
    return tuple(rows)
