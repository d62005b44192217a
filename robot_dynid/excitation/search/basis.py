"""Basis of motions that are linear in free coefficients, the unknowns of the optimiser."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray


class Basis(Protocol):
    """Motions q_j(t) = sum_p C[j, p] phi_p(t) that start and end at rest whatever the C (n, P).

    The conditions at the ends are eliminated (a basis of their null space), and the position is
    shifted by one of the coefficients, so every C is a trajectory, and limits on position and
    its derivatives are linear in C.
    """

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the n joints, the order of the rows of C."""

    @property
    def duration(self) -> float:
        """Length of what is executed, s."""

    @property
    def span(self) -> float:
        """Length of the part that is not repeated, s: of one period, or of the whole."""

    @property
    def repetitions(self) -> int:
        """Number of executions of that part."""

    @property
    def size(self) -> int:
        """P, the number of free coefficients of a joint."""

    @property
    def margin(self) -> float:
        """Part in (0, 1] of the limits that may be used on `grid` to keep them between."""

    def matrices(self, time: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return phi and its first three derivatives at ``time`` (T,) s, each (T, P)."""

    def grid(self) -> FloatArray:
        """Return the instants (T,) s of the span on which the optimiser imposes limits."""

    def trajectory(self, coefficients: FloatArray) -> Trajectory:
        """Return the trajectory of C (n, P); its peaks bound the continuous motion."""

    def random(self, limits: MotionLimits, generator: np.random.Generator) -> FloatArray:
        """Return a random C (n, P) that keeps the position, velocity, ... limits."""


def motion_of(
    matrices: tuple[FloatArray, FloatArray, FloatArray, FloatArray], coefficients: FloatArray
) -> Motion:
    """Return the motion of C (n, P) at the instants of the ``matrices`` of a basis."""
    position, velocity, acceleration, jerk = (m @ coefficients.T for m in matrices)
    return Motion(position, velocity, acceleration, jerk)
