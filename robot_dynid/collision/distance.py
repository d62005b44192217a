"""Distances of convex shapes: bounding spheres in the broad phase, coal for those that are near.

Source: Montaut, Le Lidec, Petrik, Sivic, Carpentier, Collision Detection Accelerated: An
Optimization Perspective, RSS 2022 (GJK as coal runs it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import coal
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from robot_dynid.collision.shapes import BASE, HALFSPACE, Shape
from robot_dynid.dynamics.kinematics import LinkPoses
from robot_dynid.types import FloatArray

Indices = NDArray[np.int64]
# What coal's iterations leave open, m; distances are taken to be smaller by that. Those over a
# half-space are exact.
TOLERANCE = 1e-5
# Asked of coal: of relative distances. Normals are as exact as its root, and cost hardly more.
GJK_TOLERANCE = 1e-10


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


def placed(shape: Shape, poses: LinkPoses) -> tuple[FloatArray, FloatArray]:
    """Return rotations (T, 3, 3) and places (T, 3) m of a shape in the base frame."""
    rotation, place = shape.placement[:3, :3], shape.placement[:3, 3]
    if shape.body == BASE:
        count = len(poses.origins)
        return np.broadcast_to(rotation, (count, 3, 3)), np.broadcast_to(place, (count, 3))
    turn = poses.rotations[:, shape.body]
    return turn @ rotation, poses.origins[:, shape.body] + turn @ place


class BroadPhase:
    """Distances of spheres around shapes, which bound those of the shapes from below.

    ``pairs`` (K, 2) indices of ``shapes``; a half-space may be the second one.
    """

    def __init__(self, shapes: Sequence[Shape], pairs: Indices) -> None:
        self._first, self._second = pairs.reshape(-1, 2).T
        self._used = np.unique(pairs).tolist()
        self._shapes = shapes
        self._centres, self._radii = np.zeros((len(shapes), 3)), np.zeros(len(shapes))
        for i in self._used:
            self._centres[i], self._radii[i] = shapes[i].sphere()
        self._floor = np.array([shapes[i].kind == HALFSPACE for i in self._second], dtype=bool)

    def __call__(self, poses: LinkPoses) -> FloatArray:
        """Return lower bounds (T, K) m of the distances of all pairs."""
        centres = np.empty((len(poses.origins), len(self._shapes), 3))
        for i in self._used:
            body, centre = self._shapes[i].body, self._centres[i]
            centres[:, i] = centre if body == BASE else (
                poses.origins[:, body] + poses.rotations[:, body] @ centre)
        apart = centres[:, self._first] - centres[:, self._second]
        gaps = np.where(self._floor, apart[..., 2], np.linalg.norm(apart, axis=2))
        return np.asarray(gaps - self._radii[self._first] - self._radii[self._second])


class NarrowPhase:
    """Exact distances of convex shapes by coal (GJK, EPA inside each other)."""

    def __init__(self, shapes: Sequence[Shape], pairs: Indices) -> None:
        self._shapes = tuple(shapes)
        self._pairs = [(int(a), int(b)) for a, b in pairs]
        self._geometry = {i: _geometry(shapes[i]) for pair in self._pairs for i in pair}
        self._compute = [coal.ComputeDistance(self._geometry[a], self._geometry[b])
                         for a, b in self._pairs]
        self._tolerance = np.array([
            0.0 if shapes[b].kind == HALFSPACE else TOLERANCE for _, b in self._pairs])
        self._request = coal.DistanceRequest()
        self._request.enable_signed_distance = True
        # Plain GJK runs to its last iteration for some pairs of cylinders, thirty times longer.
        self._request.gjk_variant = coal.GJKVariant.PolyakAcceleration
        self._request.gjk_tolerance = GJK_TOLERANCE
        self._result = coal.DistanceResult()

    def __call__(self, poses: LinkPoses, rows: Indices, pairs: Indices) -> Witness:
        """Return the distances at instants ``rows`` (E,) of the pairs ``pairs`` (E,)."""
        distance, first, normal = np.empty(len(rows)), np.empty((len(rows), 3)), np.empty(
            (len(rows), 3))
        transforms = _Transforms(self._shapes, poses)
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
        distance -= self._tolerance[pairs]
        return Witness(distance, first, first + distance[:, None] * normal, normal)


def _geometry(shape: Shape) -> Any:
    if shape.vertices is not None:
        points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for point in shape.vertices:
            points.append(np.array(point))
        for a, b, c in ConvexHull(shape.vertices).simplices.tolist():
            faces.append(coal.Triangle(a, b, c))
        return coal.Convex(points, faces)
    if shape.kind == HALFSPACE:
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    if shape.kind == 'box':
        return coal.Box(*(2.0 * shape.edges))
    if shape.kind == 'sphere':
        return coal.Sphere(shape.ball)
    length = 2.0 * float(shape.edges[2])
    return (coal.Capsule(shape.ball, length) if shape.kind == 'capsule'
            else coal.Cylinder(shape.disc, length))


class _Transforms:
    """Placements of shapes as coal wants them, each made once."""

    def __init__(self, shapes: Sequence[Shape], poses: LinkPoses) -> None:
        self._shapes, self._poses = shapes, poses
        self._made: dict[int, dict[int, Any]] = {}

    def of(self, index: int, rows: list[int]) -> list[Any]:
        """Return those of a shape at instants ``rows``."""
        shape = self._shapes[index]
        made = self._made.setdefault(index, {})
        if shape.body == BASE:
            if not made:
                made[0] = coal.Transform3s(shape.placement[:3, :3], shape.placement[:3, 3])
            return [made[0]] * len(rows)
        new = [row for row in dict.fromkeys(rows) if row not in made]
        some = LinkPoses(self._poses.rotations[new], self._poses.origins[new])
        for row, rotation, place in zip(new, *placed(shape, some)):
            made[row] = coal.Transform3s(rotation, place)
        return [made[row] for row in rows]
