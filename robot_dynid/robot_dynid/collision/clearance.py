"""Continuous proof that a motion keeps its clearance, also between samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_dynid.trajectories.trajectory import Motion, Peaks, Trajectory
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.collision.scene import Scene

FIRST_STEP = 0.1  # s
# The smallest distance is searched to this, m.
RESOLUTION = 1e-3
# A pair still unproven where neither body can move farther than this counts as too near, m.
FINEST_MOTION = 1e-5
DISTANCE_ROUNDING = 1e-12
# Intervals checked in one batch.
INTERVALS_AT_ONCE = 1000


@dataclass(frozen=True)
class Clearance:
    """Result of a clearance proof over a continuous motion.

    ``smallest`` distance [m], between ``pair`` at ``time`` s; no pair is closer to its required
    clearance by more than RESOLUTION (1 mm), and if ``free`` none violates it. ``checked`` and
    ``unchecked`` list the coverage of the proof.
    """

    free: bool
    smallest: float
    pair: tuple[str, str]
    time: float
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def prove(scene: Scene, trajectory: Trajectory) -> Clearance:
    """Prove that all pairs keep their clearance at every instant of a trajectory.

    Bisection in time: within half an interval about its middle a distance changes by at most the
    sum over the joints between the two bodies of lever times travel. The interval is proven free
    if the distance in the middle is larger than that, else it is halved. The smallest distance is
    resolved to RESOLUTION. The search stops at the first violation.
    """
    if not scene.pairs:
        return Clearance(True, np.inf, ('', ''), 0.0, (), scene.unchecked)
    peaks = trajectory.peaks()
    levers = scene.levers(np.maximum(np.abs(peaks.lower), np.abs(peaks.upper)))
    search = _Search(scene, trajectory, peaks, levers)
    count = max(1, int(np.ceil(trajectory.duration / FIRST_STEP)))
    half = float(0.5 * trajectory.duration / count)
    middles = half * (2.0 * np.arange(count, dtype=np.float64) + 1.0)
    stack = [(middles, half, np.ones((count, len(scene.pairs)), dtype=bool))]
    while stack and search.free:
        middles, half, active = stack.pop()
        left = search.look(middles, half, active)
        rows = np.flatnonzero(left.any(axis=1))
        half_batch = INTERVALS_AT_ONCE // 2
        for some in np.array_split(rows, np.arange(half_batch, len(rows), half_batch)):
            if len(some):
                both = np.concatenate([middles[some] - 0.5 * half, middles[some] + 0.5 * half])
                stack.append((both, 0.5 * half, np.concatenate([left[some], left[some]])))
    return search.result()


class _Search:
    """Bisection state: the nearest pair so far, and whether any pair was too near."""

    def __init__(
        self, scene: Scene, trajectory: Trajectory, peaks: Peaks, levers: FloatArray
    ) -> None:
        self._scene, self._trajectory = scene, trajectory
        self._peaks, self._levers = peaks, levers
        self._slack, self._nearest = np.inf, (np.inf, 0, 0.0)
        self.free = True

    def look(
        self, middles: FloatArray, half: float, active: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return a mask (I, m) of the ``active`` pairs that remain open in intervals (I,)."""
        motion = self._trajectory.sample(middles)
        change = travel(motion, half, self._peaks) @ self._levers
        required = self._scene.required
        enough = required + max(0.0, self._slack - RESOLUTION)
        far = np.where(active, enough + change + DISTANCE_ROUNDING, -np.inf)
        near = self._scene.nearest(motion.position, far)
        slack = np.where(active, near.distance - required, np.inf)
        measured = np.where(near.measured, slack, np.inf)
        row, column = np.unravel_index(int(np.argmin(measured)), measured.shape)
        if measured[row, column] < self._slack:
            self._slack = float(measured[row, column])
            self._nearest = (float(near.distance[row, column]), int(column), float(middles[row]))
        left = active & (slack - change < max(0.0, self._slack - RESOLUTION))
        unproven = left & (change < FINEST_MOTION)
        self.free = self.free and not (unproven | (slack < 0.0)).any()
        return left

    def result(self) -> Clearance:
        """Return the result of the proof."""
        distance, column, time = self._nearest
        scene = self._scene
        return Clearance(self.free, distance, scene.pairs[column], time, scene.checked,
                         scene.unchecked)


def travel(motion: Motion, half: float, peaks: Peaks) -> FloatArray:
    """Return the travel (I, n) of the joints within ``half`` s about the samples of a motion.

    The minimum of three Taylor bounds, from peak velocity, peak acceleration and peak jerk.
    """
    speed, rate = np.abs(motion.velocity), np.abs(motion.acceleration)
    bounds = (np.broadcast_to(peaks.velocity * half, speed.shape),
              speed * half + 0.5 * peaks.acceleration * half**2,
              speed * half + 0.5 * rate * half**2 + peaks.jerk * half**3 / 6.0)
    return np.asarray(np.fmin(np.fmin(bounds[0], bounds[1]), bounds[2]))
