"""Which blocks a torque model is made of, in a form that can be written down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.experiment import TorqueModel
from robot_dynid.friction import LAWS, FrictionLaw
from robot_dynid.model.robot import RobotModel
from robot_dynid.reduction.base import Reduction
from robot_dynid.regressor import Block, JointFriction, RigidLinks, RotorInertia, axes_of


@dataclass(frozen=True)
class Structure:
    """``rotor_inertia``; ``friction`` the law's name; ``settings`` of the law for every axis."""

    rotor_inertia: bool
    friction: str
    settings: tuple[dict[str, float], ...]

    @classmethod
    def uniform(cls, robot: RobotModel, rotor_inertia: bool, friction: str,
                settings: dict[str, float]) -> Structure:
        """Use the same law settings for every axis."""
        count = len(axes_of(robot).labels)
        return cls(rotor_inertia, friction, tuple(dict(settings) for _ in range(count)))

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """The friction law of every axis."""
        return tuple(LAWS[self.friction](**s) for s in self.settings)

    def blocks(self, robot: RobotModel) -> tuple[Block, ...]:
        """Build the blocks: links, rotors, friction."""
        axes = axes_of(robot)
        rotors: tuple[Block, ...] = (RotorInertia(axes),) if self.rotor_inertia else ()
        return (RigidLinks(robot), *rotors, JointFriction(axes, self.laws))

    def torque_model(self, robot: RobotModel, reduction: Reduction | None = None) -> TorqueModel:
        """Build the torque model, with a known ``reduction`` or a newly computed one.

        An effort from which the driver has removed gravity is modelled without gravity.
        """
        if robot.drive.kind == 'gravity_compensated_torque':
            robot = robot.with_gravity(np.zeros(3))
        blocks = self.blocks(robot)
        if reduction is None:
            return TorqueModel.of(robot, blocks)
        return TorqueModel(robot, blocks, reduction)
