"""Contact detection scores: false alarms without contact, and the detectable push."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import MonitorSettings, levels_of, observer_of
from robot_dynid.monitoring.monitor_input import (
    INFORMED_STEP,
    MOVING_SPEED_SHARE,
    MonitorInput,
    monitor_input,
)
from robot_dynid.monitoring.observer import CLAIMED, CONTACT, CONTACT_STATES, EXTERNAL, THRESHOLD
from robot_dynid.monitoring.watched_joints import WATCHED, blind_codes
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog

#: length [s] of the blocks whose peaks are counted: six time constants of the observer
PEAK_BLOCK = 0.2
#: share and smallest number of the blocks that determine the tail of the peaks
TAIL, LEAST_PEAKS = 0.05, 10
#: shares of the threshold above which peaks are alike: their squares are still numbers
LARGEST_PEAK = 1e100
#: share of the instants of motion, and of directions, in which a push is detected
DETECTED = 0.95
#: quantile of the effort that counts as the largest
EFFORT_QUANTILE = 0.999
#: a joint rests if it stays below this share of its top speed for a PEAK_BLOCK
STILL = 0.01
#: number of poses for the lever of the tip, and step of a joint there
LEVER_POSES, LEVER_STEP = 50, 1e-6


@dataclass(frozen=True, eq=False)
class ContactScore:
    """Contact reports of the monitor of a model on recordings without contact.

    ``seconds`` (n,) in which each joint was watched, and ``alarms`` (n,) in them; ``peaks`` (B, n)
    the largest external torque, lasting as long as a contact must, of each PEAK_BLOCK over its
    threshold, NaN if not watched; ``needed`` (M, 2 n) [N m, N] the detectable push at each instant
    of motion in either direction; ``effort`` (n,) [N m, N] the largest of the recordings;
    ``levers`` (P, n) [m, 1] of the tip about each joint, in poses of the recordings. ``excess``
    (n,) [N m, N] widens the thresholds for motion that was not fitted and affects only ``needed``.
    ``stops`` (n,) counts how often each joint came to rest, where friction reverses.
    """

    seconds: FloatArray
    alarms: FloatArray
    peaks: FloatArray
    needed: FloatArray
    effort: FloatArray
    levers: FloatArray
    excess: FloatArray
    stops: FloatArray

    @classmethod
    def merged(cls, scores: Iterable[ContactScore]) -> ContactScore | None:
        """Merge the scores of several recordings, None without any."""
        parts = list(scores)
        if not parts:
            return None
        seconds, alarms, stops = (np.sum([getattr(one, name) for one in parts], axis=0)
                                  for name in ('seconds', 'alarms', 'stops'))
        peaks, needed, levers = (np.concatenate([getattr(one, name) for one in parts])
                                 for name in ('peaks', 'needed', 'levers'))
        effort = np.max([one.effort for one in parts], axis=0)
        return cls(seconds, alarms, peaks, needed, effort, levers, parts[0].excess, stops)

    def rate(self, j: int) -> float:
        """Return the expected number of false alarms of a joint per hour, infinite if unknown.

        The larger of the counted rate and the rate extrapolated from the tail of the peaks:
        squared peaks of a normal process are exponential (Rice 1945).
        """
        if not self.seconds[j] > 0.0:
            return np.inf
        peaks = np.sort(self.peaks[np.isfinite(self.peaks[:, j]), j])
        peaks = np.minimum(peaks, LARGEST_PEAK)**2
        count = min(max(LEAST_PEAKS, round(TAIL * len(peaks))), len(peaks) - 1)
        expected = 0.0
        if count > 0:
            base = peaks[-count - 1]
            excess = max(float(np.mean(peaks[-count:] - base)), np.finfo(np.float64).tiny)
            expected = count * float(np.exp(min(base - 1.0, 0.0) / excess))
        return 3600.0 * max(expected, float(self.alarms[j])) / float(self.seconds[j])

    @property
    def push(self) -> FloatArray:
        """External torque (n,) [N m, N] detectable in DETECTED of the motion, NaN without motion.
        """
        if not len(self.needed):
            return np.full(len(self.seconds), np.nan)
        both = self.needed.reshape(-1, len(self.seconds))
        return np.asarray(np.quantile(both, DETECTED, axis=0))

    @property
    def lever(self) -> FloatArray:
        """Median lever (n,) [m, 1] of the tip about each joint."""
        return np.asarray(np.median(self.levers, axis=0))


def scored_contact(model: IdentifiedModel, log: RawLog) -> Iterator[ContactScore]:
    """Yield the score of a recording, or of the rows owned by a part.

    None for models without noise levels. Raises DataError without effort.
    """
    motion = None if model.noise_levels is None else monitor_input(model, log)
    if motion is not None and len(motion.time):
        yield contact_score(model, motion, rows=None if log.part is None else log.part.own(
            motion.time))


def on_other_motion(
    model: IdentifiedModel, motions: Sequence[MonitorInput], deviation: FloatArray
) -> tuple[IdentifiedModel, ContactScore | None]:
    """Return the model with noise levels widened for unseen motion, and its score.

    There its error is larger by ``deviation`` (n,) [N m] than on ``motions``, those of the fit.
    """
    levels = model.noise_levels
    if levels is None:
        return model, None
    wide = levels.widened(deviation[:model.robot.n])
    excess = MonitorSettings().contact.margin * (wide.moving - levels.moving)
    model = replace(model, noise_levels=wide)
    return model, ContactScore.merged(
        contact_score(model, motion, excess) for motion in motions)


def contact_score(
    model: IdentifiedModel, motion: MonitorInput, excess: FloatArray | None = None,
    rows: NDArray[np.bool_] | None = None,
) -> ContactScore:
    """Score the contacts that the monitor reports on a recording without contact.

    ``excess`` as of `ContactScore`, default zero; only ``rows`` (N,) are scored.
    """
    from scipy.ndimage import minimum_filter1d

    settings, n, time = MonitorSettings(), model.robot.n, motion.time
    results = observer_of(model, settings).along(motion)
    sight = blind_codes(model, levels_of(model, settings).without.moving, settings.gain, motion)
    watched = (sight == WATCHED) if rows is None else (sight == WATCHED) & rows[:, None]
    off, threshold = results[:, EXTERNAL] - results[:, CLAIMED], results[:, THRESHOLD]
    excess = np.zeros(n) if excess is None else excess
    contact = (results[:, CONTACT] != 0.0) & watched
    begins = np.diff(contact, axis=0, prepend=False) & contact
    steps = np.diff(time, prepend=time[:1]).clip(0.0, INFORMED_STEP)
    ratio = np.where(watched, np.abs(off) / np.maximum(threshold - excess, 1e-300), -np.inf)
    step = max(float(np.median(steps)), 1e-9)
    lasting = max(CONTACT_STATES, 1 + int(settings.contact.duration / step))
    blocks = np.flatnonzero(np.diff(np.floor((time - time[0]) / PEAK_BLOCK), prepend=-1.0))
    peaks = np.maximum.reduceat(minimum_filter1d(ratio, lasting, axis=0), blocks, axis=0)
    speed = np.abs(motion.velocity)
    still = np.maximum.reduceat(speed, blocks, axis=0) < STILL * speed.max(axis=0)
    moves = (speed > MOVING_SPEED_SHARE * speed.max(axis=0)).any(axis=1) & watched.any(axis=1)
    chosen = np.flatnonzero(moves & np.isfinite(threshold).all(axis=1))
    chosen = chosen[::round(0.5 * PEAK_BLOCK / step)]  # steps are at most half of a block
    needed = np.hstack([threshold[chosen] - off[chosen], threshold[chosen] + off[chosen]])
    poses = motion.position[::max(1, len(time) // LEVER_POSES)]
    return ContactScore(
        steps @ watched, np.sum(begins, axis=0).astype(np.float64),
        np.where(np.isfinite(peaks), peaks, np.nan), needed.reshape(-1, 2 * n),
        np.quantile(np.abs(motion.effort), EFFORT_QUANTILE, axis=0),
        _levers(model.robot, poses), excess,
        np.sum(still[1:] & ~still[:-1], axis=0).astype(np.float64))


def _levers(robot: RobotModel, q: FloatArray) -> FloatArray:
    """Return the lever (P, n) [m/rad, 1] of the tip about each joint at ``q`` (P, n)."""
    tip, levers = tip_positions(robot, q), np.empty_like(q)
    for j in range(robot.n):
        off = LEVER_STEP * np.eye(robot.n)[j]
        levers[:, j] = np.linalg.norm(tip_positions(robot, q + off) - tip, axis=1) / LEVER_STEP
    return levers
