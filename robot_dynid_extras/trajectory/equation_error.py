"""Equation error beside simulation error: the equations of least squares, weighted.

Simulation alone decides combinations of parameters that hardly show in the motion by what
disturbances of the arm add up to. The equations of every instant know more of these. Both are
mean squares in units of their own noise, so a weight means the same for every robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.information import EXTRA, FILTERED, RAW, Information, triangle
from robot_dynid.estimation.least_squares import joint_weights, weighted_factor
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.multiple_shooting import Condensed, MultipleShooting


@dataclass(frozen=True, eq=False)
class EquationError:
    """Equations (m, b + 1) of the batches of an information, in units of the noise of each joint.

    ``owner`` is the batch of intervals that each belongs to by time; ``count`` of equations they
    stand for; their mean square counts ``weight`` times that of the simulation.
    """

    equations: tuple[FloatArray, ...]
    owner: NDArray[np.int64]
    count: int
    weight: float

    @classmethod
    def of(
        cls, information: Information, shooting: MultipleShooting, condensed: Condensed
    ) -> EquationError:
        """Return the equations of an experiment beside intervals of its recordings."""
        ends = np.cumsum([batch.samples for batch in information.batches])
        middles = ends - 0.5 * np.diff(ends, prepend=0)
        centres = []
        for place, rows in condensed.members:
            own = shooting.intervals[place].part(rows)
            centres.append(0.5 * float(own.first[0] + own.first[-1] + own.span))
        nearest = np.argmin(np.abs(middles[:, None] - np.array(centres)), axis=1)
        weights = joint_weights(information)
        return cls(tuple(weighted_factor(information, weights, b) for b in information.batches),
                   nearest, information.samples * len(information.structure), 0.0)

    def cost(self, values: FloatArray) -> float:
        """Return half the weighted mean square with parameters (b,)."""
        if self.weight == 0.0:
            return 0.0
        total = sum(float(np.sum((rows[:, :-1] @ values - rows[:, -1]) ** 2))
                    for rows in self.equations)
        return 0.5 * self.weight * total / self.count

    def joined(self, information: Information, values: FloatArray) -> Information:
        """Return equations of the step from ``values`` (b,), those of the simulation and these."""
        if self.weight == 0.0:
            return information
        scale = np.sqrt(self.weight * information.samples / self.count)
        found = []
        for number, batch in enumerate(information.batches):
            own = np.flatnonzero(self.owner == number)
            if not len(own):
                found.append(batch)
                continue
            rows = np.vstack([self.equations[i] for i in own])
            wide = np.zeros((len(rows), rows.shape[1] - 1 + EXTRA))
            b = rows.shape[1] - 1
            wide[:, :b] = scale * rows[:, :b]
            rest = scale * (rows[:, b] - rows[:, :b] @ values)
            wide[:, b + FILTERED] = wide[:, b + RAW] = rest
            found.append(replace(batch, factors=(
                triangle(np.asfortranarray(np.vstack([batch.factors[0], wide]))),)))
        return replace(information, batches=tuple(found))

    def outside(self, group: Sequence[int]) -> list[int]:
        """Return the batches of the information that do not belong to a group of intervals."""
        return [int(i) for i in np.flatnonzero(~np.isin(self.owner, list(group)))]
