"""What may be added to a friction law: one more effect, linear in parameters of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from robot_dynid.friction.law import AxisMotion, Shape, ramp, require_positive
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

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return rows (r, 4) of fv, fc, f0, width for states without a past, if there are."""

    def settings(self) -> dict[str, float]:
        """Return what has to be stored."""


@dataclass(frozen=True)
class Levelling:
    """``fl clip(v / speed, -1, 1)``: viscous friction that levels off at ``speed`` [rad/s, m/s].

    Greased gears shear-thin: friction rises quickly at low speed and slowly above.
    """

    speed: float = 0.3
    parameters: ClassVar[tuple[str, ...]] = ('fl',)
    nonnegative: ClassVar[tuple[str, ...]] = ('fl',)
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.05, 1.6, 6),)

    def __post_init__(self) -> None:
        require_positive('levelling', 'speed', self.speed)

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the wide ramp (1, N)."""
        return ramp(motion.velocity, self.speed)[None]

    def sliding(self, values: FloatArray) -> FloatArray:
        """Return the wide ramp (1, 4)."""
        return np.array([[0.0, values[0], 0.0, self.speed]])

    def settings(self) -> dict[str, float]:
        """Return the speed."""
        return {'speed': self.speed}


@dataclass(frozen=True)
class Breakaway:
    """``fb (1 - tanh(|v| / speed)) dry``: dry friction that is larger at rest, Stribeck's.

    ``speed`` [rad/s, m/s] over which it fades. On a law with presliding it makes friction build up
    over a travel to more than it is in motion. Source: Armstrong-Helouvry, Dupont, Canudas de Wit
    1994, with a hyperbolic tangent.
    """

    speed: float = 0.1
    parameters: ClassVar[tuple[str, ...]] = ('fb',)
    nonnegative: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('speed', 0.02, 0.4, 6),)

    def __post_init__(self) -> None:
        require_positive('breakaway', 'speed', self.speed)

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the dry friction that fades with the speed (1, N)."""
        return ((1.0 - np.tanh(np.abs(motion.velocity) / self.speed)) * dry)[None]

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return None: it has no straight pieces."""
        return None

    def settings(self) -> dict[str, float]:
        """Return the speed."""
        return {'speed': self.speed}


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

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return None: it depends on the load."""
        return None

    def settings(self) -> dict[str, float]:
        """Return nothing."""
        return {}


@dataclass(frozen=True)
class Drift:
    """``fd exp(-t / seconds) dry``: dry friction of a joint that warms up.

    ``t`` counts from the first sample of a recording, so every recording is taken to begin with
    the joint as cold. A state without a past is warm.
    """

    seconds: float = 30.0
    parameters: ClassVar[tuple[str, ...]] = ('fd',)
    nonnegative: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('seconds', 5.0, 500.0, 5),)

    def __post_init__(self) -> None:
        require_positive('drift', 'seconds', self.seconds)

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return the fading dry friction (1, N)."""
        since = motion.time - motion.time[0] if len(motion.time) else motion.time
        return (np.where(motion.single, 0.0, np.exp(-since / self.seconds)) * dry)[None]

    def sliding(self, values: FloatArray) -> FloatArray:
        """Return nothing (0, 4)."""
        return np.zeros((0, 4))

    def settings(self) -> dict[str, float]:
        """Return the time constant."""
        return {'seconds': self.seconds}


@dataclass(frozen=True)
class TemperatureDependent:
    """``(T - reference) (ft dry + fu v)``: dry and viscous friction linear in temperature.

    ``reference`` [deg C]; a joint of unknown temperature is taken to have it.
    """

    reference: float = 25.0
    parameters: ClassVar[tuple[str, ...]] = ('ft', 'fu')
    nonnegative: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = ()

    def columns(self, motion: AxisMotion, dry: FloatArray) -> FloatArray:
        """Return dry friction and velocity (2, N), each times the excess temperature."""
        if motion.temperature is None:
            return np.zeros((2, len(dry)))
        return (motion.temperature - self.reference) * np.stack([dry, motion.velocity])

    def sliding(self, values: FloatArray) -> FloatArray:
        """Return nothing (0, 4): states have the reference temperature."""
        return np.zeros((0, 4))

    def settings(self) -> dict[str, float]:
        """Return the reference temperature."""
        return {'reference': self.reference}
