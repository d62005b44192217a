"""What is to be designed: the kind of excitation, its options, the options common to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.excitation.search.basis import Basis
from robot_dynid.excitation.search.objective import NAMES
from robot_dynid.excitation.search.optimise import ITERATIONS
from robot_dynid.robot.surroundings import KEYS, Surroundings, surroundings_from_plain

#: common options that only the search for coefficients reads
SEARCH = ('starts', 'iterations', 'budget', 'objective', 'accuracy')
#: makes the basis of some joints from the options of the family
MakeBasis = Callable[[tuple[str, ...], Any], Basis]


@dataclass(frozen=True)
class Family:
    """A kind of excitation: its options class, and either the basis whose coefficients are
    optimised, or how the whole is planned for a robot: ``plan(criteria, limits, options,
    generator)`` returns a Planned.
    """

    options: type[Any]
    basis: MakeBasis | None = None
    plan: Callable[..., Any] | None = None


@dataclass(frozen=True)
class DesignOptions:
    """Settings common to all kinds.

    ``scale`` in (0, 1] is the part of every limit that may be used; ``objective`` is one of
    objective.NAMES, improved from ``starts`` random starts by at most so many ``iterations`` each
    until ``budget`` seconds are over;
    ``accuracy`` is the largest standard deviation wanted, relative to nominal parameters;
    ``limits`` (joint -> limit) narrows or completes those of the robot.
    ``floor``, ``keep_out``, ``environment``, ``clearance`` and ``ignore_pairs`` (Surroundings)
    replace what the robot's file says, None: they do not.
    """

    seed: int = 0
    scale: float = 0.9
    starts: int = 8
    iterations: int = ITERATIONS
    budget: float = 20.0
    objective: str = 'condition'
    accuracy: float = float('inf')
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    floor: Any = None
    keep_out: Any = None
    environment: Any = None
    clearance: Any = None
    ignore_pairs: Any = None

    def __post_init__(self) -> None:
        if not 0.0 < self.scale <= 1.0:
            raise UsageError(f"option 'scale' must be above 0 and at most 1, got {self.scale}")
        for name in ('starts', 'iterations'):
            if getattr(self, name) < 1:
                raise UsageError(f"option '{name}' must be at least 1, got {getattr(self, name)}")
        for name in ('seed', 'budget'):
            if not getattr(self, name) >= 0:
                raise UsageError(f"option '{name}' must not be negative, got "
                                 f'{getattr(self, name)}')
        if not self.accuracy > 0.0:
            raise UsageError(f"option 'accuracy' must be positive, got {self.accuracy}")
        if self.objective not in NAMES:
            raise UsageError(f"unknown objective '{self.objective}'; known: {', '.join(NAMES)}")
        self.surroundings(Surroundings())

    def surroundings(self, known: Surroundings) -> Surroundings:
        """Return ``known``, those of the robot's file, with what is given here.

        Raises UsageError that names the wrong option.
        """
        given = {name: getattr(self, name) for name in KEYS if getattr(self, name) is not None}
        return surroundings_from_plain(given, 'options', known)


@dataclass(frozen=True)
class Request:
    """What to design: kind, its own options, common options."""

    kind: str
    options: Any
    common: DesignOptions


def parse_request(kind: str, options: Mapping[str, Any] | None) -> Request:
    """Return the checked request; raises UsageError naming the wrong kind or option."""
    from robot_dynid.excitation import DESIGNS

    kind = kind or 'fourier'
    if kind not in DESIGNS:
        raise UsageError(f"unknown excitation type '{kind}'; known: {', '.join(DESIGNS)}")
    given = {} if options is None else options
    if not isinstance(given, Mapping):
        raise UsageError('options must be a mapping such as {duration: 20, harmonics: 5}')
    own = DESIGNS[kind].options
    known = {f.name: f for f in (*fields(own), *fields(DesignOptions))}
    for name in given:
        if name in SEARCH and DESIGNS[kind].basis is None:
            raise UsageError(f"option '{name}' has no effect on {kind}, which is planned, not "
                             'searched for; leave it out')
        if name not in known:
            raise UsageError(f"unknown option '{name}' of {kind}; known: {', '.join(known)}")
    values = {name: _converted(name, value, known[name].type) for name, value in given.items()}
    mine = {f.name: values[f.name] for f in fields(own) if f.name in values}
    common = {f.name: values[f.name] for f in fields(DesignOptions) if f.name in values}
    return Request(kind, own(**mine), DesignOptions(**common))


def _converted(name: str, value: Any, kind: Any) -> Any:
    """Return the option as number (or mapping) of the declared kind."""
    if kind not in ('int', 'float'):
        return value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or (kind == 'int' and value != int(value)):
        raise UsageError(f"option '{name}' must be a{'n integer' if kind == 'int' else ' number'},"
                         f' got {value!r}')
    return int(value) if kind == 'int' else float(value)
