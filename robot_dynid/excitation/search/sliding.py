"""Friction in the search of a design: axes slide, and gradients see their reversals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.effect import Axes, Effect, still
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.terms import sliding_table
from robot_dynid.kernels.friction import fill_sliding
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class SlidingFriction(Effect):
    """Friction of every axis without a past; ``widths`` (m,) rad/s (m/s) of its dry friction.

    The ramps are wide: on a steep one there would be no instant of the search, so that its
    gradient would not see that a motion reverses earlier or later. The load is not known.
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
        """Return gradients (N, n) of sum(weights * columns), zero but in the velocity.

        ``weights`` (n, len(chosen), N).
        """
        _, slopes = self._sliding(samples)
        turned = self.axes.matrix[self._axis[chosen]]
        along = np.einsum('kn,nks->ks', turned, weights) * slopes[chosen]
        position, gradient, acceleration = still(samples)
        gradient += along.T @ turned
        return position, gradient, acceleration

    def _sliding(self, samples: Samples) -> tuple[FloatArray, FloatArray]:
        """Return the torque (k, N) of all parameters at one, and its slope in the velocity."""
        velocity = np.ascontiguousarray(self.axes.matrix @ samples.velocity.T)
        values, slopes = np.empty((2, len(self._axis), len(samples)))
        fill_sliding(self._terms, velocity[self._axis], values, slopes)
        return values, slopes
