"""Equations of motion of every coordinate by itself: links, then motors of elastic joints.

Of an elastic joint the rows of a torque model are the balance of link and motor together, and that
of the motor. Their difference is the balance of the link alone: what the gear bears is what the
links need, and neither friction nor the noise of the effort are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.derivatives import Derivatives, Slopes
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects import JointFriction, SpinningRotors, axes_of
from robot_dynid.effects.gears import GEAR
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.friction import AxisFriction
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class CoordinateEquations:
    """The equations of a torque model, one for each of its m coordinates."""

    model: TorqueModel

    @cached_property
    def rows(self) -> FloatArray:
        """Matrix (m, rows) that makes them of the rows of the torque model."""
        drive = self.model.robot.drive
        found = np.eye(self.model.robot.coordinates, self.model.robot.rows)
        for gear in self.model.gears:
            found[gear.joint, gear.row] = -1.0
            if gear.joint in drive.torque_sensors:
                found[gear.motor, gear.row] = 1.0
        return found

    @cached_property
    def rubbing(self) -> NDArray[np.bool_]:
        """Matrix (m, a): true where the friction of an axis enters an equation."""
        axes = axes_of(self.model.robot)
        return np.asarray(self.rows @ axes.effort.T != 0.0)

    def counts(
        self, velocity: FloatArray, speed: float | FloatArray, around: int
    ) -> FloatArray:
        """Return (N, m) 1 where all axes with friction in an equation turn faster than ``speed``.

        ``velocity`` (N, m); ``speed`` [rad/s, m/s] of all axes or (a,) of each; for ``around``
        samples, of which the middle one counts.
        """
        from scipy.ndimage import minimum_filter1d

        axes = axes_of(self.model.robot)
        slowest = minimum_filter1d(np.abs(velocity @ axes.matrix.T), around, axis=0)
        slow = (slowest <= speed).astype(np.float64) @ self.rubbing.T
        return np.asarray((slow == 0.0).astype(np.float64))

    def mechanism(self, values: FloatArray) -> Mechanism:
        """Return the arm of base parameters (b,), whatever their sign."""
        robot, rigid = self.model.robot, self.model.robot.rigid
        reduction, axes = self.model.reduction, axes_of(self.model.robot.rigid)
        standard = dict(zip(reduction.standard, reduction.standard_values(values).tolist(),
                            strict=True))
        links = reduction.standard_values(values)[:10 * robot.n].reshape(-1, 10).copy()
        inertia = np.array([standard.get(f'Ia{label}', 0.0) for label in axes.labels])
        friction = AxisFriction.none(robot.n)
        for block in self.model.blocks:
            if isinstance(block, JointFriction):
                friction = JointFriction(axes, block.laws, block.load).with_values(standard)
        own = robot.drive.elastic
        gears = Gears(own, *np.array([[standard.get(f'{p}{j + 1}', 0.0) for j in own]
                                      for p in ('Ia', *GEAR)])) if own else None
        return Mechanism(rigid, links, SpinningRotors(robot).rotors(axes.matrix, inertia),
                         friction, gears)

    def slopes(self, motion: tuple[FloatArray, FloatArray, FloatArray], values: FloatArray
               ) -> Slopes:
        """Return the derivatives (N, m, m) of the equations by position, velocity, acceleration.

        ``motion`` (N, m) each; ``values`` (b,). Friction slides steadily: what its past does to it
        is taken as it is.
        """
        position, velocity, acceleration = motion
        return Derivatives(self.mechanism(values)).inverse(position, velocity, acceleration)
