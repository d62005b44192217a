"""Friction and links at once or in turn, and what the deflection adds: as the recipe has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import ESTIMATORS, Estimate, StagedLeastSquares
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.friction_selection.law_selection import AUTO
from robot_dynid.identification.recipe import NONE, THREE, Recipe
from robot_dynid.identification.residual_fit import ResidualFitted, fit_residual, joint_fit
from robot_dynid.identification.selection import Choice, choose
from robot_dynid.identification.sequential_fit import (
    FRICTION,
    RESIDUAL,
    FrictionStep,
    SequentialFit,
    Stopwatch,
    friction_step,
    swept,
)
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Repaired
from robot_dynid.types import Progress, RawLog

#: the method whose equations the second loop solves
METHOD = 'wls'


def check_sequence(recipe: Recipe, method: str) -> None:
    """Raise UsageError where the loops do not go with the method."""
    if recipe.loops == THREE and method != METHOD:
        raise UsageError(f'loops: three solves the links by {METHOD}, not by {method}; leave one '
                         'of them out')


def begun(
    robot: RobotModel, logs: Sequence[RawLog], recipe: Recipe, watch: Stopwatch
) -> tuple[Sequence[RawLog], FrictionStep | None]:
    """Return the recordings the links are identified from, and the first loop of three.

    Raises DataError where one of the two is missing.
    """
    if recipe.loops != THREE:
        return logs, None
    solos, rest = [], []
    for log in logs:
        own = swept(robot, log, recipe)
        solos += own
        if not own:
            rest.append(log)
    if not rest:
        raise DataError('loops: three needs, beside sweeps, a recording in which all joints move '
                        'together: the second loop identifies the links from it')
    return rest, watch.timed(FRICTION, lambda: friction_step(robot, solos, recipe))


def chosen(
    robot: RobotModel, part: Sequence[Repaired], recipe: Recipe, first: FrictionStep | None,
    progress: Progress,
) -> Choice:
    """Return what is chosen from an excerpt; of three loops the first one has chosen the laws."""
    if first is None:
        return choose(robot, part, recipe, progress)
    choice = choose(robot, part, replace(recipe, friction='coulomb'), progress)
    return replace(choice, structure=first.structure)


def compensated(
    experiment: Experiment,
    method: str,
    recipe: Recipe,
    first: FrictionStep | None,
    watch: Stopwatch,
) -> ResidualFitted:
    """Learn from the deflection what the physics leaves over, where the recipe wants it."""
    physics = joint_fit if first is None else SequentialFit.of(experiment.model, first, watch)
    staged = isinstance(ESTIMATORS[method], StagedLeastSquares)
    modelled = bool(experiment.model.robot.drive.elastic)
    wanted = 'gmr' if recipe.residual == AUTO else recipe.residual
    kind = NONE if staged or modelled else wanted
    found = None
    if kind != NONE or first is not None:
        found = fit_residual(experiment, kind, physics, watch)
    found = found or ResidualFitted(experiment)
    if recipe.residual not in (AUTO, NONE) and not (found.warnings or any(found.models)):
        told = (f'residual {recipe.residual} needs motor states in every recording (topic '
                'motor_states, columns motor_position.<joint>), and another method than staged; '
                'the model has no residual')
        found = replace(found, warnings=(told,))
    if first is None:
        return replace(found, values=None)
    details = {**found.details, 'loops': THREE, 'seconds': {
        stage: watch.seconds.get(stage, 0.0) for stage in (FRICTION, 'links', RESIDUAL)}}
    return replace(found, details=details)


def settled(estimate: Estimate, found: ResidualFitted) -> Estimate:
    """Return the estimate with the values of loops in turn; its deviations are those at once."""
    return estimate if found.values is None else replace(estimate, values=found.values)
