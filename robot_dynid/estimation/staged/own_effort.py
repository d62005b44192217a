"""The effort of one joint while it alone moves: stretches of recordings, a model, friction laws.

What holds the other joints meanwhile is friction that no law knows, so of every recording the
equation of the moving joint counts, and of links and rotors what that equation tells apart.
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
    merged,
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

#: motions whose locked joints are this close [rad, m] are in the same configuration
SAME_CONFIGURATION, SAME_PRISMATIC = 0.05, 0.01
#: shorter stretches [s] are the beginning or end of something else
SHORTEST_STRETCH = 0.5


@dataclass(eq=False)
class LockedPlace:
    """One joint moving with the others locked in one configuration, as far as it was seen.

    ``position`` (n,) is the mean of the first stretch, ``lower`` and ``upper`` are the ends of the
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


def own_rows(robot: RobotModel, samples: Samples) -> NDArray[np.bool_]:
    """Return a mask (N, n): where each joint moves alone."""
    found = np.zeros((len(samples), robot.n), dtype=bool)
    for joint, rows in single_joint_rows(robot, samples):
        found[rows, joint] = True
    return found


def single_joint_data(experiment: Experiment) -> list[tuple[LockedJointsMotion, Information]]:
    """Return every single-joint motion in the recordings of ``experiment``, its information.

    In batches of BATCH_SECONDS however short a recording is: of a joint at rest only the variation
    within a batch counts, and many short recordings make enough batches together.

    Raises DataError when there is none.
    """
    model = experiment.model
    found: dict[LockedPlace, Accumulator] = {}
    for samples in experiment.recordings:
        regression = Regression(model, samples)
        weights = row_weights(model.robot, samples, experiment.reversal_weights)
        for moving, rows in single_joint_rows(model.robot, samples):
            place = _place(model.robot, found, moving, samples.position[rows])
            if place not in found:
                found[place] = Accumulator(model.reduction.names, model.structure,
                                           whole_batch(samples))
            accumulate(regression, rows, found[place], weights)
    if not found:
        raise DataError('in no stretch of the data one joint moves while all others rest; record '
                        'an excitation of type sine-sequence, or use another method')
    return [(place.motion, data.information()) for place, data in found.items()]


def own_efforts(experiment: Experiment) -> Information:
    """Return the information in which every joint counts while it alone moves.

    Raises DataError when there is none.
    """
    data = single_joint_data(experiment)
    sizes = [EXTRA + int(own.sum()) for own in experiment.model.structure]
    factors = tuple(
        merged([batch.factors[j] for motion, found in data if motion.moving == j
                for batch in found.batches] or [np.zeros((size, size))])
        for j, size in enumerate(sizes))
    samples = sum(found.samples for _, found in data)
    return replace(data[0][1], batches=(Batch(factors, samples),))


def locked_motions(
    robot: RobotModel, recordings: Iterable[Samples]
) -> list[LockedJointsMotion]:
    """Return the single-joint motions in ``recordings``, one per joint and configuration."""
    found: list[LockedPlace] = []
    for samples in recordings:
        for moving, rows in single_joint_rows(robot, samples):
            place = _place(robot, found, moving, samples.position[rows])
            if place not in found:
                found.append(place)
    return [place.motion for place in found]


def _place(
    robot: RobotModel, found: Iterable[LockedPlace], moving: int, position: FloatArray
) -> LockedPlace:
    """Return the place of a stretch with ``position`` (N, n): one that is known, or a new one."""
    near = np.where(np.asarray(robot.types) == PRISMATIC, SAME_PRISMATIC, SAME_CONFIGURATION)
    near[moving] = np.inf
    mean, own = position.mean(axis=0), position[:, moving]
    for place in found:
        if place.moving == moving and np.all(np.abs(place.position - mean) < near):
            place.lower = min(place.lower, float(own.min()))
            place.upper = max(place.upper, float(own.max()))
            return place
    return LockedPlace(moving, mean, float(own.min()), float(own.max()))


@dataclass(frozen=True, eq=False)
class OwnMotion:
    """Samples in which ``joint`` moves alone, and their motions with locked joints."""

    joint: int
    recordings: tuple[Samples, ...]
    motions: tuple[LockedJointsMotion, ...]


def own_motions(robot: RobotModel, recordings: Iterable[Samples]) -> tuple[OwnMotion, ...]:
    """Return the motion of every joint that moves alone in one of the ``recordings``."""
    parts: dict[int, list[Samples]] = {}
    known = list(recordings)
    for samples in known:
        own = own_rows(robot, samples)
        for joint in np.flatnonzero(own.any(axis=0)).tolist():
            parts.setdefault(joint, []).append(_of_whole(samples, own[:, joint]))
    motions = locked_motions(robot, known)
    return tuple(OwnMotion(joint, tuple(found), tuple(m for m in motions if m.moving == joint))
                 for joint, found in sorted(parts.items()))


