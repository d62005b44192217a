"""Linear equations with known noise, as chunks of samples."""

from __future__ import annotations

import numpy as np

from robot_dynid.estimation.information import (
    Accumulator,
)

NAMES = ('a', 'b', 'c', 'd', 'e')


#: parameter e acts on joint 2 only
STRUCTURE = np.array([[1, 1, 1, 1, 0], [1, 0, 1, 1, 1]], dtype=bool)


TRUE = np.array([1.0, -2.0, 0.5, 30.0, 0.01])


NOISE = np.array([0.05, 2.0])


class Data:
    """Two joints with very different noise, as tall matrices."""

    def __init__(self, count, seed=0, structure=STRUCTURE):
        rng = np.random.default_rng(seed)
        scale = np.array([1.0, 10.0, 0.1, 1.0, 100.0])
        self.columns = rng.normal(size=(2, 5, count)) * scale[None, :, None]
        self.columns *= structure[:, :, None]
        clean = np.einsum('ikn,k->ni', self.columns, TRUE)
        self.effort = clean + NOISE * rng.normal(size=(count, 2)) + 0.3
        self.raw = self.effort + 0.1 * rng.normal(size=(count, 2))

    def accumulated(self, batch, chunk=17, structure=STRUCTURE):
        """Return the information, given in chunks as the experiment gives it."""
        accumulator = Accumulator(NAMES, structure, batch)
        first = 0
        while first < len(self.effort):
            stop = min(first + chunk, len(self.effort))
            accumulator.add(self.columns[:, :, first:stop], self.effort[first:stop],
                            self.raw[first:stop])
            first = stop
        return accumulator.information()

    def stacked(self, weights=(1.0, 1.0), rows=None):
        """Return the weighted tall matrix and effort of all joints."""
        rows = slice(None) if rows is None else rows
        tall = np.concatenate([w * self.columns[i][:, rows].T for i, w in enumerate(weights)])
        return tall, np.concatenate([w * self.effort[rows, i] for i, w in enumerate(weights)])
