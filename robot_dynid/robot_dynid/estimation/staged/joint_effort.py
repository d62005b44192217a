"""Identification from the effort of one joint while it moves alone.

Unmodelled friction holds the other joints meanwhile, so only the equation of the moving joint is
used, with the link and rotor parameters that it determines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.effects.joint_friction import Load
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import (
    Experiment,
    Regression,
    TorqueModel,
    accumulate,
    row_weights,
    whole_batch,
)
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.estimation.information import (
    EXTRA,
    Accumulator,
    Batch,
    Information,
    merge_factors,
)
from robot_dynid.estimation.staged.procedure import (
    Free,
    LockedJointsMotion,
    Stage,
    decompose,
    names_from,
)
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.friction import FrictionLaw
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.signals.single_joint_motion import least_travel, single_joint_stretches
from robot_dynid.types import FloatArray, Samples

#: motions whose locked joints are this close [rad, m] have the same configuration
SAME_CONFIGURATION, SAME_PRISMATIC = 0.05, 0.01
#: shorter stretches [s] are parts of other motions
SHORTEST_STRETCH = 0.5


@dataclass(eq=False)
class LockedPlace:
    """One joint moving with the others locked in one configuration, from all its stretches.

    `position` (n,) is the mean of the first stretch, `lower` and `upper` are the ends of the
    motion.
    """

    moving: int
    position: FloatArray
    lower: float
    upper: float

    @property
    def motion(self) -> LockedJointsMotion:
        """The motion as data of a procedure."""
        position = self.position.copy()
        position[self.moving] = 0.5 * (self.lower + self.upper)
        return LockedJointsMotion(self.moving, position, 0.5 * (self.upper - self.lower))


def single_joint_rows(robot: RobotModel, samples: Samples) -> Iterator[tuple[int, slice]]:
    """Yield (joint, rows) of every stretch of SHORTEST_STRETCH in which only that joint moves."""
    for segment in samples.segments:
        time = samples.time[segment]
        for joint, rows in single_joint_stretches(
                time, samples.position[segment], least_travel(robot)):
            if (rows.stop - rows.start) * float(time[1] - time[0]) >= SHORTEST_STRETCH:
                yield joint, slice(segment.start + rows.start, segment.start + rows.stop)


def single_joint_mask(robot: RobotModel, samples: Samples) -> NDArray[np.bool_]:
    """Return a mask (N, n): True where each joint moves alone."""
    mask = np.zeros((len(samples), robot.n), dtype=bool)
    for joint, rows in single_joint_rows(robot, samples):
        mask[rows, joint] = True
    return mask


def single_joint_data(experiment: Experiment) -> list[tuple[LockedJointsMotion, Information]]:
    """Return every single-joint motion in the recordings of `experiment`, with its information.

    In batches of BATCH_SECONDS even for short recordings: of a resting joint only the variation
    within a batch counts, and many short recordings make enough batches together. Raises DataError
    if there is no such motion.
    """
    model = experiment.model
    accumulators: dict[LockedPlace, Accumulator] = {}
    for samples in experiment.recordings:
        regression = Regression(model, samples)
        weights = row_weights(model.robot, samples, experiment.reversal_weights)
        for moving, rows in single_joint_rows(model.robot, samples):
            place = _place(model.robot, accumulators, moving, samples.position[rows])
            if place not in accumulators:
                accumulators[place] = Accumulator(model.reduction.names, model.structure,
                                           whole_batch(samples))
            accumulate(regression, rows, accumulators[place], weights)
    if not accumulators:
        raise DataError('the data contains no stretch in which one joint moves while all others '
                        'rest; record an excitation of type sine-sequence, or use another method')
    return [(place.motion, data.information()) for place, data in accumulators.items()]


def joint_efforts(experiment: Experiment) -> Information:
    """Return the information in which every joint counts only while it moves alone.

    Raises DataError if there is no such motion.
    """
    data = single_joint_data(experiment)
    sizes = [EXTRA + int(row.sum()) for row in experiment.model.structure]
    factors = tuple(
        merge_factors([batch.factors[j] for motion, information in data if motion.moving == j
                for batch in information.batches] or [np.zeros((size, size))])
        for j, size in enumerate(sizes))
    samples = sum(information.samples for _, information in data)
    return replace(data[0][1], batches=(Batch(factors, samples),))


def locked_motions(
    robot: RobotModel, recordings: Iterable[Samples]
) -> list[LockedJointsMotion]:
    """Return the single-joint motions in `recordings`, one per joint and configuration."""
    places: list[LockedPlace] = []
    for samples in recordings:
        for moving, rows in single_joint_rows(robot, samples):
            place = _place(robot, places, moving, samples.position[rows])
            if place not in places:
                places.append(place)
    return [place.motion for place in places]


def _place(
    robot: RobotModel, places: Iterable[LockedPlace], moving: int, position: FloatArray
) -> LockedPlace:
    """Return the place of a stretch with `position` (N, n): an existing one, or a new one."""
    near = np.where(np.asarray(robot.types) == PRISMATIC, SAME_PRISMATIC, SAME_CONFIGURATION)
    near[moving] = np.inf
    mean, angle = position.mean(axis=0), position[:, moving]
    for place in places:
        if place.moving == moving and np.all(np.abs(place.position - mean) < near):
            place.lower = min(place.lower, float(angle.min()))
            place.upper = max(place.upper, float(angle.max()))
            return place
    return LockedPlace(moving, mean, float(angle.min()), float(angle.max()))


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Samples in which `joint` moves alone, and their motions with locked joints."""

    joint: int
    recordings: tuple[Samples, ...]
    motions: tuple[LockedJointsMotion, ...]


