"""A small arm to be exported, and what Pinocchio and MuJoCo compute from a URDF."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
from identified_models import feasible_model
from random_robots import Peer
from tolerances import READ_BY_OTHERS

from robot_dynid.export.urdf import Export
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray

INERTIAL = ('<inertial><!-- <mass value="7"/> --><mass value="2"/><origin xyz="0.1 0 0" '
            "rpy='0 0 0.5'/><inertia ixx=\"1\" ixy=\"0\" ixz=\"0\"\n   iyy = \"1\" iyz=\"0\" "
            'izz="1"/></inertial>')
ARM = f"""<?xml version="1.0" encoding="UTF-8"?>
<robot name="arm">
  <!-- <link name="upper"><inertial/></link> ä -->
  <link name="base" />
  <link name="upper">{INERTIAL}<collision><geometry><sphere radius="1"/></geometry>
  </collision></link>
  <link name="lower"/>
  <link name="flange">
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 0"/><axis xyz="0 2 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="30"/>
    <dynamics friction = "0.7"/> <!-- measured -->
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="flange"/></joint>
  <transmission name="t"><joint name="shoulder"><dynamics/></joint></transmission>
  <gazebo reference="lower"><mass value="1"/></gazebo>
</robot>
"""
BALL = parameters_from_com(3.0, [0.1, 0.0, 0.2], 0.05 * np.eye(3))


def states(robot: RobotModel, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    q, v, a = np.random.default_rng(5).uniform(-2.0, 2.0, (3, count, robot.n))
    return q, v, a


def rigid(model: IdentifiedModel) -> IdentifiedModel:
    """Return the model without rotors and friction: what others compute from links."""
    links = 10 * model.robot.n
    standard = np.concatenate([model.feasible[:links], np.zeros(len(model.feasible) - links)])
    return replace(model, feasible=standard, values=model.reduction.base(standard))


def pinocchio_effort(text: str, robot: RobotModel, *motion: FloatArray) -> FloatArray:
    peer = Peer.of(pin.buildModelFromXML(text), robot)
    return np.array([peer.inverse_dynamics(*state) for state in zip(*motion)])


def mujoco_effort(text: str, robot: RobotModel, *motion: FloatArray) -> FloatArray:
    model = mujoco.MjModel.from_xml_string(text)
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_DAMPER)
    model.opt.gravity = np.array(robot.gravity)
    data = mujoco.MjData(model)
    ids = [model.joint(name).id for name in robot.joints]
    places, rows = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    efforts = []
    for q, v, a in zip(*motion):
        data.qpos[places], data.qvel[rows], data.qacc[rows] = q, v, a
        mujoco.mj_inverse(model, data)
        efforts.append(data.qfrc_inverse[rows].copy())
    return np.array(efforts)


def assert_same_dynamics(export: Export, model: IdentifiedModel) -> None:
    motion = states(model.robot, 10)
    ours = rigid(model).inverse(*motion)
    for peer in (pinocchio_effort, mujoco_effort):
        theirs = peer(export.text, model.robot, *motion)
        assert np.abs(theirs - ours).max() <= READ_BY_OTHERS * np.abs(ours).max(), peer.__name__


def arm_model(scale: float = 1.0) -> IdentifiedModel:
    robot = robot_from_urdf(ARM)
    return feasible_model(robot, scale * np.array([BALL, 2.0 * BALL]), np.random.default_rng(1))
