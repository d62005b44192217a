"""Presliding by several stop operators: generalised Maxwell slip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import Any, ClassVar

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.friction.hysteresis import stop_states
from robot_dynid.friction.law import (
    SLIDING_WIDTH,
    AxisMotion,
    Shape,
    ramp,
    require_increasing,
    require_positive,
)
from robot_dynid.types import FloatArray

#: what the lengths are chosen from [rad or m]: two per decade; the amplitudes of nearer ones could
#: not be told apart
LENGTHS = (2e-5, 6e-5, 2e-4, 6e-4, 2e-3, 6e-3, 2e-2)
#: length of the state that additions scale; on the UR10e all from 2e-5 to 3e-4 do as well
DRY_LENGTH = 6e-5


@dataclass(frozen=True)
class Maxwell:
    """``fv v + sum_k fc_k z_k + f0``; each z_k a spring that slips at the travel ``lengths[k]``.

    ``z_k`` grows by dq / lengths[k] and stops at -1 and 1. The torque is linear in the amplitudes
    ``fca, fcb, ...``, one per length [rad or m], which add up to the Coulomb friction of steady
    sliding. A recording begins relaxed, z = 0, or as it slides where it begins in motion; a state
    forgets its beginning once the axis has moved two lengths. A state without a past slides: ``z =
    clip(v / width, -1, 1)``.
    Source: Al-Bender, Lampaert, Swevers 2005 without their rate law; Kuhnen 2003.
    """

    lengths: tuple[float, ...] = (1e-4, 1e-3)
    width: float = SLIDING_WIDTH
    shapes: ClassVar[tuple[Shape, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.lengths, (list, tuple)) or len(self.lengths) > len(ascii_lowercase):
            raise UsageError(f'friction law maxwell: lengths must be a list of at most '
                             f'{len(ascii_lowercase)} numbers, is {self.lengths!r}')
        object.__setattr__(self, 'lengths', tuple(self.lengths))
        require_increasing('maxwell', 'lengths', self.lengths)
        require_positive('maxwell', 'width', self.width)

    @property
    def holding(self) -> tuple[str, ...]:
        """The amplitudes."""
        return tuple(f'fc{letter}' for letter in ascii_lowercase[:len(self.lengths)])

    @property
    def parameters(self) -> tuple[str, ...]:
        """Viscous friction, amplitudes, offset."""
        return ('fv', *self.holding, 'f0')

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """All but the offset."""
        return ('fv', *self.holding)

    @property
    def odd(self) -> tuple[str, ...]:
        """All but the offset."""
        return ('fv', *self.holding)

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (k + 2, N): velocity, states, one."""
        v = motion.velocity
        return np.stack([v, *self._states(motion, self.lengths), np.ones_like(v)])

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return a state (N,) that does not depend on the lengths chosen."""
        found: FloatArray = self._states(motion, (DRY_LENGTH,))[0]
        return found

    def _states(self, motion: AxisMotion, lengths: tuple[float, ...]) -> FloatArray:
        states = stop_states(motion.position, motion.first, np.array(lengths), motion.begin)
        return np.where(motion.single, ramp(motion.velocity, self.width), states)

    def sliding(self, values: FloatArray) -> FloatArray:
        """Return Coulomb's law (1, 4) with the sum of the amplitudes."""
        return np.array([[values[0], np.sum(values[1:-1]), values[-1], self.width]])

    def pruned(self, values: FloatArray) -> Maxwell:
        """Return the law without the lengths whose amplitude is zero; one always stays."""
        amplitudes = values[1:-1]
        kept = [x for x, a in zip(self.lengths, amplitudes, strict=True) if a > 0.0]
        return replace(self, lengths=tuple(kept) or self.lengths[:1])

    def settings(self) -> dict[str, Any]:
        """Return lengths and width."""
        return {'lengths': list(self.lengths), 'width': self.width}
