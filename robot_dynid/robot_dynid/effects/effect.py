"""The contract of effects: one physical cause of torque, linear in its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import Figure, Section, Table, tabled
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import HISTORY, Entry, RegressorColumns, Signals
from robot_dynid.effects.shown import ByJoint, FittedModel, Shown, Trace
from robot_dynid.errors import ModelError
from robot_dynid.figures import MODEL, axis, figure, line
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.units import length
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True)
class ParameterWords:
    """Description in ``words`` and ``unit`` of the standard parameter ``name``.

    ``part`` is the link or the joint it belongs to.
    """

    name: str
    part: str
    words: str
    unit: str

    @property
    def sentence(self) -> str:
        """The part and the parameter in words."""
        return f'{self.part}: {self.words}' if self.part else self.words


#: points and time [s] of the sweep along which a chosen effect is drawn
SWEEP_POINTS, SWEEP_SECONDS = 100, 20.0


class Effect(ABC):
    """One physical cause of torque, linear in its parameters.

    Regressors are (rows, k, N), samples last. Samples have one column per coordinate of the robot,
    and there is a row per equation: both are the n joints if no joint is elastic, see RobotModel.
    An effect defines the columns of its parameters in a fit, by `kernel_columns` or `fill`, its
    contribution to a `Mechanism` (inverse, forward, rollout, monitor, exports), and its words.
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Names of the parameters that no real robot has below zero."""
        return ()

    @property
    def words(self) -> Iterator[ParameterWords]:
        """The parameters in words; by default their names."""
        return (ParameterWords(name, '', name, '') for name in self.names)

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with the effect, for standard parameters ``values`` by name.

        Raises ModelError for an effect that acts in recordings only.
        """
        raise ModelError(f'{type(self).__name__} ({", ".join(self.names)}) has no torque beyond '
                         'the recordings of a fit')

    def history(self, samples: Samples) -> FloatArray:
        """Return signals (h, N) that depend on the past, at the stamps of the effort.

        Samples are processed in chunks; what needs the time before a chunk belongs here.
        """
        return np.empty((0, len(samples)))

    def generic(self, samples: Samples) -> FloatArray:
        """Return a history (h, N) in which parameters are as independent as in any motion."""
        return self.history(samples)

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters for the kernel.

        The kernel fills them together with those of all effects without a `fill`.
        """
        raise NotImplementedError

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the ``chosen`` parameters into ``out`` (rows, len(chosen), N).

        ``history`` (h, N) are the rows of ``history()`` for these samples, whose motion is that at
        the stamps of the effort (Samples.moved).
        """
        motion = (samples.position, samples.velocity, samples.acceleration)
        self.kernel_columns(chosen).fill_array(
            Signals.of(motion, [history]), slice(0, len(samples)), out)

    @property
    def smooth(self) -> bool:
        """Whether columns depend only on the motion at the same instant, and have a `pullback`."""
        return type(self).pullback is not Effect.pullback

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return gradients (N, n) in position, velocity, acceleration of sum(weights * columns).

        ``weights`` (n, len(chosen), N); columns of unfiltered samples.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ChosenEffect(Shown, Effect):
    """An effect of single joints that the error on distinct motion selects.

    ``parts`` are dataclasses of plain numbers, the entries of a model file, each with the number
    of its ``joint`` and one parameter: `symbol` with that number counted from one. A new effect is
    a file and a line in `CHOSEN`, which selection, files, inverse, forward, rollout, monitor,
    exports and reports iterate over.
    """

    robot: RobotModel
    parts: tuple[Any, ...]

    #: class of a part; symbol, name in words and unit of its parameter
    part: ClassVar[type]
    symbol: ClassVar[str]
    what: ClassVar[str]
    unit: ClassVar[str] = 'N m'
    #: title and text of the section of a report
    title: ClassVar[str] = 'Chosen effect'
    about: ClassVar[str] = ''
    #: least share by which a part must lower the held-out error of a joint
    least: ClassVar[float]
    #: whether efforts hardly distinguish it from gravity, so that it and free links grow and
    #: cancel
    like_weight: ClassVar[bool] = False

    @classmethod
    def candidates(cls, robot: RobotModel, joint: int) -> Sequence[Sequence[Any]]:
        """Return parts to try at a joint in groups, simpler ones first; none if impossible."""
        raise NotImplementedError

    @classmethod
    def ranges(
        cls, robot: RobotModel, joint: int, position: FloatArray, torque: FloatArray
    ) -> FloatArray:
        """Return the ranges (k, 2) of the parameters of parts at a joint; unlimited by default.

        ``torque`` (k, N) is that of each part with its parameter at one, at poses (N, n).
        """
        return np.tile([-np.inf, np.inf], (len(torque), 1))

    @classmethod
    def shape(cls, part: Any) -> dict[str, Any]:
        """Return the numbers of a part other than its parameter, by words with their unit."""
        return {key: value for key, value in vars(part).items() if key != 'joint'}

    @classmethod
    def parts_in(cls, model: FittedModel) -> tuple[Any, ...]:
        """Return the parts of the effect that a model has."""
        return tuple(part for parts in model.structure.chosen.values() for part in parts
                     if isinstance(part, cls.part))

    @classmethod
    def sections(cls, model: FittedModel) -> tuple[Section, ...]:
        """Return a section with the parts and their numbers, none without any."""
        parts, robot = cls.parts_in(model), model.robot
        columns = ('joint', f'{cls.what} [{cls.unit}]', *dict.fromkeys(
            words for part in parts for words in cls.shape(part)))
        return tabled(cls.title, cls.about, Table(columns, (
            (robot.joints[part.joint], model.standard[f'{cls.symbol}{part.joint + 1}'],
             *cls.shape(part).values()) for part in parts)))

    @classmethod
    def figures(cls, model: FittedModel, traces: Sequence[Trace]) -> ByJoint:
        """Return the torque of each part while its joint sweeps its range there and back."""
        ranges, figures = model.trained.quantities.get('position'), ByJoint()
        share = 1.0 - np.abs(np.linspace(-1.0, 1.0, 2 * SWEEP_POINTS + 1))
        for part in cls.parts_in(model) if ranges is not None else ():
            effect, rows = cls(model.robot, (part,)), np.zeros((len(share), model.robot.n))
            low, high = ranges[part.joint]
            rows[:, part.joint] = low + share * (high - low)
            time = np.linspace(0.0, SWEEP_SECONDS, len(share))
            rates = np.asarray(np.gradient(rows, time, axis=0), dtype=np.float64)
            moved = Samples(model.robot.joints, time, rows, rates, np.zeros_like(rows))
            torque = model.standard[effect.names[0]] * effect.history(moved)[0]
            figures[part.joint] = (Figure(figure(
                [line(rows[:, part.joint], torque, cls.what, MODEL, 2.0)],
                axis(f'position [{length(model.robot, part.joint)}]'),
                axis(f'torque [{cls.unit}]'),
                {'height': 260}), cls.title, 'Its torque over the range of the training.'),)
        return figures

    @property
    def names(self) -> tuple[str, ...]:
        """The symbol with the number of the joint, such as ``cb2``."""
        return tuple(f'{self.symbol}{part.joint + 1}' for part in self.parts)

    @property
    def words(self) -> Iterator[ParameterWords]:
        """The parameter of every part."""
        return (ParameterWords(name, self.robot.joints[part.joint], self.what, self.unit)
                for name, part in zip(self.names, self.parts, strict=True))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: each is a row of the history."""
        return RegressorColumns(len(chosen), entries=tuple(
            (self.parts[index].joint, column, HISTORY, index, 1.0)
            for column, index in enumerate(chosen.tolist())), past=len(self.parts))


class LinearTorque(Protocol):
    """Effects of a robot together, linear in base parameters (b,)."""

    @property
    def robot(self) -> RobotModel:
        """The robot."""

    @property
    def blocks(self) -> tuple[Effect, ...]:
        """The effects."""

    @property
    def pivots_by_block(self) -> tuple[NDArray[np.int64], ...]:
        """The parameters (k,) of each effect that are base parameters."""

    def effort(self, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return the effort (N, rows) [N m] of base ``parameters`` (b,)."""


