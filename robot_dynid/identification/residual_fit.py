"""Residual models of the deflection, scored on stretches left out of both fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.uncertainty.held_out import folds
from robot_dynid.identification.sequential_fit import RESIDUAL, Stopwatch, friction_parameters
from robot_dynid.identified.record import DeflectionRecord, JointDeflection
from robot_dynid.residual import RESIDUALS, ResidualModel
from robot_dynid.residual.deflection import deflections, feature_count, known_joints
from robot_dynid.types import FloatArray, Samples

#: a residual model must lower the held-out error by this share, in most folds
GAIN = 0.01
#: samples residual models are fitted to, at about 1 kB each; long recordings have more
RESIDUAL_SAMPLES = 200_000
#: physics and residual are fitted in turn, at most so often, while the score falls by this much
ROUNDS, SETTLED = 8, 1e-3

#: base parameters (b,) from information, and those of the round before (None at first)
Physics = Callable[[Information, FloatArray | None], FloatArray]


def joint_fit(information: Information, before: FloatArray | None) -> FloatArray:
    """Return the weighted least-squares solution (b,): friction and links at once."""
    return solve(information, joint_weights(information)).values


@dataclass(frozen=True, eq=False)
class Training:
    """Recordings whose effort is to be explained; ``rows`` are all samples in their order.

    ``features`` (M, n, k), ``effort`` and ``measured`` (M, n) [N m], ``batch`` (M,) the batch of
    the experiment's information a sample is in. ``stride``: of long recordings one in so many
    parts is there.
    """

    experiment: Experiment
    features: FloatArray
    effort: FloatArray
    measured: FloatArray
    batch: NDArray[np.int64]
    stride: int = 1

    @classmethod
    def of(cls, experiment: Experiment, needed: bool) -> Training | None:
        """Collect the samples; None where motor states are ``needed`` and a recording has none."""
        recordings: list[Samples] = []
        width = feature_count(experiment.model.robot)
        features: list[FloatArray] = []
        stride = max(1, -(-experiment.information.samples // RESIDUAL_SAMPLES))
        for number, samples in enumerate(experiment.recordings):
            if number % stride:
                continue
            found = deflections(experiment.model.robot, samples)
            if found is None and needed:
                return None
            recordings.append(samples)
            features.append(np.full((*samples.position.shape, width), np.nan)
                            if found is None else found)
        if not recordings:
            return None
        experiment = replace(experiment, recordings=recordings) if stride == 1 else Experiment.of(
            experiment.model, recordings, experiment.reversal_weights)
        counts = [b.samples for b in experiment.information.batches]
        return cls(
            experiment, np.concatenate(features),
            np.concatenate([s.effort for s in recordings if s.effort is not None]),
            np.concatenate([s.measured for s in recordings if s.measured is not None]),
            np.repeat(np.arange(len(counts)), counts), stride)

    @cached_property
    def known(self) -> list[int]:
        """The joints with usable features."""
        return known_joints(self.features)

    def physics(self, values: FloatArray) -> FloatArray:
        """Return the effort (M, n) of base parameters."""
        model = self.experiment.model
        return np.concatenate([model.effort(s, values) for s in self.experiment.recordings])

    def without(self, explained: FloatArray) -> Experiment:
        """Return the experiment whose effort lacks (M, n) what is ``explained`` already."""
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
    """Physics and residual models after a round; ``physics`` and ``added`` (M, n) their efforts.

    ``experiment`` is what the physics was fitted to: the effort less what was ``added`` before.
    """

    experiment: Experiment
    values: FloatArray
    physics: FloatArray
    models: tuple[ResidualModel | None, ...]
    added: FloatArray
    notes: tuple[str, ...]


def alternate(
    data: Training, kind: str, physics: Physics, batches: Sequence[int], joints: Sequence[int],
    watch: Stopwatch | None = None,
) -> Iterator[Round]:
    """Fit physics and residual models of ``joints`` in turn to some ``batches`` only, for ever."""
    watch = watch or Stopwatch()
    chosen = np.isin(data.batch, batches)
    added = np.zeros_like(data.effort)
    values: FloatArray | None = None
    experiment = data.experiment
    while True:
        values = physics(experiment.information.subset(batches), values)
        modelled = data.physics(values)
        models, notes = watch.timed(
            RESIDUAL, partial(fitted, data, kind, modelled, chosen, joints))
        added = predicted(data, models)
        yield Round(experiment, values, modelled, models, added, notes)
        experiment = data.without(added)


def fitted(
    data: Training, kind: str, physics: FloatArray, chosen: NDArray[np.bool_],
    joints: Sequence[int],
) -> tuple[tuple[ResidualModel | None, ...], tuple[str, ...]]:
    """Return the residual models (None where there is none) and why some could not be fitted.

    ``physics`` (M, n) N m is the effort of the model; ``chosen`` (M,) the samples to fit.
    """
    models: list[ResidualModel | None] = []
    notes = []
    for j, joint in enumerate(data.experiment.model.robot.joints):
        model, note = None, ''
        if j in joints:
            residual = data.effort[chosen, j] - physics[chosen, j]
            try:
                model = RESIDUALS[kind].fit(data.features[chosen, j], residual)
            except DataError as error:
                note = f'{joint}: {error}'
        models.append(model)
        notes.append(note)
    return tuple(models), tuple(notes)


def predicted(data: Training, models: Sequence[ResidualModel | None]) -> FloatArray:
    """Return the effort (M, n) of the residual models."""
    added = np.zeros_like(data.effort)
    for j, model in enumerate(models):
        if model is not None:
            added[:, j] = model.mean(data.features[:, j])
    return added


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Held-out root mean squared errors [N m] of the filtered effort, by round and fold.

    ``friction`` (R, F, n) of friction alone, ``physics`` (R, F, n) of friction and links,
    ``after`` (R, F, n) with the residual models.
    """

    friction: FloatArray
    physics: FloatArray
    after: FloatArray

    @property
    def before(self) -> FloatArray:
        """Errors (F, n) of the physics as it is without any residual model."""
        return np.asarray(self.physics[0])

    @property
    def rounds(self) -> int:
        """Number of rounds that lower the error, 0 for none."""
        scores = [np.mean(np.log(_rms(errors) + 1e-300)) for errors in self.after]
        lower = [k for k, score in enumerate(scores)
                 if k == 0 or score < min(scores[:k]) - SETTLED]
        return lower[-1] + 1 if lower else 0

    def helps(self, rounds: int) -> NDArray[np.bool_]:
        """Return (n,) whether the error falls by GAIN, and in most folds."""
        after = self.after[rounds - 1]
        lower = _rms(after) < (1.0 - GAIN) * _rms(self.before)
        return np.asarray(lower & (np.mean(after < self.before, axis=0) > 0.5))


