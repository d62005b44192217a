"""Fit by simulation error: simulated motions under the measured effort follow the measured ones.

Least squares compares efforts of one instant. Noise of the encoders is in its regressor, as
accelerations above all, and in closed loop also in the effort, by way of the controller. A
simulation integrates: noise of an instant is not in it, and what the parameters do over an
interval shows in the positions. Its own weakness are disturbances of the arm, which integrate,
too. So data left out decide between this fit and least squares, by rollouts of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dynid.document import Row, Table, number
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.estimation.estimate import Details, Estimate, Estimator, student_quantile
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.simultaneous import (
    ZERO_WEIGHT,
    Feasible,
    FeasibleEstimate,
    Task,
)
from robot_dynid.estimation.information import EXTRA, FILTERED, RAW, Batch, Information
from robot_dynid.estimation.least_squares import (
    LeastSquares,
    batch_covariance,
    estimate_of,
    joint_weights,
    solve,
)
from robot_dynid.estimation.uncertainty.between_recordings import stretches
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.arm import ArmModel
from robot_dynid_extras.trajectory.intervals import (
    Intervals,
    intervals_of,
)
from robot_dynid_extras.trajectory.multiple_shooting import (
    Condensed,
    EquationError,
    MultipleShooting,
    Shot,
)
from robot_dynid_extras.trajectory.simulation import SHORTEST, interval_length

#: one-sided levels at which a fit has to be better than its start: over several recordings, and
#: over one, whose stretches show the same motion; and by how much it has to be at least
LEVEL, LEVEL_OF_ONE, LEAST_GAIN = 0.99, 0.999, 0.01


def rollout_errors(
    mechanism: Mechanism, states: FloatArray, effort: FloatArray, step: float
) -> FloatArray:
    """Return the mean squared errors (K, 2 n) of rollouts, NaN where one stops.

    ``states`` (K, m + 1, 2 n) measured positions and velocities: rollouts begin at the first and
    are compared with the others; ``effort`` (K, m, n) [N m] held for ``step`` [s] each.
    """
    integrate = Integrator(mechanism.robot, mechanism.links, mechanism.rotors, mechanism.friction)
    n = states.shape[2] // 2
    position, velocity = integrate(states[:, 0, :n], states[:, 0, n:], effort, step)
    off = np.concatenate([position, velocity], axis=2) - states[:, 1:]
    return np.asarray(np.mean(off**2, axis=1))


def interval_rollouts(intervals: Intervals, mechanism: Mechanism) -> FloatArray:
    """Return the mean squared errors (K, 2 n) of rollouts from the measured initial states.

    The effort that is held over a step is that of its middle.
    """
    around = intervals.effort
    middle = (9.0 * (around[:, 1:-2] + around[:, 2:-1]) - around[:, :-3] - around[:, 3:]) / 16.0
    return rollout_errors(mechanism, intervals.states, middle, intervals.step)


def level_of(intervals: Sequence[Intervals]) -> float:
    """Return the level at which a fit to intervals has to be better than its start."""
    return LEVEL if len({one.recording for one in intervals}) > 1 else LEVEL_OF_ONE


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rollouts of a fit beside those of its start, on stretches left out of the fit in turn.

    ``start`` and ``fit`` (2 n,) root mean square errors; ``gain`` the mean logarithm of their
    ratio over channels and stretches, above zero where the fit is better, sure to ``margin``.
    """

    start: FloatArray
    fit: FloatArray
    gain: float
    margin: float

    @property
    def better(self) -> bool:
        """Whether the fit is surely better, and by more than steps of integration err."""
        return self.gain > max(self.margin, LEAST_GAIN)

    @classmethod
    def of(
        cls, start: list[FloatArray], fit: list[FloatArray], level: float = LEVEL
    ) -> Comparison:
        """Compare mean squared errors (K, 2 n) of the same rollouts, stretch by stretch.

        ``level`` is that of the margin. A fit of which more rollouts stop is never better.
        """
        both = [np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
                for a, b in zip(start, fit, strict=True)]
        more = any(np.isfinite(a[~known]).all(axis=1).any()
                   for a, known in zip(start, both, strict=True))
        means = np.array([[a[known].mean(axis=0), b[known].mean(axis=0)] for a, b, known in zip(
            start, fit, both, strict=True) if known.any()])
        count = len(means)
        if count < 2:
            nothing = np.full(start[0].shape[1], np.nan)
            return cls(nothing, nothing, 0.0, np.inf)
        gains = 0.5 * np.mean(np.log(means[:, 0] / means[:, 1]), axis=1)
        margin = float(student_quantile(level, count - 1) * np.std(gains, ddof=1) / np.sqrt(count))
        overall = np.sqrt(means.mean(axis=0))
        return cls(overall[0], overall[1], float(gains.mean()), np.inf if more else margin)


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
        return cls(definite.arm, definite.poses, experiment, max(found.prior_weight, ZERO_WEIGHT))

    def target(self, information: Information, values: FloatArray) -> FloatArray:
        """Return the base parameters (b,) of the best bodies."""
        return np.asarray(self.arm.torque.reduction.base(self.standard(information, values)))

    def standard(self, information: Information, values: FloatArray) -> FloatArray:
        """Return the standard parameters (p,) of the best bodies."""
        whole = replace(information, batches=tuple(
            _shifted(batch, values) for batch in information.batches))
        feasible = Feasible()
        task = Task.of(self.experiment, feasible.prior, feasible.bounds, whole)
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


