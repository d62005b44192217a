"""Counterbalances: gas, hydraulic or coil springs between two links that relieve a joint.

A spring is anchored to both links, at distances a and b from the axis of the joint between them.
With the angle x = q + ``angle`` between the two lines from the axis to the anchors it is of length
l, l^2 = a^2 + b^2 - 2 a b cos x, and its tension S takes the effort S a b sin(x) / l of the joint:

    T = cb sin(x) / sqrt(1 + r^2 - 2 r cos x),    r = min(a, b) / max(a, b).

At a ratio r of zero that is a coil spring whose tension is in proportion to its length, or a long
one of any kind; else one of constant tension, as of gas or of a hydraulic accumulator, and ``cb``
is its tension times the shorter of a and b. Over the stroke of a joint a rate of the gas, preload
of a coil and r look alike. T is never larger than ``cb``, also at angles that no recording has.
The force of a spring along a prismatic joint is an offset of its friction, so these have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import HISTORY, RegressorColumns
from robot_dynid.effects.effect import Effect, ParameterWords, still
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: torque of a counterbalance [N m]; the number of the joint follows
TORQUE = 'cb'
#: columns that the kernels read of the spring of a joint, behind the ten of its link
COLUMNS = 4


@dataclass(frozen=True)
class Spring:
    """A spring at the joint number ``joint`` from zero; ``angle`` [rad] and ``ratio`` r."""

    joint: int = field(metadata={BOUNDS: NumberRange(0, 1000, whole=True)})
    angle: float = field(metadata={BOUNDS: NumberRange(-7.0, 7.0)})
    ratio: float = field(metadata={BOUNDS: NumberRange(0.0, 0.99)})

    def torque(self, position: FloatArray) -> FloatArray:
        """Return T (N,) [N m] with ``cb`` at one of positions (N,) [rad]."""
        x = position + self.angle
        return np.asarray(np.sin(x) / np.sqrt(1.0 + self.ratio**2 - 2.0 * self.ratio * np.cos(x)))

    def slope(self, position: FloatArray) -> FloatArray:
        """Return dT/dq (N,) [N m/rad] with ``cb`` at one of positions (N,) [rad]."""
        x = position + self.angle
        length = 1.0 + self.ratio**2 - 2.0 * self.ratio * np.cos(x)
        return np.asarray((np.cos(x) - self.ratio * np.sin(x)**2 / length) / np.sqrt(length))

    def row(self, torque: float) -> tuple[float, float, float, float]:
        """Return the columns of the kernels for a spring of ``cb`` = ``torque`` [N m]."""
        c, s = float(np.cos(self.angle)), float(np.sin(self.angle))
        return torque * c, torque * s, self.ratio * c, self.ratio * s


@dataclass(frozen=True, eq=False)
class Counterbalance(Effect):
    """Torque of ``springs`` between links."""

    robot: RobotModel
    springs: tuple[Spring, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """``cb2`` for a spring at the second joint."""
        return tuple(f'{TORQUE}{spring.joint + 1}' for spring in self.springs)

    @property
    def words(self) -> Iterator[ParameterWords]:
        """Torque of every spring."""
        return (ParameterWords(name, self.robot.joints[spring.joint],
                               'largest torque of the counterbalance', 'N m')
                for name, spring in zip(self.names, self.springs, strict=True))

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with springs behind its links, (n, 14), as all dynamics take them.
        """
        rows = np.zeros((len(mechanism.links), COLUMNS))
        for name, spring in zip(self.names, self.springs, strict=True):
            rows[spring.joint] = spring.row(values[name])
        return replace(mechanism, links=np.hstack([mechanism.bodies, rows]))

    def history(self, samples: Samples) -> FloatArray:
        """Return the torque (h, N) of every spring at one, at the stamps of the effort."""
        position = samples.moved.position
        return np.array([spring.torque(position[:, spring.joint])
                         for spring in self.springs]).reshape(-1, len(samples))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: each is a row of the history."""
        return RegressorColumns(len(chosen), entries=tuple(
            (self.springs[index].joint, column, HISTORY, index, 1.0)
            for column, index in enumerate(chosen.tolist())), past=len(self.springs))

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (N, n) of sum(weights * columns) in the motion.

        ``weights`` (n, k, N).
        """
        gradients = still(samples)
        for column, index in enumerate(chosen.tolist()):
            spring = self.springs[index]
            gradients[0][:, spring.joint] += weights[spring.joint, column] * spring.slope(
                samples.position[:, spring.joint])
        return gradients
