"""Additions to friction laws: one more effect each, linear in parameters of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dynid.friction.law import Addition, Shape, both_ways
from robot_dynid.friction.terms import POWER, RAMP, Parameter, Range, Term
from robot_dynid.numbers import SECONDS, SPEED, TEMPERATURE
from robot_dynid.settings import setting


@dataclass(frozen=True)
class Levelling(Addition):
    """``fl clip(v / speed, -1, 1)``: viscous friction that levels off at ``speed`` [rad/s, m/s].

    Greased gears shear-thin: friction rises quickly at low speed and slowly above; and what holds
    an axis at rest is on average less than its friction in motion. Where the ``speeds`` of the
    axis in the fit are below ``speed``, nothing was seen to level off.
    """

    speed: float = setting(0.3, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'levelling'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.0125, 1.6, 8),)

    def __post_init__(self) -> None:
        self.check()
        self.read_range('speeds')

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the wide ramp."""
        return (Parameter('fl', (Term(RAMP, self.speed, speeds=both_ways(self.speeds)),)),)


@dataclass(frozen=True)
class Breakaway(Addition):
    """``fb (1 - tanh(|v| / speed)) dry``: dry friction that is larger at rest, Stribeck's.

    ``speed`` [rad/s, m/s] over which it fades. On a law with presliding it makes friction build up
    over a travel to more than it is in motion. Linear beyond the higher of the ``speeds`` of the
    axis in the fit. Source: Armstrong-Helouvry, Dupont, Canudas de Wit 1994, with a hyperbolic
    tangent.
    """

    speed: float = setting(0.1, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'breakaway'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.005, 0.2, 4),)

    def __post_init__(self) -> None:
        self.check()
        self.read_range('speeds')

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the dry friction that fades with the speed."""
        fading = replace(dry, fade=self.speed, speeds=both_ways(self.speeds))
        return (Parameter('fb', (fading,)),)


@dataclass(frozen=True)
class LoadDependent(Addition):
    """``fw |load| dry``: dry friction that grows with the torque the axis transmits.

    ``fw`` has no unit. Source: Hamon, Gautier, Garrec, Janot 2010.
    """

    name: ClassVar[str] = 'load'

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the size of the load with the sign of the dry friction."""
        return (Parameter('fw', (replace(dry, load=True),)),)


@dataclass(frozen=True)
class Drift(Addition):
    """``fd exp(-t / seconds) dry``: dry friction of a joint that warms up.

    ``t`` counts from the first sample of a recording, so every recording is taken to begin with
    the joint as cold. After ``longest`` [s], the longest recording of the fit, it stays as it is
    by then: so it is for a state without a past, which is warm.
    """

    seconds: float = setting(30.0, SECONDS)
    longest: float | None = setting(None, SECONDS)
    name: ClassVar[str] = 'drift'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('seconds', 5.0, 500.0, 5),)

    def __post_init__(self) -> None:
        self.check()

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the fading dry friction."""
        least = 0.0 if self.longest is None else float(np.exp(-self.longest / self.seconds))
        return (Parameter('fd', (replace(dry, seconds=self.seconds, least=least),),
                          nonnegative=False),)


@dataclass(frozen=True)
class TemperatureDependent(Addition):
    """``(T - reference) (ft dry + fu v)``: dry and viscous friction linear in temperature.

    ``reference`` [deg C]; a joint of unknown temperature is taken to have it. Beyond the
    ``temperatures`` of the axis in the fit friction is as it is at their end.
    """

    reference: float = setting(25.0, TEMPERATURE)
    temperatures: Range = None
    name: ClassVar[str] = 'temperature'

    def __post_init__(self) -> None:
        self.check()
        self.read_range('temperatures')

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return dry friction and velocity, each times the excess temperature."""
        return tuple(Parameter(name, (replace(term, reference=self.reference,
                                              temperatures=self.temperatures),), nonnegative=False)
                     for name, term in (('ft', dry), ('fu', Term(POWER))))
