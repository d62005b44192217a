"""Compile every kernel once so that no node or command pays for it while it runs."""

from __future__ import annotations

import numpy as np

from robot_dynid.model import dynamics
from robot_dynid.model.inertia import parameters_from_com
from robot_dynid.model.robot import Limits, RobotModel
from robot_dynid.types import frozen


def warm_up() -> None:
    """Call each kernel on a one-joint robot; the compiled code is cached on disk."""
    body = parameters_from_com(1.0, [0.0, 0.0, 0.1], np.eye(3))
    robot = RobotModel(
        name='warm_up', joints=('a',), types=np.zeros(1, np.int8), parents=np.array([-1]),
        rotations=frozen(np.eye(3)[None]), translations=frozen(np.zeros((1, 3))),
        axes=frozen([[0.0, 1.0, 0.0]]), bodies=('b',), nominal=frozen(body[None]),
        limits=Limits.unknown(1),
    )
    state = np.zeros((1, 1))
    dynamics.inverse_dynamics(robot, state, state, state)
    dynamics.mass_matrix(robot, state)
    dynamics.forward_dynamics(robot, (state, state, state))
    dynamics.regressor(robot, (state, state, state))


if __name__ == '__main__':
    warm_up()
