"""What planned excitations share: is a piece of motion allowed, how to get from pose to pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import Judge
from robot_dynid.excitation.limits import MotionLimits
from robot_dynid.excitation.moves import quintic_move
from robot_dynid.excitation.trajectory import Composite, Motion, QuinticMove, Trajectory
from robot_dynid.types import FloatArray, frozen

#: instants per second at which a piece is looked at, and the most of them
RATE, MOST = 50.0, 400
#: part of the effort limits used while planning; the result is looked at on a finer grid
EFFORT_MARGIN = 0.97
#: parts of the velocity limits tried for moves between the pieces
MOVE_SPEEDS = (0.5, 0.25, 0.1)
#: poses tried as a stop on the way where the straight move is not allowed
STOPS = 32


@dataclass(frozen=True, eq=False)
class Planner:
    """Motions within ``limits`` that also keep what ``judge`` asks for: efforts, constraints,
    proof. The limits' efforts (n,) N m (N) are those that may be used.
    """

    judge: Judge
    limits: MotionLimits

    def broken(self, piece: Trajectory) -> str | None:
        """Return in words which effort or constraint ``piece`` breaks at some instant, or None."""
        motion = piece.sample(_instants(piece))
        if self.judge.inverse is not None:
            effort = self.judge.inverse(motion.position, motion.velocity, motion.acceleration)
            highest = np.abs(effort).max(axis=0)
            over = highest - EFFORT_MARGIN * self.limits.effort
            if np.any(over > 0.0):
                i = int(np.nanargmax(over / self.limits.effort))
                return (f"joint '{self.limits.joints[i]}' needs an effort of {highest[i]:.4g}, "
                        f'more than {EFFORT_MARGIN:.0%} of the allowed '
                        f'{self.limits.effort[i]:.4g}')
        for constraint in self.judge.constraints:
            if np.any(constraint.values(motion) < 0.0):
                return constraint.worst(motion)
        return None

    def unproven(self, piece: Trajectory) -> str | None:
        """Return in words what the proof has against the whole continuous ``piece``, or None."""
        clearance = None if self.judge.proof is None else self.judge.proof(piece)
        if clearance is None or clearance.free:
            return None
        return (f'{" and ".join(clearance.pair)} come as near as {clearance.smallest:.4g} m at '
                f'{clearance.time:.4g} s')

    def allowed(self, positions: FloatArray) -> NDArray[np.bool_]:
        """Return which of the poses (K, n) may be held, as far as efforts and constraints tell."""
        still = np.zeros_like(positions)
        good = np.ones(len(positions), dtype=np.bool_)
        if self.judge.inverse is not None:
            effort = np.abs(self.judge.inverse(positions, still, still))
            good &= ~np.any(effort > EFFORT_MARGIN * self.limits.effort, axis=1)
        for constraint in self.judge.constraints:
            values = constraint.values(Motion(positions, still, still, still))
            good &= np.all(values >= 0.0, axis=1)
        return good

    def rest(self, position: FloatArray, seconds: float) -> QuinticMove:
        """Return the piece that stays at ``position`` (n,)."""
        return QuinticMove(self.limits.joints, frozen(position), frozen(position), seconds)

    def moves(self, start: FloatArray, goal: FloatArray) -> tuple[QuinticMove, ...]:
        """Return slow moves between two poses (n,), straight or with one stop; none when equal.

        Raises DynIdError when no allowed way was found.
        """
        if np.array_equal(start, goal):
            return ()
        direct, why = self.straight(start, goal)
        if direct is not None:
            return (direct,)
        for stop in self._stops:
            first, second = self.straight(start, stop)[0], None
            if first is not None:
                second = self.straight(stop, goal)[0]
            if first is not None and second is not None:
                return first, second
        raise DynIdError(
            f'no way found from {_text(start)} to {_text(goal)}, neither straight nor with one '
            f'stop: on the straight one {why}; narrow the positions with option '
            "'limits: {joint: {position: [lower, upper]}}'")

    def joined(self, pieces: Sequence[Trajectory]) -> Composite:
        """Return the pieces one after the other, with moves in between where poses differ."""
        segments: list[Trajectory] = []
        for piece in pieces:
            if segments:
                before = segments[-1].sample(segments[-1].duration).position[0]
                segments += self.moves(before, piece.sample(0.0).position[0])
            segments.append(piece)
        return Composite(tuple(segments))

    def somewhere(self, generator: np.random.Generator) -> FloatArray:
        """Return a random configuration (n,) within the limits."""
        return np.asarray(generator.uniform(self.limits.lower, self.limits.upper))

    def straight(
        self, start: FloatArray, goal: FloatArray
    ) -> tuple[QuinticMove | None, str | None]:
        """Return the fastest of the allowed straight moves, or None and why there is none."""
        why: str | None = None
        for speed in MOVE_SPEEDS:
            move = quintic_move(self.limits.joints, (start, goal), self.limits.scaled(1.0, speed))
            why = self.broken(move) or self.unproven(move)
            if why is None:
                return move, None
        return None, why

    @cached_property
    def _stops(self) -> list[FloatArray]:
        generator = np.random.default_rng(0)
        poses = np.array([self.limits.centre,
                          *(self.somewhere(generator) for _ in range(STOPS - 1))])
        return list(poses[self.allowed(poses)])


def _instants(piece: Trajectory) -> FloatArray:
    if not np.any(piece.peaks().velocity):
        return np.zeros(1)
    count = int(np.clip(np.ceil(RATE * piece.duration), 2, MOST))
    return np.linspace(0.0, piece.duration, count + 1)


def _text(position: FloatArray) -> str:
    return f'[{", ".join(f"{value:.4g}" for value in position)}]'
