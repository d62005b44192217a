"""Contact detection: thresholds on the external torque above its noise, with hysteresis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.monitoring.state_monitor import ContactLevels
from robot_dynid.numbers import NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.settings import require_allowed, setting

#: joint states that contact must last, however far apart they are: a jerk between two of them
#: looks like external torque in one or two
LEAST_STATES = 3


MARGIN = NumberRange(1.0, 1e6)
RELEASE = NumberRange(1e-3, 1.0)
DURATION = NumberRange(0.0, 60.0, 's')
THRESHOLD = NumberRange(1e-9, 1e9, 'N m')


@dataclass(frozen=True)
class ContactSettings:
    """Thresholds of contact at a joint.

    On when |r| less what friction is claimed to hold has been above ``margin`` times the noise
    level in motion, plus what friction may hold at rest, for ``duration`` [s] and LEAST_STATES
    joint states; off when it has been below ``release`` times that for as long. ``thresholds``
    [N m], one for all joints or one each, take the place of ``margin`` times the level in motion.
    """

    margin: float = setting(2.0, MARGIN)
    release: float = setting(0.6, RELEASE)
    duration: float = setting(0.005, DURATION)
    thresholds: tuple[float, ...] = setting((), THRESHOLD)

    def __post_init__(self) -> None:
        require_allowed(self, 'contact {}')


def contact_levels(
    robot: RobotModel, noise: NoiseLevels, gain: float, settings: ContactSettings
) -> ContactLevels:
    """Return the levels of every joint for an observer with ``gain`` [1/s].

    Raises UsageError when the number of thresholds does not fit the robot.
    """
    given = settings.thresholds
    if len(given) not in (0, 1, robot.n):
        raise UsageError(f'{len(given)} contact thresholds for {robot.n} joints; give one for '
                         f'all, or one each for {", ".join(robot.joints)}')
    moving = np.broadcast_to(np.array(given), robot.n) if given else (
        settings.margin * noise.at_gain(gain))
    return ContactLevels(moving, noise.holding, noise.speed, settings.release, settings.duration,
                         LEAST_STATES)
