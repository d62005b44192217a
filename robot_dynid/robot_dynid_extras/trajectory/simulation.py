"""Simulated intervals with their sensitivities: by the scheme of the rollout, many side by side.

What is simulated is the discrete scheme, and its own derivatives are returned. So the cost of a
fit and its gradient belong to each other whatever the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.kernels.rollout import EXPLICIT, IMPLICIT, STAGES
from robot_dynid.kernels.shooting import solve_stage, stage_gradient
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.arm import Arm, ArmModel
from robot_dynid_extras.trajectory.intervals import Intervals, intervals_of

#: longest internal step [s]: signals are below the cut-off, and friction is implicit
LONGEST_STEP = 5e-3
#: when within a step a stage takes the effort, and when friction
NODES, IMPLICIT_NODES = EXPLICIT.sum(axis=1), IMPLICIT.sum(axis=1)


@dataclass(frozen=True, eq=False)
class Simulated:
    """States (K, m + 1, 2 n) of intervals: position and velocity; NaN once they are not finite.

    ``gradient`` (K, m + 1, 2 n, b + 2 n) in the base parameters and the initial state, None where
    it was not asked for.
    """

    states: FloatArray
    gradient: FloatArray | None = None


def simulate(
    arm: Arm, intervals: Intervals, start: FloatArray, with_gradient: bool = False
) -> Simulated:
    """Simulate intervals from states ``start`` (K, 2 n) under their measured effort."""
    run = _Run(arm, intervals)
    n, count = intervals.position.shape[2], intervals.steps + 1
    states = np.empty((len(intervals), count, 2 * n))
    states[:, 0] = start
    derivatives = _Derivatives(run) if with_gradient else None
    size = len(arm.values) + 2 * n
    gradient = np.empty((len(intervals), count, 2 * n, size)) if derivatives else None
    if derivatives is not None and gradient is not None:
        derivatives.keep(gradient[:, 0])
    state = start[:, :n].copy(), start[:, n:].copy()
    with np.errstate(all='ignore'):
        for t in range(intervals.steps):
            for part in range(run.parts):
                state = run.step((t, part), state, derivatives)
            states[:, t + 1, :n], states[:, t + 1, n:] = state
            if derivatives is not None and gradient is not None:
                derivatives.keep(gradient[:, t + 1])
    return Simulated(states, gradient)


def interpolation(place: float) -> FloatArray:
    """Return weights (4,) of the samples at -1, 0, 1, 2 for a ``place`` from 0 to 1 (cubic)."""
    x = place
    return np.array([-x * (x - 1.0) * (x - 2.0) / 6.0, (x + 1.0) * (x - 1.0) * (x - 2.0) / 2.0,
                     -(x + 1.0) * x * (x - 2.0) / 2.0, (x + 1.0) * x * (x - 1.0) / 6.0])


@dataclass(frozen=True, eq=False)
class _Stage:
    """A solved stage: number, sample and weights (4,) of its effort; what goes into derivatives.

    ``position``, ``moving`` and ``acceleration`` (K, n) of links and rotors; ``motion``: velocity
    of friction, that measured (K, n) and loads (K, a); ``solved``: slopes (K, a), factors.
    """

    number: int
    sample: int
    weights: FloatArray
    position: FloatArray
    moving: FloatArray
    acceleration: FloatArray
    motion: tuple[FloatArray, FloatArray, FloatArray]
    solved: tuple[FloatArray, FloatArray]


class _Run:
    """A simulation of an arm in intervals; ``parts`` internal steps of ``h`` [s] in a sample."""

    def __init__(self, arm: Arm, intervals: Intervals) -> None:
        self.arm, self.data = arm, intervals
        self.parts = max(1, int(np.ceil(intervals.step / LONGEST_STEP - 1e-9)))
        self.h = intervals.step / self.parts
        self.friction = (*arm.model.sliding.tables, arm.values[arm.model.frictional])
        beside = arm.values[~arm.model.moving]
        self.left = intervals.effort - intervals.columns @ beside

    def _at(self, signal: FloatArray, t: int, place: float) -> FloatArray:
        """Return a signal (K, m + 3, ..) within step t, at the ``place`` from 0 to 1."""
        return np.tensordot(interpolation(place), signal[:, t:t + 4], (0, 1))

    def step(
        self, when: tuple[int, int], state: tuple[FloatArray, FloatArray],
        derivatives: _Derivatives | None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return position and velocity (K, n) after an internal step: sample and part of it."""
        q, v = state
        explicit, implicit, rate = (list[FloatArray](), list[FloatArray](), list[FloatArray]())
        for i in range(STAGES):
            arguments = (q + self.h * _sum(EXPLICIT[i], explicit),
                         v + self.h * _sum(EXPLICIT[i], rate),
                         v + self.h * _sum(IMPLICIT[i], rate))
            stage = self._stage(i, when, arguments)
            explicit.append(arguments[1])
            implicit.append(stage.motion[0])
            rate.append(stage.acceleration)
            if derivatives is not None:
                derivatives.take(stage)
        return q + self.h * _sum(IMPLICIT[-1], implicit), implicit[-1]

    def _stage(
        self, number: int, when: tuple[int, int],
        arguments: tuple[FloatArray, FloatArray, FloatArray],
    ) -> _Stage:
        q, v, before = arguments
        t, part = when
        place, later = ((part + nodes[number]) / self.parts for nodes in (NODES, IMPLICIT_NODES))
        measured, pressed = (self._at(signal, t, later)
                             for signal in (self.data.velocity, self.data.pressed))
        load = self._at(self.left, t, place) - self.arm.effort(q, v, np.zeros_like(q))
        k, after, slopes = np.empty_like(q), np.empty_like(q), np.empty_like(pressed)
        factors = np.empty((*q.shape, q.shape[1]))
        solve_stage(self.friction, (self.arm.mass_matrix(q), load), (before, measured, pressed),
                    self.h * IMPLICIT[number, number], (k, after, slopes, factors))
        return _Stage(number, t, interpolation(place), q, v, k, (after, measured, pressed),
                      (slopes, factors))


