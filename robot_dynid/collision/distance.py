"""Distances between shapes of a robot and around it: coal where it is installed, closed forms."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from robot_dynid.collision.shapes import BASE, Shape
from robot_dynid.kernels import distance
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

Indices = NDArray[np.int64]
# What coal's iterations leave open, m; distances are taken to be smaller by that.
TOLERANCE = 1e-5
# Asked of coal: of relative distances. Normals are as exact as its root, and cost hardly more.
GJK_TOLERANCE = 1e-10
GOLDEN_STEPS = 45  # narrow an interval to 4e-10 of its length


def coal_is_installed() -> bool:
    """Return whether the library coal can be imported."""
    return importlib.util.find_spec('coal') is not None


@dataclass(frozen=True, eq=False)
class Witness:
    """E distances with the points they were found at.

    ``distance`` (E,) m, negative: depth; ``first``, ``second`` (E, 3) points of the two shapes,
    ``normal`` (E, 3) unit vectors from the first to the second, base frame.
    """

    distance: FloatArray
    first: FloatArray
    second: FloatArray
    normal: FloatArray


def body_poses(robot: RobotModel, q: FloatArray) -> FloatArray:
    """Return rotation (row by row) and origin of every body in the base frame, (T, n, 12)."""
    out = np.empty((len(q), robot.n, distance.POSE))
    states = np.require(q, np.float64, 'C').view()
    states.flags.writeable = False  # kernels are compiled once more for writable arrays
    distance.poses(np.array(robot.parents, dtype=np.int64), robot.geometry, states, out)
    return out


def placed(shape: Shape, poses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rotations (T, 3, 3) and places (T, 3) of a shape in the base frame."""
    rotation, place = shape.placement[:3, :3], shape.placement[:3, 3]
    if shape.body == BASE:
        count = len(poses)
        return np.broadcast_to(rotation, (count, 3, 3)), np.broadcast_to(place, (count, 3))
    turn = poses[:, shape.body, :9].reshape(-1, 3, 3)
    return turn @ rotation, poses[:, shape.body, 9:] + turn @ place


class Capsules:
    """Capsules around shapes: their distances bound those of the shapes from below."""

    def __init__(self, shapes: Sequence[Shape], pairs: Indices) -> None:
        ends, radii = zip(*(shape.capsule() for shape in shapes)) if shapes else ((), ())
        self._bodies = np.array([shape.body for shape in shapes], dtype=np.int64)
        self.ends = np.array(ends, dtype=np.float64).reshape(-1, 6)
        self.radii = np.array(radii, dtype=np.float64)
        self._pairs = np.ascontiguousarray(pairs, dtype=np.int64).reshape(-1, 2)

    def __call__(self, poses: FloatArray) -> FloatArray:
        """Return the distances (T, K) m of all pairs."""
        out = np.empty((len(poses), len(self._pairs)))
        distance.capsule_distances(
            self._bodies, self.ends, self.radii, self._pairs, poses, out)
        return out


class Coal:
    """Exact distances of convex shapes by the library coal (GJK, EPA inside each other)."""

    def __init__(self, shapes: Sequence[Shape], pairs: Indices) -> None:
        import coal

        self._coal: Any = coal
        self._shapes = tuple(shapes)
        self._pairs = [(int(a), int(b)) for a, b in pairs]
        self._geometry = {i: self._made(shapes[i]) for pair in self._pairs for i in pair}
        self._compute = [coal.ComputeDistance(self._geometry[a], self._geometry[b])
                         for a, b in self._pairs]
        self._request = coal.DistanceRequest()
        self._request.enable_signed_distance = True
        # Plain GJK runs to its last iteration for some pairs of cylinders, thirty times longer.
        self._request.gjk_variant = coal.GJKVariant.PolyakAcceleration
        self._request.gjk_tolerance = GJK_TOLERANCE
        self._result = coal.DistanceResult()

    def __call__(self, poses: FloatArray, rows: Indices, pairs: Indices) -> Witness:
        """Return the distances at instants ``rows`` (E,) of the pairs ``pairs`` (E,)."""
        distance, first, normal = np.empty(len(rows)), np.empty((len(rows), 3)), np.empty(
            (len(rows), 3))
        transforms = _Transforms(self._coal, self._shapes, poses)
        result, request = self._result, self._request
        for pair in np.unique(pairs).tolist():
            own = np.flatnonzero(pairs == pair)
            compute, (a, b) = self._compute[pair], self._pairs[pair]
            instants = rows[own].tolist()
            for i, left, right in zip(own.tolist(), transforms.of(a, instants),
                                      transforms.of(b, instants)):
                result.clear()
                distance[i] = compute(left, right, request, result)
                first[i] = result.getNearestPoint1()
                normal[i] = result.normal
        distance -= TOLERANCE
        return Witness(distance, first, first + distance[:, None] * normal, normal)

    def _made(self, shape: Shape) -> Any:
        coal = self._coal
        if shape.vertices is not None:
            points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
            for point in shape.vertices:
                points.append(np.array(point))
            for a, b, c in ConvexHull(shape.vertices).simplices.tolist():
                faces.append(coal.Triangle(a, b, c))
            return coal.Convex(points, faces)
        if shape.kind == 'box':
            return coal.Box(*(2.0 * shape.edges))
        if shape.kind == 'sphere':
            return coal.Sphere(shape.ball)
        length = 2.0 * float(shape.edges[2])
        return (coal.Capsule(shape.ball, length) if shape.kind == 'capsule'
                else coal.Cylinder(shape.disc, length))


