"""A collision-free way between two poses: straight on, or through poses found at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.collision.clearance import prove
from robot_dynid.collision.scene import Scene
from robot_dynid.errors import DynIdError
from robot_dynid.trajectories.limits import MotionLimits, quintic_move
from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import FloatArray

SEED = 0
# Poses drawn before giving up, and the longest step towards one, a part of the ranges.
DRAWS, STEP = 300, 0.15
# Attempts to leave out poses on the way.
SHORTCUTS = 60


@one_blas_thread()
def approach(
    scene: Scene, start: FloatArray, goal: FloatArray, limits: MotionLimits
) -> tuple[QuinticMove, ...]:
    """Return moves from rest to rest, each within ``limits`` and proven to keep clear.

    ``start``, ``goal`` (n,) rad (m). The straight move is taken where it is free, else two trees
    of poses grow towards each other (RRT-Connect) and the way is made shorter. The search is
    seeded. Raises DynIdError naming the pair that is too near at an end, or on the straight way
    when no other was found, with the nearest pose that was reached.
    Source: Kuffner, LaValle, RRT-Connect, ICRA 2000.
    """
    ends = np.asarray(start, dtype=np.float64), np.asarray(goal, dtype=np.float64)
    for name, pose in zip(('start', 'goal'), ends):
        check_pose(scene, pose, name)
    ways = _Ways(scene, limits)
    straight = ways.free(*ends)
    if straight is not None:
        return (straight,)
    poses = ways.connect(*ends)
    return tuple(ways.known(a, b) for a, b in pairwise(poses))


def check_pose(scene: Scene, pose: FloatArray, name: str) -> None:
    """Raise DynIdError naming the pair that is nearer than its clearance in a pose (n,)."""
    near = scene.distances(pose[None, :])[0]
    slack = near - scene.required
    if not slack.size or slack.min() >= 0.0:
        return
    worst = int(np.argmin(slack))
    first, second = scene.pairs[worst]
    if near[worst] < 0.0:
        raise DynIdError(
            f'{name} pose in collision: {first} and {second} overlap by '
            f'{-1e3 * near[worst]:.1f} mm; move the robot apart by hand or by a jog, or correct '
            'floor, keep_out or environment')
    raise DynIdError(
        f'{name} pose too near: {first} and {second} are {1e3 * near[worst]:.1f} mm apart, '
        f"{1e3 * scene.required[worst]:.1f} mm are to be kept; move them apart, or give "
        f"'clearance: {0.9 * near[worst]:.2g}'")


@dataclass(eq=False)
class _Tree:
    """Poses (K, n) that can be reached, each from an earlier one."""

    poses: list[FloatArray]
    parents: list[int] = field(default_factory=lambda: [-1])

    def path(self, index: int) -> list[FloatArray]:
        found = []
        while index >= 0:
            found.append(self.poses[index])
            index = self.parents[index]
        return found[::-1]


class _Ways:
    """Free moves between poses of a scene within limits."""

    def __init__(self, scene: Scene, limits: MotionLimits) -> None:
        self._scene, self._limits = scene, limits
        self._range = np.where(limits.half_range > 0.0, 2.0 * limits.half_range, 1.0)
        self._moves: dict[tuple[bytes, bytes], QuinticMove] = {}
        self._generator = np.random.default_rng(SEED)
        self._obstacle = ''

    def free(self, start: FloatArray, goal: FloatArray) -> QuinticMove | None:
        """Return the straight move where it is proven to keep clear."""
        move = quintic_move(self._limits.joints, (start, goal), self._limits)
        clearance = prove(self._scene, move)
        if not clearance.free:
            self._obstacle = self._obstacle or (
                f'on the straight way {clearance.pair[0]} and {clearance.pair[1]} come within '
                f'{1e3 * clearance.smallest:.1f} mm of each other'
                if clearance.smallest >= 0.0 else
                f'on the straight way {clearance.pair[0]} and {clearance.pair[1]} collide')
            return None
        self._moves[start.tobytes(), goal.tobytes()] = move
        return move

    def known(self, start: FloatArray, goal: FloatArray) -> QuinticMove:
        """Return a move that was found free, forwards or backwards."""
        forwards = self._moves.get((start.tobytes(), goal.tobytes()))
        if forwards is not None:
            return forwards
        back = self._moves[goal.tobytes(), start.tobytes()]
        return QuinticMove(back.joints, back.goal, back.start, back.duration)

    def connect(self, start: FloatArray, goal: FloatArray) -> list[FloatArray]:
        """Return poses from start to goal with free moves in between."""
        trees = [_Tree([start]), _Tree([goal])]
        grown, other = trees
        for _ in range(DRAWS):
            target = self._generator.uniform(self._limits.lower, self._limits.upper)
            reached = self._grow(grown, target, 1)
            met = self._grow(other, grown.poses[reached], DRAWS)
            if np.array_equal(other.poses[met], grown.poses[reached]):
                halves = grown.path(reached), other.path(met)
                first, second = halves if grown is trees[0] else halves[::-1]
                return self._shorter([*first, *second[::-1][1:]])
            grown, other = other, grown
        gaps = [self._gap(pose, goal) for pose in trees[0].poses]
        nearest = trees[0].poses[int(np.argmin(gaps))]
        values = ', '.join(f'{joint}: {q:.3g}'
                           for joint, q in zip(self._limits.joints, nearest))
        raise DynIdError(
            f'no collision-free way to the goal was found among {DRAWS} random poses: '
            f'{self._obstacle}; the nearest pose that was reached is {{{values}}}: move the robot '
            'closer by hand or by a jog, or widen the position limits')

    def _gap(self, a: FloatArray, b: FloatArray) -> float:
        return float(np.max(np.abs(a - b) / self._range))

    def _grow(self, tree: _Tree, target: FloatArray, steps: int) -> int:
        """Step from the nearest pose of a tree towards a target; return the last one reached."""
        last = int(np.argmin([self._gap(pose, target) for pose in tree.poses]))
        for _ in range(steps):
            pose = tree.poses[last]
            share = STEP / max(self._gap(pose, target), STEP)
            ahead = target if share == 1.0 else pose + share * (target - pose)
            if np.array_equal(pose, target) or self.free(pose, ahead) is None:
                break
            tree.poses.append(ahead)
            tree.parents.append(last)
            last = len(tree.poses) - 1
        return last

    def _shorter(self, poses: list[FloatArray]) -> list[FloatArray]:
        """Leave out poses between two that a straight move joins."""
        for _ in range(SHORTCUTS):
            if len(poses) < 3:
                break
            a = int(self._generator.integers(len(poses) - 2))
            b = int(self._generator.integers(a + 2, len(poses)))
            if self.free(poses[a], poses[b]) is not None:
                poses = poses[:a + 1] + poses[b:]
        return poses
