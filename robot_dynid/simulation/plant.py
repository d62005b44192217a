"""The simulated arm: MuJoCo's dynamics of a URDF with true friction and rotor inertia."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import MissingDependency, RobotError, UsageError
from robot_dynid.model.robot import RobotModel
from robot_dynid.simulation.truth import Truth
from robot_dynid.types import FloatArray

try:
    import mujoco
except ImportError as error:  # pragma: no cover - depends on the installation
    raise MissingDependency('the simulated robot needs MuJoCo: pip install mujoco') from error

TIMESTEP = 2.5e-4
# The friction constraint softens where |qd| < |qdd| / FRICTION_RATE; RK4 stays stable up to 2.7.
FRICTION_RATE = 2.0 / TIMESTEP
FRICTION_IMPEDANCE = 0.9999


class Plant:
    """A fixed-base arm driven by joint torques.

    Source of the dynamics is MuJoCo alone: Runge-Kutta steps of 0.25 ms, no contacts, no joint
    stops. Friction acts on the motors: viscous as damping, Coulomb as dry friction, which sticks
    at rest. All arrays are in the order of ``robot.joints``, rad, N m and s (m and N where
    prismatic). ``external`` (n,) is torque from outside, which no drive and no sensor knows.
    """

    def __init__(self, robot: RobotModel, truth: Truth | None = None) -> None:
        self.robot = robot
        self.truth = truth or Truth.ideal(robot.n)
        self.joints = robot.joints
        self.model = build_model(robot, self.truth)
        self.data = mujoco.MjData(self.model)
        self._frictionless = build_model(robot, self.truth)
        self._frictionless.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
        self._scratch = mujoco.MjData(self._frictionless)
        names = [self.model.joint(name) for name in robot.joints]
        self._dof = np.array([int(joint.dofadr[0]) for joint in names])
        self.external = np.zeros(robot.n)
        coupling = robot.drive.coupling
        self._coupling = np.eye(robot.n) if coupling is None else np.asarray(coupling)

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return float(self.data.time)

    def state(self) -> tuple[FloatArray, FloatArray]:
        """Return position (n,) and velocity (n,)."""
        return self.data.qpos[self._dof], self.data.qvel[self._dof]

    def set_state(self, position: ArrayLike, velocity: ArrayLike) -> None:
        """Put the arm at position (n,) with velocity (n,)."""
        self.data.qpos[self._dof] = position
        self.data.qvel[self._dof] = velocity

    def step(self, torque: FloatArray, steps: int = 4) -> None:
        """Hold torque (n,) for ``steps`` steps of TIMESTEP."""
        self.data.qfrc_applied[self._dof] = torque + self.external
        mujoco.mj_step(self.model, self.data, nstep=steps)

    def acceleration(
        self, position: ArrayLike, velocity: ArrayLike, torque: ArrayLike, ramp: float = 0.0
    ) -> FloatArray:
        """Return MuJoCo's accelerations (K, n) for K states and torques, each (K, n) or (n,).

        With ``ramp`` 0 Coulomb friction is MuJoCo's own dry friction; otherwise it grows linearly
        within +-ramp (rad/s) of zero speed. Raises UsageError when the shapes do not agree.
        """
        q, qd, tau = self._rows(position, velocity, torque)
        if ramp > 0.0:
            tau = tau - self._coulomb(qd, ramp)
        model = self._frictionless if ramp > 0.0 else self.model
        data = mujoco.MjData(model)
        out = np.empty_like(q)
        for row in range(len(q)):
            data.qpos[self._dof], data.qvel[self._dof] = q[row], qd[row]
            data.qfrc_applied[self._dof] = tau[row]
            data.qacc_warmstart[:] = 0.0
            mujoco.mj_forward(model, data)
            out[row] = data.qacc[self._dof]
        return out

    def inverse(
        self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike,
        ramp: float | None = None,
    ) -> FloatArray:
        """Return MuJoCo's joint torques (K, n) for K motions, each (K, n) or (n,).

        Viscous friction and rotors are in; Coulomb friction only when ``ramp`` is given, as in
        ``acceleration``. Raises UsageError when the shapes do not agree.
        """
        q, qd, qdd = self._rows(position, velocity, acceleration)
        out = np.empty_like(q)
        for row in range(len(q)):
            out[row] = self.torque_for(q[row], qd[row], qdd[row])
        return out if ramp is None else out + self._coulomb(qd, ramp)

    def torque_for(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
    ) -> FloatArray:
        """Return the torque (n,) that gives one acceleration (n,), Coulomb friction left out."""
        data = self._scratch
        data.qpos[self._dof] = position
        data.qvel[self._dof] = velocity
        data.qacc[self._dof] = acceleration
        mujoco.mj_inverse(self._frictionless, data)
        torque: FloatArray = data.qfrc_inverse[self._dof]
        return torque

    def _coulomb(self, velocity: FloatArray, ramp: float) -> FloatArray:
        motor = velocity @ self._coupling.T
        side = np.clip(motor / ramp, -1.0, 1.0) if ramp > 0.0 else np.sign(motor)
        return (self.truth.coulomb * side) @ self._coupling

    def _rows(self, *arrays: ArrayLike) -> list[FloatArray]:
        rows = [np.atleast_2d(np.asarray(a, dtype=np.float64)) for a in arrays]
        if any(r.shape != rows[0].shape or r.shape[1] != self.robot.n for r in rows):
            shapes = [r.shape for r in rows]
            raise UsageError(f'{self.robot.name}: expected arrays of one shape '
                             f'(K, {self.robot.n}), got {shapes}')
        return rows


def build_model(robot: RobotModel, truth: Truth) -> mujoco.MjModel:
    """Compile the MuJoCo model of ``robot`` with ``truth``.

    Joints the robot does not list are locked at zero. Raises RobotError when MuJoCo refuses the
    URDF (it wants a mass and a possible inertia on every moving link).
    """
    try:
        spec = mujoco.MjSpec.from_file(robot.source)
    except ValueError as error:
        raise RobotError(f'{robot.source}: MuJoCo cannot read it: {error}') from None
    base = spec.body(robot.base_link)
    if base is not None and base.parent.name != 'world':
        raise RobotError(f'{robot.source}: the simulated robot must start at the root of the '
                         f'URDF, not at {robot.base_link}')
    _set_options(spec, robot)
    for joint in list(spec.joints):
        if joint.name not in robot.joints:
            spec.delete(joint)
    _add_motors(spec, robot, truth)
    try:
        return spec.compile()
    except ValueError as error:
        raise RobotError(f'{robot.source}: MuJoCo cannot use it: {error}') from None


def _set_options(spec: mujoco.MjSpec, robot: RobotModel) -> None:
    flag = mujoco.mjtDisableBit
    spec.compiler.inertiafromgeom = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE)
    spec.compiler.discardvisual = True
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.disableflags |= int(flag.mjDSBL_CONTACT) | int(flag.mjDSBL_LIMIT)
    spec.option.gravity = np.asarray(robot.gravity)
    spec.option.tolerance = 1e-12


def _add_motors(spec: mujoco.MjSpec, robot: RobotModel, truth: Truth) -> None:
    """Give every motor its friction and rotor: on its joint, or on the joints it turns with."""
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    for i, name in enumerate(robot.joints):
        if np.array_equal(coupling[i], np.eye(robot.n)[i]):
            motor = spec.joint(name)
            damping = motor.damping
        else:
            motor = spec.add_tendon(name=f'{name}_motor')
            damping = motor.damping
            for j in np.flatnonzero(coupling[i]):
                motor.wrap_joint(robot.joints[j], float(coupling[i, j]))
        # A number in MuJoCo 3, the coefficients of a polynomial in speed since MuJoCo 4.
        motor.damping = [truth.viscous[i], *np.zeros(np.size(damping) - 1)] \
            if np.ndim(damping) else truth.viscous[i]
        motor.armature = truth.rotor_inertia[i]
        motor.frictionloss = truth.coulomb[i]
        motor.solref_friction = [-1.0, -FRICTION_RATE]
        motor.solimp_friction = [FRICTION_IMPEDANCE, FRICTION_IMPEDANCE, 1e-3, 0.5, 2.0]
