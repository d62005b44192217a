"""Least squares that no robot has, or that learned noise, give way to bodies that can exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.effects import CHOSEN
from robot_dynid.errors import MissingDependency
from robot_dynid.estimation import DEFAULT, ESTIMATORS, Estimate, Estimator, Feasible
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.near_nominal import worse_than_nominal
from robot_dynid.estimation.feasible.simultaneous import open_offsets
from robot_dynid.estimation.least_squares import residual_noise
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import indefinite_at


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
    worse, springs = worse_than_nominal(experiment), [
        part for key, parts in choice.structure.chosen.items() if CHOSEN[key].like_weight
        for part in parts]
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
    if springs:
        names = ', '.join(torque.robot.joints[spring.joint] for spring in springs)
        causes.append(f'{names}: efforts hardly tell the torque of a counterbalance from the '
                      'weight, nominal links do')
    if offsets:
        causes.append(f'{", ".join(sorted(offsets))}: the motion does not tell an offset of the '
                      'effort from weight, and the values are without one')
    note = (f'{"; ".join(causes)}: these are '
            f'parameters of bodies that can exist (method {feasible.method}), whose residuals '
            f'are {100.0 * np.median(rise):.2g} % larger in the median of the joints, '
            f'{100.0 * rise.max():.2g} % at most ({torque.robot.row_names[int(rise.argmax())]})')
    return Feasible(), replace(feasible, warnings=(note, *feasible.warnings))
