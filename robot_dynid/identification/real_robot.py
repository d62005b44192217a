"""Least squares whose mass matrix no robot has give way to the fit of bodies that can exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.estimation import DEFAULT, ESTIMATORS, Estimate, Estimator, Feasible
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.least_squares import residual_noise
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import indefinite_at


def real_robot(
    estimator: Estimator, estimate: Estimate, experiment: Experiment, choice: Choice
) -> tuple[Estimator, Estimate]:
    """Return the method and the estimate that the model is made of.

    Where the default method gives a mass matrix that is not positive definite within the joint
    limits, these are the method feasible and its estimate from the same information, with a
    warning that says so; without its solver, that it is missing. All else stays as it is.
    """
    torque = experiment.model
    if estimator != ESTIMATORS[DEFAULT] or torque.gears:
        return estimator, estimate
    where = indefinite_at(IdentifiedModel(
        torque.robot, choice.structure, torque.reduction, estimate.values, estimate.std,
        estimate.values, choice.preprocessing))
    if not where:
        return estimator, estimate
    try:
        feasible = Feasible().fit(experiment)
    except MissingDependency as error:
        return estimator, replace(estimate, warnings=(*estimate.warnings, str(error)))
    before, after = (residual_noise(experiment.information, found.values)
                     for found in (estimate, feasible))
    rise = after / np.maximum(before, np.finfo(float).tiny) - 1.0
    note = (f'the mass matrix of {estimator.name} is not positive definite {where}: these are '
            f'parameters of bodies that can exist (method {feasible.method}), whose residuals '
            f'are {100.0 * np.median(rise):.2g} % larger in the median of the joints, '
            f'{100.0 * rise.max():.2g} % at most ({torque.robot.row_names[int(rise.argmax())]})')
    return Feasible(), replace(feasible, warnings=(note, *feasible.warnings))
