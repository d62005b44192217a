"""Multiple shooting: parameters and, where they are free, initial states, by Gauss-Newton.

The intervals are not tied to each other. Ends that have to meet would make one long motion of
them again, of which errors of the model and disturbances of the arm decide more than its
parameters; the price is what an interval tells about its own initial state, 2 n of some hundred
numbers. Initial states are those measured, which are better than any estimate where disturbances
move the arm more than sensors err; or they are free, their measurement being a sample of the
interval like all others, which is right where sensors err more.
Every channel, position and velocity of a joint, counts by the inverse of its own deviation, which
is estimated along (concentrated likelihood).

The equations of least squares stand beside the simulation, weighted. Simulation alone decides
combinations of parameters that hardly show in the motion by what disturbances of the arm add up
to; the equations of every instant know more of these. Both are mean squares in units of their own
noise, so a weight means the same for every robot.

Sources: Bock, in Numerical Treatment of Inverse Problems, 1983, 95-121 (multiple shooting,
condensing); Voss, Timmer, Kurths, Int. J. Bifurcation and Chaos 14, 2004, 1905-1933; Ribeiro,
Tiels, Umenberger, Schoen, Aguirre, Automatica 121, 2020, 109158 (why not one long interval).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.information import (
    EXTRA,
    FILTERED,
    MAX_BATCHES,
    RAW,
    Batch,
    Information,
    triangle,
)
from robot_dynid.estimation.least_squares import joint_weights, weighted_factor
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory.arm import Arm, ArmModel
from robot_dynid_extras.trajectory.intervals import Intervals
from robot_dynid_extras.trajectory.simulation import simulate

#: intervals simulated side by side: their derivatives stay in the cache
LANES = 64
#: rounds at most; they end where the logarithm of the deviations falls by less than this
ROUNDS, SETTLED = 12, 3e-4
#: shares of a step that are tried, the whole one first
SHARES = tuple(0.5**i for i in range(8))
#: deviation in terms of the size of the channel below which there is nothing but rounding
EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class Shot:
    """Parameters ``values`` (b,) and the initial states of all intervals, (K, 2 n) by recording.

    ``deviation`` (2 n,) of simulated from measured states [rad, rad/s; m, m/s].
    """

    values: FloatArray
    starts: tuple[FloatArray, ...]
    deviation: FloatArray

    @property
    def cost(self) -> float:
        """Mean logarithm of the deviations: up to constants the negative log-likelihood."""
        return float(np.mean(np.log(self.deviation)))


@dataclass(frozen=True, eq=False)
class Condensed:
    """Equations of the step of the parameters alone: that of the initial states is solved for.

    ``information`` of the step (b,), a batch for one or several intervals; ``members`` of each
    batch: number of the recording in the list of intervals, and its rows. The initial states step
    by ``own - response @ step``, (K, 2 n) and (K, 2 n, b) by recording.
    """

    information: Information
    members: tuple[tuple[int, slice], ...]
    own: tuple[FloatArray, ...]
    response: tuple[FloatArray, ...]

    def moved(self, starts: Sequence[FloatArray], step: FloatArray, share: float
              ) -> tuple[FloatArray, ...]:
        """Return initial states (K, 2 n) by recording after a ``share`` of a ``step`` (b,)."""
        return tuple(s + share * (own - response @ step) for s, own, response in zip(
            starts, self.own, self.response, strict=True))


class Rules(Protocol):
    """Values of the parameters that a fit may go to."""

    def target(self, information: Information, values: FloatArray) -> FloatArray:
        """Return the parameters (b,) to go to from ``values`` (b,).

        ``information`` is that of equations of the step from there.
        """

    def allowed(self, values: FloatArray) -> bool:
        """Return whether a fit may stop at ``values`` (b,)."""


class Beside(Protocol):
    """Another cost, beside the error of the simulation."""

    def cost(self, values: FloatArray) -> float:
        """Return the addition to the cost with parameters (b,)."""

    def joined(self, information: Information, values: FloatArray) -> Information:
        """Return the equations of the step from ``values`` (b,) with those that add to them."""


@dataclass(frozen=True, eq=False)
class MultipleShooting:
    """The intervals of all recordings and the arm that is fitted to them.

    Initial states are ``free``, or those measured.
    """

    arm: ArmModel
    intervals: tuple[Intervals, ...]
    free: bool

    @property
    def count(self) -> int:
        """Number of intervals."""
        return sum(len(i) for i in self.intervals)

    def begin(self, values: FloatArray) -> Shot:
        """Return parameters (b,) with initial states as they were measured."""
        starts = tuple(i.states[:, 0].copy() for i in self.intervals)
        return self.at(values, starts)

    def at(self, values: FloatArray, starts: tuple[FloatArray, ...]) -> Shot:
        """Return the simulation with parameters (b,) and initial states (K, 2 n) by recording."""
        arm = self.arm.with_values(values)
        total, count = 0.0, 0
        for intervals, own in zip(self.intervals, starts, strict=True):
            for rows, part in intervals.parts(4 * LANES):
                off = simulate(arm, part, own[rows]).states - part.states
                total = total + np.sum(off**2, axis=(0, 1))
                count += off.shape[0] * off.shape[1]
        size = np.sqrt(np.mean([np.mean(i.states**2, axis=(0, 1)) for i in self.intervals],
                               axis=0))
        least = EXACT * np.maximum(size, 1e-3 * size.max())
        deviation = np.sqrt(total / count)
        return Shot(values, starts, np.maximum(deviation, least))

    def condensed(self, shot: Shot) -> Condensed:
        """Linearise at ``shot`` and eliminate the initial states, interval by interval."""
        arm = self.arm.with_values(shot.values)
        together = -(-self.count // MAX_BATCHES)
        room = together * max(1, LANES // together)
        batches, members, own, response = [], [], [], []
        for number, (intervals, starts) in enumerate(zip(
                self.intervals, shot.starts, strict=True)):
            steps, changes = [], []
            for rows, part in intervals.parts(room):
                equations, back = self._equations(arm, part, starts[rows], shot.deviation)
                steps.append(back[:, :, -1])
                changes.append(back[:, :, :-1])
                for first in range(0, len(part), together):
                    some = equations[first:first + together]
                    batches.append(_batch(some.reshape(-1, some.shape[2]), intervals.recording))
                    place = rows.start + first
                    members.append((number, slice(place, place + len(some))))
            own.append(np.concatenate(steps))
            response.append(np.concatenate(changes))
        names = self.arm.torque.reduction.names
        information = Information(names, np.ones((1, len(names)), dtype=bool), tuple(batches))
        return Condensed(information, tuple(members), tuple(own), tuple(response))

    def _equations(
        self, arm: Arm, intervals: Intervals, starts: FloatArray, deviation: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return equations (K, rows, b + 1) of the parameters' step, and what gives the states'.

        The latter is (K, 2 n, b + 1): the initial states step by its last column less the others
        times the step of the parameters.
        """
        found = simulate(arm, intervals, starts, with_gradient=True)
        assert found.gradient is not None
        k, _, channels, size = found.gradient.shape
        b = size - channels
        off = (intervals.states - found.states) / deviation
        by = found.gradient / deviation[:, None]
        rows = np.concatenate([by[..., :b], off[..., None]], axis=3).reshape(k, -1, b + 1)
        if not self.free:
            return rows, np.zeros((k, channels, b + 1))
        # one by one: NumPy 1.21 factors no stacks
        factors = [np.linalg.qr(one) for one in by[..., b:].reshape(k, -1, channels)]
        q, r = (np.stack(parts) for parts in zip(*factors, strict=True))
        along = q.transpose(0, 2, 1) @ rows
        return rows - q @ along, np.linalg.solve(r, along)

    def fit(
        self, shot: Shot, condensed: Condensed, rules: Rules, beside: Beside
    ) -> tuple[Shot, Condensed, int]:
        """Return the fit from ``shot``, linearised there: it, the last one, and its rounds.

        What is ``beside`` the simulation counts, too. Steps to values that are not allowed, or
        that do not lower the cost, are halved.
        """
        rounds, gain = 0, np.inf
        while rounds < ROUNDS and gain > SETTLED:
            before = shot.cost + beside.cost(shot.values)
            better = next(self._tried(shot, condensed, rules, beside), None)
            if better is None:
                break
            gain, shot = before - better.cost - beside.cost(better.values), better
            condensed = self.condensed(shot)
            rounds += 1
        return shot, condensed, rounds

    def _tried(
        self, shot: Shot, condensed: Condensed, rules: Rules, beside: Beside
    ) -> Iterator[Shot]:
        """Yield the shots of lower cost: the whole step, and ever smaller shares of it."""
        target = rules.target(beside.joined(condensed.information, shot.values), shot.values)
        step, before = target - shot.values, shot.cost + beside.cost(shot.values)
        for share in SHARES:
            values = shot.values + share * step
            if not rules.allowed(values):
                continue
            trial = self.at(values, condensed.moved(shot.starts, step, share))
            if trial.cost + beside.cost(values) < before:  # false where it is not finite
                yield trial


