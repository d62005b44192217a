"""Standard parameters that a real robot can have: all links at once, from the information alone.

``J = mean squared weighted residual + weight * mean over the links of the prior``, subject to
every link a body, friction and rotors not below zero, and bounds. Residuals are weighted by the
noise of each joint, so their mean is about one and the weight means the same for every robot.
Where unconstrained least squares is feasible already, its base parameters are kept and the prior
chooses only among the standard parameters that make the same effort.
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
from robot_dynid.estimation.feasible.bounds import Bounds, limits_of, read_bounds, with_collision
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

#: weights of the prior that cross-validation chooses from, the largest first
WEIGHTS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: the largest weight is taken at which no joint's held-out error exceeds its least by this share
TOLERATED_EXCESS = 0.01
#: weight without held-out data to choose it by
UNCHOSEN = 1e-2
#: weight that stands for zero where least squares is not feasible, and some prior has to be
ZERO_WEIGHT = 1e-6
#: weight in the prior of an offset of the effort that the motion does not tell from weight: it is
#: zero, as offsets are small and links may be far from their description
NO_OFFSET = 1e6
#: a joint counts as known no better than to this share of its effort
BEST_KNOWN = 1e-3
#: gap, relative to the objective, that a solution of reduced accuracy may have
WIDEST_GAP = 1e-4
#: share by which no joint's residual may exceed that of least squares, but for constraints
MOST_RISE = 0.05
#: share of the way to the nominal robot by which rounding of the solver may be repaired
FARTHEST = 1e-5


#: returns the answer for a weight of the prior
Fitter = Callable[[float], Answer]


@dataclass(frozen=True)
class FeasibleDetails(Details):
    """``prior_weight``, 0 where least squares was feasible, and the ``certificate``."""

    prior_weight: float = 0.0
    certificate: Certificate = field(default_factory=Certificate)

    @property
    def from_prior(self) -> tuple[str, ...]:
        """Standard parameters that the prior decided rather than the data."""
        return self.certificate.from_prior

    @property
    def prior_share(self) -> Mapping[str, float]:
        """Share of its prior variance that the data left to each standard parameter."""
        return self.certificate.prior_share

    @property
    def active_constraints(self) -> tuple[str, ...]:
        """Constraints that hold with equality, in words."""
        return self.certificate.active


@dataclass(frozen=True, eq=False, kw_only=True)
class FeasibleEstimate(Estimate):
    """An estimate that is a real robot's.

    ``standard`` (p,) standard parameters, ``values = K standard``; ``objective`` the mean squared
    weighted residual plus prior. The covariance is that of least squares with the residuals of the
    feasible fit: constraints and prior only narrow it.
    """

    standard: FloatArray
    details: FeasibleDetails
    objective: float

    @property
    def prior_weight(self) -> float:
        """The weight of the prior, 0 where least squares was feasible."""
        return self.details.prior_weight

    @property
    def certificate(self) -> Certificate:
        """The evidence that the parameters are feasible and optimal."""
        return self.details.certificate


@dataclass(frozen=True, eq=False)
class Task:
    """The problem to solve: the information of ``experiment``, the feasible set, and the prior.

    ``joint_weights`` (n,) [1 / (N m)].
    """

    experiment: Experiment
    feasible: FeasibleSet
    prior: str
    joint_weights: FloatArray

    @classmethod
    def of(
        cls, experiment: Experiment, prior: str, bounds: Bounds, fitted: Information | None = None
    ) -> Task:
        """Prepare the fit to the information ``fitted``, by default that of the ``experiment``.

        Raises UsageError when bounds contradict each other or name no link.
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
        """Return design (r, b), target (r,) and what no parameter explains.

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
        """Return the share (n,) by which ``values`` (b,) raise the residual of least squares.

        Root mean square, of each joint; what is less than BEST_KNOWN of its effort is rounding.
        """
        information = self.experiment.information
        least = solve(information, joint_weights(information)).values
        rounding = BEST_KNOWN * information.size(FILTERED)
        before, after = (np.maximum(np.sqrt(information.residual_energy(
            found, FILTERED) / information.samples), rounding) for found in (least, values))
        return np.asarray(after / np.maximum(before, 1e-300) - 1.0)


def open_offsets(experiment: Experiment) -> tuple[str, ...]:
    """Return the offsets of efforts (f02) that the motion does not tell from weight.

    Those of joints with a counterbalance are not among them: a preload is an offset.
    """
    preloads = {f'f0{spring.joint + 1}' for block in experiment.model.blocks
                if isinstance(block, ChosenEffect) and block.like_weight
                for spring in block.parts}
    return tuple(name for name in left_open(experiment)
                 if name.startswith('f0') and name not in preloads)


def least_squares(task: Task, information: Information) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal E (r, p), e (r,): all v that predict as least squares have E v = e."""
    weights = joint_weights(information)
    found = solve(information, weights)
    white = weighted_factor(information, weights)[:, :-1]
    rows = (white @ found.root).T @ white
    return excited(rows @ task.matrix, rows @ found.values)


