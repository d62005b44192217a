"""Feasible standard parameters of all links at once, from the information alone.

``J = mean squared weighted residual + weight * mean over the links of the prior``, subject to
consistent links, nonnegative friction and rotors, and bounds. Residuals are weighted by the noise
of each joint, so their mean square is about one and the weight means the same for every robot. If
unconstrained least squares is feasible, its base parameters are used and the prior only selects
among the standard parameters of equal effort.

Sources: Sousa, Cortesao, Physical feasibility of robot base inertial parameter identification,
IJRR 2014; Wensing, Kim, Slotine, RA-L 2018; Lee, Wensing, Park, T-RO 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from robot_dynid.effects import ChosenEffect
from robot_dynid.estimation.estimate import (
    Details,
    Estimate,
    Estimator,
    FitToBatches,
    Status,
)
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.bounds import (
    Bounds,
    limits_of,
    read_bounds,
    resolve_collision,
)
from robot_dynid.estimation.feasible.certificate import (
    BINDING,
    Certificate,
    active_constraints,
    certificate,
)
from robot_dynid.estimation.feasible.conic import Outcome, Solution
from robot_dynid.estimation.feasible.prior import whitening
from robot_dynid.estimation.feasible.program import PRIORS, Answer, FeasibleSet, Program
from robot_dynid.estimation.information import FILTERED, RAW, Information
from robot_dynid.estimation.least_squares import (
    RANK_TOLERANCE,
    LeastSquares,
    joint_weights,
    left_open,
    recorded_effort,
    solve,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.held_out import folds
from robot_dynid.numbers import NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

#: candidates of the prior weight for cross-validation, largest first
WEIGHTS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: the largest weight is taken at which no joint's held-out error exceeds its least by this share
TOLERATED_EXCESS = 0.01
#: weight without held-out data
UNCHOSEN = 1e-2
#: weight instead of zero if least squares is infeasible and some prior is needed
ZERO_WEIGHT = 1e-6
#: prior weight of an offset that the motion does not separate from gravity: it becomes zero,
#: because offsets are small and links may be far from their description
NO_OFFSET = 1e6
#: the noise of a joint is at least this share of its effort
BEST_KNOWN = 1e-3
#: largest gap, relative to the objective, of a solution of reduced accuracy
WIDEST_GAP = 1e-4
#: share by which no joint's residual may exceed that of least squares, except by constraints
MAX_RISE = 0.05
#: share of the way to the nominal robot by which solver rounding may be repaired
FARTHEST = 1e-5


#: returns the answer for a prior weight
Fitter = Callable[[float], Answer]


@dataclass(frozen=True)
class FeasibleDetails(Details):
    """`certificate` of a feasible fit and its `prior_weight`, 0 if least squares was feasible."""

    prior_weight: float = 0.0
    certificate: Certificate = field(default_factory=Certificate)

    @property
    def from_prior(self) -> tuple[str, ...]:
        """Names of the standard parameters that the prior rather than the data determines."""
        return self.certificate.from_prior

    @property
    def prior_share(self) -> Mapping[str, float]:
        """Share of the prior variance that the data leaves to each standard parameter."""
        return self.certificate.prior_share

    @property
    def active_constraints(self) -> tuple[str, ...]:
        """Descriptions of the constraints that are active."""
        return self.certificate.active


@dataclass(frozen=True, eq=False, kw_only=True)
class FeasibleEstimate(Estimate):
    """A physically feasible estimate.

    `standard` (p,) standard parameters, ``values = K standard``; `objective` the mean squared
    weighted residual plus prior. The covariance is that of least squares with the residuals of the
    feasible fit, an upper bound: constraints and prior only reduce it.
    """

    standard: FloatArray
    details: FeasibleDetails
    objective: float

    @property
    def prior_weight(self) -> float:
        """Weight of the prior, 0 if least squares was feasible."""
        return self.details.prior_weight

    @property
    def certificate(self) -> Certificate:
        """Evidence that the parameters are feasible and optimal."""
        return self.details.certificate


@dataclass(frozen=True, eq=False)
class Task:
    """The problem: information of `experiment`, feasible set and prior.

    `joint_weights` (n,) [1 / (N m)].
    """

    experiment: Experiment
    feasible: FeasibleSet
    prior: str
    joint_weights: FloatArray

    @classmethod
    def of(
        cls, experiment: Experiment, prior: str, bounds: Bounds, fitted: Information | None = None
    ) -> Task:
        """Return the problem for the information `fitted`, by default that of the `experiment`.

        Raises UsageError if bounds contradict each other or name no link.
        """
        model, offsets = experiment.model, open_offsets(experiment)
        if fitted is not None:
            experiment = replace(experiment, information=fitted)
        limits = limits_of(bounds, model.robot, len(model.reduction.standard))
        size = experiment.information.size(FILTERED)
        size = np.maximum(size, max(1e-3 * size.max(), 1e-12))
        weights = np.minimum(joint_weights(experiment.information), 1.0 / (BEST_KNOWN * size))
        reach = recorded_effort(experiment.information, model.reduction.matrix) / size[:, None]
        coordinates = whitening(model, limits, reach)
        coordinates = replace(coordinates, weights=np.where(
            np.isin(coordinates.names, offsets), NO_OFFSET, coordinates.weights))
        return cls(experiment, FeasibleSet(coordinates, limits), prior, weights)

    @cached_property
    def matrix(self) -> FloatArray:
        """Return (b, p): base parameters = matrix @ v."""
        return np.asarray(
            self.experiment.model.reduction.matrix @ self.feasible.whitening.transform)

    @cached_property
    def whole(self) -> Program:
        """The problem in all parameters."""
        return Program(self.feasible, self.prior, np.arange(len(self.feasible.whitening.centre)))

    def share(self, weight: float) -> float:
        """Return the weight of one link's prior in the objective."""
        return weight / self.experiment.model.robot.n

    def compressed(self, information: Information) -> tuple[FloatArray, FloatArray, float]:
        """Return design (r, b), target (r,) and the energy that no parameter explains.

        ``mean squared weighted residual = ||design base - target||^2 + rest``.
        """
        tall = np.linalg.qr(weighted_factor(information, self.joint_weights), mode='r')
        tall = tall / np.sqrt(information.samples * len(information.structure))
        b = len(information.names)
        return tall[:b, :b], tall[:b, b], float(np.sum(tall[b:, b] ** 2))

    def prior_value(self, v: FloatArray) -> float:
        """Return the sum of the prior over links and other parameters at v (p,)."""
        w = self.feasible.whitening
        if self.prior == 'euclidean':
            return 0.5 * float(w.weights @ (v - w.centre) ** 2)
        bodies, others = w.pseudo_inertias(v), slice(w.bodies.stop, None)
        _, logarithms = np.linalg.slogdet(bodies)
        divergence = np.trace(bodies, axis1=1, axis2=2) - logarithms - 4.0
        return float(divergence.sum() + 0.5 * w.weights[others] @ v[others] ** 2)

    def base(self, v: FloatArray) -> FloatArray:
        """Return base parameters (b,)."""
        return np.asarray(self.matrix @ v)

    def rise(self, values: FloatArray) -> FloatArray:
        """Return the share (n,) by which `values` (b,) raise the residual of least squares.

        Root mean square of each joint; values below BEST_KNOWN of its effort count as rounding.
        """
        information = self.experiment.information
        least = solve(information, joint_weights(information)).values
        rounding = BEST_KNOWN * information.size(FILTERED)
        least_rms, rms = (np.maximum(np.sqrt(information.residual_energy(
            parameters, FILTERED) / information.samples), rounding)
            for parameters in (least, values))
        return np.asarray(rms / np.maximum(least_rms, 1e-300) - 1.0)


