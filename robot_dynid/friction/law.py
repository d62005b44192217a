"""What a friction law is: torque columns from the motion of one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.types import FloatArray

#: ramp [rad/s, m/s] about zero speed, where a law in steady sliding has none of its own
SLIDING_WIDTH = 0.01
#: lowest and highest of what a law was fitted to; None where nothing is known of it
Range = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class AxisMotion:
    """Motion of one axis: ``time``, ``position``, ``velocity`` (N,), segment ``starts``.

    ``load`` (N,) is the torque [N m] the axis transmits, None where it is not known;
    ``temperature`` (N,) [deg C], None where it was not measured.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    starts: tuple[int, ...] = (0,)
    load: FloatArray | None = None
    temperature: FloatArray | None = None

    @property
    def first(self) -> NDArray[np.int64]:
        """Index (S + 1,) of the first sample of every segment, and the end."""
        return np.array([*self.starts, len(self.time)], dtype=np.int64)

    @property
    def begin(self) -> FloatArray:
        """Dry friction (S,) at the start of every segment: of steady sliding, none at rest."""
        return ramp(np.append(self.velocity, 0.0)[self.first[:-1]], SLIDING_WIDTH)

    @property
    def single(self) -> NDArray[np.bool_]:
        """Which samples (N,) are a segment of their own: states without a past."""
        lengths = np.diff(self.first)
        return np.repeat(lengths == 1, lengths)

    def reversed(self) -> AxisMotion:
        """Return the mirrored motion."""
        return replace(self, position=-self.position, velocity=-self.velocity)


@dataclass(frozen=True)
class Shape:
    """A nonlinear setting of a law and where it is searched: ``count`` values, log-spaced."""

    name: str
    low: float
    high: float
    count: int

    @property
    def grid(self) -> tuple[float, ...]:
        """The values tried first."""
        return tuple(float(f'{v:.3g}') for v in np.geomspace(self.low, self.high, self.count))


class FrictionLaw(Protocol):
    """A torque linear in its own parameters, seen by one axis.

    A law with a past carries it along segments. A state without a past (a segment of its own) is
    in steady sliding, so that inverse and forward dynamics of unrelated states have a meaning.
    """

    @property
    def parameters(self) -> tuple[str, ...]:
        """Short names of the parameters, such as ``fv``."""

    @property
    def holding(self) -> tuple[str, ...]:
        """Which of them hold an axis at rest against a load of either sign, such as ``fc``."""

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Which of them a passive axis has at zero or above, such as ``fv``."""

    @property
    def odd(self) -> tuple[str, ...]:
        """Which of them have a torque that changes its sign with the motion."""

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What is searched for."""

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (k, N): the torque of each parameter at value one."""

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return (N,): the dry friction of the law, between -1 and 1."""

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return rows (r, 4) of fv, fc, f0, width whose sum is the law of states without a past.

        Each stands for ``f0 + fv v + fc clip(v / width, -1, 1)``; None where there are none.
        """

    def settings(self) -> dict[str, Any]:
        """Return what has to be stored to rebuild the law."""


def ramp(velocity: FloatArray, width: float) -> FloatArray:
    """Return ``clip(v / width, -1, 1)``."""
    return np.asarray(np.clip(velocity / width, -1.0, 1.0))


def continued(
    function: Callable[[FloatArray], FloatArray], slope: Callable[[FloatArray], FloatArray],
    velocity: FloatArray, speeds: Range,
) -> FloatArray:
    """Return ``function(velocity)`` (N,), which goes on along its tangent beyond ``speeds``."""
    if speeds is None:
        return function(velocity)
    edge = np.clip(velocity, *speeds)
    return np.asarray(function(edge) + slope(edge) * (velocity - edge))


def both_ways(speeds: Range) -> Range:
    """Return the range of a law with the same parameters forward and backward.

    What it knows of one direction it knows of the other.
    """
    if speeds is None:
        return None
    top = max(-speeds[0], speeds[1])
    return -top, top


def tanh_continued(velocity: FloatArray, scale: float, speeds: Range) -> FloatArray:
    """Return ``tanh(v / scale)`` (N,), linear beyond the higher of ``speeds`` in both ways."""
    return continued(lambda v: np.asarray(np.tanh(v / scale)),
                     lambda v: np.asarray((1.0 - np.tanh(v / scale)**2) / scale),
                     velocity, both_ways(speeds))


def known_within(part: Any, ranges: Mapping[str, Any]) -> Any:
    """Return a law or an addition with those of ``ranges``, by name of its setting, it has."""
    own = {f.name for f in fields(part)}
    return replace(part, **{name: known for name, known in ranges.items() if name in own})


def known_settings(ranges: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of ``ranges``, by name, that are known, as plain types."""
    return {name: list(known) if isinstance(known, tuple) else known
            for name, known in ranges.items() if known is not None}


def read_range(part: Any, law: str, name: str) -> None:
    """Make a tuple of the setting ``name``; raises UsageError unless it is a range."""
    known = getattr(part, name)
    if known is None:
        return
    if not isinstance(known, (list, tuple)) or len(known) != 2 or not all(
            isinstance(x, (int, float)) and np.isfinite(x) for x in known) or known[0] > known[1]:
        raise UsageError(f'friction law {law}: {name} must be the lowest and the highest value, '
                         f'is {known!r}')
    object.__setattr__(part, name, (float(known[0]), float(known[1])))


def require_positive(law: str, name: str, value: float) -> None:
    """Raise UsageError unless the setting ``name`` is a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < np.inf:
        raise UsageError(f'friction law {law}: {name} must be positive, is {value!r}')


def require_increasing(law: str, name: str, values: Sequence[float]) -> None:
    """Raise UsageError unless there are values, all positive, each larger than the one before."""
    if not len(values):
        raise UsageError(f'friction law {law}: {name} must hold at least one number')
    for value in values:
        require_positive(law, name, value)
    if any(b <= a for a, b in pairwise(values)):
        raise UsageError(f'friction law {law}: {name} must increase, are {list(values)}')