def _sum(weights: FloatArray, terms: list[FloatArray]) -> FloatArray | float:
    """Return the weighted sum of the terms there are."""
    total: FloatArray | float = 0.0
    for weight, term in zip(weights, terms, strict=False):
        if weight != 0.0:
            total = total + weight * term
    return total


class _Derivatives:
    """Derivatives of the states of a run in the base parameters and in the initial states."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        model = run.arm.model
        k, n = len(run.data), run.data.position.shape[2]
        size = len(run.arm.values) + 2 * n
        self.by_state = np.zeros((2, k, n, size))
        self.by_state[0, :, :, -2 * n:-n] = self.by_state[1, :, :, -n:] = np.eye(n)
        self.by_stages = np.zeros((3, STAGES, k, n, size))
        self.places = tuple(np.flatnonzero(chosen) for chosen in (
            model.moving, ~model.moving, model.frictional))

    def keep(self, out: FloatArray) -> None:
        """Write those of position and velocity into ``out`` (K, 2 n, P)."""
        n = out.shape[1] // 2
        out[:, :n], out[:, n:] = self.by_state

    def take(self, stage: _Stage) -> None:
        """Go through a stage, with the last one to the end of the step."""
        run = self.run
        states = stage.position, stage.moving, stage.acceleration
        by_q, by_v = run.arm.gradients(*states)
        moving, beside, frictional = self.places
        explicit, implicit, rate = self.by_stages
        stage_gradient(
            run.friction, stage.motion, (by_q, by_v, *stage.solved),
            (run.arm.model.moving_columns(*states), run.data.columns, stage.weights),
            (moving, beside, stage.sample, frictional), (stage.number, run.h),
            (self.by_state, explicit, implicit, rate))


#: lengths [s] of intervals that may be chosen
SHORTEST, LONGEST = 0.2, 1.0
#: a deviation of the initial state may grow to so many times itself; that of a body that is free
#: grows to 1.6
GROWTH = 4.0
#: share of the intervals in which it may grow no more; intervals by which that is seen
MOST, TRIED = 0.9, 32


def interval_length(
    arm: ArmModel, experiment: Experiment, values: FloatArray
) -> tuple[float, float]:
    """Return the length [s] of the intervals, and how deviations of their start grow in it.

    ``values`` (b,) are base parameters.

    Velocities count times the length, so that the growth of a free body, 1.6, is the same for all
    lengths: what is more is instability, and joints that pull each other.
    """
    for longest in (LONGEST, 0.5 * LONGEST, SHORTEST):
        tried = intervals_of(arm, experiment, longest, TRIED)
        if tried:
            break
    else:
        return SHORTEST, 1.0
    steps = [one.step * np.arange(one.steps + 1) for one in tried]
    grown = [_growth(arm, one, values) for one in tried]
    best = SHORTEST, 1.0
    for seconds in np.linspace(SHORTEST, longest, 17):
        rows = np.concatenate([g[:, np.searchsorted(t, min(seconds, t[-1]) - 1e-9)]
                               for g, t in zip(grown, steps, strict=True)])
        growth = float(np.quantile(rows, MOST))
        if growth > GROWTH and seconds > SHORTEST:
            break
        best = float(seconds), growth
    return best


def _growth(arm: ArmModel, intervals: Intervals, values: FloatArray) -> FloatArray:
    """Return by how much deviations of the start have grown at each sample (K, m + 1)."""
    found = simulate(arm.with_values(values), intervals, intervals.states[:, 0], True).gradient
    assert found is not None
    channels = found.shape[2]
    by_start, n = found[..., -channels:].copy(), channels // 2
    time = intervals.step * np.maximum(np.arange(intervals.steps + 1), 1)[:, None, None]
    by_start[..., n:, :] *= time
    by_start[..., n:] /= time
    flat = np.where(np.isfinite(by_start), by_start, 0.0)
    size = np.linalg.norm(flat, ord=2, axis=(2, 3))
    return np.where(np.isfinite(by_start).all(axis=(2, 3)), size, np.inf)
