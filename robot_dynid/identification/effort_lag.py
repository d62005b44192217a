"""Lag of the effort and its deviation, estimated as one more parameter of all joints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import batch_scores, joint_weights, solve
from robot_dynid.estimation.uncertainty.scatter import scatter_variance
from robot_dynid.signals.alignment import Lag

#: least share of what is left that an estimate is taken to find
LEAST = 0.05
#: deviations from which on a lag is sure
SURE = 5.0
#: estimates after the first; a step below this share of the deviation is the last
ROUNDS, SETTLED = 4, 0.1


def lag_of(information: Information) -> Lag:
    """Return the lag [s], the last parameter, with its deviation."""
    weights = joint_weights(information)
    solution = solve(information, weights)
    by_time, by_motion = (
        replace(batch_scores(part, weights, solution), root=solution.root[-1:])
        for part in (information, information.distinct))
    variance = scatter_variance(information, by_time, by_motion=by_motion)
    return Lag(float(solution.values[-1]), float(np.sqrt(variance[0])))


def likely(lag: Lag) -> bool:
    """Return whether the lag exceeds its deviation: held-out error decides about it then."""
    return abs(lag.seconds) > lag.std


def sure(lag: Lag) -> bool:
    """Return whether the lag is there beyond doubt, whichever way held-out errors scatter."""
    return abs(lag.seconds) > SURE * lag.std


def alike(one: Lag, other: Lag) -> bool:
    """Return whether two lags differ by less than `settled` tells apart."""
    return abs(one.seconds - other.seconds) < SETTLED * min(one.std, other.std)


def settled(estimate: Callable[[float], Lag]) -> Lag:
    """Return the lag at which no lag is left; ``estimate`` returns that left beside some seconds.

    An estimate finds only a share of what is left, since noise in the rate of the effort draws it
    towards zero. The share comes from how estimates fall from one to the next (secant method); the
    deviation of an estimate is that share of the deviation of the lag.
    """
    first = estimate(0.0)
    if not np.isfinite(first.std) or first.seconds == 0.0:
        return first
    before, left, seconds = 0.0, first, first.seconds + np.copysign(first.std, first.seconds)
    share, std = 1.0, first.std
    for _ in range(ROUNDS):
        other = estimate(seconds)
        share = float(np.clip((left.seconds - other.seconds) / (seconds - before), LEAST, 1.0))
        before, left, std = seconds, other, other.std / share
        seconds += other.seconds / share
        if abs(seconds - before) < SETTLED * std:
            break
    return Lag(float(seconds), float(std))
