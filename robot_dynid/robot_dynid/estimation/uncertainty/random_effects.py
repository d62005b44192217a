"""Random effects: least squares with columns outside the model whose amplitudes are random.

The residual of a model contains unmodelled columns Z, y = A p + Z b + noise, with random
amplitudes b ~ N(0, diag(v)), one variance per group, estimated from the data. Given these, p and b
are least squares with one more equation for each amplitude, that it is zero within its deviation.
Sources: Patterson, Thompson 1971 (restricted maximum likelihood); Dempster, Laird, Rubin 1977 (its
iteration); Robinson 1991 (best linear unbiased prediction, from those equations).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.least_squares import Solution, solve_rows
from robot_dynid.types import FloatArray

#: maximum number of iterations of the variances; they stop if none changes by more than this share
#: of its sum with the noise level
VARIANCE_ROUNDS, VARIANCE_SETTLED = 500, 1e-3


def fit_random_effects(
    tall: FloatArray, groups: NDArray[np.int64], noise: float
) -> tuple[Solution, FloatArray]:
    """Return the solution for parameters and effects (b + k,), and the covariance of its bias.

    `tall` (m, b + k + 1) are equations [A, Z, y] of white noise of variance `noise`; `groups` (k,)
    number effects of equal variance. The second is a covariance (b + k, b + k): the bias because
    effects are not zero as assumed. The rest of the covariance comes from noise, `noise` times
    that of least squares with unit noise.
    """
    k = len(groups)
    base = tall[:, :-k - 1]
    seen = base @ solve_rows(np.column_stack([base, tall[:, -1]])).root  # orthonormal
    left = tall[:, -k - 1:] - seen @ (seen.T @ tall[:, -k - 1:])
    gram, target = left[:, :-1].T @ left[:, :-1] / noise, left[:, :-1].T @ left[:, -1] / noise
    held = np.sqrt(noise / _variances(gram, target, groups)[groups])
    zero = np.zeros((k, tall.shape[1]))
    zero[:, -k - 1:-1] = np.diag(held)
    solution = solve_rows(np.vstack([tall, zero]))
    pulled = solution.root @ (solution.root.T[:, -k:] * held)
    return solution, noise * pulled @ pulled.T


def _variances(
    gram: FloatArray, target: FloatArray, groups: NDArray[np.int64]
) -> FloatArray:
    """Return the variance of every group of amplitudes.

    `gram` (k, k) and `target` (k,) are of the equations after elimination of the parameters.
    """
    members = np.eye(groups.max() + 1)[groups]
    count = members.sum(axis=0)
    of_noise = count / np.maximum(members.T @ np.diag(gram), 1e-300)
    variance = of_noise * np.maximum(1.0, members.T @ (
        target**2 / np.maximum(np.diag(gram), 1e-300)) / count)
    for _ in range(VARIANCE_ROUNDS):
        deviation = np.sqrt(variance)[groups]
        scaled = np.eye(len(groups)) + deviation[:, None] * gram * deviation
        spread = deviation[:, None] * np.linalg.inv(scaled) * deviation
        amplitudes = spread @ target
        previous = variance
        variance = members.T @ (amplitudes**2 + np.diag(spread)) / count
        if np.all(np.abs(variance - previous) <= VARIANCE_SETTLED * (variance + of_noise)):
            break
    return np.asarray(variance)
