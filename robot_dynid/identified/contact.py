"""Contact from the external torque: thresholds above those of quiet motion, with hysteresis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.identified.quiet import Quiet
from robot_dynid.model.robot import RobotModel
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class ContactSettings:
    """When a joint is in contact.

    On when |r| has been above ``margin`` times the quiet level in motion, plus what friction may
    hold, for ``duration`` [s]; off when it has been below ``release`` times that for as long. ``thresholds`` [N m], one for all
    joints or one each, take the place of ``margin`` times the level in motion.
    """

    margin: float = 2.0
    release: float = 0.6
    duration: float = 0.005
    thresholds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.margin >= 1.0 or not np.isfinite(self.margin):
            raise UsageError(f'contact margin must be at least 1, is {self.margin:g}')
        if not 0.0 < self.release <= 1.0:
            raise UsageError('contact release must lie above 0 and be at most 1, is '
                             f'{self.release:g}')
        if not self.duration >= 0.0 or not np.isfinite(self.duration):
            raise UsageError(f'contact duration must not be negative, is {self.duration:g} s')
        if not all(np.isfinite(t) and t > 0.0 for t in self.thresholds):
            raise UsageError(f'contact thresholds must be positive [N m], are {self.thresholds}')


class ContactDetector:
    """Contact of every joint from the external torque of an observer with ``gain`` [1/s].

    Raises UsageError when the number of thresholds does not fit the robot.
    """

    def __init__(self, robot: RobotModel, quiet: Quiet, gain: float,
                 settings: ContactSettings) -> None:
        given = settings.thresholds
        if len(given) not in (0, 1, robot.n):
            raise UsageError(f'{len(given)} contact thresholds for {robot.n} joints; give one for '
                             f'all, or one each for {", ".join(robot.joints)}')
        self._base = np.broadcast_to(given, robot.n) if given else (
            settings.margin * quiet.at_gain(gain))
        self._rise = quiet.holding
        self._speed = quiet.speed
        self._gain = gain
        self._settings = settings
        self.contact = np.zeros(robot.n, dtype=bool)
        self.reset()

    def reset(self) -> None:
        """Begin anew, without contact; joints count as slow until they have moved."""
        n = len(self.contact)
        self.contact = np.zeros(n, dtype=bool)
        self.threshold = self._base + self._rise
        self._share = np.ones(n)
        self._waiting = np.zeros(n)

    def __call__(self, torque: FloatArray, velocity: FloatArray, step: float) -> FloatArray:
        """Take external torque and velocity (n,), ``step`` [s] after the ones before.

        Returns the thresholds (n,) [N m] for a contact to begin; ``contact`` has changed.
        """
        slow = np.abs(velocity) < self._speed
        self._share += -np.expm1(-self._gain * step) * (slow - self._share)
        self.threshold = self._base + self._rise * self._share
        size = np.abs(torque)
        other = np.where(self.contact, size < self._settings.release * self.threshold,
                         size > self.threshold)
        self._waiting = np.where(other, self._waiting + step, 0.0)
        change = other & (self._waiting >= self._settings.duration)
        if change.any():
            self.contact = self.contact ^ change
            self._waiting[change] = 0.0
        return self.threshold
