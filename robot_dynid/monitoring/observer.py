"""External torque of an identified model: no acceleration is needed."""

from __future__ import annotations

import numpy as np

from robot_dynid.effects.slow_changes import SlowTables
from robot_dynid.errors import UsageError
from robot_dynid.friction import AxisFriction
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.state_monitor import ContactLevels, Follower
from robot_dynid.signals.causal import corner_of
from robot_dynid.types import FloatArray

#: speed [rad/s, m/s] of rest, where no recording says more
REST = 0.01


class Observer:
    """An identified model beside the motion; see `Follower`. Raises UsageError for a bad gain."""

    def __init__(self, model: IdentifiedModel, gain: float,
                 contact: ContactLevels | None = None) -> None:
        if not gain > 0.0 or not np.isfinite(gain):
            raise UsageError(f'gain of the observer must be positive, is {gain:g} 1/s')
        unbounded = np.full(model.robot.n, np.inf)
        still = np.zeros(model.robot.n)
        self._follow = Follower(
            model.links, friction_of(model),
            contact or ContactLevels(unbounded, still, still),
            (gain, corner_of(model.preprocessing.cutoff)),
            SlowTables.of(model.adaptations, gain, slowest(model)))

    def __call__(self, states: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the results (N, 10, n) of ``states`` (N, 3, n), ``steps`` (N,) after another."""
        return self._follow(states, steps)

    def set_levels(self, moving: FloatArray, holding: FloatArray) -> None:
        """Take other levels of contact (n,) [N m] from the next state on."""
        self._follow.set_levels(moving, holding)

    def along(self, motion: MonitorInput) -> FloatArray:
        """Return the results (N, 10, n) of a recording."""
        steps = np.diff(motion.time, prepend=motion.time[:1])
        steps[list(motion.starts)] = 0.0
        return self(np.stack([motion.position, motion.velocity, motion.effort], axis=1), steps)


def friction_of(model: IdentifiedModel) -> AxisFriction:
    """Return the friction of all axes, with its past."""
    friction = model.structure.friction_of(model.torque_model.robot.rigid)
    return friction.with_values(model.standard)


def slowest(model: IdentifiedModel) -> FloatArray:
    """Return the speeds (n,) [rad/s, m/s] below which friction may be anything."""
    levels = model.noise_levels
    return np.full(model.robot.n, REST) if levels is None else levels.speed
