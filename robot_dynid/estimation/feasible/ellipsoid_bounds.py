"""Bounds whose ellipsoids come from the collision primitives of the robot."""

from __future__ import annotations

from dataclasses import replace

from robot_dynid.collision.shapes import collision_ellipsoid
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.estimation.feasible.bounds import COLLISION, Bounds, Ellipsoid, LinkBounds, Vector
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


def with_collision(bounds: Bounds, robot: RobotModel) -> Bounds:
    """Return ``bounds`` with an ellipsoid in numbers wherever they say COLLISION.

    Raises UsageError naming the link and why its URDF gives none. Links that the robot does not
    move stay as they are; limits_of refuses them.
    """
    return replace(bounds, links=tuple(
        (name, _resolved(link, robot, name)) if name in robot.bodies else (name, link)
        for name, link in bounds.links))


def _resolved(link: LinkBounds, robot: RobotModel, name: str) -> LinkBounds:
    if link.ellipsoid != COLLISION:
        return link
    try:
        placement, radii = collision_ellipsoid(robot, name)
    except (RobotError, UsageError) as error:
        raise UsageError(f'bounds: no ellipsoid of {name} from its collision primitives: {error}; '
                         'give ellipsoid: {centre: [x, y, z], radii: [x, y, z]}') from None
    x, y, z = placement[:3, :3]
    return replace(link, ellipsoid=Ellipsoid(
        _vector(placement[:3, 3]), _vector(radii), (_vector(x), _vector(y), _vector(z))))


def _vector(values: FloatArray) -> Vector:
    x, y, z = values
    return float(x), float(y), float(z)
