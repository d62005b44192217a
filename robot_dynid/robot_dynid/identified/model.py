"""Identified model: predicts efforts and motions, saved as one self-contained readable file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.derivatives import Derivatives, Slopes
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rigid_body import require_solved
from robot_dynid.dynamics.rollout import Integrator, Rollout
from robot_dynid.dynamics.rotors import Links, Rotors
from robot_dynid.effects import LEARNT, LearntEffect
from robot_dynid.effects.ripple import RippleTorque
from robot_dynid.errors import ModelError, UsageError, reported
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.files import atomic_write
from robot_dynid.friction import AxisFriction
from robot_dynid.identified import model_file
from robot_dynid.identified.caution import cautions, stiff_leaves_out, warn, warn_of
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.states import (
    DriveMotion,
    ElasticMotion,
    FrictionTorque,
    checked_states,
    effort_by_parameters,
    pushed,
    rollout,
)
from robot_dynid.identified.structure import Structure
from robot_dynid.identified.trained import Trained
from robot_dynid.identified.uncertainty import effort_intervals
from robot_dynid.reduction.base import Reduction
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.robot.urdf_text import generate_urdf
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Portable, Progress, Samples

if TYPE_CHECKING:
    from pydrake.multibody.plant import MultibodyPlant

    from robot_dynid.dynamics.wrist import WristSensor
    from robot_dynid.export.c_code import CCode
    from robot_dynid.export.equations import Functions
    from robot_dynid.export.identified_arm import IdentifiedArm
    from robot_dynid.export.mjcf import Mjcf
    from robot_dynid.export.mujoco import MjModel
    from robot_dynid.export.pinocchio import Model
    from robot_dynid.export.sdf import Sdf
    from robot_dynid.export.solver_parameters import SolverParameters
    from robot_dynid.export.urdf import Export

#: fewest samples of a motion for finite differences
DIFFERENCE_SAMPLES = 3


@dataclass(frozen=True, eq=False)
class IdentifiedModel(Portable):
    """Base parameters of a robot with everything needed to use and to assess them.

    ``values`` and ``std`` (b,) belong to ``reduction.names``; ``control`` (b,) is the baseline,
    nominal inertials with fitted friction, in the same base parameters; ``status`` is the advice
    of the fit, ``not_identified`` the joints the model must not be used for, with one warning.
    ``feasible`` (p,) are physically feasible standard parameters, if the fit gave them: then
    ``values`` are ``reduction.matrix @ feasible``. ``correlation_factor`` U (b, b) is upper
    triangular with correlations U^T U, or None. Efforts are N m (N) on the joint side, whatever
    unit the robot reports. ``learnt`` are the parts, one per joint, of additive learnt effects, by
    their key in `LEARNT`. ``trained`` are the ranges of the training recordings, ``noise_levels``
    those of the external torque in them. ``record`` documents the fit.
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
    learnt: Mapping[str, tuple[Any | None, ...]] = field(default_factory=dict)
    trained: Trained = field(default_factory=Trained)
    noise_levels: NoiseLevels | None = None
    correlation_factor: FloatArray | None = None

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
        """Names of the joints with elastic gears."""
        return tuple(self.joints[gear.joint] for gear in self.torque_model.gears)

    @cached_property
    def torque_model(self) -> TorqueModel:
        """The regressor the values belong to."""
        return self.structure.torque_model(self.robot, self.reduction)

    @cached_property
    def standard(self) -> dict[str, float]:
        """Standard parameters by name: feasible ones, or equivalent ones.

        The latter are zero where the base parameters do not need them.
        """
        values = (float(v) for v in self._standard_values)
        return dict(zip(self.reduction.standard, values, strict=True))

    @cached_property
    def _standard_values(self) -> FloatArray:
        feasible = self.feasible
        return self.reduction.standard_values(self.values) if feasible is None else feasible

    @cached_property
    def mechanism(self) -> Mechanism:
        """Links, rotors, friction and gears, for simulators and controllers."""
        return self.torque_model.mechanism(self.standard)

    @property
    def _links(self) -> FloatArray:
        return self.mechanism.links

    @property
    def _rotors(self) -> Rotors:
        return self.mechanism.rotors

    @property
    def axis_friction(self) -> AxisFriction:
        """Friction of all axes with its parameters."""
        return self.mechanism.friction

    @property
    def feasible_links(self) -> FloatArray | None:
        """Feasible parameters (n, 10) of the links, in their frames, or None."""
        return None if self.feasible is None else self._links[:, :10].copy()

    @property
    def _dynamics_robot(self) -> RobotModel:
        return self.mechanism.robot

    @cached_property
    def _friction_torque(self) -> FrictionTorque:
        return FrictionTorque(self.mechanism.robot, self.axis_friction)

    @cached_property
    def _forward_dynamics(self) -> rigid_body.ForwardDynamics:
        return rigid_body.ForwardDynamics(
            self._dynamics_robot, self._links, self._rotors, self.axis_friction)

    def parts_of(self, effect: str) -> tuple[Any | None, ...]:
        """Return the part of each joint of a learnt ``effect``, None for joints without it."""
        return self.learnt.get(effect) or (None,) * self.robot.n

    def with_learnt(self, effect: str, parts: Sequence[Any | None]) -> IdentifiedModel:
        """Return the model with ``parts``, one for each joint, of a learnt ``effect``."""
        others = {key: others_parts for key, others_parts in self.learnt.items() if key != effect}
        added = {effect: tuple(parts)} if any(one is not None for one in parts) else {}
        return replace(self, learnt={**others, **added})

    @cached_property
    def learnt_effects(self) -> Mapping[str, LearntEffect]:
        """Learnt effects of the model, in the order of addition."""
        return {key: kind(self.learnt[key]) for key, kind in LEARNT.items() if key in self.learnt}

    @cached_property
    def ripple_torque(self) -> RippleTorque:
        """Torque ripple of all joints."""
        return RippleTorque(self.parts_of('ripple'))

    @property
    def gears(self) -> Gears:
        """Motors and gears of elastic joints; raises UsageError if all joints are rigid."""
        if self.mechanism.gears is None:
            raise UsageError('this model has rigid joints only; identify it with elastic_joints')
        return self.mechanism.gears

    @cached_property
    def elastic_motion(self) -> ElasticMotion:
        """Motion of links and motors; raises UsageError if all joints are rigid."""
        return ElasticMotion(self)

    @cached_property
    def integrator(self) -> Integrator:
        """Compiled integration of motions."""
        return Integrator(self._dynamics_robot, self._links, self._rotors, self.axis_friction)

    @cached_property
    def arm(self) -> IdentifiedArm:
        """Mechanism with feasible links and its uncertainty, for all exports.

        Raises ModelError if the fit gave no physically feasible parameters.
        """
        from robot_dynid.export.identified_arm import IdentifiedArm

        if self.feasible is None:
            raise ModelError(
                f'the model of {self.robot.name} has no physically feasible parameters (method '
                f'{self.method or "unknown"}); identify with --method feasible')
        changing = (joint for joint, one in zip(
            self.joints, self.parts_of('adaptation'), strict=True) if one is not None)
        delay = self.preprocessing.effort_lag if self.robot.drive.kind == POSITION_ERROR else 0.0
        return IdentifiedArm(self.mechanism, self.trained.quantities, self.not_identified,
                             self.parts_of('ripple'), tuple(changing), delay)

    @cached_property
    def _derivatives(self) -> Derivatives:
        return Derivatives(replace(self.mechanism, gears=None))

    @cached_property
    def links(self) -> Links:
        """Links and rotors, feasible or with the same motion."""
        warn(self)
        return Links(self._dynamics_robot, self._links, self._rotors)

    @cached_property
    def _inverse_dynamics(self) -> rigid_body.InverseDynamics:
        return rigid_body.InverseDynamics(
            self._dynamics_robot, self._links, self._rotors, self.axis_friction)

    @cached_property
    def _smooth_dynamics(self) -> rigid_body.InverseDynamics:
        return rigid_body.InverseDynamics(self._dynamics_robot, self._links, self._rotors)

    def frictionless_effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the effort (K, n) without friction in float states (K, n), unchecked."""
        return self._smooth_dynamics(q, qd, qdd)

    def friction(self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None) -> FloatArray:
        """Return the friction torque (K, n) of independent states (K, n) in steady sliding.

        The acceleration (default zero) matters only for friction that depends on the load.
        """
        return self._friction_torque(q, qd, qdd)

    def inverse(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, ripple: bool = False,
        external: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the effort (K, n) [N m] of states (K, n) or (n,).

        With ``ripple`` that of measured positions, torque ripple included; without it for
        feed-forward, because planned positions miss its phase (docs/ripple.md). ``external``
        torque [N m] on the joints, from `external_torque`, is subtracted from the drive effort.
        Raises UsageError on wrong shapes or numbers that are not finite.
        """
        (a, b, c, *given), single = checked_states(
            self, {'position': q, 'velocity': qd, 'acceleration': qdd} | _if_given(external))
        effort = self._inverse_dynamics(a, b, c)
        for torque in given:
            effort = effort - torque - self._friction_torque.relief(a, b, c, torque)
        if ripple:
            effort = effort + self.ripple_torque(a, b, effort)
        return effort[0] if single else effort

    def forward(
        self, q: ArrayLike, qd: ArrayLike, effort: ArrayLike, external: ArrayLike | None = None
    ) -> FloatArray:
        """Return the acceleration (K, n) [rad/s^2] of states (K, n) or (n,) under effort [N m].

        ``external`` torque [N m] on the joints, from `external_torque`, adds to the drive effort.
        Only the base parameters are needed: dependent standard parameters are zero. Raises
        UsageError on wrong input, ModelError where the mass matrix is not positive definite.
        """
        (a, b, c, *given), single = checked_states(
            self, {'position': q, 'velocity': qd, 'effort': effort} | _if_given(external))
        acceleration = pushed(self.accelerations, self._friction_torque, (a, b, c), *given) \
            if given else self.accelerations(a, b, c)
        return acceleration[0] if single else acceleration

    def accelerations(self, q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        """Return `forward` of checked float states (K, n).

        Raises ModelError if the mass matrix is not positive definite, or a number is not finite.
        """
        result, verdicts = self._forward_dynamics(q, qd, effort)
        require_solved(verdicts, q)
        return result

    def inverse_derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Slopes:
        """Return the derivatives of `inverse` by position, velocity and acceleration.

        Each (K, n, n) or (n, n): row i is the effort of joint i, column j the motion of joint j.
        Friction is included, one-sided at its corners. Raises UsageError on wrong input.
        """
        (a, b, c), single = checked_states(
            self, {'position': q, 'velocity': qd, 'acceleration': qdd})
        return _of_one(self._derivatives.inverse(a, b, c), single)

    def forward_derivatives(self, q: ArrayLike, qd: ArrayLike, effort: ArrayLike) -> Slopes:
        """Return the derivatives of `forward` by position, velocity and effort.

        Each (K, n, n) or (n, n), as of `inverse_derivatives`. Raises UsageError on wrong input,
        ModelError where the mass matrix is not positive definite.
        """
        (a, b, c), single = checked_states(
            self, {'position': q, 'velocity': qd, 'effort': effort})
        return _of_one(self._derivatives.forward(a, b, c, self.accelerations(a, b, c)), single)

    @one_blas_thread()
    def inverse_by_parameters(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> FloatArray:
        """Return the derivatives (K, n, b) or (n, b) of `inverse` by ``values``: the regressor.

        Raises UsageError on wrong input.
        """
        (a, b, c), single = checked_states(
            self, {'position': q, 'velocity': qd, 'acceleration': qdd})
        by_values = effort_by_parameters(self, a, b, c)
        return by_values[0] if single else by_values

    @one_blas_thread()
    def effort_interval(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> FloatArray:
        """Return half of the 95 % interval (K, n) or (n,) [N m] of `inverse`.

        It covers the parameter uncertainty and the model error on motion that was not fitted.
        Raises UsageError on wrong input, ModelError for a model without covariance.
        """
        states, single = checked_states(
            self, {'position': q, 'velocity': qd, 'acceleration': qdd})
        half = effort_intervals(self, *states)
        return half[0] if single else half

    @one_blas_thread()
    def forward_by_parameters(self, q: ArrayLike, qd: ArrayLike, effort: ArrayLike) -> FloatArray:
        """Return the derivatives (K, n, b) or (n, b) of `forward` by ``values``.

        Minus the inverse inertia times the regressor. Raises as `forward_derivatives`.
        """
        (a, b, c), single = checked_states(
            self, {'position': q, 'velocity': qd, 'effort': effort})
        qdd = self.accelerations(a, b, c)
        *_, by_effort = self._derivatives.forward(a, b, c, qdd)
        by_values = -by_effort @ effort_by_parameters(self, a, b, qdd)
        return by_values[0] if single else by_values

    def forward_elastic(
        self, q: ArrayLike, qd: ArrayLike, effort: ArrayLike, motor_position: ArrayLike,
        motor_velocity: ArrayLike, external: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the accelerations of links and motors, each (K, n) or (n,), as `forward` does.

        Motors are on the joint side; the motor of a rigid joint moves with the joint. ``external``
        torque [N m] acts on the links. Raises ModelError for an unphysical motor or gear.
        """
        states, single = checked_states(self, {
            'position': q, 'velocity': qd, 'effort': effort, 'motor_position': motor_position,
            'motor_velocity': motor_velocity} | _if_given(external))
        links, motors = self.elastic_motion.accelerations(*states)
        return (links[0], motors[0]) if single else (links, motors)

    @one_blas_thread()
    def inverse_elastic(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, dt: float,
        external: ArrayLike | None = None,
    ) -> DriveMotion:
        """Return the motion of the motors and their effort (T, n) for one motion of the links.

        ``q``, ``qd`` and ``qdd`` (T, n) are consecutive samples, ``dt`` [s] apart: gears include
        their kinematic error, and hysteresis from a relaxed state at rest. ``external`` torque [N
        m] acts on the links. The motor of a rigid joint is the joint. Raises UsageError on wrong
        input, ModelError for an unphysical motor or gear.
        """
        states, single = checked_states(
            self, {'position': q, 'velocity': qd, 'acceleration': qdd} | _if_given(external))
        if single or len(states[0]) < DIFFERENCE_SAMPLES:
            raise UsageError(
                f'a motion of motors takes {DIFFERENCE_SAMPLES} samples (T, n) or more')
        if not 0.0 < dt < np.inf:
            raise UsageError(f'the step of a motion must be positive seconds, is {dt}')
        return self.elastic_motion.inverse(np.array(states[:3]), dt, *states[3:])

    def to_casadi(self) -> Functions:
        """Return ``inverse`` and ``forward`` with friction as CasADi functions.

        See `Functions`: coordinates are the joints, then the motors of elastic joints. Omitted
        effects are a Python warning. Raises MissingDependency without CasADi.
        """
        from robot_dynid.export.functions import casadi_functions

        warn(self)
        warn_of(stiff_leaves_out(self))
        return casadi_functions(self.mechanism)

    def to_jax(self) -> Functions:
        """Return ``inverse`` and ``forward`` with friction as JAX functions.

        As `to_casadi`; enables double precision of JAX. Raises MissingDependency without JAX.
        """
        from robot_dynid.export.functions import jax_functions

        warn(self)
        warn_of(stiff_leaves_out(self))
        return jax_functions(self.mechanism)

    def mass_matrix(self, q: ArrayLike) -> FloatArray:
        """Return the joint-space inertia (K, n, n) or (n, n) [kg m^2], rotors included."""
        (a,), single = checked_states(self, {'position': q})
        matrix = rigid_body.mass_matrix(self._dynamics_robot, a, self._links, self._rotors)
        return matrix[0] if single else matrix

    def gravity(self, q: ArrayLike) -> FloatArray:
        """Return the gravity effort (K, n) or (n,) [N m], counterbalances included."""
        (a,), single = checked_states(self, {'position': q})
        effort = rigid_body.gravity_effort(self._dynamics_robot, a, self._links)
        return effort[0] if single else effort

    def rollout(
        self, q0: ArrayLike, qd0: ArrayLike, effort: ArrayLike, dt: float,
        motors: tuple[ArrayLike, ArrayLike] | None = None, progress: Progress | None = None,
    ) -> Rollout:
        """Return positions and velocities (K, T, n) under efforts (K, T, n) held for ``dt`` [s].

        ``q0`` and ``qd0`` (K, n) or (n,); ``motors`` likewise the position and velocity of the
        motors, for elastic joints. A motion that leaves the joint limits or cannot continue is
        named in the result and does not affect the others. ``progress`` is called after every
        piece of the work; its errors end the work. Raises UsageError on wrong input.
        """
        motor_states = dict(zip(('motor_position', 'motor_velocity'), motors or (), strict=False))
        states, _ = checked_states(self, {'position': q0, 'velocity': qd0, **motor_states})
        held = np.array(effort, dtype=np.float64, ndmin=3)
        if not np.isfinite(held).all():
            raise UsageError('effort has numbers that are not finite')
        return rollout(self, states, held, dt, progress)

    def outside(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Return a mask (K, n) or (n,) of the joints outside the training range."""
        given = {'position': q, 'velocity': qd, **({} if qdd is None else {'acceleration': qdd})}
        states, single = checked_states(self, given)
        beyond = self.trained.outside(self.robot, dict(zip(given, states, strict=True)))
        return beyond[0] if single else beyond

    @one_blas_thread()
    def predicted(self, samples: Samples) -> FloatArray:
        """Return the modelled effort (N, n) [N m]: friction with its history, learnt effects.

        Each effect is included if the samples have its inputs.
        """
        warn(self)
        return self._with_learnt_torque(samples, tuple(self.learnt_effects))

    def without_ripple(self, samples: Samples) -> FloatArray:
        """Return the modelled effort (N, n) [N m] of `predicted` without torque ripple."""
        return self._with_learnt_torque(
            samples, [key for key in self.learnt_effects if key != 'ripple'])

    @one_blas_thread()
    def _with_learnt_torque(self, samples: Samples, effects: Sequence[str]) -> FloatArray:
        model, values = self.torque_model, self.values
        effort = model.effort(samples, values)
        for key in effects:
            effort = effort + self.learnt_effects[key].along(model, values, samples, effort)
        return effort

    def residual(self, samples: Samples) -> FloatArray:
        """Return measured minus modelled effort (N, n) [N m]; raises UsageError without effort."""
        if samples.measured is None:
            raise UsageError('these samples have no measured effort')
        return np.asarray(samples.measured - self.predicted(samples))

    def require(self, robot: RobotModel) -> None:
        """Raise ModelError unless joints, geometry and gravity of ``robot`` agree with the model.
        """
        if robot.hash() != self.robot.hash():
            raise ModelError(
                f'the model was identified for {self.robot.name} ({", ".join(self.joints)}; hash '
                f'{self.robot.hash()}), not for {robot.name} (hash {robot.hash()}): joints, '
                'geometry or gravity differ; identify this robot, or load its own model')

    @cached_property
    def covariance_factor(self) -> FloatArray:
        """Factor F (b, b) of the covariance F^T F of ``values``, zero if unknown.

        Raises ModelError for a model of a file without correlations.
        """
        if self.correlation_factor is None:
            raise ModelError(f'the model of {self.robot.name} was saved by an earlier version and '
                             'has no covariance; identify it again')
        return self.correlation_factor * np.where(np.isfinite(self.std), self.std, 0.0)

    @reported
    def samples(self, count: int, seed: int = 0) -> tuple[IdentifiedModel, ...]:
        """Return ``count`` feasible models drawn from the uncertainty of this one.

        Base parameters are normal with the covariance of the estimate; undetermined parameters
        stay unchanged. Infeasible draws are moved to the nearest feasible ones, with a Python
        warning. Raises ModelError for a model without covariance, MissingDependency without
        Clarabel. Source: see `robot_dynid.export.samples`.
        """
        drawn, warnings = self.posterior(count, seed)
        warn_of(warnings)
        return drawn

    @reported
    def posterior(
        self, count: int, seed: int = 0
    ) -> tuple[tuple[IdentifiedModel, ...], tuple[str, ...]]:
        """Return `samples` and the warnings about them as data."""
        from robot_dynid.export.samples import SAMPLES, Posterior

        number = SAMPLES.read_whole(count, 'the number of samples')
        torque = self.torque_model
        if self.feasible is not None:
            torque = replace(torque, robot=torque.robot.with_nominal(self._links[:, :10]))
        drawn = Posterior(torque, self.values, self.covariance_factor).drawn(
            number, np.random.default_rng(seed))
        return tuple(replace(self, values=self.reduction.base(standard), feasible=standard)
                     for standard in drawn.standard), drawn.warnings

    @reported
    def to_urdf(self, urdf_text: str | None = None, source: str = 'URDF') -> Export:
        """Return ``urdf_text``, of the same robot, with the identified inertials and friction.

        Without a text it is generated from the description in the model, without shapes. Raises
        ModelError without physically feasible parameters, or for the URDF of another robot,
        RobotError if the text is unusable.
        """
        from robot_dynid.export.urdf import exported_urdf
        from robot_dynid.identified.parameter_card import comment_lines, parameter_card

        text = generate_urdf(self.robot, self.robot.nominal) if urdf_text is None else urdf_text
        export = exported_urdf(self.arm, text, source)
        return replace(export, origins=tuple(comment_lines(parameter_card(self))))

    @reported
    def to_mjcf(self, urdf_text: str | None = None, source: str = 'URDF') -> Mjcf:
        """Return MJCF; with the URDF of the same robot, ``urdf_text``, also its shapes.

        Shapes of screws are included. Meshes are located from the path ``source`` of the URDF.
        Raises ModelError without physically feasible parameters, RobotError if the text is
        unusable.
        """
        from robot_dynid.export.mjcf import exported_mjcf

        if urdf_text is None and not self.robot.shapes:
            return exported_mjcf(self.arm)
        text = generate_urdf(self.robot, self._links[:, :10]) if urdf_text is None else urdf_text
        from robot_dynid.export.mjcf import urdf_shapes

        return exported_mjcf(self.arm, urdf_shapes(self.robot, text, source))

    @reported
    def to_mujoco(self) -> MjModel:
        """Return a MuJoCo model without shapes; omitted effects are a Python warning.

        Raises ModelError without physically feasible parameters, MissingDependency without MuJoCo.
        """
        mjcf = self.to_mjcf()
        warn_of(mjcf.warnings)
        return mjcf.model()

    @reported
    def to_sdf(self) -> Sdf:
        """Return SDFormat 1.9 for Gazebo, without shapes.

        Raises ModelError without physically feasible parameters.
        """
        from robot_dynid.export.sdf import exported_sdf

        return exported_sdf(self.arm)

    @reported
    def to_solver_parameters(self) -> SolverParameters:
        """Return the parameter file of the ROS 2 package inverse_dynamics_solver.

        Raises ModelError for a tree, and without physically feasible parameters.
        """
        from robot_dynid.export.solver_parameters import solver_parameters

        return solver_parameters(self.arm)

    @reported
    def to_pinocchio(self) -> Model:
        """Return a Pinocchio model with the same joint order; omissions are a Python warning.

        It has rotor inertia as ``armature``, ``damping`` and dry friction, which its algorithms
        leave to the caller. Gears are rigid. Raises ModelError without physically feasible
        parameters, MissingDependency without Pinocchio.
        """
        from robot_dynid.export.pinocchio import pinocchio_model

        export = pinocchio_model(self.arm)
        warn_of(export.warnings)
        return export.model

    @reported
    def to_drake(self, step: float = 0.0) -> MultibodyPlant:
        """Return a Drake plant, not finalised; omitted effects are a Python warning.

        It is simulated continuously, or in steps of ``step`` s. The motor of an elastic joint is
        the joint with the suffix ``_rotor``, its gear twist ``_gear``. Raises ModelError without
        physically feasible parameters, MissingDependency without Drake.
        """
        from robot_dynid.export.sdf import drake_plant

        export = drake_plant(self.arm, step)
        warn_of(export.warnings)
        return export.plant

    def to_c(self, wrist: WristSensor | None = None) -> CCode:
        """Return C code of the dynamics, and of friction with history; see docs/export.md.

        With a ``wrist`` sensor also of its compensation. The digest in it is the SHA-256 of the
        model file. Raises ModelError if a number is not finite or a gear is unphysical, and for
        the sensor of another robot.
        """
        from robot_dynid.dynamics.wrist import WristCompensation
        from robot_dynid.export.c_code import Provenance, c_code

        warn(self)
        digest = hashlib.sha256(self.to_yaml().encode()).hexdigest()
        origin = f'method {self.method or "unknown"}, {self.status or "no status"}'
        return c_code(self.mechanism, Provenance(
            digest, origin, self.trained.quantities, cautions(self),
            tuple(map(self.joints.index, self.not_identified))),
            None if wrist is None else WristCompensation(self.robot, wrist))

    def to_yaml(self) -> str:
        """Return the model as text."""
        return model_file.dump(self)

    def save(self, path: str | Path, inside: Path | None = None) -> None:
        """Write the model; an existing model file is replaced atomically.

        With ``inside``, the file must lie below that folder. Raises UsageError if the path holds
        another file, DynIdError if it cannot be written.
        """
        atomic_write(path, self.to_yaml(), model_file.MARK, inside)

    @classmethod
    @reported
    def from_yaml(cls, text: str, source: str = 'model') -> IdentifiedModel:
        """Read a model from text; raises ModelError if it is damaged or incomplete."""
        return cls(**model_file.parse(text, source))

    @classmethod
    @reported
    def load(cls, path: str | Path, robot: RobotModel | None = None) -> IdentifiedModel:
        """Read a model file; with ``robot``, refuse a model of another robot.

        Raises UsageError if there is no such file, ModelError if it cannot be used.
        """
        model = cls.from_yaml(model_file.read(path), str(path))
        if robot is not None:
            model.require(robot)
        return model


def _if_given(external: ArrayLike | None) -> dict[str, ArrayLike]:
    """Return the external torque as keyword, if given."""
    return {} if external is None else {'external': external}


def _of_one(slopes: Slopes, single: bool) -> Slopes:
    """Return derivatives (K, n, n), or those (n, n) of a ``single`` state."""
    return (slopes[0][0], slopes[1][0], slopes[2][0]) if single else slopes
