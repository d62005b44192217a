"""Elastic gears of no law that robot_dynid fits, and what both their encoders see.

Links move exactly as prescribed, so the torque T of each gear is that of MuJoCo's bare links. It
bends the gear by u,

    K u + D u' + h (1 + |T| / T_max) z = T,    u = theta + e(theta) - q,

z' = u' / L (1 - |z|^n (b + (1 - b) sign(u' z))) being Bouc and Wen's state, twice as wide under
the largest torque of the motion, and e a sum of waves. The motor bears J theta'' + (1 + e') T and
friction that grows with the load. Written apart from the simulator and the dynamics of
robot_dynid. Sources: Wen, J. Eng. Mech. Div. ASCE 1976, 102, 249 (hysteresis); Tuttle, Seering
1996 (waves of harmonic drives).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.export.mujoco import mujoco
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.mujoco_model import build_model
from robot_dynid.simulation.truth import Truth
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray, RawLog

#: s, step of the computation
STEP = 1.25e-4
#: exponent n and share b of Bouc and Wen's state
SHARP, SHARE = 1.5, 0.3
#: rad/s below which dry friction of motors fades
RAMP = 1e-3


@dataclass(frozen=True, eq=False)
class ForeignGears:
    """Gears of n joints on the joint side, all (n,) but ``waves``.

    ``stiffness`` K N m/rad, ``damping`` D N m s/rad, ``hysteresis`` h N m over ``length`` L rad;
    ``waves`` are turns per turn of the joint and sizes [rad] of each; ``loaded`` is the share of
    the torque transmitted that is friction of the motor.
    """

    stiffness: FloatArray
    damping: FloatArray
    hysteresis: FloatArray
    length: FloatArray
    waves: tuple[tuple[float, float], ...] = ()
    loaded: float = 0.0

    def recorded(self, robot: RobotModel, truth: Truth, path: Trajectory, rate: float) -> RawLog:
        """Return both encoders and motor efforts along ``path`` at ``rate`` [Hz], without noise.

        ``truth`` gives friction and rotors of the motors.
        """
        time = np.arange(0.0, path.duration + 0.5 * STEP, STEP)
        motion = path.sample(time)
        torque = _of_links(robot, motion.position, motion.velocity, motion.acceleration)
        bent, bending = self._bent(torque)
        motor, speed, slope = self._motor(motion.position + bent, motion.velocity + bending)
        side = np.clip(speed / RAMP, -1.0, 1.0)
        effort = (truth.rotor_inertia * np.gradient(speed, STEP, axis=0) + truth.viscous * speed
                  + side * (truth.coulomb + self.loaded * np.abs(torque)) + (1.0 + slope) * torque)
        own = slice(None, None, round(1.0 / (rate * STEP)))
        return RawLog(f'{robot.name} with gears of another kind', robot.joints, time[own],
                      motion.position[own], motion.velocity[own], effort[own], motor[own],
                      speed[own])

    def _bent(self, torque: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return deflection and its rate (N, n) under ``torque`` (N, n), by Heun's method."""
        state = np.stack([torque[0] / self.stiffness, np.zeros_like(self.length)])
        found, rates = np.empty((2, *torque.shape))
        width = self.hysteresis * (1.0 + np.abs(torque) / np.abs(torque).max(axis=0))
        after = [*range(1, len(torque)), len(torque) - 1]
        for i, j in enumerate(after):
            first = self._rate(state, torque[i], width[i])
            found[i], rates[i] = state[0], first[0]
            second = self._rate(state + STEP * first, torque[j], width[j])
            state = state + 0.5 * STEP * (first + second)
        return found, rates

    def _rate(self, state: FloatArray, torque: FloatArray, width: FloatArray) -> FloatArray:
        bent, z = state
        rate = (torque - self.stiffness * bent - width * z) / self.damping
        turning = rate / self.length * (
            1.0 - np.abs(z)**SHARP * (SHARE + (1.0 - SHARE) * np.sign(rate * z)))
        return np.stack([rate, turning])

    def _motor(self, output: FloatArray, speed: FloatArray
               ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position and speed of motors whose gears put out ``output``, and e', (N, n)."""
        motor = output.copy()
        for _ in range(6):  # the slope is some 0.01
            motor = output - sum((size * np.sin(turns * motor) for turns, size in self.waves),
                                 np.zeros_like(output))
        slope = sum((size * turns * np.cos(turns * motor) for turns, size in self.waves),
                    np.zeros_like(output))
        return motor, speed / (1.0 + slope), slope


def _of_links(robot: RobotModel, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return the torque (N, n) [N m] that MuJoCo's bare links need."""
    model = build_model(robot, Truth.ideal(robot.n))
    data, own = mujoco.MjData(model), [int(model.joint(j).dofadr[0]) for j in robot.joints]
    torque = np.empty_like(q)
    for i in range(len(q)):
        data.qpos[own], data.qvel[own], data.qacc[own] = q[i], qd[i], qdd[i]
        mujoco.mj_inverse(model, data)
        torque[i] = data.qfrc_inverse[own]
    return torque
