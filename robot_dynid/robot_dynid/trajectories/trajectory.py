"""Interface of trajectories, their stored parameters, and the quintic move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import POSITION, SECONDS, NumberRange
from robot_dynid.plain import to_plain
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from typing import Self

#: peaks of the rest-to-rest quintic 10 s^3 - 15 s^4 + 6 s^5: velocity 15/8 at s = 1/2,
#: acceleration 10/sqrt(3) at s = 1/2 +- sqrt(3)/6, jerk 60 at both ends
QUINTIC_PEAKS = (15.0 / 8.0, 10.0 / np.sqrt(3.0), 60.0)


@dataclass(frozen=True, eq=False)
class Motion:
    """A trajectory at T instants.

    ``position`` (T, n) rad (m for prismatic joints) and its time derivatives ``velocity``,
    ``acceleration`` and ``jerk``, each (T, n).
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray


@dataclass(frozen=True, eq=False)
class Peaks:
    """Bounds of the continuous motion, valid also between samples.

    ``lower``, ``upper`` (n,) rad or m; ``velocity``, ``acceleration``, ``jerk`` (n,) largest
    magnitudes.
    """

    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray


class Trajectory(Protocol):
    """A motion of named joints that starts and ends at rest."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the n joints, the order of every column."""

    @property
    def duration(self) -> float:
        """Duration in seconds."""

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s, held at both ends outside [0, duration]."""

    def peaks(self) -> Peaks:
        """Return bounds of the continuous motion."""

    def element(self) -> dict[str, Any] | None:
        """Return a description for tables in SI units, with its ``type``; None if it has none."""

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of `from_parameters` as plain numbers, lists and strings."""

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Trajectory:
        """Rebuild the trajectory; raises UsageError if a parameter is missing or wrong."""


def clipped(time: ArrayLike, duration: float) -> FloatArray:
    """Return ``time`` (T,) s limited to [0, duration]."""
    return np.clip(np.atleast_1d(np.asarray(time, dtype=np.float64)), 0.0, duration)


def parameter(
    allowed: NumberRange, *shape: str, default: Any = MISSING, longest: float = np.inf
) -> Any:
    """Return a dataclass field for a parameter: an array of ``shape`` with numbers in ``allowed``.

    ``shape`` names the dimensions, () for a scalar: 'n' is the number of joints, any other the
    length of a row in the file, at most ``longest``.
    """
    return field(default=default, metadata={'range': allowed, 'shape': shape, 'longest': longest})


class Parametric:
    """A trajectory whose dataclass fields are its parameters.

    They are ``joints``, fields made by `parameter`, and names. Raises UsageError naming a
    parameter of wrong shape, or a number that is not positive.
    """

    joints: tuple[str, ...]

    def __post_init__(self) -> None:
        instance: Any = self
        sizes = {'n': len(self.joints)}
        for f in fields(instance):
            value, letters = getattr(self, f.name), f.metadata.get('shape', ())
            shape = np.shape(value)
            if letters and (len(shape) != len(letters) or any(
                    size != sizes.setdefault(letter, size)
                    for letter, size in zip(letters, shape))):
                raise UsageError(f'{f.name} of a motion of {sizes["n"]} joints has shape {shape}, '
                                 f'expected ({", ".join(letters)})')
            if f.metadata and not letters and not 0.0 < value < np.inf:
                raise UsageError(f'{f.name} of a motion must be positive, got {value}')

    def element(self) -> dict[str, Any] | None:
        """Return None: it is not an element."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the fields in plain types."""
        instance: Any = self
        return {f.name: to_plain(getattr(self, f.name)) for f in fields(instance)}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Rebuild the trajectory; raises UsageError if a parameter is missing or wrong."""
        kind: Any = cls
        joints = joint_names(parameters)
        sizes, values = {'n': len(joints)}, dict[str, Any](joints=joints)
        for f in fields(kind):
            where, given = f"trajectory parameter '{f.name}'", parameters.get(f.name, f.default)
            if f.name == 'joints':
                continue
            if 'range' not in f.metadata:
                values[f.name] = str(parameters.get(f.name, ''))
                continue
            if given is MISSING:
                raise UsageError(f'{where} is missing')
            allowed: NumberRange = f.metadata['range']
            for letter in set(f.metadata['shape']) - set(sizes):
                sizes[letter] = _row_length(given, where, f.metadata['longest'])
            shape = tuple(sizes[letter] for letter in f.metadata['shape'])
            values[f.name] = allowed.array(given, shape, where) if shape else allowed.read(
                given, where)
        rebuilt: Self = kind(**values)
        return rebuilt


def _row_length(given: Any, where: str, longest: float) -> int:
    try:
        length = len(given[0])
    except (KeyError, IndexError, TypeError):
        raise UsageError(f'{where} must be a list of rows, one per joint') from None
    if length > longest:
        raise UsageError(f'{where} has {length} numbers per row, more than {longest:g}')
    return length


def joint_names(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the joint names; raises UsageError if there are none, or one occurs twice."""
    names = parameters.get('joints')
    if not isinstance(names, (list, tuple)) or not names:
        raise UsageError("trajectory parameter 'joints' must list the joint names")
    joints = tuple(str(name) for name in names)
    twice = sorted(name for name, count in Counter(joints).items() if count > 1)
    if twice:
        raise UsageError(f"joint '{twice[0]}' occurs twice in the trajectory")
    return joints


@dataclass(frozen=True, eq=False)
class QuinticMove(Parametric):
    """A straight move in joint space from rest to rest, a fifth-order polynomial in time.

    ``start``, ``goal`` (n,) rad or m; ``duration`` s.
    """

    joints: tuple[str, ...]
    start: FloatArray = parameter(POSITION, 'n')
    goal: FloatArray = parameter(POSITION, 'n')
    duration: float = parameter(SECONDS)

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        s = (clipped(time, self.duration) / self.duration)[:, None]
        step = (self.goal - self.start)[None, :]
        blend = s**3 * (10.0 + s * (-15.0 + 6.0 * s))
        rate = 30.0 * s**2 * (1.0 - s) ** 2 / self.duration
        bend = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / self.duration**2
        jerk = 60.0 * (1.0 + s * (-6.0 + 6.0 * s)) / self.duration**3
        return Motion(self.start + blend * step, rate * step, bend * step, jerk * step)

    def peaks(self) -> Peaks:
        """Return the exact extremes of the polynomial."""
        step = np.abs(self.goal - self.start)
        highest = (peak * step / self.duration**order
                   for order, peak in enumerate(QUINTIC_PEAKS, start=1))
        return Peaks(np.minimum(self.start, self.goal), np.maximum(self.start, self.goal),
                     *highest)

    def element(self) -> dict[str, Any] | None:
        """Return the pose of a dwell; None for a connecting move."""
        if not np.array_equal(self.start, self.goal):
            return None
        return {'type': 'pose', 'configuration': dict(zip(
            self.joints, np.asarray(self.start).tolist(), strict=True))}
