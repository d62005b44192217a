"""Recordings gathered for a fit: choices made from them, their information, an excerpt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from robot_dynid.errors import UsageError
from robot_dynid.estimation import Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.elastic_joints import with_elastic_joints
from robot_dynid.identification.fit import identify_sweeps
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Prepared, Recordings
from robot_dynid.identification.reversal_weights import reversal_weights
from robot_dynid.identification.selection import (
    Choice,
    Excerpt,
    between,
    choose,
    with_gear_effects,
    with_laws_of,
)
from robot_dynid.identification.sequential_fit import FrictionStep, Stopwatch
from robot_dynid.identification.single_joint_selection import SingleJointExcerpt
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Extent
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Repaired
from robot_dynid.signals.windows import with_windows
from robot_dynid.types import FloatArray, Progress, RawLog


@dataclass(frozen=True, eq=False)
class Gathered:
    """Recordings as a fit needs them.

    ``experiment`` holds their information about the parameters of the model that was chosen;
    ``extent`` is that of their motion; ``record`` and ``notes`` say what was done to them,
    ``findings`` what was found about them. ``logs`` are the recordings, or what is left of them,
    ``excerpt`` the repaired ones that choices were made on; ``sweeps`` the friction of the first
    of three loops. ``release`` gives back what prepared recordings take in memory.
    """

    robot: RobotModel
    choice: Choice
    experiment: Experiment
    extent: Extent
    record: FitRecord
    notes: tuple[str, ...]
    findings: tuple[str, ...]
    logs: Sequence[RawLog]
    excerpt: Sequence[Repaired]
    sweeps: FrictionStep | None = None
    release: Callable[[], None] = lambda: None


@dataclass(frozen=True, eq=False)
class Like:
    """Choices that recordings are reduced with, so that their information merges with other.

    ``reversal_weights`` (n,) of the equations near reversals; None counts them in full.
    """

    choice: Choice
    reversal_weights: FloatArray | None


@dataclass(frozen=True, eq=False)
class Request:
    """Method and recipe of a fit, and choices that were made before, if any."""

    estimator: Estimator
    recipe: Recipe
    like: Like | None = None


def gather(
    robot: RobotModel, logs: Sequence[RawLog], request: Request, progress: Progress,
    watch: Stopwatch,
) -> Gathered:
    """Go through the recordings: once to choose cut-off, lag and friction, once to reduce them.

    Raises UsageError (wrong use), DataError (recordings that cannot be used).
    """
    estimator, recipe, like = request.estimator, request.recipe, request.like
    _check(robot, logs)
    logs = with_windows(Parts.of(logs), recipe.windows)
    if recipe.periodic is not None and isinstance(logs, Parts):
        logs = logs.in_one_piece('averaging over periods')
    recipe.check_robot(robot)
    robot = with_elastic_joints(robot, logs, estimator, recipe)

    progress('reading and repairing the recordings', 0.0)
    logs, findings = plausible_recordings(robot, logs, recipe.accept)
    logs, sweeps = identify_sweeps(robot, logs, recipe, watch)
    recordings = Recordings(robot, logs, recipe)
    part = recordings.excerpt()
    twice = like is None and estimator.estimates_motion and recipe.chooses_friction(robot)
    early = between(progress, 0.0, 0.5 if twice else 1.0)
    choice = like.choice if like else choose(
        robot, part, recipe, early, sweeps.structure if sweeps else None,
        SingleJointExcerpt if estimator.single_joint_motions else Excerpt)
    if robot.drive.elastic and like is None and not estimator.estimates_motion:
        choice = with_gear_effects(robot, part, recipe, choice, early)
    experiment, prepared = _experiment(recordings, part, choice, request, early)
    if twice:
        choice = with_laws_of(estimator, experiment, choice, recipe.law_requests(robot))
        experiment, prepared = _experiment(recordings, part, choice, request, progress)
    notes, record = prepared.found(recipe)
    return Gathered(
        robot, choice, experiment, Extent.merged(tuple(prepared.extents.values())),
        replace(record, recordings=_sources(logs)), tuple(notes), findings, logs, part, sweeps,
        prepared.kept.release)


def _experiment(
    recordings: Recordings, part: Sequence[Repaired], choice: Choice, request: Request,
    progress: Progress,
) -> tuple[Experiment, Prepared]:
    """Reduce the recordings with what was chosen; return also what they were prepared by."""
    model = choice.structure.torque_model(recordings.robot)
    if request.like is not None:
        weights = request.like.reversal_weights
    elif request.estimator.single_joint_motions:
        weights = None
    else:
        weights = reversal_weights(model, part, choice.preprocessing)
    prepared = Prepared(model.robot, recordings, choice.preprocessing, progress)
    experiment = Experiment.of(model, prepared, weights)
    return replace(experiment, as_recorded=prepared.as_recorded), prepared


def _check(robot: RobotModel, logs: Sequence[RawLog]) -> None:
    """Raise UsageError without recordings, or without the kind of effort."""
    if not len(logs):
        raise UsageError('no recording to identify from')
    if not robot.drive.kind:
        raise UsageError(
            f'{robot.name}: the kind of its effort is not stated, and a wrong guess would go '
            'unnoticed; put effort_kind: torque, current or gravity_compensated_torque into a '
            'robot YAML (two lines: urdf and effort_kind) and give that')


def _sources(logs: Sequence[RawLog]) -> tuple[str, ...]:
    return tuple(str(s) for s in getattr(logs, 'sources', None) or [log.source for log in logs])
