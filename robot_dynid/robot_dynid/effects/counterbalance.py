"""Counterbalances: gas, hydraulic or coil springs between two links that relieve a joint.

A spring is anchored to both links, at distances a and b from the axis of the joint between them.
With the angle x = q + ``angle`` between the lines from the axis to the anchors its length is l,
l^2 = a^2 + b^2 - 2 a b cos x, and its tension S contributes the effort S a b sin(x) / l:

    T = cb sin(x) / sqrt(1 + r^2 - 2 r cos x),    r = min(a, b) / max(a, b).

A ratio r of zero is a coil spring with tension proportional to its length, or a long spring of any
kind; otherwise the tension is constant, as of gas or a hydraulic accumulator, and ``cb`` is the
tension times the shorter of a and b. Over the stroke of a joint the rate of the gas, the preload
of a coil and r look alike. T never exceeds ``cb``, also at angles outside the recordings.

The force of a spring along a prismatic joint is an offset of its friction, so these have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects.effect import ChosenEffect, zero_gradients
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.robot.model import REVOLUTE, RobotModel
from robot_dynid.types import FloatArray, Samples

#: ratios above zero and angles [rad] tried: finer ones fit noise in short motion
RATIOS, ANGLES = (0.5, 0.8), np.arange(24) * np.pi / 12.0
#: largest torque over that of the nominal gravity, which springs relieve; least gravity of a joint
#: with a spring over that of the most loaded joint; poses to evaluate both
MAX_RELIEF, LEAST_WEIGHT, WEIGHT_POSES = 3.0, 0.2, 500


@dataclass(frozen=True)
class Spring:
    """A spring at joint number ``joint`` (from zero); ``angle`` [rad] and ``ratio`` r."""

    joint: int = field(metadata={BOUNDS: NumberRange(0, 1000, whole=True)})
    angle: float = field(metadata={BOUNDS: NumberRange(-7.0, 7.0)})
    ratio: float = field(metadata={BOUNDS: NumberRange(0.0, 0.99)})

    def torque(self, position: FloatArray) -> FloatArray:
        """Return T (N,) [N m] for ``cb`` of one at positions (N,) [rad]."""
        x = position + self.angle
        return np.asarray(np.sin(x) / np.sqrt(1.0 + self.ratio**2 - 2.0 * self.ratio * np.cos(x)))

    def slope(self, position: FloatArray) -> FloatArray:
        """Return dT/dq (N,) [N m/rad] for ``cb`` of one at positions (N,) [rad]."""
        x = position + self.angle
        length = 1.0 + self.ratio**2 - 2.0 * self.ratio * np.cos(x)
        return np.asarray((np.cos(x) - self.ratio * np.sin(x)**2 / length) / np.sqrt(length))

    def row(self, torque: float) -> tuple[float, float, float, float]:
        """Return the columns of the kernels for a spring of ``cb`` = ``torque`` [N m]."""
        c, s = float(np.cos(self.angle)), float(np.sin(self.angle))
        return torque * c, torque * s, self.ratio * c, self.ratio * s


@dataclass(frozen=True, eq=False)
class Counterbalance(ChosenEffect):
    """Torque of springs between links."""

    part = Spring
    symbol = 'cb'
    what = 'largest torque of the counterbalance'
    title = 'Counterbalances'
    about = (
        'Springs that relieve a joint of gravity: with x = position + angle and the ratio r of '
        'the distances of the anchors from the axis, their torque is the largest one times '
        'sin x / sqrt(1 + r² - 2 r cos x). Gravity compensation, simulation, C, CasADi and JAX '
        'include it; exports that cannot represent it warn.')
    #: on robots without a counterbalance errors fell by up to 0.7 %, on the KUKA KR300, which has
    #: one, by 10 to 20 %
    least = 0.05
    like_weight = True

    @classmethod
    def candidates(cls, robot: RobotModel, joint: int) -> Sequence[Sequence[Spring]]:
        """Return springs at joints under gravity: coils, then springs of constant tension."""
        heaviest = _heaviest(robot)
        if robot.types[joint] != REVOLUTE or heaviest[joint] < LEAST_WEIGHT * heaviest.max():
            return ()
        coils = [Spring(joint, float(angle), 0.0) for angle in ANGLES if angle < np.pi]
        return coils, [Spring(joint, float(angle), ratio) for ratio in RATIOS for angle in ANGLES]

    @classmethod
    def ranges(
        cls, robot: RobotModel, joint: int, position: FloatArray, torque: FloatArray
    ) -> FloatArray:
        """Return ranges (k, 2) of parameters that relieve the joint, up to the largest relief."""
        weight = rigid_body.gravity_effort(robot.rigid, position)[:, joint]
        strongest = MAX_RELIEF * _heaviest(robot)[joint]
        return np.where((torque @ weight > 0.0)[:, None], [-strongest, 0.0], [0.0, strongest])

    @classmethod
    def shape(cls, part: Spring) -> dict[str, float]:
        """Return angle and ratio of a spring."""
        return {'angle [deg]': float(np.degrees(part.angle)), 'ratio': part.ratio}

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with these springs."""
        return mechanism.with_springs({spring.joint: spring.row(values[name]) for name, spring in
                                       zip(self.names, self.parts, strict=True)})

    def history(self, samples: Samples) -> FloatArray:
        """Return the torque (h, N) of every spring at value one, at the stamps of the effort."""
        position = samples.moved.position
        return np.array([spring.torque(position[:, spring.joint])
                         for spring in self.parts]).reshape(-1, len(samples))

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (N, n) of sum(weights * columns) in the motion.

        ``weights`` (n, k, N).
        """
        gradients = zero_gradients(samples)
        for column, index in enumerate(chosen.tolist()):
            spring = self.parts[index]
            gradients[0][:, spring.joint] += weights[spring.joint, column] * spring.slope(
                samples.position[:, spring.joint])
        return gradients


def _heaviest(robot: RobotModel) -> FloatArray:
    """Return the largest effort (n,) [N m] of the nominal gravity over random poses."""
    rng = np.random.default_rng(0)
    poses = rng.uniform(-np.pi, np.pi, (WEIGHT_POSES, robot.n))
    return np.asarray(np.abs(rigid_body.gravity_effort(robot.rigid, poses)).max(axis=0))
