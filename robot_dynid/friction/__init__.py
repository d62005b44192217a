"""Friction laws by name; a new law is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.friction.additions import (
    Addition,
    Breakaway,
    Drift,
    Levelling,
    LoadDependent,
    TemperatureDependent,
)
from robot_dynid.friction.asymmetric import Asymmetric
from robot_dynid.friction.compound import Compound
from robot_dynid.friction.coulomb import Coulomb, CoulombAxes
from robot_dynid.friction.dahl import Dahl
from robot_dynid.friction.law import AxisMotion, FrictionLaw, Shape, known_within
from robot_dynid.friction.maxwell import Maxwell
from robot_dynid.friction.stribeck import Stribeck
from robot_dynid.friction.two_speed import TwoSpeed

LAWS: dict[str, Any] = {
    'coulomb': Coulomb, 'asymmetric': Asymmetric, 'two-speed': TwoSpeed, 'stribeck': Stribeck,
    'dahl': Dahl, 'maxwell': Maxwell,
}
ADDITIONS: dict[str, Any] = {
    'breakaway': Breakaway, 'levelling': Levelling, 'load': LoadDependent, 'drift': Drift,
    'temperature': TemperatureDependent,
}


def law_from(name: str, settings: Mapping[str, Any] | None = None) -> FrictionLaw:
    """Return the law called ``name``: a key of LAWS, or one with additions, ``maxwell+load``.

    ``settings`` are those of the law, with those of every addition under its name; what is left
    out has its default. Raises UsageError for an unknown name or setting.
    """
    base, *added = name.split('+') if isinstance(name, str) else ['']
    given = dict(settings or {})
    if base not in LAWS or not set(added) <= set(ADDITIONS) or len(set(added)) < len(added):
        raise UsageError(f'friction {name!r}: choose one of {", ".join(LAWS)}; to each may be '
                         f'added {", ".join(f"+{a}" for a in ADDITIONS)}')
    additions = tuple((a, _made(a, ADDITIONS[a], given.pop(a, None) or {})) for a in added)
    law: FrictionLaw = _made(base, LAWS[base], given)
    if additions:
        law = Compound(law, additions)
    return law


def within(law: FrictionLaw, ranges: Mapping[str, Any]) -> FrictionLaw:
    """Return the law for an axis fitted within ``ranges``, beyond which it is linear or constant.

    ``ranges`` are ``speeds`` [rad/s, m/s] and ``temperatures`` [deg C], (lowest, highest), and
    ``longest`` [s]: settings of those laws and additions that bend.
    """
    if not isinstance(law, Compound):
        found: FrictionLaw = known_within(law, ranges)
        return found
    return Compound(known_within(law.base, ranges), tuple(
        (name, known_within(addition, ranges)) for name, addition in law.additions))


def _made(name: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    known = [f.name for f in fields(kind)]
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise UsageError(f'friction law {name}: unknown setting {", ".join(unknown)}; known are '
                         f'{", ".join(known) or "none"}')
    return kind(**settings)


__all__ = ['ADDITIONS', 'LAWS', 'Addition', 'AxisMotion', 'Compound', 'Coulomb', 'CoulombAxes',
           'FrictionLaw', 'Maxwell', 'Shape', 'law_from', 'within']
