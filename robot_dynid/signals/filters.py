"""Zero-phase low-pass filtering."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.kernels.low_pass import zero_phase
from robot_dynid.types import FloatArray

ORDER = 4


def zero_phase_low_pass(values: FloatArray, cutoff: float, dt: float) -> FloatArray:
    """Filter (N, k) along time with a Butterworth of order 4, forward and backward.

    ``cutoff`` [Hz] is the -3 dB frequency of one pass; ``dt`` [s]. Stretches too short to filter
    come back as their mean. Raises UsageError unless 0 < cutoff < Nyquist frequency.
    """

    checked_cutoff(cutoff, dt)
    sections = _sections(cutoff, dt)
    padding = min(len(values) - 1, int(np.ceil(3.0 / (cutoff * dt))))
    if padding < 1:
        return np.broadcast_to(values.mean(axis=0), values.shape).copy()
    return _filtered(sections, values, padding)


def _filtered(sections: FloatArray, values: FloatArray, padding: int) -> FloatArray:
    """Filter (N, k) along time, forward and backward; columns stay contiguous."""
    filtered = np.empty(values.shape[::-1])
    zero_phase(sections, padding, np.require(values.T, np.float64, ['C', 'W']), filtered)
    return filtered.T


@lru_cache(maxsize=64)
def _sections(cutoff: float, dt: float) -> FloatArray:
    from scipy import signal

    return np.asarray(signal.butter(ORDER, cutoff, fs=1.0 / dt, output='sos'))


def checked_cutoff(cutoff: float, dt: float) -> None:
    """Raise UsageError unless ``cutoff`` [Hz] is between 0 and the Nyquist frequency."""
    nyquist = 0.5 / dt
    if not 0.0 < cutoff < nyquist:
        raise UsageError(f'cut-off {cutoff:g} Hz must lie between 0 and the Nyquist frequency '
                         f'{nyquist:g} Hz')


def first_order_zero_phase(values: FloatArray, corner: float, dt: float) -> FloatArray:
    """Filter (N, k) with magnitude 1 / (1 + (w / corner)^2) and no phase; ``corner`` [rad/s].

    A first-order low-pass run forward and backward has exactly this response.
    """
    from scipy import signal

    if corner * dt >= np.pi:
        return values.copy()
    b, a = signal.butter(1, corner, fs=2.0 * np.pi / dt)
    padding = min(len(values) - 1, int(np.ceil(5.0 / (corner * dt))))
    return _filtered(np.array([[*b, 0.0, *a, 0.0]]), values, max(padding, 0))