def _of_whole(samples: Samples, mask: NDArray[np.bool_]) -> Samples:
    """Return the samples of a ``mask`` (N,), which know all of their recording."""
    if samples.whole is None or samples.rows is None:
        return samples.inner(mask)
    kept = np.zeros(len(samples.whole), dtype=bool)
    kept[samples.rows[mask]] = True
    return samples.whole.inner(kept)


@dataclass(frozen=True, eq=False)
class OwnEffort(TorqueModel):
    """A torque model of which the equation of ``joint`` counts while it alone moves.

    Kept are the leftmost columns that this equation tells apart; their parameters (s,) are
    ``combination`` (s, b) @ base parameters, sums with those that it does not tell from them.
    """

    joint: int = 0
    combination: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def during(cls, model: TorqueModel, motion: OwnMotion) -> OwnEffort:
        """Return the part of ``model`` that a motion shows."""
        j, reduction = motion.joint, model.reduction
        stage = Stage(model.robot.joints[j], motion.motions, (j,), names_from(model, j))
        found = decompose(model, stage, Free.everything(len(reduction.pivots)))
        order = np.argsort(found.solved)  # whatever enters the effort of a joint may be solved
        own = found.solved[order]
        return cls(model.robot, model.blocks, replace(
            reduction, pivots=reduction.pivots[own], matrix=reduction.matrix[own]), j,
            found.combination[order])

    @cached_property
    def structure(self) -> NDArray[np.bool_]:
        """Matrix (n, b): true where a parameter enters the effort of the joint."""
        found = super().structure.copy()
        found[np.arange(len(found)) != self.joint] = False
        return found

    def with_friction(self, friction: JointFriction) -> OwnEffort:
        """Return the model with the parameters of ``friction`` beside its own."""
        known, count = self.reduction, len(friction.names)
        rows, columns = known.matrix.shape
        return replace(self, blocks=(*self.blocks, friction), reduction=replace(
            known, standard=(*known.standard, *friction.names),
            pivots=np.concatenate([known.pivots, columns + np.arange(count)]),
            matrix=np.block([[known.matrix, np.zeros((rows, count))],
                             [np.zeros((count, columns)), np.eye(count)]])))


def own_errors(model: TorqueModel, recordings: Iterable[Samples]) -> FloatArray:
    """Return the logarithm (n,) of the held-out error of each joint that moves alone.

    Against its own raw effort, the mean of the folds. Raises DataError where a joint has too few
    samples.
    """
    scores = []
    for motion in own_motions(model.robot, recordings):
        own = OwnEffort.during(model, motion)
        raw = held_out(Experiment.of(own, motion.recordings).information).folds[:, motion.joint]
        scores.append(float(0.5 * np.mean(np.log(np.maximum(raw, 1e-300)))))
    return np.array(scores or [np.inf])


@dataclass(frozen=True, eq=False)
class OwnLoad(Load):
    """The torque that one joint transmits."""

    joint: int = 0

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the load (N, 1) [N m] of the joint in states (N, n)."""
        return super().__call__(q, qd, qdd)[:, [self.joint]]


@dataclass(frozen=True, eq=False)
class OwnFrictionData(FrictionData):
    """Data for the friction law of one joint: its own effort while it moves alone.

    ``loading`` (n, 10) are the standard parameters of the links that load it, None where friction
    is not to depend on the load.
    """

    loading: FloatArray | None = None

    @classmethod
    def of(
        cls, frictionless: TorqueModel, motion: OwnMotion, loading: FloatArray | None
    ) -> OwnFrictionData:
        """Return the data of a motion; ``frictionless`` has links and rotors only.

        ``loading`` (n, 10) as above.
        """
        j, axes = motion.joint, axes_of(frictionless.robot)
        own = axes.only(j)
        return cls(OwnEffort.during(frictionless, motion), own, motion.recordings, loading)

    def links(self, factors: object, laws: Sequence[FrictionLaw]) -> FloatArray:
        """Return the links (n, 10) that load the joint."""
        assert self.loading is not None
        return self.loading

    def load(self, links: FloatArray | None) -> Load | None:
        """Return the load of the joint with the standard parameters ``links`` (n, 10), if any."""
        assert isinstance(self.model, OwnEffort)
        return None if links is None else OwnLoad(self.model.robot, self.axes, links,
                                                  self.model.joint)

    def with_friction(self, friction: JointFriction) -> TorqueModel:
        """Return the model of the joint's own effort with the parameters of ``friction``."""
        assert isinstance(self.model, OwnEffort)
        return self.model.with_friction(friction)
