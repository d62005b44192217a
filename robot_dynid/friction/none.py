"""No friction: what is left of an axis whose effort does not show it is an offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robot_dynid.friction.law import FrictionLaw
from robot_dynid.friction.terms import CONSTANT, RAMP, Parameter, Term

#: width [rad/s, m/s] of the ramp that additions scale
WIDTH = 0.01


@dataclass(frozen=True)
class NoFriction(FrictionLaw):
    """``f0``: the offset of a sensor; for axes to be left out of the friction."""

    name: ClassVar[str] = 'none'

    def __post_init__(self) -> None:
        self.check()

    @property
    def table(self) -> tuple[Parameter, ...]:
        """The offset."""
        return (Parameter('f0', (Term(CONSTANT),), nonnegative=False),)

    @property
    def dry(self) -> Term:
        """A ramp, for an addition that is all the friction there is, such as ``none+load``."""
        return Term(RAMP, WIDTH)
