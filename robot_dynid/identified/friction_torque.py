"""Friction torque of states taken each by itself, prepared once for many short calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_dynid.blas import one_blas_thread_for
from robot_dynid.dynamics.rollout import AxisFriction
from robot_dynid.friction import AxisMotion, CoulombAxes
from robot_dynid.regressor import JointFriction
from robot_dynid.types import FloatArray


class FrictionTorque:
    """The laws of all axes with their parameters, in steady sliding.

    ``values`` holds the standard parameters by name, such as ``fv1``. ``rows`` are the sliding
    laws as Coulomb's, several of one axis where needed; None where a law is none of these.
    """

    def __init__(self, friction: JointFriction, values: Mapping[str, float]) -> None:
        self._laws = friction.laws
        self._matrix = friction.axes.matrix
        self._load = friction.load
        self._values = [np.array([values[f'{p}{label}'] for p in law.parameters])
                        for label, law in zip(friction.axes.labels, self._laws, strict=True)]
        self.rows = self._sliding()
        self._together = None if self.rows is None else CoulombAxes(self.rows.table)
        self._direct = self.rows is not None and np.array_equal(
            self.rows.axes, np.eye(self._matrix.shape[1]))

    @property
    def needs_acceleration(self) -> bool:
        """Whether friction depends on the load."""
        return self._load is not None

    def _sliding(self) -> AxisFriction | None:
        tables = [law.sliding(v) for law, v in zip(self._laws, self._values, strict=True)]
        found = [t for t in tables if t is not None]
        if len(found) < len(tables):
            return None
        owners = np.repeat(np.arange(len(found)), [len(t) for t in found])
        return AxisFriction(self._matrix[owners], np.concatenate(found))

    def __call__(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None,
        links: tuple[FloatArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Return the torque (K, n) on the joints of states (K, n), at rest without ``qdd``.

        The acceleration matters only where friction depends on the load, which is that of
        ``links``, their position and velocity (K, n), where these move apart from the motors.
        """
        if self._direct and self._together is not None:
            return self._together(qd)
        with one_blas_thread_for(len(q)):
            if self._together is None:
                load = None if self._load is None else self._load(
                    *(links or (q, qd)), np.zeros_like(q) if qdd is None else qdd)
                return np.asarray(self._one_by_one(q, qd, load) @ self._matrix)
            assert self.rows is not None
            return np.asarray(self._together(qd @ self.rows.axes.T) @ self.rows.axes)

    def _one_by_one(self, q: FloatArray, qd: FloatArray, load: FloatArray | None) -> FloatArray:
        """Return the torque (K, a) of the axes under ``load`` (K, a), each by its own law."""
        position, velocity = q @ self._matrix.T, qd @ self._matrix.T
        time: FloatArray = np.arange(len(velocity), dtype=np.float64)
        starts = tuple(range(len(velocity)))
        torque = np.empty_like(velocity)
        for i, (law, values) in enumerate(zip(self._laws, self._values, strict=True)):
            motion = AxisMotion(time, position[:, i], velocity[:, i], starts,
                                None if load is None else load[:, i])
            torque[:, i] = values @ law.columns(motion)
        return torque
