"""External torque from the generalised momentum: no acceleration is needed."""

from __future__ import annotations

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.identified.friction_stream import friction_along
from robot_dynid.identified.live import Live
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray


class MomentumObserver:
    """The external torque, through a first-order low-pass of corner ``gain`` [1/s].

    r = K (p - p0 - integral(effort - friction + C^T qd - g + r) dt), so dr/dt = K (external - r).
    Within a step the drive is taken to change linearly and the external torque to be constant;
    the step is then solved exactly, so every length of it is stable. Source: De Luca, Mattone,
    ICRA 2003 and 2005.
    """

    def __init__(self, gain: float) -> None:
        if not gain > 0.0 or not np.isfinite(gain):
            raise UsageError(f'gain of the observer must be positive, is {gain:g} 1/s')
        self.gain = gain
        self._before: tuple[FloatArray, FloatArray] | None = None
        self._torque = np.zeros(0)

    def reset(self) -> None:
        """Begin anew at the next state, with an external torque of zero."""
        self._before = None

    def __call__(self, momentum: FloatArray, drive: FloatArray, step: float) -> FloatArray:
        """Return the external torque (n,) [N m], ``step`` [s] after the state before.

        ``momentum`` p (n,); ``drive`` (n,) = effort - friction + C^T qd - g [N m].
        """
        before, self._before = self._before, (momentum, drive)
        if before is None:
            self._torque = np.zeros_like(momentum)
            return self._torque
        outside = (momentum - before[0]) / step - 0.5 * (before[1] + drive)
        share = -np.expm1(-self.gain * step)
        self._torque = self._torque + share * (outside - self._torque)
        return self._torque


def external_torque(model: IdentifiedModel, motion: Live, gain: float) -> FloatArray:
    """Return the external torque (N, n) [N m] of a recording, as it would come on line."""
    friction = friction_along(model, motion)
    momentum, rate = model.momentum(motion.position, motion.velocity)
    drive = motion.effort - friction + rate
    observer, found, first = MomentumObserver(gain), np.empty_like(drive), set(motion.starts)
    steps = np.diff(motion.time, prepend=motion.time[0])
    for k, step in enumerate(steps):
        if k in first:
            observer.reset()
        found[k] = observer(momentum[k], drive[k], step)
    return found
