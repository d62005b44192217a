"""PD control of the motors with compensation of gravity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.types import FloatArray, frozen


@dataclass(frozen=True, eq=False)
class GravityPD:
    """Torque ``stiffness (theta_d - theta) + damping (theta_d' - theta') + g(theta_d)``.

    ``stiffness`` N m/rad and ``damping`` N m s/rad of each motor's loop, (n,) on the joint side.
    With elastic joints it is stable where the stiffness exceeds what gravity changes per angle.
    Raises UsageError for gains that are not above zero. Source: Tomei, IEEE Trans. Automatic
    Control 1991, 36, 1208-1213; De Luca, Tomei, in Theory of Robot Control, 1996, chapter 5.
    """

    stiffness: FloatArray
    damping: FloatArray

    def __init__(self, stiffness: ArrayLike, damping: ArrayLike) -> None:
        for name, gains in (('stiffness', stiffness), ('damping', damping)):
            values = frozen(np.atleast_1d(np.asarray(gains, dtype=np.float64)))
            if not np.all(np.isfinite(values) & (values > 0.0)):
                raise UsageError(f'PD control: {name} must be above zero, is {values.tolist()}')
            object.__setattr__(self, name, values)

    def torque(self, error: FloatArray, rate: FloatArray, gravity: FloatArray) -> FloatArray:
        """Return the torque (n,) for errors of position and velocity (n,) and the weight (n,)."""
        return np.asarray(self.stiffness * error + self.damping * rate + gravity)
