"""Identified arm with feasible links, the input of all exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects.ripple import TorqueRipple
from robot_dynid.errors import ModelError
from robot_dynid.numbers import POSITION
from robot_dynid.robot.inertia import com_from_parameters
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

#: rounding margin of other readers, relative to the sum of moments (MuJoCo allows none)
LEAST_MOMENT = 1e-12
#: default speed [rad/s, m/s] of joints without training range and limits, and default time [s] to
#: reach the speed
USUAL_SPEED, USUAL_TIME = 1.0, 0.2


@dataclass(frozen=True, eq=False)
class IdentifiedArm:
    """A ``mechanism`` with feasible links, and its training range.

    ``trained`` are the ranges (n, 2) of the recordings by name: position, velocity, acceleration
    [rad, m and per s]; empty if unknown. ``not_identified`` are the joints it must not be used
    for. No format holds the torque ``ripples`` of its joints, nor the slow changes of friction of
    the joints ``changing``. Commands act on position servos after ``delay`` [s]. Raises ModelError
    for infeasible links.
    """

    mechanism: Mechanism
    trained: Mapping[str, FloatArray]
    not_identified: tuple[str, ...] = ()
    ripples: tuple[TorqueRipple | None, ...] = ()
    changing: tuple[str, ...] = ()
    delay: float = 0.0

    def __post_init__(self) -> None:
        for name, parameters in zip(self.robot.bodies, self.mechanism.bodies, strict=True):
            if not is_physical(parameters):
                raise ModelError(f'link {name!r}: its parameters are not physically feasible; '
                                 'identify again with --method feasible')

    @property
    def robot(self) -> RobotModel:
        """Robot in the gravity that its drives feel."""
        return self.mechanism.robot

    @property
    def speeds(self) -> FloatArray:
        """Highest speed (n,) of the joints: trained, else their limit, else USUAL_SPEED."""
        limits = self.robot.limits.velocity
        default = np.where(np.isfinite(limits) & (limits > 0.0), limits, USUAL_SPEED)
        range_ = self.trained.get('velocity')
        if range_ is None:
            return default
        trained = np.abs(range_).max(axis=1)
        return np.where(trained > 0.0, trained, default)

    def states(self, count: int, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return random position, velocity, acceleration (count, n), uniform in their ranges.

        Positions are those of the training, else within finite limits, else a turn (1 m);
        velocities up to `speeds` both ways; accelerations of the training, else up to their
        limits, else such as reach the speeds within USUAL_TIME.
        """
        n, rng = self.robot.n, np.random.default_rng(seed)
        grid = (np.argsort(rng.random((3, count, n)), axis=1) + 0.5) / count
        limits, free = self.robot.limits, np.where(self.robot.types == PRISMATIC, 0.5, np.pi)
        position = self.trained.get('position', np.stack([
            np.where(np.abs(limits.lower) <= POSITION.high, limits.lower, -free),
            np.where(np.abs(limits.upper) <= POSITION.high, limits.upper, free)], axis=1))
        largest = np.where(np.isfinite(limits.acceleration), limits.acceleration,
                           self.speeds / USUAL_TIME)
        acceleration = self.trained.get('acceleration', np.stack([-largest, largest], axis=1))
        ends = (position, np.stack([-self.speeds, self.speeds], axis=1), acceleration)
        q, qd, qdd = (low + part * (high - low)
                      for part, (low, high) in zip(grid, (e.T for e in ends), strict=True))
        return q, qd, qdd


@one_blas_thread()
def is_physical(parameters: ArrayLike) -> bool:
    """Return True if a body of positive density has the standard ``parameters`` (10,)."""
    if not np.asarray(parameters)[0] > 0.0:
        return False
    margin, total = margin_of(com_from_parameters(parameters)[2])
    return bool(margin > LEAST_MOMENT * total)


def margin_of(inertia: FloatArray) -> tuple[float, float]:
    """Return the smallest excess of two principal moments over the third, and their sum.

    ``inertia`` (3, 3) kg m^2 about the centre of mass.
    """
    moments = np.linalg.eigvalsh(inertia)
    return float(moments[0] + moments[1] - moments[2]), float(np.abs(moments).sum())
