"""Hysteresis states of dry friction from the position of one axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.model._hysteresis_kernel import fill_dahl, fill_stops
from robot_dynid.types import FloatArray


def stop_states(
    position: FloatArray, first: NDArray[np.int64], lengths: FloatArray
) -> FloatArray:
    """Return the states (k, N) of stop operators with ``lengths`` (k,) at ``position`` (N,).

    ``first`` (S + 1,) holds the first sample of every segment, and the end; each begins at zero.
    """
    out = np.empty((len(lengths), len(position)))
    fill_stops(np.ascontiguousarray(position), first, lengths, out)
    return out


def dahl_state(position: FloatArray, first: NDArray[np.int64], length: float) -> FloatArray:
    """Return the state (N,) of Dahl's law at ``position`` (N,); segments begin at zero."""
    out = np.empty(len(position))
    fill_dahl(np.ascontiguousarray(position), first, float(length), out)
    return out
