"""Confidence intervals of the base parameters of an identified model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


def half_intervals(model: IdentifiedModel) -> FloatArray:
    """Return half of the 95 % confidence interval (b,) of every base parameter.

    Models of older files do not know their degrees of freedom, which then count as many.
    """
    return interval_factor(model.record.degrees_of_freedom or np.inf) * model.std