def open_offsets(experiment: Experiment) -> tuple[str, ...]:
    """Return the effort offsets (f02) that the motion does not separate from gravity.

    Not those of joints with a counterbalance, whose preload is an offset.
    """
    preloads = {f'f0{spring.joint + 1}' for block in experiment.model.blocks
                if isinstance(block, ChosenEffect) and block.like_weight
                for spring in block.parts}
    return tuple(name for name in left_open(experiment)
                 if name.startswith('f0') and name not in preloads)


def least_squares(task: Task, information: Information) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal E (r, p), e (r,) such that E v = e for all v of least-squares effort."""
    weights = joint_weights(information)
    solution = solve(information, weights)
    white = weighted_factor(information, weights)[:, :-1]
    rows = (white @ solution.root).T @ white
    return excited(rows @ task.matrix, rows @ solution.values)


def excited(design: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal E (r, p), e (r,) of all least-squares solutions of D v = t.

    D is `design` (m, p), t `target` (m,).
    """
    u, s, vt = np.linalg.svd(design, full_matrices=False)
    significant = s > RANK_TOLERANCE * s.max(initial=0.0)
    return vt[significant], (u[:, significant].T @ target) / s[significant]


PRIOR_WEIGHT = NumberRange(0.0, 1e12)


@dataclass(frozen=True)
class Feasible(Estimator):
    """Feasible parameters of all links at once."""

    prior: str = setting('entropic', tuple(PRIORS),
                         f'distance to the nominal links: {" or ".join(PRIORS)}')
    prior_weight: float | None = setting(
        None, PRIOR_WEIGHT, 'weight of the prior; cross-validated unless given')
    bounds: Bounds = setting(Bounds, read_bounds, 'bounds of masses, centres and shapes of links, '
                             'see docs/feasible.md')
    name = 'feasible'
    summary = 'parameters of physically possible bodies, all links at once'
    details_type = FeasibleDetails
    physically_feasible = True
    fits_information = True
    open_parameters = 'what the data leaves open is near the nominal robot'

    def for_robot(self, robot: RobotModel) -> Feasible:
        """Return the method with the ellipsoids of its bounds from the collision primitives.

        Raises UsageError for bounds of links that do not exist, or that contradict each other.
        """
        bounds = resolve_collision(self.bounds, robot)
        limits_of(bounds, robot, 10 * robot.tree.n)
        return replace(self, bounds=bounds)

    def fit(self, experiment: Experiment) -> FeasibleEstimate:
        """Estimate the parameters; numerical problems are in the status.

        Raises UsageError if bounds contradict each other, MissingDependency without Clarabel.
        """
        task = Task.of(experiment, self.prior, self.bounds)
        information, weight = experiment.information, self.prior_weight
        sprung = any(isinstance(block, ChosenEffect) and block.like_weight
                     for block in experiment.model.blocks)
        answer = None if weight or sprung else self.unconstrained(task, information)
        if answer is None or np.any(task.rise(task.base(answer.v)) > MAX_RISE):
            fit = self.fitter(task, information)
            answer = fit(max(weight, ZERO_WEIGHT)) if weight is not None else limit_prior(
                task, fit, cross_validated(task, self.fitter))
        return build_estimate(task, answer, self.name)

    def fit_to_batches(self, experiment: Experiment, estimate: Estimate) -> FitToBatches | None:
        """Return the fit with the prior weight of `estimate`; None if that is zero."""
        assert isinstance(estimate.details, FeasibleDetails)
        weight = estimate.details.prior_weight
        if weight == 0.0:
            return None
        task, information = Task.of(experiment, self.prior, self.bounds), \
            experiment.information.distinct

        def fit(batches: Sequence[int]) -> FloatArray:
            return task.base(self.fitter(task, information.subset(batches))(weight).v)

        return fit

    def unconstrained(self, task: Task, information: Information) -> Answer | None:
        """Return the point of least-squares effort nearest to the prior, None if infeasible."""
        nearest = task.whole.nearest(least_squares(task, information))
        if not nearest.usable or not task.feasible.holds(nearest.values):
            return None
        return Answer(task.feasible.clipped(nearest.values), 0.0, nearest.gap)

    def fitter(self, task: Task, information: Information) -> Fitter:
        """Return the optimum as a function of the prior weight."""
        base, target, rest = task.compressed(information)
        design = base @ task.matrix

        def fit(weight: float) -> Answer:
            solution = task.whole.minimise(design, target, task.share(weight))
            residual = design @ solution.values - target
            objective = float(residual @ residual) + rest
            gap = task.share(weight) * abs(solution.primal - solution.dual) / max(objective,
                                                                                  1e-300)
            doubtful = [] if solution.outcome is Outcome.SOLVED else [solution]
            return check_answer(task.feasible, solution.values, doubtful, weight, gap)

        return fit


