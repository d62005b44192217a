"""Watched and blind joints: an unknown contact state is not "no contact".

A joint is watched once the observer has followed usable states of it for OBSERVER_CONSTANTS time
constants. It is blind before that, while its effort has been missing for longer than
INFORMED_STEP, and always if it has no threshold. Outside the trained range it is watched with a
warning: a wrong model looks like contact there.
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

#: time constants after which the observer shows 95 % of a constant external torque
OBSERVER_CONSTANTS = 3.0
#: reasons why a joint is blind, with remedies, by code; 0 is watched
WATCHED, BEGUN, UNUSABLE, NO_LEVEL, REFUSED = range(5)
REASONS = (
    '', 'the observer is settling',
    'its values are NaN or exceed the limits of the robot: check its drive',
    'the model has no noise levels: identify again, or give contact thresholds',
    'not identified: check its effort signal and identify again')


class TrainedRange:
    """Trained ranges of positions and velocities, widened by RANGE_MARGIN of their width."""

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
        """Return a mask (..., n) of ``states`` (..., 2, n) outside, modulo whole turns."""
        off = states - self._middle
        off -= self._turn * np.rint(off / (2.0 * np.pi))
        return np.asarray((np.abs(off) > self._half).any(axis=-2))


def never_watched(model: IdentifiedModel, moving: FloatArray) -> NDArray[np.int64]:
    """Return reason codes (n,) of joints never watched by levels ``moving`` (n,), else WATCHED."""
    refused = np.isin(model.joints, model.not_identified)
    return np.where(refused, REFUSED, np.where(np.isfinite(moving), WATCHED, NO_LEVEL))


class JointWatch:
    """Watched and blind joints along joint states.

    The external torque of ``unseen`` (n,) joints is unknown; ``blind`` (n,) joints are unseen or
    have no contact threshold; ``outside`` (n,) joints are outside the trained range.
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
        """Process the state (2, n) or more rows, ``step`` [s] after the last.

        A step of zero restarts, for the reason ``began``; ``missing`` (n,) masks unusable efforts.
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
    """A stretch from ``start`` to ``stop`` [s] without contact detection of a joint.

    ``begins`` is True if it is only the settling of the observer at the start of the recording.
    """

    joint: str
    start: float
    stop: float
    reason: str
    begins: bool = False

    @property
    def seconds(self) -> float:
        """Duration [s]."""
        return self.stop - self.start


def blind_codes(
    model: IdentifiedModel, moving: FloatArray, gain: float, motion: MonitorInput
) -> NDArray[np.int64]:
    """Return the codes (N, n) of blind joints in a recording, WATCHED for the others.

    It equals `JointWatch` applied state by state.
    """
    steps, latest = motion.steps[:, None], np.maximum.accumulate
    missing = np.zeros(motion.position.shape, bool) if motion.missing is None else motion.missing
    # states before a restart do not count: they are older than INFORMED_STEP
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
    """Return the times in which joints are blind, for codes ``sight`` (N, n), in order.

    They include pauses of the joint states, and times in which stamps repeat or go back.
    """
    time, times = motion.time, []
    for j, joint in enumerate(joints):
        edges = np.diff(sight[:, j], prepend=WATCHED, append=WATCHED)
        bounds = np.flatnonzero(edges)
        for a, b in pairwise(bounds.tolist()):
            cause = int(sight[a, j])
            if cause != WATCHED:
                stop = float(time[min(b, len(time) - 1)])
                times.append(BlindTime(joint, float(time[a]), stop, REASONS[cause],
                                       cause == BEGUN and a == 0))
        times += [BlindTime(joint, start, stop, reason) for start, stop, reason in motion.pauses]
    return tuple(sorted(times, key=lambda one: (one.start, one.stop)))
