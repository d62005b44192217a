"""Shooting intervals: short stretches of the recordings, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import Experiment, Regression
from robot_dynid.types import FloatArray, Samples
from robot_dynid_extras.trajectory.arm import ArmModel

#: steps before an interval, and samples behind its last but one, that interpolation needs
BEFORE, BEHIND = 1, 2
#: longest step [s] of samples that are closer; and least samples of a period of the cut-off
LONGEST_STEP, PER_PERIOD = 5e-3, 4.0


@dataclass(frozen=True, eq=False)
class Intervals:
    """K intervals of m steps of one recording, in order of time.

    ``first`` (K,) samples of all recordings before each, ``span`` of them from its start to its
    end; ``step`` [s]; ``position`` (K, m + 1, n), measured. With a step more before and one behind
    (K, m + 3, ..): ``velocity`` (n) and ``effort`` (n) [N m], measured, ``pressed`` (a) [N m] size
    of the loads, and ``columns`` (n, k) of the parameters that do not move, along that motion.
    ``recording`` is the number of the recording.
    """

    recording: int
    first: NDArray[np.int64]
    span: int
    step: float
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    pressed: FloatArray
    columns: FloatArray

    def __len__(self) -> int:
        return len(self.position)

    @property
    def steps(self) -> int:
        """Number of steps m of each interval."""
        return int(self.position.shape[1]) - 1

    @property
    def states(self) -> FloatArray:
        """Measured position and velocity (K, m + 1, 2 n)."""
        return np.concatenate([self.position, self.velocity[:, BEFORE:1 - BEHIND]], axis=2)

    def part(self, rows: slice) -> Intervals:
        """Return some of the intervals."""
        return replace(
            self, first=self.first[rows], position=self.position[rows],
            velocity=self.velocity[rows], effort=self.effort[rows], pressed=self.pressed[rows],
            columns=self.columns[rows])

    def parts(self, room: int) -> Iterator[tuple[slice, Intervals]]:
        """Yield them in parts of at most ``room``, with their place."""
        for first in range(0, len(self), room):
            rows = slice(first, min(first + room, len(self)))
            yield rows, self.part(rows)


def intervals_of(
    arm: ArmModel, experiment: Experiment, seconds: float, most: int
) -> list[Intervals]:
    """Cut the recordings into intervals of about ``seconds``, one after the other.

    Their steps are at most LONGEST_STEP where the samples are closer than that, and a quarter
    of the shortest period in the signals. Recordings with shorter stretches only have none.
    Where there are more than ``most``, evenly spaced ones are taken. Raises DataError where
    recordings cannot be read again.
    """
    found, count = [], 0
    for number, samples in enumerate(experiment.recordings):
        if len(samples) > 1:
            thinned = _stride(samples)
            steps = max(1, round(seconds / (thinned * _step(samples))))
            span = thinned * steps
            room = span + BEHIND * thinned
            starts = np.array([
                first for own in samples.segments
                for first in range(own.start + BEFORE * thinned, own.stop - room + 1, span)],
                dtype=np.int64)
            stride = max(1, -(-experiment.information.samples // (span * most)))
            if len(starts):
                rows = starts[::stride, None] + thinned * np.arange(-BEFORE, steps + BEHIND)
                cut = _cut(arm, samples, rows)
                found.append(replace(cut, recording=number, first=count + starts[::stride]))
        count += len(samples)
    if count != experiment.information.samples:
        raise DataError(f'{count} of {experiment.information.samples} samples are there when the '
                        'recordings are read again; give them as a list, not as a generator')
    return found


def _step(samples: Samples) -> float:
    return float(np.median(np.diff(samples.time)))


def _stride(samples: Samples) -> int:
    """Return the number of samples in a step."""
    longest = LONGEST_STEP
    if samples.cutoff is not None:
        longest = min(longest, 1.0 / (PER_PERIOD * samples.cutoff))
    return max(1, int(longest / _step(samples) + 1e-9))


def _cut(arm: ArmModel, samples: Samples, rows: NDArray[np.int64]) -> Intervals:
    """Return the intervals at ``rows`` (K, m + 3) of one recording."""
    grid = _on_grid(samples)
    assert grid.effort is not None
    regression, beside = Regression(arm.torque, grid), ~arm.moving
    thinned = int(rows[0, 1] - rows[0, 0])
    columns = np.empty((*rows.shape, arm.torque.robot.n, int(beside.sum())))
    for place, own in enumerate(rows):
        found = regression.columns(slice(int(own[0]), int(own[-1]) + 1))
        columns[place] = found[:, beside, ::thinned].transpose(2, 0, 1)
    return Intervals(
        0, rows[:, BEFORE], int(rows[0, -BEHIND] - rows[0, BEFORE]), thinned * _step(samples),
        grid.position[rows[:, BEFORE:1 - BEHIND]], grid.velocity[rows], grid.effort[rows],
        arm.pressed(grid)[rows], columns)


def _on_grid(samples: Samples) -> Samples:
    """Return the samples with the effort of the instants of the motion."""
    gridded = samples.gridded
    return replace(samples, effort=gridded.effort, measured=gridded.measured, stamps=None)
