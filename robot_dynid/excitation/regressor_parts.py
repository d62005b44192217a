"""The parts of the links' regressor: with accelerations, velocities, and positions only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.links import RigidLinks
from robot_dynid.errors import RobotError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.search.observation import Observation
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

CHANNELS = ('position', 'velocity', 'acceleration')
PARTS = ('acceleration', 'velocity', 'position')
#: channels of the motion that a part does not see; it has weight where velocities are none
WITHOUT = {'acceleration': ('velocity',), 'velocity': ('acceleration',),
           'position': ('velocity', 'acceleration')}


@dataclass(frozen=True, eq=False)
class PartOfLinks(RigidLinks):
    """Columns of the links with only one kind of term: Y = Ya(q, qdd) + Yv(q, qd) + Yp(q)."""

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
        """Return gradients (N, n) of sum(weights * columns), zero in channels left out.

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

    ``noise`` (n,) N m (N) is the deviation of an effort sample of each joint. A robot whose axes
    are all vertical has no part of positions; one joint none of velocities.
    """
    found = {}
    for part in PARTS:
        try:
            model = TorqueModel.of(robot, (PartOfLinks.of(robot, part),))
        except RobotError:  # no parameter has any effect
            continue
        found[part] = Observation.of(model, noise)
    return found
