"""Objectives of a design: map a motion to a value to minimise and its exact gradient.

``condition``: squared condition number of the weighted base regressor with unit columns, times the
geometric mean of the parameters' deviations (which keeps the efforts large). ``log-det``: that
mean alone, which is D-optimality. ``precision``: the largest standard deviation relative to the
nominal parameter. ``blocks``: the weighted condition numbers of the whole and of its parts, see
`WeightedBlocks`.

The measures are functions of an information matrix M (b, b), each with its gradient in M. All are
logarithms, so that a difference of 0.01 is one percent, and are minimised. The maximum of several
values is not smooth where two are equal, which is where optima lie; the p-norm replaces it, which
exceeds the maximum by at most log(number) / p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from robot_dynid.excitation.search.observation import MotionGradient, Observation, total
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

NAMES = ('condition', 'blocks', 'log-det', 'precision')
#: p of the p-norms of eigenvalues and variances: 8 exceeds the maximum of 60 values by half of it
#: if all are equal, and by one percent if one stands out
NORM_POWER = 8.0
#: least eigenvalue of the scaled information: rounding leaves 1e-15, and the gradient must stay
#: finite where a motion leaves parameters dependent
LEAST_INFORMATION = 1e-12
#: weight of the condition number relative to the mean deviation. From 1 to 2 the condition numbers
#: of designs for ur10e, tx40, puma560 and seven_axis (20 s, 5 harmonics, best of 8 starts) fall by
#: 7 to 16 % and the mean deviations grow by 10 to 18 %; from 2 to 3 condition numbers fall by only
#: 0 to 5 % more, and deviations grow by 2 to 9 %
BALANCE = 2.0

#: maps an information matrix to a value and its gradient, (b, b) each
Measure = Callable[[FloatArray], tuple[float, FloatArray]]
#: maps a motion to the value to minimise and its gradients (T, n) in position, velocity,
#: acceleration
Objective = Callable[[Motion], tuple[float, MotionGradient]]


def log_condition(information: FloatArray) -> tuple[float, FloatArray]:
    """Return the logarithm of the condition number of the regressor with unit columns.

    With eigenvalues l of the scaled information: (log |l|_p + log |1/l|_p) / 2. ``information``
    and the gradient, returned second, are (b, b).
    """
    scaled, scale = _unit_columns(information)
    values, vectors = np.linalg.eigh(scaled)
    logs = NORM_POWER * np.log(np.maximum(values, LEAST_INFORMATION))
    (high, large), (low, small) = _log_sum(logs), _log_sum(-logs)
    value = (high + low) / (2.0 * NORM_POWER)
    slopes = (large - small) / (2.0 * np.exp(logs / NORM_POWER))
    inner = (vectors * slopes) @ vectors.T
    gradient = inner * scale[:, None] * scale
    gradient -= np.diag(np.sum(inner * scaled, axis=1) * scale**2)
    return value, gradient


def log_mean_deviation(information: FloatArray) -> tuple[float, FloatArray]:
    """Return the logarithm of the geometric mean deviation, and its gradient (b, b).

    D-optimality: -log det M / (2 b) of the information M (b, b).
    """
    inverse, log_det = _inverse(information)
    count = len(information)
    return -0.5 * log_det / count, -0.5 / count * inverse


def log_largest_deviation(information: FloatArray, sizes: FloatArray) -> tuple[float, FloatArray]:
    """Return the logarithm of the largest standard deviation relative to ``sizes`` (b,)."""
    inverse, _ = _inverse(information)
    logs = NORM_POWER * np.log(np.diag(inverse) / sizes**2)
    value, shares = _log_sum(logs)
    slopes = 0.5 * shares / np.diag(inverse)
    return value / (2.0 * NORM_POWER), -(inverse * slopes) @ inverse


def both(information: FloatArray) -> tuple[float, FloatArray]:
    """Return BALANCE times `log_condition`, plus `log_mean_deviation`, and the gradient (b, b).

    The condition number alone does not reward large efforts, only balanced ones; the mean
    deviation alone accepts poor accuracy of some parameters.
    """
    condition, first = log_condition(information)
    deviation, second = log_mean_deviation(information)
    return BALANCE * condition + deviation, BALANCE * first + second


def _unit_columns(information: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the information of unit columns, and the factors of the columns."""
    squares = np.diag(information)
    least = max(LEAST_INFORMATION**2 * float(np.max(squares)), np.finfo(float).tiny)
    scale = 1.0 / np.sqrt(np.maximum(squares, least))
    return information * scale[:, None] * scale, scale


def _inverse(information: FloatArray) -> tuple[FloatArray, float]:
    """Return the inverse and the log determinant, see LEAST_INFORMATION."""
    scaled, scale = _unit_columns(information)
    factor = cho_factor(scaled + LEAST_INFORMATION * np.eye(len(scaled)), lower=True)
    inverse = cho_solve(factor, np.eye(len(scaled))) * scale[:, None] * scale
    return inverse, float(2.0 * np.sum(np.log(np.diag(factor[0])) - np.log(scale)))


def _log_sum(logs: FloatArray) -> tuple[float, FloatArray]:
    """Return the logarithm of the sum of exp(logs), and the share of each term."""
    largest = float(np.max(logs))
    terms = np.exp(logs - largest)
    return largest + float(np.log(np.sum(terms))), terms / np.sum(terms)


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of the information in ``samples`` effort samples of a motion."""

    observation: Observation
    measure: Measure
    samples: float = 1.0

    def __call__(self, motion: Motion) -> tuple[float, MotionGradient]:
        """Return value and gradients."""
        columns = self.observation.columns(motion)
        value, slope = self.measure(self.samples * self.observation.information(columns))
        return value, self.observation.pullback(motion, columns, self.samples * slope)


@dataclass(frozen=True, eq=False)
class WeightedBlocks:
    """Logarithm of the weighted sum of condition numbers, whole first, then the parts.

    co = (wa + wb + wc) cond(W) + wa cond(Wa) + wb cond(Wb) + wc cond(Wc), where W is the sum of
    the terms with accelerations, with products of velocities, and with positions (gravity).

    Source: Liu, Xu, Song et al., Actuators 2023, 12, 454, equation 14. The text leaves open
    - the columns of a part: here the leftmost independent ones of the part by itself (most base
      parameters do not enter gravity at all);
    - the weights, "the variance of the corresponding columns": here the mean variance of the
      columns of a part, relative to the sum over the parts, of the motion the search starts from,
      because weights that follow the motion would reward small parts;
    - the noise behind the row weights. It omits friction, which the whole includes here because
      it is estimated together with the links.
    """

    objectives: tuple[Measured, ...]
    weights: FloatArray

    @classmethod
    def at(
        cls, whole: Observation, parts: Sequence[Observation], motion: Motion
    ) -> WeightedBlocks:
        """Return the objective with parts weighted by the variance of their columns in ``motion``.
"""
        variances = np.array([np.mean(np.var(part.rows(motion), axis=0)) for part in parts])
        shares = variances / np.sum(variances)
        objectives = tuple(Measured(o, log_condition) for o in (whole, *parts))
        return cls(objectives, np.concatenate([[1.0], shares]))

    def __call__(self, motion: Motion) -> tuple[float, MotionGradient]:
        """Return value and gradients."""
        measured = [objective(motion) for objective in self.objectives]
        terms = self.weights * np.exp([value for value, _ in measured])
        shares = terms / np.sum(terms)
        gradients = [(s * g[0], s * g[1], s * g[2])
                     for s, (_, g) in zip(shares, measured, strict=True)]
        return float(np.log(np.sum(terms))), total(gradients)
