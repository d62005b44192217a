"""Constraints of a motion that are not linear in it, such as efforts and distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray


class Constraint(Protocol):
    """A set of m smooth conditions on every instant of a motion of n joints."""

    @property
    def name(self) -> str:
        """Name of what is kept, for messages, such as ``effort``."""

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m): at least 0 where kept, scaled so that 1 is far from the bound."""

    def worst(self, motion: Motion) -> str:
        """Return a sentence that names what is nearest to its bound in ``motion``, in numbers."""

    def pullback(
        self, motion: Motion, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (T, n) of sum(weights * values): position, velocity, acceleration.

        ``weights`` (T, m).
        """

    def squares(self, motion: Motion, weights: FloatArray) -> FloatArray | None:
        """Return (T, n, n): the sum over m of weights * gradient gradient^T in the position.

        It is the main part of the curvature of a barrier. None where it is not at hand, or the
        values do not depend on the position alone; then it is learnt from gradients.
        """


@dataclass(frozen=True)
class Clearance:
    """Result of a proof over the whole continuous motion.

    ``smallest`` distance [m] found, between ``pair`` at ``time`` s; no pair comes nearer to what
    it has to keep by more than clearance.RESOLUTION (1 mm), nor, where ``free``, nearer than that.
    ``checked`` and ``unchecked`` say what was and what was not looked at.
    """

    free: bool
    smallest: float
    pair: tuple[str, str]
    time: float
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
