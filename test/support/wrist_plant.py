"""Arms under external wrenches in MuJoCo: a tool behind a wrist sensor, pushes on a link.

The force-torque sensor is MuJoCo's own at a site; a wrench that pushes is applied by MuJoCo,
which knows no J^T. ``python test/support/wrist_plant.py run.csv`` writes a recording of the tool.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.signal import lfilter

from robot_dynid.dynamics.wrist import WristSensor
from robot_dynid.io.csv import read_table, write_csv
from robot_dynid.robot.inertia import parameters_from_com, rotation_from_rpy
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Setpoint, measured
from robot_dynid.simulation.mujoco_model import build_spec
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray, RawLog

LINK, DT = 'wrist_3_link', 0.008
#: noise of force [N] and torque [N m], alike over some samples, and that of the encoders [rad]
NOISE, ALIKE, ENCODER = np.repeat([0.3, 0.02], 3), 0.7, 2e-5
#: stiffness [N/m] and rest length [m] of the hose to a point above the base, and its place
HOSE, LENGTH, ANCHOR = 1.5, 0.5, np.array([0.0, 0.0, 1.2])


@cache
def arm() -> RobotModel:
    """Return the arm with the sensor."""
    return load_robot('ur10e')


@dataclass(frozen=True)
class Plant:
    """A tool (weighed) behind a sensor whose mounting differs by ``rpy`` [rad] from its link."""

    mass: float = 1.83
    com: tuple[float, ...] = (0.021, -0.034, 0.092)
    moments: tuple[float, ...] = (0.011, 0.0085, 0.0062)
    turn: tuple[float, ...] = (0.4, -0.2, 0.7)
    bias: tuple[float, ...] = (12.3, -7.1, 31.0, 0.42, -0.83, 0.15)
    rpy: tuple[float, ...] = (0.02, -0.025, 0.013)
    hose: float = 0.0
    sign: int = 1
    pushes: Sequence[tuple[float, float]] = field(default=())

    @property
    def inertia(self) -> FloatArray:
        """Inertia (3, 3) about the centre of mass, in the axes of the link."""
        axes = rotation_from_rpy(self.turn)
        return np.asarray(axes @ np.diag(self.moments) @ axes.T)

    @property
    def parameters(self) -> FloatArray:
        """The ten parameters in the frame of the link."""
        return parameters_from_com(self.mass, self.com, self.inertia)

    @property
    def rotation(self) -> FloatArray:
        """Rotation (3, 3) from the axes of the link to those of the sensor."""
        return rotation_from_rpy(self.rpy).T

    def sensor(self) -> WristSensor:
        """Return the sensor as a perfect identification finds it; MuJoCo reports reactions."""
        return WristSensor(arm().name, arm().hash(), LINK, self.parameters, np.array(self.bias),
                           self.rotation, -self.sign)

    def record(self, motion: tuple[FloatArray, ...], seed: int) -> RawLog:
        """Return what encoders and sensor report along a motion: time, and q, qd, qdd (T, n)."""
        time, q, qd, qdd = motion
        model, site, body, joints = self._model()
        data, rng = mujoco.MjData(model), np.random.default_rng(seed)
        readings = np.empty((len(time), 6))
        for k in range(len(time)):
            data.qpos[joints], data.qvel[joints], data.qacc[joints] = q[k], qd[k], qdd[k]
            mujoco.mj_kinematics(model, data)
            stretch = ANCHOR - data.site_xpos[site]
            distance = float(np.linalg.norm(stretch))
            force = self.hose * max(distance - LENGTH, 0.0) * stretch / distance
            if any(start < time[k] < stop for start, stop in self.pushes):
                force = force + np.array([25.0, -15.0, 10.0])
            lever = data.site_xpos[site] - data.xipos[body]
            data.xfrc_applied[body] = [*force, *np.cross(lever, force)]
            mujoco.mj_inverse(model, data)
            readings[k] = data.sensordata
        noise = lfilter([np.sqrt(1.0 - ALIKE**2)], [1.0, -ALIKE], rng.normal(
            size=readings.shape), axis=0)
        return RawLog(f'run{seed}', arm().joints, time, q + ENCODER * rng.normal(size=q.shape),
                      wrench=self.sign * readings + self.bias + NOISE * noise, wrench_frame=LINK)

    def _model(self) -> tuple[mujoco.MjModel, int, int, FloatArray]:
        robot = arm()
        spec = build_spec(robot, Truth.ideal(robot.n))
        tool = spec.body(LINK).add_body(name='tool', mass=self.mass, ipos=self.com)
        tool.explicitinertial = True
        upper = self.inertia
        tool.fullinertia = [upper[0, 0], upper[1, 1], upper[2, 2], upper[0, 1], upper[0, 2],
                            upper[1, 2]]
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, self.rotation.T.ravel())
        tool.add_site(name='sensor', quat=quaternion)
        for kind in (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE):
            spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname='sensor')
        model = spec.compile()
        joints = np.array([model.joint(name).qposadr[0] for name in robot.joints])
        return model, model.site('sensor').id, model.body('tool').id, joints


def moving(seed: int, seconds: float = 30.0, speed: float = 1.0) -> tuple[FloatArray, ...]:
    """Return time and q, qd, qdd (T, n): three sines per joint, larger at the wrist."""
    rng, n = np.random.default_rng(seed), arm().n
    time = np.arange(0.0, seconds, DT)
    q, qd, qdd = np.zeros((3, len(time), n))
    q += np.array([0.0, -1.2, 1.4, -0.5, 0.3, 0.0])
    for _ in range(3):
        rate, phase = speed * rng.uniform(0.3, 2.0, n), rng.uniform(0.0, 6.0, n)
        size = rng.uniform(0.4, 1.0, n) * np.array([0.3, 0.2, 0.2, 0.6, 0.8, 0.9])
        angle = time[:, None] * rate + phase
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    return time, q, qd, qdd


def resting(
    poses: FloatArray, dwell: float = 1.5, travel: float = 1.5
) -> tuple[FloatArray, ...]:
    """Return time and q, qd, qdd (T, n) of a tour with a rest at every pose (K, n)."""
    knots, values = [], []
    for k, pose in enumerate(poses):
        knots += [k * (dwell + travel), k * (dwell + travel) + dwell]
        values += [pose, pose]
    time = np.arange(0.0, knots[-1], DT)
    share = np.interp(time, knots, np.repeat(np.arange(len(poses)), 2).astype(float))
    low, part = np.minimum(share.astype(int), len(poses) - 2), np.mod(share, 1.0)
    part = np.where(share >= len(poses) - 1, 1.0, part)
    smooth = part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
    q = poses[low] + smooth[:, None] * (poses[low + 1] - poses[low])
    curve = make_interp_spline(time, q, k=5)
    return time, curve(time), curve.derivative()(time), curve.derivative(2)(time)


def random_poses(seed: int, count: int = 14) -> FloatArray:
    """Return poses (K, n) whose wrist points in all directions."""
    rng = np.random.default_rng(seed)
    return np.array([0.0, -1.2, 1.4, 0.0, 0.0, 0.0]) + rng.uniform(-1.0, 1.0, (count, 6)) * (
        np.array([0.5, 0.3, 0.4, 2.0, 2.0, 3.0]))


def example() -> RawLog:
    """Return a recording of the usual tool in motion."""
    return Plant().record(moving(1, 20.0, 2.0), 1)


if __name__ == '__main__':
    write_csv(sys.argv[1], example())


#: control periods per row
EVERY = 4
#: size of the wrench [N, N m], which swings at frequencies of its own [rad/s]
SIZE = np.array([40.0, 30.0, 20.0, 3.0, 4.0, 5.0])
RATES = np.array([2.3, 1.7, 1.1, 2.9, 0.7, 1.3])


def pushed(
    robot: RobotModel, link: str, seed: int, seconds: float = 8.0
) -> tuple[RawLog, FloatArray]:
    """Return a noisy recording under a wrench on ``link``, and the wrench (T, 6) in its frame."""
    rng, truth = np.random.default_rng(seed), load_truth(robot)
    arm = Arm(robot, truth)
    trajectory = random_fourier(
        motion_limits(robot).scaled(0.8), FourierOptions(seconds, 6), rng)
    motion = trajectory.sample(np.arange(round(seconds / CONTROL_PERIOD)) * CONTROL_PERIOD)
    arm.place(motion.position[0])
    rows, data, body = [], arm.plant.data, arm.plant.model.body(link).id
    for i in range(len(motion.position)):
        wrench = SIZE * np.sin(RATES * i * CONTROL_PERIOD + np.arange(6))
        mujoco.mj_kinematics(arm.plant.model, data)
        turn = data.xmat[body].reshape(3, 3)
        force, lever = turn @ wrench[:3], data.xipos[body] - data.xpos[body]
        data.xfrc_applied[body] = *force, *(turn @ wrench[3:] - np.cross(lever, force))
        arm.control(Setpoint(motion.position[i], motion.velocity[i], motion.acceleration[i]))
        if i % EVERY == 0:
            rows.append((i * CONTROL_PERIOD, arm.position, arm.velocity, arm.effort(), wrench))
        arm.advance()
    *columns, wrenches = (np.array(column) for column in zip(*rows, strict=True))
    log = RawLog('pushed', robot.joints, *columns)
    return measured(log, robot, truth.noise, rng), wrenches


def write_pushed(path: Path, log: RawLog, link: str, wrench: FloatArray) -> Path:
    """Write a recording with the columns of a wrench (T, 6) on ``link``."""
    write_csv(path, log)
    table = read_table(path)
    header = [*table.columns, *(f'wrench.{link}.{c}' for c in WRENCH_COMPONENTS)]
    np.savetxt(path, np.hstack([table.values, wrench]), fmt='%.9g', delimiter=',',
               header=','.join(header), comments='')
    return path
