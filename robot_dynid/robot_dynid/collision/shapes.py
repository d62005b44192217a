"""Collision shapes of a robot from its URDF: primitives, and convex hulls of meshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.numbers import SIZE, NumberRange
from robot_dynid.robot.inertia import homogeneous
from robot_dynid.robot.locate import located
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import Reader, has_urdf, parse_urdf, read_urdf_text, source_text
from robot_dynid.types import FloatArray, frozen

BASE = -1
#: kind of a shape: all points below the plane z = 0 of its frame
HALFSPACE, MESH = 'halfspace', 'mesh'
#: per axis, the dimension of the interval, disc or ball that bounds a primitive along it; a
#: capsule counts as the cylinder around it. The least ellipsoid around a product of balls of
#: radii r and dimensions d has the radii sqrt(3 / d) r
DIMENSIONS = {'box': (1, 1, 1), 'cylinder': (2, 2, 1), 'capsule': (2, 2, 1), 'sphere': (3, 3, 3)}
MESH_SCALE = NumberRange(-1e6, 1e6)
#: signs (8, 3) of the corners of a box, and corners (k, 3) of a polygon around the unit disc
CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
AROUND = np.array([[np.cos(a), np.sin(a), 0.0] for a in np.pi * (np.arange(16) + 0.5) / 8.0]
                  ) / np.cos(np.pi / 16.0)


@dataclass(frozen=True, eq=False)
class Shape:
    """A convex shape fixed to a body: box, cylinder, capsule, sphere, hull of a mesh, half-space.

    The Minkowski sum of a box, a disc normal to z and a sphere about the origin, or of the
    ``vertices`` (k, 3). ``owner`` is its name; ``body`` the index of the joint that moves it, BASE
    if fixed; ``placement`` (4, 4) in the frame of the body (of the base link); ``edges`` (3,) half
    lengths, ``disc`` and ``ball`` radii [m].
    """

    owner: str
    body: int
    kind: str
    placement: FloatArray
    edges: FloatArray
    disc: float = 0.0
    ball: float = 0.0
    vertices: FloatArray | None = None

    def extents(self, rotation: FloatArray) -> FloatArray:
        """Return half lengths (3,) of a primitive's bounding box in a rotated frame."""
        return np.asarray(np.abs(rotation) @ self.edges
                          + self.disc * np.hypot(rotation[:, 0], rotation[:, 1]) + self.ball)

    def points(self) -> FloatArray:
        """Return points (k, 3) in its frame whose hull, grown by ``ball``, contains it."""
        return self.vertices if self.vertices is not None else (
            (CORNERS * self.edges)[:, None] + self.disc * AROUND).reshape(-1, 3)

    def sphere(self) -> tuple[FloatArray, float]:
        """Return centre (3,) in the frame of the body and radius [m] of a bounding sphere."""
        points = self.points()
        centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
        radius = float(np.max(np.linalg.norm(points - centre, axis=1))) + self.ball
        return self.placement[:3, :3] @ centre + self.placement[:3, 3], radius

    def half_edges(self) -> FloatArray:
        """Return half edges (3,) [m] of the bounding box along its axes, centred as sphere()."""
        return np.asarray(0.5 * np.ptp(self.points(), axis=0) + self.ball)

    def reach(self) -> float:
        """Return an upper bound [m] of the distance of its points from the origin of the body."""
        return float(np.max(np.linalg.norm(self._in_body(), axis=1))) + self.ball

    def swing(self, axis: FloatArray) -> float:
        """Return an upper bound [m/rad] of the lever of its points about a unit ``axis`` (3,).

        Of a round shape only the centre and the tilt of its axis against ``axis`` count.
        """
        arms = np.cross(self._in_body(), axis)
        swing = float(np.max(np.linalg.norm(arms, axis=1))) + self.ball
        if self.kind not in ('cylinder', 'capsule', 'sphere'):
            return swing
        tilt = float(np.linalg.norm(np.cross(self.placement[:3, 2], axis)))
        size = 0.0 if self.kind == 'sphere' else (
            float(np.hypot(self.disc, self.edges[2])) + self.ball)
        centre = float(np.linalg.norm(np.cross(self.placement[:3, 3], axis)))
        return min(swing, centre + tilt * size)

    def _in_body(self) -> FloatArray:
        return np.asarray(self.points() @ self.placement[:3, :3].T + self.placement[:3, 3])


