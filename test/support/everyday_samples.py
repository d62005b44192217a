"""Everyday motion sample by sample, beside the information it is reduced to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from everyday_arm import EverydayArm, known_model

from robot_dynid.estimation.information import Accumulator
from robot_dynid.types import FloatArray
from robot_dynid_extras.health.everyday_motion import EverydayMotion

MODEL = known_model()
STEP = 0.02


@dataclass(eq=False)
class Samples:
    """A stretch as it is: columns (n, b, N), effort (N, n), and how long each joint slid, s."""

    columns: FloatArray
    effort: FloatArray
    sliding: FloatArray

    @property
    def motion(self) -> EverydayMotion:
        """The stretch as information, in batches of a second."""
        torque = MODEL.torque_model
        made = Accumulator(torque.reduction.names, torque.structure, 50)
        made.begin()
        made.add(self.columns, self.effort, self.effort)
        information = made.information()
        return EverydayMotion(information, np.tile(
            self.sliding / len(information.batches), (len(information.batches), 1)), STEP)

    def left(self, values: FloatArray) -> FloatArray:
        """Return the effort (N, n) that ``values`` leave."""
        return np.asarray(self.effort - np.einsum('b,jbn->nj', values, self.columns))

    def scatter(self, values: FloatArray) -> FloatArray:
        """Return the squared integrals (n,) over each second."""
        seconds = self.left(values).reshape(5, 50, -1).sum(axis=1)
        return np.asarray(np.sum((STEP * seconds)**2, axis=0))


def stretches(count: int) -> list[Samples]:
    """Return stretches of noisy motion; joints slide for 5, 0.9 and 0.8 s of each."""
    rng, pool = np.random.default_rng(7), EverydayArm(MODEL, MODEL.values, pool=4).stretches
    truth = MODEL.values * rng.uniform(0.9, 1.2, len(MODEL.values))
    found = []
    for k in range(count):
        columns = pool[k % 4]
        noise = rng.normal(0.0, [0.5, 0.8, 0.3], (250, 3)) + rng.normal(0.0, 0.3, (5, 3)).repeat(
            50, axis=0)
        found.append(Samples(columns, np.einsum('b,jbn->nj', truth, columns) + noise,
                             np.array([5.0, 0.9, 0.8])))
    return found
