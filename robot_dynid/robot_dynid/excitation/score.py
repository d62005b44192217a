"""Score of a motion: condition number, log det, deviations of the base parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular

from robot_dynid.excitation.search.observation import Observation
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray

#: independent effort samples per second for predicted deviations
EFFORT_RATE = 100.0
#: instants per second at which a motion is evaluated, and their least and largest number
DENSITY, FEWEST_INSTANTS, MAX_INSTANTS = 25.0, 400, 6000


@dataclass(frozen=True)
class Score:
    """Figures of how well a motion excites the base parameters.

    ``condition_number`` of the base regressor with weighted rows and unit columns (small is good);
    ``log_det`` of its information matrix W^T W over the whole execution (large is good); ``parts``
    the condition numbers of the terms with acceleration, velocity, position; ``largest_deviation``
    the largest standard deviation relative to the nominal value, that of the base parameter
    ``least_known``, None without nominal values.
    """

    condition_number: float
    log_det: float
    parts: Mapping[str, float] = field(default_factory=dict)
    largest_deviation: float | None = None
    least_known: str = ''


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores executions by their observation.

    ``parts`` the observations of the parts; ``sizes`` (b,) of the base parameters ``names`` that
    deviations are relative to, None if unknown.
    """

    observation: Observation
    names: tuple[str, ...]
    parts: Mapping[str, Observation]
    sizes: FloatArray | None = None

    def __call__(self, trajectory: Trajectory) -> Score:
        """Return the score of the whole execution."""
        count = int(np.clip(DENSITY * trajectory.duration, FEWEST_INSTANTS, MAX_INSTANTS))
        motion = trajectory.sample(np.linspace(0.0, trajectory.duration, count))
        share = EFFORT_RATE * trajectory.duration / count
        factor = triangle_of(np.sqrt(share) * self.observation.rows(motion))
        parts = {name: condition_of(triangle_of(part.rows(motion)))
                 for name, part in self.parts.items()}
        condition = condition_of(factor)
        if self.sizes is None or not np.isfinite(condition):
            return Score(condition, log_det_of(factor), parts)
        inverse = solve_triangular(factor, np.eye(len(factor)))
        relative = np.linalg.norm(inverse, axis=1) / self.sizes
        worst = int(np.argmax(relative))
        return Score(condition, log_det_of(factor), parts, float(relative[worst]),
                     self.names[worst])


def triangle_of(rows: FloatArray) -> FloatArray:
    """Return R (b, b) of the QR decomposition of ``rows`` (n T, b).

    QR first: its singular values are those of the triangular factor, at a fraction of the cost.
    """
    return np.asarray(np.linalg.qr(rows, mode='r'))


def condition_of(factor: FloatArray) -> float:
    """Return the condition number of R (b, b) with unit columns, infinite for a zero column."""
    norms = np.linalg.norm(factor, axis=0)
    if np.any(norms == 0.0) or factor.shape[0] < factor.shape[1]:
        return float('inf')
    values = np.linalg.svd(factor / norms, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0.0 else float('inf')


def log_det_of(factor: FloatArray) -> float:
    """Return the logarithm of the determinant of R^T R, R (b, b)."""
    diagonal = np.abs(np.diag(factor))
    if np.any(diagonal == 0.0) or factor.shape[0] < factor.shape[1]:
        return float('-inf')
    return float(2.0 * np.sum(np.log(diagonal)))