#: weights of the equations beside the simulation, one after the other
WEIGHTS = (1.0, 0.1, 0.0)
#: intervals at most; evenly spaced ones of long recordings
INTERVALS = 2000
INDEFINITE = ('the mass matrix of least squares is not positive definite, so that nothing can be '
              'simulated with it: the fit starts from the method feasible')


@dataclass(frozen=True, eq=False)
class TrajectoryDetails(Details):
    """The method ``start`` gave the first parameters.

    ``intervals`` of ``seconds`` each, in which deviations grow to ``growth`` times themselves;
    ``rounds`` of the fit; whether initial states were ``free``; the ``weight`` of the equations of
    least squares beside the simulation. ``error_of_start`` and
    ``error_of_fit`` (2 n,) are the root mean square errors of position and velocity in rollouts of
    that length on stretches left out; ``gain`` is the mean logarithm of their ratio, sure to
    ``margin``; ``kept`` says whether the fit was.
    """

    start: str
    intervals: int = 0
    seconds: float = 0.0
    growth: float = 0.0
    rounds: int = 0
    free: bool = False
    weight: float = 0.0
    error_of_start: FloatArray = field(default_factory=lambda: np.empty(0))
    error_of_fit: FloatArray = field(default_factory=lambda: np.empty(0))
    gain: float = 0.0
    margin: float = 0.0
    kept: bool = False

    def sentence(self, rows: Sequence[str]) -> str:
        """Return length and number of the intervals, and how rollouts compare."""
        if not self.intervals:
            return 'no stretch of the recordings could be simulated: the start is kept'
        share = 100.0 * (1.0 - float(np.exp(-self.gain)))
        word = 'lower' if share >= 0.0 else 'higher'
        verdict = 'kept' if self.kept else 'not sure, the parameters of the start are kept'
        states = 'free' if self.free else 'as measured'
        return (f'{self.intervals} intervals of {number(self.seconds, 3)} s, initial states '
                f'{states}, {self.rounds} rounds from {self.start}, equation error weighted by '
                f'{number(self.weight)}; errors of rollouts on '
                f'stretches left out are {number(abs(share), 3)} % {word} than with the start: '
                f'{verdict}')

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return the errors of rollouts of every joint."""
        if not self.intervals:
            return ()
        n = len(self.error_of_start) // 2
        cells = tuple(Row((name, *(number(1e3 * float(v)) for v in (
            self.error_of_start[j], self.error_of_fit[j], self.error_of_start[n + j],
            self.error_of_fit[n + j]))))
            for j, name in enumerate(rows[:n]))
        return (Table(
            ('joint', 'position, start', 'position, fit', 'velocity, start', 'velocity, fit'),
            cells, f'Rollouts of {number(self.seconds, 3)} s on stretches left out, errors '
            '[mrad, mrad/s; mm, mm/s]'),)


@dataclass(frozen=True)
class TrajectoryFit(Estimator):
    """Parameters by multiple shooting from those of ``start``, or these where that is no gain.

    The fit is taken where rollouts of stretches left out in turn are surely better than with the
    start. Where the mass matrix of least squares is not positive definite nothing can be
    simulated with it, and feasible parameters are the start. From feasible ones the fit goes to
    feasible ones only. Sources: see `multiple_shooting`.
    """

    start: str = setting('wls', tuple(STARTS), 'method whose parameters the fit starts from: '
                         f'{" or ".join(STARTS)}')
    name = 'trajectory'
    summary = 'fit of simulated to measured motion; least squares unless that is better'
    details_type = TrajectoryDetails

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters.

        Raises UsageError where joints are elastic, DataError when recordings cannot be read
        again.
        """
        arm = ArmModel(experiment.model)
        starter, warnings = STARTS[self.start], tuple[str, ...]()
        start = starter.fit(experiment)
        rules = rules_of(start, experiment)
        if not rules.allowed(start.values):
            starter = STARTS['feasible']
            start = starter.fit(experiment)
            rules = rules_of(start, experiment)
            warnings = (INDEFINITE,)
        start = replace(start, method=self.name, warnings=(*start.warnings, *warnings))
        seconds, growth = interval_length(arm, experiment, start.values)
        intervals = tuple(intervals_of(arm, experiment, seconds, INTERVALS))
        if not intervals:
            return _kept(start, TrajectoryDetails(starter.name), 'no stretch of the recordings is '
                         f'as long as the {SHORTEST:g} s of the shortest interval')
        fit, found = _best(experiment, (starter.name, start.values),
                           MultipleShooting(arm, intervals, free=False), rules)
        details = TrajectoryDetails(
            starter.name, fit.shooting.count, seconds, growth, fit.rounds, fit.shooting.free,
            fit.beside.weight, found.start, found.fit, found.gain, found.margin, found.better)
        if not found.better:
            return _kept(start, details, 'rollouts of stretches left out are not surely better '
                         'with the fit by simulation error than with its start')
        return _estimate(experiment, start, (fit, rules), details)


