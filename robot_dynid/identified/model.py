"""The identified model: predicts, and is saved as one self-contained readable file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.blas import one_blas_thread, one_blas_thread_for
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.momentum import InverseDynamics
from robot_dynid.dynamics.rollout import Integrator, Rollout
from robot_dynid.dynamics.rotors import Links, Rotors, SpinningRotors
from robot_dynid.errors import ModelError, UsageError, reported
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.files import atomic_write
from robot_dynid.friction import AxisFriction
from robot_dynid.identified import model_file
from robot_dynid.identified.caution import warn
from robot_dynid.identified.elastic_motion import ElasticMotion
from robot_dynid.identified.forward import accelerations
from robot_dynid.identified.friction_torque import FrictionTorque
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.rollout import rollout
from robot_dynid.identified.states import checked_states
from robot_dynid.identified.structure import Structure
from robot_dynid.identified.trained import Trained
from robot_dynid.reduction.base import Reduction
from robot_dynid.regressor import axes_of
from robot_dynid.residual import ResidualModel
from robot_dynid.residual.deflection import deflection_effort
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Progress, Samples


@dataclass(frozen=True, eq=False)
class IdentifiedModel:
    """Base parameters of a robot with everything needed to use and to assess them.

    ``values`` and ``std`` (b,) belong to ``reduction.names``; ``control`` (b,) are the nominal
    inertials with fitted friction, expressed in the same base parameters; ``status`` is the advice
    of the fit, ``not_identified`` the joints the model must not be used for: it warns of them,
    once. ``feasible`` (p,) are standard parameters that a real robot can have, where the fit gave
    such: ``values`` are ``reduction.matrix @ feasible`` then. Efforts are N m (N) on the joint
    side, whatever unit the robot reports. ``residual_models`` add, joint by joint, what the
    deflection of gears shows. ``trained`` are the ranges of the recordings it was fitted
    to, empty where not known; ``noise_levels`` those of the external torque in them. ``record``
    says how the model was found.
    """

    robot: RobotModel
    structure: Structure
    reduction: Reduction
    values: FloatArray
    std: FloatArray
    control: FloatArray
    preprocessing: Preprocessing
    method: str = ''
    status: str = ''
    not_identified: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    record: FitRecord = field(default_factory=FitRecord)
    feasible: FloatArray | None = None
    residual_models: tuple[ResidualModel | None, ...] = ()
    trained: Trained = field(default_factory=Trained)
    noise_levels: NoiseLevels | None = None

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in the order of all columns."""
        return self.robot.joints

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.reduction.names

    @property
    def labels(self) -> tuple[str, ...]:
        """Each base parameter as a combination of standard parameters."""
        return self.reduction.labels

    @property
    def elastic_joints(self) -> tuple[str, ...]:
        """Names of the joints whose gears deflect."""
        return tuple(self.joints[gear.joint] for gear in self.torque_model.gears)

    @cached_property
    def torque_model(self) -> TorqueModel:
        """The regressor the values belong to."""
        return self.structure.torque_model(self.robot, self.reduction)

    @cached_property
    def standard(self) -> dict[str, float]:
        """Standard parameters by name: feasible ones, or such of the same motion.

        The latter are zero where the base parameters do not need them.
        """
        values = (float(v) for v in self._standard_values)
        return dict(zip(self.reduction.standard, values, strict=True))

    @cached_property
    def _standard_values(self) -> FloatArray:
        known = self.feasible
        return self.reduction.standard_values(self.values) if known is None else known

    @cached_property
    def _links(self) -> FloatArray:
        return self._standard_values[:10 * self.robot.n].reshape(-1, 10).copy()

    @property
    def feasible_links(self) -> FloatArray | None:
        """Feasible parameters (n, 10) of the links, in their frames; None where there are none."""
        return None if self.feasible is None else self._links.copy()

    @cached_property
    def _rotors(self) -> Rotors:
        axes = axes_of(self.robot.rigid)
        inertia = np.array([self.standard.get(f'Ia{label}', 0.0) for label in axes.labels])
        return SpinningRotors(self.robot).rotors(axes.matrix, inertia)

    @cached_property
    def _dynamics_robot(self) -> RobotModel:
        return self.torque_model.robot.rigid

    @cached_property
    def _friction_torque(self) -> FrictionTorque:
        return FrictionTorque(self.structure.friction_of(self._dynamics_robot), self.standard)

    @cached_property
    def _forward_dynamics(self) -> rigid_body.ForwardDynamics:
        return rigid_body.ForwardDynamics(self._dynamics_robot, self._links, self._rotors)

    @property
    def axis_friction(self) -> AxisFriction:
        """The friction of all axes with their parameters."""
        return self._friction_torque.axes

    @property
    def friction_needs_load(self) -> bool:
        """Whether friction depends on the load."""
        return self._friction_torque.needs_acceleration

    @cached_property
    def elastic_motion(self) -> ElasticMotion:
        """Motion of links and motors; raises UsageError where all joints are rigid."""
        if not self.elastic_joints:
            raise UsageError('the joints of this model are rigid: its motors move with them')
        return ElasticMotion(self)

    @cached_property
    def integrator(self) -> Integrator:
        """The compiled integration of motions."""
        return Integrator(self._dynamics_robot, self._links, self._rotors, self.axis_friction)

    @cached_property
    def links(self) -> Links:
        """The links and rotors, such of the same motion where no feasible ones are known."""
        warn(self)
        return Links(self._dynamics_robot, self._links, self._rotors)

    @cached_property
    def _inverse_dynamics(self) -> InverseDynamics:
        return InverseDynamics(self._dynamics_robot, self._links, self._rotors)

    def frictionless_effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the effort (K, n) of links and rotors in float states (K, n), unchecked."""
        with one_blas_thread_for(len(q)):
            return self._inverse_dynamics(q, qd, qdd)

    def friction(self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None) -> FloatArray:
        """Return the friction torque (K, n) of states (K, n), each taken by itself.

        Each slides steadily; the acceleration (none: zero) enters where friction grows with load.
        """
        return self._friction_torque(q, qd, qdd)

    def inverse(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> FloatArray:
        """Return the effort (K, n) [N m] of states (K, n) or (n,).

        Raises UsageError on wrong shapes or numbers that are not finite.
        """
        (a, b, c), single = checked_states(
            self, {'position': q, 'velocity': qd, 'acceleration': qdd})
        effort = self.frictionless_effort(a, b, c) + self.friction(a, b, c)
        return effort[0] if single else effort

    def forward(self, q: ArrayLike, qd: ArrayLike, effort: ArrayLike) -> FloatArray:
        """Return the acceleration (K, n) [rad/s^2] of states (K, n) or (n,) under effort [N m].

        Only the base parameters are needed: the dependent standard parameters are zero. Raises
        UsageError on wrong input, ModelError where the mass matrix is not positive definite.
        """
        (a, b, c), single = checked_states(
            self, {'position': q, 'velocity': qd, 'effort': effort})
        acceleration = self.accelerations(a, b, c)
        return acceleration[0] if single else acceleration

    def accelerations(self, q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        """Return `forward` of float states (K, n) that were checked already.

        Raises ModelError where the mass matrix is not positive definite, or a number not finite.
        """
        def solve(before: FloatArray | None) -> tuple[FloatArray, FloatArray]:
            return self._forward_dynamics(q, qd, effort - self.friction(q, qd, before))

        return accelerations(solve, self.friction_needs_load, q)

    def forward_elastic(
        self, q: ArrayLike, qd: ArrayLike, effort: ArrayLike, motor_position: ArrayLike,
        motor_velocity: ArrayLike,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the accelerations of links and motors, each (K, n) or (n,), as `forward` does.

        Motors are on the joint side; where a joint is rigid its motor does what the joint does.
        Raises ModelError for a motor or gear that cannot be.
        """
        states, single = checked_states(self, {
            'position': q, 'velocity': qd, 'effort': effort, 'motor_position': motor_position,
            'motor_velocity': motor_velocity})
        links, motors = self.elastic_motion.accelerations(*states)
        return (links[0], motors[0]) if single else (links, motors)

    def mass_matrix(self, q: ArrayLike) -> FloatArray:
        """Return the joint-space inertia (K, n, n) or (n, n) [kg m^2], rotors included."""
        (a,), single = checked_states(self, {'position': q})
        matrix = rigid_body.mass_matrix(self._dynamics_robot, a, self._links, self._rotors)
        return matrix[0] if single else matrix

    def gravity(self, q: ArrayLike) -> FloatArray:
        """Return the effort (K, n) or (n,) [N m] of the weight alone."""
        (a,), single = checked_states(self, {'position': q})
        effort = rigid_body.gravity_effort(self._dynamics_robot, a, self._links)
        return effort[0] if single else effort

    def rollout(
        self, q0: ArrayLike, qd0: ArrayLike, effort: ArrayLike, dt: float,
        motors: tuple[ArrayLike, ArrayLike] | None = None, progress: Progress | None = None,
    ) -> Rollout:
        """Return positions and velocities (K, T, n) under efforts (K, T, n) held for ``dt`` [s].

        ``q0`` and ``qd0`` (K, n) or (n,); ``motors`` likewise the position and velocity of the
        motors: joints are elastic then. A motion that leaves the joint limits, or that cannot go
        on, is named in the result and stops no other. ``progress`` is called after every piece of
        the work; an error of its ends the work. Raises UsageError on wrong input.
        """
        own = dict(zip(('motor_position', 'motor_velocity'), motors or (), strict=False))
        states, _ = checked_states(self, {'position': q0, 'velocity': qd0, **own})
        held = np.array(effort, dtype=np.float64, ndmin=3)
        if not np.isfinite(held).all():
            raise UsageError('effort holds numbers that are not finite')
        return rollout(self, states, held, dt, progress)

    def outside(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Return a mask (K, n) or (n,) of the joints outside the ranges of the training."""
        given = {'position': q, 'velocity': qd, **({} if qdd is None else {'acceleration': qdd})}
        states, single = checked_states(self, given)
        beyond = self.trained.outside(self.robot, dict(zip(given, states, strict=True)))
        return beyond[0] if single else beyond

    @one_blas_thread()
    def predicted(self, samples: Samples) -> FloatArray:
        """Return the modelled effort (N, n) [N m]: friction with its past, deflection if known."""
        warn(self)
        added = deflection_effort(self.robot, self.residual_models, samples)
        return self.torque_model.effort(samples, self.values) + added

    def residual(self, samples: Samples) -> FloatArray:
        """Return measured minus modelled effort (N, n) [N m]; raises UsageError without effort."""
        if samples.measured is None:
            raise UsageError('these samples carry no measured effort')
        return np.asarray(samples.measured - self.predicted(samples))

    def require(self, robot: RobotModel) -> None:
        """Raise ModelError unless the model is of ``robot``: joints, geometry, gravity agree."""
        if robot.hash() != self.robot.hash():
            raise ModelError(
                f'the model was identified for {self.robot.name} ({", ".join(self.joints)}; hash '
                f'{self.robot.hash()}), not for {robot.name} (hash {robot.hash()}): joints, '
                'geometry or gravity differ; identify this robot, or load its own model')

    def to_yaml(self) -> str:
        """Return the model as text."""
        return model_file.dump(self)

    def save(self, path: str | Path, inside: Path | None = None) -> None:
        """Write the model; an earlier model file is replaced only once the new one is complete.

        With ``inside``, the file must lie below that folder. Raises UsageError for a path where
        something else is, DynIdError when the file cannot be written.
        """
        atomic_write(path, self.to_yaml(), model_file.MARK, inside)

    @classmethod
    @reported
    def from_yaml(cls, text: str, source: str = 'model') -> IdentifiedModel:
        """Read a model from text. Raises ModelError when it is damaged or incomplete."""
        return cls(**model_file.parse(text, source))

    @classmethod
    @reported
    def load(cls, path: str | Path, robot: RobotModel | None = None) -> IdentifiedModel:
        """Read a model file; with ``robot``, refuse a model of another robot.

        Raises UsageError when there is no such file, ModelError when it cannot be used.
        """
        model = cls.from_yaml(model_file.read(path), str(path))
        if robot is not None:
            model.require(robot)
        return model
