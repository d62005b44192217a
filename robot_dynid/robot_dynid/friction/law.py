"""Friction laws: settings that define a table of terms, from which everything else follows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.friction.terms import (
    CONSTANT,
    POWER,
    Parameter,
    Range,
    Term,
    slid,
    table_of,
    warm,
)
from robot_dynid.kernels.friction import fill_columns
from robot_dynid.numbers import NumberRange, shown
from robot_dynid.settings import require_allowed
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from typing import Self


#: kinds of friction: proportional to speed, constant, everything else
VISCOUS, OFFSET, DRY = 'viscous', 'offset', 'dry'


@dataclass(frozen=True, eq=False)
class AxisMotion:
    """Motion of one axis: ``time``, ``position``, ``velocity`` (N,), segment ``starts``.

    ``began`` [s] is the start of the recording; None: the first sample. ``load`` (N,) is the
    torque [N m] the axis transmits, None if unknown; ``temperature`` (N,) [deg C], None if not
    measured.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    starts: tuple[int, ...] = (0,)
    load: FloatArray | None = None
    temperature: FloatArray | None = None
    began: float | None = None

    @property
    def first(self) -> NDArray[np.int64]:
        """Indices (S + 1,) of the first sample of each segment, and the end."""
        return np.array([*self.starts, len(self.time)], dtype=np.int64)

    def reversed(self) -> AxisMotion:
        """Return the mirrored motion."""
        return replace(self, position=-self.position, velocity=-self.velocity)


@dataclass(frozen=True)
class Shape:
    """A nonlinear setting of a law and its search grid: ``count`` log-spaced values.

    ``shared``: one value for all axes of a robot, chosen before the laws.
    """

    name: str
    low: float
    high: float
    count: int
    shared: bool = False

    @property
    def grid(self) -> tuple[float, ...]:
        """The values of the initial search."""
        return tuple(float(f'{v:.3g}') for v in np.geomspace(self.low, self.high, self.count))


def columns_of(parameters: Sequence[Parameter], motion: AxisMotion) -> FloatArray:
    """Return the torque (k, N) of each of ``parameters`` at value one."""
    terms, none = table_of(parameters), np.empty(0)
    columns = np.empty((len(parameters), len(motion.time)))
    began = motion.time[:1] if motion.began is None else motion.began
    along = (motion.time - began, motion.position, motion.velocity,
             none if motion.load is None else motion.load,
             none if motion.temperature is None else motion.temperature)
    fill_columns((terms, slid(warm(terms))), tuple(
        np.ascontiguousarray(part, np.float64) for part in along), motion.first, columns)
    return columns


#: allowed speeds and temperatures of a fit
ENDS = NumberRange(-1e6, 1e6)
#: path of a setting in a law: its name, preceded by the name of the addition it belongs to
Path = tuple[str, ...]


@dataclass(frozen=True)
class Settings:
    """Settings of a law or an addition: its fields; ``shapes`` are the ones that are searched."""

    name: ClassVar[str] = ''
    shapes: ClassVar[tuple[Shape, ...]] = ()

    def __post_init__(self) -> None:
        """Raise UsageError if a setting is out of range."""
        self.check()
        for name in {'speeds', 'temperatures'} & {f.name for f in fields(self)}:
            self._read_range(name)

    def settings(self) -> dict[str, Any]:
        """Return the settings to store: the fields that are not None."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value
                for name, value in values.items() if value is not None}

    def within(self, ranges: Mapping[str, Any]) -> Self:
        """Return a copy with those of ``ranges`` that it has a setting for.

        ``ranges``: ``speeds`` [rad/s, m/s] and ``temperatures`` [deg C], each (lowest, highest),
        and ``longest`` [s] of the axis in the fit; outside them friction is linear or constant.
        """
        names = {f.name for f in fields(self)}
        return replace(self, **{name: limits for name, limits in ranges.items() if name in names})

    @classmethod
    def candidates(cls) -> Sequence[Self]:
        """Return one copy per combination of the shapes' values; of two speeds the first is lower.
