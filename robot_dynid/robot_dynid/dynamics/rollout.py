"""Rollouts: motions of a robot under given efforts, many at once; the loops are in the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels import rollout, single_state
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.robot.model import Limits, RobotModel
from robot_dynid.threads import shared_out, thread_count
from robot_dynid.types import FloatArray, Progress, contiguous

#: longest internal step [s]; longer samples are divided
INTERNAL_STEP = 1e-3
#: internal steps per call of the kernel, motions counted in whole tiles: 20 to 500 ms
STEPS_AT_ONCE = 20_000
#: least number of internal steps [1 us each] per thread
THREAD_STEPS = 256
#: remedy for physically infeasible parameters
FEASIBLE = 'identify with --method feasible, which yields only parameters of real bodies'
CAUSES = {
    rollout.INDEFINITE:
        'the mass matrix is not positive definite there, which least squares does not guarantee; '
        f'{FEASIBLE}',
    rollout.OVERFLOW: 'the state overflows: check the units of the efforts',
}


@dataclass(frozen=True, eq=False)
class Rollout:
    """K motions of T samples; unpacks as ``position, velocity``.

    ``position`` and ``velocity`` (K, T, n) at the end of each sample, rad and rad/s (m, m/s).
    Joint limits do not stop a motion: ``limit_step`` (K,) is the sample in which a joint first
    exceeds them and ``limit_joint`` (K,) its index, both -1 if none does. ``stop_step`` (K,) is
    the first sample that could not be computed, -1 if all were; the state is NaN from there on and
    ``stop_cause`` (K,) is the reason, a key of CAUSES or 0. ``motor_position`` and
    ``motor_velocity`` (K, T, n) are those of the motors if joints are elastic, else None.
    """

    joints: tuple[str, ...]
    position: FloatArray
    velocity: FloatArray
    limit_step: NDArray[np.int64]
    limit_joint: NDArray[np.int64]
    stop_step: NDArray[np.int64]
    stop_cause: NDArray[np.int64]
    motor_position: FloatArray | None = None
    motor_velocity: FloatArray | None = None

    def take_events(self, piece: Rollout, motions: slice, sample: int) -> None:
        """Record the events of a ``piece`` of these motions that began at ``sample``."""
        for step, *others in (('limit_step', 'limit_joint'), ('stop_step', 'stop_cause')):
            recorded, later = getattr(self, step)[motions], getattr(piece, step)
            new = (recorded < 0) & (later >= 0)
            for name in others:
                getattr(self, name)[motions][new] = getattr(piece, name)[new]
            recorded[new] = sample + later[new]

    @classmethod
    def empty(cls, joints: tuple[str, ...], shape: tuple[int, ...]) -> Rollout:
        """Return arrays for ``shape`` (K, T, n) without events."""
        limit_step, limit_joint, stop_step = np.full((3, shape[0]), -1, dtype=np.int64)
        return cls(joints, np.empty(shape), np.empty(shape), limit_step, limit_joint, stop_step,
                   np.zeros(shape[0], dtype=np.int64))

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self.position, self.velocity))

    def of_joints(self, elastic: Sequence[int]) -> Rollout:
        """Return motions of joints and ``elastic`` motors as motions of the n joints.

        A rigid joint turns with its motor.
        """
        n = self.position.shape[2] - len(elastic)
        motors = np.arange(n)
        motors[list(elastic)] = n + np.arange(len(elastic))
        return replace(
            self, position=self.position[..., :n].copy(), velocity=self.velocity[..., :n].copy(),
            motor_position=self.position[..., motors], motor_velocity=self.velocity[..., motors])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Motions that exceeded the joint limits or stopped: their number, and the first of each.
"""
        messages = []
        count = len(self.limit_step)
        outside = np.flatnonzero(self.limit_step >= 0)
        stopped = np.flatnonzero(self.stop_step >= 0)
        if len(outside):
            k = outside[0]
            messages.append(f'{len(outside)} of {count} motions exceed the joint limits, first '
                            f'at {self.joints[self.limit_joint[k]]} in motion {k}, sample '
                            f'{self.limit_step[k]}')
        if len(stopped):
            k = stopped[0]
            messages.append(f'{len(stopped)} of {count} motions stop, the first in motion {k}, '
                            f'sample {self.stop_step[k]}: {CAUSES[int(self.stop_cause[k])]}')
        return tuple(messages)


def step_count(dt: float) -> int:
    """Return the number of internal steps in a sample of ``dt`` [s]."""
    return max(1, int(np.ceil(dt / INTERNAL_STEP - 1e-9)))


def limit_table(limits: Limits) -> FloatArray:
    """Return lower and upper limits (2, n), infinite where unknown."""
    return np.array([np.where(np.isnan(limits.lower), -np.inf, limits.lower),
                     np.where(np.isnan(limits.upper), np.inf, limits.upper)])


