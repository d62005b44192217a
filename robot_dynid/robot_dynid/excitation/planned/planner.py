"""Planner of motion pieces: checks of efforts and constraints, paths between poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.collision.roadmap import Roadmap
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.trajectories.composite import Composite
from robot_dynid.trajectories.limits import MotionLimits, quintic_move
from robot_dynid.trajectories.trajectory import Motion, QuinticMove, Trajectory
from robot_dynid.types import FloatArray, frozen

#: instants per second at which a piece is checked, and the most of them
LOOKS, MAX_LOOKS = 50.0, 400
#: share of the effort limits used while planning; the result is checked on a finer grid
PLANNED_EFFORT = 0.97
#: shares of the velocity limits tried for moves between pieces
MOVE_SPEEDS = (0.5, 0.25, 0.1)
#: random poses drawn for the roadmap, and the most that it holds
ROADMAP_DRAWS, ROADMAP_POSES = 2000, 150
#: poses checked together: bounds the memory
POSES_AT_ONCE = 4000


@dataclass(frozen=True, eq=False)
class Planner:
    """Motions within ``limits`` that also satisfy ``criteria``: efforts, constraints, proof.

    The limits' efforts (n,) N m (N) are those that may be used.
    """

    criteria: DesignCriteria
    limits: MotionLimits

    def broken(self, piece: Trajectory) -> str | None:
        """Return the effort or constraint that ``piece`` violates in words, or None."""
        return self.overloaded(piece) or self.blocked(piece)

    def overloaded(self, piece: Trajectory) -> str | None:
        """Return the effort limit that ``piece`` exceeds in words, or None."""
        if self.criteria.inverse is None:
            return None
        motion = piece.sample(_instants(piece))
        effort = self.criteria.inverse(motion.position, motion.velocity, motion.acceleration)
        highest = np.abs(effort).max(axis=0)
        over = highest - PLANNED_EFFORT * self.limits.effort
        if not np.any(over > 0.0):
            return None
        i = int(np.nanargmax(over / self.limits.effort))
        return (f"joint '{self.limits.joints[i]}' needs an effort of {highest[i]:.4g}, more than "
                f'{PLANNED_EFFORT:.0%} of the allowed {self.limits.effort[i]:.4g}')

    def blocked(self, piece: Trajectory) -> str | None:
        """Return the constraint that ``piece`` violates in words, or None."""
        motion = piece.sample(_instants(piece))
        for constraint in self.criteria.constraints:
            if np.any(constraint.values(motion) < 0.0):
                return constraint.worst(motion)
        return None

    def unproven(self, piece: Trajectory) -> str | None:
        """Return the objection of the proof to the whole continuous ``piece`` in words, or None.
"""
        clearance = None if self.criteria.proof is None else self.criteria.proof(piece)
        if clearance is None or clearance.free:
            return None
        return (f'{" and ".join(clearance.pair)} come as near as {clearance.smallest:.4g} m at '
                f'{clearance.time:.4g} s')

    def allowed(self, positions: FloatArray) -> NDArray[np.bool_]:
        """Return a mask of the poses (K, n) that efforts and constraints allow to hold."""
        parts = []
        for part in np.array_split(positions, range(POSES_AT_ONCE, len(positions), POSES_AT_ONCE)):
            still, good = np.zeros_like(part), np.ones(len(part), dtype=np.bool_)
            if self.criteria.inverse is not None:
                effort = np.abs(self.criteria.inverse(part, still, still))
                good &= ~np.any(effort > PLANNED_EFFORT * self.limits.effort, axis=1)
            for constraint in self.criteria.constraints:
                values = constraint.values(Motion(part, still, still, still))
                good &= np.all(values >= 0.0, axis=1)
            parts.append(good)
        return np.concatenate(parts)

    def rest(self, position: FloatArray, seconds: float) -> QuinticMove:
        """Return a dwell at ``position`` (n,)."""
        return QuinticMove(self.limits.joints, frozen(position), frozen(position), seconds)

    def moves(self, start: FloatArray, goal: FloatArray) -> tuple[QuinticMove, ...]:
        """Return slow moves between two poses (n,), straight or around obstacles; none if equal.

        Raises DynIdError if no allowed path was found.
        """
        if np.array_equal(start, goal):
            return ()
        direct, reason = self.straight(start, goal)
        if direct is not None:
            return (direct,)
        detour = self._roadmap.shortest_path(start, goal)
        if detour:
            return detour
        raise DynIdError(
            f'no path found from {_text(start)} to {_text(goal)}: on the straight one {reason}; '
            "narrow the positions with option 'limits: {joint: {position: [lower, upper]}}'")

    def joined(self, pieces: Sequence[Trajectory]) -> Composite:
        """Return the pieces in sequence, with moves in between where poses differ."""
        segments: list[Trajectory] = []
        for piece in pieces:
            if segments:
                end = segments[-1].sample(segments[-1].duration).position[0]
                segments += self.moves(end, piece.sample(0.0).position[0])
            segments.append(piece)
        return Composite(tuple(segments))

    def somewhere(self, generator: np.random.Generator) -> FloatArray:
        """Return a random configuration (n,) within the limits."""
        return np.asarray(generator.uniform(self.limits.lower, self.limits.upper))

    def straight(
        self, start: FloatArray, goal: FloatArray
    ) -> tuple[QuinticMove | None, str | None]:
        """Return the fastest allowed straight move, or None and the reason.

        ``start`` and ``goal`` (n,) rad (m).
        """
        moves = [quintic_move(self.limits.joints, (start, goal), self.limits.scaled(1.0, speed))
                 for speed in MOVE_SPEEDS]
        reason = self.blocked(moves[0])  # the path is the same at every speed
        for move in moves if reason is None else ():
            reason = self.overloaded(move)
            if reason is None:
                reason = self.unproven(move)
                return (move if reason is None else None), reason
        return None, reason

    def reachable(self, position: FloatArray) -> bool:
        """Return True if a pose (n,) is connected to the roadmap."""
        free = not self.criteria.constraints and self.criteria.proof is None
        return free or self._roadmap.reachable(position)

    @cached_property
    def _roadmap(self) -> Roadmap:
        generator = np.random.default_rng(0)
        poses = np.array([self.limits.centre,
                          *(self.somewhere(generator) for _ in range(ROADMAP_DRAWS))])
        return Roadmap(self.limits.velocity, poses, self.allowed,
                       lambda *ends: self.straight(*ends)[0], ROADMAP_POSES)


def _instants(piece: Trajectory) -> FloatArray:
    if not np.any(piece.peaks().velocity):
        return np.zeros(1)
    count = int(np.clip(np.ceil(LOOKS * piece.duration), 2, MAX_LOOKS))
    return np.linspace(0.0, piece.duration, count + 1)


def _text(position: FloatArray) -> str:
    return f'[{", ".join(f"{value:.4g}" for value in position)}]'