def _batch(rows: FloatArray, recording: int) -> Batch:
    """Return the batch of equations (N, b + 1)."""
    wide = np.zeros((len(rows), rows.shape[1] - 1 + EXTRA), order='F')
    b = rows.shape[1] - 1
    wide[:, :b] = rows[:, :b]
    wide[:, b + FILTERED] = wide[:, b + RAW] = rows[:, b]
    return Batch((triangle(wide),), len(rows), recording)


@dataclass(frozen=True, eq=False)
class EquationError:
    """Equations (m, b + 1) of the batches of an information, in units of the noise of each joint.

    ``owner`` is the batch of intervals that each belongs to by time; ``count`` of equations they
    stand for; their mean square counts ``weight`` times that of the simulation.
    """

    equations: tuple[FloatArray, ...]
    owner: NDArray[np.int64]
    count: int
    weight: float

    @classmethod
    def of(
        cls, information: Information, shooting: MultipleShooting, condensed: Condensed
    ) -> EquationError:
        """Return the equations of an experiment beside intervals of its recordings."""
        ends = np.cumsum([batch.samples for batch in information.batches])
        middles = ends - 0.5 * np.diff(ends, prepend=0)
        centres = []
        for place, rows in condensed.members:
            own = shooting.intervals[place].part(rows)
            centres.append(0.5 * float(own.first[0] + own.first[-1] + own.span))
        nearest = np.argmin(np.abs(middles[:, None] - np.array(centres)), axis=1)
        weights = joint_weights(information)
        return cls(tuple(weighted_factor(information, weights, b) for b in information.batches),
                   nearest, information.samples * len(information.structure), 0.0)

    def cost(self, values: FloatArray) -> float:
        """Return half the weighted mean square with parameters (b,)."""
        total = sum(float(np.sum((rows[:, :-1] @ values - rows[:, -1]) ** 2))
                    for rows in self.equations)
        return 0.5 * self.weight * total / self.count

    def joined(self, information: Information, values: FloatArray) -> Information:
        """Return equations of the step from ``values`` (b,), those of the simulation and these."""
        if self.weight == 0.0:
            return information
        scale = np.sqrt(self.weight * information.samples / self.count)
        found = []
        for number, batch in enumerate(information.batches):
            own = np.flatnonzero(self.owner == number)
            if not len(own):
                found.append(batch)
                continue
            rows = np.vstack([self.equations[i] for i in own])
            wide = np.zeros((len(rows), rows.shape[1] - 1 + EXTRA))
            b = rows.shape[1] - 1
            wide[:, :b] = scale * rows[:, :b]
            rest = scale * (rows[:, b] - rows[:, :b] @ values)
            wide[:, b + FILTERED] = wide[:, b + RAW] = rest
            found.append(replace(batch, factors=(
                triangle(np.asfortranarray(np.vstack([batch.factors[0], wide]))),)))
        return replace(information, batches=tuple(found))

    def outside(self, group: Sequence[int]) -> list[int]:
        """Return the batches of the information that do not belong to a group of intervals."""
        return [int(i) for i in np.flatnonzero(~np.isin(self.owner, list(group)))]
