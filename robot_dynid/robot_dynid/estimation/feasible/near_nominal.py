"""Least squares regularised towards the nominal links, and its best held-out error.

A free fit to a short motion overfits: on distinct motion it may be worse than the nominal links
with fitted friction. In between are fits with a prior on the links; each joint is scored by the
one with the least error. Candidates of cut-off, friction or springs thus compete on what a model
can predict, not on how well they happen to be determined.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.prior import link_transforms
from robot_dynid.estimation.information import RAW, Information
from robot_dynid.estimation.least_squares import joint_weights, solve, weighted_factor
from robot_dynid.estimation.uncertainty.held_out import falls, folds
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: weights of the prior of one link, as in `Feasible`: nominal links, ..., least squares
PULLS = (np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 0.0)
#: share by which a free fit must be worse on distinct motion than nominal links
FREE_FIT_EXCESS = 0.1
#: share of the largest singular value below which columns are dependent
DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class NearNominal:
    """Fits regularised towards the nominal links of `robot` by each of PULLS.

    `matrix` (b, p): base parameters = matrix @ standard parameters; `weights` (n,) of the joints
    [1 / (N m)].
    """

    robot: RobotModel
    matrix: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, experiment: Experiment) -> NearNominal:
        """Return the fits of an experiment, with the joint weights of least squares."""
        model = experiment.model
        return cls(model.robot, model.reduction.matrix, joint_weights(experiment.information))

    @cached_property
    def _transform(self) -> FloatArray:
        """Matrix (b, 10 n): base parameters of links in units of the nominal ones."""
        return np.hstack([self.matrix[:, 10 * i:10 * i + 10] @ one
                          for i, one in enumerate(link_transforms(self.robot))])

    def values(self, information: Information) -> FloatArray:
        """Return the base parameters (P, b) of each of the P PULLS."""
        regularised, _ = self.responses(information)
        free = solve(information, self.weights).values
        return np.concatenate([regularised[:, :, 0], free[None]])

    def responses(self, information: Information) -> tuple[FloatArray, FloatArray]:
        """Return the base parameters (P, b, k) that fit the effort and k - 1 other columns.

        Columns of the `information` beyond the base parameters are not fitted but are efforts to
        explain; the measured effort is the first of these k. The P PULLS exclude least squares.
        Also returns the products (P, k, k) of the residuals, including the prior, relative to the
        noise of all joints and samples.
        """
        tall = np.linalg.qr(weighted_factor(information, self.weights), mode='r')
        tall = tall / np.sqrt(information.samples * len(information.structure))
        count, links = len(self.matrix), 10 * self.robot.tree.n
        nominal = self.matrix[:, :links] @ self.robot.tree.nominal.ravel()
        design, others = tall[:, :count], self.matrix[:, links:]
        sides = np.roll(tall[:, count:], 1, axis=1)
        sides[:, 0] -= design @ nominal
        other_columns, moved = design @ others, design @ self._transform
        back = _inverse(other_columns)
        rest = sides - other_columns @ (back @ sides)
        p, sizes, q = np.linalg.svd(moved - other_columns @ (back @ moved), full_matrices=False)
        along, values, products = p.T @ rest, [], []
        for pull in PULLS[:-1]:
            stiff = sizes**2 + 0.5 * pull / self.robot.n
            x = q.T @ (sizes[:, None] * along / stiff[:, None])
            values.append(self._transform @ x + others @ (back @ (sides - moved @ x)))
            products.append(rest.T @ rest - along.T @ ((sizes**2 / stiff)[:, None] * along))
        all_values = np.array(values)
        all_values[:, :, 0] += nominal
        return all_values, np.array(products)

    def held_out(self, information: Information) -> FloatArray:
        """Return the mean squared raw errors (P, f, n) [(N m)^2] of held-out folds."""
        all_errors = np.empty((len(PULLS), 0, len(information.structure)))
        for fold in folds(information):
            test = information.subset(fold.test)
            errors = [test.residual_energy(values, RAW) / test.samples
                      for values in self.values(information.subset(fold.fitted))]
            all_errors = np.concatenate([all_errors, np.array(errors)[:, None]], axis=1)
        return all_errors


def by_fold(information: Information) -> Information:
    """Return the information in one batch per fold of distinct motion."""
    return information.distinct.grouped([fold.test for fold in folds(information.distinct)])


def best_of(errors: FloatArray) -> FloatArray:
    """Return the errors (f, n) of the best pull of each joint, among (P, f, n)."""
    if not errors.shape[1]:
        return np.asarray(errors[0])
    best = np.argmin(errors.mean(axis=1), axis=0)
    return np.asarray(errors[best, :, np.arange(len(best))].T)


def best_held_out(experiment: Experiment) -> FloatArray:
    """Return the mean squared raw errors (f, n) [(N m)^2] of held-out folds.

    Those of least squares, except for joints that overfit: there a fit nearer to the nominal links
    reduces the error by FREE_FIT_EXCESS.
    """
    errors = NearNominal.of(experiment).held_out(by_fold(experiment.information))
    best, free = best_of(errors), errors[-1]
    noisy = (best.mean(axis=0) < (1.0 - FREE_FIT_EXCESS)**2 * free.mean(axis=0)
             if len(free) else False)
    return np.asarray(np.where(noisy, best, free))


def worse_than_nominal(experiment: Experiment) -> dict[str, tuple[float, float]]:
    """Return the joints whose free fit predicts distinct motion worse than nominal links.

    With the root mean square errors [N m] of both, friction fitted; the free fit must be worse by
    FREE_FIT_EXCESS, in most folds and by more than the standard error.
    """
    errors = NearNominal.of(experiment).held_out(by_fold(experiment.information))
    nominal, free = errors[0], errors[-1]
    sizes = np.sqrt(np.mean([free, nominal], axis=1)) if nominal.size else np.zeros((2, 0))
    return {name: (float(sizes[0, j]), float(sizes[1, j]))
            for j, name in enumerate(experiment.model.robot.row_names[:sizes.shape[1]])
            if sizes[1, j] < (1.0 - FREE_FIT_EXCESS) * sizes[0, j]
            and falls(nominal[:, j], free[:, j])}


def _inverse(columns: FloatArray) -> FloatArray:
    """Return the pseudo-inverse of columns, each scaled to one."""
    scale = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    return np.asarray(np.linalg.pinv(columns / scale, rcond=DEPENDENT) / scale[:, None])
