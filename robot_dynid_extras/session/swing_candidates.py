"""Swings that an adaptive sequence may choose, and what their efforts tell of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.estimation.experiment import BATCH_SECONDS, TorqueModel
from robot_dynid.excitation.precision import UNKNOWN, Precision, Resting, covariance_of
from robot_dynid.trajectories.single_joint import RAMP, SineSwing
from robot_dynid.types import FloatArray, Samples

#: instants looked at per period
INSTANTS = 50


@dataclass(frozen=True, eq=False)
class Candidate:
    """A swing and what its efforts tell of parameters in terms of their sizes.

    ``own`` (b, b) the information of the effort that averages out, of the joint that swings and of
    those no friction holds, ``more`` (b, b) that of as many periods at full amplitude again;
    ``resting`` (n, b, b) the integral over time of the variations of the joints at rest.
    """

    swing: SineSwing
    own: FloatArray
    more: FloatArray
    resting: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, swing: SineSwing, precision: Precision) -> Candidate:
        """Look at the efforts of a swing."""
        full = RAMP / swing.frequency
        columns, step = _columns(model, swing, (0.0, swing.duration))
        again, _ = _columns(model, swing, (full, swing.duration - full))
        columns, again = columns * precision.sizes[:, None], again * precision.sizes[:, None]
        held = model.held & (np.arange(model.robot.n) != swing.index)
        weight = np.where(held, 0.0, 1.0 / precision.density**2)
        varying = _varying(columns, step) * held[:, None, None]
        own, more = (step * np.einsum('i,ibk,ick->bc', weight, found, found, optimize=True)
                     for found in (columns, again))
        return cls(swing, own, more, step * varying @ varying.transpose(0, 2, 1))

    @property
    def again(self) -> float:
        """Length of as many periods again, s."""
        return self.swing.periods / self.swing.frequency

    def told(self, periods: int) -> Told:
        """Return the information from so many ``periods``."""
        times = periods / self.swing.periods
        seconds = replace(self.swing, periods=periods).duration
        return Told(self.swing.index, self.own + (times - 1.0) * self.more,
                    seconds / self.swing.duration * self.resting, seconds)

    def longer(self, times: int) -> Told:
        """Return the information from so many times its periods more, once it swings."""
        seconds = times * self.again
        return Told(self.swing.index, times * self.more,
                    seconds / self.swing.duration * self.resting, seconds)


@dataclass(frozen=True, eq=False)
class Told:
    """Information from ``seconds`` of swings of the joint ``index``: ``own`` (b, b), ``resting``
    (n, b, b), see `Candidate`.
    """

    index: int
    own: FloatArray
    resting: FloatArray
    seconds: float


@dataclass(frozen=True, eq=False)
class Known:
    """State of a session in terms of the parameters' sizes, see `Precision`."""

    own: FloatArray
    resting: Resting
    density: FloatArray
    held: FloatArray

    @classmethod
    def of(cls, precision: Precision) -> Known:
        """Return the state after what was measured."""
        sizes = precision.sizes
        both = sizes[:, None] * sizes
        return cls(both * precision.information + np.eye(len(sizes)) / UNKNOWN**2,
                   Resting(both * precision.resting.grams, precision.resting.seconds),
                   precision.density, precision.held)

    def after(self, told: Sequence[Told]) -> Known:
        """Return the state after more swings."""
        own, grams, seconds = (np.array(one) for one in (
            self.own, self.resting.grams, self.resting.seconds))
        for one in told:
            own += one.own
            grams[one.index] += one.resting
            seconds[one.index] += one.seconds
        return replace(self, own=own, resting=Resting(grams, seconds))

    @property
    def information(self) -> FloatArray:
        """Information (b, b)."""
        return self.own + self.resting.information(self.density, self.held)

    @cached_property
    def deviations(self) -> FloatArray:
        """Standard deviations (b,)."""
        return np.asarray(np.sqrt(np.diag(covariance_of(self.information))))

    def deviations_after(self, told: Sequence[Told]) -> FloatArray:
        """Return the standard deviations (K, b) after each of K swings by itself."""
        total = self.own + sum(self._at_rest)
        found = []
        for one in told:
            j = one.index
            now = self._resting(j, self.resting.grams[j] + one.resting, one.seconds)
            found.append(total - self._at_rest[j] + one.own + now)
        return np.sqrt(np.diagonal(covariance_of(np.array(found)), axis1=1, axis2=2))

    @cached_property
    def _at_rest(self) -> list[FloatArray]:
        return [self._resting(j, grams) for j, grams in enumerate(self.resting.grams)]

    def _resting(self, j: int, grams: FloatArray, more: float = 0.0) -> FloatArray:
        variance = self.density**2 + (self.resting.seconds[j] + more) * self.held**2
        return np.asarray(np.tensordot(1.0 / variance, grams, 1))


def _columns(
    model: TorqueModel, swing: SineSwing, span: tuple[float, float]
) -> tuple[FloatArray, float]:
    """Return the base regressor (n, b, N) within ``span`` [s], and the step of its samples [s]."""
    count = int(np.ceil(INSTANTS * (span[1] - span[0]) * swing.frequency))
    step = (span[1] - span[0]) / count
    time: FloatArray = span[0] + step * (np.arange(float(count)) + 0.5)
    motion = swing.sample(time)
    samples = Samples(model.robot.joints, time, motion.position, motion.velocity,
                      motion.acceleration)
    return model.columns(samples), step


def _varying(columns: FloatArray, step: float) -> FloatArray:
    """Return the variation of ``columns`` (n, b, N) within each batch of an estimate."""
    batch = (step * np.arange(columns.shape[2]) / BATCH_SECONDS).astype(int)
    first, length = np.unique(batch, return_index=True, return_counts=True)[1:]
    means = np.add.reduceat(columns, first, axis=2) / length
    return np.asarray(columns - means[:, :, batch])
