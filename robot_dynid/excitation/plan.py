"""From where the robot stands to a plan: a slow move to the start pose, then the excitation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.excitation.limits import MotionLimits
from robot_dynid.excitation.moves import quintic_move
from robot_dynid.excitation.sampled import SampledTrajectory, sampled
from robot_dynid.excitation.watch import Segment
from robot_dynid.types import FloatArray, frozen


def move_to_start(
    position: FloatArray, excitation: Segment, settings: tuple[float, float, float],
    reach: MotionLimits,
) -> Segment:
    """Return the slow move from the measured ``position`` (n,) rad (m) to the first pose.

    ``settings`` are the part of the velocity limits to use, points per second, and s granted
    before the first point. The robot may stand outside the excitation's own narrower limits, but
    not outside ``reach``, the robot's. Raises DynIdError naming the joint that does.
    """
    scale, rate, lead_in = settings
    outside = np.maximum(position - reach.upper, reach.lower - position)
    if np.any(outside > 0.0):
        i = int(np.argmax(outside))
        raise DynIdError(
            f"joint '{reach.joints[i]}' stands at {position[i]:.4g}, outside its limits "
            f'{reach.lower[i]:.4g} to {reach.upper[i]:.4g}; move it back by hand or by a jog')
    points: SampledTrajectory = excitation.points
    goal = points.position[0]
    limits = replace(excitation.limits,
                     lower=frozen(np.fmin(excitation.limits.lower, position)),
                     upper=frozen(np.fmax(excitation.limits.upper, position)))
    move = quintic_move(points.joints, (position, goal), limits.scaled(1.0, scale))
    return Segment('move_to_start', sampled(move, rate, lead_in), limits)
