"""Observation of the base parameters: weighted regressor rows and information of a motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import Effect
from robot_dynid.effects.effect import Assembly
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, Samples

MotionGradient = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Observation:
    """The base regressor of a robot; its rows count by the noise of the joints.

    ``kept`` holds the columns of every block; ``noise`` (n,) N m (N) the standard deviation of an
    effort sample of each joint.
    """

    joints: tuple[str, ...]
    blocks: tuple[Effect, ...]
    kept: tuple[NDArray[np.int64], ...]
    noise: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, noise: FloatArray) -> Observation:
        """Observe the base parameters of a model, with ``noise`` (n,) N m (N) in the efforts."""
        return cls(model.robot.joints, model.blocks, model.kept_by_block, noise)

    @cached_property
    def _assembly(self) -> Assembly:
        return Assembly.of(self.blocks, self.kept)

    @property
    def size(self) -> int:
        """Number b of base parameters."""
        return sum(len(kept) for kept in self.kept)

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
        parts = [block.pullback(samples, kept, np.ascontiguousarray(spread[:, part]))
                 for block, kept, part in self._parts() if block.smooth]
        return total(parts)

    def _parts(self) -> Sequence[tuple[Effect, NDArray[np.int64], slice]]:
        stops = np.cumsum([len(kept) for kept in self.kept])
        return [(block, kept, slice(int(stop) - len(kept), int(stop)))
                for block, kept, stop in zip(self.blocks, self.kept, stops, strict=True)]

    def _samples(self, motion: Motion) -> Samples:
        return Samples(self.joints, np.arange(float(len(motion.position))), motion.position,
                       motion.velocity, motion.acceleration)


def total(parts: Sequence[MotionGradient]) -> MotionGradient:
    """Return the sum of gradients."""
    position, velocity, acceleration = (sum(g[1:], start=g[0]) for g in zip(*parts, strict=True))
    return position, velocity, acceleration
