"""Joints that the monitor watches and those that are blind: unknown is not free of contact.

A joint is watched once the observer has followed usable states of it for OBSERVER_CONSTANTS time
constants. It is blind before, while its effort has been missing for longer than INFORMED_STEP,
and always where no threshold holds for it. Outside what the model was trained in it is watched,
with a warning: the model may be wrong there, which looks like contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import RANGE_MARGIN
from robot_dynid.monitoring.monitor_input import INFORMED_STEP, MonitorInput
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray

#: time constants of the observer after which it shows 95 % of what was there when it began
OBSERVER_CONSTANTS = 3.0
#: why a joint is blind, by the number that stands for it, and what to do; 0 is watched
WATCHED, BEGUN, UNUSABLE, NO_LEVEL, REFUSED = range(5)
REASONS = (
    '', 'the observer begins',
    'its values are no numbers, or beyond what the robot can do: check its drive',
    'the model has no noise levels: identify again, or give contact thresholds',
    'refused by the identification (not_identified): check its effort and identify again')


class TrainedRange:
    """Positions and velocities the model was trained in, and RANGE_MARGIN of them more."""

    def __init__(self, model: IdentifiedModel) -> None:
        shape = 2, model.robot.n
        self._middle, self._half = np.zeros(shape), np.full(shape, np.inf)
        for row, name in enumerate(('position', 'velocity')):
            if name in model.trained.quantities:
                low, high = model.trained.quantities[name].T
                self._middle[row] = 0.5 * (low + high)
                self._half[row] = (0.5 + RANGE_MARGIN) * (high - low)
        self._turn = np.zeros(shape)
        self._turn[0, model.robot.types != PRISMATIC] = 2.0 * np.pi

    def outside(self, states: FloatArray) -> NDArray[np.bool_]:
        """Return a mask (..., n) of ``states`` (..., 2, n); whole turns make no difference."""
        off = states - self._middle
        off -= self._turn * np.rint(off / (2.0 * np.pi))
        return np.asarray((np.abs(off) > self._half).any(axis=-2))


def never_watched(model: IdentifiedModel, moving: FloatArray) -> NDArray[np.int64]:
    """Return reasons (n,) for which joints can never be watched, else WATCHED; ``moving`` (n,)."""
    refused = np.isin(model.joints, model.not_identified)
    return np.where(refused, REFUSED, np.where(np.isfinite(moving), WATCHED, NO_LEVEL))


class Sight:
    """Watched and blind joints, from one joint state to the next.

    The external torque of joints that are ``unseen`` (n,) is not known; those that are ``blind``
    (n,) are unseen, or there is no threshold for their contact. Those ``outside`` (n,) are
    outside what the model was trained in.
    """

    def __init__(self, model: IdentifiedModel, moving: FloatArray, gain: float) -> None:
        n = model.robot.n
        self._joints = model.joints
        self._trained = TrainedRange(model)
        self._never = never_watched(model, moving)
        self._settling = OBSERVER_CONSTANTS / gain
        self._elapsed, self._gap = np.zeros(n), np.full(n, np.inf)
        self._cause = np.full(n, BEGUN)
        self._began = ''
        self.unseen = self.blind = np.ones(n, dtype=bool)
        self.outside = np.zeros(n, dtype=bool)

    def take(self, step: float, state: FloatArray, missing: NDArray[np.bool_], began: str
             ) -> None:
        """Take the state (2, n) or more rows, ``step`` [s] after the last.

        A step of zero begins anew, for the reason ``began``; ``missing`` (n,) are the efforts that
        came without use.
        """
        if step <= 0.0:
            self._elapsed[:], self._gap[:], self._cause[:] = 0.0, np.inf, BEGUN
            self._began = began
        self._elapsed += step
        self._gap = np.where(missing, self._gap + step, 0.0)
        self.outside = self._trained.outside(state[:2])
        late = self._gap > INFORMED_STEP
        if late.any():
            self._elapsed[late] = 0.0
            self._cause[late] = UNUSABLE
        self.unseen = (self._elapsed < self._settling) | (self._never == REFUSED)
        self.blind = self.unseen | (self._never == NO_LEVEL)

    def reasons(self) -> dict[str, str]:
        """Return the reasons of blind joints, by name."""
        codes = np.where(self._never != WATCHED, self._never, self._cause)
        return {joint: self._began if code == BEGUN and self._began else REASONS[code]
                for joint, code, blind in zip(
                    self._joints, codes.tolist(), self.blind.tolist(), strict=True) if blind}


@dataclass(frozen=True)
class BlindTime:
    """A stretch from ``start`` to ``stop`` [s] in which contact of a joint could not be seen.

    ``begins`` tells that it is only the observer that begins, at the start of the recording.
    """

    joint: str
    start: float
    stop: float
    reason: str
    begins: bool = False

    @property
    def seconds(self) -> float:
        """Its length [s]."""
        return self.stop - self.start


def sight_along(
    model: IdentifiedModel, moving: FloatArray, gain: float, motion: MonitorInput
) -> NDArray[np.int64]:
    """Return the reasons (N, n) of blind joints in a recording, WATCHED for the others.

    It is what `Sight` finds from one state to the next.
    """
    steps, latest = motion.steps[:, None], np.maximum.accumulate
    missing = np.zeros(motion.position.shape, bool) if motion.missing is None else motion.missing
    # what was of use before a new beginning tells nothing: it is longer ago than INFORMED_STEP
    time = np.cumsum(np.where(steps > 0.0, steps, 2.0 * INFORMED_STEP), axis=0)
    begun = latest(np.where(steps > 0.0, -np.inf, time))
    useful = latest(np.where(missing, -np.inf, time))
    late = latest(np.where(time - useful > INFORMED_STEP, time, -np.inf))
    settles = time - np.maximum(begun, late) < OBSERVER_CONSTANTS / gain
    never = never_watched(model, moving)
    return np.where(never != WATCHED, never, np.where(
        settles, np.where(late >= begun, UNUSABLE, BEGUN), WATCHED))


def blind_times(
    joints: Sequence[str], motion: MonitorInput, sight: NDArray[np.int64]
) -> tuple[BlindTime, ...]:
    """Return the stretches in which joints are blind, for causes ``sight`` (N, n), in order.

    Pauses of the joint states are among them, and where their stamps repeat or go back.
    """
    time, found = motion.time, []
    for j, joint in enumerate(joints):
        edges = np.diff(sight[:, j], prepend=WATCHED, append=WATCHED)
        bounds = np.flatnonzero(edges)
        for a, b in pairwise(bounds.tolist()):
            cause = int(sight[a, j])
            if cause != WATCHED:
                stop = float(time[min(b, len(time) - 1)])
                found.append(BlindTime(joint, float(time[a]), stop, REASONS[cause],
                                       cause == BEGUN and a == 0))
        found += [BlindTime(joint, start, stop, reason) for start, stop, reason in motion.pauses]
    return tuple(sorted(found, key=lambda one: (one.start, one.stop)))
