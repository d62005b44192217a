"""Rotors of motors: their inertia, and the coupling of rotors that spin on moving links.

A rotor of inertia J (on the joint side) and gear ratio r, mounted on a link that turns at w and
spinning about the axis a fixed to it, has the kinetic energy

    J/2 theta_d^2 + J/r theta_d (a . w)

in addition to that of the link, to which its mass and its inertia without the spin belong: it
drags the link by J/r (theta_dd a + theta_d w x a), and the motor by J/r (a . w_d) in addition to
J theta_dd.

Source: Spong, ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319, without its third assumption;
De Luca, Book, Springer Handbook of Robotics 2016, chapter 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, frozen

#: tables of the rotors for the kernels
RotorTables = tuple[FloatArray, NDArray[np.int64], FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Rotors:
    """Rotors between N coordinates: those of the joints, then those of motors of elastic joints.

    ``inertia`` (N, N) kg m^2 of the spin; for the m rotors on moving links, ``carriers`` (m,) are
    the links, ``axes`` (m, 3) J/r times the axis in the frame of the link, and ``motions`` (m, N):
    spin on the joint side = motions @ velocity.
    """

    inertia: FloatArray
    carriers: NDArray[np.int64]
    axes: FloatArray
    motions: FloatArray

    @classmethod
    def of(cls, given: Rotors | ArrayLike) -> Rotors:
        """Return ``given`` rotors, or those of an inertia (N, N) that no moving link carries."""
        if isinstance(given, Rotors):
            return given
        inertia = np.asarray(given, dtype=np.float64)
        return cls(inertia, np.zeros(0, dtype=np.int64), np.zeros((0, 3)),
                   np.zeros((0, len(inertia))))

    @property
    def coupled(self) -> bool:
        """Whether moving links carry a rotor."""
        return len(self.carriers) > 0

    @cached_property
    def tables(self) -> RotorTables:
        """The tables as read-only arrays for the kernels."""
        carriers = self.carriers.copy()
        carriers.flags.writeable = False
        return frozen(self.inertia), carriers, frozen(self.axes), frozen(self.motions)


@dataclass(frozen=True, eq=False)
class SpinningRotors:
    """The rotors of a robot that spin on moving links, by the axes that rotors act on.

    These are all joints, then all motors that turn with several joints: such a motor sits on the
    link before the first of them, and the axis of its own joint has no rotor.
    """

    robot: RobotModel

    @cached_property
    def _motors(self) -> tuple[int, ...]:
        return (*range(self.robot.n), *self.robot.drive.coupled)

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """The link that carries the rotor of each axis; -1 for the base or an unknown axis."""
        robot, drive = self.robot, self.robot.drive
        carriers = []
        for axis, motor in enumerate(self._motors):
            turned = motor
            if axis >= robot.n and drive.coupling is not None:
                turned = int(np.flatnonzero(drive.coupling[motor])[0])
            has_axis = drive.rotor_axes is not None and bool(drive.rotor_axes[motor].any())
            has_rotor = axis >= robot.n or motor not in drive.coupled
            carriers.append(int(robot.parents[turned]) if has_axis and has_rotor else -1)
        return tuple(carriers)

    def mounted(self, axis: int) -> bool:
        """Return True if the rotor of ``axis`` spins on a moving link."""
        return self.carriers[axis] >= 0

    def rotors(self, motions: FloatArray, inertia: FloatArray) -> Rotors:
        """Return the rotors of all axes: motion of axis = ``motions`` (a, N) @ coordinates.

        ``inertia`` (a,) kg m^2 on the joint side.
        """
        drive = self.robot.drive
        reflected = np.ascontiguousarray(motions.T @ (inertia[:, None] * motions))
        mounted = [i for i in range(len(motions)) if self.mounted(i) and inertia[i] != 0.0]
        if not mounted or drive.rotor_axes is None or drive.gear_ratios is None:
            return Rotors.of(reflected)
        motors = [self._motors[i] for i in mounted]
        sizes = inertia[mounted] / drive.gear_ratios[motors]
        return Rotors(reflected, np.array([self.carriers[i] for i in mounted], dtype=np.int64),
                      sizes[:, None] * drive.rotor_axes[motors], motions[mounted])


@dataclass(frozen=True, eq=False)
class Links:
    """A robot with standard parameters (n, 10) of its links and the rotors of its motors."""

    robot: RobotModel
    parameters: FloatArray
    rotors: Rotors
