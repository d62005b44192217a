"""Regressor of 20 000 samples, one thread: ours beside two ways of using Pinocchio."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.timing import ROBOT, in_turns, pinocchio_model, random_motion

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress
    from robot_dynid.estimation.experiment import TorqueModel
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.types import FloatArray, Samples

SAMPLES = 20_000
RAMP = 0.01


def measure(progress: Progress) -> list[Row]:
    """Return the rows of the comparison."""
    from threadpoolctl import threadpool_limits

    from robot_dynid.identified.structure import Structure
    from robot_dynid.reduction.numeric import full_regressor
    from robot_dynid.robot.robot_file import load_robot

    robot = load_robot(ROBOT)
    model = Structure.uniform(robot, True, 'coulomb', {'width': RAMP}).torque_model(robot)
    samples = random_motion(robot, SAMPLES)
    bare, stacking = peers(robot, samples)
    with threadpool_limits(limits=1):
        seconds = in_turns({
            'ours': lambda: in_chunks(model, samples),
            'ours in one array': lambda: full_regressor(robot, model.blocks, samples),
            'bare calls': bare, 'stacking loop': stacking,
        }, progress)
    ours, whole = 1e3 * seconds['ours'], 1e3 * seconds['ours in one array']
    loop, calls = 1e3 * seconds['stacking loop'], 1e3 * seconds['bare calls']
    base, full = len(model.reduction.kept), len(model.reduction.standard)
    return [
        row(f'{base} base columns in chunks / stacking loop', 'ms', ours, loop, Target(15.0)),
        row(f'{base} base columns in chunks / bare calls', 'ms', ours, calls, Target(4.0)),
        row(f'all {full} columns in one array / stacking loop', 'ms', whole, loop, Target(1.0)),
    ]


def in_chunks(model: TorqueModel, samples: Samples) -> None:
    """Compute the base regressor as the identification does: chunk by chunk, memory reused."""
    from robot_dynid.estimation.experiment import Regression, chunks

    regression = Regression(model, samples)
    for rows in chunks(samples):
        regression.columns(rows)


def peers(robot: RobotModel, samples: Samples) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return Pinocchio's regressor called for every sample, and called and stacked."""
    import pinocchio as pin

    model, data = pinocchio_model(robot)
    q, qd, qdd = samples.position, samples.velocity, samples.acceleration

    def bare() -> None:
        for i in range(len(q)):
            pin.computeJointTorqueRegressor(model, data, q[i], qd[i], qdd[i])

    def stacking() -> FloatArray:
        """Fill one tall matrix row by row, joint after joint, as the field's tools do.

        Same columns as ours: links, viscous and Coulomb friction, rotor inertia, offset.
        """
        count, n = q.shape
        tall = np.zeros((count * n, 14 * n))
        for i in range(count):
            links = pin.computeJointTorqueRegressor(model, data, q[i, :], qd[i, :], qdd[i, :])
            for j in range(n):
                line = j * count + i
                tall[line, :10 * n] = links[j, :]
                tall[line, 10 * n + j] = qdd[i, j]
                tall[line, 11 * n + 3 * j] = qd[i, j]
                tall[line, 11 * n + 3 * j + 1] = np.sign(qd[i, j])
                tall[line, 11 * n + 3 * j + 2] = 1.0
        return tall

    return bare, stacking
