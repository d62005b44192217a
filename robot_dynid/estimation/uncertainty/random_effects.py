"""Random effects beside parameters: what columns that are not in the model may have done to it.

A model leaves over what its columns Z would explain, y = A p + Z b + noise, with amplitudes b of
which nothing is known but that those of one group are alike: b ~ N(0, diag(v)), one variance per
group, found from the data. p and b given y are normal, so p has a best estimate and a covariance,
both in closed form. Sources: Patterson, Thompson 1971 (restricted maximum likelihood); Dempster,
Laird, Rubin 1977 (its iteration); Robinson 1991 (best linear unbiased prediction).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.least_squares import solve_rows
from robot_dynid.types import FloatArray

#: rounds of the variances at most; at rest none changes by more than this share of it and of
#: that which is as large as the noise
ROUNDS, SETTLED = 500, 1e-3


def with_random_effects(
    tall: FloatArray, groups: NDArray[np.int64], noise: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the change (b,) of parameters by effects, and its covariance, beside least squares.

    ``tall`` (m, b + k + 1) are equations [A, Z, y] of white noise of variance ``noise``;
    ``groups`` (k,) number those effects that have one variance. Returns the change (b,) of the
    least-squares parameters, its covariance (b, b) given the data, and the covariance (b, b) of
    least squares by noise of variance one.
    """
    k = len(groups)
    base, effects = tall[:, :-k - 1], tall[:, -k - 1:-1]
    root = solve_rows(np.column_stack([base, tall[:, -1]])).root
    seen = base @ root  # orthonormal
    left = tall[:, -k - 1:] - seen @ (seen.T @ tall[:, -k - 1:])
    gram, target = left[:, :-1].T @ left[:, :-1] / noise, left[:, :-1].T @ left[:, -1] / noise
    share = root @ (seen.T @ effects)
    amplitudes, spread = _amplitudes(gram, target, groups)
    return -share @ amplitudes, share @ spread @ share.T, root @ root.T


def _amplitudes(
    gram: FloatArray, target: FloatArray, groups: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return the amplitudes (k,) given the data, and their covariance (k, k).

    ``gram`` (k, k) and ``target`` (k,) are of the equations that parameters leave over.
    """
    members = np.eye(groups.max() + 1)[groups]
    count = members.sum(axis=0)
    of_noise = count / np.maximum(members.T @ np.diag(gram), 1e-300)
    variance = of_noise * np.maximum(1.0, members.T @ (
        target**2 / np.maximum(np.diag(gram), 1e-300)) / count)
    for _ in range(ROUNDS):
        deviation = np.sqrt(variance)[groups]
        scaled = np.eye(len(groups)) + deviation[:, None] * gram * deviation
        spread = deviation[:, None] * np.linalg.inv(scaled) * deviation
        amplitudes = spread @ target
        before = variance
        variance = members.T @ (amplitudes**2 + np.diag(spread)) / count
        if np.all(np.abs(variance - before) <= SETTLED * (variance + of_noise)):
            break
    return amplitudes, spread
