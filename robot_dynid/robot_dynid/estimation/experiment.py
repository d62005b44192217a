"""Torque model and measured samples: the data an estimator is fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import chunk_length
from robot_dynid.effects.effect import Assembly, Effect, ParameterWords, SampleColumns, axes_of
from robot_dynid.effects.gears import Gear, Springs
from robot_dynid.effects.joint_friction import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.estimation.information import MAX_BATCHES, Accumulator, Information
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import entries, reduce_numeric, states_at
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.unfiltered import AsRecorded
from robot_dynid.types import FloatArray, Samples

#: maximum number of samples of a chunk whose columns have unknown size
CHUNK_SAMPLES = 1024
#: number of chunk lengths whose regressors stay in memory: those on both sides of a segment
#: boundary alternate
BUFFERS = 3
#: speed [rad/s, m/s] of the motion in which the effort of a parameter is evaluated
MODERATE_SPEED = 1.0
#: length of a batch [s] and least number of batches
BATCH_SECONDS, LEAST_BATCHES = 1.0, 24
#: share of its peak speed above which an axis is far from reversing
SWIFT_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class TorqueModel:
    """A torque model that is linear in the base parameters: ``effort = columns @ parameters``."""

    robot: RobotModel
    blocks: tuple[Effect, ...]
    reduction: Reduction

    @classmethod
    def of(cls, robot: RobotModel, blocks: tuple[Effect, ...]) -> TorqueModel:
        """Reduce `blocks` numerically to their base parameters."""
        return cls(robot, blocks, reduce_numeric(robot, blocks))

    @cached_property
    def pivots_by_block(self) -> tuple[NDArray[np.int64], ...]:
        """Indices (k,) of the base columns within every block."""
        firsts = np.cumsum([0, *(len(block.names) for block in self.blocks)])
        pivots = self.reduction.pivots
        return tuple(pivots[(pivots >= first) & (pivots < last)] - first
                     for first, last in pairwise(firsts))

    def base_of(self, *kinds: type[Effect]) -> NDArray[np.bool_]:
        """Return a mask (b,) of the base parameters of effects of these kinds."""
        return np.repeat([isinstance(block, kinds) for block in self.blocks],
                         [len(pivots) for pivots in self.pivots_by_block])

    @cached_property
    def assembly(self) -> Assembly:
        """The base columns of all blocks."""
        return Assembly.of(self.blocks, self.pivots_by_block)

    @property
    def chunk(self) -> int:
        """Number of samples at a time for which the base regressor is filled fastest."""
        return chunk_length(self.robot.rows, len(self.reduction.pivots))

    @cached_property
    def gears(self) -> tuple[Gear, ...]:
        """The gears of elastic joints, none for a rigid robot."""
        return tuple(gear for block in self.blocks if isinstance(block, Springs)
                     for gear in block.gears)

    def columns(self, samples: Samples) -> FloatArray:
        """Return the base regressor (n, b, N) of whole segments."""
        return Regression(self, samples).columns(slice(0, len(samples)))

    @cached_property
    def structure(self) -> NDArray[np.bool_]:
        """Mask (n, b): True if a base parameter acts on the effort of a joint."""
        return entries(self.robot, self.blocks)[:, self.reduction.pivots]

    @cached_property
    def moderate_effort(self) -> FloatArray:
        """Root mean square effort (n, b) of each base parameter of value one, at about 1 rad/s."""
        columns = self.columns(states_at(self.robot, MODERATE_SPEED))
        return np.asarray(np.sqrt(np.mean(columns ** 2, axis=2)))

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """Mask (n,) of the joints that the modelled friction may hold at rest."""
        return np.asarray(self.holding(np.ones(len(self.reduction.pivots))) > 0.0)

    @cached_property
    def words(self) -> dict[str, ParameterWords]:
        """Descriptions of all standard parameters, by name.

        Base parameters have the names of standard ones; their combinations are in their labels.
        """
        return {one.name: one for block in self.blocks for one in block.words}

    def mechanism(self, values: Mapping[str, float]) -> Mechanism:
        """Return the mechanism with all effects, from standard parameters `values` by name."""
        mechanism = Mechanism.without_effects(self.robot.rigid)
        for block in self.blocks:
            mechanism = block.acting(mechanism, values)
        return mechanism

    def holding(self, parameters: FloatArray) -> FloatArray:
        """Return the friction (n,) [N m] that may hold each joint at rest, of either sign."""
        held, values = np.zeros(self.robot.rows), np.abs(parameters)
        for block, pivots in zip(self.blocks, self.pivots_by_block, strict=True):
            if isinstance(block, JointFriction):
                held += block.holding[:, pivots] @ values[:len(pivots)]
            values = values[len(pivots):]
        return held

    def effort(self, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return the modelled effort (N, n) [N m] of a motion at the time stamps of its effort."""
        return np.asarray(self.efforts(samples, parameters[None])[0])

    def efforts(self, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return `effort` (k, N, n) of each row of ``parameters`` (k, b)."""
        regression = Regression(self, samples)
        effort = np.empty((len(parameters), len(samples), self.robot.rows))
        for rows in chunks(samples, self.chunk):
            effort[:, rows] = np.tensordot(
                parameters, regression.columns(rows), (1, 1)).transpose(0, 2, 1)
        return effort


@dataclass(frozen=True, eq=False)
class Regression:
    """The base regressor of one recording, at the time stamps of its effort, in chunks."""

    model: TorqueModel
    samples: Samples

    _columns: SampleColumns = field(init=False)
    _buffers: dict[int, FloatArray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        # computed here, because a cached property has one lock for all instances up to Python 3.11
        histories = [block.history(self.samples) for block in self.model.blocks]
        columns = self.model.assembly.columns_of(self.samples.moved, histories)
        object.__setattr__(self, '_columns', columns)

    def columns(self, rows: slice) -> FloatArray:
        """Return the base regressor (n, b, N) of N `rows`; the next call may overwrite it."""
        count = rows.stop - rows.start
        model = self.model
        if count not in self._buffers:
            if len(self._buffers) == BUFFERS:  # chunks of other lengths have been filled
                del self._buffers[next(iter(self._buffers))]
            shape = (model.robot.rows, len(model.reduction.pivots), count)
            self._buffers[count] = np.zeros(shape)
        out = self._buffers[count]
        self._columns.fill(rows, out)
        return out


def chunks(samples: Samples, max_size: int = CHUNK_SAMPLES) -> Iterator[slice]:
    """Cut samples into slices of at most `max_size`, never across a segment boundary."""
    for segment in samples.segments:
        for first in range(segment.start, segment.stop, max_size):
            yield slice(first, min(first + max_size, segment.stop))


@dataclass(frozen=True, eq=False)
class Experiment:
    """A torque model and the information that samples contain about its parameters.

    `recordings` and `reversal_weights` are its sources, for estimators that need samples;
    `as_recorded` are the unfiltered recordings.
    """

    model: TorqueModel
    information: Information
    recordings: Iterable[Samples] = ()
    reversal_weights: FloatArray | None = None
    as_recorded: AsRecorded | None = None

    @classmethod
    def of(
        cls, model: TorqueModel, recordings: Iterable[Samples],
        reversal_weights: FloatArray | None = None,
    ) -> Experiment:
        """Reduce recordings to information, one chunk at a time.

        `reversal_weights` (n,) multiplies the rows of each joint near its reversals, where dry
        friction sticks; None gives them full weight. Raises DataError if there are fewer samples
        than parameters, or no measured effort.
        """
        information: Information | None = None
        for one in by_recording(model, recordings, reversal_weights):
            information = add_recording(information, one)
        return cls.about(model, information, reversal_weights, recordings)

    @classmethod
    def about(
        cls, model: TorqueModel, information: Information | None,
        reversal_weights: FloatArray | None = None, recordings: Iterable[Samples] = (),
    ) -> Experiment:
        """Return the experiment of existing `information`, made with `reversal_weights` (n,).

        Raises DataError if there are fewer samples than parameters.
        """
        count = information.samples if information else 0
        parameters = len(model.reduction.pivots)
        if information is None or count < parameters:
            raise DataError(f'{count} usable samples are too few for {parameters} base '
                            'parameters: record a longer motion')
        return cls(model, information, recordings, reversal_weights)

    def equations(self, accumulator: Accumulator | None = None) -> Iterator[Equations]:
        """Read the recordings again, in chunks, and begin each recording in `accumulator`.

        Raises DataError if the recordings were not stored, or can be read only once.
        """
        count = 0
        for samples, goes_on in in_parts(self.recordings):
            if accumulator is not None:
                accumulator.begin(goes_on=goes_on)
            regression = Regression(self.model, samples)
            weights = row_weights(self.model.robot, samples, self.reversal_weights)
            for segment in samples.segments:
                for chunk in equations(regression, segment, weights):
                    count += chunk.rows.stop - chunk.rows.start
                    yield chunk
        if count != self.information.samples:
            raise DataError(f'{count} of {self.information.samples} samples remain when the '
                            'recordings are read again: give them as a list, not as a generator')

    @property
    def by_motion(self) -> Experiment:
        """The experiment whose batches are cells of distinct motion."""
        return replace(self, information=self.information.distinct)

    def accumulator(
        self, names: tuple[str, ...] | None = None, structure: NDArray[np.bool_] | None = None
    ) -> Accumulator:
        """Return an empty accumulator with the batches of `information`.

        Also with its cells of distinct motion, unless there are other parameters (`names`).
        `structure` (n, b) is True where a parameter acts on a joint.
        """
        information = self.information
        sizes = tuple(batch.samples for batch in information.batches)
        return Accumulator(names or information.names, information.structure if structure is None
                           else
                           structure, sizes[0], sizes=sizes,
                           cells=None if names else information.by_motion)


def by_recording(
    model: TorqueModel, recordings: Iterable[Samples], reversal_weights: FloatArray | None = None,
) -> Iterator[Information]:
    """Yield the information of each recording.

    `reversal_weights` (n,) and `recordings` are as in `Experiment.of`. Raises DataError without
    measured effort.
    """
    accumulator: Accumulator | None = None
    expected = sum(map(len, recordings)) if isinstance(recordings, Sequence) else 0
    for samples, goes_on in in_parts(recordings):
        if not goes_on:
            if accumulator is not None:
                yield accumulator.information()
            accumulator = Accumulator(model.reduction.names, model.structure,
                                      batch_samples(samples), expected)
        assert accumulator is not None
        accumulator.begin(samples, goes_on)
        regression = Regression(model, samples)
        weights = row_weights(model.robot, samples, reversal_weights)
        for segment in samples.segments:
            accumulate(regression, segment, accumulator, weights)
    if accumulator is not None:
        yield accumulator.information()


def add_recording(previous: Information | None, recording: Information) -> Information:
    """Return the information with that of one more recording, in a bounded number of batches."""
    whole = recording if previous is None else previous.merge(recording)
    return whole.condensed() if len(whole.batches) > 2 * MAX_BATCHES else whole


def in_parts(recordings: Iterable[Samples]) -> Iterator[tuple[Samples, bool]]:
    """Yield recordings and parts of recordings, and True if a part continues the one before it."""
    began, end = None, np.inf
    for samples in recordings:
        yield samples, (samples.began is not None and samples.began == began
                        and bool(samples.time[0] > end))
        began, end = samples.began, samples.time[-1] if len(samples) else np.inf


def whole_batch(samples: Samples) -> int:
    """Return the number of samples in BATCH_SECONDS."""
    step = float(np.median(np.diff(samples.time))) if len(samples) > 1 else 1.0
    return max(1, round(BATCH_SECONDS / max(step, 1e-9)))


def batch_samples(samples: Samples) -> int:
    """Return the batch length in samples: BATCH_SECONDS, or less if that makes too few batches.

    Parts of a longer recording always have BATCH_SECONDS.
    """
    length = whole_batch(samples)
    if samples.began is not None:
        return length
    return int(max(1, min(length, len(samples) // LEAST_BATCHES or 1)))


def swift(
    robot: RobotModel, samples: Samples, least: FloatArray | None = None
) -> FloatArray:
    """Return (N, rows) 1 if a joint is far from reversing, 0 near it, in time or in speed.

    Far means that every axis acting on the joint stays above a threshold for one period of the
    cut-off around the sample: SWIFT_SHARE of its peak speed, or the speed that the joint speeds
    `least` (n,) [rad/s, m/s] give, if stated.
    """
    from scipy.ndimage import minimum_filter1d

    axes = axes_of(robot)
    speed = np.abs(samples.velocity @ axes.matrix.T)
    threshold = SWIFT_SHARE * speed.max(axis=0, initial=0.0) if least is None else \
        np.abs(axes.matrix) @ least
    slowest = np.empty_like(speed)
    for segment in samples.segments:
        count = segment.stop - segment.start
        step = float(samples.time[segment.start + 1] - samples.time[segment.start]) \
            if count > 1 else 1.0
        window = 2 * round(1.0 / (samples.cutoff * step)) + 1 if samples.cutoff else 1
        slowest[segment] = minimum_filter1d(speed[segment], min(window, 2 * count - 1), axis=0)
    slow = (slowest <= threshold).astype(np.float64) @ np.abs(axes.effort)
    far: FloatArray = (slow == 0.0).astype(np.float64)
    return far


def row_weights(
    robot: RobotModel, samples: Samples, reversal_weights: FloatArray | None
) -> FloatArray | None:
    """Return the weights (N, n) of all equations; None means full weight."""
    if reversal_weights is None:
        return None
    return np.where(swift(robot, samples) > 0.5, 1.0, reversal_weights)


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations ``columns @ parameters = effort`` of contiguous `rows` of a recording.

    `columns` (n, b, N), filtered and raw `effort` and `measured` (N, n) [N m], all multiplied by
    `weights` (N, n) if given.
    """

    regression: Regression
    rows: slice
    weights: FloatArray | None
    columns: FloatArray
    effort: FloatArray
    measured: FloatArray

    def residual(self, parameters: FloatArray) -> FloatArray:
        """Return effort minus model (N, n), weighted as the equations [N m]."""
        return np.asarray(self.effort - np.tensordot(parameters, self.columns, (0, 1)).T)


def equations(
    regression: Regression, rows: slice, weights: FloatArray | None
) -> Iterator[Equations]:
    """Cut contiguous `rows` into chunks of equations; a chunk is valid until the next one.

    `weights` (N, n) multiply the equations. Raises DataError if the recording has no measured
    effort.
    """
    samples, length = regression.samples, regression.model.chunk
    if samples.effort is None or samples.measured is None:
        raise DataError('the samples carry no measured effort')
    for first in range(rows.start, rows.stop, length):
        chunk = slice(first, min(first + length, rows.stop))
        columns = regression.columns(chunk)
        effort, measured = samples.effort[chunk], samples.measured[chunk]
        used = None if weights is None else weights[chunk]
        if used is not None:
            columns = columns * used.T[:, None, :]
            effort, measured = effort * used, measured * used
        yield Equations(regression, chunk, used, columns, effort, measured)


def accumulate(
    regression: Regression, rows: slice, accumulator: Accumulator, weights: FloatArray | None
) -> None:
    """Add contiguous `rows` of a recording, multiplied by `weights` (N, n), to an accumulator.

    Raises DataError if it has no measured effort.
    """
    for chunk in equations(regression, rows, weights):
        accumulator.add(chunk.columns, chunk.effort, chunk.measured)
