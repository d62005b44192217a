"""Hysteresis states of dry friction from the position of one axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.kernels.hysteresis import fill_dahl, fill_stops
from robot_dynid.types import FloatArray


def stop_states(
    position: FloatArray, first: NDArray[np.int64], lengths: FloatArray,
    begin: FloatArray | None = None,
) -> FloatArray:
    """Return the states (k, N) of stop operators with ``lengths`` (k,) at ``position`` (N,).

    ``first`` (S + 1,) holds the first sample of every segment, and the end; ``begin`` (S,) the
    states there, zero by default.
    """
    out = np.empty((len(lengths), len(position)))
    fill_stops(np.ascontiguousarray(position), first, lengths, _begin(first, begin), out)
    return out


def dahl_state(
    position: FloatArray, first: NDArray[np.int64], length: float,
    begin: FloatArray | None = None,
) -> FloatArray:
    """Return the state (N,) of Dahl's law at ``position`` (N,); segments as in `stop_states`."""
    out = np.empty(len(position))
    fill_dahl(np.ascontiguousarray(position), first, float(length), _begin(first, begin), out)
    return out


def _begin(first: NDArray[np.int64], begin: FloatArray | None) -> FloatArray:
    return np.zeros(len(first) - 1) if begin is None else np.ascontiguousarray(begin)
