"""Friction laws by name; a new law is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.friction.axes import AxisFriction
from robot_dynid.friction.exponential import Exponential
from robot_dynid.friction.law import Addition, AxisMotion, FrictionLaw, Shape
from robot_dynid.friction.laws import (
    Asymmetric,
    Breakaway,
    Coulomb,
    Dahl,
    Drift,
    Levelling,
    LoadDependent,
    Maxwell,
    NoFriction,
    Stribeck,
    TemperatureDependent,
    TwoSpeed,
)

LAWS: dict[str, type[FrictionLaw]] = {
    law.name: law for law in (
        Coulomb, Asymmetric, TwoSpeed, Stribeck, Dahl, Maxwell, NoFriction, Exponential)}
ADDITIONS: dict[str, type[Addition]] = {
    addition.name: addition for addition in (
        Breakaway, Levelling, LoadDependent, Drift, TemperatureDependent)}


def law_from(name: str, settings: Mapping[str, Any] | None = None) -> FrictionLaw:
    """Return the law called ``name``: a key of LAWS, or one with additions, such as
    ``maxwell+load``.

    ``settings`` holds the settings of the law and, under its name, those of each addition; missing
    ones take their defaults. Raises UsageError for an unknown name or setting.
    """
    base, *added = name.split('+') if isinstance(name, str) else ['']
    given = dict(settings or {})
    if base not in LAWS or not set(added) <= set(ADDITIONS) or len(set(added)) < len(added):
        raise UsageError(f'friction {name!r}: choose one of {", ".join(LAWS)}; to each may be '
                         f'added {", ".join(f"+{a}" for a in ADDITIONS)}')
    additions = [_made(a, ADDITIONS[a], given.pop(a, None) or {}) for a in added]
    law: FrictionLaw = _made(base, LAWS[base], given)
    for addition in additions:
        law = law.added(addition)
    return law


def _made(name: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    allowed = [f.name for f in fields(kind)]
    unknown = [key for key in settings if key not in allowed]
    if unknown:
        raise UsageError(f'friction law {name}: unknown setting {", ".join(unknown)}; choose from '
                         f'{", ".join(allowed) or "none"}')
    return kind(**settings)


__all__ = ['ADDITIONS', 'LAWS', 'Addition', 'AxisFriction', 'AxisMotion', 'Coulomb',
           'FrictionLaw', 'Maxwell', 'Shape', 'law_from']
