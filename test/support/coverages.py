"""What chance and small samples do to the share of intervals that hold the truth, and to means."""

from __future__ import annotations

import numpy as np
from scipy import stats

from robot_dynid.types import FloatArray

#: deviations a mean over seeds may be off: less than one run in 300 of a correct estimator is
CHANCE = 3.0
NODES = 64  # of the quadrature


def correlation_of(covariance: FloatArray) -> FloatArray:
    """Return the correlations (b, b) of a covariance."""
    scale = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(scale, scale))


def joint_chance(correlation: FloatArray, level: float = 0.95) -> FloatArray:
    """Return the probability (b, b) that two intervals hold their truths at once."""
    edge = stats.norm.ppf(0.5 + 0.5 * level)
    x, weight = np.polynomial.legendre.leggauss(NODES)
    x = edge * x
    density = edge * weight * stats.norm.pdf(x)
    r = np.clip(correlation, -1.0, 1.0)[..., None]
    rest = np.sqrt(np.maximum(1.0 - r**2, 1e-12))
    inside = stats.norm.cdf((edge - r * x) / rest) - stats.norm.cdf((-edge - r * x) / rest)
    return np.asarray(inside @ density)


def coverage_scatter(correlation: FloatArray, seeds: int, level: float = 0.95) -> float:
    """Return the deviation of the share of b intervals, of so many independent fits.

    Binomial, but that intervals of one fit hold or miss together: a share over b parameters of
    ``correlation`` (b, b) has the mean of their covariances as its variance.
    """
    together = joint_chance(correlation, level) - level**2
    return float(np.sqrt(together.mean() / seeds))


def largest_by_chance(correlation: FloatArray) -> float:
    """Return what the largest of b standard normal numbers exceeds in one run of 300 only.

    Bonferroni: correlated numbers stay below it more often still.
    """
    return float(stats.norm.isf(0.5 * (1.0 / 300.0) / len(correlation)))


def expected_coverage(
    design: FloatArray, batches: list[slice], root: FloatArray, level: float = 0.95
) -> float:
    """Return the share of the intervals of least squares that hold the truth.

    ``design`` (N n, b) is weighted, joints of a sample together; its residuals are ``root`` (n, n)
    times white noise; ``batches`` are rows. A deviation comes from what leaving out a batch
    changes (CR3), which is too large by the leverage of batches, and itself a sum of squares of
    few numbers: its mean and variance give a chi square (Satterthwaite 1946).
    """
    count, n = len(batches), len(root)
    pseudo = np.linalg.pinv(design)
    changes = np.empty((count, *pseudo.shape))
    for i, rows in enumerate(batches):
        part = design[rows]
        lever = np.linalg.solve(np.eye(len(part)) - part @ pseudo[:, rows], pseudo[:, rows].T).T
        changes[i] = -(lever @ part) @ pseudo
        changes[i][:, rows] += lever
    changes -= changes.mean(axis=0)

    def white(operator: FloatArray) -> FloatArray:
        return np.asarray((operator.reshape(*operator.shape[:-1], -1, n) @ root).reshape(
            operator.shape))

    found, true = white(changes), np.sum(white(pseudo) ** 2, axis=1)
    products = (count - 1) / count * np.einsum('ibm,jbm->bij', found, found)
    mean = np.trace(products, axis1=1, axis2=2)
    freedom = mean**2 / np.sum(products**2, axis=(1, 2))
    edge = stats.t.ppf(0.5 + 0.5 * level, count - 1)
    return float(np.mean(2.0 * stats.t.cdf(edge * np.sqrt(mean / true), freedom) - 1.0))
