"""Sequence of the fit, and checks of its estimate: physical consistency, side of the gears."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import percent
from robot_dynid.effects import CHOSEN, JointFriction, RotorInertia
from robot_dynid.errors import DataError, MissingDependency, UsageError
from robot_dynid.estimation import DEFAULT, ESTIMATORS, Estimate, Estimator, Feasible
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.feasible.near_nominal import worse_than_nominal
from robot_dynid.estimation.feasible.simultaneous import open_offsets
from robot_dynid.estimation.friction_selection.law_request import AUTO
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import (
    joint_weights,
    residual_noise,
    solve_rows,
    weighted_factor,
)
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
    has_sweeps,
    sweep_motions,
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
    """Raise UsageError if the method does not support the loops."""
    if recipe.loops == THREE and not estimator.sequential:
        able = ' or '.join(name for name, one in ESTIMATORS.items() if one.sequential)
        raise UsageError(f'loops: three solves the links by {able}, not by {estimator.name}: '
                         'omit one of them')


def identify_sweeps(
    robot: RobotModel, logs: Sequence[RawLog], recipe: Recipe, watch: Stopwatch
) -> tuple[Sequence[RawLog], FrictionStep | None]:
    """Return the recordings to identify the links from, and the first of three loops.

    Raises DataError if either is missing.
    """
    if recipe.loops != THREE:
        return logs, None
    owners = logs.owners if isinstance(logs, Parts) else tuple(range(len(logs)))
    motions: list[list[SingleJointMotion]] = [[] for _ in range(max(owners) + 1)]
    moving = [0.0] * len(motions)
    for owner, log in zip(owners, logs, strict=True):
        with suppress(Unusable), part_of(log.part):
            single, seconds = sweep_motions(robot, log, recipe)
            motions[owner] += single
            moving[owner] += seconds
    # a recording counts as a whole, whatever its parts show
    joint_motion = [not has_sweeps(single, seconds)
                    for single, seconds in zip(motions, moving, strict=True)]
    rest = logs.select(joint_motion) if isinstance(logs, Parts) else [
        logs[i] for i, yes in enumerate(joint_motion) if yes]
    if not rest:
        raise DataError('loops: three needs sweeps and a recording in which all joints move '
                        'together, from which the second loop identifies the links: add it; if '
                        'one recording has both, name two windows: BAG[0:200] BAG[200:230]')
    swept = [motion for single, yes in zip(motions, joint_motion, strict=True) if not yes
             for motion in single]
    return rest, watch.timed(FRICTION, lambda: friction_step(robot, swept, recipe))


def held_out_in(
    experiment: Experiment, estimator: Estimator, estimate: Estimate, first: FrictionStep | None
) -> HeldOut:
    """Return the held-out errors of the fit that made ``estimate``, and of the baseline.

    With the friction of the ``first`` loop, if given. The baseline is fitted to the same motion.
    """
    if first is None:
        fit = estimator.fit_to_batches(experiment, estimate)
    else:
        physics = SequentialFit.of(experiment.model, first, Stopwatch(None), estimator)
        cells = experiment.by_motion

        def fit(chosen: Sequence[int]) -> FloatArray:
            return physics(cells, cells, chosen, None)

    information = experiment.information
    return replace(held_out(information, fit=fit), baseline=held_out(
        information, fit=lambda chosen: control_parameters(
            experiment.model, information.distinct.subset(chosen))))


@one_blas_thread()
def control_parameters(model: TorqueModel, information: Information) -> FloatArray:
    """Return the base parameters (b,) of the baseline: nominal inertials, everything else fitted.

    Rotors, friction and offsets are fitted to the effort less that of the nominal links: what a
    careful user obtains without identifying links.
    """
    reduction, robot = model.reduction, model.robot
    links = 10 * robot.tree.n
    nominal = reduction.matrix[:, :links] @ robot.tree.nominal.ravel()
    others = reduction.matrix[:, links:]
    tall = weighted_factor(information, joint_weights(information))
    fitted = solve_rows(np.column_stack(
        [tall[:, :-1] @ others, tall[:, -1] - tall[:, :-1] @ nominal])).values
    return np.asarray(nominal + others @ fitted)


def fit_deflection(
    experiment: Experiment,
    fitted: tuple[Estimator, Estimate],
    recipe: Recipe,
    first: FrictionStep | None,
    watch: Stopwatch,
) -> ResidualFitted:
    """Fit residual models of the deflection, if the recipe asks for them.

    ``fitted`` are the method and the estimate of the linear fit.
    """
    estimator, _ = fitted
    physics = JointFit(*fitted) if first is None else SequentialFit.of(
        experiment.model, first, watch, estimator)
    none = estimator.single_joint_motions or estimator.estimates_motion
    kind = NONE if none or experiment.model.gears else recipe.residual
    result = None
    if kind != NONE or first is not None:
        result = fit_residual(experiment, kind, physics, watch)
    result = result or ResidualFitted()
    if recipe.residual not in (AUTO, NONE) and not (result.warnings or any(result.models)):
        warning = (f'residual {recipe.residual} needs motor states in every recording (topic '
                'motor_states, columns motor_position.<joint>), and another method than staged or '
                'latent; the model has no residual')
        result = replace(result, warnings=(warning,))
    if first is None:
        return replace(result, values=None)
    record = replace(result.record or DeflectionRecord(), loops=THREE, seconds={
        stage: watch.seconds.get(stage, 0.0) for stage in (FRICTION, LINKS, RESIDUAL)})
    return replace(result, record=record)


def use_sequential_values(estimate: Estimate, result: ResidualFitted) -> Estimate:
    """Return the estimate with the values of sequential loops; deviations are those of one fit."""
    return estimate if result.values is None else replace(estimate, values=result.values)


def choose_feasible(
    estimator: Estimator, estimate: Estimate, experiment: Experiment, choice: Choice
) -> tuple[Estimator, Estimate]:
    """Return the method and the estimate that the model is made of.

    If the default method, or one for elastic joints, gives a mass matrix that is not positive
    definite within the joint limits, or predicts distinct motion worse than nominal links with
    fitted friction, this is the method feasible, with the nominal links as prior, and its estimate
    from the same information, with a warning; a warning only if its solver is missing. The same
    for counterbalances and offsets that the motion does not separate from gravity: with free links
    both grow and cancel. Otherwise nothing changes.
    """
    torque = experiment.model
    if not (estimator == ESTIMATORS[DEFAULT] or estimator.seeks_elastic_joints):
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
    free_noise, feasible_noise = (residual_noise(experiment.information, one.values)
                                  for one in (estimate, feasible))
    rise = feasible_noise / np.maximum(free_noise, np.finfo(float).tiny) - 1.0
    causes = [f'the mass matrix of {estimator.name} is not positive definite {where}'] \
        if where else []
    if worse:
        rows = (f'{joint} {free:.3g}, not {nominal:.3g}'
                for joint, (free, nominal) in worse.items())
        causes.append(f'held-out errors of {estimator.name} exceed those of nominal links with '
                      f'fitted friction [N m]: {", ".join(rows)}')
    causes += [f'{names}: the efforts hardly separate the {what} from gravity; the nominal links '
               'do'
               for what, names in springs.items()]
    if offsets:
        causes.append(f'{", ".join(sorted(offsets))}: the motion does not separate an offset of '
                      'the effort from gravity, and the values are without one')
    note = (f'{"; ".join(causes)}: the model has physically consistent parameters (method '
            f'{feasible.method}), whose residuals are {percent(float(np.median(rise)))} % larger '
            f'in the median of the joints, {percent(float(rise.max()))} % at most '
            f'({torque.robot.row_names[int(rise.argmax())]})')
    return Feasible(), replace(feasible, warnings=(note, *feasible.warnings))


#: least share by which rotors or friction lower the held-out error of a joint if they are present
SHOWS = 0.02


def sensor_warnings(
    experiment: Experiment, held: HeldOut, part: Sequence[Repaired], choice: Choice
) -> list[str]:
    """Return a warning if the effort looks like that of the other side of the gears.

    Motors show their rotors and friction: if neither lowers the held-out error of any joint, with
    ``held`` that of all parameters, it looks like torque sensors behind the gears. These show no
    rotors: if rotors lower the error at half of the joints, it looks like motors; that is tried on
    the ``part`` of the recordings on which choices are made.
    """
    robot = experiment.model.robot
    if robot.drive.elastic:
        return []
    if robot.drive.shows_motors:
        gain = _gain(held.raw, _without_motors(experiment))
        if gain is None or np.any(gain > SHOWS):
            return []
        return ['the effort of no joint shows rotors or friction (they lower held-out errors by '
                f'at most {100.0 * float(gain.max()):.1f} %), as if from torque sensors behind '
                f'the gears: in that case put sensor: {LINK} into the robot YAML']
    gain = _gain(*(held_out(Experiment.of(
        replace(choice.structure, rotor_inertia=rotors).torque_model(robot),
        [prepare(robot, one, choice.preprocessing) for one in part]).information).raw
        for rotors in (True, False)))
    assert gain is not None
    joints = [f'{name} {100.0 * share:.0f}' for name, share in zip(
        robot.joints, gain, strict=True) if share > SHOWS]
    if 2 * len(joints) < robot.n:
        return []
    return [f'the effort shows rotors (they lower held-out errors by [%]: {", ".join(joints)}), '
            'as if from motors, not from torque sensors behind the gears: in that case put '
            f'sensor: {MOTOR} into the robot YAML']


def _gain(with_them: FloatArray, without: FloatArray | None) -> FloatArray | None:
    """Return the share (n,) by which RMS errors are lower with some parameters."""
    if without is None:
        return None
    return np.asarray(1.0 - np.sqrt(with_them / np.maximum(without, 1e-300)))


def _without_motors(experiment: Experiment) -> FloatArray | None:
    """Return the squared held-out errors (n,) without rotors and friction, except offsets.

    None if the model has neither.
    """
    motor_names = {name for block in experiment.model.blocks
           if isinstance(block, RotorInertia | JointFriction)
           for name in block.names if not name.startswith('f0')}
    names = experiment.information.names
    others = [i for i, name in enumerate(names) if name not in motor_names]
    if len(others) == len(names):
        return None
    return held_out(experiment.information.about(others)).raw
