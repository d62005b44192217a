"""What links and motors of an arm with elastic joints do, by MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.mujoco_model import build_model, motor_name, mujoco
from robot_dynid.simulation.truth import Truth
from robot_dynid.types import FloatArray


def elastic_accelerations(
    robot: RobotModel, truth: Truth, states: Sequence[FloatArray], ramp: float
) -> tuple[FloatArray, FloatArray]:
    """Return the accelerations of links and motors (K, n) that MuJoCo gives.

    ``states`` are position and velocity of links, those of motors, and the motors' effort, each
    (K, n); without a drive in ``truth`` a motor is its link. Dry friction grows linearly within
    +-ramp (rad/s) of zero speed; gears are linear, without kinematic error and hysteresis.
    """
    model = build_model(robot, truth)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
    data = mujoco.MjData(model)
    link, motor = (np.array([int(model.joint(name).dofadr[0]) for name in names]) for names in (
        robot.joints, [motor_name(joint, truth) for joint in robot.joints]))
    rigid = link == motor
    links, motors = np.empty_like(states[0]), np.empty_like(states[0])
    for k, (q, qd, theta, theta_d, effort) in enumerate(zip(*states, strict=True)):
        speed = np.where(rigid, qd, theta_d)
        data.qpos[motor], data.qvel[motor] = theta, theta_d
        data.qpos[link], data.qvel[link] = q, qd
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[motor] = effort - truth.dry(speed) * np.clip(speed / ramp, -1.0, 1.0)
        data.qacc_warmstart[:] = 0.0
        mujoco.mj_forward(model, data)
        links[k], motors[k] = data.qacc[link], data.qacc[motor]
    return links, motors