@dataclass(frozen=True, eq=False)
class Axes:
    """The axes that friction and rotors act on: every joint, and every coupled motor.

    ``labels`` (m,) suffixes of parameter names; ``matrix`` (m, coordinates): axis motion = matrix
    @ coordinates; ``effort`` (m, rows): rows = effort^T @ axis effort; ``rigid`` (m, n): axis
    motion if motors move with their joints. ``parts`` (m,) are the axes in words, ``slides`` (m,)
    marks prismatic ones.
    """

    labels: tuple[str, ...]
    matrix: FloatArray
    effort: FloatArray
    rigid: FloatArray
    parts: tuple[str, ...]
    slides: tuple[bool, ...]

    def only(self, axis: int) -> Axes:
        """Return a single axis."""
        rows = slice(axis, axis + 1)
        return Axes(self.labels[rows], self.matrix[rows], self.effort[rows], self.rigid[rows],
                    self.parts[rows], self.slides[rows])


def axes_of(robot: RobotModel) -> Axes:
    """Return one axis per joint, then one per motor that turns with several joints.

    The motor of joint 6 that also turns with joint 5 is labelled ``m6`` (so ``fvm6``): its
    friction acts on the combined motion and appears in the rows of both joints. The axis of an
    elastic joint is its motor: it enters the balance of the motor, and that of the joint unless
    the torque is measured behind it.
    """
    labels, parts = [str(i + 1) for i in range(robot.n)], list(robot.joints)
    rigid, slides = list(np.eye(robot.n)), [kind == PRISMATIC for kind in robot.types]
    turns = list(np.eye(robot.n, robot.coordinates))
    acts = list(np.eye(robot.n, robot.rows))
    for place, joint in enumerate(robot.drive.elastic, start=robot.n):
        turns[joint] = np.eye(robot.coordinates)[place]
        acts[joint][place] = 1.0
        if joint in robot.drive.torque_sensors:
            acts[joint][joint] = 0.0
    if robot.drive.coupling is not None:
        for i in robot.drive.coupled:
            row = robot.drive.coupling[i]
            labels.append(f'm{i + 1}')
            turns.append(np.pad(row, (0, robot.coordinates - robot.n)))
            acts.append(np.pad(row, (0, robot.rows - robot.n)))
            rigid.append(row)
            slides.append(slides[i])
            turned = ' and '.join(robot.joints[j] for j in np.flatnonzero(row))
            parts.append(f'motor of {robot.joints[i]} (turns with {turned})')
    return Axes(tuple(labels), np.array(turns), np.array(acts), np.array(rigid), tuple(parts),
                tuple(slides))


