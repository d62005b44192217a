"""Observation of the base parameters: weighted regressor rows and information of a motion.

Friction is that of sliding in the search of a design, so that gradients see its reversals; the
regressor of the links is also split into parts: terms with accelerations, velocities, and
positions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import Effect
from robot_dynid.effects.effect import Assembly, Axes, zero_gradients
from robot_dynid.effects.links import RigidLinks
from robot_dynid.errors import RobotError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.terms import sliding_table
from robot_dynid.kernels.friction import fill_sliding
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, Samples

MotionGradient = tuple[FloatArray, FloatArray, FloatArray]
CHANNELS = ('position', 'velocity', 'acceleration')
PARTS = ('acceleration', 'velocity', 'position')
#: channels of the motion that a part does not see; gravity enters the part without velocities
WITHOUT = {'acceleration': ('velocity',), 'velocity': ('acceleration',),
           'position': ('velocity', 'acceleration')}


@dataclass(frozen=True, eq=False)
class Observation:
    """The base regressor of a robot, with rows weighted by the noise of the joints.

    ``pivots`` holds the columns of every block; ``noise`` (n,) N m (N) the standard deviation of
    an effort sample of each joint.
    """

    joints: tuple[str, ...]
    blocks: tuple[Effect, ...]
    pivots: tuple[NDArray[np.int64], ...]
    noise: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, noise: FloatArray) -> Observation:
        """Return the observation of a model's base parameters with effort ``noise`` (n,) N m (N).
"""
        return cls(model.robot.joints, model.blocks, model.pivots_by_block, noise)

    @cached_property
    def _assembly(self) -> Assembly:
        return Assembly.of(self.blocks, self.pivots)

    @property
    def size(self) -> int:
        """Number b of base parameters."""
        return sum(map(len, self.pivots))

    def columns(self, motion: Motion) -> FloatArray:
        """Return the base regressor (n, b, T)."""
        return self._assembly.columns_of(self._samples(motion)).array(len(self.joints))

    def rows(self, motion: Motion) -> FloatArray:
        """Return the base regressor (n T, b) with weighted rows, joint by joint."""
        weighted = self.columns(motion) / self.noise[:, None, None]
        return weighted.transpose(0, 2, 1).reshape(-1, self.size)

    def information(self, columns: FloatArray) -> FloatArray:
        """Return M (b, b) = rows^T rows / T of the columns (n, b, T)."""
        weights = 1.0 / (self.noise**2 * columns.shape[2])
        return np.asarray(np.tensordot(weights, columns @ columns.transpose(0, 2, 1), 1))

    def pullback(self, motion: Motion, columns: FloatArray, slope: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of a function of M whose gradient in M is ``slope``.

        ``columns`` (n, b, T) of the motion; all blocks must be smooth.
        """
        samples = self._samples(motion)
        weights = 2.0 / (self.noise**2 * columns.shape[2])
        spread = slope @ (weights[:, None, None] * columns)
        parts = [block.pullback(samples, pivots, np.ascontiguousarray(spread[:, part]))
                 for block, pivots, part in self._parts() if block.smooth]
        return total(parts)

    def _parts(self) -> Sequence[tuple[Effect, NDArray[np.int64], slice]]:
        stops = np.cumsum([len(pivots) for pivots in self.pivots])
        return [(block, pivots, slice(int(stop) - len(pivots), int(stop)))
                for block, pivots, stop in zip(self.blocks, self.pivots, stops, strict=True)]

    def _samples(self, motion: Motion) -> Samples:
        return Samples(self.joints, np.arange(float(len(motion.position))), motion.position,
                       motion.velocity, motion.acceleration)


def total(parts: Sequence[MotionGradient]) -> MotionGradient:
    """Return the sum of gradients."""
    position, velocity, acceleration = (sum(g[1:], start=g[0]) for g in zip(*parts, strict=True))
    return position, velocity, acceleration


@dataclass(frozen=True, eq=False)
class SlidingFriction(Effect):
    """Steady-sliding friction of every axis; ``widths`` (m,) rad/s (m/s) of its dry friction.

    The ramps are wide: a steep one would contain no instant of the search, and its gradient would
    not see that a motion reverses earlier or later. Load-dependent friction is omitted.
    """

    axes: Axes
    laws: tuple[FrictionLaw, ...]
    widths: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """``fv1, fc1, f01, fv2, ...``."""
        return tuple(f'{p}{label}' for label, law in zip(self.axes.labels, self.laws, strict=True)
                     for p in law.parameters)

    @cached_property
    def _axis(self) -> NDArray[np.int64]:
        """The axis (k,) of each parameter."""
        counts = [len(law.parameters) for law in self.laws]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def _terms(self) -> FloatArray:
        return sliding_table([law.table for law in self.laws], self.widths)

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the chosen parameters into ``out`` (n, len(chosen), N)."""
        values, _ = self._sliding(samples)
        turned = self.axes.matrix[self._axis[chosen]]
        np.multiply(turned.T[:, :, None], values[chosen], out=out)

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return gradients (N, n) of sum(weights * columns), nonzero only in the velocity.

        ``weights`` (n, len(chosen), N).
        """
        _, slopes = self._sliding(samples)
        turned = self.axes.matrix[self._axis[chosen]]
        along = np.einsum('kn,nks->ks', turned, weights) * slopes[chosen]
        position, gradient, acceleration = zero_gradients(samples)
        gradient += along.T @ turned
        return position, gradient, acceleration

    def _sliding(self, samples: Samples) -> tuple[FloatArray, FloatArray]:
        """Return the torque (k, N) of all parameters at value one, and its slope in the velocity.
"""
        velocity = np.ascontiguousarray(self.axes.matrix @ samples.velocity.T)
        values, slopes = np.empty((2, len(self._axis), len(samples)))
        fill_sliding(self._terms, velocity[self._axis], values, slopes)
        return values, slopes


@dataclass(frozen=True, eq=False)
class PartOfLinks(RigidLinks):
    """Columns of the links with one kind of term: Y = Ya(q, qdd) + Yv(q, qd) + Yp(q)."""

    without: tuple[str, ...]

    @classmethod
    def of(cls, robot: RobotModel, part: str) -> PartOfLinks:
        """Return the part by its name in PARTS."""
        return cls(robot if part == 'position' else robot.with_gravity(np.zeros(3)),
                   WITHOUT[part])

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the chosen parameters into ``out`` (n, len(chosen), N)."""
        super().fill(self._restricted(samples), history, chosen, out)

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return gradients (N, n) of sum(weights * columns), zero in omitted channels.

        ``weights`` (n, len(chosen), N).
        """
        gradients = super().pullback(self._restricted(samples), chosen, weights)
        for name, gradient in zip(CHANNELS, gradients, strict=True):
            if name in self.without:
                gradient[:] = 0.0
        return gradients

    def _restricted(self, samples: Samples) -> Samples:
        none: dict[str, Any] = {name: np.zeros(samples.position.shape) for name in self.without}
        return replace(samples, **none)


def part_observations(robot: RobotModel, noise: FloatArray) -> dict[str, Observation]:
    """Return the observation of every part that the robot has, by name.

    ``noise`` (n,) N m (N) is the standard deviation of an effort sample of each joint. A robot
    with vertical axes only has no position part; a single joint has no velocity part.
    """
    observations = {}
    for part in PARTS:
        try:
            model = TorqueModel.of(robot, (PartOfLinks.of(robot, part),))
        except RobotError:  # no parameter affects an effort
            continue
        observations[part] = Observation.of(model, noise)
    return observations
