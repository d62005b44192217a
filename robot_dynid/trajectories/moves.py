"""Moves between rests, as fast as given limits allow."""

from __future__ import annotations

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.trajectories.limits import HEADROOM, MotionLimits
from robot_dynid.trajectories.trajectory import QUINTIC_PEAKS, QuinticMove
from robot_dynid.types import FloatArray, frozen

SHORTEST = 0.5


def quintic_move(
    joints: tuple[str, ...],
    ends: tuple[FloatArray, FloatArray],
    limits: MotionLimits,
    shortest: float = SHORTEST,
) -> QuinticMove:
    """Return the shortest straight move which keeps velocity, acceleration and jerk limits.

    ``ends`` are start and goal, (n,) rad (m) each; ``shortest`` s bounds the duration from below.
    Slow moves come from slow limits (`MotionLimits.scaled`). Raises UsageError when an end is not
    finite.
    """
    start, goal = (np.asarray(end, dtype=np.float64) for end in ends)
    bad = np.flatnonzero(~np.isfinite(start + goal))
    if bad.size:
        raise UsageError(f"start or goal of joint '{joints[bad[0]]}' is not finite")
    step = np.abs(goal - start)
    durations = [shortest]
    for order, (name, peak) in enumerate(
        zip(('velocity', 'acceleration', 'jerk'), QUINTIC_PEAKS), start=1
    ):
        limit = getattr(limits, name)
        needed = (peak * step / limit) ** (1.0 / order) * (1.0 + HEADROOM)
        durations.append(float(np.max(needed, initial=0.0, where=np.isfinite(limit))))
    return QuinticMove(joints, frozen(start), frozen(goal), max(durations))