def floor_shape(owner: str, height: float) -> Shape:
    """Return the half-space below ``height`` [m] of the base frame."""
    return Shape(owner, BASE, HALFSPACE, homogeneous(np.eye(3), [0.0, 0.0, height]), np.zeros(3))


def plain_box(owner: str, placement: FloatArray, size: Any) -> Shape:
    """Return a fixed box; ``size`` (3,) full edge lengths [m]."""
    return Shape(owner, BASE, 'box', frozen(placement), 0.5 * np.array(size, dtype=np.float64))


def robot_shapes(
    robot: RobotModel, ignored: Sequence[str] = ()
) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
    """Return the collision shapes of all links except ``ignored`` ones, and those left out.

    Fixed shapes carry the name of the base link; links fixed to a body belong to it; joints
    outside the robot are at zero. Shapes that cannot be read, such as missing meshes, are left out
    if the link carries no joint of the robot. Raises RobotError for the link if it does,
    UsageError for an unknown name in ``ignored``.
    """
    if has_urdf(robot) and not Path(robot.source).is_file():
        return (), ()
    root = parse_urdf(source_text(robot), robot.source)
    reader = Reader(robot.source)
    places = {link.name: (robot.bodies[link.body], link.body, link.placement)
              for link in robot.links}
    for name, placement in links_at_rest(root, robot).items():
        places[name] = (robot.base_link, BASE, placement)
    for name in ignored:
        if places.pop(name, None) is None:
            raise UsageError(f'ignore_links: the robot has no link {name!r}')
    above = {_end(joint, 'child'): _end(joint, 'parent') for joint in root.findall('joint')}
    leading = {robot.base_link}
    for link in robot.bodies:
        while link not in leading and link in above:
            leading.add(link)
            link = above[link]
    shapes: list[Shape] = []
    left_out = [f'{name}: NOT checked, its shapes are ignored' for name in ignored]
    for name, place in places.items():
        try:
            shapes += _shapes(root, reader, {name: place})
        except RobotError as error:
            if name in leading:
                raise RobotError(f'{error}. To plan without checking this link: scene: '
                                 f'{{ignore_links: [{name}]}} in the robot YAML') from None
            left_out.append(f'{str(error).removeprefix(f"{robot.source}: ")}. NOT checked: it is '
                            'left out')
    return tuple(shapes), tuple(left_out)


def environment_shapes(path: str) -> tuple[Shape, ...]:
    """Return the collision shapes of a URDF of obstacles, all joints at zero, each by its link.

    The root link coincides with the robot's base link. Raises UsageError or RobotError for a file
    that cannot be read or has no collision shape.
    """
    root = parse_urdf(read_urdf_text(path), path)
    children = {_end(joint, 'child') for joint in root.findall('joint')}
    roots = [name for e in root.findall('link') if (name := e.get('name', '')) not in children]
    places = {name: (name, BASE, placement) for start in roots
              for name, placement in _walk(root, Reader(path), start, set()).items()}
    shapes = _shapes(root, Reader(path), places)
    if not shapes:
        raise RobotError(f'{path}: has no <collision>; give its links collision shapes')
    return shapes


def collision_ellipsoid(robot: RobotModel, body: str) -> tuple[FloatArray, FloatArray]:
    """Return placement (4, 4) in the link frame and radii (3,) [m] of a bounding ellipsoid.

    The smallest ellipsoid around one primitive (capsules: around their cylinder), or around the
    common box of several along the axes of the link, with links fixed to the body. Raises
    UsageError if the URDF file is missing, RobotError for a link whose collision geometry is no
    primitive, or that has mass and none.
    """
    reader = Reader(robot.source or robot.name)
    root = parse_urdf(source_text(robot), reader.source)
    links = [link for link in robot.links if link.body == robot.bodies.index(body)]
    for link in links:
        if link.has_inertial and root.find(f"link[@name='{link.name}']/collision") is None:
            raise reader.fail(f'link {link.name!r}', 'has mass, but no <collision>')
    shapes = _shapes(root, reader, {link.name: (body, link.body, link.placement)
                                    for link in links}, DIMENSIONS)
    if not shapes:
        raise reader.fail(f'link {body!r}', 'has no <collision>')
    if len(shapes) == 1:
        (only,) = shapes
        return only.placement, only.extents(np.eye(3)) * np.sqrt(
            3.0 / np.array(DIMENSIONS[only.kind]))
    centres = np.array([shape.placement[:3, 3] for shape in shapes])
    extents = np.array([shape.extents(shape.placement[:3, :3]) for shape in shapes])
    low, high = (centres - extents).min(axis=0), (centres + extents).max(axis=0)
    return homogeneous(np.eye(3), 0.5 * (low + high)), np.sqrt(3.0) * 0.5 * (high - low)


