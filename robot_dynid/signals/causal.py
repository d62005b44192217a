"""Causal filters for signals that come sample by sample, at steps that need not be equal.

The low-pass is two equal first-order ones one after the other (critically damped, no overshoot),
each with the exact response to an input held for the length of a step.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.types import FloatArray

#: corner of each of two equal first-order stages over the -3 dB frequency of both together
STAGE_CORNER = 1.0 / np.sqrt(np.sqrt(2.0) - 1.0)


def corner_of(cutoff: float) -> float:
    """Return the corner [1/s] of each stage; ``cutoff`` [Hz] is the -3 dB frequency of both."""
    if not cutoff > 0.0:
        raise UsageError(f'cut-off of the low-pass must be positive, is {cutoff:g} Hz')
    return float(2.0 * np.pi * cutoff * STAGE_CORNER)


def delay_of(cutoff: float, step: float) -> float:
    """Return by how much slow signals come out later [s] at steps of ``step`` [s]."""
    share = -np.expm1(-corner_of(cutoff) * step)
    return float(2.0 * step * (1.0 - share) / share)


class Delay:
    """Signals of a fixed time ago, linear between samples; ``seconds`` at least zero."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._past: deque[tuple[float, FloatArray]] = deque()

    def reset(self) -> None:
        """Forget the past."""
        self._past.clear()

    def __call__(self, time: float, values: FloatArray) -> FloatArray:
        """Take the values at ``time`` [s], return those of ``seconds`` before.

        Until there are such, the oldest ones.
        """
        if self._seconds <= 0.0:
            return values
        past = self._past
        past.append((time, values))
        target = time - self._seconds
        while len(past) > 1 and past[1][0] <= target:
            past.popleft()
        before, old = past[0]
        if before >= target or len(past) == 1:
            return old
        after, new = past[1]
        return old + (target - before) / (after - before) * (new - old)
