"""Momentum observer: external torque without accelerations, and contact by thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from robot_dynid.dynamics.rigid_body import _tree
from robot_dynid.dynamics.rotors import Links
from robot_dynid.effects.slow_changes import SlowTables
from robot_dynid.errors import UsageError
from robot_dynid.friction import AxisFriction
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.kernels.monitor import (
    CLAIMED,
    CONTACT,
    DRY,
    DRY_SCALE,
    EXTERNAL,
    FRICTION,
    HOLDING,
    MEMORY_ROWS,
    MOVING,
    PREDICTED,
    RESIDUAL,
    RESULT_ROWS,
    THRESHOLD,
    VISCOUS_SCALE,
    follow,
)
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.numbers import NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.settings import require_allowed, setting
from robot_dynid.signals.filters import corner_of
from robot_dynid.types import FloatArray

__all__ = ['CLAIMED', 'CONTACT', 'DRY', 'DRY_SCALE', 'EXTERNAL', 'FRICTION', 'PREDICTED',
           'RESIDUAL', 'RESULT_ROWS', 'THRESHOLD', 'VISCOUS_SCALE', 'ContactLevels',
           'ContactSettings', 'Follower', 'Observer', 'contact_levels', 'friction_of', 'slowest']

#: speed [rad/s, m/s] below which a joint rests, unless learnt from recordings
REST_SPEED = 0.01
#: joint states that contact must last at any rate: a jerk between two of them looks like external
#: torque in one or two
CONTACT_STATES = 3
#: ranges of the settings of contact
MARGIN = NumberRange(1.0, 1e6)
RELEASE = NumberRange(1e-3, 1.0)
DURATION = NumberRange(0.0, 60.0, 's')
CONTACT_TORQUE = NumberRange(1e-9, 1e9, 'N m')


@dataclass(frozen=True)
class ContactSettings:
    """Thresholds of contact at a joint.

    Contact begins when |r| minus the friction claimed to hold has exceeded ``margin`` times the
    noise level in motion, plus the holding friction at rest, for ``duration`` [s] and
    CONTACT_STATES joint states; it ends when it has been below ``release`` times that for as long.
    ``thresholds`` [N m], one for all joints or one each, replace ``margin`` times the level in
    motion.
    """

    margin: float = setting(2.0, MARGIN)
    release: float = setting(0.6, RELEASE)
    duration: float = setting(0.005, DURATION)
    thresholds: tuple[float, ...] = setting((), CONTACT_TORQUE)

    def __post_init__(self) -> None:
        require_allowed(self, 'contact {}')


@dataclass(frozen=True, eq=False)
class ContactLevels:
    """A joint slower than ``speed`` needs ``holding`` more than ``moving``, each (n,).

    Contact ends below ``release`` times the threshold; begin and end must last for ``duration``
    [s] and ``states`` joint states.
    """

    moving: FloatArray
    holding: FloatArray
    speed: FloatArray
    release: float = 1.0
    duration: float = 0.0
    states: int = 1

    @classmethod
    def infinite(cls, n: int) -> ContactLevels:
        """Return levels of ``n`` joints that never report contact."""
        return cls(np.full(n, np.inf), np.zeros(n), np.zeros(n))


def contact_levels(
    robot: RobotModel, noise: NoiseLevels, gain: float, settings: ContactSettings
) -> ContactLevels:
    """Return the contact levels of every joint for an observer with ``gain`` [1/s].

    Raises UsageError if the number of thresholds does not match the robot.
    """
    given = settings.thresholds
    if len(given) not in (0, 1, robot.n):
        raise UsageError(f'{len(given)} contact thresholds for {robot.n} joints; give one for '
                         f'all, or one each for {", ".join(robot.joints)}')
    moving = np.broadcast_to(np.array(given), robot.n) if given else (
        settings.margin * noise.at_gain(gain))
    return ContactLevels(moving, noise.holding, noise.speed, settings.release, settings.duration,
                         CONTACT_STATES)


class Follower:
    """Observer of external torque along joint states, one by one or in batches.

    External torque r by the momentum observer of De Luca and Mattone (ICRA 2003, 2005) with
    ``gain`` [1/s]: r = K (p - p0 - integral(effort - friction + C^T qd - g + r) dt). Within a step
    the drive torque is taken as linear and the external torque as constant; the step is then
    solved exactly, so it is stable at any length. ``corners`` [1/s]: the gain, and that of each of
    the two stages of the low-pass before the residual. ``slow`` are the slow changes.
    """

    def __init__(self, links: Links, friction: AxisFriction, contact: ContactLevels,
                 corners: tuple[float, float], slow: SlowTables) -> None:
        gain, corner = corners
        n, contiguous = links.robot.n, np.ascontiguousarray
        geometry, parents, gravity = (array.copy() for array in _tree(links.robot))
        tables = (friction.axes, friction.transmission, friction.straight, friction.terms)
        self._model = (
            (geometry, parents, gravity), contiguous(links.parameters).copy(),
            links.rotors.tables, tuple(contiguous(table).copy() for table in tables),
            contiguous(friction.links).copy(), tuple(contiguous(table).copy() for table in slow))
        self._contact = (
            np.stack([contact.moving, contact.holding, contact.speed]),
            np.array([gain, corner, contact.release, contact.duration, contact.states]))
        past = np.zeros(len(friction.terms) + len(friction.axes))
        self._memory = np.zeros((MEMORY_ROWS, n)), past, slow.memory()

    def __call__(self, states: FloatArray, steps: FloatArray, levels: FloatArray | None = None
                 ) -> FloatArray:
        """Return the results (N, 10, n) of ``states`` (N, 3, n): position, velocity, effort.

        ``steps`` (N,) [s] since the previous states; zero restarts. ``levels`` (N, 2, n) [N m] per
        state replace those of contact, in motion and of holding friction. Results by row:
        PREDICTED effort and RESIDUAL in the middle of the step (NaN without step), EXTERNAL
        torque, the part CLAIMED by friction that holds slow joints, THRESHOLD of the rest, CONTACT
        (0 or 1), FRICTION and its DRY part, the factors VISCOUS_SCALE and DRY_SCALE on the law's
        viscous and other friction.
        """
        results = np.empty((len(steps), RESULT_ROWS, states.shape[2]))
        states, steps = np.ascontiguousarray(states), np.ascontiguousarray(steps)
        changes = [0, len(steps)]
        if levels is not None:
            changes[1:1] = (1 + np.flatnonzero((levels[1:] != levels[:-1]).any(axis=(1, 2)))
                            ).tolist()
        for start, stop in pairwise(changes):
            if levels is not None and stop > start:
                self._contact[0][[MOVING, HOLDING]] = levels[start]
            rows = slice(start, stop)
            follow(self._model, self._contact, self._memory, (states[rows], steps[rows]),
                   results[rows])
        return results


class Observer(Follower):
    """Momentum observer of an identified model; raises UsageError for an invalid gain."""

    def __init__(self, model: IdentifiedModel, gain: float,
                 contact: ContactLevels | None = None) -> None:
        if not gain > 0.0 or not np.isfinite(gain):
            raise UsageError(f'observer gain must be positive, is {gain:g} 1/s')
        super().__init__(
            model.links, friction_of(model), contact or ContactLevels.infinite(model.robot.n),
            (gain, corner_of(model.preprocessing.cutoff)),
            SlowTables.of(model.learnt.get('adaptation', ()), gain, slowest(model)))

    def along(self, motion: MonitorInput) -> FloatArray:
        """Return the results (N, 10, n) of a recording."""
        return self(np.stack([motion.position, motion.velocity, motion.effort], axis=1),
                    motion.steps)


def friction_of(model: IdentifiedModel) -> AxisFriction:
    """Return the friction of all axes, with its history."""
    friction = model.structure.friction_of(model.torque_model.robot.rigid)
    return friction.with_values(model.standard)


def slowest(model: IdentifiedModel) -> FloatArray:
    """Return the speeds (n,) [rad/s, m/s] below which friction is undetermined."""
    levels = model.noise_levels
    return np.full(model.robot.n, REST_SPEED) if levels is None else levels.speed
