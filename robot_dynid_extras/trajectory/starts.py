"""Starts of a fit by simulation error, and the parameters it may go to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.estimation.estimate import Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.simultaneous import SMALLEST, Feasible, FeasibleEstimate, Task
from robot_dynid.estimation.information import EXTRA, FILTERED, RAW, Batch, Information
from robot_dynid.estimation.least_squares import LeastSquares, joint_weights, solve
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.arm import ArmModel

#: methods that a fit may start from; they read the information of an experiment alone
STARTS: dict[str, Estimator] = {'wls': LeastSquares(), 'feasible': Feasible()}
#: random configurations at which the mass matrix must be positive definite, beside recorded ones
CONFIGURATIONS = 200

def values_of(start: str, experiment: Experiment) -> FloatArray:
    """Return the base parameters (b,) of a key of STARTS, from the information alone."""
    if start == 'wls':
        information = experiment.information
        return solve(information, joint_weights(information)).values
    return STARTS[start].fit(experiment).values


@dataclass(frozen=True, eq=False)
class Definite:
    """Steps of Gauss and Newton to where the mass matrix is positive definite.

    ``poses`` (K, n) are the configurations where it must be.
    """

    arm: ArmModel
    poses: FloatArray

    @classmethod
    def of(cls, experiment: Experiment) -> Definite:
        """Take recorded configurations, and random ones within the limits."""
        robot, rng = experiment.model.robot, np.random.default_rng(0)
        lower, upper = (np.where(np.isfinite(end), end, side * np.pi) for end, side in (
            (robot.limits.lower, -1.0), (robot.limits.upper, 1.0)))
        found = [rng.uniform(lower, upper, (CONFIGURATIONS, robot.n))]
        for samples in experiment.recordings:
            found.append(samples.position[::max(1, len(samples) // CONFIGURATIONS)])
        return cls(ArmModel(experiment.model), np.concatenate(found))

    def target(self, information: Information, values: FloatArray) -> FloatArray:
        """Return the least-squares solution (b,); where nothing is known values stay."""
        return np.asarray(values + solve(information, np.ones(1)).values)

    def allowed(self, values: FloatArray) -> bool:
        """Return whether the mass matrix of base parameters (b,) is positive definite."""
        found = np.linalg.eigvalsh(self.arm.with_values(values).mass_matrix(self.poses))
        return bool(np.all(found[:, 0] > 0.0))


@dataclass(frozen=True, eq=False)
class Bodies(Definite):
    """Steps to parameters of bodies that can exist, as the method feasible takes them.

    ``experiment`` gives the model, ``weight`` is that of the prior.
    """

    experiment: Experiment
    weight: float

    @classmethod
    def like(cls, found: FeasibleEstimate, experiment: Experiment) -> Bodies:
        """Return the rules by which an estimate of the method feasible was found."""
        definite = Definite.of(experiment)
        return cls(definite.arm, definite.poses, experiment, max(found.prior_weight, SMALLEST))

    def target(self, information: Information, values: FloatArray) -> FloatArray:
        """Return the base parameters (b,) of the best bodies."""
        return np.asarray(self.arm.torque.reduction.base(self.standard(information, values)))

    def standard(self, information: Information, values: FloatArray) -> FloatArray:
        """Return the standard parameters (p,) of the best bodies."""
        whole = replace(information, batches=tuple(
            _shifted(batch, values) for batch in information.batches))
        feasible = Feasible()
        task = Task.of(replace(self.experiment, information=whole), feasible.prior,
                       feasible.bounds)
        answer = feasible.fitter(task, whole)(self.weight)
        return np.asarray(task.feasible.whitening.transform @ answer.v)


def _shifted(batch: Batch, values: FloatArray) -> Batch:
    """Return the equations of a step from ``values`` (b,) as those of the parameters."""
    factor = batch.factors[0].copy()
    factor[:, [len(values) + FILTERED, len(values) + RAW]] += (
        factor[:, :-EXTRA] @ values)[:, None]
    return replace(batch, factors=(factor,))


def rules_of(start: Estimate, experiment: Experiment) -> Definite:
    """Return the rules of a fit from ``start``: feasible parameters stay feasible."""
    if isinstance(start, FeasibleEstimate):
        return Bodies.like(start, experiment)
    return Definite.of(experiment)
