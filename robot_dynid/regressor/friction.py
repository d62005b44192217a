"""Joint friction: one law per axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.friction.law import AxisMotion, FrictionLaw
from robot_dynid.regressor.block import Axes, spread, still
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Friction torque of every axis; ``laws`` has one law per axis.

    A coupled motor has no offset of its own: it could not be told from those of its joints.
    """

    axes: Axes
    laws: tuple[FrictionLaw, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """``fv1, fc1, f01, fv2, ...``."""
        return tuple(
            f'{p}{label}' for label, law in zip(self.axes.labels, self.laws, strict=True)
            for p in law.parameters
        )

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Those that the laws of the axes say."""
        return tuple(
            f'{p}{label}' for label, law in zip(self.axes.labels, self.laws, strict=True)
            for p in law.nonnegative
        )

    @property
    def holding(self) -> FloatArray:
        """Matrix (n, k): effort with which each parameter, at one, may hold a joint at rest."""
        columns = [np.abs(axis) * float(p in law.holding)
                   for axis, law in zip(self.axes.matrix, self.laws, strict=True)
                   for p in law.parameters]
        return np.array(columns).T

    def history(self, samples: Samples) -> FloatArray:
        """Return the torque (h, N) of every parameter of every axis at value one.

        Measured effort has passed a low-pass; friction switches too fast to commute with it, so
        its columns pass the same filter, unlike those of the smooth motion.
        """
        columns = [
            law.columns(AxisMotion(samples.time, samples.position @ axis, samples.velocity @ axis,
                                   samples.starts))
            for axis, law in zip(self.axes.matrix, self.laws, strict=True)
        ]
        return _low_passed(np.concatenate(columns), samples)

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the chosen parameters."""
        owners = [i for i, law in enumerate(self.laws) for _ in law.parameters]
        for column, parameter in enumerate(chosen):
            spread(out, column, self.axes.matrix[owners[parameter]], history[parameter])

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients of sum(weights * columns): in the velocity only."""
        gradients = still(samples)
        owners = [(i, row) for i, law in enumerate(self.laws)
                  for row in range(len(law.parameters))]
        slopes = [law.slopes(samples.velocity @ axis)
                  for axis, law in zip(self.axes.matrix, self.laws, strict=True)]
        for column, parameter in enumerate(chosen):
            owner, row = owners[parameter]
            axis = self.axes.matrix[owner]
            gradients[1][:] += np.outer(axis @ weights[:, column] * slopes[owner][row], axis)
        return gradients


def _low_passed(columns: FloatArray, samples: Samples) -> FloatArray:
    """Filter (h, N) like the effort of ``samples``, every segment by itself."""
    if samples.cutoff is None:
        return columns
    filtered = columns.copy()
    for segment in samples.segments:
        if segment.stop - segment.start > 1:
            step = float(samples.time[segment.start + 1] - samples.time[segment.start])
            filtered[:, segment] = zero_phase_low_pass(
                columns[:, segment].T, samples.cutoff, step).T
    return filtered
