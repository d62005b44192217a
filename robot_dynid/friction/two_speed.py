"""Friction that tells low from high speed, with sets of its own forward and backward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from robot_dynid.errors import UsageError
from robot_dynid.friction.law import FrictionLaw, Shape
from robot_dynid.friction.terms import POWER, TANH, Parameter, Range, Term
from robot_dynid.numbers import SPEED
from robot_dynid.settings import setting


@dataclass(frozen=True)
class TwoSpeed(FrictionLaw):
    """Coulomb friction alone below the speed ``threshold``, cubic viscous friction above it.

    With ``s = tanh(v / steepness)``, forward (v >= 0)::

        fcp s (s + 1) / 2  +  [v >= threshold] (fvp v (s + 1) / 2 + fqp v^2 + fkp v^3)

    and backward (v < 0)::

        fcn s (1 - s) / 2  +  [-v >= threshold] (fvn v (1 - s) / 2 - fqn v^2 + fkn v^3)

    ``steepness`` and ``threshold`` [rad/s or m/s]; ``speeds`` of the axis in the fit, beyond which
    the law is linear, each way from its own. Eight parameters, as many as the paper's
    friction regressor has columns: what the text prints as powers of k_v are three coefficients.
    Reconstructed, because the text has lost its minus signs: v < 0 and 1 - tanh in the backward
    set, and the sign of the backward square, which is chosen so that a positive coefficient
    dissipates. Source: Actuators 2023, 12, 454, equations 9 to 11 (steepness there 1e-4).
    """

    steepness: float = setting(0.01, SPEED)
    threshold: float = setting(0.05, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'two-speed'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('steepness', 3e-3, 0.03, 2),
                                           Shape('threshold', 0.02, 0.2, 3))

    def __post_init__(self) -> None:
        self.check()
        if self.threshold < self.steepness:
            raise UsageError(f'friction law two-speed: threshold {self.threshold:g} must not be '
                             f'below steepness {self.steepness:g}')
        self.read_range('speeds')

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Forward and backward in turn: Coulomb, linear, square, cube."""
        ways = [('p', 1.0), ('n', -1.0)]
        dry = [Parameter(f'fc{way}', self._opened(replace(self.dry, side=side)), holds=True)
               for way, side in ways]
        fast = [(letter, Term(POWER, power, above=self.threshold, speeds=self.speeds))
                for letter, power in (('v', 1.0), ('q', 2.0), ('k', 3.0))]
        return (*dry, *(Parameter(f'f{letter}{way}', self._opened(replace(term, side=side))
                                  if letter == 'v' else (replace(term, side=side),),
                                  nonnegative=False)
                        for letter, term in fast for way, side in ways))

    def _opened(self, term: Term) -> tuple[Term, ...]:
        """Return terms of (1 + |s|) / 2 = 1 - (1 - |s|) / 2 times a term."""
        return term, replace(term, weight=-0.5, fade=self.steepness)

    @property
    def dry(self) -> Term:
        """The hyperbolic tangent."""
        return Term(TANH, self.steepness)
