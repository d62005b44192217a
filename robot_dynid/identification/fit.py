"""Sequence of the fit, and checks of its estimate: bodies that can exist, sides of gears."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from robot_dynid.effects import CHOSEN, JointFriction, RotorInertia
from robot_dynid.errors import DataError, MissingDependency, UsageError
from robot_dynid.estimation import DEFAULT, ESTIMATORS, Estimate, Estimator, Feasible
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.near_nominal import worse_than_nominal
from robot_dynid.estimation.feasible.simultaneous import open_offsets
from robot_dynid.estimation.friction_selection.law_request import AUTO
from robot_dynid.estimation.least_squares import residual_noise
from robot_dynid.estimation.uncertainty.held_out import HeldOut, held_out
from robot_dynid.identification.recipe import NONE, THREE, Recipe
from robot_dynid.identification.recordings import Unusable, part_of
from robot_dynid.identification.residual_fit import JointFit, ResidualFitted, fit_residual
from robot_dynid.identification.selection import Choice
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
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import indefinite_at
from robot_dynid.identified.record import DeflectionRecord
from robot_dynid.robot.model import LINK, MOTOR, RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Repaired, prepare
from robot_dynid.signals.single_joint_motion import SingleJointMotion
from robot_dynid.types import FloatArray, RawLog


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
    rest = logs.select(kept) if isinstance(logs, Parts) else [
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


def real_robot(
    estimator: Estimator, estimate: Estimate, experiment: Experiment, choice: Choice
) -> tuple[Estimator, Estimate]:
    """Return the method and the estimate that the model is made of.

    Where the default method gives a mass matrix that is not positive definite within the joint
    limits, or predicts distinct motion worse than nominal links with fitted friction do, these are
    the method feasible, which has the nominal links as its prior, and its estimate from the same
    information, with a warning that says so; without its solver, that it is missing. So it is for
    counterbalances and offsets that the motion does not tell from weight: with free links both
    grow and cancel. All else stays as it is.
    """
    torque = experiment.model
    if estimator != ESTIMATORS[DEFAULT] or torque.gears:
        return estimator, estimate
    where = indefinite_at(IdentifiedModel(
        torque.robot, choice.structure, torque.reduction, estimate.values, estimate.std,
        estimate.values, choice.preprocessing))
    worse, springs = worse_than_nominal(experiment), {
        CHOSEN[key].what: ', '.join(torque.robot.joints[part.joint] for part in parts)
        for key, parts in choice.structure.chosen.items() if parts and CHOSEN[key].like_weight}
    offsets = set(estimate.not_excited) & set(open_offsets(experiment))
    if not (where or worse or springs or offsets):
        return estimator, estimate
    try:
        feasible = Feasible().fit(experiment)
    except MissingDependency as error:
        return estimator, replace(estimate, warnings=(*estimate.warnings, str(error)))
    before, after = (residual_noise(experiment.information, found.values)
                     for found in (estimate, feasible))
    rise = after / np.maximum(before, np.finfo(float).tiny) - 1.0
    causes = [f'the mass matrix of {estimator.name} is not positive definite {where}'] \
        if where else []
    if worse:
        rows = (f'{joint} {free:.3g}, not {nominal:.3g}'
                for joint, (free, nominal) in worse.items())
        causes.append(f'on motion left out {estimator.name} leaves more than nominal links with '
                      f'fitted friction [N m]: {", ".join(rows)}')
    causes += [f'{names}: efforts hardly tell the {what} from the weight, nominal links do'
               for what, names in springs.items()]
    if offsets:
        causes.append(f'{", ".join(sorted(offsets))}: the motion does not tell an offset of the '
                      'effort from weight, and the values are without one')
    note = (f'{"; ".join(causes)}: these are '
            f'parameters of bodies that can exist (method {feasible.method}), whose residuals '
            f'are {100.0 * np.median(rise):.2g} % larger in the median of the joints, '
            f'{100.0 * rise.max():.2g} % at most ({torque.robot.row_names[int(rise.argmax())]})')
    return Feasible(), replace(feasible, warnings=(note, *feasible.warnings))


#: what shows lowers the held-out error of a joint by this share at least
SHOWS = 0.02


def sensor_warnings(
    experiment: Experiment, held: HeldOut, part: Sequence[Repaired], choice: Choice
) -> list[str]:
    """Return a warning where the effort looks like that of the other side of the gears.

    Motors show their rotors and friction: where neither lowers the held-out error of any joint,
    with ``held`` that of all parameters, it looks like torque sensors behind the gears. These show
    no rotors: where rotors lower it at half of the joints, it looks like motors; that is tried on
    the ``part`` of the recordings on which choices are made.
    """
    robot = experiment.model.robot
    if robot.drive.elastic:
        return []
    if robot.drive.shows_motors:
        gain = _gain(held.raw, _without_motors(experiment))
        if gain is None or np.any(gain > SHOWS):
            return []
        return ['neither rotors nor friction show in the effort of any joint (held-out errors are '
                f'{100.0 * float(gain.max()):.1f} % lower with them at most): it looks like that '
                f'of torque sensors behind the gears; then put sensor: {LINK} into the robot YAML']
    gain = _gain(*(held_out(Experiment.of(
        replace(choice.structure, rotor_inertia=rotors).torque_model(robot),
        [prepare(robot, one, choice.preprocessing) for one in part]).information).raw
        for rotors in (True, False)))
    assert gain is not None
    shown = [f'{name} {100.0 * share:.0f}' for name, share in zip(
        robot.joints, gain, strict=True) if share > SHOWS]
    if 2 * len(shown) < robot.n:
        return []
    return [f'rotors show in the effort, held-out errors are lower with them by [%]: '
            f'{", ".join(shown)}: it looks like that of motors, not of torque sensors behind the '
            f'gears; then put sensor: {MOTOR} into the robot YAML']


def _gain(with_them: FloatArray, without: FloatArray | None) -> FloatArray | None:
    """Return the share (n,) by which root mean squared errors are lower with some parameters."""
    if without is None:
        return None
    return np.asarray(1.0 - np.sqrt(with_them / np.maximum(without, 1e-300)))


def _without_motors(experiment: Experiment) -> FloatArray | None:
    """Return the squared held-out errors (n,) without rotors and friction, but for offsets.

    None where the model has neither.
    """
    own = {name for block in experiment.model.blocks
           if isinstance(block, RotorInertia | JointFriction)
           for name in block.names if not name.startswith('f0')}
    names = experiment.information.names
    kept = [i for i, name in enumerate(names) if name not in own]
    if len(kept) == len(names):
        return None
    return held_out(experiment.information.about(kept)).raw
