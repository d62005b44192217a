"""Resonance of the gear of one joint in a recording of its motor. Experimental."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, reported
from robot_dynid.numbers import FREQUENCY
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import repair
from robot_dynid.types import RawLog
from robot_dynid_extras.resonance.two_masses import TwoMasses, response, two_masses

#: the others hold still while they move by less than this share of what the joint does
STILL = 0.1
#: the motor keeps turning while it goes back for less than this share of the time
BACK = 0.05


@reported
@one_blas_thread()
def motor_resonance(
    robot: RobotModel, log: RawLog, joint: str, band: Sequence[float] | None = None
) -> tuple[TwoMasses, list[str]]:
    """Return the fit of two masses to the motor of ``joint``, and its warnings.

    The motor's position is ``motor_position`` where it was recorded, ``position`` otherwise (on
    the joint side); ``band`` (low, high) Hz are the frequencies used. Raises UsageError for an
    unknown joint, DataError where the recording does not show a resonance.
    """
    if band is not None:
        FREQUENCY.array(list(band), (2,), 'band')
    j, robot = robot.index(joint), robot.rigid
    repaired = repair(robot, log)
    part = max(repaired.parts, key=lambda p: len(p.time))
    position, own = part.position[:, j], 'position'
    if part.motor_position is not None and np.isfinite(part.motor_position[:, j]).all():
        position, own = part.motor_position[:, j], 'motor_position'
    elif part.motor_position is not None:
        raise DataError(next((n for n in repaired.notes if f'motor states of {joint}:' in n),
                             f'{log.source}: there are no motor states of {joint}'))
    assert part.effort is not None
    effort = robot.motor_torque(part.effort * robot.torque_factors)[:, j]
    found = two_masses(response(position, effort, repaired.step, band))
    return found, [f'experimental: J, M and K hold for small motions in the pose of the '
                   f'recording, from {own} and effort alone', *_spoilt(robot, part, j)]


def _spoilt(robot: RobotModel, part: RawLog, j: int) -> list[str]:
    found = []
    speed = np.gradient(part.position, part.time, axis=0)
    moved = np.sqrt(np.mean(speed**2, axis=0))
    others = [robot.joints[k] for k in range(robot.n) if k != j and moved[k] > STILL * moved[j]]
    if others:
        found.append(f'{", ".join(others)} moved, too: hold the other joints still, their torques '
                     'and the change of pose are taken for those of the gear')
    drift = np.sign(np.mean(speed[:, j]))
    back = float(np.mean(speed[:, j] * drift < 0.0))
    if back > BACK:
        found.append(f'the joint turns back {100.0 * back:.0f} % of the time: dry friction is not '
                     'constant then; let it turn one way while it is shaken')
    return found