def _kept(start: Estimate, details: TrajectoryDetails, why: str) -> Estimate:
    """Return the start, with the reason."""
    return replace(start, details=details, warnings=(
        *start.warnings, f'{why}: the parameters of the method {details.start} are kept'))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit: its intervals, where it ended, the equations there, and the ``rounds`` it took."""

    shooting: MultipleShooting
    shot: Shot
    condensed: Condensed
    beside: EquationError
    rounds: int = 0

    def settled(self, rules: Definite) -> Fitted:
        """Return the end of the steps of Gauss and Newton from here."""
        shot, condensed, rounds = self.shooting.fit(
            self.shot, self.condensed, rules, self.beside)
        return replace(self, shot=shot, condensed=condensed, rounds=self.rounds + rounds)

    def weighted(self, weight: float) -> Fitted:
        """Return it with another weight of the equations."""
        return replace(self, beside=replace(self.beside, weight=weight))

    def freed(self) -> Fitted:
        """Return it with free initial states, linearised anew."""
        shooting = replace(self.shooting, free=True)
        return replace(self, shooting=shooting, condensed=shooting.condensed(self.shot))

    @property
    def information(self) -> Information:
        """The equations of the step from here."""
        return self.beside.joined(self.condensed.information, self.shot.values)

    @property
    def groups(self) -> list[list[int]]:
        """The batches of stretches to be left out in turn."""
        return stretches(len(self.condensed.members))

    def rollouts(self, rules: Definite) -> list[FloatArray]:
        """Return the errors (K, 2 n) of rollouts of stretches with a fit without each."""
        information, found = self.information, []
        for group in self.groups:
            rest = [i for i in range(len(information.batches)) if i not in group]
            values = rules.target(information.subset(rest), self.shot.values)
            found.append(self.errors(group, values))
        return found

    def errors(self, group: Sequence[int], values: FloatArray) -> FloatArray:
        """Return the mean squared errors (K, 2 n) of rollouts of batches with ``values`` (b,)."""
        mechanism = self.shooting.arm.with_values(values).mechanism
        chosen, found = [self.condensed.members[i] for i in group], []
        for place, intervals in enumerate(self.shooting.intervals):
            rows = [own for number, own in chosen if number == place]
            if rows:
                part = intervals.part(slice(rows[0].start, rows[-1].stop))
                found.append(interval_rollouts(part, mechanism))
        return np.concatenate(found)


def _best(
    experiment: Experiment, start: tuple[str, FloatArray], shooting: MultipleShooting,
    rules: Definite,
) -> tuple[Fitted, Comparison]:
    """Return the fit whose rollouts of stretches left out are best, and those beside the start's.

    The weight of the equations falls while rollouts get better for it; where they have got better
    than the start's, free initial states are tried.
    """
    shot = shooting.begin(start[1])
    condensed = shooting.condensed(shot)
    beside = EquationError.of(experiment.information, shooting, condensed)
    fit = Fitted(shooting, shot, condensed, beside)
    before = [fit.errors(group, values_of(start[0], replace(
        experiment, information=experiment.information.subset(beside.outside(group)))))
        for group in fit.groups]

    def judged(of: Fitted) -> tuple[Fitted, Comparison]:
        return of, Comparison.of(before, of.rollouts(rules), level_of(shooting.intervals))

    best = judged(fit.weighted(WEIGHTS[0]).settled(rules))
    if best[1].gain < LEAST_GAIN:
        return best
    for weight in WEIGHTS[1:]:
        here = judged(best[0].weighted(weight).settled(rules))
        if here[1].gain < best[1].gain + LEAST_GAIN:
            break
        best = here
    free = judged(best[0].freed())
    if free[1].gain > best[1].gain + LEAST_GAIN:
        best = judged(free[0].settled(rules))
    return best


def _estimate(experiment: Experiment, start: Estimate, of: tuple[Fitted, Definite],
              details: TrajectoryDetails) -> Estimate:
    """Return the estimate of a fit, its covariance by leaving out stretches."""
    (fit, rules), ones = of, np.ones(1)
    information, values = fit.information, fit.shot.values
    last = solve(information, ones)
    spread = batch_covariance(information, ones, last)
    standard = None
    if isinstance(rules, Bodies):
        standard = rules.standard(information, values)
        values = experiment.model.reduction.base(standard)
    found = estimate_of(experiment, replace(last, values=values), spread, start.method)
    return replace(found, details=details, standard=standard, warnings=start.warnings)


TRAJECTORY = TrajectoryFit()
