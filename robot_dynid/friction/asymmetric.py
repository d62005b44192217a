"""Viscous and Coulomb friction of their own in each direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from robot_dynid.friction.law import FrictionLaw, Shape
from robot_dynid.friction.terms import POWER, RAMP, Parameter, Term
from robot_dynid.numbers import SPEED
from robot_dynid.settings import setting


@dataclass(frozen=True)
class Asymmetric(FrictionLaw):
    """``fvp v + fcp r`` forward, ``fvn v + fcn r`` backward, ``r = clip(v / width, -1, 1)``.

    ``width`` [rad/s or m/s]. An offset would only repeat half the difference of the Coulomb terms.
    """

    width: float = setting(0.01, SPEED)
    name: ClassVar[str] = 'asymmetric'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.1, 7),)

    def __post_init__(self) -> None:
        self.check()

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Velocity forward and backward, ramp forward and backward."""
        return (Parameter('fvp', (Term(POWER, side=1.0),)),
                Parameter('fvn', (Term(POWER, side=-1.0),)),
                Parameter('fcp', (replace(self.dry, side=1.0),), holds=True),
                Parameter('fcn', (replace(self.dry, side=-1.0),), holds=True))

    @property
    def dry(self) -> Term:
        """The ramp."""
        return Term(RAMP, self.width)