def check_answer(
    feasible: FeasibleSet, start: FloatArray, doubtful: Sequence[Solution], weight: float,
    gap: float,
) -> Answer:
    """Return a feasible answer even if the solver failed; `trouble` says what was wrong.

    `start` is the point v (p,), `doubtful` the solutions of reduced accuracy, `gap` relative to
    the objective. An infeasible point is moved towards the nominal robot until it is feasible.
    """
    centre = feasible.whitening.centre
    troubles = [s.outcome.value for s in doubtful if not (s.usable and gap < WIDEST_GAP)]
    v, part = start, 1e-9
    while not feasible.holds(v) and part <= 1.0:
        v = start + part * (centre - start)
        part *= 10.0
    if not feasible.holds(v):
        v = centre
    if part > FARTHEST:
        troubles.append('the constraints are violated')
    return Answer(feasible.clipped(v), weight, gap, '; '.join(dict.fromkeys(troubles)))


def cross_validated(
    task: Task, fitter: Callable[[Task, Information], Fitter]
) -> float:
    """Return the largest prior weight that predicts held-out stretches nearly best, per joint.

    Without such a weight, the one whose worst joint is best.
    """
    information = task.experiment.information.distinct
    energy = np.zeros((len(WEIGHTS), len(information.structure)))
    parts = folds(information)
    if not parts:
        return UNCHOSEN
    for part in parts:
        test = information.subset(part.test).total
        fit = fitter(task, information.subset(part.fitted))
        for row, weight in enumerate(WEIGHTS):
            answer = fit(weight)
            energy[row] += np.inf if answer.trouble else \
                information.residual_energy(task.base(answer.v), RAW, test)
    error = np.sqrt(energy)
    if not np.isfinite(error).all(axis=1).any():
        return UNCHOSEN
    worst = np.max(error / np.maximum(error.min(axis=0), 1e-300), axis=1)
    good = np.flatnonzero(worst <= 1.0 + TOLERATED_EXCESS)
    return WEIGHTS[good[0] if len(good) else int(np.argmin(worst))]


