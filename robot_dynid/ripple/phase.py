"""Delays and compliance of waves by variable projection: coefficients follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.ripple.model import COLUMNS, SHARES, TorqueRipple
from robot_dynid.ripple.normal_equations import NormalEquations, ridged
from robot_dynid.ripple.scan import JointResidual
from robot_dynid.ripple.wave_columns import WaveColumns
from robot_dynid.types import FloatArray, frozen

#: delays [s] are sought between minus and plus this
LONGEST_DELAY = 20e-3
#: steps of the search, and the change of the sum of squares that ends it
STEPS, SETTLED = 12, 1e-5


@dataclass(frozen=True, eq=False)
class Phases:
    """Parameters of the phases of torque ripple: ``orders``, ``delays`` (w,), ``compliance``.

    As of `TorqueRipple`; ``delay_std`` (w,) [s] and ``compliance_std`` [rad/(N m)] once fitted.
    """

    orders: FloatArray
    delays: FloatArray
    compliance: float
    delay_std: FloatArray
    compliance_std: float = 0.0

    @classmethod
    def none(cls, compliance: float) -> Phases:
        """Return no wave at all."""
        return cls(np.empty(0), np.empty(0), compliance, np.empty(0))

    def with_wave(self, order: float, delay: float) -> Phases:
        """Return one wave more."""
        return Phases(np.append(self.orders, order), np.append(self.delays, delay),
                      self.compliance, np.append(self.delay_std, 0.0))

    def without(self, k: int) -> Phases:
        """Return all waves but that of index ``k``."""
        return Phases(np.delete(self.orders, k), np.delete(self.delays, k), self.compliance,
                      np.delete(self.delay_std, k), self.compliance_std)

    def ripple(self, data: JointResidual) -> TorqueRipple:
        """Return the ripple with the coefficients of the fit."""
        found = NormalEquations.of(data, self.columns(data)).solved()
        return TorqueRipple(frozen(self.orders), frozen(self.delays), self.compliance, data.slow,
                            data.fast, frozen(found))

    def columns(self, data: JointResidual) -> WaveColumns:
        """Return the columns (N, 6 w) of the coefficients."""
        twisted = data.position + self.compliance * data.effort
        return WaveColumns.of(data.shares, self.orders[:, None] * (
            twisted + self.delays[:, None] * data.velocity))


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients (k,) of the least squares of ``columns``, which have the ridged ``gram``."""

    data: JointResidual
    orders: FloatArray
    columns: WaveColumns
    gram: FloatArray
    coefficients: FloatArray

    @classmethod
    def of(cls, phases: Phases, data: JointResidual) -> Fit:
        """Fit the coefficients of waves to the residual."""
        columns = phases.columns(data)
        gram, side = ridged(columns.gram()), columns.products(data.residual[:, None])
        return cls(data, phases.orders, columns, gram,
                   np.asarray(np.linalg.solve(gram, side)[:, 0]))

    def left(self) -> FloatArray:
        """Return the errors (N,) [N m] of the fit."""
        return np.asarray(
            self.data.residual - self.columns.times(self.coefficients[:, None])[:, 0])

    def of_wave(self, k: int) -> FloatArray:
        """Return the torque (N,) [N m] of one wave."""
        own = WaveColumns(self.columns.shares, self.columns.waves[k:k + 1])
        return own.times(self.coefficients[COLUMNS * k:COLUMNS * (k + 1), None])[:, 0]

    def beside(self, values: FloatArray) -> FloatArray:
        """Return the errors (N, m) of the least squares of the columns for ``values`` (N, m)."""
        found = np.asarray(np.linalg.solve(self.gram, self.columns.products(values)))
        return np.asarray(values - self.columns.times(found))

    def slopes(self) -> FloatArray:
        """Return the derivatives (N, w) of the torque by position, wave by wave."""
        sine, cosine = np.moveaxis(self.coefficients.reshape(-1, SHARES, 2), 2, 0)
        waves, shares = self.columns.waves, self.columns.shares
        slope = (sine @ shares) * waves[:, 1] - (cosine @ shares) * waves[:, 0]
        return np.asarray(slope * self.orders[:, None]).T

    def by_phases(self, slopes: FloatArray) -> FloatArray:
        """Return the derivatives (N, w + 1) of the torque by the delays and the compliance.

        ``slopes`` (N, w) are those by position.
        """
        twist = slopes.sum(axis=1) * self.data.effort
        return np.column_stack([slopes * self.data.velocity[:, None], twist])


