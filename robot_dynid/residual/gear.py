"""The gear as a sensor of the torque that passes through it.

A gear bends under all of that torque. Its deflection times a stiffness, less what the links of the
model take, is torque that the model does not know: what acts on the links from outside, and the
errors of their parameters. Friction of the motor does not bend the gear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.plain import from_plain
from robot_dynid.residual.model import Moments, ResidualModel, checked, faded, knowledge
from robot_dynid.types import FloatArray, frozen

#: features of gears behind those of all models: torque [N m] that the links of the model take
BESIDE = 1
#: what is stored of a gear beside the sizes
NUMBERS = ('offset', 'lower', 'upper', 'left', 'blank')


@dataclass(frozen=True, eq=False)
class GearModel(Moments):
    """The torque that the gear shows, less the load.

    ``offset`` [N m] and ``size`` (k,) [N m per unit] of all features: that of the deflection is
    the stiffness, that of the load, the last one, -1. ``lower`` and ``upper`` [rad] are the ends
    of the deflection in the fit: half that range beyond them little is added. ``left`` and
    ``blank`` [(N m)^2] are the mean squared residuals with and without it.
    """

    size: FloatArray
    offset: float
    lower: float
    upper: float
    left: float
    blank: float

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        bent = features[:, 0]
        outside = np.maximum(np.maximum(self.lower - bent, bent - self.upper), 0.0)
        known = knowledge(outside / (0.5 * (self.upper - self.lower)))
        return faded(known, self.offset + features @ self.size,
                     np.full(len(features), self.left), self.blank)

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'gear', 'size': self.size.tolist(),
                **{name: float(getattr(self, name)) for name in NUMBERS}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> GearModel:
        """Return the model of `plain`. Raises ValueError for a gear that is none."""
        found = from_plain(cls, content, 'residual')
        numbers = [getattr(found, name) for name in NUMBERS]
        if found.size.ndim != 1 or len(found.size) not in (2 + BESIDE, 4 + BESIDE) \
                or not np.isfinite([*found.size, *numbers]).all() or not found.lower < found.upper:
            raise ValueError('gear of a residual model')
        return found


def without_gears(models: Sequence[ResidualModel | None]) -> tuple[ResidualModel | None, ...]:
    """Return ``models`` with None for those of gears.

    Gears show what acts on the links: whoever looks for that must not take it off.
    """
    return tuple(None if isinstance(one, GearModel) else one for one in models)


@dataclass(frozen=True)
class GearRegression:
    """Fit the sizes by least squares to residual and load.

    Together they are what passes through the gear, links known or not. The residual alone would
    not do: the fit of the links leaves little of it in the training data, and more in any other.
    """

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for fewer points than features, and for a deflection that is constant.
        """
        checked(features[:, :2], residual, features.shape[1])
        load = features.shape[1] - BESIDE
        own = np.arange(features.shape[1]) != load
        varied = np.where(own, features - features.mean(axis=0), 0.0)
        scale = np.linalg.norm(varied, axis=0)
        scale[scale == 0.0] = 1.0
        passed = residual + features[:, load]
        size = np.linalg.lstsq(varied / scale, passed - passed.mean())[0] / scale
        size[load] = -1.0
        left = residual - features @ size
        bent = features[:, 0]
        return GearModel(frozen(size), float(left.mean()), float(bent.min()), float(bent.max()),
                         float(left.var()), float(np.mean(residual**2)))
