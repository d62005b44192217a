"""Plain weighted least squares of its own, which identification of the strange plant must beat.

Columns of Pinocchio, rotors, Coulomb and viscous friction and an offset, all through one low-pass
filter; beside it the links of the description with friction and offset fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.signal import butter, filtfilt
from strange_arms import Arm, inverse_dynamics, regressor
from strange_plant import Recorded

from robot_dynid.types import FloatArray

#: samples per second that are looked at, and the low-pass filter [Hz]
LOOKS, CUTOFF = 100.0, 10.0
#: speeds [rad/s, m/s] below which no Coulomb friction counts
STICKS = 1e-3
#: singular values below this share of the largest are open; columns are scaled by their size in
#: states anywhere within the limits, but by no less than this
OPEN, TINY = 1e-3, 1e-9
#: seconds at both ends that are not looked at: filters settle
ENDS = 0.5


class PlainFit:
    """Weighted least squares on Pinocchio's regressor, rotors, Coulomb, viscous, offset."""

    def __init__(self, arm: Arm, recorded: Recorded) -> None:
        self.arm = arm
        states, effort = _looked_at(recorded)
        columns = self._columns(states)
        n, width = arm.n, columns.shape[2]
        scale = np.maximum(np.linalg.norm(self._columns(_anywhere(arm)), axis=(0, 1)), TINY)
        weights = np.ones(n)
        for _ in range(2):
            weighted = (columns / scale * weights[:, None]).reshape(-1, width)
            values = np.linalg.lstsq(weighted, (effort * weights).ravel(), rcond=OPEN)[0] / scale
            weights = 1.0 / np.maximum(np.std(effort - columns @ values, axis=0), 1e-9)
        self.values = values
        self.friction = []
        links = inverse_dynamics(arm.nominal, *states)
        for j in range(n):
            own = _friction_columns(states[1][:, j])
            self.friction.append(np.linalg.lstsq(own, effort[:, j] - links[:, j], rcond=None)[0])

    def _columns(self, states: Sequence[FloatArray]) -> FloatArray:
        n, (_, v, a) = self.arm.n, states
        links = regressor(self.arm.nominal, *states)
        each = np.concatenate([_friction_columns(v).reshape(len(v), n, 3), a[:, :, None]], axis=2)
        alone = np.zeros((len(v), n, 4 * n))
        for j in range(n):
            alone[:, j, 4 * j:4 * j + 4] = each[:, j]
        return np.concatenate([links, alone], axis=2)

    def errors(self, recordings: Iterable[Recorded]) -> tuple[FloatArray, FloatArray]:
        """Return the relative errors (n,) of plain least squares, and of nominal links."""
        errors, size = np.zeros((2, self.arm.n)), np.zeros(self.arm.n)
        for recorded in recordings:
            states, _ = _looked_at(recorded)
            measured = _every(recorded.log.effort, recorded)
            links = inverse_dynamics(self.arm.nominal, *states)
            friction = np.column_stack([_friction_columns(v) @ values for v, values in zip(
                states[1].T, self.friction, strict=True)])
            errors += [((self._columns(states) @ self.values - measured)**2).sum(axis=0),
                       ((links + friction - measured)**2).sum(axis=0)]
            size += (measured**2).sum(axis=0)
        plain, nominal = np.sqrt(errors / size)
        return plain, nominal


def _anywhere(arm: Arm) -> tuple[FloatArray, ...]:
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 200, arm.n))
    return arm.middle + q * arm.half, v * arm.speed, a * arm.acceleration


def _friction_columns(v: FloatArray) -> FloatArray:
    return np.stack([v, np.sign(v) * (np.abs(v) > STICKS), np.ones_like(v)], axis=-1)


def _every(values: FloatArray, recorded: Recorded) -> FloatArray:
    time = recorded.log.time
    inside = np.flatnonzero((time > time[0] + ENDS) & (time < time[-1] - ENDS))
    return values[inside[::max(1, round(1.0 / (np.median(np.diff(time)) * LOOKS)))]]


def _looked_at(recorded: Recorded) -> tuple[tuple[FloatArray, ...], FloatArray]:
    """Return filtered states (3 of (K, n)) and the effort (K, n) filtered likewise."""
    log = recorded.log
    step = float(np.median(np.diff(log.time)))
    even = np.arange(log.time[0], log.time[-1], step)
    b, a = butter(4, min(CUTOFF, 0.4 / step) * 2.0 * step)

    def smooth(values: FloatArray) -> FloatArray:
        return filtfilt(b, a, np.column_stack([
            np.interp(even, log.time, one) for one in values.T]), axis=0)

    q = smooth(log.position)
    v = np.gradient(q, step, axis=0)
    parts = (q, v, np.gradient(v, step, axis=0), smooth(log.effort))
    rows = [np.column_stack([np.interp(log.time, even, one) for one in part.T]) for part in parts]
    *states, effort = (_every(part, recorded) for part in rows)
    return tuple(states), effort
