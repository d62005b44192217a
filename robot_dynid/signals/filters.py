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
    """Return the sections (s, 6) of the Butterworth of ORDER, each with unit gain at rest.

    Poles on a circle around zero, moved by the bilinear transform; `scipy.signal` has the same,
    and takes a second to import. Source: Oppenheim, Schafer 2010, Discrete-time signal
    processing, section 7.2.
    """
    angles = np.pi * np.arange(ORDER + 1, 2 * ORDER, 2) / (2 * ORDER)
    radius = np.tan(np.pi * cutoff * dt)
    poles = radius * np.exp(1j * angles)
    poles = (1.0 + poles) / (1.0 - poles)
    back = np.column_stack([np.ones(len(poles)), -2.0 * poles.real, np.abs(poles)**2])
    return np.hstack([np.outer(back.sum(axis=1) / 4.0, [1.0, 2.0, 1.0]), back])


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
    if corner * dt >= np.pi:
        return values.copy()
    radius = np.tan(0.5 * corner * dt)  # as of `_sections`, with one pole
    gain = radius / (1.0 + radius)
    padding = min(len(values) - 1, int(np.ceil(5.0 / (corner * dt))))
    section = np.array([[gain, gain, 0.0, 1.0, 2.0 * gain - 1.0, 0.0]])
    return _filtered(section, values, max(padding, 0))
