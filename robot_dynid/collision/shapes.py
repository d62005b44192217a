"""Collision shapes of a robot, as its URDF has them: primitives, and meshes by their hulls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.collision.ellipsoids import DIMENSIONS, primitive
from robot_dynid.collision.mesh_file import mesh_vertices
from robot_dynid.errors import RobotError
from robot_dynid.robot.inertia import homogeneous
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import Reader, has_urdf, parse_urdf, read_urdf_text, source_text
from robot_dynid.types import FloatArray, frozen

BASE = -1
#: kind of a shape: all points below the plane z = 0 of its frame
HALFSPACE = 'halfspace'


@dataclass(frozen=True, eq=False)
class Shape:
    """A convex shape fixed to a body: box, cylinder, capsule, sphere, hull of a mesh, half-space.

    It is the sum of a box, of a disc across z and of a ball about the origin, or of the
    ``vertices`` (k, 3). ``owner`` is the name it goes by; ``body`` the index of the joint that
    moves it, BASE at rest; ``placement`` (4, 4) in the frame of the body (of the base link);
    ``edges`` (3,) half lengths, ``disc`` and ``ball`` radii [m].
    """

    owner: str
    body: int
    kind: str
    placement: FloatArray
    edges: FloatArray
    disc: float = 0.0
    ball: float = 0.0
    vertices: FloatArray | None = None

    def capsule(self) -> tuple[FloatArray, float]:
        """Return ends (2, 3) in the frame of the body and radius [m] of a capsule around it."""
        if self.vertices is not None:
            ends, radius = _around(self.vertices)
        else:
            half = self.edges + np.array([self.disc, self.disc, 0.0])
            axis = int(np.argmax(half))
            across = np.delete(half, axis)
            round_about = axis == 2 and self.disc > 0.0
            radius = self.ball + float(self.disc if round_about else np.hypot(*across))
            ends = np.zeros((2, 3))
            ends[:, axis] = -half[axis], half[axis]
            if axis != 2 and self.disc > 0.0:  # a flat disc: the ball around it
                ends[:], radius = 0.0, float(np.hypot(self.disc, self.edges[2]))
        return ends @ self.placement[:3, :3].T + self.placement[:3, 3], radius

    def sphere(self) -> tuple[FloatArray, float]:
        """Return centre (3,) in the frame of the body and radius [m] of a sphere around it."""
        centre, across = np.zeros(3), float(np.hypot(*self.edges[:2])) + self.disc
        radius = float(np.hypot(across, self.edges[2])) + self.ball
        if self.vertices is not None:
            centre = 0.5 * (self.vertices.min(axis=0) + self.vertices.max(axis=0))
            radius = float(np.max(np.linalg.norm(self.vertices - centre, axis=1)))
        return self.placement[:3, :3] @ centre + self.placement[:3, 3], radius

    def half_edges(self) -> FloatArray:
        """Return half edges (3,) [m] of the box around it, along its axes, centred as sphere()."""
        if self.vertices is not None:
            return np.asarray(0.5 * np.ptp(self.vertices, axis=0))
        return np.asarray(self.edges + np.array([self.disc, self.disc, 0.0]) + self.ball)

    def reach(self) -> float:
        """Return a bound [m] of the distance of its points from the origin of the body."""
        ends, radius = self.capsule()
        return float(np.max(np.linalg.norm(ends, axis=1))) + radius

    def swing(self, axis: FloatArray) -> float:
        """Return a bound [m/rad] of how a turn about the unit vector ``axis`` (3,) moves it.

        That is the distance from the axis; a round shape moves with its centre, and as much as
        its own axis is off ``axis``, since turns about that leave it where it is.
        """
        ends, radius = self.capsule()
        swing = float(np.max(np.linalg.norm(np.cross(ends, axis), axis=1))) + radius
        if self.kind not in ('cylinder', 'capsule', 'sphere'):
            return swing
        tilt = float(np.linalg.norm(np.cross(self.placement[:3, 2], axis)))
        size = 0.0 if self.kind == 'sphere' else (
            float(np.hypot(self.disc, self.edges[2])) + self.ball)
        centre = float(np.linalg.norm(np.cross(self.placement[:3, 3], axis)))
        return min(swing, centre + tilt * size)


def robot_shapes(robot: RobotModel) -> tuple[Shape, ...]:
    """Return the collision shapes of all links, those at rest named after the base link too.

    Links fixed to a body belong to it; joints that are not part of the robot stand at zero. A
    robot of screws has those of its description. Raises RobotError naming the link whose
    shape cannot be read, or whose mesh is missing.
    """
    if has_urdf(robot) and not Path(robot.source).is_file():
        return ()
    root = parse_urdf(source_text(robot), robot.source)
    places = {link.name: (robot.bodies[link.body], link.body, link.placement)
              for link in robot.links}
    for name, placement in links_at_rest(root, robot).items():
        places[name] = (robot.base_link, BASE, placement)
    return _shapes(root, Reader(robot.source), places)


def environment_shapes(path: str) -> tuple[Shape, ...]:
    """Return the collision shapes of a URDF of obstacles, all joints at zero, each by its link.

    The root link lies on the robot's base link. Raises UsageError or RobotError naming the file
    when it cannot be read, or has no collision shape.
    """
    root = parse_urdf(read_urdf_text(path), path)
    children = {_end(j, 'child') for j in root.findall('joint')}
    links = [e.get('name', '') for e in root.findall('link')]
    roots = [name for name in links if name not in children]
    places = {name: (name, BASE, placement) for start in roots
              for name, placement in _walk(root, Reader(path), start, set()).items()}
    shapes = _shapes(root, Reader(path), places)
    if not shapes:
        raise RobotError(f'{path}: has no <collision>, so there is nothing to keep clear of')
    return shapes


def links_at_rest(root: Element, robot: RobotModel) -> dict[str, FloatArray]:
    """Return the placement (4, 4) in the base link of all links that no joint of it moves."""
    return _walk(root, Reader(robot.source), robot.base_link, set(robot.joints))


def _end(joint: Element, which: str) -> str:
    found = joint.find(which)
    return '' if found is None else found.get('link', '')


def _walk(
    root: Element, reader: Reader, start: str, moving: set[str]
) -> dict[str, FloatArray]:
    """Return the placement (4, 4) of every link that no joint of ``moving`` parts from start."""
    edges: dict[str, list[tuple[str, FloatArray]]] = {}
    for joint in root.findall('joint'):
        if joint.get('name') in moving:
            continue
        parent, child = _end(joint, 'parent'), _end(joint, 'child')
        placement = reader.origin(joint, f'joint {joint.get("name")!r}')
        rotation = placement[:3, :3].T
        edges.setdefault(parent, []).append((child, placement))
        edges.setdefault(child, []).append(
            (parent, homogeneous(rotation, -rotation @ placement[:3, 3])))
    found = {start: np.eye(4)}
    stack = [start]
    while stack:
        link = stack.pop()
        for other, placement in edges.get(link, ()):
            if other not in found:
                found[other] = found[link] @ placement
                stack.append(other)
    return found


def _shapes(
    root: Element, reader: Reader, places: Mapping[str, tuple[str, int, FloatArray]]
) -> tuple[Shape, ...]:
    found = []
    for link in root.findall('link'):
        name = link.get('name', '')
        if name not in places:
            continue
        for element in link.findall('collision'):
            found.append(_shape(reader, element, f'link {name!r} collision', places[name]))
    return tuple(found)


def _shape(
    reader: Reader, element: Element, where: str, place: tuple[str, int, FloatArray]
) -> Shape:
    owner, body, link = place
    geometry = next(iter(element.find('geometry') or ()), None)
    if geometry is not None and geometry.tag == 'mesh':
        placement = link @ reader.origin(element, where)
        vertices = mesh_vertices(reader, geometry, where)
        return Shape(owner, body, 'mesh', placement, np.zeros(3), vertices=vertices)
    if geometry is None or geometry.tag not in DIMENSIONS:
        what = 'nothing' if geometry is None else f'a <{geometry.tag}>'
        raise reader.fail(where, f'is {what}, not one of {", ".join(DIMENSIONS)}, mesh')
    part = primitive(reader, element, where, link)
    return Shape(owner, body, geometry.tag, part.placement, part.edges, part.disc, part.ball)


def _around(points: FloatArray) -> tuple[FloatArray, float]:
    """Return ends (2, 3) and radius of a capsule along the longest axis of ``points`` (k, 3)."""
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    axis = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]
    along = (points - centre) @ axis
    radius = float(np.max(np.linalg.norm(points - centre - np.outer(along, axis), axis=1)))
    return centre + np.outer([along.min(), along.max()], axis), radius


def floor_shape(owner: str, height: float) -> Shape:
    """Return everything below ``height`` [m] of the base frame."""
    return Shape(owner, BASE, HALFSPACE, homogeneous(np.eye(3), [0.0, 0.0, height]), np.zeros(3))


def plain_box(owner: str, placement: FloatArray, size: Any) -> Shape:
    """Return a box at rest; ``size`` (3,) full edge lengths [m]."""
    return Shape(owner, BASE, 'box', frozen(placement), 0.5 * np.array(size, dtype=np.float64))
