"""The simulated arm: MuJoCo's dynamics of a URDF with true friction, rotors and harmonic drives.

Rotor and link are joined by the torque

    T = K d + D d' + h(d),    d = theta + e(theta) - q,    e = A sin(2 N theta),

with the rotor at ``theta`` (motor angle over gear ratio N), the link at ``q``, and Dahl hysteresis
h. The wave generator engages twice per motor turn, hence the 2. By power balance T acts on the
rotor as ``-(1 + de/dtheta) T``. The rotor's rotation with the preceding links is neglected.
Sources: Spong 1987 (elastic joint); Taghirad and Belanger 1998 (harmonic drive).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.mujoco_model import TIMESTEP, build_model, motor_name, mujoco
from robot_dynid.simulation.truth import HarmonicDrive, Truth
from robot_dynid.types import FloatArray

IntArray = NDArray[np.intp]
#: fixed-point iterations of the deflection under gravity
DEFLECTION_PASSES = 50
#: largest phase [rad] per step of the fastest drive vibration
DRIVE_ANGLE_PER_STEP = 1.0


class Bristles:
    """States of dry friction or hysteresis, between -1 and 1, which build up with travel.

    Bristles bend before they slip, so friction at rest depends on the travel history. Source: Dahl
    1968, with exponent one. ``active`` (n,) masks the joints with bristles, which bend over
    ``length`` (n,) [rad or m]; the other states are zero.
    """

    def __init__(self, length: FloatArray) -> None:
        self.active: NDArray[np.bool_] = length > 0.0
        self.length = np.where(self.active, length, 1.0)
        self._position = np.zeros(len(length))
        self._state = np.zeros(len(length))

    @classmethod
    def of(cls, length: FloatArray | None) -> Bristles | None:
        """Return the bristles that bend over ``length`` (n,) [rad or m], None if all are zero."""
        return None if length is None or not np.any(length > 0.0) else cls(length)

    def relax(self, position: FloatArray) -> None:
        """Reset the history: no bristle is bent with the motors at ``position`` (n,)."""
        self._position, self._state = position.copy(), np.zeros_like(position)

    def states(self, position: FloatArray) -> FloatArray:
        """Return the states (n,) at ``position`` (n,); exact for monotonic travel."""
        step = position - self._position
        left = np.exp(-np.abs(step) / self.length)
        self._state = np.where(self.active, self._state * left + np.sign(step) * (1.0 - left), 0.0)
        self._position = position
        return self._state


class Transmissions:
    """Nonlinear torques of the gears of d joints; all arrays are (d,).

    MuJoCo integrates the linear spring and damper; this adds the nonlinear part as torques that
    are held over a step and evaluated at its middle.
    """

    def __init__(self, drives: Sequence[HarmonicDrive]) -> None:
        self.ratio, self.stiffness, self.damping, amplitude, hysteresis, length = (
            np.array([getattr(drive, f.name) for drive in drives]) for f in fields(HarmonicDrive))
        self._amplitude, self._hysteresis = amplitude, hysteresis
        self._twice = 2.0 * self.ratio
        self._steepness = self._twice * amplitude
        self._loop = Bristles(length)
        #: the largest stiffness (d,) N m/rad, at reversals of hysteresis
        self.steepest: FloatArray = self.stiffness + 2.0 * hysteresis / length

    def error(self, rotor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kinematic error (d,) rad and its derivative at ``rotor`` (d,) rad."""
        phase = self._twice * rotor
        return self._amplitude * np.sin(phase), self._steepness * np.cos(phase)

    def relax(self, rotor: FloatArray, link: FloatArray) -> None:
        """Reset hysteresis to zero at the positions ``rotor`` and ``link`` (d,) rad."""
        self._loop.relax(rotor + self.error(rotor)[0] - link)

    def torques(
        self, rotor: Sequence[FloatArray], link: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the torques on rotors and links in addition to linear springs and dampers.

        ``rotor`` and ``link`` are position and velocity (d,) at the middle of the step. Call once
        per step, because the hysteresis state advances.
        """
        error, slope = self.error(rotor[0])
        twist = rotor[0] - link[0]
        linear = self.stiffness * twist + self.damping * (rotor[1] - link[1])
        nonlinear = (self.stiffness * error + self.damping * slope * rotor[1]
                  + self._hysteresis * self._loop.states(twist + error))
        return -slope * linear - (1.0 + slope) * nonlinear, nonlinear


class Plant:
    """A fixed-base arm driven by joint torques, simulated by MuJoCo.

    Runge-Kutta steps of 0.25 ms, no contacts, no joint stops. Friction acts on the motors: viscous
    as damping, Coulomb as dry friction, which sticks at rest, or builds up over a travel,
    ``presliding``. All arrays are in the order of ``robot.joints``, rad, N m and s (m and N if
    prismatic). ``external`` (n,) is external torque, which no sensor measures.

    A joint with a harmonic drive has a separate rotor behind a spring, so motors and links have
    separate states; ``acceleration``, ``inverse`` and ``torque_for`` are those of the arm with
    rigid joints.
    """

    def __init__(self, robot: RobotModel, truth: Truth | None = None) -> None:
        self.robot = robot
        self.truth = truth or Truth.ideal(robot.n)
        self.joints = robot.joints
        rigid = replace(self.truth, drives={})
        self._rigid = build_model(robot, rigid)
        self._frictionless = build_model(robot, rigid)
        self._frictionless.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
        self._scratch = mujoco.MjData(self._frictionless)
        self._links = build_model(robot, Truth.ideal(robot.n))
        self._behind = mujoco.MjData(self._links)
        self._dof = np.array([int(self._rigid.joint(name).dofadr[0]) for name in robot.joints])
        self.external = np.zeros(robot.n)
        coupling = robot.drive.coupling
        self._coupling = np.eye(robot.n) if coupling is None else np.asarray(coupling)
        #: joints (n,) with a harmonic drive
        self.elastic = np.array([name in self.truth.drives for name in robot.joints])
        self._bristles, fading = Bristles.of(self.truth.presliding), self.truth.stribeck
        # True if torques other than those of the motors change from step to step
        self._changing = bool(self.elastic.any()) or self._bristles is not None \
            or fading is not None
        self.model = build_model(robot, self.truth) if self._changing else self._rigid
        self.data = mujoco.MjData(self.model)
        self._drives = Transmissions([self.truth.drives[j] for j in robot.joints
                                      if j in self.truth.drives])
        #: MuJoCo coordinates of links and motors (n,)
        self.link_rows, self.motor_rows = (
            np.array([int(self.model.joint(name).dofadr[0]) for name in names]) for names in (
                robot.joints, [motor_name(name, self.truth) for name in robot.joints]))
        self._geared = (self.motor_rows[self.elastic], self.link_rows[self.elastic]) \
            if self.elastic.any() else None
        bent = np.zeros(robot.n, bool) if self._bristles is None else self._bristles.active
        self.model.dof_frictionloss[self.motor_rows[bent]] = 0.0  # modelled by the bristles
        self._fading = np.flatnonzero(~bent & (False if fading is None else fading > 0.0))
        self._check_steps()
        if self.elastic.any():
            self._drives.relax(*np.zeros((2, int(self.elastic.sum()))))

    def _check_steps(self) -> None:
        """Raise RobotError if a drive, or a motor with bristles, is too fast for the step."""
        if self._bristles is None and not self.elastic.any():
            return
        mujoco.mj_forward(self.model, self.data)
        inverse = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_solveM(self.model, self.data, inverse, np.eye(self.model.nv))
        if self._bristles is not None:
            self._check_bristles(inverse[self.motor_rows, self.motor_rows])
        too_fast = []
        for i, k in enumerate(np.flatnonzero(self.elastic)):
            ends = [self.link_rows[k], self.motor_rows[k]]
            softness = float(inverse[ends, ends].sum())
            damped = self._drives.damping[i] * softness * TIMESTEP
            angle = np.sqrt(self._drives.steepest[i] * softness) * TIMESTEP
            if max(damped, angle) > DRIVE_ANGLE_PER_STEP:
                fastest = DRIVE_ANGLE_PER_STEP / TIMESTEP
                too_fast.append(f'{self.joints[k]} {fastest**2 / softness:.3g}, '
                                f'{fastest / softness:.3g}')
        if too_fast:
            raise RobotError(
                f'{self.robot.name}: drives are too stiff or too damped for steps of '
                f'{1e3 * TIMESTEP:g} ms; with their rotor_inertia the limits of stiffness + 2 '
                f'hysteresis / hysteresis_length, and of damping, are: {"; ".join(too_fast)}')

    def _check_bristles(self, softness: FloatArray) -> None:
        assert self._bristles is not None
        dry = self.truth.dry(np.zeros(self.robot.n))
        least = dry * softness * (TIMESTEP / DRIVE_ANGLE_PER_STEP) ** 2
        for k in np.flatnonzero(self._bristles.active & (self._bristles.length < least)):
            raise RobotError(f'{self.robot.name}: the presliding of {self.joints[k]} is too short '
                             f'for steps of {1e3 * TIMESTEP:g} ms; set it to {least[k]:.2g} or '
                             'more')

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return float(self.data.time)

    def state(self) -> tuple[FloatArray, FloatArray]:
        """Return position (n,) and velocity (n,) of the links."""
        return self.data.qpos[self.link_rows], self.data.qvel[self.link_rows]

    def motor_state(self) -> tuple[FloatArray, FloatArray]:
        """Return position (n,) and velocity (n,) of the motors, divided by the gear ratios."""
        return self.data.qpos[self.motor_rows], self.data.qvel[self.motor_rows]

    def set_state(self, position: ArrayLike, velocity: ArrayLike) -> None:
        """Set position and velocity (n,) of the motors, with links in static equilibrium.

        The link of a rigid joint is at its motor.
        """
        rotor = np.array(position, dtype=np.float64)
        self.data.qpos[self.link_rows] = link = self._settled(rotor)
        self.data.qvel[self.link_rows] = velocity
        self.data.qpos[self.motor_rows] = np.where(self.elastic, rotor, link)
        self.data.qvel[self.motor_rows] = velocity
        if self._bristles is not None:
            self._bristles.relax(self.data.qpos[self.motor_rows])
        if self.elastic.any():
            self._drives.relax(rotor[self.elastic], link[self.elastic])

    def _settled(self, rotor: FloatArray) -> FloatArray:
        """Return the equilibrium positions (n,) of links whose motors hold ``rotor`` (n,)."""
        link, still, elastic = rotor.copy(), np.zeros_like(rotor), self.elastic
        for _ in range(DEFLECTION_PASSES if elastic.any() else 0):
            load = self.torque_for(link, still, still)[elastic]
            error = self._drives.error(rotor[elastic])[0]
            link[elastic] = rotor[elastic] + error - load / self._drives.stiffness
        return link

    def step(self, torque: FloatArray, steps: int = 4) -> None:
        """Simulate ``steps`` steps of TIMESTEP with constant motor torque (n,)."""
        held = self._held(torque)
        if not self._changing:
            self.data.qfrc_applied[:] = held
            mujoco.mj_step(self.model, self.data, nstep=steps)
            return
        for _ in range(steps):
            self._apply(held)
            mujoco.mj_step(self.model, self.data)

    def _held(self, torque: FloatArray) -> FloatArray:
        """Return motor torque and external torque, each (n,), in MuJoCo coordinates."""
        held = np.zeros(self.model.nv)
        held[self.motor_rows] = torque
        held[self.link_rows] += self.external
        return held

    def _apply(self, held: FloatArray) -> None:
        """Set the torques at the middle of one step, in addition to the constant ones."""
        data, applied, speed = self.data, held.copy(), self.data.qvel
        middle = data.qpos + 0.5 * TIMESTEP * speed
        if self._bristles is not None:
            motor = self.motor_rows
            applied[motor] -= self.truth.dry(speed[motor]) * self._bristles.states(middle[motor])
        if len(self._fading):
            rows = self.motor_rows[self._fading]
            self.model.dof_frictionloss[rows] = self.truth.dry(
                speed[self.motor_rows])[self._fading]
        if self._geared is not None:
            rotor, link = self._geared
            on_rotor, on_link = self._drives.torques(
                (middle[rotor], speed[rotor]), (middle[link], speed[link]))
            applied[rotor] += on_rotor
            applied[link] += on_link
        data.qfrc_applied[:] = applied

    def acceleration(
        self, position: ArrayLike, velocity: ArrayLike, torque: ArrayLike, ramp: float = 0.0
    ) -> FloatArray:
        """Return MuJoCo's accelerations (K, n) for K states and torques, each (K, n) or (n,).

        With ``ramp`` 0 Coulomb friction is MuJoCo's dry friction; else it grows linearly within
        +-ramp (rad/s) of zero speed. Raises UsageError if the shapes do not agree.
        """
        q, qd, tau = self._rows(position, velocity, torque)
        if ramp > 0.0:
            tau = tau - self._coulomb(qd, ramp)
        model = self._frictionless if ramp > 0.0 else self._rigid
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

        They include viscous friction and rotors, and Coulomb friction if ``ramp`` is given, as in
        ``acceleration``. Raises UsageError if the shapes do not agree.
        """
        q, qd, qdd = self._rows(position, velocity, acceleration)
        out = np.empty_like(q)
        for row in range(len(q)):
            out[row] = self.torque_for(q[row], qd[row], qdd[row])
        return out if ramp is None else out + self._coulomb(qd, ramp)

    def torque_for(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
    ) -> FloatArray:
        """Return the torque (n,) of one acceleration (n,), without Coulomb friction."""
        data = self._scratch
        data.qpos[self._dof] = position
        data.qvel[self._dof] = velocity
        data.qacc[self._dof] = acceleration
        mujoco.mj_inverse(self._frictionless, data)
        torque: FloatArray = data.qfrc_inverse[self._dof]
        return torque

    def transmitted(self, torque: FloatArray) -> FloatArray:
        """Return the gear torque (n,) [N m, N] on the links under motor torque (n,).

        It moves the bare links with their present acceleration, minus external torque, as sensors
        behind the gears measure it.
        """
        data, (position, velocity) = self._behind, self.state()
        data.qpos[self._dof], data.qvel[self._dof] = position, velocity
        self._apply(self._held(torque))
        mujoco.mj_forward(self.model, self.data)
        data.qacc[self._dof] = self.data.qacc[self.link_rows]
        mujoco.mj_inverse(self._links, data)
        return np.asarray(data.qfrc_inverse[self._dof] - self.external)

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
