"""Types of the whole package: recordings as they were read, filtered samples, progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.errors import DataError

FloatArray = NDArray[np.float64]
#: called with the stage of a long computation and the part of it that is done, 0 to 1
Progress = Callable[[str, float], None]
CHANNELS = ('position', 'velocity', 'effort', 'motor_position', 'motor_velocity', 'temperature',
            'reference_position', 'joint_torque', 'external_torque')
#: components of a wrench, in order: force [N], torque [N m]
WRENCH_COMPONENTS = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
#: purposes of a motion and its recording: a model is fitted to it, or judged by it
FIT, VALIDATION = PURPOSES = ('fit', 'validation')
#: columns that are filtered or interpolated together: memory for a few copies of so many
TOGETHER = 24


def frozen(array: Any) -> FloatArray:
    """Return a read-only float64 copy of ``array``, of the same shape, such as (N, n)."""
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy


def contiguous(array: ArrayLike) -> FloatArray:
    """Return an array such as (N, n) as kernels read it: contiguous float64, a copy if needed."""
    if isinstance(array, np.ndarray) and array.dtype == np.float64 and (
            array.flags.c_contiguous and array.flags.aligned):
        return array  # faster than NumPy's own look
    return np.require(array, np.float64, ['C', 'A'])


class Portable:
    """A dataclass that travels between processes without what it has cached.

    Arrays in it can be written to when they come back; caches are made anew.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


#: stamps [s] above this one are times of day: it was in 1973
FIRST_DAY = 1e8


def epoch_of(first: float, zero: float = 0.0) -> float | None:
    """Return ``zero`` [s since 1970] where the stamp ``first`` [s] is a time of day, else None."""
    return zero if first > FIRST_DAY else None


#: begins every finding that says a recording is not what was recorded: checksums, counts and
#: structure of its file contradict what it holds
DAMAGE = 'damaged: '


@dataclass(frozen=True)
class Part:
    """Place of a part within a longer recording, all in s on the clock of the recording.

    Its own rows are those from ``start`` to before ``stop``, which are -inf and inf where the
    recording begins and ends; rows around them are those of the parts beside it, for filters and
    for what depends on the past. The ``recording`` ``began`` then.
    """

    start: float
    stop: float
    began: float
    recording: str = ''

    def own(self, time: FloatArray) -> NDArray[np.bool_]:
        """Return a mask (N,) of the rows at ``time`` (N,) that are its own."""
        return np.asarray((time >= self.start) & (time < self.stop))


@dataclass(frozen=True, eq=False)
class RawLog:
    """One recording exactly as it was read: nothing repaired, nothing dropped.

    ``time`` is (T,) in seconds; every channel is (T, n) in SI units (effort in the robot's own
    effort unit, temperature in deg C, ``joint_torque`` in N m measured behind the gear,
    ``external_torque`` in N m that known wrenches of the surroundings exert on the joints) with
    the columns in the order of ``joints``, or None where it was not recorded. NaN, repeated and
    backward stamps may be present; ``findings`` says so in plain sentences. Effort that came with
    stamps of its own is in ``effort`` as it is at ``time``, and in ``effort_messages`` as it was
    measured: stamps (E,) s on the clock of ``time``, in order, and values (E, n). ``part`` is its
    place where it is a part of a longer recording; ``began`` [s] on the clock of ``time`` is when
    the recording began of which it is a window, None: with the first row. ``accepted`` are the
    kinds of findings about plausibility (plausibility.KINDS) that are known to be meant so.
    ``epoch`` [s] is the time of day, since 1970, at which ``time`` is zero; None where the stamps
    do not tell. ``wrench`` (T, 6) are the readings of the robot's ``wrench_sensor``, in the order
    of WRENCH_COMPONENTS, in the frame of this name.

    Raises DataError when the shapes do not agree.
    """

    source: str
    joints: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None = None
    effort: FloatArray | None = None
    motor_position: FloatArray | None = None
    motor_velocity: FloatArray | None = None
    temperature: FloatArray | None = None
    reference_position: FloatArray | None = None
    joint_torque: FloatArray | None = None
    findings: tuple[str, ...] = ()
    effort_messages: tuple[FloatArray, FloatArray] | None = None
    part: Part | None = None
    accepted: tuple[str, ...] = ()
    epoch: float | None = None
    began: float | None = None
    external_torque: FloatArray | None = None
    wrench: FloatArray | None = None
    wrench_frame: str = ''

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joints))
        for name in CHANNELS:
            channel = getattr(self, name)
            if channel is not None and channel.shape != shape:
                raise DataError(
                    f'{self.source}: {name} has shape {channel.shape}, expected {shape} '
                    f'({shape[0]} stamps, {shape[1]} joints)'
                )


