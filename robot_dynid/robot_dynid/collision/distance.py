"""Distances of convex shapes: bounding spheres in the broad phase, coal in the narrow phase.

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

from robot_dynid.collision.shapes import BASE, HALFSPACE, Shape
from robot_dynid.dynamics.rigid_body import LinkPoses
from robot_dynid.types import FloatArray

Indices = NDArray[np.int64]
# Convergence error of coal, m, subtracted from its distances. Those to a half-space are exact.
COAL_TOLERANCE = 1e-5
# Relative tolerance of coal's GJK. Normals are accurate to its square root at little extra cost.
GJK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Witness:
    """E distances with their nearest points.

    ``distance`` (E,) m, negative is penetration depth; ``first``, ``second`` (E, 3) nearest points
    on the two shapes, ``normal`` (E, 3) unit vectors from the first to the second, base frame.
    """

    distance: FloatArray
    first: FloatArray
    second: FloatArray
    normal: FloatArray


def shape_poses(shape: Shape, poses: LinkPoses) -> tuple[FloatArray, FloatArray]:
    """Return rotations (T, 3, 3) and positions (T, 3) m of a shape in the base frame."""
    rotation, place = shape.placement[:3, :3], shape.placement[:3, 3]
    if shape.body == BASE:
        count = len(poses.origins)
        return np.broadcast_to(rotation, (count, 3, 3)), np.broadcast_to(place, (count, 3))
    turn = poses.rotations[:, shape.body]
    return turn @ rotation, poses.origins[:, shape.body] + turn @ place


class BroadPhase:
    """Lower bounds of distances, from bounding spheres and, for close pairs, bounding boxes.

    ``pairs`` (K, 2) indices of ``shapes``; the second shape may be a half-space.
    """

    def __init__(self, shapes: Sequence[Shape], pairs: Indices) -> None:
        self._first, self._second = pairs.reshape(-1, 2).T
        self._used = np.unique(pairs).tolist()
        self._shapes = shapes
        self._centres, self._radii = np.zeros((len(shapes), 3)), np.zeros(len(shapes))
        self._half = np.zeros((len(shapes), 3))
        for i in self._used:
            self._centres[i], self._radii[i] = shapes[i].sphere()
            self._half[i] = shapes[i].half_edges()
        self._turns = np.array([shape.placement[:3, :3] for shape in shapes]).reshape(-1, 3, 3)
        self._bodies = np.array([shape.body for shape in shapes], dtype=np.int64)
        self._floor = np.array([shapes[i].kind == HALFSPACE for i in self._second], dtype=bool)

    def __call__(self, poses: LinkPoses, far: FloatArray) -> FloatArray:
        """Return lower bounds (T, K) m of all pairs, refined where below ``far`` (T, K) m."""
        centres = np.empty((len(poses.origins), len(self._shapes), 3))
        for i in self._used:
            body, centre = self._shapes[i].body, self._centres[i]
            centres[:, i] = centre if body == BASE else (
                poses.origins[:, body] + poses.rotations[:, body] @ centre)
        apart = centres[:, self._first] - centres[:, self._second]
        gaps = np.where(self._floor, apart[..., 2], np.linalg.norm(apart, axis=2))
        gaps = gaps - self._radii[self._first] - self._radii[self._second]
        rows, pairs = np.nonzero((gaps < far) & ~self._floor)
        first, second, between = self._first[pairs], self._second[pairs], apart[rows, pairs]
        for ball, box in ((first, second), (second, first)):
            outside = np.abs(self._in_shape(poses, rows, box, between)) - self._half[box]
            gap = np.linalg.norm(np.maximum(outside, 0.0), axis=1) - self._radii[ball]
            gaps[rows, pairs] = np.maximum(gaps[rows, pairs], gap)
        return np.asarray(gaps)

    def _in_shape(
        self, poses: LinkPoses, rows: Indices, shapes: Indices, vectors: FloatArray
    ) -> FloatArray:
        """Return base-frame ``vectors`` (E, 3) in the frames of ``shapes`` (E,)."""
        bodies, in_body = self._bodies[shapes], vectors.copy()
        moving = bodies != BASE
        in_body[moving] = np.einsum('eij,ei->ej', poses.rotations[rows[moving], bodies[moving]],
                                    vectors[moving])
        return np.asarray(np.einsum('eij,ei->ej', self._turns[shapes], in_body))


class NarrowPhase:
    """Signed distances of convex shapes by coal (GJK; EPA for penetration)."""

    def __init__(self, shapes: Sequence[Shape], pairs: Indices) -> None:
        self._shapes = tuple(shapes)
        self._pairs = [(int(a), int(b)) for a, b in pairs]
        self._geometry = {i: _geometry(shapes[i]) for pair in self._pairs for i in pair}
        self._compute = [coal.ComputeDistance(self._geometry[a], self._geometry[b])
                         for a, b in self._pairs]
        self._tolerance = np.array([
            0.0 if shapes[b].kind == HALFSPACE else COAL_TOLERANCE for _, b in self._pairs])
        self._request = coal.DistanceRequest()
        self._request.enable_signed_distance = True
        # Plain GJK exhausts its iterations on some pairs of cylinders, 30 times slower.
        self._request.gjk_variant = coal.GJKVariant.PolyakAcceleration
        self._request.gjk_tolerance = GJK_TOLERANCE
        self._result = coal.DistanceResult()
        self._transforms = coal.Transform3s(), coal.Transform3s()

    def __call__(self, poses: LinkPoses, rows: Indices, pairs: Indices) -> Witness:
        """Return the distances at samples ``rows`` (E,) of the pairs ``pairs`` (E,)."""
        distance, first, normal = np.empty(len(rows)), np.empty((len(rows), 3)), np.empty(
            (len(rows), 3))
        result, request, (left, right) = self._result, self._request, self._transforms
        clear, point, move, move_other = (result.clear, result.getNearestPoint1,
                                          left.setTransform, right.setTransform)
        chosen = np.unique(pairs).tolist()
        at = {i: shape_poses(self._shapes[i], poses) for pair in chosen for i in self._pairs[pair]}
        for pair in chosen:
            pair_rows = np.flatnonzero(pairs == pair)
            compute, (a, b) = self._compute[pair], self._pairs[pair]
            instants = rows[pair_rows]
            for i, turn, place, other_turn, other_place in zip(
                    pair_rows.tolist(), *(part[instants] for part in (*at[a], *at[b]))):
                move(turn, place)
                move_other(other_turn, other_place)
                clear()
                distance[i] = compute(left, right, request, result)
                first[i], normal[i] = point(), result.normal
        distance -= self._tolerance[pairs]
        return Witness(distance, first, first + distance[:, None] * normal, normal)


def _geometry(shape: Shape) -> Any:
    if shape.vertices is not None:
        points = coal.StdVec_Vec3s()
        for point in shape.vertices:
            points.append(np.array(point))
        try:
            return coal.Convex.convexHull(points, True, 'Qt')
        except RuntimeError:  # a corner of more than 255 triangles, as of a round face
            return coal.Convex.convexHull(points, True, 'QJ')  # corners moved by 1e-11 of it
    if shape.kind == HALFSPACE:
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    if shape.kind == 'box':
        return coal.Box(*(2.0 * shape.edges))
    if shape.kind == 'sphere':
        return coal.Sphere(shape.ball)
    length = 2.0 * float(shape.edges[2])
    return (coal.Capsule(shape.ball, length) if shape.kind == 'capsule'
            else coal.Cylinder(shape.disc, length))
