"""Rollouts of a model along recordings: distance of its motion from the measured one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.errors import ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import rollout
from robot_dynid.robot.implausible import described
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.signals.stacked import drive_effort, per_joint
from robot_dynid.types import FloatArray, Samples

#: length of a rollout [s], and largest number per recording: evenly spaced
ROLLOUT_SECONDS, MOST_ROLLOUTS = 0.5, 32
#: predictors of motions: the model, nominal inertials with fitted friction, no model
MODEL, CONTROL, CONSTANT_VELOCITY = 'model', 'control', 'constant_velocity'
#: lengths [s] of open-loop motions, of which the longest that fits into a recording is taken
OPEN_LOOP_SECONDS = (2.0, 1.0, 0.5)
#: instants [s] at which errors of open-loop motions are taken
INSTANTS = tuple(0.1 * k for k in range(1, 21))
#: points at which an open-loop motion is drawn
DRAWN_POINTS = 41
#: step [s] in which a simulated position servo computes its torque: a sixteenth of a radian of the
#: oscillation of a hobby servo on its rotor
SERVO_STEP = 2e-3
#: positions and velocities (K, m, n) of the joints
Motions = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class RolloutScore:
    """RMS errors of ``count`` rollouts of ``seconds`` over all their samples.

    ``position`` and ``velocity`` (n,) rad, rad/s (m, m/s); ``stopped`` rollouts, which the model
    could not continue, do not count.
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
        squares = np.concatenate(errors)
        complete = np.isfinite(squares).all(axis=1)
        if complete.any():
            size = np.sqrt(squares[complete].mean(axis=0))
        else:
            size = np.full(squares.shape[1], np.inf)
        n = len(size) // 2
        return cls(seconds, len(squares), int(np.sum(~complete)), size[:n], size[n:])


