"""Textbook Stribeck friction with an exponential fall."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dynid.friction.law import FrictionLaw, Shape, both_ways
from robot_dynid.friction.terms import TANH, Parameter, Range, Term
from robot_dynid.numbers import SPEED, NumberRange
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

#: fade speeds of the terms that approximate the fall, and the speeds up to which their sum is
#: fitted, both in units of the Stribeck speed: within 0.4 % of the exponential
FADES, REACH = np.geomspace(0.2, 2.5, 6), np.linspace(0.0, 6.0, 601)


@dataclass(frozen=True)
class Exponential(FrictionLaw):
    """``(fc + fs exp(-|v / speed|^exponent)) tanh(v / width) + fv v + f0``.

    ``width`` and the Stribeck ``speed`` [rad/s or m/s]; ``speeds``: velocity range of the axis in
    the fit; above the higher speed the law is linear. The exponential is approximated by a sum of
    terms that fade as 1 - tanh. Used only if named: data cannot distinguish it from ``breakaway``.

    Source: Armstrong-Helouvry, Dupont, Canudas de Wit 1994, section 2.2.
    """

    width: float = setting(0.01, SPEED)
    speed: float = setting(0.1, SPEED)
    exponent: float = setting(2.0, NumberRange(1.0, 2.0))
    speeds: Range = None
    name: ClassVar[str] = 'exponential'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.03, 4),
                                           Shape('speed', 0.01, 0.5, 5))
    by_name: ClassVar[bool] = True

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Viscous, dry and static friction, offset."""
        viscous, dry, offset = super().table
        shares, speeds = exponential_shares(self.exponent), both_ways(self.speeds)
        falling = tuple(
            replace(self.dry, weight=share, fade=self.speed * fade, speeds=speeds)
            for share, fade in zip(shares.tolist(), FADES.tolist(), strict=True))
        return viscous, dry, Parameter('fs', falling, holds=True), offset

    @property
    def dry(self) -> Term:
        """The hyperbolic tangent."""
        return Term(TANH, self.width)


def exponential_shares(exponent: float) -> FloatArray:
    """Return the shares (k,), whose sum is one, of the terms of exp(-x^exponent)."""
    fading = 1.0 - np.tanh(REACH[:, None] / FADES)
    free = fading[:, :-1] - fading[:, -1:]
    shares = np.linalg.lstsq(free, np.exp(-REACH**exponent) - fading[:, -1])[0]
    return np.append(shares, 1.0 - shares.sum())
