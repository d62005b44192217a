"""Export of the nominal robot description, not identified, in simulator formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import MissingDependency, ModelError, RobotError
from robot_dynid.export.identified_arm import IdentifiedArm, is_physical
from robot_dynid.export.mjcf import Mjcf, exported_mjcf, urdf_shapes
from robot_dynid.export.sdf import Sdf, exported_sdf
from robot_dynid.export.urdf import UrdfFile, with_name
from robot_dynid.friction import AxisFriction, law_from
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import source_text

#: header of generated URDFs
MARK = b'<!-- description of a robot by robot_dynid'


class DescribedUrdf(UrdfFile):
    """URDF of a robot as described."""

    mark = MARK


@dataclass(frozen=True, eq=False)
class Description:
    """Description of a ``robot`` with its nominal inertials: no friction, no rotors."""

    robot: RobotModel

    @cached_property
    def arm(self) -> IdentifiedArm:
        """Mechanism of the description; raises RobotError for an invalid mass or inertia."""
        robot = self.robot.rigid
        for name, parameters in zip(robot.bodies, robot.nominal, strict=True):
            if not is_physical(parameters):
                raise RobotError(f'{robot.source or robot.name}: link {name!r} has no physically '
                                 'valid mass and inertia; give mass, com and inertia')
        n = robot.n
        none = AxisFriction.of(np.eye(n), [law_from('none')] * n, np.zeros((n, 1)))
        return IdentifiedArm(
            Mechanism(robot, robot.nominal, Rotors.of(np.zeros((n, n))), none), {})

    def to_urdf(self) -> DescribedUrdf:
        """Return its URDF; those of screws have no shapes, and no gravity."""
        text = with_name(source_text(self.robot), self.robot)
        selection = Selection(base_link=self.robot.base_link, joints=self.robot.joints)
        return DescribedUrdf(text, tuple(_refusal(self.robot, text)), selection)

    def to_mjcf(self) -> Mjcf:
        """Return MJCF with the shapes of the description; raises RobotError as `arm`."""
        return exported_mjcf(self.arm, urdf_shapes(
            self.robot, source_text(self.robot), self.robot.source or self.robot.name))

    def to_sdf(self) -> Sdf:
        """Return SDFormat 1.9 without shapes; raises RobotError as `arm`."""
        return exported_sdf(self.arm)


def _refusal(robot: RobotModel, text: str) -> Iterator[str]:
    """Yield a sentence if MuJoCo refuses the bodies of a URDF."""
    try:
        from robot_dynid.export.mujoco import urdf_model

        urdf_model(robot, text)
    except MissingDependency:
        return
    except ModelError as error:
        yield f'written as it is described, but {error}'