class Integrator:
    """Integrator of the motions of one robot, prepared for many calls.

    ``parameters`` (n, 10) standard parameters; ``rotors`` or their inertia (N, N) kg m^2. With
    ``gears`` the N coordinates are the n joints, then the motors of elastic joints: all arrays
    have N columns. Hysteresis of gears begins relaxed. Friction is that of steady sliding;
    load-dependent friction uses the load without acceleration. Source of the scheme: see the
    kernel.
    """

    def __init__(self, robot: RobotModel, parameters: FloatArray, rotors: Rotors | FloatArray,
                 friction: AxisFriction, gears: Gears | None = None) -> None:
        parents = np.array(robot.parents, dtype=np.int64)
        parents.flags.writeable = False
        self._joints = robot.joints
        spinning = Rotors.of(rotors)
        self._tree = (robot.geometry, parents, contiguous(parameters), spinning.tables)
        self._gravity = contiguous(robot.gravity)
        axes, straight, *others = friction.tables
        self._friction = (contiguous(axes), contiguous(straight), *others)
        self._gears = None if gears is None else (
            contiguous(gears.table(robot.n)), contiguous(gears.states))
        limits, motors = limit_table(robot.limits), len(spinning.inertia) - robot.n
        open_ended = np.array([[-np.inf], [np.inf]])
        self._limits = contiguous(np.hstack([limits, np.repeat(open_ended, motors, axis=1)]))

    def __call__(self, q0: FloatArray, qd0: FloatArray, effort: FloatArray, dt: float,
                 progress: Progress | None = None) -> Rollout:
        """Return the motions from float states (K, n) under effort (K, T, n), held for ``dt`` [s].

        ``progress`` is called after every STEPS_AT_ONCE steps; an exception of it ends the work.
        """
        result = Rollout.empty(self._joints, effort.shape)
        (motions, samples, _), steps = effort.shape, step_count(dt)
        hysteresis = 0 if self._gears is None else len(self._gears[1])
        whole = STEPS_AT_ONCE // (LANES * samples * steps) if samples else 1
        parallel = max(1, min(
            thread_count(), -(-motions // LANES), STEPS_AT_ONCE // (LANES * steps)))
        tiles = max(parallel, whole)
        length = max(1, STEPS_AT_ONCE // (LANES * parallel * steps))
        max_count = max(1, STEPS_AT_ONCE // (LANES * parallel))
        for k in range(0, motions, tiles * LANES):
            group = slice(k, min(k + tiles * LANES, motions))
            state = q0[group], qd0[group], np.zeros((group.stop - k, hysteresis))
            for t in range(0, samples, length):
                held = effort[group, t:t + length]
                for done in range(0, steps, max_count):  # several only for long samples
                    count = min(max_count, steps - done)
                    piece = self._piece(state, held, dt / steps, count)
                    result.take_events(piece, group, t)
                    state = piece.position[:, -1], piece.velocity[:, -1], state[2]
                    if progress is not None:
                        part = (t + held.shape[1] * (done + count) / steps) / samples
                        progress('rollout', (k + (group.stop - k) * part) / motions)
                result.position[group, t:t + length] = piece.position
                result.velocity[group, t:t + length] = piece.velocity
        return result

    def _piece(self, state: tuple[FloatArray, FloatArray, FloatArray], effort: FloatArray,
               step: float, count: int) -> Rollout:
        """Return the motions from ``state`` with ``count`` internal steps per sample.

        ``state``: position, velocity and the states of gears, which are updated in place.
        """
        q0, qd0, past = state
        result = Rollout.empty(self._joints, effort.shape)
        arrays = (result.position, result.velocity, past)
        events = (result.limit_step, result.limit_joint, result.stop_step, result.stop_cause)
        kernel, lanes = (rollout, LANES) if len(q0) > single_state.FEW else (single_state, 1)

        def compute(part: slice) -> None:
            gears = _with_memory(self._gears, effort.shape[2], lanes)
            kernel.rollout(
                self._tree, self._gravity, (*self._friction, gears), self._limits,
                (contiguous(q0[part]), contiguous(qd0[part])), contiguous(effort[part]),
                (step, count), tuple(array[part] for array in arrays),
                tuple(array[part] for array in events))

        shared_out(compute, len(q0), LANES, max(LANES, THREAD_STEPS // (count * effort.shape[1])))
        return result


def _with_memory(
    tables: tuple[FloatArray, FloatArray] | None, n: int, lanes: int
) -> tuple[FloatArray, ...] | None:
    """Return ``tables`` of gears with work memory for ``lanes`` motions; None for None."""
    if tables is None:
        return None
    e, k = len(tables[0]), len(tables[1])
    return (*tables, *(np.zeros((*rows, lanes)) for rows in ((e,), (k,), (e, 3), (n,), (1,))))