def excited(design: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal E (r, p), e (r,) of all least-squares solutions of D v = t.

    D is ``design`` (m, p), t ``target`` (m,).
    """
    u, s, vt = np.linalg.svd(design, full_matrices=False)
    kept = s > RANK_TOLERANCE * s.max(initial=0.0)
    return vt[kept], (u[:, kept].T @ target) / s[kept]


PRIOR_WEIGHT = NumberRange(0.0, 1e12)


@dataclass(frozen=True)
class Feasible(Estimator):
    """All links at once, as the problem is stated."""

    prior: str = setting('entropic', tuple(PRIORS),
                         f'distance to the nominal links: {" or ".join(PRIORS)}')
    prior_weight: float | None = setting(
        None, PRIOR_WEIGHT, 'weight of the prior; cross-validated unless given')
    bounds: Bounds = setting(Bounds, read_bounds, 'bounds of masses, centres and shapes of links, '
                             'see docs/feasible.md')
    name = 'feasible'
    summary = 'parameters of bodies that can exist, all links at once'
    details_type = FeasibleDetails
    physically_feasible = True
    fits_information = True
    open_parameters = 'what the data leaves open is near the nominal robot'

    def for_robot(self, robot: RobotModel) -> Feasible:
        """Return it with the ellipsoids that its bounds take from the collision primitives.

        Raises UsageError for bounds of links that do not exist, or that contradict each other.
        """
        bounds = with_collision(self.bounds, robot)
        limits_of(bounds, robot, 10 * robot.tree.n)
        return replace(self, bounds=bounds)

    def fit(self, experiment: Experiment) -> FeasibleEstimate:
        """Estimate; numerical trouble is in the status.

        Raises UsageError when bounds contradict each other, MissingDependency without Clarabel.
        """
        task = Task.of(experiment, self.prior, self.bounds)
        information, weight = experiment.information, self.prior_weight
        sprung = any(isinstance(block, ChosenEffect) and block.like_weight
                     for block in experiment.model.blocks)
        answer = None if weight or sprung else self.unconstrained(task, information)
        if answer is None or np.any(task.rise(task.base(answer.v)) > MOST_RISE):
            fit = self.fitter(task, information)
            answer = fit(max(weight, ZERO_WEIGHT)) if weight is not None else unspoiled(
                task, fit, cross_validated(task, self.fitter))
        return finished(task, answer, self.name)

    def fit_to_batches(self, experiment: Experiment, estimate: Estimate) -> FitToBatches | None:
        """Return the fit with the prior weight of ``estimate``; None where that is zero."""
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
        """Return the point nearest to the prior that predicts as least squares does, if any."""
        found = task.whole.nearest(least_squares(task, information))
        if not found.usable or not task.feasible.holds(found.values):
            return None
        return Answer(task.feasible.clipped(found.values), 0.0, found.gap)

    def fitter(self, task: Task, information: Information) -> Fitter:
        """Return the optimum as a function of the prior's weight."""
        base, target, rest = task.compressed(information)
        design = base @ task.matrix

        def fit(weight: float) -> Answer:
            found = task.whole.minimise(design, target, task.share(weight))
            residual = design @ found.values - target
            objective = float(residual @ residual) + rest
            gap = task.share(weight) * abs(found.primal - found.dual) / max(objective, 1e-300)
            doubtful = [] if found.outcome is Outcome.SOLVED else [found]
            return checked(task.feasible, found.values, doubtful, weight, gap)

        return fit


def checked(
    feasible: FeasibleSet, start: FloatArray, doubtful: Sequence[Solution], weight: float,
    gap: float,
) -> Answer:
    """Return a feasible answer whatever the solver says; ``trouble`` says what was wrong.

    ``start`` is the point v (p,), ``doubtful`` the solutions that are less than solved, ``gap``
    that relative to the objective. A point that is not feasible is drawn towards the nominal
    robot until it is.
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
        troubles.append('the constraints are not kept')
    return Answer(feasible.clipped(v), weight, gap, '; '.join(dict.fromkeys(troubles)))


def cross_validated(
    task: Task, fitter: Callable[[Task, Information], Fitter]
) -> float:
    """Return the largest weight that predicts held-out stretches about as well as any, per joint.

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


def unspoiled(task: Task, fit: Fitter, weight: float) -> Answer:
    """Return the answer of the largest weight up to ``weight`` whose prior leaves residuals alone.

    It may raise that of no joint by more than MOST_RISE beyond what the constraints do, which
    those of the least weight show.
    """
    least = fit(WEIGHTS[-1])
    allowed = np.maximum(task.rise(task.base(least.v)), 0.0)
    for one in WEIGHTS[WEIGHTS.index(weight):-1]:
        answer = fit(one)
        rise = task.rise(task.base(answer.v))
        if np.all(1.0 + rise <= (1.0 + MOST_RISE) * (1.0 + allowed)):
            break
    else:
        answer = least
    return replace(answer, binding=active_constraints(
        task.feasible, least.v, BINDING))


def _spoiled(task: Task, answer: Answer, values: FloatArray) -> list[str]:
    """Return a warning of the joints whose residual is far above that of least squares, if any."""
    rise = task.rise(values)
    rows = [f'{name} {100.0 * share:.0f}' for name, share in zip(
        task.experiment.model.robot.row_names, rise, strict=True) if share > MOST_RISE]
    if not rows:
        return []
    binding = answer.binding or active_constraints(
        task.feasible, answer.v, BINDING)
    cause = f'no body has its parameters, what binds is {", ".join(binding)}' if binding else \
        f'the prior of weight {answer.weight:g} decides; give it a smaller prior_weight'
    return [f'residuals are above those of least squares by [%]: {", ".join(rows)}: {cause}']


def finished(task: Task, answer: Answer, method: str) -> FeasibleEstimate:
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
