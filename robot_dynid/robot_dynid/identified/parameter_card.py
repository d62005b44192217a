"""Parameter card: origin of every standard parameter, and the table of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import number, percent
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.reduction.numeric import COMBINED, MEASURED, Origin, kind_of, origins

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


#: origin of a measured parameter whose interval contains zero
NEAR_ZERO = 'consistent with zero'


@dataclass(frozen=True)
class ParameterRow:
    """One standard parameter of a link or a joint, ``part``, by ``name``, and its ``value``.

    ``origin`` is measured, consistent with zero (its 95 % interval contains zero), only in
    combination, or prior; ``deviation`` is the standard deviation of a measured one, else None;
    ``combinations`` are the measured ones with their deviations; ``share`` of its prior variance
    left by the data, None without a prior; ``measurement`` that would determine it, empty if
    measured. Units are those of `robot.inertia`.
    """

    part: str
    name: str
    value: float
    origin: str
    deviation: float | None
    combinations: tuple[str, ...]
    share: float | None
    measurement: str


@one_blas_thread()
def parameter_card(model: IdentifiedModel) -> tuple[ParameterRow, ...]:
    """Return a row per standard parameter, links first, in the order of the reduction."""
    details, standard = model.record.details, model.standard
    open_names = {name for name, std in zip(model.names, model.std, strict=True)
                  if not np.isfinite(std)}
    near_zero, rows = np.abs(model.values) <= half_intervals(model), []
    for origin in origins(model.reduction, open_names.union(details.from_prior)):
        measured = origin.kind == MEASURED
        rows.append(ParameterRow(
            _part(model, origin.name), origin.name, standard[origin.name],
            NEAR_ZERO if measured and near_zero[origin.base[0]] else origin.kind,
            float(model.std[origin.base[0]]) if measured else None,
            _combinations(model, origin) if origin.kind == COMBINED else (),
            details.prior_share.get(origin.name),
            '' if measured else measurement(model, origin)))
    return tuple(rows)


def _combinations(model: IdentifiedModel, origin: Origin) -> tuple[str, ...]:
    return tuple(f'{model.labels[i]} = {model.values[i]:.4g} +- {number(model.std[i], 2)}'
                 for i in origin.base)


def _part(model: IdentifiedModel, name: str) -> str:
    """Return the link, or the joint, that a standard parameter belongs to."""
    index = name[len(name.rstrip('0123456789')):]
    parts = model.robot.tree.bodies if kind_of(name) else model.robot.joints
    inside = index.isdigit() and 1 <= int(index) <= len(parts)
    return parts[int(index) - 1] if inside else ''


def measurement(model: IdentifiedModel, origin: Origin) -> str:
    """Return the measurement that would determine a parameter the efforts do not show alone."""
    name = origin.separated_by
    if not name:
        return 'a motion that excites it'
    part, kind = _part(model, name), kind_of(name)
    if kind == 'm':
        return f'weigh {part}'
    if kind.startswith('m'):
        return f'balance {part}: {name}'
    return f'swing {part} as a pendulum: {name}' if kind else f'data sheet of {part}: {name}'


def by_link(
    rows: Sequence[ParameterRow], origin: str
) -> dict[str, tuple[str, ...]]:
    """Return by link the names of its parameters with an ``origin``."""
    names: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if kind_of(row.name):
            in_link = names.setdefault(row.part, ())
            names[row.part] = (*in_link, row.name) if row.origin == origin else in_link
    return names


def comment_lines(rows: Sequence[ParameterRow]) -> list[str]:
    """Return the card of the links as lines of a comment, one per parameter."""
    lines = []
    for row in rows:
        if not kind_of(row.name):
            continue
        facts = [f'{row.part} {row.name} {row.value:.6g}: {row.origin}']
        if row.deviation is not None:
            facts.append(f'deviation {row.deviation:.2g}')
        if row.combinations:
            facts.append(f"determined: {'; '.join(row.combinations)}")
        if row.share is not None:
            facts.append(f'left to the prior {percent(row.share)} %')
        if row.measurement:
            facts.append(f'to determine it: {row.measurement}')
        lines.append(', '.join(facts))
    return lines
