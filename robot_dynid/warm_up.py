"""Compile every kernel once so that no node or command pays for it while it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.kinematics import link_poses
from robot_dynid.dynamics.momentum import Momentum
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.dynamics.rotors import Links, Rotors
from robot_dynid.friction import AxisFriction, AxisMotion, Coulomb
from robot_dynid.friction.terms import table_of
from robot_dynid.kernels.friction import fill_sliding
from robot_dynid.monitoring.state_monitor import (
    ContactLevels,
    Follower,
)
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import Limits, RobotModel
from robot_dynid.types import frozen


def warm_up() -> None:
    """Call each kernel on a robot of two joints; the compiled code is cached on disk."""
    body = parameters_from_com(1.0, [0.0, 0.0, 0.1], np.eye(3))
    robot = RobotModel(
        name='warm_up', joints=('a', 'b'), types=np.zeros(2, np.int8), parents=np.array([-1, 0]),
        rotations=frozen([np.eye(3)] * 2), translations=frozen(np.zeros((2, 3))),
        axes=frozen([[0.0, 1.0, 0.0]] * 2), bodies=('c', 'd'), nominal=frozen([body] * 2),
        limits=Limits.unknown(2),
    )
    state = np.zeros((3, 2))
    rigid_body.inverse_dynamics(robot, state, state, state)
    rigid_body.mass_matrix(robot, state)
    Momentum(robot)(state, state)
    rigid_body.forward_dynamics(robot, (state, state, state))
    rotors = Rotors(np.eye(2), np.zeros(1, np.int64), np.ones((1, 3)), np.ones((1, 2)))
    rigid_body.rotor_effort(robot, rotors, state, state, state)
    rigid_body.rotor_inertia(robot, rotors, state)
    rigid_body.regressor(robot, (state, state, state))
    rigid_body.regressor_pullback(robot, (state, state, state), np.zeros((2, 20, 3)))
    columns_of_several_blocks = np.zeros((2, 25, 3))
    rigid_body.regressor(robot, (state, state, state), out=columns_of_several_blocks[:, :20])
    law, one = Coulomb(), np.zeros(3)
    law.columns(AxisMotion(one, one, one))
    fill_sliding(table_of(law.table), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)))
    friction = AxisFriction.of(np.eye(2), (law, law), np.ones((2, 3)))
    friction.torque(state)
    integrator = Integrator(robot, robot.nominal, np.zeros((2, 2)), friction)
    integrator(state, state, np.zeros((3, 1, 2)), 1e-3)
    levels = ContactLevels(np.ones(2), np.ones(2), np.ones(2))
    Follower(Links(robot, robot.nominal, rotors), friction, levels, 1.0, 1.0)(
        np.zeros((1, 3, 2)), np.zeros(1))
    link_poses(robot, state)


def forget() -> None:
    """Remove the compiled code beside the kernels, also what an older kernel left behind."""
    for path in (Path(__file__).parent / 'kernels' / '__pycache__').glob('*.nb[ci]'):
        path.unlink()


if __name__ == '__main__':
    forget()
    warm_up()
