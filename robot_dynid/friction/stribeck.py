"""Static friction that falls to Coulomb friction as the speed rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robot_dynid.errors import UsageError
from robot_dynid.friction.law import FrictionLaw, Shape, both_ways
from robot_dynid.friction.terms import CONSTANT, POWER, TANH, Parameter, Range, Term
from robot_dynid.numbers import SPEED
from robot_dynid.settings import setting


@dataclass(frozen=True)
class Stribeck(FrictionLaw):
    """``fv v + fc tanh(v / width) + fs (tanh(v / width) - tanh(v / speed)) + f0``.

    ``fs`` is what static friction has above Coulomb's; it is gone above ``speed``, which must be
    larger than ``width`` (both rad/s or m/s). ``speeds`` of the axis in the fit, beyond the higher
    of which the law is linear. Source: Makkar, Dixon, Sawyer, Hu 2005, eq. 2.
    """

    width: float = setting(0.01, SPEED)
    speed: float = setting(0.1, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'stribeck'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.03, 4),
                                           Shape('speed', 0.01, 0.5, 5))

    def __post_init__(self) -> None:
        self.check()
        if self.speed <= self.width:
            raise UsageError(f'friction law stribeck: speed {self.speed:g} must be above width '
                             f'{self.width:g}')
        self.read_range('speeds')

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Velocity, steep tangent, its excess over the gentle one, offset."""
        gentle = Term(TANH, self.speed, -1.0, speeds=both_ways(self.speeds))
        return (Parameter('fv', (Term(POWER),)), Parameter('fc', (self.dry,), holds=True),
                Parameter('fs', (self.dry, gentle), holds=True),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """The steep tangent."""
        return Term(TANH, self.width)
