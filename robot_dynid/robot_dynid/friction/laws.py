"""The friction laws and their additions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.friction.law import Addition, FrictionLaw, Shape, both_ways
from robot_dynid.friction.terms import (
    DAHL,
    POWER,
    RAMP,
    STOP,
    TANH,
    Parameter,
    Range,
    Term,
)
from robot_dynid.kernels.friction import SLIDING
from robot_dynid.numbers import SECONDS, SPEED, TEMPERATURE, TRAVEL
from robot_dynid.settings import setting

if TYPE_CHECKING:
    from typing import Self



@dataclass(frozen=True)
class Coulomb(FrictionLaw):
    """``fv v + fc clip(v / width, -1, 1) + f0``; ``width`` [rad/s or m/s] must be positive.

    Inside the ramp the law averages sticking and creeping; a sign function would flip with
    velocity noise.
    """

    width: float = setting(0.01, SPEED)
    name: ClassVar[str] = 'coulomb'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.1, 7, shared=True),)

    @property
    def dry(self) -> Term:
        """The ramp."""
        return Term(RAMP, self.width)


@dataclass(frozen=True)
class Asymmetric(FrictionLaw):
    """``fvp v + fcp r`` forward, ``fvn v + fcn r`` backward, ``r = clip(v / width, -1, 1)``.

    ``width`` [rad/s or m/s]. An offset would duplicate half the difference of the Coulomb terms.
    """

    width: float = setting(0.01, SPEED)
    name: ClassVar[str] = 'asymmetric'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.1, 7),)

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
        super().__post_init__()
        if self.threshold < self.steepness:
            raise UsageError(f'friction law two-speed: threshold {self.threshold:g} must not be '
                             f'below steepness {self.steepness:g}')

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Forward and backward in turn: Coulomb, linear, square, cube."""
        ways = [('p', 1.0), ('n', -1.0)]
        dry = [Parameter(f'fc{way}', self._opening_terms(replace(self.dry, side=side)), holds=True)
               for way, side in ways]
        fast = [(letter, Term(POWER, power, above=self.threshold, speeds=self.speeds))
                for letter, power in (('v', 1.0), ('q', 2.0), ('k', 3.0))]
        return (*dry, *(Parameter(f'f{letter}{way}', self._opening_terms(replace(term, side=side))
                                  if letter == 'v' else (replace(term, side=side),),
                                  nonnegative=False)
                        for letter, term in fast for way, side in ways))

    def _opening_terms(self, term: Term) -> tuple[Term, ...]:
        """Return the terms of (1 + |s|) / 2 = 1 - (1 - |s|) / 2 times a term."""
        return term, replace(term, weight=-0.5, fade=self.steepness)

    @property
    def dry(self) -> Term:
        """The hyperbolic tangent."""
        return Term(TANH, self.steepness)


@dataclass(frozen=True)
class Stribeck(FrictionLaw):
    """``fv v + fc tanh(v / width) + fs (tanh(v / width) - tanh(v / speed)) + f0``.

    ``fs`` is the excess of static over Coulomb friction; it vanishes above ``speed``, which must
    be larger than ``width`` (both rad/s or m/s). ``speeds``: velocity range of the axis in the
    fit; above the higher speed the law is linear. Source: Makkar, Dixon, Sawyer, Hu 2005, eq. 2.
    """

    width: float = setting(0.01, SPEED)
    speed: float = setting(0.1, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'stribeck'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.03, 4),
                                           Shape('speed', 0.01, 0.5, 5))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.speed <= self.width:
            raise UsageError(f'friction law stribeck: speed {self.speed:g} must be above width '
                             f'{self.width:g}')

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Velocity, steep tangent, its excess over the gentle one, offset."""
        gentle = Term(TANH, self.speed, -1.0, speeds=both_ways(self.speeds))
        viscous, dry, offset = super().table
        return viscous, dry, Parameter('fs', (self.dry, gentle), holds=True), offset

    @property
    def dry(self) -> Term:
        """The steep tangent."""
        return Term(TANH, self.width)


@dataclass(frozen=True)
class Dahl(FrictionLaw):
    """``fv v + fc z + f0`` with ``dz = (dq - |dq| z) / length``; ``length`` [rad or m].

    A recording begins relaxed, z = 0, or sliding if it begins in motion; the initial state decays
    within a few lengths of travel. A state without a past slides steadily: ``z = clip(v / width,
    -1, 1)``. Source: Dahl 1968, with exponent one.
    """

    length: float = setting(3e-4, TRAVEL)
    width: float = setting(SLIDING, SPEED)
    name: ClassVar[str] = 'dahl'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('length', 2e-5, 2e-2, 10),)

    @property
    def dry(self) -> Term:
        """The Dahl state."""
        return Term(DAHL, self.length, width=self.width)


#: candidate lengths [rad or m]: two per decade; closer ones have indistinguishable amplitudes
LENGTHS = (2e-5, 6e-5, 2e-4, 6e-4, 2e-3, 6e-3, 2e-2)
#: length of the state that additions scale; on the UR10e any value from 2e-5 to 3e-4 does as well
DRY_LENGTH = 6e-5


@dataclass(frozen=True)
class Maxwell(FrictionLaw):
    """``fv v + sum_k fc_k z_k + f0``; each z_k a spring that slips at the travel ``lengths[k]``.

    ``z_k`` grows by dq / lengths[k] and saturates at -1 and 1. The torque is linear in the
    amplitudes ``fca, fcb, ...``, one per length [rad or m], which add up to the Coulomb friction
    of steady sliding. A recording begins relaxed, z = 0, or sliding if it begins in motion; the
    initial state is gone after a travel of two lengths. A state without a past slides: ``z =
    clip(v / width, -1, 1)``.

    Source: Al-Bender, Lampaert, Swevers 2005 without their rate law; Kuhnen 2003.
    """

    lengths: tuple[float, ...] = setting((1e-4, 1e-3), TRAVEL)
    width: float = setting(SLIDING, SPEED)
    name: ClassVar[str] = 'maxwell'

    def __post_init__(self) -> None:
        self.read_increasing('lengths', len(ascii_lowercase))
        super().__post_init__()

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Viscous friction, amplitudes, offset."""
        viscous, _, offset = super().table
        return (viscous, *(
            Parameter(f'fc{letter}', (Term(STOP, length, width=self.width),), holds=True)
            for letter, length in zip(ascii_lowercase, self.lengths, strict=False)), offset)

    @property
    def dry(self) -> Term:
        """A state independent of the chosen lengths."""
        return Term(STOP, DRY_LENGTH, width=self.width)

    @classmethod
    def candidates(cls) -> Sequence[Self]:
        """Return the law with all lengths; pruning removes some."""
        return [cls(LENGTHS)]

    @property
    def prunable(self) -> tuple[str, ...]:
        """The amplitudes, unless there is only one."""
        return self.holding if len(self.lengths) > 1 else ()

    def without(self, parameters: Collection[str]) -> Maxwell:
        """Return the law without the lengths of these amplitudes; at least one remains."""
        remaining = tuple(length for name, length in zip(self.holding, self.lengths, strict=True)
                     if name not in parameters)
        return replace(self, lengths=remaining or self.lengths[:1])

    def unpruned(self) -> Maxwell:
        """Return the law with all lengths."""
        return replace(self, lengths=LENGTHS)


