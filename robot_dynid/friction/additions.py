"""What may be added to a friction law: one more effect, linear in parameters of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from robot_dynid.friction.law import (
    AxisMotion,
    Range,
    Shape,
    both_ways,
    known_settings,
    ramp,
    read_range,
    require_positive,
    tanh_continued,
)
from robot_dynid.types import FloatArray


class Addition(Protocol):
    """An effect beside a law whose dry friction (N,), between -1 and 1, it knows."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Which of them a passive axis has at zero or above."""

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What is searched for."""

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return (k, N): the torque of each parameter at one; all odd in the motion."""

    def sliding(self, values: FloatArray, width: float) -> FloatArray | None:
        """Return rows (r, 4) of fv, fc, f0, width for states without a past, if there are.

        ``width`` is that of the ramp of the dry friction.
        """

    def settings(self) -> dict[str, Any]:
        """Return what has to be stored."""


@dataclass(frozen=True)
class Levelling:
    """``fl clip(v / speed, -1, 1)``: viscous friction that levels off at ``speed`` [rad/s, m/s].

    Greased gears shear-thin: friction rises quickly at low speed and slowly above. Where the
    ``speeds`` of the axis in the fit are below ``speed``, nothing was seen to level off.
    """

    speed: float = 0.3
    speeds: Range = None
    parameters: ClassVar[tuple[str, ...]] = ('fl',)
    nonnegative: ClassVar[tuple[str, ...]] = ('fl',)
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.05, 1.6, 6),)

    def __post_init__(self) -> None:
        require_positive('levelling', 'speed', self.speed)
        read_range(self, 'levelling', 'speeds')

    @property
    def levels(self) -> bool:
        """Whether the speeds of the fit reach ``speed``."""
        known = both_ways(self.speeds)
        return known is None or known[1] >= self.speed

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the wide ramp (1, N)."""
        v = motion.velocity
        return (ramp(v, self.speed) if self.levels else v / self.speed)[None]

    def sliding(self, values: FloatArray, width: float) -> FloatArray:
        """Return the wide ramp (1, 4)."""
        if self.levels:
            return np.array([[0.0, values[0], 0.0, self.speed]])
        return np.array([[values[0] / self.speed, 0.0, 0.0, self.speed]])

    def settings(self) -> dict[str, Any]:
        """Return the speed, and those of the fit."""
        return {'speed': self.speed, **known_settings({'speeds': self.speeds})}


@dataclass(frozen=True)
class Breakaway:
    """``fb (1 - tanh(|v| / speed)) dry``: dry friction that is larger at rest, Stribeck's.

    ``speed`` [rad/s, m/s] over which it fades. On a law with presliding it makes friction build up
    over a travel to more than it is in motion. Linear beyond the higher of the ``speeds`` of the
    axis in the fit. Source: Armstrong-Helouvry, Dupont, Canudas de Wit 1994, with a hyperbolic
    tangent.
    """

    speed: float = 0.1
    speeds: Range = None
    parameters: ClassVar[tuple[str, ...]] = ('fb',)
    nonnegative: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.02, 0.4, 6),)

    def __post_init__(self) -> None:
        require_positive('breakaway', 'speed', self.speed)
        read_range(self, 'breakaway', 'speeds')

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the dry friction that fades with the speed (1, N)."""
        faded = tanh_continued(np.abs(motion.velocity), self.speed, self.speeds)
        return ((1.0 - faded) * dry)[None]

    def sliding(self, values: FloatArray, width: float) -> FloatArray | None:
        """Return None: it has no straight pieces."""
        return None

    def settings(self) -> dict[str, Any]:
        """Return the speed, and those of the fit."""
        return {'speed': self.speed, **known_settings({'speeds': self.speeds})}


@dataclass(frozen=True)
class LoadDependent:
    """``fw |load| dry``: dry friction that grows with the torque the axis transmits.

    ``fw`` has no unit. Source: Hamon, Gautier, Garrec, Janot 2010.
    """

    parameters: ClassVar[tuple[str, ...]] = ('fw',)
    nonnegative: ClassVar[tuple[str, ...]] = ('fw',)
    shapes: ClassVar[tuple[Shape, ...]] = ()

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the size of the load with the sign of the dry friction (1, N)."""
        if motion.load is None:
            return np.zeros((1, len(dry)))
        return (np.abs(motion.load) * dry)[None]

    def sliding(self, values: FloatArray, width: float) -> FloatArray | None:
        """Return None: it depends on the load."""
        return None

    def settings(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


@dataclass(frozen=True)
class Drift:
    """``fd exp(-t / seconds) dry``: dry friction of a joint that warms up.

    ``t`` counts from the first sample of a recording, so every recording is taken to begin with
    the joint as cold. After ``longest`` [s], the longest recording of the fit, it stays as it is
    by then: so it is for a state without a past, which is warm.
    """

    seconds: float = 30.0
    longest: float | None = None
    parameters: ClassVar[tuple[str, ...]] = ('fd',)
    nonnegative: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('seconds', 5.0, 500.0, 5),)

    def __post_init__(self) -> None:
        require_positive('drift', 'seconds', self.seconds)
        if self.longest is not None:
            require_positive('drift', 'longest', self.longest)

    @property
    def warm(self) -> float:
        """What is left of it in a joint that is warm."""
        return 0.0 if self.longest is None else float(np.exp(-self.longest / self.seconds))

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the fading dry friction (1, N)."""
        since = motion.time - motion.time[0] if len(motion.time) else motion.time
        share = np.maximum(np.exp(-since / self.seconds), self.warm)
        return (np.where(motion.single, self.warm, share) * dry)[None]

    def sliding(self, values: FloatArray, width: float) -> FloatArray:
        """Return what is left of it (1, 4)."""
        return np.array([[0.0, self.warm * values[0], 0.0, width]])

    def settings(self) -> dict[str, Any]:
        """Return the time constant, and the longest time of the fit."""
        return {'seconds': self.seconds, **known_settings({'longest': self.longest})}


@dataclass(frozen=True)
class TemperatureDependent:
    """``(T - reference) (ft dry + fu v)``: dry and viscous friction linear in temperature.

    ``reference`` [deg C]; a joint of unknown temperature is taken to have it. Beyond the
    ``temperatures`` of the axis in the fit friction is as it is at their end.
    """

    reference: float = 25.0
    temperatures: Range = None
    parameters: ClassVar[tuple[str, ...]] = ('ft', 'fu')
    nonnegative: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = ()

    def __post_init__(self) -> None:
        read_range(self, 'temperature', 'temperatures')

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return dry friction and velocity (2, N), each times the excess temperature."""
        if motion.temperature is None:
            return np.zeros((2, len(dry)))
        known = motion.temperature
        if self.temperatures is not None:
            known = np.clip(known, *self.temperatures)
        return (known - self.reference) * np.stack([dry, motion.velocity])

    def sliding(self, values: FloatArray, width: float) -> FloatArray:
        """Return nothing (0, 4): states have the reference temperature."""
        return np.zeros((0, 4))

    def settings(self) -> dict[str, Any]:
        """Return the reference temperature, and those of the fit."""
        return {'reference': self.reference, **known_settings({'temperatures': self.temperatures})}