@dataclass(frozen=True, eq=False)
class Stretches:
    """K stretches of a recording of ``robot``, m steps long, to compare motions with.

    They begin at ``start`` (K,) [s]; ``position`` and ``velocity`` (K, m + 1, c) of its
    coordinates are measured; ``effort`` (K, m, n) [N m] is that of the drives and from outside,
    filtered like these, held for ``step`` [s] each; of position servos it is ``command`` (K, m, n)
    [rad, m] that is held.
    """

    robot: RobotModel
    start: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    step: float
    command: FloatArray | None = None

    @classmethod
    def along(cls, robot: RobotModel, samples: Samples, seconds: float) -> Stretches | None:
        """Return stretches of ``seconds``, at most MOST_ROLLOUTS, evenly spaced; None without any.

        They begin ROLLOUT_SECONDS or more apart, so longer ones overlap.
        """
        if len(samples) < 2:
            return None
        step = float(np.median(np.diff(samples.time)))
        steps, apart = (max(1, round(s / step)) for s in (seconds, min(seconds, ROLLOUT_SECONDS)))
        starts = [first for segment in samples.segments
                  for first in range(segment.start, segment.stop - steps, apart)]
        if not starts:
            return None
        chosen = np.array(starts)[::-(-len(starts) // MOST_ROLLOUTS)]
        rows = chosen[:, None] + np.arange(steps + 1)
        effort = drive_effort(robot, samples.gridded)
        if samples.external is not None:
            effort = effort + samples.external

        def held(values: FloatArray) -> FloatArray:
            return np.asarray(0.5 * (values[rows[:, :-1]] + values[rows[:, 1:]]))

        command = samples.reference_position if robot.drive.kind == POSITION_ERROR else None
        return cls(robot, samples.time[chosen], samples.position[rows], samples.velocity[rows],
                   held(effort), step, None if command is None else held(command))

    def rollouts(self, model: IdentifiedModel) -> Motions:
        """Return the motions of the model from the first states, NaN after one stops.

        Position servos follow the commands. Raises ModelError for impossible gears.
        """
        if self.command is not None:
            return self._follow(model, self.command)
        states = [per_joint(self.robot, both[:, 0]) for both in (self.position, self.velocity)]
        joints, motors = ([side[i] for side in states] for i in range(2))
        start = [*joints, *motors] if model.elastic_joints else joints
        motions = rollout(model, start, self.effort, self.step)
        return motions.position, motions.velocity

    def _follow(self, model: IdentifiedModel, command: FloatArray) -> Motions:
        """Return the motions under ``command`` (K, m, n) [rad], with the servos in the loop."""
        drive, gains = self.robot.drive, self.robot.torque_factors
        assert drive.error_limit is not None
        late = 0.0 if drive.derivative_time is None else drive.derivative_time
        count = -(-self.step // SERVO_STEP)
        h = self.step / count
        q, qd = self.position[:, 0], self.velocity[:, 0]
        position, velocity = np.empty_like(command), np.empty_like(command)
        for k in range(command.shape[1]):
            for _ in range(int(count)):  # the error in the middle of the step
                error = command[:, k] - q - (0.5 * h + late) * qd
                torque = gains * np.clip(error, -drive.error_limit, drive.error_limit)
                motion = rollout(model, [q, qd], torque[:, None, :], h)
                q, qd = motion.position[:, 0], motion.velocity[:, 0]
            position[:, k], velocity[:, k] = q, qd
        return position, velocity

    def at_constant_velocity(self) -> Motions:
        """Return the motions of joints that continue at their initial velocity."""
        n = self.robot.n
        q, qd = self.position[:, :1, :n], self.velocity[:, :1, :n]
        time = self.step * np.arange(1.0, self.position.shape[1])[:, None]
        return q + qd * time, np.broadcast_to(qd, (len(qd), len(time), n))

    def distances(self, positions: FloatArray) -> FloatArray:
        """Return the errors of the ``positions`` (K, m, n) of motions at INSTANTS.

        (K, H, n + 1): joints [rad, m], then the tip [m]; NaN where a motion stops or ends earlier.
        """
        n, gaps = self.robot.n, np.full(
            (len(positions), len(INSTANTS), self.robot.n + 1), np.nan)
        rows = np.maximum(np.round(np.array(INSTANTS) / self.step).astype(np.int64), 1) - 1
        rows = rows[rows < positions.shape[1]]
        reached, measured = positions[:, rows], self.position[:, rows + 1, :n]
        gaps[:, :len(rows), :n] = np.abs(reached - measured)
        ran = np.isfinite(reached).all(axis=2)
        off = tip_positions(self.robot, reached[ran]) - tip_positions(self.robot, measured[ran])
        gaps[:, :len(rows), n][ran] = np.linalg.norm(off, axis=1)
        return gaps

    def errors(self, motions: Motions, seconds: float) -> FloatArray:
        """Return the mean squared errors (K, 2 n) of the first ``seconds``, NaN if a motion stops.
        """
        n, steps = self.robot.n, max(1, round(seconds / self.step))
        off = np.concatenate([
            motion[:, :steps] - measured[:, 1:steps + 1, :n] for motion, measured in zip(
                motions, (self.position, self.velocity), strict=True)], axis=2)
        return np.asarray(np.mean(off**2, axis=1))


def rollouts_along(model: IdentifiedModel, samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Return the mean squared errors (K, 2 n) of rollouts of ROLLOUT_SECONDS, NaN if one stops.

    They begin at measured states, under the measured effort, filtered like these; also those (K, 2
    n) of joints that continue at constant velocity. Empty (0, 2 n) for elastic joints, whose gears
    may be impossible (see `forward_scores`), and for joints that move others.
    """
    single = not model.elastic_joints and model.robot.linkage is None
    stretches = None if not single else Stretches.along(
        model.robot, samples, ROLLOUT_SECONDS)
    if stretches is None:
        return np.empty((0, 2 * model.robot.n)), np.empty((0, 2 * model.robot.n))
    return (stretches.errors(stretches.rollouts(model), ROLLOUT_SECONDS),
            stretches.errors(stretches.at_constant_velocity(), ROLLOUT_SECONDS))


@dataclass(frozen=True, eq=False)
class OpenLoopMotions:
    """Motions simulated from measured states under the measured effort.

    ``distances`` (K, H, n + 1) from the measured motion at INSTANTS, see `Stretches.distances`, by
    MODEL and CONTROL. Of those that do not overlap, for figures: ``time`` (k, P) [s] since the
    beginning of the recording, and the ``measured`` and simulated ``positions`` (k, P, n) [rad,
    m].
    """

    distances: Mapping[str, FloatArray]
    time: FloatArray
    measured: FloatArray
    positions: Mapping[str, FloatArray]

    @classmethod
    def of(cls, stretches: Stretches, motions: Mapping[str, Motions], began: float
           ) -> OpenLoopMotions:
        """Return those of ``motions`` along ``stretches`` of a recording that ``began`` [s]."""
        n, count = stretches.robot.n, stretches.position.shape[1]
        apart, last = [], -np.inf
        for k, start in enumerate(stretches.start.tolist()):
            if start >= last:
                apart.append(k)
                last = start + (count - 1) * stretches.step
        rows = np.unique(np.linspace(0, count - 1, DRAWN_POINTS).astype(np.int64))
        start = stretches.position[:, :1, :n]
        whole = {name: np.concatenate([start, simulated], axis=1)
                 for name, (simulated, _) in motions.items()}
        return cls(
            {name: stretches.distances(simulated) for name, (simulated, _) in motions.items()},
            stretches.start[apart, None] + stretches.step * rows - began,
            stretches.position[apart][:, rows, :n],
            {name: simulated[apart][:, rows] for name, simulated in whole.items()})


@dataclass(frozen=True, eq=False)
class OpenLoopErrors:
    """RMS errors of open-loop motions over INSTANTS, by MODEL and CONTROL.

    ``errors`` (H, n + 1): joints [rad, m], then the tip [m], NaN where no motion is as long; of
    ``count`` motions, ``stopped`` of which the model could not continue.
    """

    errors: Mapping[str, FloatArray]
    count: int
    stopped: int

    @classmethod
    def of(cls, recordings: Sequence[OpenLoopMotions]) -> OpenLoopErrors | None:
        """Return the errors over all recordings, None without a motion."""
        if not recordings:
            return None
        names = [name for name in (MODEL, CONTROL)
                 if all(name in one.distances for one in recordings)]
        by_model = {name: np.concatenate([one.distances[name] for one in recordings])
                    for name in names}
        ran = np.isfinite(by_model[MODEL][:, 0]).all(axis=1)
        return cls({name: _root_mean_square(rows) for name, rows in by_model.items()},
                   len(ran), int(np.sum(~ran)))


def _root_mean_square(distances: FloatArray) -> FloatArray:
    """Return the root mean square (H, m) of the finite part of (K, H, m), NaN for none."""
    finite = np.isfinite(distances)
    total = np.sum(np.where(finite, distances, 0.0)**2, axis=0)
    count = finite.sum(axis=0)
    return np.asarray(np.sqrt(np.divide(
        total, count, out=np.full_like(total, np.nan), where=count > 0)))


class OpenLoop:
    """Simulates a model, and nominal inertials with fitted friction, along recordings.

    ``reason`` states why the model is not simulated, '' if it is.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        self._models = {MODEL: model}
        control, _ = control_model(model)
        if control is not None:
            self._models[CONTROL] = control
        self.reason = ''
        if model.not_identified:
            self.reason = 'a simulation moves all joints at once, and the model refuses ' \
                f'{", ".join(model.not_identified)}'
        elif model.robot.linkage is not None:
            self.reason = 'simulations do not cover joints that move others'

    def along(self, samples: Samples) -> OpenLoopMotions | None:
        """Return the motions along ``samples``, or None, see ``reason``."""
        model = self._models[MODEL]
        if self.reason:
            return None
        if model.elastic_joints and samples.external is not None:
            self.reason = 'simulations of elastic joints take no external wrench'
            return None
        stretches = next((candidate for seconds in OPEN_LOOP_SECONDS if (
            candidate := Stretches.along(model.robot, samples, seconds)) is not None), None)
        if stretches is None:
            return None
        try:
            motions = {name: stretches.rollouts(one) for name, one in self._models.items()}
        except ModelError as error:
            self.reason = str(error)
            return None
        return OpenLoopMotions.of(stretches, motions, float(samples.time[0]))


def control_model(model: IdentifiedModel) -> tuple[IdentifiedModel | None, str]:
    """Return the model of nominal inertials with fitted friction, or None with the reason."""
    if not described(model.robot).any():
        return None, ''
    control = replace(model, values=model.control, feasible=None, not_identified=())
    poses = np.zeros((1, model.robot.n))
    try:
        if model.elastic_joints:
            control.elastic_motion.accelerations(poses, poses, poses, poses, poses)
        else:
            control.accelerations(poses, poses, poses)
    except ModelError as error:
        return None, f'nominal inertials with fitted friction are not compared: {error}'
    return control, ''
