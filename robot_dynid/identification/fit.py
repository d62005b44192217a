"""Sequence of the fit: friction and links at once or in turn, residual models of deflection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import ESTIMATORS, Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.friction_selection.law_request import AUTO
from robot_dynid.estimation.uncertainty.held_out import HeldOut, held_out
from robot_dynid.identification.recipe import NONE, THREE, Recipe
from robot_dynid.identification.recordings import Unusable, part_of
from robot_dynid.identification.residual_fit import JointFit, ResidualFitted, fit_residual
from robot_dynid.identification.sequential_fit import (
    FRICTION,
    LINKS,
    RESIDUAL,
    FrictionStep,
    SequentialFit,
    Stopwatch,
    friction_step,
    sweep_motions,
    sweeps,
)
from robot_dynid.identified.record import DeflectionRecord
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.single_joint_motion import SingleJointMotion
from robot_dynid.types import RawLog


def check_sequence(recipe: Recipe, estimator: Estimator) -> None:
    """Raise UsageError where loops do not go with the method."""
    if recipe.loops == THREE and not estimator.sequential:
        able = ' or '.join(name for name, one in ESTIMATORS.items() if one.sequential)
        raise UsageError(f'loops: three solves the links by {able}, not by {estimator.name}; '
                         'leave one of them out')


def identify_sweeps(
    robot: RobotModel, logs: Sequence[RawLog], recipe: Recipe, watch: Stopwatch
) -> tuple[Sequence[RawLog], FrictionStep | None]:
    """Return the recordings the links are identified from, and the first loop of three.

    Raises DataError where one of the two is missing.
    """
    if recipe.loops != THREE:
        return logs, None
    owners = logs.owners if isinstance(logs, Parts) else tuple(range(len(logs)))
    motions: list[list[SingleJointMotion]] = [[] for _ in range(max(owners) + 1)]
    moving = [0.0] * len(motions)
    for owner, log in zip(owners, logs, strict=True):
        with suppress(Unusable), part_of(log.part):
            own, seconds = sweep_motions(robot, log, recipe)
            motions[owner] += own
            moving[owner] += seconds
    # a recording is one or the other, whatever its parts show
    kept = [not sweeps(own, seconds) for own, seconds in zip(motions, moving, strict=True)]
    rest = logs.chosen(kept) if isinstance(logs, Parts) else [
        logs[i] for i, yes in enumerate(kept) if yes]
    if not rest:
        raise DataError('loops: three needs, beside sweeps, a recording in which all joints move '
                        'together: the second loop identifies the links from it. Where one '
                        'recording has both, name two windows of it: BAG[0:200] BAG[200:230]')
    swept = [motion for own, yes in zip(motions, kept, strict=True) if not yes for motion in own]
    return rest, watch.timed(FRICTION, lambda: friction_step(robot, swept, recipe))


def held_out_in(
    experiment: Experiment, estimator: Estimator, estimate: Estimate, first: FrictionStep | None
) -> HeldOut:
    """Return the errors of the fit that made ``estimate`` on data left out.

    With the friction of the ``first`` loop where it is.
    """
    if first is None:
        return held_out(experiment.information, fit=estimator.fit_to_batches(experiment, estimate))
    physics = SequentialFit.of(experiment.model, first, Stopwatch(None), estimator)
    cells = experiment.by_motion
    return held_out(experiment.information,
                    fit=lambda chosen: physics(cells, cells, chosen, None))


def fit_deflection(
    experiment: Experiment,
    made: tuple[Estimator, Estimate],
    recipe: Recipe,
    first: FrictionStep | None,
    watch: Stopwatch,
) -> ResidualFitted:
    """Learn from the deflection what the physics leaves over, where the recipe wants it.

    ``made`` are the method and the estimate of the physics.
    """
    estimator, _ = made
    physics = JointFit(*made) if first is None else SequentialFit.of(
        experiment.model, first, watch, estimator)
    none = estimator.single_joint_motions or estimator.estimates_motion
    kind = NONE if none or experiment.model.gears else recipe.residual
    found = None
    if kind != NONE or first is not None:
        found = fit_residual(experiment, kind, physics, watch)
    found = found or ResidualFitted()
    if recipe.residual not in (AUTO, NONE) and not (found.warnings or any(found.models)):
        warning = (f'residual {recipe.residual} needs motor states in every recording (topic '
                'motor_states, columns motor_position.<joint>), and another method than staged or '
                'latent; the model has no residual')
        found = replace(found, warnings=(warning,))
    if first is None:
        return replace(found, values=None)
    record = replace(found.record or DeflectionRecord(), loops=THREE, seconds={
        stage: watch.seconds.get(stage, 0.0) for stage in (FRICTION, LINKS, RESIDUAL)})
    return replace(found, record=record)


def with_sequential_values(estimate: Estimate, found: ResidualFitted) -> Estimate:
    """Return the estimate with the values of loops in turn; its deviations are those at once."""
    return estimate if found.values is None else replace(estimate, values=found.values)
