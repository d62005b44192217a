"""Estimate: parameters, covariance, status and warnings that every estimator returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np
from scipy import stats

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.types import FloatArray


class Status(Enum):
    """Outcome of a fit; the value is the advice."""

    OK = 'the data determines every base parameter'
    NOT_EXCITED = ('the motion does not excite every base parameter; record a motion in which all '
                   'joints move through most of their range at different speeds')
    NOT_IDENTIFIED = ('the data gives no model of the effort of a joint; check its effort signal, '
                      'and do not use the model for this joint')
    NOT_SETTLED = ('the weights of the samples did not come to rest: the parameters are those of '
                   'the last round; look for a joint with grossly wrong effort, or use wls')
    NOT_SOLVED = ('the conic solver stopped short of the optimum: the parameters are feasible, '
                  'but not the best; excite the motion better, give the prior a larger weight '
                  '(prior_weight), or check the bounds')


class Estimator(Protocol):
    """Settings of a fit."""

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; numerical trouble is in the status."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty.

    ``values`` and ``std`` (b,), ``covariance`` (b, b); ``noise`` (n,) residual deviation of each
    joint over the rows as they were weighted [N m]; ``condition_raw`` and ``condition`` of the
    weighted regressor as it is and with unit columns; ``rank``; ``degrees_of_freedom`` of the
    covariance; ``not_excited`` names of parameters the data leaves open (std infinite);
    ``not_identified`` joints. ``details`` is what the method tells beyond that, in plain types.
    """

    names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    noise: FloatArray
    condition_raw: float
    condition: float
    rank: int
    degrees_of_freedom: int
    method: str
    status: Status = Status.OK
    not_excited: tuple[str, ...] = ()
    not_identified: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def std(self) -> FloatArray:
        """Standard deviations (b,)."""
        deviation: FloatArray = np.sqrt(np.diag(self.covariance))
        return np.where([n in self.not_excited for n in self.names], np.inf, deviation)

    @property
    def relative_std(self) -> FloatArray:
        """Standard deviations (b,) relative to the values."""
        with np.errstate(divide='ignore', invalid='ignore'):
            relative: FloatArray = self.std / np.abs(self.values)
        return relative

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds (b,) of the confidence interval of each parameter."""
        half = interval_factor(self.degrees_of_freedom, level) * self.std
        return self.values - half, self.values + half


def interval_factor(degrees: float, level: float = 0.95) -> float:
    """Return the factor from a deviation to half of a confidence interval (Student's t)."""
    return float(stats.t.ppf(0.5 + level / 2.0, degrees))