def _rms(errors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def cross_fit(data: Training, kind: str, physics: Physics, joints: Sequence[int]) -> CrossFit:
    """Return errors of stretches on which neither physics nor residual models were fitted."""
    count = len(data.experiment.information.batches)
    left_out = folds(count)
    held_out = [np.isin(data.batch, fold) for fold in left_out]
    fits = [alternate(data, kind, physics, [i for i in range(count) if i not in fold], joints)
            for fold in left_out]
    own = friction_parameters(data.experiment.model)
    table = np.empty((0, 3, len(left_out), data.effort.shape[1]))
    while len(table) < ROUNDS and CrossFit(*table.swapaxes(0, 1)).rounds == len(table):
        rounds = [next(fit) for fit in fits]
        left = [data.effort[rows] - np.array(
            [data.physics(np.where(own, r.values, 0.0))[rows], r.physics[rows],
             r.physics[rows] + r.added[rows]]) for r, rows in zip(rounds, held_out, strict=True)]
        errors = np.array([[_rms(stage) for stage in stages] for stages in left])
        table = np.concatenate([table, errors.swapaxes(0, 1)[None]])
    return CrossFit(*table.swapaxes(0, 1))


@dataclass(frozen=True, eq=False)
class ResidualFitted:
    """Residual models per joint and the experiment the physics is to be fitted to.

    ``values`` (b,) is the physics of the last round; ``record`` says, joint by joint, what the
    stages improve.
    """

    experiment: Experiment
    models: tuple[ResidualModel | None, ...] = ()
    values: FloatArray | None = None
    record: DeflectionRecord | None = None
    warnings: tuple[str, ...] = ()


def fit_residual(
    experiment: Experiment, kind: str, physics: Physics = joint_fit, watch: Stopwatch | None = None
) -> ResidualFitted | None:
    """Fit residual models where they lower the held-out error; None where nothing is in turn.

    That is without motor states, or with a ``kind`` of no residual, where friction and links are
    fitted at once. ``watch`` measures the last fit, to all the data; judging it comes on top.
    """
    at_once = physics is joint_fit
    data = Training.of(experiment, needed=at_once)
    if data is None:
        return None
    known = data.known if kind in RESIDUALS else []
    robot, everything = experiment.model.robot, range(len(experiment.information.batches))
    watch = watch or Stopwatch()
    before = dict(watch.seconds)
    crossed = cross_fit(data, kind, physics, known)
    watch.seconds.clear()
    watch.seconds.update(before)
    helps = crossed.helps(crossed.rounds)
    joints = [j for j in known if helps[j]]
    fits = alternate(data, kind, physics, everything, joints, watch)
    last = next(islice(fits, crossed.rounds - 1 if joints or not at_once else 0, None))
    reasons = [_reason(j in data.known, last.models[j], last.notes[j]) if known else
               'none asked for, or no motor states' for j in range(robot.n)]
    warnings = tuple(f'joint {joint}: no residual model of the deflection: {reason}'
                     for joint, reason in zip(robot.joints, reasons, strict=True)
                     if reason and known)
    if data.stride > 1 and (joints or not at_once):
        warnings += (f'long recordings: residual models, and the parameters beside them, are from '
                     f'one in {data.stride} parts',)
    all_parts = data.stride > 1 and at_once and not joints
    return ResidualFitted(experiment if all_parts else last.experiment, last.models, last.values,
                          _record(kind, crossed, robot.joints, reasons), warnings)


def _reason(known: bool, model: ResidualModel | None, note: str) -> str:
    if not known:
        return 'no motor states that can be used'
    return '' if model is not None else note or 'the held-out error does not fall'


def _record(
    kind: str, crossed: CrossFit, joints: Sequence[str], reasons: Sequence[str]
) -> DeflectionRecord:
    """Return the errors of the stages on data left out."""
    last = crossed.rounds - 1
    stages = np.array([_rms(crossed.friction[last]), _rms(crossed.before),
                       _rms(crossed.after[last])]).T.tolist()
    rows = tuple(JointDeflection(joint, not reason, reason, *errors)
                 for joint, reason, errors in zip(joints, reasons, stages, strict=True))
    return DeflectionRecord(kind, crossed.rounds, rows,
                            tuple(tuple(_rms(after).tolist()) for after in crossed.after))
