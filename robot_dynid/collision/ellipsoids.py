"""Ellipsoids around the collision primitives of moving bodies, as the robot's URDF has them."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.numbers import SIZE
from robot_dynid.robot.inertia import homogeneous
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import Reader, parse_urdf, source_text
from robot_dynid.types import FloatArray

#: per axis, the dimension of the interval, disc or ball that bounds a primitive along it; a
#: capsule counts as the cylinder around it. The least ellipsoid around a product of balls of
#: radii r and dimensions d has the radii sqrt(3 / d) r
DIMENSIONS = {'box': (1, 1, 1), 'cylinder': (2, 2, 1), 'capsule': (2, 2, 1), 'sphere': (3, 3, 3)}


@dataclass(frozen=True, eq=False)
class Primitive:
    """All sums of a point of a box, of a disc across z and of a ball, each about the origin.

    ``placement`` (4, 4) in the frame of the moving body; ``edges`` (3,) half lengths, ``disc`` and
    ``ball`` radii [m]; ``dimensions`` (3,) of its kind.
    """

    placement: FloatArray
    edges: FloatArray
    disc: float
    ball: float
    dimensions: tuple[int, int, int]

    def extents(self, rotation: FloatArray) -> FloatArray:
        """Return half lengths (3,) of its box in a frame; ``rotation`` (3, 3) turns into it."""
        return np.asarray(np.abs(rotation) @ self.edges
                          + self.disc * np.hypot(rotation[:, 0], rotation[:, 1]) + self.ball)


def collision_ellipsoid(robot: RobotModel, body: str) -> tuple[FloatArray, FloatArray]:
    """Return placement (4, 4) in the link frame and radii (3,) [m] of an ellipsoid around a body.

    Of one primitive it is the least ellipsoid (of a capsule: of the cylinder around it), of
    several that of their common box along the axes of the link. Links fixed to the body belong to
    it. Raises UsageError when the URDF file is gone, RobotError naming the link whose
    collision geometry is no primitive, or that has mass and none.
    """
    primitives = _primitives(robot, robot.bodies.index(body))
    if len(primitives) == 1:
        one = primitives[0]
        return one.placement, one.extents(np.eye(3)) * np.sqrt(3.0 / np.array(one.dimensions))
    centres = np.array([p.placement[:3, 3] for p in primitives])
    extents = np.array([p.extents(p.placement[:3, :3]) for p in primitives])
    low, high = (centres - extents).min(axis=0), (centres + extents).max(axis=0)
    return homogeneous(np.eye(3), 0.5 * (low + high)), np.sqrt(3.0) * 0.5 * (high - low)


def _primitives(robot: RobotModel, body: int) -> list[Primitive]:
    reader = Reader(robot.source or robot.name)
    root = parse_urdf(source_text(robot), reader.source)
    elements = {e.get('name'): e.findall('collision') for e in root.findall('link')}
    found = []
    for link in robot.links:
        if link.body != body:
            continue
        where = f'link {link.name!r}'
        if link.has_inertial and not elements.get(link.name):
            raise reader.fail(where, 'has mass, but no <collision>')
        found += [primitive(reader, e, f'{where} collision', link.placement)
                  for e in elements.get(link.name, ())]
    if not found:
        raise reader.fail(f'link {robot.bodies[body]!r}', 'has no <collision>')
    return found


def primitive(reader: Reader, element: Element, where: str, link: FloatArray) -> Primitive:
    """Return a <collision> of a link placed (4, 4) in its body.

    Raises RobotError naming ``where`` it is, when it is no primitive or has no positive size.
    """
    shape = next(iter(element.find('geometry') or ()), None)
    if shape is None or shape.tag not in DIMENSIONS:
        what = 'nothing' if shape is None else f'a <{shape.tag}>'
        raise reader.fail(where, f'is {what}, not one of {", ".join(DIMENSIONS)}')
    edges, disc, ball = _sizes(reader, shape, f'{where} {shape.tag}')
    return Primitive(link @ reader.origin(element, where), edges, disc, ball,
                     DIMENSIONS[shape.tag])


def _sizes(reader: Reader, shape: Element, where: str) -> tuple[FloatArray, float, float]:
    """Return half edges (3,), radius of the disc and of the ball; refuse what is not positive."""
    def positive(key: str, count: int) -> FloatArray:
        return reader.numbers(shape.get(key), f'{where} {key}', count, SIZE)

    if shape.tag == 'box':
        return 0.5 * positive('size', 3), 0.0, 0.0
    radius = float(positive('radius', 1)[0])
    if shape.tag == 'sphere':
        return np.zeros(3), 0.0, radius
    edges = np.array([0.0, 0.0, 0.5 * positive('length', 1)[0]])
    return (edges, radius, 0.0) if shape.tag == 'cylinder' else (edges, 0.0, radius)
