"""Rotor inertia, reflected to the joint side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import ACCELERATION, RegressorColumns, RotorColumns
from robot_dynid.dynamics.rotors import Rotors, SpinningRotors
from robot_dynid.effects.effect import Axes, Effect, ParameterWords, linear_entries, zero_gradients
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: joint; its axis, and angular velocity, its rate and weighted axes of the previous link, all (N,
#: 3)
ChainJoint = tuple[int, FloatArray, FloatArray, FloatArray, FloatArray]


def rotor_pullback(
    robot: RobotModel, rotors: Rotors, samples: Samples, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return gradients (N, coordinates) in position, velocity, acceleration of a weighted effort.

    The effort is that of the first rotor on a moving link without reflected inertia, weighted by
    ``weights`` (coordinates, N). With u the sum of the weighted joint axes before the rotor it is
    u . (theta_dd a + theta_d w x a) + (weight of the motor) a . w_d; turning a joint turns
    everything after it against the motion of the previous link.
    """
    motion = rotors.motions[0]
    speed, rate, back = (x[:, None] for x in (
        samples.velocity @ motion, samples.acceleration @ motion, weights.T @ motion))
    chain, (line, turn, _, weighted) = _along_chain(robot, rotors, samples, weights)
    spun = np.cross(turn, line)
    of_turn, of_weighted = speed * np.cross(line, weighted), rate * line + speed * spun
    of_rate = back * line
    gradients = tuple(np.zeros(samples.position.shape) for _ in range(3))
    for j, axis, turn_before, rate_before, weighted_before in chain:
        moved = np.cross(turn_before, axis)
        gradients[0][:, j] = (
            _dot(of_turn, moved) + _dot(of_weighted, np.cross(weighted_before, axis))
            + _dot(of_rate, np.cross(rate_before, axis) + np.cross(turn_before - turn, moved)))
        gradients[1][:, j] = _dot(of_turn, axis) + _dot(
            of_rate, 2.0 * moved - np.cross(turn, axis))
        gradients[2][:, j] = _dot(of_rate, axis)
    gradients[1][:] += np.outer(_dot(weighted, spun), motion)
    gradients[2][:] += np.outer(_dot(weighted, line), motion)
    return gradients[0], gradients[1], gradients[2]


def _along_chain(
    robot: RobotModel, rotors: Rotors, samples: Samples, weights: FloatArray
) -> tuple[list[ChainJoint], tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Return the joints before the rotor, then its axis, angular velocity, rate and weighted axes.
"""
    chain = [int(rotors.carriers[0])]
    while robot.parents[chain[-1]] >= 0:
        chain.append(int(robot.parents[chain[-1]]))
    count = len(samples)
    rotation = np.tile(np.eye(3), (count, 1, 1))
    turn, rate, weighted = (np.zeros((count, 3)) for _ in range(3))
    joints: list[ChainJoint] = []
    for j in reversed(chain):
        table, q = robot.geometry[j], samples.position[:, j, None, None]
        rotation = rotation @ (
            table[:9].reshape(3, 3) + np.cos(q) * table[9:18].reshape(3, 3)
            + np.sin(q) * table[18:27].reshape(3, 3))
        axis = rotation @ robot.axes[j] * float(robot.types[j] != PRISMATIC)
        joints.append((j, axis, turn, rate, weighted))
        speed = samples.velocity[:, j, None]
        rate = rate + samples.acceleration[:, j, None] * axis + speed * np.cross(turn, axis)
        turn, weighted = turn + speed * axis, weighted + weights[j, :, None] * axis
    return joints, (rotation @ rotors.axes[0], turn, rate, weighted)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum('nk,nk->n', a, b))


@dataclass(frozen=True, eq=False)
class RotorInertia(Effect):
    """``Ia`` times the acceleration of each axis.

    Torque sensors on the link side do not see rotors: omit the block for them. ``spinning`` adds
    the torque of rotors on the links that carry them, if their axes are known.
    """

    axes: Axes
    spinning: SpinningRotors | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """``Ia1`` and so on; ``Iam6`` for the coupled motor of joint 6."""
        return tuple(f'Ia{label}' for label in self.axes.labels)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """All of them."""
        return self.names

    @property
    def words(self) -> Iterator[ParameterWords]:
        """Inertia of every rotor."""
        return (ParameterWords(name, part, 'rotor inertia, on the joint side',
                               'kg' if slides else 'kg m^2')
                for name, part, slides in zip(
                    self.names, self.axes.parts, self.axes.slides, strict=True))

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with these rotors, which move with their joints."""
        inertia = np.array([values[name] for name in self.names])
        spinning = self.spinning or SpinningRotors(mechanism.robot)
        return replace(mechanism, rotors=spinning.rotors(self.axes.rigid, inertia))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the acceleration of the ``chosen`` (k,) axes.

        For rotors on moving links also the inertial effort on these links.
        """
        mounted = [] if self.spinning is None else [
            (column, int(index)) for column, index in enumerate(chosen)
            if self.spinning.mounted(int(index))]
        coupled = {column for column, _ in mounted}
        entries = tuple(
            entry for column, index in enumerate(chosen) if column not in coupled
            for entry in linear_entries(column, self.axes.effort[index], ACCELERATION,
                                self.axes.matrix[index]))
        if self.spinning is None or not mounted:
            return RegressorColumns(len(chosen), entries=entries)
        robot = self.spinning.robot
        parts = [self._one(self.spinning, index) for _, index in mounted]
        rotors = Rotors(parts[0].inertia, *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ('carriers', 'axes', 'motions')))
        columns = np.array([column for column, _ in mounted], dtype=np.int64)
        return RegressorColumns(len(chosen), robot, None, RotorColumns(
            columns, rotors, self._rows(robot)), entries)

    def _one(self, spinning: SpinningRotors, index: int) -> Rotors:
        return spinning.rotors(self.axes.matrix, np.eye(len(self.axes.labels))[index])

    def _rows(self, robot: RobotModel) -> FloatArray:
        """Return (coordinates, rows): the equations that an effort on each coordinate enters."""
        rows = np.eye(robot.coordinates, robot.rows)
        rows[robot.n:] = self.axes.effort[list(robot.drive.elastic)]
        return rows

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (N, n) of sum(weights * columns) in the motion.

        ``weights`` (n, k, N). Nonzero in the acceleration only, unless a moving link carries the
        rotor.
        """
        gradients = zero_gradients(samples)
        for column, index in enumerate(chosen):
            pulled = self.axes.effort[index] @ weights[:, column]
            gradients[2][:] += np.outer(pulled, self.axes.matrix[index])
            if self.spinning is not None and self.spinning.mounted(int(index)):
                robot = self.spinning.robot
                for total, part in zip(gradients, rotor_pullback(
                        robot, self._one(self.spinning, int(index)), samples,
                        self._rows(robot) @ weights[:, column]), strict=True):
                    total += part
        return gradients
