"""Robot and surroundings: distances of all pairs that may collide, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.collision.distance import BroadPhase, NarrowPhase
from robot_dynid.collision.scene_pairs import Layout, Pair, layout
from robot_dynid.collision.shapes import Shape
from robot_dynid.dynamics.rigid_body import LinkPoses, link_poses
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.surroundings import Surroundings
from robot_dynid.types import FloatArray

# Random configurations; a pair that touches in all of them is taken to touch always.
RANDOM_CONFIGURATIONS = 1000
CONFIGURATION_SEED = 0
# A pair that is always close must keep this share of its largest distance.
FAR_PAIR_SHARE = 0.5
# Pairs with at most this many joints between them are checked over all joint positions, in at most
# this many configurations.
JOINTS_BETWEEN, MAX_CONFIGURATIONS = 2, 3000
ANGLE_ROUNDING = 1e-5  # m, levers caused by rounded angles in a URDF


@dataclass(frozen=True, eq=False)
class Nearest:
    """Distances of m pairs at T configurations, with their nearest points.

    ``distance`` (T, m) m; ``measured`` (T, m): where False the distance is only a lower bound;
    ``first``, ``second``, ``normal`` (T, m, 3) nearest points of both bodies and unit vector from
    the first to the second, base frame.
    """

    distance: FloatArray
    measured: NDArray[np.bool_]
    first: FloatArray
    second: FloatArray
    normal: FloatArray


class Scene:
    """Pairs of bodies that may collide: links, obstacles, keep-out boxes, the floor.

    ``pairs`` names of the bodies; ``required`` (m,) m clearance; ``largest`` (m,) m largest
    distance in random configurations. ``always_touching`` and ``always_separated`` name the pairs
    left out because they touch, or cannot come near, in every configuration. ``checked`` and
    ``unchecked`` list the coverage, ``blind`` the bodies whose collisions cannot be detected.
    """

    def __init__(self, robot: RobotModel, bodies: Layout, around: Surroundings) -> None:
        self.robot, self.around = robot, around
        self.blind, self.unchecked = bodies.blind, bodies.unchecked
        self._shapes = bodies.shapes
        self._take(bodies.pairs, np.zeros(len(bodies.pairs)))
        largest = self._largest()
        self.always_touching = tuple(
            pair.names for pair, s in zip(self._pairs, largest) if not s > 0.0)
        required = np.minimum(around.clearance, FAR_PAIR_SHARE * largest)
        near = [self._near(pair, r) if s > 0.0 else pair
                for pair, r, s in zip(self._pairs, required, largest)]
        self.always_separated = tuple(pair.names for pair in near if not pair.parts)
        checked_pairs = np.array([bool(pair.parts) for pair in near], dtype=bool) & (largest > 0.0)
        self._take([pair for pair, k in zip(near, checked_pairs) if k], required[checked_pairs])
        self.largest = largest[checked_pairs]
        self.checked = self._checked(bodies)

    def _take(self, pairs: Sequence[Pair], required: FloatArray) -> None:
        """Stack the shape pairs of all ``pairs`` in one list, pair by pair."""
        self._pairs, self.required = tuple(pairs), required
        self.pairs = tuple(pair.names for pair in pairs)
        parts = np.array([part for p in pairs for part in p.parts], dtype=np.int64).reshape(-1, 2)
        counts = [len(p.parts) for p in pairs]
        bodies = np.array([p.bodies for p in pairs], dtype=np.int64).reshape(-1, 2)
        carried = np.pad(self.robot.tree.carried, ((0, 0), (0, 1)))[:, bodies]  # BASE is the last
        #: (joints of the tree, m, 2): the joint moves only the first, the second body of a pair
        self._moved = carried & ~carried.all(axis=2, keepdims=True)
        self._owner = np.repeat(np.arange(len(pairs)), counts)
        self._starts = np.cumsum([0, *counts])[:-1]
        self._broad = BroadPhase(self._shapes, parts)
        self._narrow = NarrowPhase(self._shapes, parts)

    def _near(self, pair: Pair, required: float) -> Pair:
        """Return a pair without the shapes that cannot come near each other."""
        single, parts_near = copy(self), []
        for part in pair.parts:
            single._take([replace(pair, parts=(part,))], np.array([required]))
            if not single.always_apart():
                parts_near.append(part)
        return replace(pair, parts=tuple(parts_near))

    def always_apart(self) -> bool:
        """Return True if the only pair keeps its clearance at all joint positions.

        The ranges of the joints between both bodies are bisected until the distance in the middle
        of every cell exceeds what any position in it can change. False if a position is too near,
        or if MAX_CONFIGURATIONS configurations do not decide.
        """
        lower, upper = _ranges(self.robot, np.inf)
        turns = (np.asarray(self.robot.types) != PRISMATIC) & (upper - lower > 2.0 * np.pi)
        lower, upper = np.where(turns, -np.pi, lower), np.where(turns, np.pi, upper)
        lever = self.levers(np.fmax(np.abs(lower), np.abs(upper)))[:, 0]
        moves = lever > ANGLE_ROUNDING
        if moves.sum() > JOINTS_BETWEEN or not np.all(np.isfinite(upper[moves] - lower[moves])):
            return False
        required, count = self.required[0], 0
        middles = np.where(lever > 0.0, 0.5 * (lower + upper), 0.0)[None, :]
        halves = np.where(lever > 0.0, 0.5 * (upper - lower), 0.0)[None, :]
        while len(middles):
            count += len(middles)
            if count > MAX_CONFIGURATIONS:
                return False
            distance = self.distances(middles)[:, 0]
            if np.any(distance < required):
                return False
            rows = np.flatnonzero(distance - halves @ lever < required)
            middles, halves = middles[rows], halves[rows]
            # halve the cells along the joint that moves the bodies farthest
            step = 0.5 * halves * np.eye(len(lever))[np.argmax(halves * lever, axis=1)]
            middles = np.concatenate([middles - step, middles + step])
            halves = np.tile(halves - step, (2, 1))
        return True

    def _largest(self) -> FloatArray:
        """Return the largest distance (m,) m over random configurations."""
        generator = np.random.default_rng(CONFIGURATION_SEED)
        lower, upper = _ranges(self.robot, 0.5)
        q = generator.uniform(lower, upper, (RANDOM_CONFIGURATIONS, self.robot.n))
        largest = np.full(len(self._pairs), -np.inf)
        for some in np.split(q, (20, 100)):  # a few configurations clear nearly all pairs
            far = np.where(largest < self.around.clearance / FAR_PAIR_SHARE, np.inf, -np.inf)
            distance = self.nearest(some, far).distance
            largest = np.maximum(largest, distance.max(axis=0, initial=-np.inf))
        return largest

    def _checked(self, bodies: Layout) -> tuple[str, ...]:
        kinds = [f'{len(self.pairs)} pairs of bodies, {1e3 * self.around.clearance:g} mm apart']
        if self.always_separated:
            kinds.append(f'{len(self.always_separated)} more pairs keep this clearance in every '
                         'configuration')
        for (first, second), required in zip(self.pairs, self.required):
            if required < self.around.clearance:
                kinds.append(f'{first} and {second} are always close: '
                             f'clearance {1e3 * required:.2g} mm')
        if self.always_touching:
            names = ', '.join(f'{a} and {b}' for a, b in self.always_touching)
            kinds.append(f'not checked because they always touch: {names}')
        if bodies.stand_ins:
            kinds.append(f'{", ".join(bodies.stand_ins)}: no collision shape; rods along the axes '
                         'and a sphere of equal inertia are checked against floor and boxes')
        return tuple(kinds)

    def distances(self, q: ArrayLike) -> FloatArray:
        """Return the distances (T, m) m of all pairs at configurations ``q`` (T, n).

        Raises UsageError when ``q`` has another shape.
        """
        return self.nearest(q, np.inf).distance

    def nearest(self, q: ArrayLike, far: ArrayLike) -> Nearest:
        """Return distances and nearest points, exact for pairs closer than ``far`` m.

        ``far`` is broadcast to (T, m). For other pairs the distance is a lower bound of at least
        that.
        """
        poses = link_poses(self.robot, np.atleast_2d(np.asarray(q, dtype=np.float64)))
        count, m = len(poses.origins), len(self._pairs)
        limit = np.broadcast_to(far, (count, m))
        out = Nearest(np.full((count, m), np.inf), np.zeros((count, m), dtype=bool),
                      *(np.zeros((count, m, 3)) for _ in range(3)))
        if not m:
            return out
        bounds = self._broad(poses, limit[:, self._owner])
        least = np.minimum.reduceat(bounds, self._starts, axis=1)
        out.distance[:] = least
        rows, columns = np.nonzero(least < limit)
        first = np.stack([start + np.argmin(part, axis=1) for start, part in zip(
            self._starts, np.split(bounds, self._starts[1:], axis=1))], axis=1)
        out.distance[rows, columns] = np.inf
        self._measure(out, poses, rows, first[rows, columns])
        # the likely nearest parts are measured; others only where their bound is lower
        upper = np.where(out.measured, np.minimum(out.distance, limit), -np.inf)
        left = bounds < upper[:, self._owner]
        left[rows, first[rows, columns]] = False
        self._measure(out, poses, *np.nonzero(left))
        beyond = out.measured & (out.distance > limit)
        out.measured[beyond] = False  # another part of the pair may be nearer
        out.distance[beyond] = np.maximum(limit, least)[beyond]
        return out

    def _measure(
        self, out: Nearest, poses: LinkPoses, rows: NDArray[np.int64], parts: NDArray[np.int64]
    ) -> None:
        """Measure parts at samples ``rows`` (E,) and store the nearest of each pair."""
        if not len(rows):
            return
        measured = self._narrow(poses, rows, parts)
        order = np.argsort(-measured.distance, kind='stable')  # the nearest is written last
        pairs = self._owner[parts]
        better = order[measured.distance[order] < out.distance[rows[order], pairs[order]]]
        at = rows[better], pairs[better]
        out.measured[at] = True
        for name in ('distance', 'first', 'second', 'normal'):
            getattr(out, name)[at] = getattr(measured, name)[better]

    def rates(
        self, q: FloatArray, near: Nearest, chosen: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> FloatArray:
        """Return the gradients (E, n) of the ``chosen`` distances, by sample (E,) and pair (E,).

        The rate of a distance is the relative velocity of the nearest points along the normal, J^T
        n.
        """
        rows, columns = chosen
        poses, normal = link_poses(self.robot, q), near.normal[rows, columns]
        tree = self.robot.tree
        axes = np.einsum('ejab,jb->eja', poses.rotations[rows], tree.axes)
        slide = np.einsum('eja,ea->ej', axes, normal)
        out = np.zeros((len(rows), tree.n))
        moved = self._moved[:, columns]  # (n, E, 2)
        for side, points, sign in ((0, near.first, -1.0), (1, near.second, 1.0)):
            arms = points[rows, columns][:, None] - poses.origins[rows]
            turn = np.einsum('eja,eja->ej', axes, np.cross(arms, normal[:, None]))
            rate = np.where(np.asarray(tree.types) == PRISMATIC, slide, turn)
            out += sign * moved[:, :, side].T * rate
        return self.robot.projected(out)

    def levers(self, travel: FloatArray) -> FloatArray:
        """Return upper bounds (n, m) [m/rad, 1] of the lever of each joint on each pair.

        ``travel`` (n,) is the largest position of each joint. The bound is that of the stretched
        chain, so it holds in every configuration.
        """
        tree, linkage = self.robot.tree, self.robot.linkage
        if linkage is not None:
            travel = np.abs(linkage.matrix) @ travel + np.abs(linkage.offset)
        out = np.zeros((tree.n, len(self._pairs)))
        for column, pair in enumerate(self._pairs):
            for side, body in enumerate(pair.bodies):
                longest = np.max([_levers(tree, body, self._shapes[shape], travel)
                                  for shape in {part[side] for part in pair.parts}], axis=0)
                out[:, column] += np.where(self._moved[:, column, side], longest, 0.0)
        return out if linkage is None else np.asarray(np.abs(linkage.matrix).T @ out)


def _levers(robot: RobotModel, body: int, shape: Shape, travel: FloatArray) -> FloatArray:
    """Return the levers (n,) of the joints about the farthest point of a body."""
    levers = np.zeros(robot.n)
    owner, beyond, step = body, shape.reach(), np.zeros(3)
    while body >= 0:
        axis = robot.axes[body]
        turn = shape.swing(axis) if body == owner else (
            float(np.linalg.norm(step - (step @ axis) * axis)) + beyond)
        beyond += float(np.linalg.norm(step))
        prismatic = robot.types[body] == PRISMATIC
        levers[body] = 1.0 if prismatic else turn
        beyond += float(travel[body]) if prismatic else 0.0
        step = robot.translations[body]
        body = int(robot.parents[body])
    return levers


def _ranges(robot: RobotModel, slide: float) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper positions (n,); without limits half a turn, or ``slide`` m."""
    free = np.where(np.asarray(robot.types) == PRISMATIC, slide, np.pi)
    return (np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -free),
            np.where(np.isfinite(robot.limits.upper), robot.limits.upper, free))


def build_scene(robot: RobotModel, around: Surroundings | None = None) -> Scene:
    """Build the collision scene of a robot, by default in the surroundings of its own file.

    Raises RobotError or UsageError for shapes that cannot be read and for unknown names.
    """
    given = robot.surroundings if around is None else around
    return Scene(robot, layout(robot.tree, given), given)
