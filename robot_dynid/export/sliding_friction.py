"""Friction as simulators know it, viscous, dry and constant, nearest to the identified laws.

What a law has of these is taken as it is. The rest (Stribeck's, by direction, levelling, growing
with load) is fitted in least squares over the speeds it is known for, at loads of random states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels.friction import (
    ABOVE,
    FADE,
    HOLDS,
    KIND,
    LOAD,
    RAMP,
    ROW,
    SCALE,
    SIDE,
    STOP,
    TANH,
    WEIGHT,
    WIDTH,
)
from robot_dynid.types import FloatArray

#: random states of the fit; each comes with its mirror image, too
STATES = 1024


@dataclass(frozen=True, eq=False)
class SlidingFriction:
    """Friction ``damping`` v + ``dry`` sign(v) + ``offset`` of m axes.

    ``damping`` [N m s/rad, N s/m], ``dry`` and ``offset`` [N m, N], each (m,), the first two not
    below zero; ``fitted`` (m, 2) are these two where least squares wants them. ``rms`` and
    ``most`` (m,) [N m, N]: how far it is off the laws at speeds up to ``speed`` (m,) [rad/s, m/s].
    """

    damping: FloatArray
    dry: FloatArray
    offset: FloatArray
    fitted: FloatArray
    rms: FloatArray
    most: FloatArray
    speed: FloatArray

    def torque(self, speed: FloatArray) -> FloatArray:
        """Return the torque (K, m) [N m, N] at ``speed`` (K, m)."""
        return np.asarray(self.damping * speed + self.dry * np.sign(speed) + self.offset)

    @classmethod
    def of_axes(cls, arm: IdentifiedArm) -> SlidingFriction:
        """Return that of the axes: every joint, then every motor that turns with several."""
        motion = _Motion.of(arm)
        parts, simple, least = _simple_parts(arm.mechanism.friction)
        return _fitted(motion.speed, motion.torque, parts, simple, least)

    @classmethod
    def of_joints(cls, arm: IdentifiedArm) -> SlidingFriction:
        """Return that of the joints (n,), in which motors that turn with several have a share."""
        n, axes, motion = arm.robot.n, arm.mechanism.friction.axes, _Motion.of(arm)
        parts, simple, least = _simple_parts(arm.mechanism.friction)
        alone = simple[:n] & ~np.any(axes[n:] != 0.0, axis=0)
        return _fitted(motion.speed[:, :n], motion.torque @ axes, parts[:n], alone, least[:n])


def sliding_from(friction: AxisFriction) -> FloatArray:
    """Return the speeds (a,) [rad/s, m/s] within which the dry friction of axes turns."""
    terms, kind = friction.terms, friction.terms[:, KIND]
    holds = (terms[:, HOLDS] != 0.0) & ((kind == RAMP) | (kind == TANH) | (kind >= STOP))
    width = np.where(kind >= STOP, terms[:, WIDTH], terms[:, SCALE])
    least = np.full(len(friction.axes), np.inf)
    np.minimum.at(least, terms[holds, ROW].astype(np.int64), width[holds])
    return np.where(np.isfinite(least), least, 0.0)


@dataclass(frozen=True, eq=False)
class _Motion:
    """Speed and torque (K, a) of the axes in random states, forward and backward."""

    speed: FloatArray
    torque: FloatArray

    @classmethod
    def of(cls, arm: IdentifiedArm) -> _Motion:
        friction, (q, qd, qdd) = arm.mechanism.friction, arm.states(STATES)
        load = None
        if friction.needs_load:
            effort = rigid_body.inverse_dynamics(arm.robot, q, qd, qdd, friction.links)
            load = np.tile(effort @ friction.transmission.T, (2, 1))
        speed = np.concatenate([qd, -qd]) @ friction.axes.T
        count = len(friction.axes)
        alone = replace(friction, axes=np.eye(count))
        return cls(speed, alone.torque(np.ascontiguousarray(speed), load))


def _simple_parts(
    friction: AxisFriction
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Return viscous, dry and constant friction (a, 3) of the laws, and which laws are no more.

    The third (a,) are the speeds from which they slide.
    """
    terms, kind = friction.terms, friction.terms[:, KIND]
    plain = (terms[:, HOLDS] != 0.0) & ((kind == RAMP) | (kind >= STOP))
    for column in (SIDE, ABOVE, FADE, LOAD):
        plain &= terms[:, column] == 0.0
    count, rows = len(friction.axes), terms[:, ROW].astype(np.int64)
    parts, simple = np.zeros((count, 3)), np.ones(count, dtype=bool)
    parts[:, [0, 2]] = friction.straight
    np.add.at(parts[:, 1], rows[plain], terms[plain, WEIGHT])
    simple[rows[~plain]] = False
    return parts, simple, sliding_from(friction)


def _fitted(
    speed: FloatArray, torque: FloatArray, parts: FloatArray, simple: NDArray[np.bool_],
    least: FloatArray,
) -> SlidingFriction:
    """Fit ``torque`` (K, m) at ``speed`` (K, m), beginning with ``parts`` (m, 3)."""
    from scipy.optimize import nnls

    wanted, found = parts.copy(), parts.copy()
    errors = np.zeros((2, len(parts)))
    for i in range(len(parts)):
        v = speed[:, i]
        rows = np.abs(v) > min(least[i], 0.5 * np.abs(v).max())
        design = np.stack([v[rows], np.sign(v[rows]), np.ones(np.count_nonzero(rows))], axis=1)
        own = torque[rows, i]
        if not simple[i]:
            wanted[i] += np.linalg.lstsq(design, own - design @ parts[i], rcond=None)[0]
        found[i] = wanted[i]
        if wanted[i, :2].min() < 0.0:
            x, _ = nnls(np.column_stack([design, -design[:, 2]]), own)
            found[i] = *x[:2], x[2] - x[3]
        off = own - design @ found[i]
        errors[:, i] = np.sqrt(np.mean(off**2)), np.abs(off).max()
    damping, dry, offset = found.T
    return SlidingFriction(damping, dry, offset, wanted[:, :2], errors[0], errors[1],
                           np.abs(speed).max(axis=0))
