"""Stiffness of a gear from its motor alone: resonance of two masses. Experimental.

Where the link has no encoder, the motor still feels it: effort on a motor of inertia J behind a
spring K and a damper D to a link of inertia M turns it by theta_d / tau =

    (M s^2 + D s + K) / (J M s^3 + (D (J + M) + f M) s^2 + (K (J + M) + f D) s + f K),

f being viscous friction. It hardly moves at the antiresonance sqrt(K / M), where the link swings
against it, and most at the resonance sqrt(K / J + K / M). All of J, M, K, D, f follow from the
frequency response around both. M is what the joint carries in the pose it is held in, the other
joints being stiff. Dry friction is a constant, and drops out, only while the motor keeps turning.

Source: Spong, ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319; Bendat, Piersol, Random Data,
4th ed., section 9.1 (frequency responses and their deviations).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, reported
from robot_dynid.numbers import FREQUENCY
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import repair
from robot_dynid.types import FloatArray, RawLog

#: a name in quotes: NumPy 1.21 has no types of complex numbers with parameters
ComplexArray: TypeAlias = 'NDArray[np.complexfloating[Any, Any]]'
#: stretches of half the overlap that spectra are averaged over, and as how many each counts
STRETCHES, INDEPENDENT = 12, 0.6
#: frequencies count from this coherence on, up to this share of the sampling frequency, and where
#: the motion has so many times the power it has at the highest fifth of all: what the drive makes
#: of the noise of its own encoder is coherent, too, and shows the drive instead of the gear
COHERENT, HIGHEST, ABOVE_NOISE = 0.5, 0.2, 100.0
LEAST_FREQUENCIES = 12
#: two masses must explain the response so many times better than one
BETTER = 2.0
#: starts of the search: antiresonances over the band, squared ratios of resonance to it
STARTS, RATIOS = 14, (1.3, 2.0, 4.0, 10.0, 30.0)
NAMES = ('J', 'M', 'K', 'D', 'f')
WIDTH = 1.96  # of 95 % intervals
#: what the response owes to sensors and to torques held over a period of the drive, as deviations
#: of the logarithms of NAMES: measured on the simulated arm at 1 kHz, at most 1 % and 7 %
SYSTEMATIC = np.array([0.01, 0.01, 0.01, 0.05, 0.05])


@dataclass(frozen=True, eq=False)
class Response:
    """Motor velocity over effort: ``frequency`` (F,) Hz, ``value`` (F,), ``deviation`` (F,).

    The deviation is that of the real and of the imaginary part of the logarithm.
    """

    frequency: FloatArray
    value: ComplexArray
    deviation: FloatArray


@dataclass(frozen=True)
class TwoMasses:
    """Fit of two masses; ``parameters`` maps NAMES to value, lower and upper end of its interval.

    J and M in kg m^2, K in N m/rad, D and f in N m s/rad; ``antiresonance`` and ``resonance`` Hz;
    ``band`` Hz and number of ``frequencies`` they are from; ``misfit`` root mean square of the
    error over the deviation of the response, by which intervals are widened where above one.
    """

    parameters: dict[str, tuple[float, float, float]]
    antiresonance: float
    resonance: float
    band: tuple[float, float]
    frequencies: int
    misfit: float


def response(
    position: FloatArray, effort: FloatArray, step: float, band: Sequence[float] | None = None
) -> Response:
    """Return the frequency response of a motor from ``effort`` (T,) N m to its velocity.

    ``position`` (T,) rad on the joint side, both every ``step`` s; ``band`` (low, high) Hz.
    Raises DataError where effort and motion are not coherent at enough frequencies.
    """
    length = 2 * len(position) // (STRETCHES + 1)
    frequency, power = _spectrum(effort, effort, step, length)
    motion = _spectrum(position, position, step, length)[1].real
    cross = _spectrum(effort, position, step, length)[1]
    coherence = np.abs(cross)**2 / np.maximum(power.real * motion, 1e-300)
    low, high = band or (3.0 / (length * step), HIGHEST / step)
    floor = float(np.median(motion[frequency > 0.4 / step]))
    used = (frequency >= low) & (frequency <= high) & (coherence >= COHERENT)
    used &= motion > ABOVE_NOISE * floor
    if used.sum() < LEAST_FREQUENCIES:
        raise DataError(f'effort and motion of the motor are coherent at {int(used.sum())} '
                        f'frequencies of {low:.3g} to {high:.3g} Hz: too few for a frequency '
                        'response; excite it with a chirp or many sines, the motor turning all '
                        'the time, and record longer')
    gamma = np.minimum(coherence[used], 1.0 - 1e-6)
    deviation = np.sqrt((1.0 - gamma) / (2.0 * gamma * INDEPENDENT * STRETCHES))
    omega = 2.0 * np.pi * frequency[used]
    return Response(frequency[used], 1j * omega * cross[used] / power[used], deviation)


def _spectrum(
    a: FloatArray, b: FloatArray, step: float, length: int
) -> tuple[FloatArray, ComplexArray]:
    """Return frequencies [Hz] and the cross spectrum, the line taken off each stretch."""
    from scipy.signal import csd, detrend

    def linear(stretch: FloatArray) -> FloatArray:
        return np.asarray(detrend(stretch, axis=-1))

    frequency, found = csd(a, b, fs=1.0 / step, nperseg=length, detrend=linear)
    return np.asarray(frequency, dtype=np.float64), np.asarray(found)


def two_masses(found: Response) -> TwoMasses:
    """Fit J, M, K, D, f to a frequency response.

    Raises DataError where no antiresonance with its resonance shows inside the frequencies.
    """
    from scipy.optimize import least_squares

    s = np.asarray(2j * np.pi * found.frequency)

    def both(x: FloatArray) -> FloatArray:
        return _errors(two_mass_response(np.exp(x), s), found)

    def single(x: FloatArray) -> FloatArray:
        return _errors(np.asarray(1.0 / (np.exp(x[0]) * s + np.exp(x[1]))), found)

    best = None
    for start in _starts(found):
        fit = least_squares(both, np.log(start), loss='soft_l1', max_nfev=200)
        if best is None or fit.cost < best.cost:
            best = fit
    assert best is not None
    values = np.exp(best.x)
    inertia, link, stiffness = values[:3]
    anti, peak = np.sqrt(stiffness / link), np.sqrt(stiffness / inertia + stiffness / link)
    low, high = float(found.frequency[0]), float(found.frequency[-1])
    one = least_squares(single, np.log([inertia + link, values[4]]), loss='soft_l1')
    inside = 2.0 * np.pi * low < anti and peak < 2.0 * np.pi * high
    if not inside or one.cost < BETTER * best.cost:
        raise DataError(f'no antiresonance with its resonance between {low:.3g} and {high:.3g} Hz:'
                        ' the gear is too stiff to be seen there, or the motion does not excite '
                        'it; excite and sample higher frequencies, or take the joint as rigid')
    misfit = float(np.sqrt(np.mean(_errors(two_mass_response(values, s), found)**2)))
    slopes = np.asarray(best.jac)
    covariance = np.linalg.pinv(slopes.T @ slopes) * max(misfit, 1.0)**2
    half = np.exp(WIDTH * np.sqrt(np.diag(covariance) + SYSTEMATIC**2))
    return TwoMasses(
        {name: (float(v), float(v / h), float(v * h))
         for name, v, h in zip(NAMES, values, half, strict=True)},
        float(anti / 2.0 / np.pi), float(peak / 2.0 / np.pi), (low, high),
        len(found.frequency), misfit)


def two_mass_response(values: FloatArray, s: ComplexArray) -> ComplexArray:
    """Return motor velocity over effort (F,) at ``s`` (F,) [1/s]; ``values`` (5,) are NAMES."""
    j, m, k, d, f = values
    above = m * s**2 + d * s + k
    below = j * m * s**3 + (d * (j + m) + f * m) * s**2 + (k * (j + m) + f * d) * s + f * k
    return np.asarray(above / below)


def _errors(modelled: ComplexArray, found: Response) -> FloatArray:
    """Return real and imaginary parts (2 F,) of the logarithmic error over its deviation."""
    error = np.log(modelled / found.value) / found.deviation
    return np.concatenate([error.real, error.imag])


def _starts(found: Response) -> list[FloatArray]:
    """Return the best starts of a grid of antiresonances and ratios of inertias."""
    s = 2j * np.pi * found.frequency
    tried = []
    for anti in 2.0 * np.pi * np.geomspace(found.frequency[0], found.frequency[-1], STARTS):
        for ratio in RATIOS:
            shape = np.array([1.0 / (ratio - 1.0), 1.0, anti**2, 0.1 * anti, 0.1])
            # the scale of all five at once divides the response
            scale = np.exp(np.mean(np.log(np.abs(two_mass_response(shape, s) / found.value))))
            tried.append(scale * shape)
    tried.sort(key=lambda start: float(np.sum(np.minimum(
        np.abs(_errors(two_mass_response(start, s), found)), 100.0))))
    return tried[:6]


#: the others hold still while they move by less than this share of what the joint does
STILL = 0.1
#: the motor keeps turning while it goes back for less than this share of the time
BACK = 0.05


@reported
@one_blas_thread()
def motor_resonance(
    robot: RobotModel, log: RawLog, joint: str, band: Sequence[float] | None = None
) -> tuple[TwoMasses, list[str]]:
    """Return the fit of two masses to the motor of ``joint``, and its warnings.

    The motor's position is ``motor_position`` where it was recorded, ``position`` otherwise (on
    the joint side); ``band`` (low, high) Hz are the frequencies used. Raises UsageError for an
    unknown joint, DataError where the recording does not show a resonance.
    """
    if band is not None:
        FREQUENCY.array(list(band), (2,), 'band')
    j, robot = robot.index(joint), robot.rigid
    repaired = repair(robot, log)
    part = max(repaired.parts, key=lambda p: len(p.time))
    position, own = part.position[:, j], 'position'
    if part.motor_position is not None and np.isfinite(part.motor_position[:, j]).all():
        position, own = part.motor_position[:, j], 'motor_position'
    elif part.motor_position is not None:
        raise DataError(next((note for note in repaired.notes if re.search(
            rf'motor states of (.*, )?{re.escape(joint)}[,:]', note)),
            f'{log.source}: there are no motor states of {joint}'))
    assert part.effort is not None
    effort = robot.motor_torque(part.effort * robot.torque_factors)[:, j]
    found = two_masses(response(position, effort, repaired.step, band))
    return found, [f'experimental: J, M and K hold for small motions in the pose of the '
                   f'recording, from {own} and effort alone', *_spoilt(robot, part, j)]


def _spoilt(robot: RobotModel, part: RawLog, j: int) -> list[str]:
    found = []
    speed = np.gradient(part.position, part.time, axis=0)
    moved = np.sqrt(np.mean(speed**2, axis=0))
    others = [robot.joints[k] for k in range(robot.n) if k != j and moved[k] > STILL * moved[j]]
    if others:
        found.append(f'{", ".join(others)} moved, too: hold the other joints still, their torques '
                     'and the change of pose are taken for those of the gear')
    drift = np.sign(np.mean(speed[:, j]))
    back = float(np.mean(speed[:, j] * drift < 0.0))
    if back > BACK:
        found.append(f'the joint turns back {100.0 * back:.0f} % of the time: dry friction is not '
                     'constant then; let it turn one way while it is shaken')
    return found
