"""Viscous friction, Coulomb friction with a linear ramp around zero speed, and an offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robot_dynid.friction.law import FrictionLaw, Shape
from robot_dynid.friction.terms import CONSTANT, POWER, RAMP, Parameter, Term
from robot_dynid.numbers import SPEED
from robot_dynid.settings import setting


@dataclass(frozen=True)
class Coulomb(FrictionLaw):
    """``fv v + fc clip(v / width, -1, 1) + f0``; ``width`` [rad/s or m/s] must be positive.

    Within the ramp the law stands for the average of sticking and creeping; a plain sign would
    flip with the noise of the velocity.
    """

    width: float = setting(0.01, SPEED)
    name: ClassVar[str] = 'coulomb'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.1, 7, shared=True),)

    def __post_init__(self) -> None:
        self.check()

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Viscous and Coulomb friction, offset."""
        return (Parameter('fv', (Term(POWER),)), Parameter('fc', (self.dry,), holds=True),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """The ramp."""
        return Term(RAMP, self.width)