def linear_entries(
    column: int, effort: FloatArray, kind: int, shares: FloatArray | Mapping[int, float]
) -> Iterator[Entry]:
    """Yield the entries of a ``column`` that is a sum of signals of one ``kind``, by index.

    ``effort`` (rows,) selects the equations that it enters.
    """
    by_index = shares if isinstance(shares, Mapping) else dict(enumerate(shares.tolist()))
    for row in np.flatnonzero(effort).tolist():
        for index, share in by_index.items():
            if share != 0.0:
                yield row, column, kind, index, float(effort[row]) * share


def zero_gradients(samples: Samples) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return zero gradients: three arrays (N, n)."""
    shape = samples.position.shape
    return np.zeros(shape), np.zeros(shape), np.zeros(shape)


@dataclass(frozen=True, eq=False)
class Assembly:
    """The ``chosen`` parameters of each of the ``blocks``, in order.

    ``columns`` are those that the kernel fills; ``apart`` are the blocks with a `fill`, by index,
    and the first of their columns.
    """

    blocks: tuple[Effect, ...]
    chosen: tuple[NDArray[np.int64], ...]
    columns: RegressorColumns
    apart: dict[int, int]

    @classmethod
    def of(
        cls, blocks: Sequence[Effect], chosen: Sequence[NDArray[np.int64]] | None = None
    ) -> Assembly:
        """Assemble ``blocks`` with the ``chosen`` (k,) parameters of each, by default all."""
        if chosen is None:
            chosen = [np.arange(len(block.names)) for block in blocks]
        columns, apart = RegressorColumns(0), {}
        for place, (block, selected) in enumerate(zip(blocks, chosen, strict=True)):
            by_kernel = type(block).fill is Effect.fill
            both = columns.append(block.kernel_columns(selected)) if by_kernel else None
            if both is None:
                apart[place] = columns.count
                both = columns.append(RegressorColumns(len(selected)))
            assert both is not None
            columns = both
        return cls(tuple(blocks), tuple(chosen), columns, apart)

    def columns_of(
        self, samples: Samples, histories: Sequence[FloatArray] | None = None
    ) -> SampleColumns:
        """Return the columns of ``samples``, by default with their histories (h, N)."""
        if histories is None:
            histories = [block.history(samples) for block in self.blocks]
        motion = (samples.position, samples.velocity, samples.acceleration)
        by_kernel = [one for place, one in enumerate(histories) if place not in self.apart]
        return SampleColumns(self, samples, tuple(histories), Signals.of(motion, by_kernel))


@dataclass(frozen=True, eq=False)
class SampleColumns:
    """The columns of samples, computed on request."""

    assembly: Assembly
    samples: Samples
    histories: tuple[FloatArray, ...]
    signals: Signals

    def array(self, rows: int) -> FloatArray:
        """Return the regressor (rows, k, N) of all samples."""
        out = np.zeros((rows, self.assembly.columns.count, len(self.samples)))
        self.fill(slice(0, len(self.samples)), out)
        return out

    def fill(self, rows: slice, out: FloatArray) -> None:
        """Fill ``out`` (R, k, N) with the columns of N contiguous ``rows``.

        It must be zero where a parameter never acts.
        """
        self.assembly.columns.fill_array(self.signals, rows, out)
        for place, first in self.assembly.apart.items():
            chosen = self.assembly.chosen[place]
            if len(chosen):
                self.assembly.blocks[place].fill(
                    self.samples.part(rows), self.histories[place][:, rows], chosen,
                    out[:, first:first + len(chosen)])