#: width [rad/s, m/s] of the ramp that additions scale
WIDTH = 0.01


@dataclass(frozen=True)
class NoFriction(FrictionLaw):
    """``f0`` only: the offset of a sensor; for axes without friction."""

    name: ClassVar[str] = 'none'

    @property
    def table(self) -> tuple[Parameter, ...]:
        """The offset."""
        return super().table[-1:]

    @property
    def dry(self) -> Term:
        """A ramp, for an addition that is the only friction, such as ``none+load``."""
        return Term(RAMP, WIDTH)


@dataclass(frozen=True)
class Levelling(Addition):
    """``fl clip(v / speed, -1, 1)``: viscous friction that levels off at ``speed`` [rad/s, m/s].

    Greased gears shear-thin: friction rises quickly at low speed and slowly above. An axis at rest
    is held by less, on average, than its friction in motion. If the ``speeds`` of the axis in the
    fit are below ``speed``, levelling off was not observed.
    """

    speed: float = setting(0.3, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'levelling'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.0125, 1.6, 8),)

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the wide ramp."""
        return (Parameter('fl', (Term(RAMP, self.speed, speeds=both_ways(self.speeds)),)),)


@dataclass(frozen=True)
class Breakaway(Addition):
    """``fb (1 - tanh(|v| / speed)) dry``: dry friction that is larger at rest (Stribeck).

    It fades over ``speed`` [rad/s, m/s]. On a law with presliding, friction then builds up over a
    travel to more than in motion. Linear above the higher of the ``speeds`` of the axis in the
    fit.

    Source: Armstrong-Helouvry, Dupont, Canudas de Wit 1994, with a hyperbolic tangent.
    """

    speed: float = setting(0.1, SPEED)
    speeds: Range = None
    name: ClassVar[str] = 'breakaway'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.005, 0.2, 4),)

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the dry friction that fades with speed."""
        fading = replace(dry, fade=self.speed, speeds=both_ways(self.speeds))
        return (Parameter('fb', (fading,)),)


@dataclass(frozen=True)
class LoadDependent(Addition):
    """``fw |load| dry``: dry friction proportional to the torque the axis transmits.

    ``fw`` is dimensionless. Source: Hamon, Gautier, Garrec, Janot 2010.
    """

    name: ClassVar[str] = 'load'

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the magnitude of the load with the sign of the dry friction."""
        return (Parameter('fw', (replace(dry, load=True),)),)


@dataclass(frozen=True)
class Drift(Addition):
    """``fd exp(-t / seconds) dry``: dry friction of a joint that warms up.

    ``t`` counts from the first sample of a recording: every recording is assumed to begin equally
    cold. After ``longest`` [s], the longest recording of the fit, it stays constant; a state
    without a past is warm and has that value.
    """

    seconds: float = setting(30.0, SECONDS)
    longest: float | None = setting(None, SECONDS)
    name: ClassVar[str] = 'drift'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('seconds', 5.0, 500.0, 5),)

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the decaying dry friction."""
        least = 0.0 if self.longest is None else float(np.exp(-self.longest / self.seconds))
        return (Parameter('fd', (replace(dry, seconds=self.seconds, least=least),),
                          nonnegative=False),)


@dataclass(frozen=True)
class TemperatureDependent(Addition):
    """``(T - reference) (ft dry + fu v)``: dry and viscous friction linear in temperature.

    ``reference`` [deg C] is also used where the temperature is unknown. Outside the
    ``temperatures`` of the axis in the fit, friction is that at the nearest end.
    """

    reference: float = setting(25.0, TEMPERATURE)
    temperatures: Range = None
    name: ClassVar[str] = 'temperature'

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return dry friction and velocity, each times the temperature above the reference."""
        return tuple(Parameter(name, (replace(term, reference=self.reference,
                                              temperatures=self.temperatures),), nonnegative=False)
                     for name, term in (('ft', dry), ('fu', Term(POWER))))
