"""Random states in which what a tool computes from an export is compared with the arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.export.sliding_friction import sliding_from
from robot_dynid.export.written import Written, accelerations, effort
from robot_dynid.types import FloatArray

#: states that are compared
STATES = 1000
#: part of the effort by which the torque of gears is off that of their motors
UNBALANCED = 0.1


@dataclass(frozen=True, eq=False)
class Motion:
    """States with position ``x`` and velocity ``v`` (K, N), joints before motors of elastic ones.

    ``effort`` (K, n) [N m, N] of the drives gives ``expected`` (K, N) accelerations.
    """

    x: FloatArray
    v: FloatArray
    effort: FloatArray
    expected: FloatArray

    @classmethod
    def of(cls, written: Written, slides: float = 0.0) -> Motion:
        """Return STATES states at most of the ranges an arm is known in.

        In all of them every axis of friction slides, by its law and with a speed above ``slides``
        [s] times its acceleration.
        """
        mechanism, rng = written.mechanism, np.random.default_rng(1)
        q, qd, qdd = written.arm.states(4 * STATES, seed=1)
        drives = effort(mechanism, q, qd, qdd)
        x, v, columns = q, qd, list(range(q.shape[1]))
        if mechanism.gears is not None:
            own = list(mechanism.gears.joints)
            columns = list(mechanism.gears.motors(q.shape[1]))
            part = rng.uniform(1.0 - UNBALANCED, 1.0 + UNBALANCED, (len(q), len(own)))
            twist = drives[:, own] * part / mechanism.gears.stiffness
            x, v = np.hstack([q, q[:, own] + twist]), np.hstack([qd, qd[:, own]])
        expected = accelerations(mechanism, x, v, drives)
        axes, law = mechanism.friction.axes, written.arm.mechanism.friction
        rows = np.all(np.abs(v[:, columns] @ axes.T)
                      > slides * np.abs(expected[:, columns] @ axes.T), axis=1)
        rows &= np.all(np.abs(v[:, columns] @ law.axes.T) > sliding_from(law), axis=1)
        return cls(*(part[rows][:STATES] for part in (x, v, drives, expected)))

    def error(self, found: FloatArray) -> float:
        """Return the largest error of accelerations (K, N) relative to those of its joint."""
        size = np.abs(self.expected).max(axis=0)
        return float(np.max(np.abs(found - self.expected).max(axis=0) / size))
