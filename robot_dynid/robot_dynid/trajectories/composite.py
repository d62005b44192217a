"""Registry of trajectory types, and sequences of trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import shown
from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.single_joint import Plateau, SineSwing, Sweep
from robot_dynid.trajectories.trajectory import Motion, Peaks, QuinticMove, Trajectory, clipped
from robot_dynid.types import FloatArray

CONTINUITY = 1e-9
MAX_SEGMENTS = 20_000


@dataclass(frozen=True, eq=False)
class Composite:
    """Trajectories of the same joints, one after the other.

    Raises UsageError if the joints differ, or if position, velocity or acceleration would jump
    between two segments.
    """

    segments: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.segments:
            raise UsageError('a composite trajectory needs at least one segment')
        for index, (previous, following) in enumerate(pairwise(self.segments), start=1):
            if following.joints != self.joints:
                raise UsageError(f'segment {index} moves {following.joints}, expected '
                                 f'{self.joints}')
            end, begin = previous.sample(previous.duration), following.sample(0.0)
            for name in ('position', 'velocity', 'acceleration'):
                jump = np.abs(getattr(begin, name) - getattr(end, name))[0]
                worst = int(np.argmax(jump))
                if jump[worst] > CONTINUITY:
                    raise UsageError(
                        f"{name} of joint '{self.joints[worst]}' jumps by {jump[worst]:.3g} "
                        f'between segments {index - 1} and {index}: insert a move')

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the n joints."""
        return self.segments[0].joints

    @property
    def duration(self) -> float:
        """Sum of the segments' durations, s."""
        return float(sum(segment.duration for segment in self.segments))

    @property
    def starts(self) -> FloatArray:
        """Start times (k,) s of the segments."""
        durations = [segment.duration for segment in self.segments[:-1]]
        return np.concatenate([[0.0], np.cumsum(durations)])

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s; at a border, that of the later segment."""
        t = clipped(time, self.duration)
        starts = self.starts
        owner = np.searchsorted(starts, t, side='right') - 1
        result = Motion(*(np.empty((len(t), len(self.joints))) for _ in range(4)))
        for index, segment in enumerate(self.segments):
            rows = owner == index
            part = segment.sample(t[rows] - starts[index])
            for name, column in vars(result).items():
                column[rows] = getattr(part, name)
        return result

    def peaks(self) -> Peaks:
        """Return the union of the segments' bounds."""
        parts = [segment.peaks() for segment in self.segments]
        highest = (np.max([getattr(p, name) for p in parts], axis=0) for name in (
            'upper', 'velocity', 'acceleration', 'jerk'))
        return Peaks(np.min([p.lower for p in parts], axis=0), *highest)

    def element(self) -> dict[str, Any] | None:
        """Return None: the segments are the elements."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the type and parameters of every segment."""
        return {'segments': [describe(segment) for segment in self.segments]}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Composite:
        """Rebuild the sequence; raises UsageError if a segment is missing or wrong."""
        segments = parameters.get('segments')
        if not isinstance(segments, Sequence) or isinstance(segments, str):
            raise UsageError("trajectory parameter 'segments' must be a list")
        if len(segments) > MAX_SEGMENTS:
            raise UsageError(f"trajectory parameter 'segments' lists {len(segments)}, more "
                             f'than {MAX_SEGMENTS}')
        return cls(tuple(build(segment) for segment in segments))


@dataclass(frozen=True, eq=False)
class Dwell:
    """A dwell at ``position`` (n,) rad (m), from ``begin`` to ``end`` s."""

    position: FloatArray
    begin: float
    end: float


# all types that a trajectory file can hold, by name
TRAJECTORIES: dict[str, type[Trajectory]] = {
    'fourier': FourierTrajectory,
    'bspline': BSplineTrajectory,
    'sine': SineSwing,
    'sweep': Sweep,
    'quintic': QuinticMove,
    'composite': Composite,
}


def describe(trajectory: Trajectory) -> dict[str, Any]:
    """Return type and parameters of a trajectory in plain types; the inverse of `build`."""
    for name, kind in TRAJECTORIES.items():
        if type(trajectory) is kind:
            return {'type': name, **trajectory.parameters()}
    raise UsageError(f'{type(trajectory).__name__} is not a registered type of trajectory')


def build(description: Mapping[str, Any]) -> Trajectory:
    """Return the trajectory of a description made by `describe`.

    Raises UsageError that names the wrong type or parameter.
    """
    if not isinstance(description, Mapping):
        raise UsageError('a trajectory must be a mapping with type and parameters')
    name = description.get('type')
    if not isinstance(name, str) or name not in TRAJECTORIES:
        raise UsageError(f'unknown trajectory type {shown(name)}; choose one of '
                         f'{", ".join(TRAJECTORIES)}')
    return TRAJECTORIES[name].from_parameters(description)


def elementary(trajectory: Trajectory, start: float = 0.0) -> Iterator[tuple[float, Trajectory]]:
    """Yield (start [s], trajectory) of all elementary trajectories in order."""
    if not isinstance(trajectory, Composite):
        yield start, trajectory
        return
    for segment, begin in zip(trajectory.segments, trajectory.starts, strict=True):
        yield from elementary(segment, start + float(begin))


def plateaus(trajectory: Trajectory) -> Iterator[Plateau]:
    """Yield the constant-speed plateaus of all sweeps in a trajectory, in order."""
    for start, part in elementary(trajectory):
        if isinstance(part, Sweep):
            yield from part.plateaus(start)


def dwells(trajectory: Trajectory) -> Iterator[Dwell]:
    """Yield the dwells of a trajectory in order."""
    for start, part in elementary(trajectory):
        if isinstance(part, QuinticMove) and np.array_equal(part.start, part.goal):
            yield Dwell(part.start, start, start + part.duration)


def elements(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Return the elements of a trajectory in order, in plain types and SI units.

    Every element has its ``type``, ``begin`` and ``seconds``. Further keys: of a Fourier series
    the ``frequencies`` of the harmonics and, per joint, ``offset`` and the ``amplitudes`` by
    harmonic with their ``sine`` and ``cosine`` parts; of a swing or sweep the ``joint`` that
    moves, ``amplitude`` and ``frequency`` or ``speed`` and ``travel``, and the ``configuration``
    of all joints; of a B-spline ``knot_interval`` and the bounds of every joint; of a pose the
    ``configuration``. Trajectories without an element are omitted.
    """
    described = ((begin, part, part.element()) for begin, part in elementary(trajectory))
    return [{'type': element.pop('type'), 'begin': begin, 'seconds': part.duration, **element}
            for begin, part, element in described if element is not None]
