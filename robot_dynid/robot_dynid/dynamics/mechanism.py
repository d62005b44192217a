"""A mechanism: everything that determines the motion of an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels.newton_euler import SPRING
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: columns of the spring of a joint for the kernels, after the ten of its link
SPRING_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Links, rotors, friction and gears of a robot of n joints; efforts are N m (N) at the joints.

    ``robot`` gives geometry, limits and the gravity that its drives feel; ``links`` (n, 10) are
    standard parameters in the link frames, followed by four columns for springs if there are any,
    see `with_springs`; ``rotors`` of the motors, on the joint side; ``friction`` acts on the
    motors, which move with their joints if ``gears`` is None.
    """

    robot: RobotModel
    links: FloatArray
    rotors: Rotors
    friction: AxisFriction
    gears: Gears | None = None

    @classmethod
    def without_effects(cls, robot: RobotModel) -> Mechanism:
        """Return a mechanism without mass, rotors or friction, to which effects are added."""
        rotors = Rotors.of(np.zeros((robot.n, robot.n)))
        return cls(robot, np.zeros((robot.tree.n, SPRING)), rotors, AxisFriction.none(robot.n))

    def with_springs(self, rows: Mapping[int, Sequence[float]]) -> Mechanism:
        """Return it with springs at joints by number, four columns each, see `Spring.row`.

        Raises ModelError for a second spring at a joint.
        """
        springs = np.pad(self.links[:, SPRING:], ((0, 0), (0, SPRING_COLUMNS)))[:, :SPRING_COLUMNS]
        for joint, row in rows.items():
            if springs[joint].any():
                raise ModelError(f'joint {self.robot.joints[joint]} has two springs, of which the '
                                 'dynamics support one: omit one of these effects')
            springs[joint] = row
        return replace(self, links=np.hstack([self.bodies, springs]))

    @property
    def bodies(self) -> FloatArray:
        """The standard parameters (n, 10) of the links."""
        return self.links[:, :SPRING]
