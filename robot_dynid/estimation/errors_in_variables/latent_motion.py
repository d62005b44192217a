"""Errors in variables: the motion is estimated along with the parameters.

Sensors see position, velocity and acceleration with white noise, each at its own level; motors
have a known effort. The most probable motion agrees with all sensors and, at every instant, with
the equations of motion. So the deflection of a gear, which drowns in the noise of two encoders, is
known from the torque of the gear; regressors of the measured motion would be biased (attenuated).
Parameters and the coefficients of a fine spline are found at once, by Gauss-Newton.
Source: Schoukens, Pintelon, Identification of Linear Systems, ch. 8 (maximum likelihood with noise
on inputs and outputs); collocation: Ramsay et al., J. R. Statist. Soc. B 69, 2007, 741-796.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded
from scipy.ndimage import minimum_filter1d

from robot_dynid.dynamics import rigid_body
from robot_dynid.estimation.errors_in_variables.motion_spline import ORDERS, MotionSpline
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.regressor import RigidLinks
from robot_dynid.types import FloatArray, Samples

#: s between knots: of the motion sought, and of the first guess
SPACING, COARSE = 4e-3, 3e-2
#: equations count where the axes turn faster than this [rad/s], round by round: around a reversal
#: dry friction is unknown, and the first guess does not know when that is
SPEEDS = (0.1, 0.05, 0.03, 0.02)
#: samples around a reversal that do not count either
AROUND = 9
#: errors from which the weight of an equation falls (Cauchy's; 95 % efficient for normal errors)
CAUCHY = 2.385
#: least error of an equation in terms of its effort; a round lowers it to this share at most: as
#: soon as motion and equations hold each other tightly, the shape hardly moves
EXACT, SLOWLY = 1e-3, 0.7
#: rounds at most; they end where the errors stay, and the logarithm of the shape to this
ROUNDS, SETTLED = 20, 1e-3
#: step of differences, in terms of the signal, and of the logarithm of the shape
DIFFERENCE, STRETCH = 1e-6, 1e-4
#: largest change of that logarithm in a round
LONGEST = 0.3


@dataclass(frozen=True, eq=False)
class Channel:
    """Measured derivative of all coordinates: ``order``, ``values`` (N, m) and their noise.

    ``deviation`` (m,) is the standard deviation of the noise.
    """

    order: int
    values: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, eq=False)
class LatentFit:
    """``values`` and ``std`` (b,), ``shape``, the motion (three of (N, m)), ``errors`` (rows,)
    [N m] of the equations. Deviations are those of the likelihood, which takes spline and model as
    complete: they are too small by a factor of a few, so no intervals are to be made of them.
    """

    values: FloatArray
    std: FloatArray
    shape: float
    motion: list[FloatArray]
    errors: FloatArray


#: the model for a shape that is not linear, such as the speed over which friction falls
Family = Callable[[float], TorqueModel]


def fit(
    family: tuple[Family, float], time: FloatArray, channels: Sequence[Channel],
    effort: FloatArray, chosen: NDArray[np.bool_],
) -> LatentFit:
    """Estimate the base parameters that are ``chosen`` (b,), all others being zero, and the shape.

    ``family`` makes models, and has a positive shape to begin with. ``time`` (N,) uniform;
    ``effort`` (N, rows) [N m], exact but for what the model lacks. The equations of a joint may
    depend on its own motion and motor only, but for the links.
    """
    task = _Task(family, time, channels, effort, chosen)
    state = task.guess()
    for number in range(ROUNDS):
        before = state
        state = task.better(before, SPEEDS[min(number, len(SPEEDS) - 1)])
        if number >= len(SPEEDS) and task.settled(before, state):
            break
    return LatentFit(state.values, state.std, state.shape, task.spline.motion(state.coefficients),
                     state.errors)


@dataclass(frozen=True, eq=False)
class _State:
    """Coefficients of the spline, parameters (b,) with deviations, the shape, errors (rows,)."""

    coefficients: FloatArray
    values: FloatArray
    std: FloatArray
    shape: float
    errors: FloatArray


class _Task:
    """The constants of the iteration; ``model`` has the shapes of the current round."""

    def __init__(self, family: tuple[Family, float], time: FloatArray, channels: Sequence[Channel],
                 effort: FloatArray, chosen: NDArray[np.bool_]) -> None:
        self.family, self.first = family
        self.time, self.channels, self.effort = time, channels, effort
        self.model = self.family(self.first)
        self.chosen = chosen
        self.spline = MotionSpline(time, SPACING)
        self.measured = _measured(self.spline, channels)
        self.band = self.spline.normal(self.measured)

    def guess(self) -> _State:
        """Return a smooth motion, and the parameters by least squares along it."""
        coarse = MotionSpline(self.time, COARSE)
        measured = _measured(coarse, self.channels)
        right = np.concatenate([c.values / c.deviation for c in self.channels], axis=1)
        found = solveh_banded(
            coarse.normal(measured), coarse.gathered(measured, right[:, :, None]), lower=True)
        motion = coarse.motion(found.reshape(-1, self.channels[0].values.shape[1]))
        samples, errors = self.samples(motion), np.ones(self.effort.shape[1])
        counts = self.counts(motion[1], SPEEDS[0])
        values = np.zeros(len(self.chosen))
        for _ in range(3):
            weights = counts / errors
            columns = self.model.columns(samples)[:, self.chosen] * weights.T[:, None, :]
            values[self.chosen] = np.linalg.lstsq(
                columns.transpose(0, 2, 1).reshape(-1, columns.shape[1]),
                (self.effort * weights).T.ravel(), rcond=None)[0]
            errors = self.errors(samples, values, counts)
        return _State(self.spline.fitted(motion[0]), values, np.zeros_like(values), self.first,
                      errors)

    def better(self, state: _State, speed: float) -> _State:
        """Return the state after a step of Gauss and Newton."""
        motion = self.spline.motion(state.coefficients)
        samples, weights = self.samples(motion), self.counts(motion[1], speed) / state.errors
        misfit = self.effort - self.modelled(motion, state.values)
        weights = weights / np.sqrt(1.0 + (misfit / (CAUCHY * state.errors)) ** 2)
        columns = self.model.columns(samples)[:, self.chosen] * weights.T[:, None, :]
        by_values = np.concatenate([columns.transpose(2, 0, 1), self._by_shape(
            motion, state, weights)[:, :, None]], axis=2)
        by_motion = self._by_motion(motion, state.values, weights)
        equations = (misfit * weights)[:, :, None]
        off = np.concatenate([(c.values - motion[c.order]) / c.deviation for c in self.channels],
                             axis=1)
        cross = self.spline.gathered(by_motion, by_values)
        right = self.spline.gathered(by_motion, equations) + self.spline.gathered(
            self.measured, off[:, :, None])
        solved = solveh_banded(self.band + self.spline.normal(by_motion),
                               np.hstack([right, cross]), lower=True)
        normal = np.einsum('nra,nrb->ab', by_values, by_values) - cross.T @ solved[:, 1:]
        target = np.einsum('nra,nr->a', by_values, equations[:, :, 0]) - cross.T @ solved[:, 0]
        scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
        inverse = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-12, hermitian=True)
        change = inverse @ (target / scale) / scale
        change[-1] = np.clip(change[-1], -LONGEST, LONGEST)
        moved = solved[:, 0] - solved[:, 1:] @ change
        values, std = state.values.copy(), np.zeros_like(state.values)
        values[self.chosen] += change[:-1]
        std[self.chosen] = (np.sqrt(np.diag(inverse)) / scale)[:-1]
        shape = state.shape * float(np.exp(change[-1]))
        self.model = self.family(shape)
        found = _State(state.coefficients + moved.reshape(state.coefficients.shape), values, std,
                       shape, state.errors)
        return replace(found, errors=self._lowered(found, speed))

    def settled(self, before: _State, state: _State) -> bool:
        """Return whether a round has changed neither errors nor shape."""
        same = np.allclose(before.errors, state.errors, rtol=SETTLED)
        return bool(same and abs(np.log(state.shape / before.shape)) < SETTLED)

    def _by_shape(
        self, motion: Sequence[FloatArray], state: _State, weights: FloatArray
    ) -> FloatArray:
        """Return the change (N, rows) of the weighted effort with the logarithm of the shape."""
        here, kept = self._beside(motion, state.values), self.model
        self.model = self.family(state.shape * float(np.exp(STRETCH)))
        there = self._beside(motion, state.values)
        self.model = kept
        return np.asarray((there - here) / STRETCH * weights)

    def _lowered(self, state: _State, speed: float) -> FloatArray:
        motion = self.spline.motion(state.coefficients)
        errors = self.errors(self.samples(motion), state.values, self.counts(motion[1], speed))
        least = EXACT * self.effort.std(axis=0)
        return np.asarray(np.maximum(np.maximum(errors, SLOWLY * state.errors), least))

    def samples(self, motion: Sequence[FloatArray]) -> Samples:
        """Return the motion as samples."""
        position, velocity, acceleration = motion
        return Samples(self.model.robot.joints, self.time, position, velocity, acceleration)

    def counts(self, velocity: FloatArray, speed: float) -> FloatArray:
        """Return (N, rows) 1 where the axis of the equation turns faster than ``speed``."""
        motors = {gear.joint: gear.motor for gear in self.model.gears}
        axes = [motors.get(j, j) for j in self.model.robot.row_joints]
        slowest = minimum_filter1d(np.abs(velocity[:, axes]), AROUND, axis=0)
        return np.asarray((slowest > speed).astype(np.float64))

    def errors(self, samples: Samples, values: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the typical error (rows,) of the equations that count, by their median."""
        misfit = self.effort - self.modelled(
            (samples.position, samples.velocity, samples.acceleration), values)
        size = np.where(counts > 0.0, np.abs(misfit), np.nan)
        return np.asarray(1.4826 * np.nanmedian(size, axis=0))

    def modelled(self, motion: Sequence[FloatArray], values: FloatArray) -> FloatArray:
        """Return the effort (N, rows) of parameters (b,)."""
        effort = self._beside(motion, values)
        n = self.model.robot.n
        effort[:, :n] += self._links([signal[:, :n] for signal in motion], values)
        return effort

    def _links(self, motion: Sequence[FloatArray], values: FloatArray) -> FloatArray:
        """Return the effort (N, n) of the links: base parameters are standard ones, others 0."""
        model = self.model
        assert isinstance(model.blocks[0], RigidLinks)
        standard = np.zeros(10 * model.robot.n)
        own = model.kept_by_block[0]
        standard[own] = values[:len(own)]
        position, velocity, acceleration = motion
        return rigid_body.inverse_dynamics(model.robot, position, velocity, acceleration, standard)

    def _beside(self, motion: Sequence[FloatArray], values: FloatArray) -> FloatArray:
        """Return the effort (N, rows) of everything but the links."""
        model, samples = self.model, self.samples(motion)
        effort = np.zeros((len(self.time), model.robot.rows))
        first = 0
        for block, kept in zip(model.blocks, model.kept_by_block, strict=True):
            own = values[first:first + len(kept)]
            first += len(kept)
            if isinstance(block, RigidLinks) or not len(kept):
                continue
            columns = np.zeros((model.robot.rows, len(kept), len(self.time)))
            block.fill(samples, block.history(samples), kept, columns)
            effort += np.tensordot(own, columns, (0, 1)).T
        return effort

    def _by_motion(
        self, motion: Sequence[FloatArray], values: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return local derivatives of the weighted effort, by differences.

        Beside the links, what one joint and its motor do shows in their own equations only: all
        joints are moved at once, then all motors.
        """
        robot, joints = self.model.robot, np.array(self.model.robot.row_joints)
        n, count = robot.n, motion[0].shape[1]
        sides = [(np.arange(n), joints)]
        if count > n:
            motors = np.full(n, -1)
            motors[[gear.joint for gear in self.model.gears]] = np.arange(n, count)
            sides.append((np.arange(n, count), motors[joints]))
        links = self._links([signal[:, :n] for signal in motion], values)
        beside = self._beside(motion, values)
        local: FloatArray | float = 0.0
        for order in range(ORDERS):
            gradient = np.zeros((len(self.time), robot.rows, count))
            for moved, column in sides:
                there = self._beside(_shifted(motion, order, moved), values)
                rows = np.flatnonzero(column >= 0)
                gradient[:, rows, column[rows]] = (there - beside)[:, rows] / DIFFERENCE
            for j in range(n):
                there = self._links([s[:, :n] for s in _shifted(motion, order, [j])], values)
                gradient[:, :n, j] += (there - links) / DIFFERENCE
            local = local + self.spline.local(gradient * weights[:, :, None], order)
        return np.asarray(local)


def _shifted(
    motion: Sequence[FloatArray], order: int, columns: Sequence[int] | NDArray[np.int64]
) -> list[FloatArray]:
    found = list(motion)
    found[order] = found[order].copy()
    found[order][:, columns] += DIFFERENCE
    return found


def _measured(spline: MotionSpline, channels: Sequence[Channel]) -> FloatArray:
    """Return the local derivatives of what the channels see, over their deviations."""
    count = len(channels[0].values)
    return np.concatenate([spline.local(np.broadcast_to(
        np.diag(1.0 / c.deviation), (count, *2 * c.deviation.shape)), c.order)
        for c in channels], axis=1)
