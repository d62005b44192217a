"""Time derivatives of uniformly sampled signals, and fusion with measured velocity."""

from __future__ import annotations

import numpy as np

from robot_dynid.signals.filters import first_order_zero_phase
from robot_dynid.types import FloatArray

#: below this frequency [rad/s] position always decides: measured velocity may carry an offset
LEAST_CORNER = 2.0 * np.pi


def derivative(values: FloatArray, dt: float) -> FloatArray:
    """Return the first derivative of (N, k): five-point central differences, error O(dt^4).

    The two samples at either end fall back to second order. At a fifth of the Nyquist frequency
    the response is 0.5 % low, where three points are 6 % low.
    """
    if len(values) < 2:
        return np.zeros_like(values)
    out: FloatArray = np.gradient(values, dt, axis=0, edge_order=1 if len(values) == 2 else 2)
    if len(values) >= 5:
        out[2:-2] = (values[:-4] - 8.0 * values[1:-3] + 8.0 * values[3:-1] - values[4:]) / (
            12.0 * dt)
    return out


def second_difference_noise(values: FloatArray) -> FloatArray:
    """Return the standard deviation (k,) of white noise on a smooth signal (N, k).

    Third differences remove the motion and leave sqrt(20) times the noise; the median makes the
    figure robust against the moments where the motion is not smooth. Where nothing changes (a
    quantised signal at rest) nothing is learnt about the noise.
    """
    if len(values) < 4:
        return np.zeros(values.shape[1])
    third = np.abs(np.diff(values, n=3, axis=0))
    changing = [column[column > 0.0] for column in third.T]
    typical = [np.median(c) if len(c) else 0.0 for c in changing]
    return np.asarray(1.4826 * np.array(typical) / np.sqrt(20.0))


def fused_velocity(position: FloatArray, velocity: FloatArray, dt: float) -> FloatArray:
    """Combine differentiated position with measured velocity, both (N, k), optimally.

    White noise of deviation s_p on position and s_v on velocity makes the least-variance estimate
    ``L d(position)/dt + (1 - L) velocity`` with ``L = 1 / (1 + (w s_p / s_v)^2)``. Position
    decides below the corner s_v / s_p, at least LEAST_CORNER, velocity above (complementary
    Wiener filter).
    """
    differentiated = derivative(position, dt)
    noise_p, noise_v = second_difference_noise(position), second_difference_noise(velocity)
    fused = np.empty_like(velocity)
    for j in range(velocity.shape[1]):
        column = slice(j, j + 1)
        if noise_p[j] <= 0.0:
            fused[:, column] = differentiated[:, column]
            continue
        low, high = differentiated[:, column], velocity[:, column]
        corner = max(noise_v[j] / noise_p[j], LEAST_CORNER)
        fused[:, column] = high + first_order_zero_phase(low - high, corner, dt)
    return fused
