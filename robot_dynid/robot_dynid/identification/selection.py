"""Choices from the data by held-out error: cut-off, effort lag, effects, friction.

In recordings of single joints friction laws come first, joint by joint, with presliding, load and
everything else the motion of each shows; the links are then identified stage by stage with these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import CHOSEN, JointFriction, axes_of
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimator
from robot_dynid.estimation.experiment import (
    Experiment,
    Regression,
    TorqueModel,
    batch_samples,
    chunks,
    swift,
)
from robot_dynid.estimation.feasible.near_nominal import best_held_out
from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary
from robot_dynid.estimation.friction_selection.law_request import COULOMB, LawRequest
from robot_dynid.estimation.friction_selection.law_selection import (
    AxisChoice,
    LawScore,
    choose_laws,
)
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.least_squares import batch_scores, joint_weights, solve
from robot_dynid.estimation.staged.joint_effort import (
    JointFrictionData,
    joint_motions,
    single_joint_errors,
)
from robot_dynid.estimation.staged.least_squares import StagedLeastSquares
from robot_dynid.estimation.uncertainty.between_recordings import scatter_covariance
from robot_dynid.estimation.uncertainty.held_out import falls, held_out
from robot_dynid.friction import ADDITIONS, LAWS
from robot_dynid.identification.chosen_effects import choose_parts
from robot_dynid.identification.gear_effects import gear_effects
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.filters import derivative
from robot_dynid.signals.prepare import (
    CUTOFF_RATE_SHARE,
    CUTOFFS,
    OVERSAMPLING,
    Preprocessing,
    Repaired,
    prepare,
)
from robot_dynid.threads import side_by_side
from robot_dynid.types import FloatArray, Progress, Samples

#: least share of the remaining lag that an estimate is assumed to cover
LEAST_ESTIMATED_SHARE = 0.05
#: deviations from which a lag is certain
LAG_DEVIATIONS = 5.0
#: most estimates after the first; a step below this share of the deviation is the last
ESTIMATE_ROUNDS, ESTIMATE_SETTLED = 4, 0.1


def lag_of(information: Information) -> Lag:
    """Return the lag [s], the last parameter, with its deviation."""
    weights = joint_weights(information)
    solution = solve(information, weights)
    by_time, by_motion = (
        replace(batch_scores(part, weights, solution), root=solution.root[-1:])
        for part in (information, information.distinct))
    spread, _ = scatter_covariance(information, by_time, by_motion=by_motion)
    return Lag(float(solution.values[-1]), float(np.sqrt(spread[0, 0])))


def is_likely(lag: Lag) -> bool:
    """Return True if the lag exceeds its deviation; the held-out error then decides."""
    return abs(lag.seconds) > lag.std


def is_sure(lag: Lag) -> bool:
    """Return True if the lag is certain, however held-out errors scatter."""
    return abs(lag.seconds) > LAG_DEVIATIONS * lag.std


def is_same(one: Lag, other: Lag) -> bool:
    """Return True if two lags differ by less than `solve_lag` resolves."""
    return abs(one.seconds - other.seconds) < ESTIMATE_SETTLED * min(one.std, other.std)


def solve_lag(estimate: Callable[[float], Lag]) -> Lag:
    """Return the lag at which none remains; ``estimate`` returns the remainder at some lag [s].

    An estimate covers only a share of the remainder, because noise in the rate of the effort draws
    it towards zero. The share follows from how estimates fall from one to the next (secant
    method); the deviation of an estimate is that share of the deviation of the lag.
    """
    first = estimate(0.0)
    if not np.isfinite(first.std) or first.seconds == 0.0:
        return first
    previous, left, seconds = 0.0, first, first.seconds + np.copysign(first.std, first.seconds)
    share, std = 1.0, first.std
    for _ in range(ESTIMATE_ROUNDS):
        other = estimate(seconds)
        share = float(np.clip((left.seconds - other.seconds) / (seconds - previous),
                              LEAST_ESTIMATED_SHARE, 1.0))
        previous, left, std = seconds, other, other.std / share
        seconds += other.seconds / share
        if abs(seconds - previous) < ESTIMATE_SETTLED * std:
            break
    return Lag(float(seconds), float(std))


WIDTHS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
#: default ramp [rad/s, m/s] of the Coulomb friction without a recipe or model
DEFAULT_WIDTH = 0.01
#: samples per parameter, OVERSAMPLING of them for each period of the cut-off, of which a quarter
#: is independent at each joint: cut-off and decimation leave at least the first number; from the
#: second on a higher cut-off, which leaves more of them, is no better for that
SAMPLES_PER_PARAMETER, AMPLE_SAMPLES = 5.0, 20.0
#: most choices of the cut-off after the first, with the chosen friction; two have always sufficed
CUTOFF_ROUNDS = 3
#: least share by which a higher cut-off must lower the held-out error of a joint; less changes
#: from motion to motion
PASSBAND_GAIN = 0.05
#: share of the error by which held-out errors scatter, which refutes no certain lag
HELD_OUT_SCATTER = 0.01


@dataclass(frozen=True)
class Choice:
    """Choices of the pipeline, with the candidates tried: (value, held-out score).

    ``friction`` holds those for the law of every axis; it is empty if the law was prescribed.
    ``passbands`` as in `FitRecord`.
    """

    preprocessing: Preprocessing
    structure: Structure
    cutoffs: tuple[tuple[float, float], ...] = ()
    lag: Lag | None = None
    friction: tuple[AxisChoice, ...] = ()
    passbands: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Excerpt:
    """The recordings the choices are made on, and their most recently prepared samples."""

    robot: RobotModel
    recordings: Sequence[Repaired]
    _last: dict[Preprocessing, list[Samples]] = field(default_factory=dict)

    def samples(self, settings: Preprocessing) -> list[Samples]:
        """Return the recordings prepared with ``settings``; raises DataError as `prepare` does."""
        if settings not in self._last:
            self._last.clear()
            self._last[settings] = self._prepare(settings)
        return self._last[settings]

    def _prepare(self, settings: Preprocessing) -> list[Samples]:
        return [prepare(self.robot, r, settings) for r in self.recordings]

    def prepare_enough(
        self, model: TorqueModel, settings: Preprocessing
    ) -> tuple[Preprocessing, list[Samples]]:
        """Return the samples, decimated only if that leaves enough to fit ``model``."""
        samples = self._prepare(settings)
        enough = SAMPLES_PER_PARAMETER * len(model.reduction.pivots)
        if settings.decimate and sum(map(len, samples)) < enough:
            settings = replace(settings, decimate=False)
            samples = self._prepare(settings)
        return settings, samples

    def score(self, model: TorqueModel, settings: Preprocessing) -> float:
        """Return the held-out score of a model on samples prepared with ``settings``."""
        return float(self.errors(model, self.samples(settings)).mean())

    def errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the log held-out error (f,) of each fold, averaged over the joints.

        Joints and folds have equal weight, whatever their torque; the mean is the score.
        """
        return np.asarray(self.log_errors(model, samples).mean(axis=1))

    def log_errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the log held-out error (f, n) of each fold and equation.

        Each joint counts with its best fit, see `near_nominal`.
        """
        errors = best_held_out(Experiment.of(model, samples))
        return np.asarray(0.5 * np.log(np.maximum(errors, 1e-300)))

    def ramp(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the best width of the Coulomb ramp."""
        return _choose_width(self, structure, settings)

    def effects(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the parts of chosen effects that the recordings show."""
        for key in CHOSEN:
            structure = choose_parts(key, self.robot, structure, self.samples(settings))
        return structure

    def laws(
        self, structure: Structure, settings: Preprocessing, requests: Sequence[LawRequest]
    ) -> tuple[Structure, tuple[AxisChoice, ...]]:
        """Return ``structure`` with the laws requested for the axes."""
        return _choose_laws(self, structure, settings, requests)


def choose(robot: RobotModel, recordings: Sequence[Repaired], recipe: Recipe,
           progress: Progress, sweeps: Structure | None = None,
           kind: type[Excerpt] = Excerpt) -> Choice:
    """Choose everything the recipe leaves open; the same data always gives the same choice.

    The friction laws are those of ``sweeps``, if these were identified before; ``kind`` defines
    how candidates are compared. With a wrong friction law, strong smoothing looks best, and
    smoothed data determines no law; most of all at the motor of an elastic joint, whose own
    equation is mostly friction. So cut-off and lag are chosen again with the chosen law, and the
    law again, until the cut-off stays. Laws remain if the lag is the same within its uncertainty.
    """
    if sweeps is not None:
        recipe = replace(recipe, friction='coulomb')
    part = kind(robot, recordings)
    first = _first(robot, recipe)
    choice = choose_once(part, recipe, first, None, between(progress, 0.0, 0.5))
    again = recipe.cutoff is None and (choice.friction or robot.coordinates > robot.n)
    for i in range(CUTOFF_ROUNDS if again else 0):
        previous = choice
        begin, end = (0.5 + 0.3 * (i + k) / CUTOFF_ROUNDS for k in (0, 1))
        choice = choose_once(part, recipe, first, previous, between(progress, begin, end))
        if choice.preprocessing.cutoff == previous.preprocessing.cutoff:
            break
    return choice if sweeps is None else replace(choice, structure=sweeps)


def _first(robot: RobotModel, recipe: Recipe) -> Structure:
    """Return the structure that choices begin with."""
    width = recipe.ramp_width or DEFAULT_WIDTH
    return Structure.uniform(robot, recipe.rotors_of(robot), 'coulomb', {'width': width})


def between(progress: Progress, begin: float, end: float) -> Progress:
    """Return a progress that maps 0 to 1 to the range ``begin`` to ``end`` of ``progress``."""
    return lambda stage, share: progress(stage, begin + (end - begin) * share)


def choose_once(part: Excerpt, recipe: Recipe, first: Structure, previous: Choice | None,
                progress: Progress) -> Choice:
    """Choose once, cut-off and lag with the friction of the ``previous`` choice.

    The choice of friction begins with ``first``, so it is reproducible for the same samples.
    """
    best = first if previous is None else previous.structure
    scores: tuple[tuple[float, float], ...] = ()
    passbands: tuple[float, ...] = ()
    cutoff = recipe.cutoff
    if cutoff is None:
        cutoff, scores, passbands = _choose_cutoff(part, best, recipe, progress)
    settings, _ = part.prepare_enough(best.torque_model(part.robot), Preprocessing(
        cutoff, recipe.rate, recipe.effort_lag or 0.0, not first.gears,
        encoder_delays=recipe.encoder_delays_of(part.robot)))
    lag = None
    if recipe.effort_lag is None:
        progress('estimating the effort lag', 0.45)
        settings, lag = _choose_lag(part, best, settings, dict(scores).get(cutoff))
    if previous is not None:
        if settings == previous.preprocessing:
            return replace(previous, cutoffs=scores, lag=lag, passbands=passbands)
        if _is_same_choice(settings, lag, previous):
            return replace(previous, cutoffs=scores, passbands=passbands)
    structure = first
    if recipe.ramp_width is None:
        progress('choosing the Coulomb ramp', 0.5)
        structure = part.ramp(first, settings)
    progress(f'looking for {", ".join(CHOSEN)}', 0.7)
    structure = part.effects(structure, settings)
    choices: tuple[AxisChoice, ...] = ()
    requests = recipe.law_requests(part.robot)
    if any(request.law != COULOMB for request in requests):
        progress('choosing friction laws', 0.8)
        structure, choices = part.laws(structure, settings, requests)
    return Choice(settings, structure, scores, lag, choices, passbands)


def choose_gear_effects(
    robot: RobotModel, recordings: Sequence[Repaired], recipe: Recipe, choice: Choice,
    progress: Progress,
) -> Choice:
    """Return the choice with the effects of elastic gears, and a suitable cut-off.

    Gear effects other than deflection are faster than the motion: a cut-off chosen without them
    smooths them away, and samples decimated to that cut-off alias them into the motion. Omitted,
    they also appear as an effort lag and as friction, and a lag of a millisecond as half of the
    damping: so everything is chosen again with them.
    """
    part = Excerpt(robot, recordings)
    progress('looking for effects of gears', 0.8)
    settings = replace(choice.preprocessing, decimate=False)
    effects = gear_effects(robot, choice.structure, part.samples(settings))
    if not effects:
        return choice
    current = replace(choice, preprocessing=settings,
                      structure=replace(choice.structure, gears=effects))
    first = replace(_first(robot, recipe), gears=effects)
    for i in range(CUTOFF_ROUNDS):
        previous = current
        begin, end = (0.8 + 0.2 * (i + k) / CUTOFF_ROUNDS for k in (0, 1))
        current = choose_once(part, recipe, first, previous, between(progress, begin, end))
        if current.preprocessing == previous.preprocessing:
            break
        effects = gear_effects(robot, replace(current.structure, gears=()),
                               part.samples(current.preprocessing), effects)
        current = replace(current, structure=replace(current.structure, gears=effects))
        first = replace(first, gears=effects)
        if not effects:
            break
    return current


def choose_laws_by_estimator(
    estimator: Estimator, experiment: Experiment, choice: Choice, requests: Sequence[LawRequest]
) -> Choice:
    """Return the choice with the laws of friction that the ``estimator`` determines.

    Laws of axes that are prescribed, or could not be chosen, remain.
    """
    structure = choice.structure
    named = list(zip(structure.friction, structure.laws, strict=True))
    every = (*LAWS, *ADDITIONS)
    noted = [bool(one.note) for one in choice.friction] or [True] * len(named)
    without = [request.without if request.auto and not note else every
               for request, note in zip(requests, noted, strict=True)]
    laws = list(estimator.laws(experiment, named, without))
    if [name for name, _ in laws] == list(structure.friction):
        return choice
    load = None if structure.load is None else np.array(structure.load)
    return replace(choice, structure=structure.with_laws(laws, load), friction=tuple(
        one if one.law == name else replace(one, law=name, tried=(
            *one.tried, LawScore(name, one.error_over_coulomb)))
        for one, (name, _) in zip(choice.friction, laws, strict=True)))


def _is_same_choice(settings: Preprocessing, lag: Lag | None, previous: Choice) -> bool:
    """Return True if settings differ from the ``previous`` ones only by a similar lag."""
    other = previous.preprocessing
    return (lag is not None and previous.lag is not None and is_same(lag, previous.lag)
            and 0.0 not in (settings.effort_lag, other.effort_lag)
            and replace(settings, effort_lag=other.effort_lag) == other)


def _choose_cutoff(
    part: Excerpt, structure: Structure, recipe: Recipe, progress: Progress
) -> tuple[float, tuple[tuple[float, float], ...], tuple[float, ...]]:
    """Return the cut-off, see `best_cutoff`, the scores of all tried ones, and the passbands."""
    model = structure.torque_model(part.robot)
    highest = CUTOFF_RATE_SHARE / max(r.step for r in part.recordings)
    candidates = [c for c in CUTOFFS if c <= highest] or [highest]

    def errors(cutoff: float) -> tuple[float, FloatArray] | DataError:
        try:
            _, samples = part.prepare_enough(model, Preprocessing(
                cutoff, decimate=not structure.gears,
                encoder_delays=recipe.encoder_delays_of(part.robot)))
            seconds = sum(len(s) * float(s.time[1] - s.time[0]) for s in samples if len(s) > 1)
            return (OVERSAMPLING * cutoff * seconds / len(model.reduction.pivots),
                    part.log_errors(model, samples))
        except DataError as error:
            return error

    tried: dict[float, tuple[float, FloatArray]] = {}
    problem = DataError('no cut-off frequency can be tried on this data')
    for i, (cutoff, outcome) in enumerate(zip(
            candidates, side_by_side(errors, candidates), strict=True), start=1):
        progress(f'tried a cut-off of {cutoff:g} Hz', 0.05 + 0.4 * i / len(candidates))
        if isinstance(outcome, DataError):
            problem = outcome
        else:
            tried[cutoff] = outcome
    if not tried:
        raise problem
    best = best_cutoff({cutoff: (count, errors.mean(axis=1))
                        for cutoff, (count, errors) in tried.items()})
    by_joint = {cutoff: np.exp(2.0 * errors) for cutoff, (_, errors) in tried.items()}
    by_equation = by_joint[best].shape[1] == part.robot.rows  # not joint after joint
    return best, tuple((cutoff, float(errors.mean())) for cutoff, (_, errors) in tried.items()), \
        choose_passbands(by_joint, best) if by_equation else ()


def best_cutoff(tried: Mapping[float, tuple[float, FloatArray]]) -> float:
    """Return the cut-off [Hz] of the best score; if samples are scarce, the highest of equal ones.

    ``tried`` are samples per parameter, OVERSAMPLING for each period of the cut-off, and (f,)
    `Excerpt.errors`. A cut-off that leaves SAMPLES_PER_PARAMETER is preferred to any that leaves
    fewer, and one with fewer than AMPLE_SAMPLES must beat all higher ones by a standard error.
    """
    largest = max(samples for samples, _ in tried.values())
    errors = {cutoff: one for cutoff, (samples, one) in tried.items()
              if samples >= min(SAMPLES_PER_PARAMETER, largest)}
    best = min(errors, key=lambda cutoff: float(errors[cutoff].mean()))
    if tried[best][0] >= AMPLE_SAMPLES:
        return best
    return max([best, *(
        cutoff for cutoff, one in errors.items() if cutoff > best
        and one.mean() < errors[best].mean() + _standard_error(one, errors[best]))])


def choose_passbands(errors: Mapping[float, FloatArray], common: float) -> tuple[float, ...]:
    """Return the cut-off [Hz] at which the effort of each joint is predicted; empty: ``common``.

    ``errors`` (f, n) are squared held-out errors of folds by cut-off. A light wrist follows motion
    that is noise to the joints before it. A cut-off above the common one must lower the error of a
    joint by PASSBAND_GAIN, in most folds, and on average by more than the standard error of the
    difference.
    """
    reference = errors[common]
    chosen = np.full(reference.shape[1], common)
    lowest = (1.0 - PASSBAND_GAIN)**2 * reference.mean(axis=0)
    for cutoff, one in errors.items():
        if cutoff <= common or len(one) != len(reference):
            continue
        for j in np.flatnonzero(one.mean(axis=0) < lowest):
            if falls(one[:, j], reference[:, j]):
                chosen[j], lowest[j] = cutoff, one[:, j].mean()
    return tuple(chosen.tolist()) if np.any(chosen > common) else ()


def _standard_error(errors: FloatArray, others: FloatArray) -> float:
    """Return the standard error of the difference of two scores, from their parts (k,).

    The same fold is hard or easy for both, so differences count; zero without two folds to
    compare.
    """
    if len(errors) != len(others) or len(errors) < 2:
        return 0.0
    return float(np.std(errors - others, ddof=1) / np.sqrt(len(errors)))


def _choose_lag(
    part: Excerpt, structure: Structure, settings: Preprocessing, without: float | None
) -> tuple[Preprocessing, Lag]:
    """Choose the effort lag; ``without`` is the score at zero lag, if known."""
    model = structure.torque_model(part.robot)
    lag = solve_lag(lambda late: effort_lag(
        model, part.samples(replace(settings, effort_lag=late))))
    if not is_likely(lag):
        return settings, lag
    shifted = replace(settings, effort_lag=lag.seconds)
    without = part.score(model, settings) if without is None else without
    with_lag = part.score(model, shifted)
    worst = without + (HELD_OUT_SCATTER if is_sure(lag) else 0.0)
    return (shifted if with_lag < worst else settings), lag


def effort_lag(model: TorqueModel, recordings: Sequence[Samples]) -> Lag:
    """Estimate the delay of the effort behind the motion.

    A late effort is ``y(t - lag) = y - lag dy/dt`` to first order, so the lag is one more linear
    parameter, shared by all joints, with its own standard deviation. The effort of position servos
    is ``gain (c(t - lag) - q)``: of these only the command c is late. Rows of a joint near its
    reversals are excluded: while a joint sticks, its friction changes ahead of the velocity, which
    looks like a lag.
    """
    names = (*model.reduction.names, 'effort_lag')
    structure = np.hstack([model.structure, np.ones((model.robot.rows, 1), dtype=bool)])
    accumulator: Accumulator | None = None
    for samples in recordings:
        assert samples.effort is not None and samples.measured is not None
        accumulator = accumulator or Accumulator(
            names, structure, batch_samples(samples), sum(map(len, recordings)))
        accumulator.begin(samples)
        change = samples.at_stamps(_change_by_lag(model.robot, samples))
        regression = Regression(model, samples)
        far = swift(model.robot, samples)
        for rows in chunks(samples):
            used = far[rows].T
            late = np.concatenate([regression.columns(rows), change[rows].T[:, None, :]], axis=1)
            late *= used[:, None, :]
            effort, measured = (y[rows] * used.T for y in (samples.effort, samples.measured))
            accumulator.add(late, effort, measured)
    assert accumulator is not None
    return lag_of(accumulator.information())


def _change_by_lag(robot: RobotModel, samples: Samples) -> FloatArray:
    """Return the change (N, rows) [N m/s] of the effort by a lag, which is not corrected."""
    command, effort = samples.reference_position, samples.gridded.effort
    if robot.drive.kind == POSITION_ERROR and command is not None:
        return _rate(samples, command * robot.torque_factors)
    assert effort is not None
    return -_rate(samples, effort)


def _rate(samples: Samples, values: FloatArray) -> FloatArray:
    """Return the derivative (N, rows) [N m/s] of ``values`` at the times of uniform samples."""
    rate = np.zeros_like(values)
    for segment in samples.segments:
        if segment.stop - segment.start > 1:
            step = float(samples.time[segment.start + 1] - samples.time[segment.start])
            rate[segment] = derivative(values[segment], step)
    return rate


def _choose_width(part: Excerpt, structure: Structure, settings: Preprocessing) -> Structure:
    """Choose one ramp for all axes, because single axes would follow the noise of reversals.

    The equations are reduced once, with the columns of all ramps.
    """
    candidates = [replace(Structure.uniform(
        part.robot, structure.rotor_inertia, structure.friction[0], {'width': width}),
        gears=structure.gears) for width in WIDTHS]
    links, axes = frictionless(part.robot, structure), axes_of(part.robot)
    ramps = [Dictionary(laws) for laws in zip(*(c.laws for c in candidates), strict=True)]
    model = TorqueModel.of(links.robot, (*links.blocks, JointFriction(axes, tuple(ramps))))
    information = Experiment.of(model, part.samples(settings)).information
    names = np.array(information.names)

    def columns(candidate: Structure) -> NDArray[np.int64]:
        left_out = {f'{p.name}{label}' for label, ramp, law in zip(
            axes.labels, ramps, candidate.laws, strict=True)
            for i, p in enumerate(ramp.table) if i not in ramp.place(law)}
        return np.flatnonzero([name not in left_out for name in names])

    scores = [held_out(information.about(columns(c))).score for c in candidates]
    return candidates[int(np.argmin(scores))]


def frictionless(robot: RobotModel, structure: Structure) -> TorqueModel:
    """Return the model without friction."""
    model = structure.torque_model(robot)
    return TorqueModel.of(model.robot, model.blocks[:-1])


def _choose_laws(
    part: Excerpt, structure: Structure, settings: Preprocessing,
    requests: Sequence[LawRequest],
) -> tuple[Structure, tuple[AxisChoice, ...]]:
    """Return the structure with the law of every axis, starting from those of ``structure``."""
    data = FrictionData(frictionless(part.robot, structure), axes_of(part.robot),
                        part.samples(settings))
    loads = part.robot.drive.kind != 'gravity_compensated_torque'
    laws, choices, load = choose_laws(data, requests, structure.laws, loads)
    return structure.with_laws(laws, load), choices


class SingleJointExcerpt(Excerpt):
    """Recordings in which one joint moves at a time."""

    def log_errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the log held-out error (n, 1) of each joint while it moves."""
        return single_joint_errors(model, samples)[:, None]

    def ramp(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the best width of the Coulomb ramp."""
        candidates = [Structure.uniform(self.robot, structure.rotor_inertia, structure.friction[0],
                                        {'width': width}) for width in WIDTHS]
        return min(candidates,
                   key=lambda one: self.score(one.torque_model(self.robot), settings))

    def effects(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure``: a single joint does not separate springs from gravity."""
        return structure

    def laws(
        self, structure: Structure, settings: Preprocessing, requests: Sequence[LawRequest]
    ) -> tuple[Structure, tuple[AxisChoice, ...]]:
        """Return ``structure`` with the law of every joint, from its own motion.

        Motors that turn with several joints keep their laws, and so do their joints.
        """
        robot, samples = self.robot, self.samples(settings)
        if robot.drive.coupling is not None:
            return structure, ()
        loading = self._loading(structure, samples) \
            if robot.drive.kind != 'gravity_compensated_torque' else None
        model = frictionless(robot, structure)
        laws = list(zip(structure.friction, structure.laws, strict=True))
        choices: list[AxisChoice] = []
        for motion in joint_motions(robot, samples):
            j = motion.joint
            (law,), own_choices, _ = choose_laws(
                JointFrictionData.of(model, motion, loading), requests[j:j + 1],
                structure.laws[j:j + 1], loading is not None)
            laws[j] = law
            choices += own_choices
        return structure.with_laws(laws, loading), tuple(choices)

    def _loading(
        self, structure: Structure, samples: Sequence[Samples]
    ) -> FloatArray:
        """Return the links (n, 10) that load the joints, identified with ``structure``.

        Raises DataError naming a joint that never moves alone.
        """
        model = structure.torque_model(self.robot)
        values = StagedLeastSquares().fit(Experiment.of(model, list(samples))).values
        standard = model.reduction.standard_values(values)
        return standard[:10 * self.robot.tree.n].reshape(-1, 10)