class StoredRecording(Protocol):
    """A recording that is read from its file wherever it is worked on, such as another process.

    Before it is ``opened`` it can only be asked for its source.
    """

    @property
    def source(self) -> str:
        """The file it is read from."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order of the columns."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings about the whole recording."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def opened(self) -> tuple[StoredRecording, str]:
        """Read it; return it as it can be worked on, and the SHA-256 of its files."""

    def read(self) -> RawLog:
        """Return it in memory."""

    def within(self, start: float | None, stop: float | None) -> StoredRecording:
        """Return the window between two times [s] since it began, None for an open end."""


def channels(log: RawLog) -> dict[str, FloatArray]:
    """Return the recorded channels (N, n) of ``log`` by name."""
    return {name: getattr(log, name) for name in CHANNELS if getattr(log, name) is not None}


def take(log: RawLog, rows: NDArray[np.bool_] | NDArray[np.int64] | slice) -> RawLog:
    """Return the log with the chosen ``rows`` of all channels: a mask (N,), indices or a slice."""
    taken: dict[str, Any] = {name: values[rows] for name, values in channels(log).items()}
    if log.wrench is not None:
        taken['wrench'] = log.wrench[rows]
    return replace(log, time=log.time[rows], **taken)


@dataclass(frozen=True, eq=False)
class Samples:
    """Uniformly sampled, filtered motion of all joints, and the effort, in contiguous segments.

    ``time`` (N,) s; ``position``, ``velocity``, ``acceleration`` (N, n) rad, rad/s, rad/s^2
    (m for prismatic joints). Beside each of them stands the effort that was measured nearest to
    it, at an instant of its own: ``stamps`` (N,) s on the clock of ``time``, None for those of
    ``time``; ``measured`` (N, n) N m as it was measured; ``effort`` (N, n) N m at the same stamps,
    passed through the same filter as the motion. The latter two are None for states without
    measured effort. What is compared with them is evaluated at their stamps (``at_stamps``).
    Of a robot with elastic joints the motion has a column per
    coordinate, the effort one per equation (RobotModel.coordinates, RobotModel.row_joints).
    ``raw_position`` (N, n) is the position of the joints at the instant of ``measured``, as it was
    measured, for what is locked to it and would be lost in a filter; None where not known.
    ``starts`` holds the first index of every contiguous segment.
    ``cutoff`` [Hz] is that of the filter the motion has passed, None for unfiltered states.
    ``noise`` (n,) is the standard deviation of ``measured`` where it is known from repetition.
    ``temperature`` (N, n) [deg C] of the joints, where it was measured.
    ``reference_position`` (N, n) that of the drives' commands, filtered as ``position``; as it
    acts, if the drives are position servos.
    ``motor_position``, ``motor_velocity`` (N, n) those of the motors on the joint side, filtered
    as the motion; NaN for joints whose two encoders cannot be used together.
    ``whole`` is the recording they are the ``rows`` (N,) of, with its ends, for what depends on
    the past or passes a filter; None where the samples are all there is.
    ``began`` [s] is when the recording began that they are a part of; None: with its first sample.
    ``external`` (N, n) N m is the torque of known external wrenches on the joints, filtered as the
    motion; it is in ``effort`` and ``measured`` already, which are those the links take then.
    """

    joints: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray | None = None
    measured: FloatArray | None = None
    starts: tuple[int, ...] = (0,)
    cutoff: float | None = None
    noise: tuple[float, ...] | None = None
    temperature: FloatArray | None = None
    reference_position: FloatArray | None = None
    motor_position: FloatArray | None = None
    motor_velocity: FloatArray | None = None
    stamps: FloatArray | None = None
    raw_position: FloatArray | None = None
    whole: Samples | None = None
    rows: NDArray[np.int64] | None = None
    began: float | None = None
    external: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def elapsed(self) -> FloatArray:
        """Time (N,) [s] since the recording began."""
        return np.asarray(self.time - (self.time[:1] if self.began is None else self.began))

    @property
    def instants(self) -> FloatArray:
        """Time (N,) [s] of the efforts: their stamps."""
        return self.time if self.stamps is None else self.stamps

    @property
    def segments(self) -> tuple[slice, ...]:
        """The contiguous stretches of the samples, in order."""
        stops = (*self.starts[1:], len(self))
        return tuple(slice(a, b) for a, b in zip(self.starts, stops, strict=True))

    def part(self, rows: slice) -> Samples:
        """Return the samples of ``rows`` (a contiguous slice) with their segment boundaries."""
        start, stop, _ = rows.indices(len(self))
        inner = tuple(s - start for s in self.starts if start < s < stop)
        return replace(self, **self.taken(rows), starts=(0, *inner))

    def taken(self, rows: NDArray[np.int64] | slice) -> dict[str, Any]:
        """Return ``rows``, a slice or indices (M,), of all that is given per sample, by name."""
        return {name: value[rows] for name, value in vars(self).items()
                if isinstance(value, np.ndarray)}

    def inner(self, inside: NDArray[np.bool_]) -> Samples:
        """Return the samples that are ``kept`` (N,), which know what is around them."""
        rows = np.flatnonzero(inside)
        breaks = np.flatnonzero(np.diff(rows) > 1) + 1
        limits = np.searchsorted(rows, self.starts)
        starts = sorted({0, *breaks.tolist(), *limits[limits < len(rows)].tolist()})
        return replace(self, **{**self.taken(rows), 'starts': tuple(starts), 'whole': self,
                                'rows': rows})

    def with_past(self, of: Callable[[Samples], FloatArray]) -> FloatArray:
        """Return signals ``of`` (N, k) of the samples, computed over the whole recording."""
        return of(self) if self.whole is None else of(self.whole)[self.rows]

    def with_motion(self, of: Callable[[Samples], Samples]) -> Samples:
        """Return the samples with the motion ``of`` the whole recording."""
        if self.whole is None:
            return of(self)
        whole = of(self.whole)
        q, qd, qdd = (x[self.rows] for x in (whole.position, whole.velocity, whole.acceleration))
        return replace(self, position=q, velocity=qd, acceleration=qdd, whole=whole)

    def at_stamps(self, values: FloatArray) -> FloatArray:
        """Return ``values`` (N, k), given at ``time``, at the stamps of the effort.

        Cubic splines, segment by segment: what passed a low-pass is smooth.
        """
        if self.stamps is None:
            return values
        available = np.isfinite(values).all(axis=0)
        moved = np.full_like(values, np.nan)
        for rows in self.segments:
            moved[rows, available] = interpolated(self.time[rows], values[rows][:, available],
                                                  self.stamps[rows])
        return moved

    @property
    def moved(self) -> Samples:
        """The samples with their motion at the stamps of the effort."""
        if self.stamps is None:
            return self
        motion = np.hstack([self.position, self.velocity, self.acceleration])
        q, qd, qdd = np.split(self.at_stamps(motion), 3, axis=1)
        external = None if self.external is None else self.at_stamps(self.external)
        return replace(self, time=self.stamps, position=q, velocity=qd, acceleration=qdd,
                       external=external, stamps=None, whole=None, rows=None)

    @property
    def gridded(self) -> Samples:
        """The samples with their effort at ``time``: for differences between recordings.

        Interpolation takes off part of what is white in it, so no score is taken from these.
        """
        if self.stamps is None or self.effort is None or self.measured is None:
            return replace(self, whole=None, rows=None)
        effort, measured = np.empty_like(self.effort), np.empty_like(self.measured)
        for rows in self.segments:
            fresh = np.flatnonzero(self.fresh[rows]) + rows.start
            effort[rows] = interpolated(self.stamps[fresh], self.effort[fresh], self.time[rows])
            measured[rows] = interpolated(
                self.stamps[fresh], self.measured[fresh], self.time[rows], degree=1)
        return replace(self, effort=effort, measured=measured, stamps=None, whole=None, rows=None)

    @property
    def fresh(self) -> NDArray[np.bool_]:
        """Mask (N,) of the samples with a measurement that none before them carries."""
        if self.stamps is None:
            return np.ones(len(self), dtype=bool)
        return np.diff(self.stamps, prepend=-np.inf) > 0.0


def concatenate(parts: list[Samples]) -> Samples:
    """Join samples of several recordings of the same joints; each keeps its own segments."""
    if len(parts) == 1:
        return replace(parts[0], whole=None, rows=None)
    offsets = np.cumsum([0, *(len(p) for p in parts[:-1])])
    starts = tuple(int(o) + s for o, p in zip(offsets, parts, strict=True) for s in p.starts)
    joined: dict[str, Any] = {'cutoff': parts[0].cutoff, 'noise': _pooled(parts),
                              'began': parts[0].began}
    for field in fields(Samples):
        values = [getattr(p, field.name) for p in parts]
        if field.name not in ('joints', 'starts', 'whole', 'rows', *joined):
            missing = any(v is None for v in values)
            joined[field.name] = None if missing else np.concatenate(values)
    return Samples(joints=parts[0].joints, starts=starts, **joined)


def interpolated(
    instants: FloatArray, values: FloatArray, asked: FloatArray, degree: int = 3
) -> FloatArray:
    """Return ``values`` (N, k), given at ``known`` (N,), at ``asked`` (M,), by a spline."""
    degree = min(degree, len(instants) - 1)
    if degree < 1:
        return np.broadcast_to(values[:1], (len(asked), values.shape[1]))
    if degree < 3:
        from scipy import interpolate  # late: every record is made here, few are interpolated

        return np.asarray(interpolate.make_interp_spline(instants, values, k=degree)(asked))
    from robot_dynid.kernels.spline import cubic_spline  # late: doctor works without kernels

    result = np.empty((values.shape[1], len(asked)))
    columns = np.require(values.T, np.float64, ['C', 'W'])  # of the type that is compiled
    cubic_spline(np.array(instants), columns, np.array(asked), result)
    return result.T


def _pooled(parts: list[Samples]) -> tuple[float, ...] | None:
    """Return the root mean square of the noise over all samples, None when some is unknown."""
    noises = [p.noise for p in parts if p.noise is not None]
    if len(noises) < len(parts):
        return None
    squares = np.average(np.square(noises), axis=0, weights=[len(p) for p in parts])
    return tuple(np.sqrt(squares).tolist())
