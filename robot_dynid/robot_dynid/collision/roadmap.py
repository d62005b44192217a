"""Collision-free paths between poses: a lazy probabilistic roadmap.

Source: Bohlin, Kavraki, Path planning using lazy PRM, ICRA 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from robot_dynid.blas import one_blas_thread
from robot_dynid.collision.clearance import Clearance, prove
from robot_dynid.errors import DynIdError
from robot_dynid.trajectories.limits import MotionLimits, quintic_move
from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.collision.scene import Scene

#: neighbours that a pose is linked to, and configurations checked between two
NEIGHBOURS, PLACES = 12, 20
#: cost of a stop [s], added to the travel time
STOP_SECONDS = 1.0
#: random poses of an approach, and their spread beyond its ends as a share of the joint ranges;
#: the next entry is used if the previous one gave no path
DRAWN = ((200, 0.1), (400, 0.3), (1600, 1.0))
WAY_SEED = 0


class Roadmap:
    """Random poses and the straight moves between them.

    ``velocity`` (n,) limits, rad/s (m/s), scale path lengths to time; of ``poses`` (K, n) rad (m)
    at most ``max_poses`` collision-free ones are used; ``allowed`` returns a mask of the
    collision-free poses (K, n); ``straight`` the proven move between two poses (n,), or None.
    """

    def __init__(self, velocity: FloatArray, poses: FloatArray,
                 allowed: Callable[[FloatArray], NDArray[np.bool_]],
                 straight: Callable[[FloatArray, FloatArray], QuinticMove | None],
                 max_poses: int | None = None) -> None:
        self._velocity, self._allowed, self._straight = velocity, allowed, straight
        self.poses = poses[allowed(poses)][:max_poses]
        self._linked = np.zeros((len(self.poses), len(self.poses)), dtype=np.bool_)
        self._moves: dict[tuple[int, int], QuinticMove | None] = {}
        self._link(np.arange(len(self.poses)))

    def reachable(self, pose: FloatArray) -> bool:
        """Return True if ``pose`` (n,) belongs to the largest connected group of poses."""
        index = self._index(pose)
        count, group = connected_components(self._linked, directed=False)
        return bool(group[index] == np.argmax(np.bincount(group, minlength=count)))

    def shortest_path(self, start: FloatArray, goal: FloatArray) -> tuple[QuinticMove, ...]:
        """Return the shortest path from ``start`` to ``goal`` (n,), empty if there is none."""
        ends = self._index(start), self._index(goal)
        while path := self._shortest(*ends):
            moves = [move for link in pairwise(path) if (move := self._move(*link)) is not None]
            if len(moves) == len(path) - 1:
                return tuple(moves)
        return ()

    def nearest_reached(self, start: FloatArray, goal: FloatArray) -> FloatArray:
        """Return the pose (n,) nearest to ``goal`` of those connected to ``start`` (n,)."""
        group = connected_components(self._linked, directed=False)[1]
        reached = self.poses[group == group[self._index(start)]]
        return np.asarray(reached[np.argmin(self._seconds(reached, goal[None])[:, 0])])

    def _index(self, pose: FloatArray) -> int:
        same = np.flatnonzero(np.all(self.poses == pose, axis=1))
        if len(same):
            return int(same[0])
        self.poses = np.vstack([self.poses, pose])
        self._linked = np.pad(self._linked, ((0, 1), (0, 1)))
        self._link(np.array([len(self.poses) - 1]))
        return len(self.poses) - 1

    def _link(self, fresh: NDArray[np.int64]) -> None:
        """Link the poses ``fresh`` to their neighbours where sampled straight moves are free."""
        if len(self.poses) < 2:
            return
        seconds = self._seconds(self.poses[fresh], self.poses)
        seconds[np.arange(len(fresh)), fresh] = np.inf
        nearest = np.argsort(seconds, axis=1)[:, :min(NEIGHBOURS, len(self.poses) - 1)]
        first, second = np.repeat(fresh, nearest.shape[1]), nearest.ravel()
        share = np.linspace(0.0, 1.0, PLACES)[None, :, None]
        between = self.poses[first][:, None] + share * (
            self.poses[second] - self.poses[first])[:, None]
        held = self._allowed(between.reshape(-1, self.poses.shape[1]))
        good = held.reshape(-1, PLACES).all(axis=1)
        self._linked[first[good], second[good]] = self._linked[second[good], first[good]] = True

    def _seconds(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the travel time (K, L) s from poses (K, n) to poses (L, n)."""
        apart = np.abs(first[:, None] - second[None])
        return np.asarray(np.max(apart / self._velocity, axis=2) + STOP_SECONDS)

    def _move(self, first: int, second: int) -> QuinticMove | None:
        """Return the straight move, proven once for both directions; unlink if refused."""
        if (first, second) not in self._moves:
            move = self._straight(self.poses[first], self.poses[second])
            back = None if move is None else replace(move, start=move.goal, goal=move.start)
            self._moves[first, second], self._moves[second, first] = move, back
            if move is None:
                self._linked[first, second] = self._linked[second, first] = False
        return self._moves[first, second]

    def _shortest(self, start: int, goal: int) -> list[int]:
        """Return the poses of the shortest path over the links, empty if there is none."""
        graph = np.where(self._linked, self._seconds(self.poses, self.poses), 0.0)
        predecessors = dijkstra(graph, indices=[start], return_predecessors=True)[1][0]
        path = [goal]
        while path[-1] != start:
            if predecessors[path[-1]] < 0:
                return []
            path.append(int(predecessors[path[-1]]))
        return path[::-1]


