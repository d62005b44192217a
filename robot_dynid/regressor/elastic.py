"""Elastic joints: the torque of their gears.

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

from robot_dynid.robot.model import RobotModel
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
        """Return an empty history (0, N): springs have no memory."""
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
        """Write deflection, its rate and ones into ``out`` (rows, k, N)."""
        for column, index in enumerate(chosen):
            place, parameter = divmod(int(index), len(GEAR))
            joint, motor = self.robot.drive.elastic[place], self.robot.n + place
            if GEAR[parameter] == OFFSET:
                out[self.row(joint), column] = 1.0
                continue
            signal = samples.position if GEAR[parameter] == STIFFNESS else samples.velocity
            out[self.row(joint), column] = signal[:, motor] - signal[:, joint]
