"""Torque ripple of known size: of one joint by itself, and in the recordings of an arm.

Written apart from the package: the gear is a spring between a link encoder and a motor, the
motor's torque waves with its own angle, late, through a drive whose gain falls with frequency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.effects.ripple_search import JointResidual
from robot_dynid.types import FloatArray, RawLog

RATIO = 101.0


@dataclass(frozen=True)
class Gear:
    """``stiffness`` [N m/rad]; waves per motor turn and their sizes [N m]; ``late`` [s].

    The drive passes a wave that turns at w rad/s by 1 / (1 + (w / corner)^2)^(1/2).
    """

    stiffness: float = 2e4
    waves: tuple[tuple[float, float], ...] = ((10.0, 0.6), (2.0, 0.4))
    late: float = 4e-3
    corner: float = 900.0

    def torque(self, link: FloatArray, velocity: FloatArray, effort: FloatArray) -> FloatArray:
        """Return the ripple (N,) [N m] where a row shows ``link`` (N,) [rad] and ``effort``."""
        motor = RATIO * (link + effort / self.stiffness - self.late * velocity)
        found = np.zeros_like(link)
        for k, (turns, size) in enumerate(self.waves):
            gain = 1.0 / np.hypot(1.0, turns * RATIO * velocity / self.corner)
            found += size * gain * np.cos(turns * motor + 0.7 * k)
        return found


def joint_residual(
    seed: int, gear: Gear | None, seconds: float = 40.0, folds: int = 4
) -> JointResidual:
    """Return rows at uneven stamps: a slow error, white noise, and the ripple of a ``gear``."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.choice([0.010, 0.012], round(seconds / 0.011)))
    rates = rng.uniform(0.2, 1.2, (4, 1))
    angles = rates * time + rng.uniform(0.0, 2.0 * np.pi, (4, 1))
    sizes = rng.uniform(0.2, 0.6, (4, 1))
    q, qd = np.sum(sizes * np.sin(angles), axis=0), np.sum(sizes * rates * np.cos(angles), axis=0)
    effort = 30.0 * np.cos(q) + 6.0 * np.tanh(qd / 0.02) + 8.0 * np.sin(0.9 * time)
    slow = np.cumsum(rng.standard_normal(len(time))) * 0.02
    left = slow - np.mean(slow) + 0.4 * rng.standard_normal(len(time))
    if gear is not None:
        left += gear.torque(q, qd, effort)
    number = np.arange(len(time)) * folds // len(time)
    top = float(np.abs(qd).max())
    return JointResidual(q, qd, effort, left, number, (time // 0.2).astype(np.int64),
                         0.05 * top, 0.5 * top, 0.011)


def with_gear(log: RawLog, joint: int, gear: Gear) -> RawLog:
    """Return a recording whose effort has the ripple of a ``gear`` at one joint."""
    assert log.effort is not None and log.velocity is not None
    effort = log.effort.copy()
    effort[:, joint] += gear.torque(
        log.position[:, joint], log.velocity[:, joint], log.effort[:, joint])
    return replace(log, effort=effort)
