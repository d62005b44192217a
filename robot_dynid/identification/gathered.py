"""Recordings gathered for a fit: choices made from them, their information, an excerpt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS, Estimator
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.identification.by_recording import Like, Recorded
from robot_dynid.identification.elastic_joints import with_elastic_joints
from robot_dynid.identification.fit import identify_sweeps
from robot_dynid.identification.gear_effects import effects_left_out
from robot_dynid.identification.recipe import THREE, Recipe
from robot_dynid.identification.recordings import Prepared, Recordings, accepted_kinds
from robot_dynid.identification.reversal_weights import reversal_weights
from robot_dynid.identification.selection import (
    Choice,
    Excerpt,
    SingleJointExcerpt,
    between,
    choose,
    with_gear_effects,
    with_laws_of,
)
from robot_dynid.identification.sequential_fit import FrictionStep, Stopwatch
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Extent
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Repaired, prepare
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
class Request:
    """Method and recipe of a fit, and choices that were made before, if any.

    ``recorded`` works on the recordings, for methods that need their information only; None: this
    process, on one after the other, the next one prepared beside.
    """

    estimator: Estimator
    recipe: Recipe
    like: Like | None = None
    recorded: Recorded | None = None


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
    if request.recorded is not None:
        return _gathered_by_recording(robot, logs, request, request.recorded, progress)
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
    if robot.drive.elastic and estimator.estimates_motion:
        settings = replace(choice.preprocessing, decimate=False)
        notes = [*notes, *effects_left_out(
            robot, choice.structure, [prepare(robot, one, settings) for one in part],
            estimator.name)]
    return Gathered(
        robot, choice, experiment, Extent.merged(tuple(prepared.extents.values())),
        replace(record, recordings=_sources(logs), accepted=accepted_kinds(recipe, logs)),
        tuple(notes), findings, logs, part, sweeps,
        prepared.kept.release)


def _experiment(
    recordings: Recordings, part: Sequence[Repaired], choice: Choice, request: Request,
    progress: Progress,
) -> tuple[Experiment, Prepared]:
    """Reduce the recordings with what was chosen; return also what they were prepared by."""
    model = choice.structure.torque_model(recordings.robot)
    weights = _weights(model, part, choice, request)
    prepared = Prepared(model.robot, recordings, choice.preprocessing, progress,
                        request.estimator.single_joint_motions)
    experiment = Experiment.of(model, prepared, weights)
    return replace(experiment, as_recorded=prepared.as_recorded), prepared


def _weights(
    model: TorqueModel, part: Sequence[Repaired], choice: Choice, request: Request
) -> FloatArray | None:
    """Return the weights (n,) of the equations near reversals; None counts them in full."""
    if request.like is not None:
        return request.like.reversal_weights
    if request.estimator.single_joint_motions:
        return None
    return reversal_weights(model, part, choice.preprocessing)


def _gathered_by_recording(
    robot: RobotModel, logs: Sequence[RawLog], request: Request, recorded: Recorded,
    progress: Progress,
) -> Gathered:
    """Go through the recordings as `gather` does, each of them worked on by ``recorded``.

    Choices are made here, from the same excerpt.
    """
    recipe, like = request.recipe, request.like
    check_method(request.estimator, recipe)
    if not isinstance(logs, Parts):
        raise UsageError('workers need recordings that are opened together (a list or Parts), not '
                         'a sequence that reads them one by one')
    recipe.check_robot(robot)
    robot = with_elastic_joints(robot, (), request.estimator, recipe)
    surveys = recorded.surveyed(robot, logs, recipe, progress)
    parts, findings = plausible_recordings(
        robot, recorded.opened, recipe.accept, [survey.examination for survey in surveys])
    assert isinstance(parts, Parts)
    left = set(map(id, parts.recordings))
    whole = parts if recipe.periodic is None else parts.in_one_piece('averaging over periods')
    part = Recordings(robot, whole, recipe).excerpt()
    choice = like.choice if like else choose(robot, part, recipe, between(progress, 0.2, 0.5))
    model = choice.structure.torque_model(robot)
    like = Like(choice, _weights(model, part, choice, request))
    found = recorded.reduced(robot, [s for s in surveys if id(s.recording) in left],
                             (like, recipe), progress)
    experiment = Experiment.about(model, found.information, like.reversal_weights)
    return Gathered(robot, choice, experiment, found.extent, found.record, found.notes, findings,
                    whole, part)


def check_method(estimator: Estimator, recipe: Recipe | None = None) -> None:
    """Raise UsageError for a fit that needs samples, not only their information.

    With the ``recipe`` by which recordings are reduced to it.
    """
    if not estimator.fits_information:
        able = ', '.join(name for name, one in ESTIMATORS.items() if one.fits_information)
        raise UsageError(f'method {estimator.name} goes through the samples of the recordings, '
                         f'which information does not hold; choose one of {able}, or give the '
                         'recordings to identify, without workers')
    if recipe is not None and recipe.loops == THREE:
        raise UsageError('loops: three identifies friction and links from different recordings, '
                         'which information does not tell apart; identify from the recordings, '
                         'without workers')


def _check(robot: RobotModel, logs: Sequence[RawLog]) -> None:
    """Raise UsageError without recordings, or without the kind of effort."""
    if not len(getattr(logs, 'recordings', logs)):
        raise UsageError('no recording to identify from')
    if not robot.drive.kind:
        raise UsageError(
            f'{robot.name}: the kind of its effort is not stated, and a wrong guess would go '
            'unnoticed; put effort_kind: torque, current or gravity_compensated_torque into a '
            'robot YAML (two lines: urdf and effort_kind) and give that')


def _sources(logs: Sequence[RawLog]) -> tuple[str, ...]:
    return tuple(str(s) for s in getattr(logs, 'sources', None) or [log.source for log in logs])
