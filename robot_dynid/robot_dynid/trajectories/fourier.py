"""Finite Fourier series that start and end at rest, drawn at random within limits.

q(t) = o + sum_k s_k sin(k w t) + c_k cos(k w t), k = 1..N, w = 2 pi f, over whole periods.
Velocity and acceleration vanish at both ends if sum_k k s_k = 0 and sum_k k^2 c_k = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.numbers import FREQUENCY, POSITION, SECONDS, NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.trajectories.limits import MotionLimits, largest_gain
from robot_dynid.trajectories.trajectory import Motion, Parametric, Peaks, clipped, parameter
from robot_dynid.types import FloatArray, frozen

#: the cost of a series grows with the square of the number of harmonics
HARMONICS = NumberRange(2, 100, whole=True, note='a single harmonic cannot start at rest, and '
                        'more than this add nothing')
PERIODS = NumberRange(1, 10_000, whole=True)
#: instants per period and harmonic at which peaks are evaluated; between them a trigonometric
#: polynomial of degree N exceeds its largest value on M instants at most by 1 / cos(pi N / M)
#: (Ehlich and Zeller, Math. Z. 86, 1964): here 1.000075
INSTANTS_PER_HARMONIC = 256
PEAK_FACTOR = 1.0 / float(np.cos(np.pi / INSTANTS_PER_HARMONIC))


@dataclass(frozen=True)
class FourierOptions:
    """Settings of a random Fourier series.

    ``duration`` s in total, made of ``periods`` equal periods; at least 2 ``harmonics``, because
    one harmonic cannot start at rest.
    """

    duration: float = setting(20.0, SECONDS)
    harmonics: int = setting(5, HARMONICS)
    periods: int = setting(1, PERIODS)

    def __post_init__(self) -> None:
        require_allowed(self, "option '{}'")


@dataclass(frozen=True, eq=False)
class FourierTrajectory(Parametric):
    """A finite Fourier series per joint.

    ``base_frequency`` Hz; ``offset`` (n,) rad (m); ``sine``, ``cosine`` (n, N) rad (m), the
    amplitudes of harmonics 1..N; ``periods``, the number of periods executed.
    """

    joints: tuple[str, ...]
    base_frequency: float = parameter(FREQUENCY)
    offset: FloatArray = parameter(POSITION, 'n')
    sine: FloatArray = parameter(POSITION, 'n', 'N', longest=HARMONICS.high)
    cosine: FloatArray = parameter(POSITION, 'n', 'N')
    periods: int = parameter(PERIODS, default=1)

    @property
    def duration(self) -> float:
        """Duration of all periods, s."""
        return self.periods / self.base_frequency

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        t = clipped(time, self.duration)
        turns = np.outer(t * self.base_frequency, self._harmonics)
        phase = 2.0 * np.pi * (turns - np.floor(turns))
        return self._motion(np.sin(phase), np.cos(phase))

    def peaks(self) -> Peaks:
        """Return bounds that hold at every instant of a period."""
        count = INSTANTS_PER_HARMONIC * len(self._harmonics)
        index = np.outer(np.arange(count), self._harmonics.astype(int)) % count
        phase = 2.0 * np.pi * index / count
        motion = self._motion(np.sin(phase), np.cos(phase))
        low, high = motion.position.min(axis=0), motion.position.max(axis=0)
        middle, half = 0.5 * (low + high), 0.5 * (high - low) * PEAK_FACTOR
        highest = (np.abs(getattr(motion, name)).max(axis=0) * PEAK_FACTOR
                   for name in ('velocity', 'acceleration', 'jerk'))
        return Peaks(middle - half, middle + half, *highest)

    def element(self) -> dict[str, Any] | None:
        """Return the frequencies [Hz], and offset and amplitudes [rad, m] of every joint."""
        return {'type': 'fourier', 'periods': self.periods,
                'frequencies': (self.base_frequency * self._harmonics).tolist(),
                'joints': {joint: {
                    'offset': float(self.offset[j]),
                    'amplitudes': np.hypot(self.sine[j], self.cosine[j]).tolist(),
                    'sine': self.sine[j].tolist(), 'cosine': self.cosine[j].tolist(),
                } for j, joint in enumerate(self.joints)}}

    @property
    def _harmonics(self) -> FloatArray:
        return np.arange(1.0, np.shape(self.sine)[1] + 1.0)

    def _motion(self, sin: FloatArray, cos: FloatArray) -> Motion:
        """Return the motion for sin and cos of k w t, (T, N) each."""
        rate = 2.0 * np.pi * self.base_frequency * self._harmonics
        s, c = self.sine, self.cosine
        orders = []
        for _ in range(4):
            orders.append(sin @ s.T + cos @ c.T)
            s, c = -rate * c, rate * s  # the derivative is again such a series
        return Motion(self.offset + orders[0], *orders[1:])


def random_fourier(
    limits: MotionLimits, options: FourierOptions, generator: np.random.Generator
) -> FourierTrajectory:
    """Draw a Fourier series and scale every joint until it reaches its first limit.

    The range used is centred in the allowed one. The limits hold at every instant, not only at
    samples.
    """
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    shape = (len(limits.joints), options.harmonics)
    k = np.arange(1.0, options.harmonics + 1.0)
    # amplitudes fall with 1/k, so that all harmonics contribute equally to the velocity
    sine = _without(generator.standard_normal(shape) / k, k)
    cosine = _without(generator.standard_normal(shape) / k, k**2)
    frequency = options.periods / options.duration
    unit = FourierTrajectory(
        limits.joints, frequency, np.zeros(shape[0]), sine, cosine, options.periods)
    peaks = unit.peaks()
    gain = largest_gain(peaks, limits)
    offset = limits.centre - gain * 0.5 * (peaks.lower + peaks.upper)
    return FourierTrajectory(
        limits.joints, frequency, frozen(offset), frozen(gain[:, None] * sine),
        frozen(gain[:, None] * cosine), options.periods)


def _without(rows: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the rows projected onto the complement of ``direction``."""
    return rows - np.outer(rows @ direction, direction) / float(direction @ direction)