@one_blas_thread()
def approach(
    scene: Scene, start: FloatArray, goal: FloatArray, limits: MotionLimits
) -> tuple[QuinticMove, ...]:
    """Plan collision-free moves from rest to rest within ``limits``.

    ``start``, ``goal`` (n,) rad (m). The straight move is used if it is free, else a path over a
    seeded random roadmap. Raises DynIdError for a pair too near at an end, or on the straight way
    if no path was found, with the nearest pose reached.
    """
    start, goal = np.asarray(start, dtype=np.float64), np.asarray(goal, dtype=np.float64)
    for name, pose in (('start', start), ('goal', goal)):
        check_pose(scene, pose, name)
    obstacles: list[Clearance] = []

    def straight(begin: FloatArray, end: FloatArray) -> QuinticMove | None:
        move = quintic_move(limits.joints, (begin, end), limits)
        clearance = prove(scene, move)
        if not clearance.free:
            obstacles.append(clearance)
        return move if clearance.free else None

    def allowed(poses: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(np.all(
            scene.nearest(poses, scene.required).distance >= scene.required, axis=1))

    direct = straight(start, goal)
    if direct is not None:
        return (direct,)
    generator = np.random.default_rng(WAY_SEED)
    for count, share in DRAWN:
        beyond = share * (limits.upper - limits.lower)
        drawn = generator.uniform(np.maximum(limits.lower, np.minimum(start, goal) - beyond),
                                  np.minimum(limits.upper, np.maximum(start, goal) + beyond),
                                  (count, len(start)))
        roadmap = Roadmap(limits.velocity, drawn, allowed, straight)
        if moves := roadmap.shortest_path(start, goal):
            return moves
    near = obstacles[0]
    how = ('collide' if near.smallest < 0.0 else
           f'come within {1e3 * near.smallest:.1f} mm of each other')
    values = ', '.join(f'{joint}: {q:.3g}' for joint, q in zip(
        limits.joints, roadmap.nearest_reached(start, goal), strict=True))
    raise DynIdError(
        f'no collision-free path to the goal found among {DRAWN[-1][0]} random poses: on the '
        f'straight move {" and ".join(near.pair)} {how}; jog the robot closer to the goal '
        f'(nearest pose reached: {{{values}}}) or widen the position limits')


def check_pose(scene: Scene, pose: FloatArray, name: str) -> None:
    """Raise DynIdError for a pair closer than its clearance in a pose (n,)."""
    near = scene.distances(pose[None, :])[0]
    slack = near - scene.required
    if not slack.size or slack.min() >= 0.0:
        return
    worst = int(np.argmin(slack))
    first, second = scene.pairs[worst]
    if near[worst] < 0.0:
        raise DynIdError(
            f'{name} pose in collision: {first} and {second} overlap by '
            f'{-1e3 * near[worst]:.1f} mm; jog them apart, or correct floor, keep_out or '
            'environment')
    raise DynIdError(
        f'{name} pose too near: {first} and {second} are {1000.0 * near[worst]:.1f} mm apart (at '
        f'least {1000.0 * scene.required[worst]:.1f} mm are required); jog them apart, or set '
        f"'clearance: {0.9 * near[worst]:.2g}'")
