"""Elastic joints: the torque of their gears.

A gear between the motor at theta (motor position over gear ratio) and the link at q transmits

    K (theta - q) + D (theta_d - q_d) + s,

where s is the stiffness times what the encoders are off against each other. Source: Spong,
ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319; Lopez, Zollo, Guglielmelli, Appl. Bionics
Biomech. 2014, 843186, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.regressor_columns import (
    ONE,
    POSITION,
    VELOCITY,
    Entry,
    RegressorColumns,
)
from robot_dynid.regressor.block import KernelBlock
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: parameters of one gear: stiffness [N m/rad], damping [N m s/rad], offset [N m]
STIFFNESS, DAMPING, OFFSET = GEAR = ('K', 'D', 's')


@dataclass(frozen=True)
class Gear:
    """The gear of an elastic ``joint``; ``motor`` is the coordinate and the equation of its motor.

    ``row`` is the equation that its torque enters.
    """

    joint: int
    motor: int
    row: int

    def parameter(self, symbol: str) -> str:
        """Return the name of a parameter of the joint, such as K2 for K."""
        return f'{symbol}{self.joint + 1}'


@dataclass(frozen=True, eq=False)
class Springs(KernelBlock):
    """Torque of the gears of elastic joints."""

    robot: RobotModel

    @cached_property
    def gears(self) -> tuple[Gear, ...]:
        """The gears, in the order of their joints."""
        drive, n = self.robot.drive, self.robot.n
        sensors = n + len(drive.elastic)
        return tuple(
            Gear(joint, motor, sensors + drive.torque_sensors.index(joint)
                 if joint in drive.torque_sensors else motor)
            for motor, joint in enumerate(drive.elastic, start=n))

    @property
    def names(self) -> tuple[str, ...]:
        """``K1, D1, s1`` and so on, for elastic joints only."""
        return tuple(gear.parameter(p) for gear in self.gears for p in GEAR)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Stiffness and damping."""
        return tuple(name for name in self.names if not name.startswith(OFFSET))

    def history(self, samples: Samples) -> FloatArray:
        """Return an empty history (0, N): springs have no memory."""
        return np.empty((0, len(samples)))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return deflection, its rate and ones, as far as ``chosen`` (k,)."""
        entries: list[Entry] = []
        for column, index in enumerate(chosen.tolist()):
            place, parameter = divmod(index, len(GEAR))
            gear = self.gears[place]
            if GEAR[parameter] == OFFSET:
                entries.append((gear.row, column, ONE, 0, 1.0))
                continue
            kind = POSITION if GEAR[parameter] == STIFFNESS else VELOCITY
            entries += [(gear.row, column, kind, gear.motor, 1.0),
                        (gear.row, column, kind, gear.joint, -1.0)]
        return RegressorColumns(len(chosen), entries=tuple(entries))
