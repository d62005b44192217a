"""Motion and parameters by simulation: the motion of every stretch obeys the equations exactly.

A fit that lets motion and equations approach each other (`latent_motion`) does not get past a
reversal whose instant it does not know: dry friction switches there, and its slope says nothing of
when. A simulation under the measured efforts sticks and slides by itself, so static friction shows
in when a motor breaks away. Sought are parameters, shapes of friction and the state in which every
piece of a stretch begins, by Levenberg's and Marquardt's steps with derivatives by differences.
Efforts are taken as exact, so what comes out is a start. Source: Bock 1983 (multiple shooting).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.elastic import all_rotors
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.estimation.errors_in_variables.coordinate_equations import CoordinateEquations
from robot_dynid.estimation.errors_in_variables.latent_motion import (
    LONGEST,
    NOTHING,
    LatentProblem,
    LatentState,
)
from robot_dynid.estimation.uncertainty.stretches import stretches
from robot_dynid.robot.model import Limits
from robot_dynid.types import FloatArray

#: pieces of a stretch, round by round: short ones do not run away from poor parameters
PIECES = (8, 4)
#: steps of a round at most; they end where the cost falls by less than this share
STEPS, SETTLED = 10, 1e-3
#: difference of a parameter, in what changes the effort by its root mean square
DIFFERENCE = 1e-4
#: difference of a state [rad, m; rad/s, m/s], and of the logarithm of a shape
APART, STRETCH = 1e-6, 1e-3
#: damping of the first step, in terms of the diagonal, and by how much it changes
DAMPING, LESS, MORE, MOST = 1e-3, 0.2, 8.0, 1e4
#: deviations from which a misfit counts less (Huber's)
HUBER = 3.0
#: pieces of a stretch by which models are compared, and steps without some of the stretches
COMPARED, FEW = 4, 2


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Pieces of T + 1 samples: measured ``position`` (K, T + 1, m) and ``effort`` (K, T, m).

    ``owners`` (K,) are the stretches, ``step`` [s] is that of the samples.
    """

    position: FloatArray
    effort: FloatArray
    owners: tuple[int, ...]
    step: float

    def part(self, chosen: NDArray[np.bool_]) -> _Pieces:
        """Return the ``chosen`` (K,) pieces."""
        owners = tuple(np.array(self.owners)[chosen].tolist())
        return _Pieces(self.position[chosen], self.effort[chosen], owners, self.step)


@dataclass(frozen=True, eq=False)
class _Point:
    """Parameters with shapes (k,), states (K, 2m), and the misfits (K, T + 1, m) they leave."""

    values: FloatArray
    states: FloatArray
    misfits: FloatArray

    @property
    def cost(self) -> float:
        """Huber's cost."""
        size = np.abs(self.misfits)
        return float(np.sum(np.where(size < HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))))


