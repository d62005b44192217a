"""Swings of single joints: where they are allowed, how wide and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.estimation.staged.procedure import LockedJointsMotion
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.single_joint import SineSwing, fastest, unit_peaks
from robot_dynid.types import FloatArray, frozen

#: a swing of a quarter turn to both sides shows all of gravity; more would be slower
LARGEST = 0.5 * np.pi
#: random configurations looked at for every one that is added
CANDIDATES = 8
#: shares of the largest amplitude tried, and of the highest frequency for a slow swing
WIDTHS, SLOW = (1.0, 0.5, 0.25, 0.1), 0.05
HALVINGS = 12
#: the narrow swing is left out where it would be wider than this share of the wide one
NARROW = 0.7


@dataclass(frozen=True, eq=False)
class Swings:
    """Swings of single joints, the others locked, within what ``planner`` allows."""

    planner: Planner

    @property
    def limits(self) -> MotionLimits:
        """The limits of the motion."""
        return self.planner.limits

    @property
    def home(self) -> FloatArray:
        """The middle (n,) of the position ranges."""
        return self.limits.centre

    def motions(self, joint: int, places: Iterable[FloatArray]) -> Iterator[LockedJointsMotion]:
        """Yield the widest allowed swing of ``joint`` in every locked configuration (n,)."""
        for place in places:
            motion, _ = self._widest(joint, place)
            if motion is not None:
                yield motion

    def first(self, joint: int, places: Iterable[FloatArray]) -> LockedJointsMotion:
        """Return the first of `motions` in locked configurations ``places``, each (n,) rad (m).

        Raises DynIdError naming the joint when there is none.
        """
        reason: str | None = None
        for place in places:
            motion, reason = self._widest(joint, place)
            if motion is not None:
                return motion
        raise _nothing_allowed(self.limits.joints[joint], reason)

    def _widest(
        self, joint: int, locked: FloatArray
    ) -> tuple[LockedJointsMotion | None, str | None]:
        """Return the swing about the middle of the joint's range, or else about where it is.

        None, and why not, when not even a narrow one is allowed.
        """
        half, reason = float(self.limits.half_range[joint]), None
        for share in WIDTHS:
            width = share * min(LARGEST, half)
            for middle in (self.home[joint], locked[joint]):
                position = np.array(locked)
                position[joint] = self.home[joint] + np.clip(
                    middle - self.home[joint], width - half, half - width)
                motion = LockedJointsMotion(joint, position, width)
                reason = self._objection(motion)
                if reason is None:
                    return motion, None
        return None, reason

    def _objection(self, motion: LockedJointsMotion) -> str | None:
        fast = fastest(self.limits, motion.moving, motion.amplitude)
        quick = _swing(self.limits, motion, 1, fast)
        reason = (self.planner.overloaded(_swing(self.limits, motion, 1, SLOW * fast))
               or self.planner.blocked(quick) or self.planner.unproven(quick))
        if reason is None and not self.planner.reachable(motion.position):
            return 'there is no way to it'
        return reason

    def somewhere(
        self, rng: np.random.Generator, count: int = CANDIDATES
    ) -> Iterator[FloatArray]:
        """Yield random configurations (n,), at most a quarter turn from the middle."""
        reach = np.minimum(LARGEST, self.limits.half_range)
        for _ in range(count):
            yield self.home + reach * rng.uniform(-1.0, 1.0, len(reach))


def wide_and_narrow(planner: Planner, motion: LockedJointsMotion, periods: int) -> list[SineSwing]:
    """Return a wide swing, which shows the weight, and a narrow one, which shows the inertia.

    The narrow one is where velocity and acceleration limits are reached together.
    """
    joint, peaks = motion.moving, unit_peaks()
    speed, rate = planner.limits.velocity[joint], planner.limits.acceleration[joint]
    corner = float(speed**2 * peaks[1] / (rate * peaks[0] ** 2))
    widths = [motion.amplitude]
    if corner < NARROW * motion.amplitude:
        widths.append(corner)
    return [_fast_swing(planner, replace(motion, amplitude=a), periods) for a in widths]


def _fast_swing(planner: Planner, motion: LockedJointsMotion, periods: int) -> SineSwing:
    """Raise the frequency until the first limit is reached: speed, acceleration, jerk, effort."""
    highest = fastest(planner.limits, motion.moving, motion.amplitude)
    low, high, frequency, reason = 0.0, highest, highest, None
    for _ in range(HALVINGS):
        broken = planner.broken(_swing(planner.limits, motion, periods, frequency))
        if broken is None:
            low = frequency
        else:
            high, reason = frequency, broken
        if low == highest:
            break
        frequency = 0.5 * (low + high)
    if low == 0.0:
        raise _nothing_allowed(planner.limits.joints[motion.moving], reason)
    return _swing(planner.limits, motion, periods, low)


def _swing(
    limits: MotionLimits, motion: LockedJointsMotion, periods: int, frequency: float
) -> SineSwing:
    return SineSwing(limits.joints, limits.joints[motion.moving], frozen(motion.position),
                     motion.amplitude, frequency, periods)


def _nothing_allowed(joint: str, reason: str | None) -> DynIdError:
    return DynIdError(
        f"stage '{joint}': the limits allow no excitation of joint '{joint}', since {reason} even "
        "in slow motion; narrow the positions with option 'limits: {joint: {position: [lower, "
        "upper]}}'")
