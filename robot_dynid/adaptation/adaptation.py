"""Slow changes of one joint, and following them along recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.adaptation.leftover import Leftover
from robot_dynid.adaptation.slow_coefficients import SlowCoefficients
from robot_dynid.adaptation.warming import Warming
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Slow changes of one joint: ``warming`` by its own friction, and ``slow`` coefficients.

    Either is None where the recordings of the fit showed none.
    """

    warming: Warming | None = None
    slow: SlowCoefficients | None = None

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored, in plain types."""
        return {key: value for key, value in to_plain(self).items() if value is not None}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Adaptation:
        """Return the changes that `plain` wrote. Raises ValueError, TypeError where damaged."""
        return from_plain(cls, content)


class Following:
    """Follows the slow changes of one joint from recording to recording.

    ``waves`` is the number of columns of its torque ripple.
    """

    def __init__(self, adaptation: Adaptation, waves: int = 0) -> None:
        self._warming, self._slow = adaptation.warming, adaptation.slow
        self._warmth = None if self._warming is None else np.zeros(len(self._warming.seconds))
        self._state = None if self._slow is None else self._slow.unknown(waves)

    def __call__(self, leftover: Leftover) -> tuple[FloatArray, FloatArray]:
        """Return torques (N,) [N m] to add to the model: for warming, and for all slow changes.

        Warming uses nothing of the measured effort, slow coefficients that before each sample.
        """
        warmed = np.zeros(len(leftover.time))
        if self._warming is not None and self._warmth is not None:
            warmed = self._warming.torque(leftover, self._warming.warmth(leftover, self._warmth))
        if self._slow is None or self._state is None:
            return warmed, warmed
        means = self._slow.means(replace(leftover, left=leftover.left - warmed), self._state)
        return warmed, warmed + np.einsum('np,np->n', leftover.columns, means)
