"""Elastic joints: the torque of their gears, and rotors that spin on moving links.

A gear between the motor at theta (motor position over gear ratio) and the link at q transmits

    K (theta - q) + D (theta_d - q_d) + s,

where s is the stiffness times what the encoders are off against each other. Source: Spong,
ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319; Lopez, Zollo, Guglielmelli, Appl. Bionics
Biomech. 2014, 843186, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.model.robot import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: parameters of one gear: stiffness [N m/rad], damping [N m s/rad], offset [N m]
STIFFNESS, DAMPING, OFFSET = GEAR = ('K', 'D', 's')


@dataclass(frozen=True, eq=False)
class Springs:
    """What the gears of elastic joints transmit."""

    robot: RobotModel

    @property
    def names(self) -> tuple[str, ...]:
        """``K1, D1, s1`` and so on, for elastic joints only."""
        return tuple(f'{p}{j + 1}' for j in self.robot.drive.elastic for p in GEAR)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Stiffness and damping."""
        return tuple(name for name in self.names if not name.startswith(OFFSET))

    def history(self, samples: Samples) -> FloatArray:
        """Return nothing: springs have no memory."""
        return np.empty((0, len(samples)))

    def row(self, joint: int) -> int:
        """Return the equation that the gear of ``joint`` enters."""
        drive, n = self.robot.drive, self.robot.n
        if joint in drive.torque_sensors:
            return n + len(drive.elastic) + drive.torque_sensors.index(joint)
        return n + drive.elastic.index(joint)

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write deflection, its rate and ones."""
        for column, index in enumerate(chosen):
            place, parameter = divmod(int(index), len(GEAR))
            joint, motor = self.robot.drive.elastic[place], self.robot.n + place
            if GEAR[parameter] == OFFSET:
                out[self.row(joint), column] = 1.0
                continue
            signal = samples.position if GEAR[parameter] == STIFFNESS else samples.velocity
            out[self.row(joint), column] = signal[:, motor] - signal[:, joint]


@dataclass(frozen=True, eq=False)
class SpinningRotors:
    """Rotors that turn with the links they are mounted on, beside spinning about their axes.

    A rotor of inertia J (on the joint side) and gear ratio r, mounted on a link that turns at w
    and spinning about the axis a fixed to it, has the further kinetic energy J/r theta_d (a . w):
    it drags the link by J/r (theta_dd a + theta_d w x a), and the motor by J/r (a . w_d).
    """

    robot: RobotModel

    def mounted(self, joint: int) -> bool:
        """Return whether the rotor of ``joint`` has an axis, and a moving link to carry it."""
        axes = self.robot.drive.rotor_axes
        return axes is not None and bool(axes[joint].any()) and self.robot.parents[joint] >= 0

    def columns(self, samples: Samples, joint: int) -> tuple[FloatArray, FloatArray]:
        """Return the torque on all joints (n, N) and on the motor (N,) of J = 1.

        The inertia of the rotor about its axis beside the spin is part of the link's.
        """
        robot, drive = self.robot, self.robot.drive
        assert drive.rotor_axes is not None and drive.gear_ratios is not None
        axis, ratio = drive.rotor_axes[joint], drive.gear_ratios[joint]
        place = robot.n + drive.elastic.index(joint) if joint in drive.elastic else joint
        link = int(robot.parents[joint])
        turn, rate, lines = _link_motion(robot, samples, link)
        spin, speed = samples.acceleration[:, place], samples.velocity[:, place]
        drag = (spin[:, None] * axis + speed[:, None] * np.cross(turn, axis)) / ratio
        torque = np.zeros((robot.n, len(samples)))
        for carrier, line in lines.items():
            torque[carrier] = np.einsum('nk,nk->n', line, drag)
        return torque, rate @ axis / ratio


def _link_motion(
    robot: RobotModel, samples: Samples, link: int
) -> tuple[FloatArray, FloatArray, dict[int, FloatArray]]:
    """Return angular velocity and acceleration (N, 3) of a link, and the axes of its joints.

    All in the frame of the link; the axes (N, 3) are those of the rotational joints that carry it.
    """
    chain = [link]
    while robot.parents[chain[-1]] >= 0:
        chain.append(int(robot.parents[chain[-1]]))
    count = len(samples)
    turn, rate = np.zeros((count, 3)), np.zeros((count, 3))
    lines: dict[int, FloatArray] = {}
    for j in reversed(chain):
        table, q = robot.geometry[j], samples.position[:, j, None, None]
        rotation = (table[:9].reshape(3, 3) + np.cos(q) * table[9:18].reshape(3, 3)
                    + np.sin(q) * table[18:27].reshape(3, 3))
        turn, rate = (np.einsum('nji,nj->ni', rotation, v) for v in (turn, rate))
        lines = {k: np.einsum('nji,nj->ni', rotation, v) for k, v in lines.items()}
        if robot.types[j] != PRISMATIC:
            own = samples.velocity[:, j, None] * robot.axes[j]
            rate = rate + samples.acceleration[:, j, None] * robot.axes[j] + np.cross(turn, own)
            turn = turn + own
            lines[j] = np.broadcast_to(robot.axes[j], (count, 3)).copy()
    return turn, rate, lines
