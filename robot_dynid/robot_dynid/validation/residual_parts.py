"""Parts of the residual: static error, and friction of other joints.

The residual r of the filtered effort of a joint in motion is fitted by

    r = Y_g b + F c,

Y_g the effort of the base parameters at rest in the same pose (weight and offsets), F the dry and
viscous friction and the rotor of the joint. The root mean square of Y_g b is an upper bound of the
static error along the recording, because part of it is chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.types import FloatArray, Samples

#: approximate number of rows used of a recording
PARTS_ROWS = 3000
#: speed [rad/s, m/s] above which a joint slides, and ramp of its dry friction
JOINT_SLIDES = 0.02
#: singular values below this share of the largest are not fitted
RANK = 1e-2


@dataclass(frozen=True, eq=False)
class ResidualParts:
    """Parts of the residuals of all joints along recordings.

    ``static`` (n,) [N m] root mean square of the error of weight and offset; ``caused`` (n, n)
    share of the residual of a joint (row), after its friction and the accelerations of both,
    explained by friction of another joint (column); ``rows`` used.
    """

    static: FloatArray
    caused: FloatArray
    rows: int

    @classmethod
    def merged(cls, parts: Sequence[ResidualParts]) -> ResidualParts | None:
        """Merge those of several recordings, None without any."""
        if not parts:
            return None
        weights = np.array([part.rows for part in parts], dtype=np.float64)
        weights /= weights.sum()
        static = np.sqrt(sum(w * p.static**2 for w, p in zip(weights, parts, strict=True)))
        caused = np.asarray(sum(w * p.caused for w, p in zip(weights, parts, strict=True)))
        return cls(static, caused, sum(part.rows for part in parts))


def residual_parts(
    model: IdentifiedModel, samples: Samples, predicted: FloatArray
) -> ResidualParts | None:
    """Return the parts along samples whose filtered effort is ``predicted`` (N, n) [N m].

    None for elastic joints, whose motors have separate equations, and without motion.
    """
    if model.elastic_joints or samples.effort is None or model.robot.rows != model.robot.n:
        return None
    left = samples.effort - predicted
    chosen = np.arange(0, len(samples), max(1, len(samples) // PARTS_ROWS))
    q, qd, qdd = (x[chosen] for x in (samples.position, samples.velocity, samples.acceleration))
    weights = effort_by_parameters(model, q, np.zeros_like(q), np.zeros_like(q))
    n = model.robot.n
    static, caused = np.zeros(n), np.zeros((n, n))
    for j in range(n):
        moves = np.abs(qd[:, j]) > JOINT_SLIDES
        if np.count_nonzero(moves) < 10 * n:
            continue
        friction, rest = _friction(qd[moves, j], qdd[moves, j]), left[chosen][moves, j]
        weight = weights[moves, j]
        fitted = _fit(np.hstack([weight, friction]), rest)[:weight.shape[1]]
        static[j] = np.sqrt(np.mean((weight @ fitted)**2))
        for k in range(n):
            if k != j:
                # coupling by undetermined inertias does not indicate a common motor
                inertial = np.column_stack([friction, qdd[moves, k]])
                alone = _residual_sum(inertial, rest)
                other = [_friction(qd[moves, k], qdd[moves, k])[:, :2], *(
                    np.tanh((qd[moves, j] + sign * qd[moves, k])[:, None] / JOINT_SLIDES)
                    for sign in (-1.0, 1.0))]
                both = _residual_sum(np.hstack([inertial, *other]), rest)
                caused[j, k] = 1.0 - both / alone if alone > 0.0 else 0.0
    return ResidualParts(static, caused, len(chosen))


def _friction(speed: FloatArray, acceleration: FloatArray) -> FloatArray:
    """Return columns (N, 3) of dry and viscous friction and of the rotor of a joint."""
    return np.column_stack([np.tanh(speed / JOINT_SLIDES), speed, acceleration])


def _fit(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Return least-squares coefficients (k,) with normalised columns, zero columns left out."""
    size = np.linalg.norm(columns, axis=0)
    size[size <= 1e-12 * max(float(size.max(initial=0.0)), 1e-300)] = np.inf
    return np.asarray(np.linalg.lstsq(columns / size, target, rcond=RANK)[0] / size)


def _residual_sum(columns: FloatArray, rest: FloatArray) -> float:
    """Return the squared sum of the residual of columns."""
    return float(np.sum((rest - columns @ _fit(columns, rest))**2))
