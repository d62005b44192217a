"""The two records that carry measurements: what was read, and what the estimators see."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError

FloatArray = NDArray[np.float64]
CHANNELS = ('position', 'velocity', 'effort', 'motor_position', 'motor_velocity', 'temperature',
            'reference_position', 'joint_torque')


def frozen(array: Any) -> FloatArray:
    """Return a read-only float64 copy of ``array``."""
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False)
class RawLog:
    """One recording exactly as it was read: nothing repaired, nothing dropped.

    ``time`` is (T,) in seconds; every channel is (T, n) in SI units (effort in the robot's own
    effort unit, temperature in deg C, ``joint_torque`` in N m measured behind the gear) with the
    columns in the order of ``joints``, or None where it was not recorded. NaN, repeated and
    backward stamps may be present; ``findings`` says so in plain sentences.

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

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joints))
        for name in CHANNELS:
            channel = getattr(self, name)
            if channel is not None and channel.shape != shape:
                raise DataError(
                    f'{self.source}: {name} has shape {channel.shape}, expected {shape} '
                    f'({shape[0]} stamps, {shape[1]} joints)'
                )


@dataclass(frozen=True, eq=False)
class Samples:
    """Uniformly sampled, filtered motion of all joints, in contiguous segments.

    ``time`` (N,) s; ``position``, ``velocity``, ``acceleration`` (N, n) rad, rad/s, rad/s^2
    (m for prismatic joints); ``effort`` (N, n) N m passed through the same filter as the motion;
    ``measured`` (N, n) N m is the effort on the same grid before that filter. Both are None for
    states without measured effort. Of a robot with elastic joints the motion has a column per
    coordinate, the effort one per equation (RobotModel.coordinates, RobotModel.row_joints).
    ``starts`` holds the first index of every contiguous segment.
    ``cutoff`` [Hz] is that of the filter the motion has passed, None for unfiltered states.
    ``noise`` (n,) is the standard deviation of ``measured`` where it is known from repetition.
    ``temperature`` (N, n) [deg C] of the joints, where it was measured.
    ``reference_position`` (N, n) where the drives were told to be, filtered as ``position``.
    ``motor_position``, ``motor_velocity`` (N, n) those of the motors on the joint side, filtered
    as the motion; NaN for joints whose two encoders cannot be used together.
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

    def __len__(self) -> int:
        return len(self.time)

    @property
    def segments(self) -> tuple[slice, ...]:
        """The contiguous stretches of the samples, in order."""
        stops = (*self.starts[1:], len(self))
        return tuple(slice(a, b) for a, b in zip(self.starts, stops, strict=True))

    def part(self, rows: slice) -> Samples:
        """Return the samples of ``rows`` (a contiguous slice) with their segment boundaries."""
        start, stop, _ = rows.indices(len(self))
        inner = tuple(s - start for s in self.starts if start < s < stop)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value[start:stop]
        return Samples(**{**values, 'starts': (0, *inner)})


def concatenate(parts: list[Samples]) -> Samples:
    """Join samples of several recordings of the same joints; each keeps its own segments."""
    offsets = np.cumsum([0, *(len(p) for p in parts[:-1])])
    starts = tuple(int(o) + s for o, p in zip(offsets, parts, strict=True) for s in p.starts)
    joined: dict[str, Any] = {'cutoff': parts[0].cutoff, 'noise': _pooled(parts)}
    for field in fields(Samples):
        values = [getattr(p, field.name) for p in parts]
        if field.name not in ('joints', 'starts', *joined):
            missing = any(v is None for v in values)
            joined[field.name] = None if missing else np.concatenate(values)
    return Samples(joints=parts[0].joints, starts=starts, **joined)


def _pooled(parts: list[Samples]) -> tuple[float, ...] | None:
    """Return the root mean square of the noise over all samples, None when some is unknown."""
    known = [p.noise for p in parts if p.noise is not None]
    if len(known) < len(parts):
        return None
    squares = np.average(np.square(known), axis=0, weights=[len(p) for p in parts])
    return tuple(np.sqrt(squares).tolist())