def links_at_rest(root: Element, robot: RobotModel) -> dict[str, FloatArray]:
    """Return the placement (4, 4) in the base link of all links at rest."""
    return _walk(root, Reader(robot.source), robot.base_link, set(robot.joints))


def _end(joint: Element, which: str) -> str:
    end = joint.find(which)
    return '' if end is None else end.get('link', '')


def _walk(
    root: Element, reader: Reader, start: str, moving: set[str]
) -> dict[str, FloatArray]:
    """Return the placement (4, 4) of all links connected to ``start`` by no joint of ``moving``.
    """
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
    placements = {start: np.eye(4)}
    stack = [start]
    while stack:
        link = stack.pop()
        for other, placement in edges.get(link, ()):
            if other not in placements:
                placements[other] = placements[link] @ placement
                stack.append(other)
    return placements


def _shapes(
    root: Element, reader: Reader, places: Mapping[str, tuple[str, int, FloatArray]],
    kinds: Sequence[str] | Mapping[str, Any] = (*DIMENSIONS, MESH),
) -> tuple[Shape, ...]:
    """Return the shapes of the links in ``places``: owner, body, placement (4, 4) of a link."""
    shapes = []
    for link in root.findall('link'):
        name = link.get('name', '')
        for element in link.findall('collision') if name in places else ():
            (owner, body, frame), where = places[name], f'link {name!r} collision'
            geometry = next(iter(element.find('geometry') or ()), None)
            if geometry is None or geometry.tag not in kinds:
                what = 'nothing' if geometry is None else f'a <{geometry.tag}>'
                raise reader.fail(where, f'is {what}, not one of {", ".join(kinds)}')
            placement = frame @ reader.origin(element, where)
            shapes.append(
                Shape(owner, body, MESH, placement, np.zeros(3),
                      vertices=_mesh_vertices(reader, geometry, where))
                if geometry.tag == MESH else
                Shape(owner, body, geometry.tag, placement,
                      *_sizes(reader, geometry, f'{where} {geometry.tag}')))
    return tuple(shapes)


def _sizes(reader: Reader, shape: Element, where: str) -> tuple[FloatArray, float, float]:
    """Return half edges (3,), radius of the disc and of the ball; raise for sizes not positive."""
    def positive(key: str, count: int) -> FloatArray:
        return reader.numbers(shape.get(key), f'{where} {key}', count, SIZE)

    if shape.tag == 'box':
        return 0.5 * positive('size', 3), 0.0, 0.0
    radius = float(positive('radius', 1)[0])
    if shape.tag == 'sphere':
        return np.zeros(3), 0.0, radius
    edges = np.array([0.0, 0.0, 0.5 * positive('length', 1)[0]])
    return (edges, radius, 0.0) if shape.tag == 'cylinder' else (edges, 0.0, radius)


def _mesh_vertices(reader: Reader, mesh: Element, where: str) -> FloatArray:
    """Return the vertices (k, 3) m of the convex hull of a <mesh>, read by coal (Assimp), scaled.

    Paths are relative to the URDF, ``file://`` or ``package://``.
    """
    import coal
    from scipy.spatial import ConvexHull

    name = mesh.get('filename')
    if not name:
        raise reader.fail(where, 'mesh has no attribute filename')
    path = located(reader.expanded(name, f'{where} mesh'), Path(reader.source).parent)
    if path is None:
        hint = (' (a package is looked for in AMENT_PREFIX_PATH, ROS_PACKAGE_PATH and the folders '
                'above the URDF)' if name.startswith('package://') else '')
        raise reader.fail(where, f'mesh file {name} is missing{hint}; correct the path or put the '
                                 'file there')
    scale = reader.numbers(mesh.get('scale', '1 1 1'), f'{where} mesh scale', 3, MESH_SCALE)
    try:
        points = np.array(coal.MeshLoader(coal.BV_AABB).load(str(path)).vertices())
        return frozen(points[ConvexHull(points).vertices] * scale)
    except Exception as error:  # coal raises what its importer raises
        _, _, told = str(error).partition('message: ')  # after the place in its source: the file
        cause = (told.splitlines()[1:] or str(error).splitlines())[0]
        raise reader.fail(
            where, f'mesh file {path} is not a mesh with a volume ({cause})') from None
