"""The arm that a torque model describes, with values of its parameters, for simulation.

Links and rotors move as the simulated state says. Whatever else acts, friction above all, is that
along the measured motion, filtered as the effort and with all its past, plus what steady sliding
differs between the simulated and the measured speed: where both agree the equation of motion is
the one that least squares fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.derivatives import Derivatives
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.friction import AxisFriction
from robot_dynid.friction.terms import slid, table_of, warm
from robot_dynid.kernels.friction import REFERENCE
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class SlidingFriction:
    """The chosen parameters of friction in steady sliding, for the kernels.

    ``axes`` (a, n) turn with the joints; ``owner`` (k,) is the axis of each parameter; ``terms``
    (t, COLUMNS) are by parameter.
    """

    axes: FloatArray
    owner: NDArray[np.int64]
    terms: FloatArray

    @classmethod
    def of(cls, friction: JointFriction, chosen: NDArray[np.int64]) -> SlidingFriction:
        """Return those of the ``chosen`` parameters (k,) of a block; joints are warm."""
        known = [(axis, parameter) for axis, law in enumerate(friction.laws)
                 for parameter in law.table]
        terms = slid(warm(table_of([known[i][1] for i in chosen])))
        return cls(np.ascontiguousarray(friction.axes.matrix),
                   np.array([known[i][0] for i in chosen], dtype=np.int64),
                   np.ascontiguousarray(terms[np.isnan(terms[:, REFERENCE])]))

    @property
    def tables(self) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
        """Axes (a, n), owners (k,) and terms (t, COLUMNS)."""
        return self.axes, self.owner, self.terms


@dataclass(frozen=True, eq=False)
class ArmModel:
    """A torque model of an arm whose joints are rigid, split into what moves and what is beside.

    ``moving`` (b,) is true for parameters of links and rotors, ``beside`` for all others.
    Raises UsageError where gears are elastic.
    """

    torque: TorqueModel

    def __post_init__(self) -> None:
        if self.torque.gears:
            raise UsageError('the method trajectory simulates rigid joints: leave elastic joints '
                             'out of the robot, or choose --method elastic')

    @cached_property
    def moving(self) -> NDArray[np.bool_]:
        """Mask (b,) of the parameters of links and rotors."""
        return np.concatenate([
            np.full(len(chosen), block.smooth)
            for block, chosen in zip(self.torque.blocks, self.torque.pivots_by_block,
                                     strict=True)])

    @cached_property
    def sliding(self) -> SlidingFriction:
        """Friction in steady sliding."""
        return next(SlidingFriction.of(block, chosen) for block, chosen in zip(
            self.torque.blocks, self.torque.pivots_by_block, strict=True)
            if isinstance(block, JointFriction))

    @cached_property
    def frictional(self) -> NDArray[np.bool_]:
        """Mask (b,) of the parameters of friction."""
        return np.concatenate([
            np.full(len(chosen), isinstance(block, JointFriction))
            for block, chosen in zip(self.torque.blocks, self.torque.pivots_by_block,
                                     strict=True)])

    def pressed(self, samples: Samples) -> FloatArray:
        """Return the size (N, a) [N m] of the loads on the axes along a motion."""
        for block in self.torque.blocks:
            if isinstance(block, JointFriction) and block.load is not None:
                return np.abs(block.load(samples.position, samples.velocity,
                                         samples.acceleration))
        return np.zeros((len(samples), len(axes_of(self.torque.robot).labels)))

    def moving_columns(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the columns (n, m, K) of links and rotors in states (K, n)."""
        states = Samples(self.torque.robot.joints, np.arange(len(q), dtype=np.float64), q, qd, qdd)
        out = np.zeros((self.torque.robot.n, int(self.moving.sum()), len(q)))
        first = 0
        for block, chosen in zip(self.torque.blocks, self.torque.pivots_by_block, strict=True):
            if block.smooth and len(chosen):
                own = out[:, first:first + len(chosen)]
                block.fill(states, block.history(states), chosen, own)
                first += len(chosen)
        return out

    def with_values(self, values: FloatArray) -> Arm:
        """Return the arm of base parameters (b,)."""
        return Arm(self, np.asarray(values, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm with the base parameters ``values`` (b,)."""

    model: ArmModel
    values: FloatArray

    @cached_property
    def mechanism(self) -> Mechanism:
        """The arm without a past, as simulators take it."""
        reduction = self.model.torque.reduction
        standard = reduction.standard_values(self.values)
        return self.model.torque.mechanism(
            dict(zip(reduction.standard, standard.tolist(), strict=True)))

    @cached_property
    def _frictionless(self) -> Derivatives:
        none = AxisFriction.none(self.model.torque.robot.n)
        return Derivatives(replace(self.mechanism, friction=none))

    def mass_matrix(self, q: FloatArray) -> FloatArray:
        """Return the joint-space inertia (K, n, n) [kg m^2] at positions (K, n)."""
        return rigid_body.mass_matrix(
            self.model.torque.robot, q, self.mechanism.links, self.mechanism.rotors)

    def effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the effort (K, n) [N m] of links and rotors in states (K, n)."""
        return self._frictionless.effort(q, qd, qdd)

    def gradients(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives (K, n, n) of `effort` in position and velocity."""
        return self._frictionless.inverse(q, qd, qdd)[:2]