@dataclass(frozen=True, eq=False)
class SimulatedMotion:
    """The simulation of a ``problem`` whose gears have no torque sensors.

    ``known`` (b,) are the parameters that are not chosen in it.
    """

    problem: LatentProblem
    known: FloatArray

    def fit(self, state: LatentState) -> tuple[LatentState, float]:
        """Return parameters, shapes and simulated motion, from those of a ``state``, and the cost.

        Raises LinAlgError where every simulation runs away.
        """
        values = np.append(state.values[self.problem.chosen], np.log(state.shapes))
        coefficients = state.coefficients
        for count in PIECES:
            pieces = self._pieces(count)
            states = self._begun(coefficients, pieces)
            point = self._point(pieces, values, states)
            point = self._improved(pieces, point)
            values = point.values
            coefficients = self._followed(pieces, point, coefficients)
        return replace(self._state(state, values), coefficients=coefficients), point.cost

    def held_out(self, state: LatentState) -> tuple[FloatArray, FloatArray]:
        """Return costs (groups,) per sample of stretches left out of the fit in turn.

        Beside them the parameters (groups, b) without each. The ``state`` is that of a fit; its
        shapes stay. Raises LinAlgError where simulations run away.
        """
        problem = replace(self.problem, model=self.problem.with_shapes(state.shapes), searched=())
        own = SimulatedMotion(problem, state.values)
        known = SimulatedMotion(problem.with_known_parameters, state.values)
        pieces = self._pieces(COMPARED)
        states, owners = self._begun(state.coefficients, pieces), np.array(pieces.owners)
        values = state.values[problem.chosen]
        costs, every = [], []
        for group in stretches(len(problem.stretches)):
            out = np.isin(owners, group)
            rest, left = pieces.part(~out), pieces.part(out)
            found = own._improved(rest, own._point(rest, values, states[~out]), FEW)
            whole = own._state(replace(state, shapes=NOTHING), found.values)
            other = replace(known, known=whole.values)
            point = other._improved(left, other._point(left, NOTHING, states[out]), FEW)
            costs.append(point.cost / point.misfits.size)
            every.append(whole.values)
        return np.array(costs), np.array(every)

    def _state(self, state: LatentState, values: FloatArray) -> LatentState:
        """Return the state with parameters, and shapes within their bounds."""
        count = int(self.problem.chosen.sum())
        every = state.values.copy()
        every[self.problem.chosen] = values[:count]
        shapes = np.array([np.clip(np.exp(own), one.low, one.high) for own, one in zip(
            values[count:], self.problem.searched, strict=True)])
        return replace(state, values=every, shapes=shapes)

    def _pieces(self, count: int) -> _Pieces:
        """Return ``count`` pieces of every stretch, all as long as the shortest."""
        rows = CoordinateEquations(self.problem.model).rows
        stretches = self.problem.stretches
        length = min(len(one.time) - 1 for one in stretches) // count
        position, effort, owners = [], [], []
        for k, one in enumerate(stretches):
            known = one.effort @ rows.T
            between = 0.5 * (one.time[1:] + one.time[:-1])
            held = np.stack([np.interp(between, one.stamps, own) for own in known.T], axis=1)
            for first in range(0, count * length, length):
                position.append(one.channels[0].values[first:first + length + 1])
                effort.append(held[first:first + length])
                owners.append(k)
        time = stretches[0].time
        return _Pieces(np.array(position), np.array(effort), tuple(owners),
                       float(time[1] - time[0]))

    def _firsts(self, pieces: _Pieces) -> list[int]:
        """Return the sample of its stretch in which every piece begins."""
        length = pieces.effort.shape[1]
        return [length * pieces.owners[:k].count(owner) for k, owner in enumerate(pieces.owners)]

    def _begun(self, coefficients: Sequence[FloatArray], pieces: _Pieces) -> FloatArray:
        """Return the states (K, 2m) of a motion where pieces begin."""
        motions = [one.splines[0].motion(own) for one, own in zip(
            self.problem.stretches, coefficients, strict=True)]
        return np.array([np.append(motions[k][0][first], motions[k][1][first])
                         for k, first in zip(pieces.owners, self._firsts(pieces), strict=True)])

    @cached_property
    def _sizes(self) -> FloatArray:
        """What changes of parameters and shapes (k,) are looked at."""
        problem = self.problem
        total, effort = np.zeros(len(problem.chosen)), 0.0
        state = problem.guess(np.array([np.sqrt(one.low * one.high) for one in problem.searched]),
                              np.zeros(len(problem.chosen)))
        for one, _, equations, columns in problem._along(state, problem._motions(state)):
            total += np.sum(columns[:, :len(total)]**2, axis=(0, 2))
            effort += float(np.sum((one.effort @ equations.rows.T)**2))
        size = np.sqrt(effort / np.maximum(total, 1e-12 * effort + 1e-300))
        return np.append(DIFFERENCE * size[problem.chosen],
                         np.full(len(problem.searched), STRETCH))

    def _simulated(
        self, values: FloatArray, states: FloatArray, effort: FloatArray, step: float
    ) -> FloatArray:
        """Return positions (K, T + 1, m) from ``states`` (K, 2m) under ``effort`` (K, T, m)."""
        problem = self.problem
        own = self._state(LatentState((), self.known, np.ones(
            len(problem.searched)), np.zeros(0), 0.0), values)
        arm = CoordinateEquations(problem.with_shapes(own.shapes)).mechanism(own.values)
        robot, m = arm.robot, states.shape[1] // 2
        robot = replace(robot, limits=Limits.unknown(robot.n))
        if arm.gears is None:
            integrate = Integrator(robot, arm.links, arm.rotors, arm.friction)
        else:
            # a damping below zero, which noise may give, makes a simulation explode
            gears = replace(arm.gears, damping=np.maximum(arm.gears.damping, 0.0))
            integrate = Integrator(
                robot, arm.links, all_rotors(arm.rotors, gears),
                arm.friction.on(gears.motors(robot.n), m), gears.springs(robot.n))
        with np.errstate(all='ignore'):
            found = integrate(states[:, :m], states[:, m:], effort, step)
        return np.concatenate([states[:, None, :m], found.position], axis=1)

    def _misfits(self, pieces: _Pieces, simulated: FloatArray) -> FloatArray:
        deviation = self.problem.stretches[0].channels[0].deviation
        return np.asarray((pieces.position - simulated) / deviation)

    def _point(self, pieces: _Pieces, values: FloatArray, states: FloatArray) -> _Point:
        found = self._simulated(values, states, pieces.effort, pieces.step)
        return _Point(values, states, self._misfits(pieces, found))

    def _improved(self, pieces: _Pieces, point: _Point, steps: int = STEPS) -> _Point:
        """Return the point after steps that lower its cost; raises LinAlgError for none."""
        if not np.isfinite(point.cost):
            raise np.linalg.LinAlgError
        damping = DAMPING
        for _ in range(steps):
            by_values, by_states = self._slopes(pieces, point)
            before = point.cost
            while damping < MOST:
                tried = self._stepped(pieces, point, (by_values, by_states), damping)
                if tried.cost < before:
                    point, damping = tried, damping * LESS
                    break
                damping *= MORE
            if not point.cost < (1.0 - SETTLED) * before:
                break
        return point

    def _slopes(self, pieces: _Pieces, point: _Point) -> tuple[FloatArray, FloatArray]:
        """Return the misfits' derivatives (K, k, r) by parameters and (K, 2m, r) by states."""
        count, wide = point.states.shape
        by_values = np.empty((count, len(point.values), point.misfits[0].size))
        for i, size in enumerate(self._sizes):
            moved = point.values.copy()
            moved[i] += size
            other = self._point(pieces, moved, point.states)
            by_values[:, i] = ((other.misfits - point.misfits) / size).reshape(count, -1)
        moved_states = np.repeat(point.states[:, None], wide, axis=1) + APART * np.eye(wide)
        found = self._simulated(point.values, moved_states.reshape(-1, wide), np.repeat(
            pieces.effort, wide, axis=0), pieces.step)
        moved_misfits = self._misfits(_Pieces(
            np.repeat(pieces.position, wide, axis=0), pieces.effort, (), 0.0), found)
        apart = moved_misfits.reshape(count, wide, -1) - point.misfits.reshape(count, 1, -1)
        return by_values, apart / APART

    def _stepped(
        self, pieces: _Pieces, point: _Point, slopes: tuple[FloatArray, FloatArray],
        damping: float,
    ) -> _Point:
        """Return the point after a damped step, the states eliminated piece by piece."""
        size = np.abs(point.misfits).reshape(len(point.states), 1, -1)
        weights = np.sqrt(np.minimum(1.0, HUBER / np.maximum(size, 1e-12)))
        by_values, by_states = (np.nan_to_num(own * weights) for own in slopes)
        off = np.nan_to_num(point.misfits.reshape(*size.shape) * weights)
        inner = by_states @ by_states.transpose(0, 2, 1)
        inner += damping * _diagonal(inner)
        cross = by_states @ by_values.transpose(0, 2, 1)
        outer = np.sum(by_values @ by_values.transpose(0, 2, 1), axis=0)
        outer += damping * np.diag(np.diag(outer))
        toward = by_states @ off.transpose(0, 2, 1)
        response, own = np.linalg.solve(inner, cross), np.linalg.solve(inner, toward)
        normal = outer - np.sum(cross.transpose(0, 2, 1) @ response, axis=0)
        right = np.sum(by_values @ off.transpose(0, 2, 1)
                       - cross.transpose(0, 2, 1) @ own, axis=0)[:, 0]
        scale = np.sqrt(np.maximum(np.diag(outer), 1e-300))
        change = np.zeros(len(scale))
        if len(scale):
            change = -np.linalg.lstsq(normal / np.outer(scale, scale), right / scale,
                                      rcond=1e-12)[0] / scale
        count = int(self.problem.chosen.sum())
        change[count:] = np.clip(change[count:], -LONGEST, LONGEST)
        values = point.values + change
        bounds = [(one.low, one.high) for one in self.problem.searched]
        values[count:] = np.clip(values[count:], *np.log(np.array(bounds).reshape(-1, 2)).T)
        states = point.states - own[:, :, 0] - response @ (values - point.values)
        return self._point(pieces, values, states)

    def _followed(
        self, pieces: _Pieces, point: _Point, coefficients: Sequence[FloatArray]
    ) -> tuple[FloatArray, ...]:
        """Return the splines through simulated positions, those measured behind the pieces."""
        deviation = self.problem.stretches[0].channels[0].deviation
        positions = [one.splines[0].motion(own)[0] for one, own in zip(
            self.problem.stretches, coefficients, strict=True)]
        for k, (owner, first) in enumerate(zip(
                pieces.owners, self._firsts(pieces), strict=True)):
            own = pieces.position[k] - deviation * point.misfits[k]
            positions[owner][first:first + len(own)] = own
        return tuple(one.splines[0].fitted(own) for one, own in zip(
            self.problem.stretches, positions, strict=True))


def _diagonal(matrices: FloatArray) -> FloatArray:
    """Return the diagonal parts (K, r, r)."""
    return np.asarray(matrices * np.eye(matrices.shape[1]))