def refined(phases: Phases, data: JointResidual, twists: bool) -> Phases:
    """Return the phases of the least sum of squares near ``phases``, with their deviations.

    ``twists``: whether the compliance is sought, too; otherwise it is zero. The Jacobian is that
    of Kaufman (BIT 15, 1975) for variable projection; deviations are those of a sandwich over
    blocks.
    """
    from scipy.optimize import least_squares

    count = len(phases.orders)
    speed, torque = (float(np.sqrt(np.mean(x**2))) for x in (data.velocity, data.effort))
    scale = 1.0 / np.append(phases.orders * speed, np.max(phases.orders) * max(torque, 1e-9))
    bound = np.append(np.full(count, LONGEST_DELAY), np.inf)
    begin = np.append(phases.delays, phases.compliance if twists else 0.0)
    free = np.arange(count + twists)

    def at(values: FloatArray) -> Phases:
        whole = np.zeros(count + 1)
        whole[free] = values * scale[free]
        return replace(phases, delays=whole[:count], compliance=float(whole[count]))

    kept: dict[bytes, Fit] = {}

    def fit(values: FloatArray) -> Fit:
        """Return the fit; slopes are asked for where the residual just was."""
        key = values.tobytes()
        if key not in kept:
            kept.clear()
            kept[key] = Fit.of(at(values), data)
        return kept[key]

    def left(values: FloatArray) -> FloatArray:
        return fit(values).left()

    def slopes(values: FloatArray) -> FloatArray:
        found = fit(values)
        by_phase = found.by_phases(found.slopes())[:, free] * scale[free]
        return -found.beside(by_phase)

    found = least_squares(
        left, np.clip(begin[free], -bound[free], bound[free]) / scale[free], slopes,
        bounds=(-bound[free] / scale[free], bound[free] / scale[free]), max_nfev=STEPS,
        ftol=SETTLED, xtol=SETTLED)
    std = np.zeros(count + 1)
    std[free] = scale[free] * _deviations(np.asarray(found.jac), found.fun, data)
    return replace(at(found.x), delay_std=std[:count], compliance_std=float(std[count]))


def compliance_of_load(phases: Phases, data: JointResidual) -> tuple[float, float]:
    """Return the compliance [rad/(N m)] that the load shows, and its deviation.

    A phase that differs with the direction of motion, wave by wave, is left to other causes:
    where the effort is mostly friction, it looks like compliance. One step of Gauss and Newton
    beside `refined`, with the directions as further parameters.
    """
    fit = Fit.of(phases, data)
    slopes = fit.slopes()
    direction = np.tanh(data.velocity / data.slow)[:, None] * slopes
    by_phase = fit.by_phases(slopes)
    whole = np.column_stack([by_phase, direction])
    whole /= np.maximum(np.linalg.norm(whole, axis=0), 1e-300)
    whole, left = fit.beside(whole), fit.left()
    step = np.linalg.lstsq(whole, left, rcond=1e-6)[0]
    twist = len(phases.orders)
    scale = 1.0 / np.linalg.norm(by_phase[:, twist])
    deviation = _deviations(whole, left - whole @ step, data)[twist]
    return phases.compliance + float(scale * step[twist]), float(scale * deviation)


def _deviations(slopes: FloatArray, left: FloatArray, data: JointResidual) -> FloatArray:
    """Return deviations (k,) of parameters with ``slopes`` (N, k) from what is ``left`` (N,)."""
    scores = np.stack([np.bincount(data.block, column * left) for column in slopes.T])
    bread = np.linalg.pinv(slopes.T @ slopes)
    return np.sqrt(np.diag(bread @ (scores @ scores.T) @ bread))
