"""Friction that tells low from high speed, with sets of its own forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.friction.law import (
    AxisMotion,
    Range,
    Shape,
    continued,
    known_settings,
    read_range,
    require_positive,
)
from robot_dynid.types import FloatArray

Power = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class TwoSpeed:
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

    steepness: float = 0.01
    threshold: float = 0.05
    speeds: Range = None
    parameters: ClassVar[tuple[str, ...]] = (
        'fcp', 'fcn', 'fvp', 'fvn', 'fqp', 'fqn', 'fkp', 'fkn')
    holding: ClassVar[tuple[str, ...]] = ('fcp', 'fcn')
    nonnegative: ClassVar[tuple[str, ...]] = ('fcp', 'fcn')
    odd: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('steepness', 3e-3, 0.03, 2),
                                           Shape('threshold', 0.02, 0.2, 3))

    def __post_init__(self) -> None:
        require_positive('two-speed', 'steepness', self.steepness)
        require_positive('two-speed', 'threshold', self.threshold)
        if self.threshold < self.steepness:
            raise UsageError(f'friction law two-speed: threshold {self.threshold:g} must not be '
                             f'below steepness {self.steepness:g}')
        read_range(self, 'two-speed', 'speeds')

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (8, N), forward and backward in turn: Coulomb, linear, square, cube."""
        v, s = motion.velocity, self.dry(motion)
        sets = []
        for way in (v >= 0.0, v < 0.0):
            sets.append([way * s * 0.5 * (1.0 + np.abs(s)), *(way * fast for fast in (
                self._fast(v, self._opened, self._opened_slope),
                self._fast(v, lambda x: x * np.abs(x), lambda x: 2.0 * np.abs(x)),
                self._fast(v, lambda x: x**3, lambda x: 3.0 * x**2)))])
        return np.stack([column for pair in zip(*sets, strict=True) for column in pair])

    def _fast(self, v: FloatArray, power: Power, slope: Power) -> FloatArray:
        """Return what acts above the threshold (N,)."""
        def above(of: Power) -> Power:
            return lambda x: np.where(np.abs(x) >= self.threshold, of(x), 0.0)

        return continued(above(power), above(slope), v, self.speeds)

    def _opened(self, v: FloatArray) -> FloatArray:
        return np.asarray(v * 0.5 * (1.0 + np.abs(np.tanh(v / self.steepness))))

    def _opened_slope(self, v: FloatArray) -> FloatArray:
        s = np.abs(np.tanh(v / self.steepness))
        return np.asarray(0.5 * (1.0 + s + np.abs(v) * (1.0 - s**2) / self.steepness))

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return the hyperbolic tangent (N,)."""
        return np.asarray(np.tanh(motion.velocity / self.steepness))

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return None: it has no straight pieces."""
        return None

    def settings(self) -> dict[str, Any]:
        """Return steepness, threshold, and the speeds of the fit."""
        return {'steepness': self.steepness, 'threshold': self.threshold,
                **known_settings({'speeds': self.speeds})}
