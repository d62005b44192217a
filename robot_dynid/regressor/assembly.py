"""The columns of several blocks side by side in one array, filled by the kernel in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.regressor_columns import RegressorColumns, Signals
from robot_dynid.regressor.block import Block, KernelBlock
from robot_dynid.types import FloatArray, Samples


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
