"""Ways from pose to pose round obstacles: a roadmap of random poses, moves checked where used.

Source: Bohlin, Kavraki, Path planning using lazy PRM, ICRA 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import FloatArray

#: neighbours that a pose is linked to
NEIGHBOURS = 12
#: s that a stop costs beside the way
STOP = 1.0

Links = NDArray[np.int64]


@dataclass(eq=False)
class Roadmap:
    """Poses, and the straight moves between them that may be allowed.

    ``velocity`` (n,) limits, rad/s (m/s), as measure of ways; ``poses`` (K, n) rad (m), allowed
    ones; ``clear`` returns which of many straight ways (E, n) to (E, n) look allowed; ``straight``
    returns the allowed move, or None, after a closer look.
    """

    velocity: FloatArray
    poses: FloatArray
    clear: Callable[[FloatArray, FloatArray], NDArray[np.bool_]]
    straight: Callable[[FloatArray, FloatArray], QuinticMove | None]
    linked: NDArray[np.bool_] = field(init=False)
    known: dict[tuple[int, int], QuinticMove | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.linked = np.zeros((len(self.poses), len(self.poses)), dtype=np.bool_)
        self._link(np.arange(len(self.poses)))

    def reachable(self, pose: FloatArray) -> bool:
        """Return whether ``pose`` (n,) seems to be linked to most of the poses."""
        index = self._index(pose)
        count, group = connected_components(self.linked, directed=False)
        return bool(group[index] == np.argmax(np.bincount(group, minlength=count)))

    def way(self, start: FloatArray, goal: FloatArray) -> tuple[QuinticMove, ...]:
        """Return the shortest way found from ``start`` to ``goal`` (n,); empty without one."""
        ends = self._index(start), self._index(goal)
        path = self._shortest(*ends)
        while path:
            moves = [self._move(*link) for link in pairwise(path)]
            allowed = [move for move in moves if move is not None]
            if len(allowed) == len(moves):
                return tuple(allowed)
            path = self._shortest(*ends)
        return ()

    def _index(self, pose: FloatArray) -> int:
        same = np.flatnonzero(np.all(self.poses == pose, axis=1))
        if len(same):
            return int(same[0])
        self.poses = np.vstack([self.poses, pose])
        self.linked = np.pad(self.linked, ((0, 1), (0, 1)))
        self._link(np.array([len(self.poses) - 1]))
        return len(self.poses) - 1

    def _link(self, fresh: Links) -> None:
        """Link the poses ``fresh`` to their neighbours where the straight way looks allowed."""
        if len(self.poses) < 2:
            return
        length = self._lengths()[fresh]
        length[np.arange(len(fresh)), fresh] = np.inf
        nearest = np.argsort(length, axis=1)[:, :min(NEIGHBOURS, len(self.poses) - 1)]
        first, second = np.repeat(fresh, nearest.shape[1]), nearest.ravel()
        good = self.clear(self.poses[first], self.poses[second])
        self.linked[first[good], second[good]] = self.linked[second[good], first[good]] = True

    def _lengths(self) -> FloatArray:
        """Return the ways (K, K) between all poses, s."""
        apart = np.abs(self.poses[:, None] - self.poses[None])
        return np.asarray(np.max(apart / self.velocity, axis=2) + STOP)

    def _move(self, first: int, second: int) -> QuinticMove | None:
        """Return the straight move, looked at once for both directions; unlink where refused."""
        if (first, second) not in self.known:
            move = self.straight(self.poses[first], self.poses[second])
            back = None if move is None else replace(move, start=move.goal, goal=move.start)
            self.known[first, second], self.known[second, first] = move, back
            if move is None:
                self.linked[first, second] = self.linked[second, first] = False
        return self.known[first, second]

    def _shortest(self, start: int, goal: int) -> list[int]:
        """Return the poses on the shortest way over the links; empty without one."""
        graph = np.where(self.linked, self._lengths(), 0.0)
        before = dijkstra(graph, indices=[start], return_predecessors=True)[1][0]
        path = [goal]
        while path[-1] != start:
            if before[path[-1]] < 0:
                return []
            path.append(int(before[path[-1]]))
        return path[::-1]
