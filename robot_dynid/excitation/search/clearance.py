"""Distances of a scene as a constraint of the optimiser of excitations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from robot_dynid.collision.clearance import prove
from robot_dynid.collision.scene import Nearest, Scene
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

Rates = tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]
# Kept beside the clearance, since between the instants of the search pairs come nearer, m.
MARGIN = 5e-3
# A pair counts as far apart from here, m, or from half of what it can be at all.
RANGE, SHARE = 0.04, 0.5


@dataclass(frozen=True, eq=False)
class KeepClear:
    """One value per pair of bodies: s (2 - s) with s = (distance - kept) / range, at most 1.

    Smooth where one pair of shapes is the nearest; linear below the distance that is kept.
    """

    scene: Scene
    name: str = 'clearance'
    _last: dict[str, tuple[FloatArray, Nearest]] = field(default_factory=dict, repr=False)
    _last_rates: dict[str, tuple[Nearest, Rates]] = field(default_factory=dict, repr=False)

    @property
    def kept(self) -> FloatArray:
        """Distances (m,) m that are kept at the instants of the search."""
        scene = self.scene
        room = np.minimum(MARGIN, 0.5 * SHARE * (scene.largest - scene.required))
        return np.asarray(scene.required + room)

    @property
    def ranges(self) -> FloatArray:
        """Distances (m,) m beyond those kept at which pairs count as far apart."""
        return np.asarray(np.minimum(RANGE, SHARE * (self.scene.largest - self.kept)))

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m): 0 at the distance that is kept, 1 far apart."""
        share = self._share(motion.position)
        return np.where(share > 0.0, share * (2.0 - share), 2.0 * share)

    def worst(self, motion: Motion) -> str:
        """Return the pair nearest to its required distance, and the distance, as a sentence."""
        near = self.scene.nearest(motion.position, self.kept + self.ranges)
        pair = int(np.argmin(np.min(near.distance - self.scene.required, axis=0)))
        return (f'{" and ".join(self.scene.pairs[pair])} come as near as '
                f'{np.min(near.distance[:, pair]):.4g} m, {self.scene.required[pair]:.4g} m are '
                'to be kept')

    def pullback(
        self, motion: Motion, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (T, n) of sum(weights * values)."""
        still = np.zeros_like(motion.position)
        rows, columns, rates = self._rates(motion.position)
        gradient = np.zeros_like(motion.position)
        np.add.at(gradient, rows, weights[rows, columns, None] * rates)
        return gradient, still, still.copy()

    def squares(self, motion: Motion, weights: FloatArray) -> FloatArray:
        """Return (T, n, n): the sum of weights * gradient gradient^T of the values."""
        rows, columns, rates = self._rates(motion.position)
        out = np.zeros((*motion.position.shape, motion.position.shape[1]))
        scaled = weights[rows, columns, None, None] * rates[:, :, None] * rates[:, None, :]
        np.add.at(out, rows, scaled)
        return out

    def _rates(self, q: FloatArray) -> Rates:
        """Return instants (E,), pairs (E,) and gradients (E, n) of what is not far apart."""
        share = self._share(q)
        known = self._last_rates.get('rates')
        if known is not None and known[0] is self._last['near'][1]:
            return known[1]
        near = self._last['near'][1]
        rows, columns = np.nonzero(near.measured & (share < 1.0))
        own = share[rows, columns]
        slope = 2.0 * np.where(own > 0.0, 1.0 - own, 1.0) / self.ranges[columns]
        found = rows, columns, slope[:, None] * self.scene.rates(q, near, (rows, columns))
        self._last_rates['rates'] = (near, found)
        return found

    def _share(self, q: FloatArray) -> FloatArray:
        last = self._last.get('near')
        if last is None or not np.array_equal(last[0], q):
            last = (q.copy(), self.scene.nearest(q, self.kept + self.ranges))
            self._last['near'] = last
        return np.minimum((last[1].distance - self.kept) / self.ranges, 1.0)


def keeping_clear(criteria: DesignCriteria, scene: Scene) -> DesignCriteria:
    """Return criteria that also keeps all pairs of a scene apart, and proves it in the end."""
    kept = (KeepClear(scene),) if scene.pairs else ()
    return replace(criteria, constraints=(*criteria.constraints, *kept),
                   proof=partial(prove, scene))
