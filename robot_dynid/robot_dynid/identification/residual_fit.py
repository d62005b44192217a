"""Residual models of the deflection, cross-validated together with the linear fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.deflection import (
    CHOICES,
    RESIDUALS,
    GearModel,
    ResidualModel,
    append_load,
    complete_joints,
    deflections,
    feature_count,
    gear_load,
    select_features,
)
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.friction_selection.law_request import AUTO
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.uncertainty.held_out import falls, folds
from robot_dynid.identification.sequential_fit import RESIDUAL, Stopwatch, friction_parameters
from robot_dynid.identified.record import DeflectionRecord, JointDeflection
from robot_dynid.types import FloatArray, Samples

#: least share by which a residual model must lower the held-out error
RESIDUAL_GAIN = 0.01
#: most samples for residual models, about 1 kB each; long recordings have more
RESIDUAL_SAMPLES = 200_000
#: most iterations of sequential loops, and the least fall of the score to continue
LOOP_ROUNDS, SCORE_SETTLED = 8, 1e-3

#: base parameters (b,) from some batches of an experiment, of the same one without the effort of
#: the residual models, and from those of the previous iteration (None at first)
Physics = Callable[[Experiment, Experiment, Sequence[int], FloatArray | None], FloatArray]
#: kinds of residual models by joint number
Kinds = Mapping[int, str]


@dataclass(frozen=True, eq=False)
class JointFit:
    """Friction and links at once, by the ``estimator`` that made ``estimate``.

    From the whole effort: it contains everything that gears show about the links.
    """

    estimator: Estimator
    estimate: Estimate

    def __call__(
        self, whole: Experiment, left: Experiment, batches: Sequence[int],
        previous: FloatArray | None,
    ) -> FloatArray:
        """Return the base parameters (b,) from the ``batches`` of the ``whole`` effort."""
        fit = self.estimator.fit_to_batches(whole, self.estimate)
        if fit is not None:
            return fit(batches)
        information = whole.information.subset(batches)
        return solve(information, joint_weights(information)).values


@dataclass(frozen=True, eq=False)
class Training:
    """Recordings to fit; ``rows`` are all samples in order.

    ``features`` (M, n, k), ``effort`` and ``measured`` (M, n) [N m], ``cell`` (M,) of distinct
    motion of each sample. ``stride``: of long recordings every so many-th part is used.
    """

    experiment: Experiment
    features: FloatArray
    effort: FloatArray
    measured: FloatArray
    cell: NDArray[np.int32]
    stride: int

    @classmethod
    def of(cls, experiment: Experiment, needed: bool) -> Training | None:
        """Collect the samples; None if motor states are ``needed`` and a recording has none."""
        recordings: list[Samples] = []
        width = feature_count(experiment.model.robot)
        features: list[FloatArray] = []
        stride = max(1, -(-experiment.information.samples // RESIDUAL_SAMPLES))
        for number, samples in enumerate(experiment.recordings):
            if number % stride:
                continue
            bent = deflections(experiment.model.robot, samples)
            if bent is None and needed:
                return None
            recordings.append(samples)
            features.append(np.full((*samples.position.shape, width), np.nan)
                            if bent is None else bent)
        if not recordings:
            return None
        experiment = replace(experiment, recordings=recordings) if stride == 1 else Experiment.of(
            experiment.model, recordings, experiment.reversal_weights)
        by_motion = experiment.information.by_motion
        assert by_motion is not None
        return cls(
            experiment, np.concatenate(features),
            np.concatenate([s.effort for s in recordings if s.effort is not None]),
            np.concatenate([s.measured for s in recordings if s.measured is not None]),
            by_motion.rows, stride)

    @cached_property
    def joints(self) -> list[int]:
        """The joints with usable features."""
        return complete_joints(self.features)

    def physics(self, values: FloatArray) -> FloatArray:
        """Return the effort (M, n) of base parameters."""
        model = self.experiment.model
        return np.concatenate([model.effort(s, values) for s in self.experiment.recordings])

    def loaded(self, values: FloatArray) -> Training:
        """Return it with the gear load by the links of base parameters ``values`` (b,)."""
        load = self.physics(gear_load(self.experiment.model, values))
        return replace(self, features=append_load(self.features, load))

    def without(self, explained: FloatArray) -> Experiment:
        """Return the experiment without the ``explained`` effort (M, n)."""
        left, first = [], 0
        for samples in self.experiment.recordings:
            part = explained[first:first + len(samples)]
            first += len(samples)
            assert samples.effort is not None and samples.measured is not None
            left.append(replace(samples, effort=samples.effort - part,
                                measured=samples.measured - part))
        return Experiment.of(self.experiment.model, left, self.experiment.reversal_weights)


@dataclass(frozen=True, eq=False)
class Round:
    """Linear fit and residual models of an iteration; ``physics``, ``added`` (M, n): efforts."""

    values: FloatArray
    physics: FloatArray
    models: tuple[ResidualModel | None, ...]
    added: FloatArray
    notes: tuple[str, ...]


def alternate(
    data: Training, kinds: Kinds, physics: Physics, cells: Sequence[int],
    watch: Stopwatch | None = None,
) -> Iterator[Round]:
    """Fit physics and residual models of ``kinds`` in turn to some ``cells``, indefinitely."""
    watch = watch or Stopwatch()
    chosen = np.isin(data.cell, cells)
    values: FloatArray | None = None
    left = data.experiment
    while True:
        values = physics(data.experiment.by_motion, left.by_motion, cells, values)
        modelled = data.physics(values)
        loaded = data.loaded(values) if kinds else data
        models, notes = watch.timed(
            RESIDUAL, partial(fit_models, loaded, kinds, modelled, chosen))
        added = predict_residual(loaded, models)
        yield Round(values, modelled, models, added, notes)
        left = data.without(added) if any(models) else data.experiment


def fit_models(
    data: Training, kinds: Kinds, physics: FloatArray, chosen: NDArray[np.bool_]
) -> tuple[tuple[ResidualModel | None, ...], tuple[str, ...]]:
    """Return the residual models (None if there is none) and why some could not be fitted.

    ``physics`` (M, n) N m is the effort of the model; ``chosen`` (M,) the samples to fit.
    """
    models: list[ResidualModel | None] = []
    notes = []
    for j, joint in enumerate(data.experiment.model.robot.joints):
        model, note = None, ''
        if j in kinds:
            residual = data.effort[chosen, j] - physics[chosen, j]
            try:
                model = RESIDUALS[kinds[j]].fit(
                    select_features(data.features[chosen, j], kinds[j] == CHOICES[0]), residual)
            except DataError as error:
                note = f'{joint}: {error}'
        models.append(model)
        notes.append(note)
    return tuple(models), tuple(notes)


def predict_residual(data: Training, models: Sequence[ResidualModel | None]) -> FloatArray:
    """Return the effort (M, n) of the residual models."""
    added = np.zeros_like(data.effort)
    for j, model in enumerate(models):
        if model is not None:
            added[:, j] = model.mean(
                select_features(data.features[:, j], isinstance(model, GearModel)))
    return added


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Held-out squared errors [(N m)^2] of the filtered effort, by iteration and fold.

    Sums over the samples of a fold of distinct motion: ``friction`` (R, F, n) of friction only,
    ``physics`` (R, F, n) of friction and links, ``after`` (R, F, n) with the residual models.
    ``samples`` in all folds.
    """

    friction: FloatArray
    physics: FloatArray
    after: FloatArray
    samples: int

    def rms(self, errors: FloatArray) -> FloatArray:
        """Return the RMS (n,) [N m] of ``errors`` (F, n)."""
        return np.asarray(np.sqrt(errors.sum(axis=0) / self.samples))

    @property
    def plain(self) -> FloatArray:
        """Errors (F, n) of the physics without a residual model."""
        return np.asarray(self.physics[0])

    @property
    def rounds(self) -> int:
        """Number of iterations that lower the error, 0 for none."""
        scores = [np.mean(np.log(self.rms(errors) + 1e-300)) for errors in self.after]
        lower = [k for k, score in enumerate(scores)
                 if k == 0 or score < min(scores[:k]) - SCORE_SETTLED]
        return lower[-1] + 1 if lower else 0

    @property
    def last(self) -> FloatArray:
        """Errors (F, n) after the last iteration that lowers them."""
        return np.asarray(self.after[self.rounds - 1])

    def lower(self, after: FloatArray, reference: FloatArray) -> NDArray[np.bool_]:
        """Return (n,) whether errors (F, n) fell by RESIDUAL_GAIN, and significantly."""
        lower = self.rms(after) < (1.0 - RESIDUAL_GAIN) * self.rms(reference)
        return lower & [falls(*both) for both in zip(after.T, reference.T, strict=True)]


