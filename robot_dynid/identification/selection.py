"""Choices from the data by held-out error: cut-off, lag of the effort, effects, friction.

In recordings of single joints friction laws come first, joint by joint, with presliding, load and
whatever else the motion of each shows; the links are then identified stage by stage with these.
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
from robot_dynid.estimation.staged.least_squares import StagedLeastSquares
from robot_dynid.estimation.staged.own_effort import OwnFrictionData, own_errors, own_motions
from robot_dynid.estimation.uncertainty.between_recordings import scatter_covariance
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.friction import ADDITIONS, LAWS
from robot_dynid.identification.chosen_effects import with_parts
from robot_dynid.identification.gear_effects import gear_effects
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
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

#: least share of what is left that an estimate is taken to find
LEAST_ESTIMATED_SHARE = 0.05
#: deviations from which on a lag is sure
LAG_DEVIATIONS = 5.0
#: estimates after the first; a step below this share of the deviation is the last
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


def likely(lag: Lag) -> bool:
    """Return whether the lag exceeds its deviation: held-out error decides about it then."""
    return abs(lag.seconds) > lag.std


def sure(lag: Lag) -> bool:
    """Return whether the lag is there beyond doubt, whichever way held-out errors scatter."""
    return abs(lag.seconds) > LAG_DEVIATIONS * lag.std


def alike(one: Lag, other: Lag) -> bool:
    """Return whether two lags differ by less than `settled` tells apart."""
    return abs(one.seconds - other.seconds) < ESTIMATE_SETTLED * min(one.std, other.std)


def settled(estimate: Callable[[float], Lag]) -> Lag:
    """Return the lag at which no lag is left; ``estimate`` returns that left beside some seconds.

    An estimate finds only a share of what is left, since noise in the rate of the effort draws it
    towards zero. The share comes from how estimates fall from one to the next (secant method); the
    deviation of an estimate is that share of the deviation of the lag.
    """
    first = estimate(0.0)
    if not np.isfinite(first.std) or first.seconds == 0.0:
        return first
    before, left, seconds = 0.0, first, first.seconds + np.copysign(first.std, first.seconds)
    share, std = 1.0, first.std
    for _ in range(ESTIMATE_ROUNDS):
        other = estimate(seconds)
        share = float(np.clip((left.seconds - other.seconds) / (seconds - before),
                              LEAST_ESTIMATED_SHARE, 1.0))
        before, left, std = seconds, other, other.std / share
        seconds += other.seconds / share
        if abs(seconds - before) < ESTIMATE_SETTLED * std:
            break
    return Lag(float(seconds), float(std))


WIDTHS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
#: ramp [rad/s, m/s] of the Coulomb friction where neither a recipe nor a model says which
DEFAULT_WIDTH = 0.01
#: samples per parameter, OVERSAMPLING of them for each period of the cut-off, of which a quarter
#: is independent at each joint: neither a cut-off nor thinning leaves fewer than the first number;
#: from the second on a higher cut-off, which keeps more of them, is no better for that
SAMPLES_PER_PARAMETER, AMPLE_SAMPLES = 5.0, 20.0
#: choices of the cut-off after the first, with the friction found; two have always been enough
CUTOFF_ROUNDS = 3
#: share of the error by which held-out errors scatter, which refutes no lag that is sure
HELD_OUT_SCATTER = 0.01


@dataclass(frozen=True)
class Choice:
    """Choices of the pipeline, with the candidates tried: (value, held-out score).

    ``friction`` says so for the law of every axis; it is empty where the law was prescribed.
    """

    preprocessing: Preprocessing
    structure: Structure
    cutoffs: tuple[tuple[float, float], ...] = ()
    lag: Lag | None = None
    friction: tuple[AxisChoice, ...] = ()


@dataclass(frozen=True, eq=False)
class Excerpt:
    """The recordings the choices are made on; their samples as they were prepared last."""

    robot: RobotModel
    recordings: Sequence[Repaired]
    _last: dict[Preprocessing, list[Samples]] = field(default_factory=dict)

    def samples(self, settings: Preprocessing) -> list[Samples]:
        """Return the recordings, prepared with ``settings``; raises DataError as `prepare`."""
        if settings not in self._last:
            self._last.clear()
            self._last[settings] = self._prepared(settings)
        return self._last[settings]

    def _prepared(self, settings: Preprocessing) -> list[Samples]:
        return [prepare(self.robot, r, settings) for r in self.recordings]

    def thinned(
        self, model: TorqueModel, settings: Preprocessing
    ) -> tuple[Preprocessing, list[Samples]]:
        """Return the samples, thinned only where that leaves enough to fit ``model``."""
        samples = self._prepared(settings)
        enough = SAMPLES_PER_PARAMETER * len(model.reduction.pivots)
        if settings.decimate and sum(map(len, samples)) < enough:
            settings = replace(settings, decimate=False)
            samples = self._prepared(settings)
        return settings, samples

    def score(self, model: TorqueModel, settings: Preprocessing) -> float:
        """Return the held-out score of a model of samples prepared with ``settings``."""
        return float(self.errors(model, self.samples(settings)).mean())

    def errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the logarithm (f,) of the held-out error of each fold, the mean of the joints.

        A joint and a fold count the same, whatever their torque; the mean is the score. Each joint
        counts by the fit that leaves it least, see `near_nominal`.
        """
        errors = best_held_out(Experiment.of(model, samples))
        return np.asarray(0.5 * np.mean(np.log(np.maximum(errors, 1e-300)), axis=1))

    def ramp(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the best width of the Coulomb ramp."""
        return _choose_width(self, structure, settings)

    def effects(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the parts of chosen effects that the recordings show."""
        for key in CHOSEN:
            structure = with_parts(key, self.robot, structure, self.samples(settings))
        return structure

    def laws(
        self, structure: Structure, settings: Preprocessing, requests: Sequence[LawRequest]
    ) -> tuple[Structure, tuple[AxisChoice, ...]]:
        """Return ``structure`` with the laws that are requested of the axes."""
        return _choose_laws(self, structure, settings, requests)


def choose(robot: RobotModel, recordings: Sequence[Repaired], recipe: Recipe,
           progress: Progress, sweeps: Structure | None = None,
           kind: type[Excerpt] = Excerpt) -> Choice:
    """Choose everything the recipe leaves open; the same data always gives the same choice.

    The friction laws are those of ``sweeps`` where these were identified before; ``kind`` says
    how candidates are compared.

    As long as the law of friction is wrong it is best smoothed away, and what is smoothed away
    determines no law; most of all at the motor of an elastic joint, whose own equation is mostly
    friction. So cut-off and lag are chosen again with the law that was found, and the law anew,
    until the cut-off stays. Laws stand where the lag is the same as far as it is known.
    """
    if sweeps is not None:
        recipe = replace(recipe, friction='coulomb')
    part = kind(robot, recordings)
    first = _first(robot, recipe)
    choice = _chosen(part, recipe, first, None, between(progress, 0.0, 0.5))
    again = recipe.cutoff is None and (choice.friction or robot.coordinates > robot.n)
    for i in range(CUTOFF_ROUNDS if again else 0):
        before = choice
        begin, end = (0.5 + 0.3 * (i + k) / CUTOFF_ROUNDS for k in (0, 1))
        choice = _chosen(part, recipe, first, before, between(progress, begin, end))
        if choice.preprocessing.cutoff == before.preprocessing.cutoff:
            break
    return choice if sweeps is None else replace(choice, structure=sweeps)


def _first(robot: RobotModel, recipe: Recipe) -> Structure:
    """Return the structure that choices begin with."""
    width = recipe.ramp_width or DEFAULT_WIDTH
    return Structure.uniform(robot, recipe.rotors_of(robot), 'coulomb', {'width': width})


def between(progress: Progress, begin: float, end: float) -> Progress:
    """Return a progress whose whole is the part from ``begin`` to ``end`` of ``progress``."""
    return lambda stage, share: progress(stage, begin + (end - begin) * share)


def _chosen(part: Excerpt, recipe: Recipe, first: Structure, before: Choice | None,
            progress: Progress) -> Choice:
    """Choose once, cut-off and lag with the friction chosen ``before``.

    The choice of friction begins with ``first``, so for the same samples it is the same.
    """
    best = first if before is None else before.structure
    scores: tuple[tuple[float, float], ...] = ()
    cutoff = recipe.cutoff
    if cutoff is None:
        cutoff, scores = _choose_cutoff(part, best, progress)
    settings, _ = part.thinned(best.torque_model(part.robot), Preprocessing(
        cutoff, recipe.rate, recipe.effort_lag or 0.0, not first.gears))
    lag = None
    if recipe.effort_lag is None:
        progress('estimating the lag of the effort', 0.45)
        settings, lag = _choose_lag(part, best, settings, dict(scores).get(cutoff))
    if before is not None:
        if settings == before.preprocessing:
            return replace(before, cutoffs=scores, lag=lag)
        if _alike(settings, lag, before):
            return replace(before, cutoffs=scores)
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
    return Choice(settings, structure, scores, lag, choices)


def with_gear_effects(
    robot: RobotModel, recordings: Sequence[Repaired], recipe: Recipe, choice: Choice,
    progress: Progress,
) -> Choice:
    """Return the choice with the effects of elastic gears, and the cut-off that suits them.

    What gears do beside bending is faster than the motion: a cut-off chosen without it smooths it
    away, and samples thinned to that cut-off fold it into the motion. Left out, it also passes for
    a lag of the effort and for friction, and a lag of a millisecond for half of the damping: so
    all is chosen again with it.
    """
    part = Excerpt(robot, recordings)
    progress('looking for effects of gears', 0.8)
    settings = replace(choice.preprocessing, decimate=False)
    effects = gear_effects(robot, choice.structure, part.samples(settings))
    if not effects:
        return choice
    found = replace(choice, preprocessing=settings,
                    structure=replace(choice.structure, gears=effects))
    first = replace(_first(robot, recipe), gears=effects)
    for i in range(CUTOFF_ROUNDS):
        before = found
        begin, end = (0.8 + 0.2 * (i + k) / CUTOFF_ROUNDS for k in (0, 1))
        found = _chosen(part, recipe, first, before, between(progress, begin, end))
        if found.preprocessing == before.preprocessing:
            break
        effects = gear_effects(robot, replace(found.structure, gears=()),
                               part.samples(found.preprocessing), effects)
        found = replace(found, structure=replace(found.structure, gears=effects))
        first = replace(first, gears=effects)
        if not effects:
            break
    return found


def with_laws_of(
    estimator: Estimator, experiment: Experiment, choice: Choice, requests: Sequence[LawRequest]
) -> Choice:
    """Return the choice with the laws of friction that the ``estimator`` sees.

    Those of axes whose law is prescribed, or could not be chosen, stay.
    """
    before = choice.structure
    named = list(zip(before.friction, before.laws, strict=True))
    every = (*LAWS, *ADDITIONS)
    noted = [bool(one.note) for one in choice.friction] or [True] * len(named)
    without = [request.without if request.auto and not note else every
               for request, note in zip(requests, noted, strict=True)]
    laws = list(estimator.laws(experiment, named, without))
    if [name for name, _ in laws] == list(before.friction):
        return choice
    load = None if before.load is None else np.array(before.load)
    return replace(choice, structure=before.with_laws(laws, load), friction=tuple(
        one if one.law == name else replace(one, law=name, tried=(
            *one.tried, LawScore(name, one.error_over_coulomb)))
        for one, (name, _) in zip(choice.friction, laws, strict=True)))


def _alike(settings: Preprocessing, lag: Lag | None, before: Choice) -> bool:
    """Return whether settings differ from those ``before`` by a corrected lag, and not by much."""
    own = before.preprocessing
    return (lag is not None and before.lag is not None and alike(lag, before.lag)
            and 0.0 not in (settings.effort_lag, own.effort_lag)
            and replace(settings, effort_lag=own.effort_lag) == own)


def _choose_cutoff(
    part: Excerpt, structure: Structure, progress: Progress
) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Choose the cut-off, see `best_cutoff`, and return the scores of all that were tried."""
    model = structure.torque_model(part.robot)
    highest = CUTOFF_RATE_SHARE / max(r.step for r in part.recordings)
    candidates = [c for c in CUTOFFS if c <= highest] or [highest]

    def errors(cutoff: float) -> tuple[float, FloatArray] | DataError:
        try:
            _, samples = part.thinned(model, Preprocessing(cutoff, decimate=not structure.gears))
            seconds = sum(len(s) * float(s.time[1] - s.time[0]) for s in samples if len(s) > 1)
            return (OVERSAMPLING * cutoff * seconds / len(model.reduction.pivots),
                    part.errors(model, samples))
        except DataError as error:
            return error

    tried: dict[float, tuple[float, FloatArray]] = {}
    problem = DataError('no cut-off frequency can be tried on this data')
    for i, (cutoff, found) in enumerate(zip(
            candidates, side_by_side(errors, candidates), strict=True), start=1):
        progress(f'tried a cut-off of {cutoff:g} Hz', 0.05 + 0.4 * i / len(candidates))
        if isinstance(found, DataError):
            problem = found
        else:
            tried[cutoff] = found
    if not tried:
        raise problem
    return best_cutoff(tried), tuple(
        (cutoff, float(errors.mean())) for cutoff, (_, errors) in tried.items())


def best_cutoff(tried: Mapping[float, tuple[float, FloatArray]]) -> float:
    """Return the cut-off [Hz] of the best score; while samples are scarce, the highest as good.

    ``tried`` are samples per parameter, OVERSAMPLING for each period of the cut-off, and (f,)
    `Excerpt.errors`. A cut-off that leaves SAMPLES_PER_PARAMETER is taken before any that leaves
    fewer, and one with fewer than AMPLE_SAMPLES must beat all that are higher by a standard error.
    """
    most = max(samples for samples, _ in tried.values())
    errors = {cutoff: one for cutoff, (samples, one) in tried.items()
              if samples >= min(SAMPLES_PER_PARAMETER, most)}
    best = min(errors, key=lambda cutoff: float(errors[cutoff].mean()))
    if tried[best][0] >= AMPLE_SAMPLES:
        return best
    return max([best, *(
        cutoff for cutoff, one in errors.items() if cutoff > best
        and one.mean() < errors[best].mean() + _standard_error(one, errors[best]))])


def _standard_error(errors: FloatArray, others: FloatArray) -> float:
    """Return the standard error of the difference of two scores, from their parts (k,).

    The same fold is hard or easy for both, so that differences count; zero where there are no two
    folds to compare.
    """
    if len(errors) != len(others) or len(errors) < 2:
        return 0.0
    return float(np.std(errors - others, ddof=1) / np.sqrt(len(errors)))


def _choose_lag(
    part: Excerpt, structure: Structure, settings: Preprocessing, before: float | None
) -> tuple[Preprocessing, Lag]:
    """Choose the lag of the effort; ``before`` is the score without one, where it is known."""
    model = structure.torque_model(part.robot)
    lag = settled(lambda late: effort_lag(
        model, part.samples(replace(settings, effort_lag=late))))
    if not likely(lag):
        return settings, lag
    shifted = replace(settings, effort_lag=lag.seconds)
    before = part.score(model, settings) if before is None else before
    after = part.score(model, shifted)
    worst = before + (HELD_OUT_SCATTER if sure(lag) else 0.0)
    return (shifted if after < worst else settings), lag


def effort_lag(model: TorqueModel, recordings: Sequence[Samples]) -> Lag:
    """Estimate by how much the effort is later than the motion.

    A late effort is ``y(t - lag) = y - lag dy/dt`` to first order, so the lag is one more linear
    parameter, shared by all joints, with its own standard deviation. Rows of a joint near its own
    reversals are left out: while a joint sticks, its friction changes ahead of the velocity, which
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
        rate = samples.at_stamps(_rate(samples.gridded))
        regression = Regression(model, samples)
        far = swift(model.robot, samples)
        for rows in chunks(samples):
            used = far[rows].T
            late = np.concatenate([regression.columns(rows), -rate[rows].T[:, None, :]], axis=1)
            late *= used[:, None, :]
            effort, measured = (y[rows] * used.T for y in (samples.effort, samples.measured))
            accumulator.add(late, effort, measured)
    assert accumulator is not None
    return lag_of(accumulator.information())


def _rate(samples: Samples) -> FloatArray:
    """Return the derivative (N, rows) [N m/s] of the filtered effort of uniform samples."""
    assert samples.effort is not None
    rate = np.zeros_like(samples.effort)
    for segment in samples.segments:
        if segment.stop - segment.start > 1:
            step = float(samples.time[segment.start + 1] - samples.time[segment.start])
            rate[segment] = derivative(samples.effort[segment], step)
    return rate


def _choose_width(part: Excerpt, structure: Structure, settings: Preprocessing) -> Structure:
    """Choose one ramp for all axes; per axis the choice follows the noise of single reversals.

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
    """Choose the law of every axis, beginning with those of ``structure``."""
    data = FrictionData(frictionless(part.robot, structure), axes_of(part.robot),
                        part.samples(settings))
    loads = part.robot.drive.kind != 'gravity_compensated_torque'
    laws, choices, load = choose_laws(data, requests, structure.laws, loads)
    return structure.with_laws(laws, load), choices


class SingleJointExcerpt(Excerpt):
    """Recordings in which one joint moves at a time."""

    def errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the logarithm (n,) of the held-out error of each joint while it moves."""
        return own_errors(model, samples)

    def ramp(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the best width of the Coulomb ramp."""
        candidates = [Structure.uniform(self.robot, structure.rotor_inertia, structure.friction[0],
                                        {'width': width}) for width in WIDTHS]
        return min(candidates,
                   key=lambda one: self.score(one.torque_model(self.robot), settings))

    def effects(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure``: a joint by itself does not tell springs from the weight."""
        return structure

    def laws(
        self, structure: Structure, settings: Preprocessing, requests: Sequence[LawRequest]
    ) -> tuple[Structure, tuple[AxisChoice, ...]]:
        """Return ``structure`` with the law of every joint, from its own motion.

        Motors that turn with several joints keep the law there is, and so do their joints.
        """
        robot, samples = self.robot, self.samples(settings)
        if robot.drive.coupling is not None:
            return structure, ()
        loading = self._loading(structure, samples) \
            if robot.drive.kind != 'gravity_compensated_torque' else None
        model = frictionless(robot, structure)
        laws = list(zip(structure.friction, structure.laws, strict=True))
        choices: list[AxisChoice] = []
        for motion in own_motions(robot, samples):
            j = motion.joint
            found, made, _ = choose_laws(
                OwnFrictionData.of(model, motion, loading), requests[j:j + 1],
                structure.laws[j:j + 1], loading is not None)
            laws[j] = found[0]
            choices += made
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