def joint_motions(robot: RobotModel, recordings: Iterable[Samples]) -> tuple[JointMotion, ...]:
    """Return the single-joint motion of every joint that moves alone in the `recordings`."""
    parts: dict[int, list[Samples]] = {}
    all_samples = list(recordings)
    for samples in all_samples:
        mask = single_joint_mask(robot, samples)
        for joint in np.flatnonzero(mask.any(axis=0)).tolist():
            parts.setdefault(joint, []).append(_of_whole(samples, mask[:, joint]))
    motions = locked_motions(robot, all_samples)
    return tuple(JointMotion(joint, tuple(samples_of_joint),
                           tuple(m for m in motions if m.moving == joint))
                 for joint, samples_of_joint in sorted(parts.items()))


def _of_whole(samples: Samples, mask: NDArray[np.bool_]) -> Samples:
    """Return the samples of a `mask` (N,), with their whole recording as history."""
    if samples.whole is None or samples.rows is None:
        return samples.inner(mask)
    rows = np.zeros(len(samples.whole), dtype=bool)
    rows[samples.rows[mask]] = True
    return samples.whole.inner(rows)


@dataclass(frozen=True, eq=False)
class JointEffort(TorqueModel):
    """A torque model of the effort of one `joint` while it moves alone.

    Its columns are the leftmost that this equation separates; their parameters (s,) are
    ``combination`` (s, b) @ base parameters, sums with the ones it does not separate.
    """

    joint: int = 0
    combination: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def during(cls, model: TorqueModel, motion: JointMotion) -> JointEffort:
        """Return the part of `model` that a motion shows."""
        j, reduction = motion.joint, model.reduction
        stage = Stage(model.robot.joints[j], motion.motions, (j,), names_from(model, j))
        parts = decompose(model, stage, Free.everything(len(reduction.pivots)))
        order = np.argsort(parts.solved)  # all parameters in the effort of a joint may be solved
        pivots = parts.solved[order]
        return cls(model.robot, model.blocks, replace(
            reduction, pivots=reduction.pivots[pivots], matrix=reduction.matrix[pivots]), j,
            parts.combination[order])

    @cached_property
    def structure(self) -> NDArray[np.bool_]:
        """Mask (n, b): True if a parameter acts on the effort of the joint."""
        structure = super().structure.copy()
        structure[np.arange(len(structure)) != self.joint] = False
        return structure

    def with_friction(self, friction: JointFriction) -> JointEffort:
        """Return the model extended by `friction`."""
        reduction, count = self.reduction, len(friction.names)
        rows, columns = reduction.matrix.shape
        return replace(self, blocks=(*self.blocks, friction), reduction=replace(
            reduction, standard=(*reduction.standard, *friction.names),
            pivots=np.concatenate([reduction.pivots, columns + np.arange(count)]),
            matrix=np.block([[reduction.matrix, np.zeros((rows, count))],
                             [np.zeros((count, columns)), np.eye(count)]])))


def single_joint_errors(model: TorqueModel, recordings: Iterable[Samples]) -> FloatArray:
    """Return the mean log held-out error (n,) of each joint that moves alone.

    Against its raw effort, averaged over the folds. Raises DataError if a joint has too few
    samples.
    """
    scores = []
    for motion in joint_motions(model.robot, recordings):
        model_of_joint = JointEffort.during(model, motion)
        raw = held_out(Experiment.of(model_of_joint, motion.recordings).information).folds[:,
                                                                                           motion.joint]
        scores.append(float(0.5 * np.mean(np.log(np.maximum(raw, 1e-300)))))
    return np.array(scores or [np.inf])


@dataclass(frozen=True, eq=False)
class JointLoad(Load):
    """The torque that one joint transmits."""

    joint: int = 0

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the load (N, 1) [N m] of the joint in states (N, n)."""
        return super().__call__(q, qd, qdd)[:, [self.joint]]


@dataclass(frozen=True, eq=False)
class JointFrictionData(FrictionData):
    """Data for the friction law of one joint: its effort while it moves alone.

    `loading` (n, 10) are the standard parameters of the links that load it, None for friction
    independent of the load.
    """

    loading: FloatArray | None = None

    @classmethod
    def of(
        cls, frictionless: TorqueModel, motion: JointMotion, loading: FloatArray | None
    ) -> JointFrictionData:
        """Return the data of a motion; `frictionless` contains links and rotors only.

        `loading` (n, 10) as above.
        """
        j, axes = motion.joint, axes_of(frictionless.robot)
        axis = axes.only(j)
        return cls(JointEffort.during(frictionless, motion), axis, motion.recordings, loading)

    def links(self, factors: object, laws: Sequence[FrictionLaw]) -> FloatArray:
        """Return the links (n, 10) that load the joint."""
        assert self.loading is not None
        return self.loading

    def load(self, links: FloatArray | None) -> Load | None:
        """Return the load of the joint with the standard parameters `links` (n, 10), or None."""
        assert isinstance(self.model, JointEffort)
        return None if links is None else JointLoad(self.model.robot, self.axes, links,
                                                  self.model.joint)

    def with_friction(self, friction: JointFriction) -> TorqueModel:
        """Return the model of the effort of the joint extended by `friction`."""
        assert isinstance(self.model, JointEffort)
        return self.model.with_friction(friction)
