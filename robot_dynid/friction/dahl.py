"""Presliding by one state: friction builds up over a length of travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robot_dynid.friction.law import FrictionLaw, Shape
from robot_dynid.friction.terms import CONSTANT, DAHL, POWER, Parameter, Term
from robot_dynid.kernels.friction import SLIDING
from robot_dynid.numbers import SPEED, TRAVEL
from robot_dynid.settings import setting


@dataclass(frozen=True)
class Dahl(FrictionLaw):
    """``fv v + fc z + f0`` with ``dz = (dq - |dq| z) / length``; ``length`` [rad or m].

    A recording begins relaxed, z = 0, or as it slides where it begins in motion; the state forgets
    its beginning over a few lengths of travel. A state without a past slides steadily: ``z =
    clip(v / width, -1, 1)``.
    Source: Dahl 1968, with exponent one.
    """

    length: float = setting(3e-4, TRAVEL)
    width: float = setting(SLIDING, SPEED)
    name: ClassVar[str] = 'dahl'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('length', 2e-5, 2e-2, 10),)

    def __post_init__(self) -> None:
        self.check()

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Velocity, state, offset."""
        return (Parameter('fv', (Term(POWER),)), Parameter('fc', (self.dry,), holds=True),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """The state."""
        return Term(DAHL, self.length, width=self.width)
