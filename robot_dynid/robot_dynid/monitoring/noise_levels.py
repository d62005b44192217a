"""Noise levels of the external torque, learnt from recordings without contact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NOMINAL_GAIN, QUANTILE, NoiseLevels
from robot_dynid.identified.states import holding_torque
from robot_dynid.monitoring.deflected_observer import (
    DEFLECTED,
    DEFLECTED_ROWS,
    GEAR_SPREAD,
    SPREAD,
    DeflectedObserver,
)
from robot_dynid.monitoring.monitor_input import MonitorInput, monitor_input
from robot_dynid.monitoring.motor_states import follows_motors
from robot_dynid.monitoring.observer import DRY, EXTERNAL, Observer
from robot_dynid.types import FloatArray, RawLog, frozen

#: rows of the recordings the levels are learnt from, or this time [s] if that is longer
LEVEL_ROWS, LEVEL_SECONDS = 20_000, 60.0
#: candidate speeds [rad/s, m/s] below which friction is uncertain
SPEEDS = (0.005, 0.01, 0.02, 0.05, 0.1)
#: share of slow motion in the observer's memory above which its torque includes holding friction
SLOW_SHARE = 0.3
#: share of samples that define the usual uncertainty of residual models
USUAL_SHARE = 0.9


def slow_shares(
    motion: MonitorInput, dry: FloatArray, speeds: FloatArray, gain: float
) -> tuple[FloatArray, FloatArray]:
    """Return the low-passed slowness, and dry friction while slow, (N, s, n) each.

    Slow is below each of ``speeds`` (s, n) or (s, 1); ``dry`` (N, n) counts there; both pass a
    low-pass of corner ``gain``. Joints count as slow before every segment, as in `Follower`.
    """
    slow = (np.abs(motion.velocity)[:, None, :] < speeds).astype(np.float64)
    both = np.stack([slow, slow * dry[:, None, :]])
    keep = np.exp(-gain * np.diff(motion.time, prepend=motion.time[:1]).clip(0.0))
    begin = np.zeros_like(both[:, 0])
    begin[0] = 1.0
    first, state = set(motion.starts), begin
    for k in range(len(keep)):
        now = both[:, k]
        both[:, k] = state = begin if k in first else now + keep[k] * (state - now)
    return both[0], both[1]


def learn_noise_levels(model: IdentifiedModel, motions: Iterable[MonitorInput]) -> NoiseLevels:
    """Learn the noise levels from recordings without contact, with and without gear deflection.

    Every joint gets the speed with the lowest mean threshold. ``holding`` is at least the friction
    that may hold the joint at rest; motor friction is not between gear torque and link. Raises
    DataError without motion.
    """
    recorded, floor = list(motions), holding_torque(model)
    if not recorded:
        raise DataError('no motion to learn the noise levels of contact detection from')
    levels = _of_observer(recorded, Observer(model, NOMINAL_GAIN), floor)
    if not follows_motors(model) or all(motion.motors is None for motion in recorded):
        return levels
    floor = np.where(np.isin(model.joints, model.elastic_joints), 0.0, floor)
    return replace(levels, deflected=_of_observer(
        recorded, DeflectedObserver(model, NOMINAL_GAIN), floor))


def _of_observer(
    recorded: Sequence[MonitorInput], observer: Observer | DeflectedObserver, floor: FloatArray
) -> NoiseLevels:
    """Return the noise levels of an observer; with deflection only from rows that use it."""
    speeds, pieces = np.array(SPEEDS)[:, None], []
    for motion in recorded:
        results = observer.along(motion)
        share, claimed = slow_shares(motion, results[:, DRY], speeds, NOMINAL_GAIN)
        pieces.append((np.abs(results[:, None, EXTERNAL] - claimed), share, results))
    torque, shares, results = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    deflected = results.shape[1] == DEFLECTED_ROWS
    rows, variance = [], np.zeros(len(floor))
    for j in range(len(floor)):
        used = slice(None)
        if deflected and results[:, DEFLECTED, j].any():
            used = results[:, DEFLECTED, j] != 0.0
            spread = results[used][:, [SPREAD, GEAR_SPREAD], j]
            spread = spread[np.isfinite(spread)]
            variance[j] = float(np.quantile(spread, USUAL_SHARE))**2 if len(spread) else 0.0
        tried = []
        for i, speed in enumerate(SPEEDS):
            level, held = _levels(torque[used, i, j], shares[used, i, j], floor[j])
            tried.append((float(np.mean(level + held * shares[used, i, j])), level, held, speed))
        rows.append(min(tried)[1:])
    moving, holding, chosen = np.array(rows).T
    return NoiseLevels(frozen(moving), frozen(holding), frozen(chosen),
                       variance=frozen(variance) if deflected else None)


def _levels(torque: FloatArray, share: FloatArray, floor: float) -> tuple[float, float]:
    """Return the level of a joint in motion, and its rise at low speed."""
    slow, held = share > SLOW_SHARE, floor
    if slow.all():  # no motion: take the friction as level
        return held, held
    if slow.any():
        beyond = torque[slow] - _level(torque[~slow] - floor * share[~slow])
        held = max(floor, float(np.quantile(beyond / share[slow], QUANTILE)))
    return _level(torque - held * share), held


def _level(torque: FloatArray) -> float:
    return max(0.0, float(np.quantile(torque, QUANTILE))) if len(torque) else 0.0


@one_blas_thread()
def recorded_motions(model: IdentifiedModel, logs: Sequence[RawLog]) -> list[MonitorInput]:
    """Return the motions that levels are learnt from, at most LEVEL_ROWS or LEVEL_SECONDS each.

    None of recordings whose states are too far apart for the monitor.
    """
    motions, share = list[MonitorInput](), 0.0
    for i in range(len(logs)):
        whole = monitor_input(model, logs[i])
        if not len(whole.time):  # its states are too far apart
            continue
        step = float(np.median(np.diff(whole.time))) if len(whole.time) > 1 else LEVEL_SECONDS
        rows = max(LEVEL_ROWS, round(LEVEL_SECONDS / max(step, 1e-9)))
        motions.append(whole.in_motion(rows))
        share += len(motions[-1].time) / rows
        fastest = np.max([np.abs(m.velocity).max(axis=0) for m in motions], axis=0)
        if share >= 1.0 and fastest.min() > SPEEDS[-1]:  # else others may move
            break
    return motions