def cross_fit(data: Training, kinds: Kinds, physics: Physics) -> CrossFit:
    """Return held-out errors of physics and residual models together."""
    parts = folds(data.experiment.information)
    held_out = [np.isin(data.cell, part.test) for part in parts]
    fits = [alternate(data, kinds, physics, part.fitted) for part in parts]
    dry = friction_parameters(data.experiment.model)
    max_rounds = 1 if isinstance(physics, JointFit) else LOOP_ROUNDS
    samples = int(np.sum(held_out))
    table = np.empty((3, 0, len(parts), data.effort.shape[1]))

    def crossed() -> CrossFit:
        friction, plain, after = table
        return CrossFit(friction, plain, after, samples)

    result = crossed()
    while len(result.after) < max_rounds and result.rounds == len(result.after):
        errors = np.empty((3, 1, *table.shape[2:]))
        for k, (fit, rows) in enumerate(zip(fits, held_out, strict=True)):
            one = next(fit)
            friction = data.physics(np.where(dry, one.values, 0.0))
            for stage, effort in enumerate((friction, one.physics, one.physics + one.added)):
                errors[stage, 0, k] = np.sum((data.effort[rows] - effort[rows])**2, axis=0)
        table = np.concatenate([table, errors], axis=1)
        result = crossed()
    return result


