"""Friction of all axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import HISTORY, RegressorColumns
from robot_dynid.effects.effect import Axes, Effect, ParameterWords, linear_entries
from robot_dynid.friction import AxisFriction, AxisMotion, FrictionLaw
from robot_dynid.friction.terms import unit_of, words_of
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.types import TOGETHER, FloatArray, Samples


@dataclass(frozen=True, eq=False)
class Load:
    """The torque the axes transmit to the links; ``links`` (n, 10) standard parameters."""

    robot: RobotModel
    axes: Axes
    links: FloatArray

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the load (N, a) [N m] of the axes in states (N, n)."""
        return self.transmitted(rigid_body.inverse_dynamics(self.robot, q, qd, qdd, self.links))

    def transmitted(self, effort: FloatArray) -> FloatArray:
        """Return the load (N, a) [N m] of the axes for the ``effort`` (N, n) of joints."""
        if self.robot.drive.coupling is None:
            return effort
        motor = self.robot.motor_torque(effort)
        # axes beyond the joints are the motors that turn with several joints
        return np.concatenate([effort, motor[:, list(self.robot.drive.coupled)]], axis=1)


@dataclass(frozen=True, eq=False)
class JointFriction(Effect):
    """Friction torque of every axis; one of ``laws`` per axis, ``load`` is the transmitted torque.

    A coupled motor has no offset of its own: it would depend linearly on those of its joints.
    """

    axes: Axes
    laws: tuple[FrictionLaw, ...]
    load: Load | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """``fv1, fc1, f01, fv2, ...``."""
        return self._labelled(lambda law: law.parameters)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """The nonnegative parameters of the laws."""
        return self._labelled(lambda law: law.nonnegative)

    @property
    def words(self) -> Iterator[ParameterWords]:
        """The parameters of the laws, axis by axis."""
        parameters = [p for law in self.laws for p in law.table]
        for name, axis, parameter in zip(self.names, self.owners, parameters, strict=True):
            slides = self.axes.slides[axis]
            yield ParameterWords(name, self.axes.parts[axis], words_of(parameter, slides),
                                 unit_of(parameter, slides))

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with this friction added; axes move with joints."""
        friction = replace(self.with_values(values), axes=self.axes.rigid)
        return replace(mechanism, friction=mechanism.friction.combine(friction))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of every parameter, see FrictionLaw."""
        return tuple(kind for law in self.laws for kind in law.kinds)

    @property
    def owners(self) -> tuple[int, ...]:
        """The axis of every parameter."""
        return tuple(i for i, law in enumerate(self.laws) for _ in law.parameters)

    def _labelled(self, of: Callable[[FrictionLaw], tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(f'{p}{label}' for label, law in zip(self.axes.labels, self.laws, strict=True)
                     for p in of(law))

    @property
    def holding(self) -> FloatArray:
        """Matrix (rows, k): effort that each parameter, at one, may hold at rest."""
        columns = [np.abs(axis) * float(p in law.holding)
                   for axis, law in zip(self.axes.effort, self.laws, strict=True)
                   for p in law.parameters]
        return np.array(columns).T

    def with_values(self, values: Mapping[str, float]) -> AxisFriction:
        """Return the friction for standard parameters ``values`` by name, such as ``fv1``."""
        load = None if self.load is None else (
            self.load.transmitted(np.eye(self.load.robot.n)).T, self.load.links)
        by_axis = [np.array([values[f'{p}{label}'] for p in law.parameters])
               for label, law in zip(self.axes.labels, self.laws, strict=True)]
        return AxisFriction.of(self.axes.matrix, self.laws, by_axis, load)

    def motions(
        self, samples: Samples, axes: Sequence[int] | None = None
    ) -> Iterator[AxisMotion]:
        """Yield the motion of ``axes``, by default all, with load and temperature if known."""
        load = None
        if self.load is not None:
            n = self.load.robot.n
            load = self.load(samples.position[:, :n], samples.velocity[:, :n],
                             samples.acceleration[:, :n])
            if samples.external is not None:
                load = load - self.load.transmitted(samples.external)
        warm = samples.temperature
        for i in range(len(self.laws)) if axes is None else axes:
            axis = self.axes.matrix[i]
            share = np.abs(axis) / np.abs(axis).sum()
            yield AxisMotion(
                samples.time, samples.position @ axis, samples.velocity @ axis, samples.starts,
                None if load is None else load[:, i], None if warm is None else warm @ share,
                samples.began)

    def history(self, samples: Samples, axes: Sequence[int] | None = None) -> FloatArray:
        """Return the torque (h, N) of every parameter of ``axes``, by default all, at value one.

        Measured effort is low-pass filtered; friction switches too fast to commute with the
        filter, so its columns pass the same filter, unlike those of the smooth motion.
        """
        chosen = range(len(self.laws)) if axes is None else axes
        return filter_columns(samples, lambda whole: (
            self.laws[i].columns(motion) for i, motion in zip(
                chosen, self.motions(whole, chosen), strict=True)),
            sum(len(self.laws[i].parameters) for i in chosen))

    def generic(self, samples: Samples) -> FloatArray:
        """Return a history (h, N) of states without a past in which parameters are independent.

        In steady sliding some columns coincide and some vanish. Columns that change sign with the
        motion are independent of links and offsets, so noise replaces them.
        """
        history = self.history(samples)
        rng = np.random.default_rng(0)
        noise = rng.uniform(-1.0, 1.0, history.shape)
        odd = [p in law.odd for law in self.laws for p in law.parameters]
        return np.where(np.array(odd, dtype=bool)[:, None], noise, history)

    def separable(self, samples: Samples) -> FloatArray:
        """Return the history (h, N) of states in which those of each axis are independent.

        It is that of `history`, except for moving axes whose law has a memory, or more terms than
        steady sliding shows: these are as in `generic`. Axes at rest have no friction.
        """
        history, other = self.history(samples), self.generic(samples)
        moves = np.abs(samples.velocity @ self.axes.matrix.T).T > 0.0
        owners = np.array(self.owners)
        for axis in range(len(self.laws)):
            rows = np.flatnonzero(owners == axis)
            if moves[axis].any() and np.linalg.matrix_rank(history[rows][:,
                                                                         moves[axis]]) < len(rows):
                history[np.ix_(rows, moves[axis])] = other[np.ix_(rows, moves[axis])]
        return history

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: each is a row of the history."""
        owners = self.owners
        entries = tuple(
            entry for column, parameter in enumerate(chosen.tolist())
            for entry in linear_entries(column, self.axes.effort[owners[parameter]], HISTORY,
                                {parameter: 1.0}))
        return RegressorColumns(len(chosen), entries=entries, past=len(owners))


def filter_columns(
    samples: Samples, columns: Callable[[Samples], Iterable[FloatArray]], count: int
) -> FloatArray:
    """Return ``count`` columns (h, N) at the stamps of the effort, filtered like it.

    ``columns`` gives those (k, M) of the whole recording, which are filtered in small groups.
    """
    whole = samples if samples.whole is None else samples.whole
    history = np.empty((count, len(samples)))
    first = 0
    for group in _group_columns(columns(whole)):
        filtered = low_pass_columns(group, whole)
        history[first:first + len(group)] = samples.at_stamps(
            (filtered if samples.rows is None else filtered[:, samples.rows]).T).T
        first += len(group)
    return history


def low_pass_columns(columns: FloatArray, samples: Samples) -> FloatArray:
    """Filter (h, N) like the effort of ``samples``, segment by segment."""
    if samples.cutoff is None:
        return columns
    filtered = columns.copy()
    for segment in samples.segments:
        if segment.stop - segment.start > 1:
            step = float(samples.time[segment.start + 1] - samples.time[segment.start])
            filtered[:, segment] = zero_phase_low_pass(
                columns[:, segment].T, samples.cutoff, step).T
    return filtered


def _group_columns(blocks: Iterable[FloatArray]) -> Iterator[FloatArray]:
    """Yield the columns (k, N) of several axes in groups of about TOGETHER."""
    waiting: list[FloatArray] = []
    for columns in blocks:
        for first in range(0, len(columns), TOGETHER):
            waiting.append(columns[first:first + TOGETHER])
            if sum(map(len, waiting)) >= TOGETHER:
                yield np.concatenate(waiting)
                waiting = []
    if waiting:
        yield np.concatenate(waiting)
