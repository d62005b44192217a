"""What a friction law is: torque columns from the motion of one joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class AxisMotion:
    """Motion of one axis: ``time``, ``position``, ``velocity`` (N,), segment ``starts``."""

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    starts: tuple[int, ...] = (0,)


class FrictionLaw(Protocol):
    """A torque linear in its own parameters, seen by one axis."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Short names of the parameters, such as ``fv``."""

    @property
    def holding(self) -> tuple[str, ...]:
        """Which of them hold an axis at rest against a load of either sign, such as ``fc``."""

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Which of them a passive axis has at zero or above, such as ``fv``."""

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (k, N): the torque of each parameter at value one."""

    def slopes(self, velocity: FloatArray) -> FloatArray:
        """Return (k, N): the derivatives of the columns in the velocity (N,)."""

    def settings(self) -> dict[str, float]:
        """Return what has to be stored to rebuild the law."""