"""
        return [cls(**{s.name: v for s, v in zip(cls.shapes, values, strict=True)})
                for values in product(*(shape.grid for shape in cls.shapes))
                if all(a < b for a, b in pairwise(values))]

    def check(self) -> None:
        """Raise UsageError if a setting is out of range."""
        require_allowed(self, f'friction law {self.name}: {{}}')

    def _read_range(self, name: str) -> None:
        """Turn the setting ``name`` into a tuple; raises UsageError unless it is a range."""
        limits = getattr(self, name)
        if limits is None:
            return
        low, high = ENDS.array(
            limits, (2,), f'friction law {self.name}: {name}, the lowest and the highest value,'
        ).tolist()
        if low > high:
            raise UsageError(f'friction law {self.name}: {name} must be the lowest and the '
                             f'highest value, is {shown(limits)}')
        object.__setattr__(self, name, (low, high))

    def read_increasing(self, name: str, max_count: int) -> None:
        """Turn the setting ``name`` into a tuple of at most ``max_count`` increasing numbers.

        Raises UsageError unless they are positive and increase.
        """
        values = getattr(self, name)
        if not isinstance(values, (list, tuple)) or len(values) > max_count:
            raise UsageError(f'friction law {self.name}: {name} must be a list of at most '
                             f'{max_count} numbers, is {shown(values)}')
        object.__setattr__(self, name, tuple(values))
        if not values:
            raise UsageError(f'friction law {self.name}: {name} must hold at least one number')
        self.check()
        if any(b <= a for a, b in pairwise(values)):
            raise UsageError(f'friction law {self.name}: {name} must increase, are {list(values)}')


@dataclass(frozen=True)
class FrictionLaw(Settings):
    """A friction torque of one axis that is linear in its parameters.

    A law is the ``table`` of its parameters and their terms, with a ``dry`` friction term between
    -1 and 1, which additions scale. A law that is ``by_name`` is no candidate unless named. Terms
    with a memory carry it along a segment. A state without a past (a segment of one sample) is in
    steady sliding, so that inverse and forward dynamics of single states are defined.
    """

    by_name: ClassVar[bool] = False

    @property
    def table(self) -> tuple[Parameter, ...]:
        """The parameters and their terms: viscous friction, dry friction, offset."""
        return (Parameter('fv', (Term(POWER),)), Parameter('fc', (self.dry,), holds=True),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """The dry friction term."""
        raise NotImplementedError

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Short names of the parameters, such as ``fv``."""
        return tuple(p.name for p in self.table)

    @property
    def holding(self) -> tuple[str, ...]:
        """Parameters that hold an axis at rest against a load of either sign, such as ``fc``."""
        return tuple(p.name for p in self.table if p.holds)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Parameters that a passive axis has at zero or above, such as ``fv``."""
        return tuple(p.name for p in self.table if p.nonnegative)

    @property
    def odd(self) -> tuple[str, ...]:
        """Parameters whose torque changes its sign with the motion."""
        return tuple(p.name for p in self.table if all(term.odd for term in p.terms))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of every parameter: VISCOUS, OFFSET or DRY."""
        return tuple(
            VISCOUS if all(term.viscous for term in p.terms) else
            OFFSET if all(term.kind == CONSTANT and term.side == 0.0 for term in p.terms) else DRY
            for p in self.table)

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return the torque (k, N) of each parameter at value one."""
        return columns_of(self.table, motion)

    def added(self, addition: Addition) -> FrictionLaw:
        """Return the law with ``addition`` added."""
        return Compound(self, (addition,))

    @property
    def searched(self) -> tuple[tuple[Path, Shape], ...]:
        """The shapes searched axis by axis, each with its path in ``settings``."""
        return tuple(((s.name,), s) for s in self.shapes if not s.shared)

    def reshaped(self, values: Mapping[Path, float]) -> FrictionLaw:
        """Return the law with other values of settings; raises UsageError if they contradict."""
        return replace(self, **{path[0]: value for path, value in values.items()})

    @property
    def prunable(self) -> tuple[str, ...]:
        """Parameters that pruning may remove, such as amplitudes of springs."""
        return ()

    def without(self, parameters: Collection[str]) -> FrictionLaw:
        """Return the law without the given ``prunable`` parameters; at least one remains."""
        return self

    def unpruned(self) -> FrictionLaw:
        """Return the law with all prunable parameters restored."""
        return self


@dataclass(frozen=True)
class Addition(Settings):
    """A friction term added to a law, linear in its own parameters."""

    def table(self, dry: Term) -> tuple[Parameter, ...]:
        """Return the parameters and their terms; ``dry`` is the dry friction of the law."""
        raise NotImplementedError


@dataclass(frozen=True)
class Compound(FrictionLaw):
    """A friction law with additions.

    It has no ``shapes``: base and additions are searched in turn.
    """

    base: FrictionLaw
    additions: tuple[Addition, ...]

    @property
    def table(self) -> tuple[Parameter, ...]:
        """The parameters of the base, then those of the additions."""
        return (*self.base.table, *(p for a in self.additions for p in a.table(self.base.dry)))

    @property
    def dry(self) -> Term:
        """The dry friction of the base."""
        return self.base.dry

    def settings(self) -> dict[str, Any]:
        """Return the settings of the base and, by name, those of the additions."""
        return {**self.base.settings(), **{a.name: a.settings() for a in self.additions}}

    def within(self, ranges: Mapping[str, Any]) -> Self:
        """Return a copy with all parts within ``ranges``."""
        return replace(self, base=self.base.within(ranges),
                       additions=tuple(a.within(ranges) for a in self.additions))

    def added(self, addition: Addition) -> FrictionLaw:
        """Return the law with ``addition`` added."""
        return replace(self, additions=(*self.additions, addition))

    @property
    def searched(self) -> tuple[tuple[Path, Shape], ...]:
        """The shapes of the base, then those of the additions."""
        return (*self.base.searched, *(((a.name, s.name), s)
                                       for a in self.additions for s in a.shapes))

    def reshaped(self, values: Mapping[Path, float]) -> FrictionLaw:
        """Return the law with other values of settings of base and additions."""
        def reshape(addition: Addition) -> Addition:
            return replace(addition, **{path[1]: value for path, value in values.items()
                                        if path[0] == addition.name and len(path) > 1})

        base = self.base.reshaped({p: value for p, value in values.items() if len(p) == 1})
        return replace(self, base=base, additions=tuple(reshape(a) for a in self.additions))

    @property
    def prunable(self) -> tuple[str, ...]:
        """The prunable parameters of the base."""
        return self.base.prunable

    def without(self, parameters: Collection[str]) -> FrictionLaw:
        """Return the law with its base pruned of these parameters."""
        return replace(self, base=self.base.without(parameters))

    def unpruned(self) -> FrictionLaw:
        """Return the law with its base unpruned."""
        return replace(self, base=self.base.unpruned())


def both_ways(speeds: Range) -> Range:
    """Return the symmetric speed range of a law with equal parameters in both directions.

    A speed reached in one direction counts for the other.
    """
    if speeds is None:
        return None
    top = max(-speeds[0], speeds[1])
    return -top, top
