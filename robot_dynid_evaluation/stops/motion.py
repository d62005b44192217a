"""The motion in which events happen: fast most of the time, and known exactly."""

from __future__ import annotations

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, frozen

PERIOD = 2.5  # s
SPEED = 0.5  # of the limits of velocity, and of acceleration, at most
REACH = 0.4  # rad (m) about the middle of a joint's range at most
FAST = 0.7  # of the peak speed: when events happen
FIRST, LAST = 0.4, 1.4  # s into the motion


def motion(robot: RobotModel, periods: int) -> FourierTrajectory:
    """Return ``periods`` of a motion of all joints within their limits.

    Joints take turns in being fast: the odd ones move as sin wt - sin 2wt / 2, the even ones as
    cos wt - cos 2wt / 4.
    """
    limits, n = motion_limits(robot), robot.n
    odd = np.arange(n) % 2 == 0
    sine = np.where(odd[:, None], [1.0, -0.5], 0.0)
    cosine = np.where(odd[:, None], 0.0, [1.0, -0.25])
    unit = FourierTrajectory(robot.joints, 1.0 / PERIOD, np.zeros(n), sine, cosine, periods)
    peaks = unit.peaks()
    gain = np.minimum(SPEED * limits.velocity / peaks.velocity,
                      SPEED * limits.acceleration / peaks.acceleration)
    width = np.maximum(peaks.upper, -peaks.lower)
    gain = np.minimum(gain, np.minimum(REACH, limits.half_range) / width)[:, None]
    middle = np.where(np.isfinite(limits.centre), limits.centre, 0.0)
    return FourierTrajectory(robot.joints, 1.0 / PERIOD, frozen(middle), frozen(gain * sine),
                             frozen(gain * cosine), periods)


def fast_times(plan: FourierTrajectory, rng: np.random.Generator, count: int) -> FloatArray:
    """Return ``count`` random times s between FIRST and LAST at which it is fast."""
    time = np.arange(FIRST, LAST, 1e-3)
    motion_ = plan.sample(time)
    share = np.abs(motion_.velocity) / plan.peaks().velocity
    fast = time[share.max(axis=1) > FAST]
    return np.asarray(rng.choice(fast, count))
