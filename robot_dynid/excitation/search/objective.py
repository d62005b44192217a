"""Objectives of a design: a motion in, a value to be minimised and its exact gradient out.

``condition``: squared condition number of the weighted base regressor with unit columns, times
the geometric mean of the parameters' deviations (which keeps the efforts large).
``log-det``: that mean alone, which is D-optimality.
``precision``: the largest standard deviation relative to the nominal parameter.
``blocks``: the weighted condition numbers of the whole and of its parts, see `WeightedBlocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_dynid.excitation.search.measure import Measure, log_condition
from robot_dynid.excitation.search.observation import MotionGradient, Observation, total
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

NAMES = ('condition', 'blocks', 'log-det', 'precision')


class Objective(Protocol):
    """A function of motions that is minimised."""

    def __call__(self, motion: Motion) -> tuple[float, MotionGradient]:
        """Return the value and its gradients (T, n) in position, velocity, acceleration."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of the information that ``samples`` effort samples of a motion give."""

    observation: Observation
    measure: Measure
    samples: float = 1.0

    def __call__(self, motion: Motion) -> tuple[float, MotionGradient]:
        """Return value and gradients."""
        columns = self.observation.columns(motion)
        value, slope = self.measure(self.samples * self.observation.information(columns))
        return value, self.observation.pullback(motion, columns, self.samples * slope)


@dataclass(frozen=True, eq=False)
class WeightedBlocks:
    """Logarithm of the weighted sum of condition numbers, whole first, then the parts.

    co = (wa + wb + wc) cond(W) + wa cond(Wa) + wb cond(Wb) + wc cond(Wc), where W is the sum of
    the terms with accelerations, with products of velocities, and of the positions (weight).
    Source: Liu, Xu, Song et al., Actuators 2023, 12, 454, equation 14. The text leaves open

    - which columns a part has: here the leftmost independent ones of the part by itself (most
      base parameters do not enter the weight at all);
    - the weights, "the variance of the corresponding columns": here the mean variance of the
      columns of a part, relative to the sum over the parts, of the motion the search starts from,
      since weights that follow the motion would reward small parts;
    - the noise behind the row weights; and it leaves out friction, which we keep in the whole,
      because it is estimated together with the links.
    """

    objectives: tuple[Measured, ...]
    weights: FloatArray

    @classmethod
    def at(
        cls, whole: Observation, parts: Sequence[Observation], motion: Motion
    ) -> WeightedBlocks:
        """Weight the parts by the variance of their columns in ``motion``."""
        variances = np.array([np.mean(np.var(part.rows(motion), axis=0)) for part in parts])
        shares = variances / np.sum(variances)
        objectives = tuple(Measured(o, log_condition) for o in (whole, *parts))
        return cls(objectives, np.concatenate([[1.0], shares]))

    def __call__(self, motion: Motion) -> tuple[float, MotionGradient]:
        """Return value and gradients."""
        found = [objective(motion) for objective in self.objectives]
        terms = self.weights * np.exp([value for value, _ in found])
        shares = terms / np.sum(terms)
        gradients = [(s * g[0], s * g[1], s * g[2])
                     for s, (_, g) in zip(shares, found, strict=True)]
        return float(np.log(np.sum(terms))), total(gradients)
