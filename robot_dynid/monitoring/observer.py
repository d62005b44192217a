"""External torque of an identified model: no acceleration is needed."""

from __future__ import annotations

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.state_monitor import EXTERNAL, ContactLevels, Follower
from robot_dynid.signals.causal import corner_of
from robot_dynid.types import FloatArray


class Observer:
    """An identified model beside the motion; see `Follower`. Raises UsageError for a bad gain."""

    def __init__(self, model: IdentifiedModel, gain: float,
                 contact: ContactLevels | None = None) -> None:
        if not gain > 0.0 or not np.isfinite(gain):
            raise UsageError(f'gain of the observer must be positive, is {gain:g} 1/s')
        friction = model.structure.friction_of(model.torque_model.robot.rigid)
        unbounded = np.full(model.robot.n, np.inf)
        still = np.zeros(model.robot.n)
        self._follow = Follower(
            model.links, friction.with_values(model.standard),
            contact or ContactLevels(unbounded, still, still), gain,
            corner_of(model.preprocessing.cutoff))

    def __call__(self, states: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the results (N, 9, n) of ``states`` (N, 3, n), ``steps`` (N,) after another."""
        return self._follow(states, steps)

    def along(self, motion: MonitorInput) -> FloatArray:
        """Return the results (N, 9, n) of a recording."""
        steps = np.diff(motion.time, prepend=motion.time[:1])
        steps[list(motion.starts)] = 0.0
        return self(np.stack([motion.position, motion.velocity, motion.effort], axis=1), steps)


@one_blas_thread()
def external_torque(model: IdentifiedModel, motion: MonitorInput, gain: float) -> FloatArray:
    """Return the external torque (N, n) [N m] of a recording, as it would come on line."""
    return Observer(model, gain).along(motion)[:, EXTERNAL]