class Narrow:
    """Distances of chosen pairs: by coal, or of capsules from boxes at rest in closed form.

    ``exact`` (K,) tells which of the ``pairs`` (K, 2) are coal's.
    """

    def __init__(
        self, shapes: Sequence[Shape], pairs: Indices, exact: NDArray[np.bool_]
    ) -> None:
        self._shapes, self._pairs, self._exact = tuple(shapes), pairs, exact
        self._place = np.cumsum(exact) - 1
        self._coal = Coal(shapes, pairs[exact]) if exact.any() else None

    def __call__(self, poses: FloatArray, rows: Indices, pairs: Indices) -> Witness:
        """Return the distances at instants ``rows`` (E,) of the pairs ``pairs`` (E,)."""
        found = Witness(np.empty(len(rows)), *(np.empty((len(rows), 3)) for _ in range(3)))
        exact = self._exact[pairs]
        if self._coal is not None:
            _put(found, exact, self._coal(poses, rows[exact], self._place[pairs[exact]]))
        for pair in np.unique(pairs[~exact]):
            own = pairs == pair
            shape, box = (self._shapes[i] for i in self._pairs[pair])
            _put(found, own, capsule_to_box(shape, poses[rows[own]], box))
        return found


def _put(into: Witness, where: NDArray[np.bool_], part: Witness) -> None:
    for name in ('distance', 'first', 'second', 'normal'):
        getattr(into, name)[where] = getattr(part, name)


class _Transforms:
    """Placements of shapes as coal wants them, each made once."""

    def __init__(self, coal: Any, shapes: Sequence[Shape], poses: FloatArray) -> None:
        self._coal, self._shapes, self._poses = coal, shapes, poses
        self._made: dict[int, dict[int, Any]] = {}

    def of(self, index: int, rows: list[int]) -> list[Any]:
        """Return those of a shape at instants ``rows``."""
        shape = self._shapes[index]
        made = self._made.setdefault(index, {})
        if shape.body == BASE:
            rotations, places = placed(shape, self._poses[:1])
            made.setdefault(0, self._coal.Transform3s(rotations[0], places[0]))
            return [made[0]] * len(rows)
        new = [row for row in dict.fromkeys(rows) if row not in made]
        rotations, places = placed(shape, self._poses[new])
        for row, rotation, place in zip(new, rotations, places):
            made[row] = self._coal.Transform3s(rotation, place)
        return [made[row] for row in rows]


def above(shape: Shape, poses: FloatArray, height: float) -> Witness:
    """Return the height of a shape over a horizontal floor, exactly, at every pose (T,).

    The lowest point of a sum of box, disc and ball is the sum of their lowest points.
    """
    rotations, places = placed(shape, poses)
    down = -rotations[:, 2, :]  # in the frame of the shape
    if shape.vertices is not None:
        lowest = shape.vertices[np.argmax(down @ shape.vertices.T, axis=1)]
    else:
        across = np.hypot(down[:, 0], down[:, 1])[:, None]
        disc = np.where(across > 0.0, down / np.where(across > 0.0, across, 1.0), 0.0)
        disc[:, 2] = 0.0
        lowest = np.sign(down) * shape.edges + shape.disc * disc + shape.ball * down
    points = places + np.einsum('tij,tj->ti', rotations, lowest)
    foot = points.copy()
    foot[:, 2] = height
    normal = np.tile([0.0, 0.0, -1.0], (len(points), 1))
    return Witness(points[:, 2] - height, points, foot, normal)


def capsule_to_box(shape: Shape, poses: FloatArray, box: Shape) -> Witness:
    """Return the distance of the capsule around a shape from a box at rest, at every pose (T,).

    The distance is negative by the depth inside.
    """
    ends, radius = shape.capsule()
    if shape.body == BASE:
        world = np.broadcast_to(ends, (len(poses), 2, 3))
    else:
        turn = poses[:, shape.body, :9].reshape(-1, 3, 3)
        world = poses[:, shape.body, None, 9:] + np.einsum('tij,ej->tei', turn, ends)
    rotation, centre = box.placement[:3, :3], box.placement[:3, 3]
    start, stop = ((world[:, i] - centre) @ rotation for i in (0, 1))
    share = np.empty(len(start))
    distance.nearest_to_box(
        np.ascontiguousarray(start), np.ascontiguousarray(stop), np.array(box.edges),
        GOLDEN_STEPS, share)
    point = start + share[:, None] * (stop - start)
    depth, normal = _signed(point, box.edges)
    nearest = point - depth[:, None] * normal
    outward = normal @ rotation.T
    on_axis = centre + point @ rotation.T
    return Witness(depth - radius, on_axis - radius * outward, centre + nearest @ rotation.T,
                   -outward)


def _signed(point: FloatArray, half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return signed distances (T,) of points (T, 3) from a box, and its gradients (T, 3)."""
    beyond = np.abs(point) - half
    outside = np.maximum(beyond, 0.0)
    length = np.linalg.norm(outside, axis=1)
    face = np.eye(3)[np.argmax(beyond, axis=1)]
    gradient = np.where(length[:, None] > 0.0,
                        outside / np.where(length > 0.0, length, 1.0)[:, None], face)
    depth = np.where(length > 0.0, length, beyond.max(axis=1))
    return depth, gradient * np.where(point < 0.0, -1.0, 1.0)
