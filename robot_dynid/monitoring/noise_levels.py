"""Noise levels of the external torque, from recordings without contact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NOMINAL_GAIN, NoiseLevels
from robot_dynid.monitoring.monitor_input import MonitorInput, monitor_input
from robot_dynid.monitoring.observer import Observer
from robot_dynid.monitoring.state_monitor import DRY, EXTERNAL
from robot_dynid.types import FloatArray, RawLog, frozen

#: rows of the recordings the levels are learnt from
ROWS = 20_000
#: speeds [rad/s, m/s] below which friction may be uncertain; the data chooses
SPEEDS = (0.005, 0.01, 0.02, 0.05, 0.1)
#: share of slow motion in the memory of the observer from which it reflects holding
SLOW = 0.3
#: share of samples without contact below the levels: hard stops and glitches are above
QUANTILE = 0.999


def slow_shares(
    motion: MonitorInput, dry: FloatArray, speeds: FloatArray, gain: float
) -> tuple[FloatArray, FloatArray]:
    """Return the low-passed slowness, and dry friction while slow, (N, s, n) each.

    Slower than each of ``speeds`` (s, n) or (s, 1), and ``dry`` (N, n) where it is, through a
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
    """Learn the levels from recordings without contact.

    Every joint gets the speed with the least threshold on average. ``holding`` is at least what
    friction may hold at rest. Raises DataError without motion.
    """
    recorded = list(motions)
    if not recorded:
        raise DataError('no motion to learn the levels of contact detection from')
    speeds, found = np.array(SPEEDS)[:, None], []
    observer = Observer(model, NOMINAL_GAIN)
    for motion in recorded:
        results = observer.along(motion)
        share, claimed = slow_shares(motion, results[:, DRY], speeds, NOMINAL_GAIN)
        found.append((np.abs(results[:, None, EXTERNAL] - claimed), share))
    torque, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    floor = holding_torque(model)
    rows = []
    for j in range(model.robot.n):
        tried = []
        for i, speed in enumerate(SPEEDS):
            level, held = _levels(torque[:, i, j], shares[:, i, j], floor[j])
            tried.append((float(np.mean(level + held * shares[:, i, j])), level, held, speed))
        rows.append(min(tried)[1:])
    moving, holding, chosen = np.array(rows).T
    return NoiseLevels(frozen(moving), frozen(holding), frozen(chosen))


def _levels(torque: FloatArray, share: FloatArray, floor: float) -> tuple[float, float]:
    """Return the level of a joint in motion, and by how much it may rise when it is slow."""
    slow, held = share > SLOW, floor
    if slow.any():
        beyond = torque[slow] - _level(torque[~slow] - floor * share[~slow])
        held = max(floor, float(np.quantile(beyond / share[slow], QUANTILE)))
    return _level(torque - held * share), held


def _level(torque: FloatArray) -> float:
    return max(0.0, float(np.quantile(torque, QUANTILE))) if len(torque) else 0.0


def holding_torque(model: IdentifiedModel) -> FloatArray:
    """Return the torque (n,) [N m] by which friction may hold each joint at rest."""
    friction = model.structure.friction_of(model.torque_model.robot.rigid)
    values = np.abs([model.standard[name] for name in friction.names])
    return np.asarray(np.atleast_2d(friction.holding) @ values)


@one_blas_thread()
def with_noise_levels(model: IdentifiedModel, logs: Sequence[RawLog]) -> IdentifiedModel:
    """Return the model with the levels of (the first ROWS rows of) its own recordings."""
    motions, rows = [], 0
    for i in range(len(logs)):
        motions.append(monitor_input(model, logs[i]))
        rows += len(motions[-1].time)
        if rows >= ROWS:
            break
    return replace(model, noise_levels=learn_noise_levels(model, [m.first(ROWS) for m in motions]))
