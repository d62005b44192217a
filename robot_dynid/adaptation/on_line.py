"""Slow changes of all joints as tables of the kernel that follows joint states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robot_dynid.adaptation.adaptation import Adaptation
from robot_dynid.adaptation.slow_coefficients import GATE
from robot_dynid.kernels.adaptation import FALLS, HEAD, POWER, RISE
from robot_dynid.types import FloatArray

#: coefficients followed on line, viscous and dry friction: ripple hardly passes the observer
COUNT = 2


class SlowTables(NamedTuple):
    """Slow changes of n joints, none for n = 0, with up to k time constants of warmth.

    ``rates`` (n, k) [1/s] of the warmth; ``laws`` (n, 2, 2 + k) by kind of friction its mean
    power, rise and falls; ``prior`` (n, 2, m) deviations and rates of the coefficients;
    ``settings`` (n, 4): noise, gate, least speed and gain, see `kernels.adaptation`.
    """

    rates: FloatArray
    laws: FloatArray
    prior: FloatArray
    settings: FloatArray

    @classmethod
    def of(cls, adaptations: Sequence[Adaptation | None], gain: float, speed: FloatArray
           ) -> SlowTables:
        """Return the tables for an observer of ``gain`` [1/s]; joints move above ``speed`` (n,).

        No ``adaptations`` give empty ones.
        """
        n = len(adaptations)
        known = [one.warming for one in adaptations if one and one.warming]
        k = max((len(one.seconds) for one in known), default=1)
        found = cls(np.ones((n, k)), np.zeros((n, 2, FALLS + k)), np.zeros((n, 2, COUNT)),
                    np.ones((n, 4)))
        found.laws[:, :, POWER] = 1.0
        found.settings[:] = np.array([1.0, GATE, 0.0, gain])
        found.settings[:, 2] = speed[:n]
        for j, one in enumerate(adaptations):
            if one and one.warming:
                count = len(one.warming.seconds)
                found.rates[j, :count] = 1.0 / one.warming.seconds
                found.laws[j, :, POWER] = one.warming.power
                found.laws[j, :, RISE] = one.warming.rise
                found.laws[j, :, FALLS:FALLS + count] = one.warming.fall
            if one and one.slow:
                found.prior[j] = one.slow.prior(0)
                found.settings[j, 0] = one.slow.noise
        return found

    def memory(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the memory before the first state: a cold robot of which nothing is known.

        Pasts (n, h), states of the coefficients (n, 2 + m, m), and scales (2, n) of viscous and
        dry friction.
        """
        n, k = self.rates.shape
        states = np.zeros((n, 2 + COUNT, COUNT))
        for state, prior in zip(states, self.prior, strict=True):
            state[2:] = np.diag(prior[0] ** 2)
        return np.zeros((n, HEAD + k + 2 * COUNT)), states, np.ones((2, n))
