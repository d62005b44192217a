"""Choice of the joints that are modelled as elastic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import Estimator
from robot_dynid.identification.recipe import THREE, Recipe
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import repair
from robot_dynid.types import RawLog


def with_elastic_joints(
    robot: RobotModel, logs: Sequence[RawLog], estimator: Estimator, recipe: Recipe
) -> RobotModel:
    """Return the robot with the elastic joints the recipe, the robot or the data name.

    An estimator that seeks elastic joints takes every joint whose two encoders can be used
    together, where none are named. Raises UsageError for joints or settings that cannot be,
    DataError where it finds no deflection.
    """
    if recipe.elastic_joints is not None:
        chosen = tuple(sorted({robot.index(name) for name in recipe.elastic_joints}))
    else:
        chosen = robot.drive.elastic
    if estimator.seeks_elastic_joints and not chosen:
        if recipe.elastic_joints is not None:
            raise UsageError(f'method {estimator.name} with no elastic joints: name some in '
                             'elastic_joints')
        chosen = _two_encoders(robot, logs[0])
    if chosen and estimator.single_joint_motions:
        raise UsageError(f'method {estimator.name} is for rigid joints: choose another, '
                         'or give the recipe elastic_joints: []')
    if chosen and recipe.loops == THREE:
        raise UsageError('loops: three learns from the deflection what elastic joints model: '
                         'leave one of them out (elastic_joints: [])')
    weight_removed = robot.drive.kind == 'gravity_compensated_torque' and robot.gravity.any()
    if chosen and weight_removed:
        raise UsageError('elastic joints: the weight bends gears, too, but effort_kind '
                         'gravity_compensated_torque leaves it out of the effort: record the '
                         'whole effort, or give the recipe elastic_joints: []')
    sensors = tuple(j for j in robot.drive.torque_sensors if j in chosen)
    return replace(robot, drive=replace(robot.drive, elastic=chosen, torque_sensors=sensors))


def _two_encoders(robot: RobotModel, log: RawLog) -> tuple[int, ...]:
    """Return the joints with encoders on both sides of the gear; raises DataError for none."""
    repaired = repair(robot, log)
    motors = repaired.parts[0].motor_position if repaired.parts else None
    found = () if motors is None else tuple(
        int(j) for j in np.flatnonzero(np.isfinite(motors).all(axis=0)))
    if found:
        return found
    reasons = [note for note in repaired.notes if 'motor states of' in note]
    reason = reasons[0] if reasons else f'{log.source}: there are no motor states'
    raise DataError(f'{reason}; the method elastic needs the positions of motors and links: '
                    'record the topic motor_states (columns motor_position.<joint>)')
