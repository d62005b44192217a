"""Rollouts of stretches that a fit has not seen, beside those of its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.estimation.quantiles import student_quantile
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.intervals import Intervals

#: one-sided levels at which a fit has to be better than its start: over several recordings, and
#: over one, whose stretches show the same motion; and by how much it has to be at least
LEVEL, LEVEL_OF_ONE, LEAST_GAIN = 0.99, 0.999, 0.01


def rollout_errors(
    mechanism: Mechanism, states: FloatArray, effort: FloatArray, step: float
) -> FloatArray:
    """Return the mean squared errors (K, 2 n) of rollouts, NaN where one stops.

    ``states`` (K, m + 1, 2 n) measured positions and velocities: rollouts begin at the first and
    are compared with the others; ``effort`` (K, m, n) [N m] held for ``step`` [s] each.
    """
    integrate = Integrator(mechanism.robot, mechanism.links, mechanism.rotors, mechanism.friction)
    n = states.shape[2] // 2
    position, velocity = integrate(states[:, 0, :n], states[:, 0, n:], effort, step)
    off = np.concatenate([position, velocity], axis=2) - states[:, 1:]
    return np.asarray(np.mean(off**2, axis=1))


def interval_rollouts(intervals: Intervals, mechanism: Mechanism) -> FloatArray:
    """Return the mean squared errors (K, 2 n) of rollouts from the measured initial states.

    The effort that is held over a step is that of its middle.
    """
    around = intervals.effort
    middle = (9.0 * (around[:, 1:-2] + around[:, 2:-1]) - around[:, :-3] - around[:, 3:]) / 16.0
    return rollout_errors(mechanism, intervals.states, middle, intervals.step)


def level_of(intervals: Sequence[Intervals]) -> float:
    """Return the level at which a fit to intervals has to be better than its start."""
    return LEVEL if len({one.recording for one in intervals}) > 1 else LEVEL_OF_ONE


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rollouts of a fit beside those of its start, on stretches left out of the fit in turn.

    ``start`` and ``fit`` (2 n,) root mean square errors; ``gain`` the mean logarithm of their
    ratio over channels and stretches, above zero where the fit is better, sure to ``margin``.
    """

    start: FloatArray
    fit: FloatArray
    gain: float
    margin: float

    @property
    def better(self) -> bool:
        """Whether the fit is surely better, and by more than steps of integration err."""
        return self.gain > max(self.margin, LEAST_GAIN)

    @classmethod
    def of(
        cls, start: list[FloatArray], fit: list[FloatArray], level: float = LEVEL
    ) -> Comparison:
        """Compare mean squared errors (K, 2 n) of the same rollouts, stretch by stretch.

        ``level`` is that of the margin. A fit of which more rollouts stop is never better.
        """
        both = [np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
                for a, b in zip(start, fit, strict=True)]
        more = any(np.isfinite(a[~known]).all(axis=1).any()
                   for a, known in zip(start, both, strict=True))
        means = np.array([[a[known].mean(axis=0), b[known].mean(axis=0)] for a, b, known in zip(
            start, fit, both, strict=True) if known.any()])
        count = len(means)
        if count < 2:
            nothing = np.full(start[0].shape[1], np.nan)
            return cls(nothing, nothing, 0.0, np.inf)
        gains = 0.5 * np.mean(np.log(means[:, 0] / means[:, 1]), axis=1)
        margin = float(student_quantile(level, count - 1) * np.std(gains, ddof=1) / np.sqrt(count))
        overall = np.sqrt(means.mean(axis=0))
        return cls(overall[0], overall[1], float(gains.mean()), np.inf if more else margin)
