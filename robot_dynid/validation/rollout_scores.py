"""Rollouts of a model along recordings: how far its motion runs from the measured one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import rollout
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.stacked import drive_effort, per_joint
from robot_dynid.types import FloatArray, Samples

#: length of a rollout [s], and rollouts of a recording at most: evenly spaced, side by side
ROLLOUT_SECONDS, MOST_ROLLOUTS = 0.5, 32
#: positions and velocities (K, m, n) of the joints
Motions = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class RolloutScore:
    """Errors of ``count`` rollouts of ``seconds``, root mean square over all their samples.

    ``position`` and ``velocity`` (n,) rad, rad/s (m, m/s); ``stopped`` rollouts, which the model
    could not go on with, do not count.
    """

    seconds: float
    count: int
    stopped: int
    position: FloatArray
    velocity: FloatArray

    @classmethod
    def of(
        cls, errors: Sequence[FloatArray], seconds: float = ROLLOUT_SECONDS
    ) -> RolloutScore | None:
        """Return the score of mean squared errors (K, 2 n); None where there are none."""
        if not sum(map(len, errors)):
            return None
        found = np.concatenate(errors)
        known = np.isfinite(found).all(axis=1)
        if known.any():
            size = np.sqrt(found[known].mean(axis=0))
        else:
            size = np.full(found.shape[1], np.inf)
        n = len(size) // 2
        return cls(seconds, len(found), int(np.sum(~known)), size[:n], size[n:])


@dataclass(frozen=True, eq=False)
class Stretches:
    """K stretches of a recording of ``robot``, m steps long, that motions are compared with.

    ``position`` and ``velocity`` (K, m + 1, c) of its coordinates are measured ones; ``effort``
    (K, m, n) [N m] is that of the drives and from outside, filtered as these, held for ``step``
    [s] each.
    """

    robot: RobotModel
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    step: float

    @classmethod
    def along(cls, robot: RobotModel, samples: Samples, seconds: float) -> Stretches | None:
        """Return those of ``seconds``, MOST_ROLLOUTS at most, evenly spaced; None without any.

        They begin ROLLOUT_SECONDS or more apart, so longer ones overlap.
        """
        if len(samples) < 2:
            return None
        step = float(np.median(np.diff(samples.time)))
        steps, apart = (max(1, round(s / step)) for s in (seconds, min(seconds, ROLLOUT_SECONDS)))
        starts = [first for own in samples.segments
                  for first in range(own.start, own.stop - steps, apart)]
        if not starts:
            return None
        chosen = np.array(starts)[::-(-len(starts) // MOST_ROLLOUTS)]
        rows = chosen[:, None] + np.arange(steps + 1)
        effort = drive_effort(robot, samples.gridded)
        if samples.external is not None:
            effort = effort + samples.external
        held = 0.5 * (effort[rows[:, :-1]] + effort[rows[:, 1:]])
        return cls(robot, samples.position[rows], samples.velocity[rows], held, step)

    def rollouts(self, model: IdentifiedModel) -> Motions:
        """Return the motions of the model from the first states on, NaN where one stops.

        Raises ModelError for gears that cannot be.
        """
        states = [per_joint(self.robot, both[:, 0]) for both in (self.position, self.velocity)]
        joints, motors = ([side[i] for side in states] for i in range(2))
        start = [*joints, *motors] if model.elastic_joints else joints
        found = rollout(model, start, self.effort, self.step)
        return found.position, found.velocity

    def at_constant_velocity(self) -> Motions:
        """Return the motions of joints that go on as they begin."""
        n = self.robot.n
        q, qd = self.position[:, :1, :n], self.velocity[:, :1, :n]
        time = self.step * np.arange(1.0, self.position.shape[1])[:, None]
        return q + qd * time, np.broadcast_to(qd, (len(qd), len(time), n))

    def errors(self, motions: Motions, seconds: float) -> FloatArray:
        """Return the mean squared errors (K, 2 n) of the first ``seconds``, NaN where one stops.
        """
        n, steps = self.robot.n, max(1, round(seconds / self.step))
        off = np.concatenate([
            motion[:, :steps] - measured[:, 1:steps + 1, :n] for motion, measured in zip(
                motions, (self.position, self.velocity), strict=True)], axis=2)
        return np.asarray(np.mean(off**2, axis=1))


def rollouts_along(model: IdentifiedModel, samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Return the mean squared errors (K, 2 n) of rollouts of ROLLOUT_SECONDS, NaN where one stops.

    They begin at measured states, under the measured effort, filtered as these; beside them those
    (K, 2 n) of joints that go on at constant velocity. None (0, 2 n) of elastic joints, whose
    gears may be such as cannot be: see `forward_scores`; nor of joints that move others.
    """
    single = not model.elastic_joints and model.robot.linkage is None
    stretches = None if not single else Stretches.along(
        model.robot, samples, ROLLOUT_SECONDS)
    if stretches is None:
        return np.empty((0, 2 * model.robot.n)), np.empty((0, 2 * model.robot.n))
    return (stretches.errors(stretches.rollouts(model), ROLLOUT_SECONDS),
            stretches.errors(stretches.at_constant_velocity(), ROLLOUT_SECONDS))
