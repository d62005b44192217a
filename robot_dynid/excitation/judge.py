"""What a robot's candidates are judged by: predicted efforts of its nominal inertials."""

from __future__ import annotations

import numpy as np

from robot_dynid.excitation.design import Judge, Progress
from robot_dynid.model.dynamics import inverse_dynamics
from robot_dynid.model.robot import RobotModel
from robot_dynid.types import FloatArray


def robot_judge(robot: RobotModel, progress: Progress | None = None) -> Judge:
    """Return the judge of a robot; efforts are predicted when it has nominal inertials."""

    def inverse(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return inverse_dynamics(robot, q, qd, qdd)

    known = bool(np.any(robot.nominal[:, 0] > 0.0))
    return Judge(inverse=inverse if known else None, progress=progress)