@dataclass(frozen=True, eq=False)
class ResidualFitted:
    """Residual models per joint; ``values`` (b,) is the physics of the last iteration.

    ``record`` holds, joint by joint, what the stages improve.
    """

    models: tuple[ResidualModel | None, ...] = ()
    values: FloatArray | None = None
    record: DeflectionRecord | None = None
    warnings: tuple[str, ...] = ()


def fit_residual(
    experiment: Experiment, kind: str, physics: Physics, watch: Stopwatch | None = None
) -> ResidualFitted | None:
    """Fit residual models that lower the held-out error; None if there is nothing to do.

    That is without motor states, or with a ``kind`` without residual, if friction and links are
    fitted at once; AUTO stands for those of CHOICES. ``watch`` measures the last fit, to all data,
    without the cross-validation.
    """
    at_once = isinstance(physics, JointFit)
    data = Training.of(experiment, needed=at_once)
    if data is None:
        return None
    tried = CHOICES if kind == AUTO else (kind,)
    joints = data.joints if set(tried) <= set(RESIDUALS) else []
    robot, everything = experiment.model.robot, range(int(data.cell.max()) + 1)
    watch = watch or Stopwatch()
    seconds = dict(watch.seconds)
    kinds, crossed, errors = _choose_kinds(data, tried, physics, joints)
    watch.seconds.clear()
    watch.seconds.update(seconds)
    rounds = crossed.rounds if kinds or not at_once else 1
    fits = alternate(data, kinds, physics, everything, watch)
    last = next(islice(fits, rounds - 1, None))
    reasons = [_reason(j in data.joints, last.models[j], last.notes[j]) if joints else
               'not requested, or no motor states' for j in range(robot.n)]
    warnings = tuple(f'joint {joint}: no residual model of the deflection: {reason}'
                     for joint, reason in zip(robot.joints, reasons, strict=True)
                     if reason and joints)
    if data.stride > 1 and (kinds or not at_once):
        warnings += (f'long recordings: residual models use one of {data.stride} parts',)
    rows = tuple(JointDeflection(
        joint, not reason, reason, float(friction), float(alone), float(after),
        '' if reason else kinds[j])
        for j, (joint, reason, (friction, alone, after)) in enumerate(zip(
            robot.joints, reasons, errors, strict=True)))
    record = DeflectionRecord(kind, crossed.rounds, rows,
                              tuple(tuple(crossed.rms(after).tolist()) for after in crossed.after))
    return ResidualFitted(last.models, last.values, record, warnings)


def _choose_kinds(
    data: Training, tried: Sequence[str], physics: Physics, joints: Sequence[int]
) -> tuple[Kinds, CrossFit, FloatArray]:
    """Return the kinds that help, the fit of the last one that does, and the errors (n, 3) [N m].

    Those of friction, links and residual models, for the best or first kind.
    """
    kinds: dict[int, str] = {}
    best_fit, errors, best = None, None, None
    for kind in tried:
        crossed = cross_fit(data, dict.fromkeys(joints, kind), physics)
        if best_fit is None or errors is None or best is None:
            best_fit, best = crossed, crossed.plain.copy()
            errors = np.array([crossed.rms(one) for one in (
                crossed.friction[crossed.rounds - 1], crossed.plain, crossed.last)]).T
        lower = crossed.lower(crossed.last, best)
        better = [j for j in joints if lower[j]]
        if better:
            kinds |= dict.fromkeys(better, kind)
            best_fit = crossed
            best[:, better] = crossed.last[:, better]
            errors[better, 2] = crossed.rms(crossed.last)[better]
    assert best_fit is not None and errors is not None
    return kinds, best_fit, errors


def _reason(usable: bool, model: ResidualModel | None, note: str) -> str:
    if not usable:
        return 'no usable motor states'
    return '' if model is not None else note or 'the held-out error does not fall'