def limit_prior(task: Task, fit: Fitter, weight: float) -> Answer:
    """Return the answer of the largest weight up to `weight` that hardly raises residuals.

    It may raise that of no joint by more than MAX_RISE beyond the effect of the constraints, which
    the least weight shows.
    """
    least = fit(WEIGHTS[-1])
    allowed = np.maximum(task.rise(task.base(least.v)), 0.0)
    for one in WEIGHTS[WEIGHTS.index(weight):-1]:
        answer = fit(one)
        rise = task.rise(task.base(answer.v))
        if np.all(1.0 + rise <= (1.0 + MAX_RISE) * (1.0 + allowed)):
            break
    else:
        answer = least
    return replace(answer, binding=active_constraints(
        task.feasible, least.v, BINDING))


def _spoiled(task: Task, answer: Answer, values: FloatArray) -> list[str]:
    """Return a warning of joints whose residual is far above that of least squares, if any."""
    rise = task.rise(values)
    rows = [f'{name} {100.0 * share:.0f}' for name, share in zip(
        task.experiment.model.robot.row_names, rise, strict=True) if share > MAX_RISE]
    if not rows:
        return []
    binding = answer.binding or active_constraints(
        task.feasible, answer.v, BINDING)
    cause = f'physical consistency requires it (active: {", ".join(binding)})' if binding else \
        f'the prior of weight {answer.weight:g} causes it; set a smaller prior_weight'
    return [f'residuals are above those of least squares by [%]: {", ".join(rows)}: {cause}']


def build_estimate(task: Task, answer: Answer, method: str) -> FeasibleEstimate:
    """Return the estimate of an answer with its certificate."""
    experiment, w = task.experiment, task.feasible.whitening
    standard = w.transform @ answer.v
    values = experiment.model.reduction.base(standard)
    plain = LeastSquares().fit(experiment, values)
    design, target, rest = task.compressed(experiment.information)
    mean, least = (float(np.sum((design @ base - target) ** 2)) + rest for base in (
        values, solve(experiment.information, joint_weights(experiment.information)).values))
    share = task.share(answer.weight)
    proof = certificate(task.feasible, answer, design @ task.matrix, share, (mean, least))
    status, warnings = plain.status, list(w.warnings)
    if answer.trouble:
        status = Status.NOT_SOLVED
        warnings.append(f'the conic solver: {answer.trouble}')
    else:
        warnings += _spoiled(task, answer, values)
    return FeasibleEstimate(**{
        **vars(plain), 'method': method, 'status': status, 'standard': standard,
        'warnings': (*plain.warnings, *warnings),
        'details': FeasibleDetails(float(answer.weight), proof),
        'objective': mean + share * task.prior_value(answer.v)})
