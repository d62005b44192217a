"""The contract of effects: one physical cause of torque, linear in parameters of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.regressor_columns import Entry, RegressorColumns, Signals
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples


class Block(Protocol):
    """A physical effect; regressors are (rows, k, N), samples last.

    Samples have one column per coordinate of the robot, and there is a row per equation: both are
    the n joints where no joint is elastic, see RobotModel.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Those of them that no real robot has below zero, each by itself."""

    def history(self, samples: Samples) -> FloatArray:
        """Return signals (h, N) that depend on the past, at the stamps of the effort.

        Samples are worked off in chunks; what must know the time before a chunk goes here.
        """

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the ``chosen`` parameters into ``out`` (rows, len(chosen), N).

        ``history`` (h, N) are the rows of ``history()`` that belong to these samples, whose motion
        is that at the stamps of the effort, too (Samples.moved).
        """


class LinearTorque(Protocol):
    """Effects of a robot together, linear in base parameters (b,)."""

    @property
    def robot(self) -> RobotModel:
        """The robot."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The effects."""

    @property
    def kept_by_block(self) -> tuple[NDArray[np.int64], ...]:
        """Of each effect the parameters (k,) that are base parameters."""

    def effort(self, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return the effort (N, rows) [N m] of base ``parameters`` (b,)."""


class KernelBlock(ABC):
    """A block whose columns the kernel fills, together with those of others like it."""

    @abstractmethod
    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters."""

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the ``chosen`` parameters into ``out`` (rows, len(chosen), N)."""
        motion = (samples.position, samples.velocity, samples.acceleration)
        self.kernel_columns(chosen).fill_array(
            Signals.of(motion, [history]), slice(0, len(samples)), out)


@runtime_checkable
class SmoothBlock(Block, Protocol):
    """A block whose columns depend on the motion of the same instant only."""

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return gradients (N, n) in position, velocity, acceleration of sum(weights * columns).

        ``weights`` (n, len(chosen), N); columns of unfiltered samples.
        """


@dataclass(frozen=True, eq=False)
class Axes:
    """The axes that friction and rotors act on: every joint, and every coupled motor.

    ``labels`` (m,) suffixes of parameter names; ``matrix`` (m, coordinates): axis motion = matrix
    @ coordinates; ``effort`` (m, rows): rows = effort^T @ axis effort.
    """

    labels: tuple[str, ...]
    matrix: FloatArray
    effort: FloatArray


def axes_of(robot: RobotModel) -> Axes:
    """Return one axis per joint, then one per motor that turns with several joints.

    The motor of joint 6 that also turns with joint 5 is labelled ``m6`` (so ``fvm6``): its
    friction acts on the combined motion and appears in the rows of both joints. The axis of an
    elastic joint is its motor: it enters the balance of the motor, and that of the joint unless
    the torque is measured behind it.
    """
    labels = [str(i + 1) for i in range(robot.n)]
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
    return Axes(tuple(labels), np.array(turns), np.array(acts))


def linear(
    column: int, effort: FloatArray, kind: int, shares: FloatArray | Mapping[int, float]
) -> Iterator[Entry]:
    """Yield the entries of a ``column`` that is a sum of signals of one ``kind`` by index.

    ``effort`` (rows,) are the equations that it enters.
    """
    found = shares if isinstance(shares, Mapping) else dict(enumerate(shares.tolist()))
    for row in np.flatnonzero(effort).tolist():
        for index, share in found.items():
            if share != 0.0:
                yield row, column, kind, index, float(effort[row]) * share


def still(samples: Samples) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return gradients of nothing: three of zeros (N, n)."""
    shape = samples.position.shape
    return np.zeros(shape), np.zeros(shape), np.zeros(shape)


@dataclass(frozen=True, eq=False)
class Assembly:
    """The ``chosen`` parameters of every one of the ``blocks``, in this order.

    ``columns`` are those that the kernel fills; ``apart`` are the blocks that fill their own, by
    index, and the first of their columns.
    """

    blocks: tuple[Block, ...]
    chosen: tuple[NDArray[np.int64], ...]
    columns: RegressorColumns
    apart: dict[int, int]

    @classmethod
    def of(
        cls, blocks: Sequence[Block], chosen: Sequence[NDArray[np.int64]] | None = None
    ) -> Assembly:
        """Assemble ``blocks``; of each the ``chosen`` (k,) parameters, by default all."""
        if chosen is None:
            chosen = [np.arange(len(block.names)) for block in blocks]
        columns, apart = RegressorColumns(0), {}
        for place, (block, own) in enumerate(zip(blocks, chosen, strict=True)):
            both = columns.beside(block.kernel_columns(own)) if _by_kernel(block) else None
            if both is None:
                apart[place] = columns.count
                both = columns.beside(RegressorColumns(len(own)))
            assert both is not None
            columns = both
        return cls(tuple(blocks), tuple(chosen), columns, apart)

    def columns_of(
        self, samples: Samples, histories: Sequence[FloatArray] | None = None
    ) -> SampleColumns:
        """Return the columns of ``samples``, by default with the histories (h, N) they have."""
        if histories is None:
            histories = [block.history(samples) for block in self.blocks]
        motion = (samples.position, samples.velocity, samples.acceleration)
        known = [history for place, history in enumerate(histories) if place not in self.apart]
        return SampleColumns(self, samples, tuple(histories), Signals.of(motion, known))


@dataclass(frozen=True, eq=False)
class SampleColumns:
    """The columns of samples, computed when they are asked for."""

    assembly: Assembly
    samples: Samples
    histories: tuple[FloatArray, ...]
    signals: Signals

    def array(self, rows: int) -> FloatArray:
        """Return the regressor (rows, k, N) of all samples, of as many equations."""
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


def _by_kernel(block: Block) -> TypeGuard[KernelBlock]:
    """Return whether the kernel fills the columns of a block: none that fills them otherwise."""
    return (isinstance(block, KernelBlock)
            and getattr(type(block), 'fill', None) is KernelBlock.fill)
