"""Exactly one period of a motion: low-pass and derivatives in the frequency domain.

There are no ends and thus no transients, and the derivative of every harmonic is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.signals.filters import ORDER, check_cutoff
from robot_dynid.types import FloatArray

#: power of a harmonic over that of the noise from which it counts as motion; noise alone reaches
#: it with a probability of exp(-20) = 2e-9 per harmonic
HARMONIC_POWER = 20.0


def low_pass(values: FloatArray, cutoff: float, dt: float) -> FloatArray:
    """Return one period (M, k) filtered with the response of `zero_phase_low_pass`, without ends.

    Raises UsageError unless 0 < cutoff < Nyquist frequency.
    """
    return _back(np.fft.rfft(values, axis=0) * _gain(len(values), cutoff, dt), len(values))


def undo_delay(values: FloatArray, lag: float, dt: float) -> FloatArray:
    """Return one period (M, k) advanced by ``lag`` [s], to undo a delay."""
    turn = np.exp(1j * lag * _rates(len(values), dt))[:, None]
    return _back(np.fft.rfft(values, axis=0) * turn, len(values))


def motion(
    position: FloatArray, cutoff: float, dt: float, noise: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return position, velocity and acceleration (M, n) of one period of ``position`` (M, n).

    ``noise`` (n,) is the white noise on ``position``: above the last harmonic that exceeds it
    nothing is differentiated. Below, each harmonic is differentiated exactly, after the low-pass
    of ``cutoff`` [Hz] that the effort passes as well.
    """
    count = len(position)
    spectrum = np.fft.rfft(position, axis=0)
    power = np.abs(spectrum) ** 2
    for j, band in enumerate(last_harmonic(power, count * noise**2)):
        spectrum[band + 1:, j] = 0.0
    spectrum *= _gain(count, cutoff, dt)
    rate = 1j * _rates(count, dt)[:, None]
    first = rate * spectrum
    return _back(spectrum, count), _back(first, count), _back(rate * first, count)


def drop_noise(values: FloatArray, noise: FloatArray) -> FloatArray:
    """Return a period (M, n) up to the last harmonics above the white ``noise`` (n,).

    Columns of NaN remain.
    """
    count = len(values)
    spectrum = np.fft.rfft(values, axis=0)
    for j, band in enumerate(last_harmonic(np.abs(spectrum) ** 2, count * noise**2)):
        spectrum[band + 1:, j] = 0.0
    return _back(spectrum, count)


def last_harmonic(power: FloatArray, noise: FloatArray) -> list[int]:
    """Return the last harmonic of each of n signals whose ``power`` (K, n) exceeds the noise.

    ``noise`` (n,) is the power of the noise in every harmonic.
    """
    above = power > HARMONIC_POWER * noise
    above[0] = True
    return [int(np.flatnonzero(column)[-1]) for column in above.T]


def _rates(count: int, dt: float) -> FloatArray:
    return np.asarray(2.0 * np.pi * np.fft.rfftfreq(count, dt), dtype=np.float64)


def _gain(count: int, cutoff: float, dt: float) -> FloatArray:
    """Return the response (K, 1) of a Butterworth filter run forward and backward."""
    from scipy import signal

    check_cutoff(cutoff, dt)
    sections = signal.butter(ORDER, cutoff, fs=1.0 / dt, output='sos')
    _, response = signal.sosfreqz(sections, worN=_rates(count, dt) * dt)
    return np.asarray(np.abs(response) ** 2)[:, None]


def _back(spectrum: NDArray[np.complex128], count: int) -> FloatArray:
    return np.asarray(np.fft.irfft(spectrum, n=count, axis=0), dtype=np.float64)
