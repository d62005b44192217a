"""States beyond the limits of a robot: mostly numbers in another unit, such as degrees."""

from __future__ import annotations

import numpy as np

from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

#: rad (m): zeros of encoders, and motion past a soft limit, differ by less from the description
MARGIN = 0.1
#: times the limit: no drive is so much faster than it is said to be; degrees are 57 times radians
FASTER = 10.0
#: by type: unit, the one that is given instead by mistake, and how many of that make one
MISTAKES = (('rad', 'degrees', 180.0 / np.pi), ('m', 'mm', 1000.0))


def beyond_limits(
    robot: RobotModel, position: FloatArray, velocity: FloatArray
) -> tuple[str, ...]:
    """Return sentences on which states (K, n) are beyond the limits, and what to do.

    That is positions by more than MARGIN, velocities of more than FASTER times the limit; of the
    first such joint the state that is farthest out. What is not finite is left to others.
    """
    found = []
    limits = robot.limits
    fastest = np.where(limits.velocity > 0.0, FASTER * limits.velocity, np.nan)
    for what, per, values, low, high, margin in (
            ('position', '', position, limits.lower, limits.upper, MARGIN),
            ('velocity', '/s', velocity, -fastest, fastest, 0.0)):
        excess = np.fmax(low - values, values - high)
        excess[~np.isfinite(excess)] = 0.0
        joints = np.flatnonzero((excess > margin).any(axis=0))
        if not len(joints):
            continue
        j = int(joints[0])
        state = int(np.argmax(excess[:, j]))
        value, ends = float(values[state, j]), (float(low[j]), float(high[j]))
        unit, other, factor = MISTAKES[int(robot.types[j] == PRISMATIC)]
        limit = ' to '.join(f'{end:.4g}' for end in ends) if what == 'position' else \
            f'{limits.velocity[j]:.4g}'
        meant = value / factor
        remedy = (f'if these are {other}{per}, give {meant:.4g} {unit}{per}'
                  if ends[0] - margin <= meant <= ends[1] + margin else
                  f'give {unit}{per} within the limits')
        names = ', '.join(robot.joints[k] for k in joints[1:])
        others = f' (beyond theirs too: {names})' if names else ''
        found.append(f'{what} of {robot.joints[j]} is {value:.4g} {unit}{per} in state {state}, '
                     f'its limit is {limit} {unit}{per}{others}: {remedy}')
    return tuple(found)
