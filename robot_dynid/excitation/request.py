"""Requests of a design: the kind of excitation, its options, the options common to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.excitation.search.basis import Basis
from robot_dynid.excitation.search.objective import NAMES
from robot_dynid.numbers import NumberRange, shown
from robot_dynid.robot.surroundings import KEYS, Surroundings, surroundings_from_plain
from robot_dynid.settings import require_allowed, setting, settings_of
from robot_dynid.types import FIT, PURPOSES, VALIDATION

#: common options that only the search for coefficients reads
SEARCH = ('starts', 'iterations', 'time_limit', 'objective', 'accuracy')
#: makes the basis of some joints from the options of the family
MakeBasis = Callable[[tuple[str, ...], Any], Basis]
#: type of an option that lists designs of their own
SEGMENTS = 'tuple[Request, ...]'
MOST_REQUESTED = 100
SEED = NumberRange(0, 2**63 - 1, whole=True)


@dataclass(frozen=True)
class Family:
    """A kind of excitation: its options class, and either the basis whose coefficients are
    optimised, or how the whole is planned for a robot: ``plan(criteria, limits, options,
    generator)`` returns a Planned. ``validation(options, attempt)`` returns the options of a
    motion to judge a model by, None where it has none, as families without it.
    """

    options: type[Any]
    basis: MakeBasis | None = None
    plan: Callable[..., Any] | None = None
    validation: Callable[[Any, int], Any] | None = None


@dataclass(frozen=True)
class DesignOptions:
    """Settings common to all kinds.

    ``scale`` in (0, 1] is the part of every limit that may be used; ``objective`` is one of
    objective.NAMES, improved from ``starts`` random starts by at most so many ``iterations`` each:
    with these the seed decides. After ``time_limit`` seconds the best so far is taken, which
    depends on the machine;
    ``accuracy`` is the largest standard deviation wanted, relative to nominal parameters;
    ``limits`` (joint -> limit) narrows or completes those of the robot.
    ``floor``, ``keep_out``, ``environment``, ``clearance``, ``ignore_pairs`` and ``ignore_links``
    (Surroundings) replace what the robot's file says, None: they do not.
    ``purpose`` of the motion is one of PURPOSES; with ``validation`` a motion to fit comes with
    another, distinct one to judge by, where the kind has one.
    """

    seed: int = setting(0, SEED)
    scale: float = setting(0.9, NumberRange(1e-3, 1.0, note='it is a part of every limit'))
    starts: int = setting(8, NumberRange(1, 1000, whole=True))
    iterations: int = setting(300, NumberRange(1, 100_000, whole=True))
    time_limit: float = setting(float('inf'), NumberRange(0.0, 1e6, 's'))
    objective: str = setting('condition', NAMES)
    accuracy: float = setting(float('inf'), NumberRange(1e-9, 1e9))
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    floor: Any = None
    keep_out: Any = None
    environment: Any = None
    clearance: Any = None
    ignore_pairs: Any = None
    ignore_links: Any = None
    purpose: str = setting(FIT, PURPOSES)
    validation: bool = setting(True)

    def __post_init__(self) -> None:
        require_allowed(self, "option '{}'")
        self.surroundings(Surroundings())

    def surroundings(self, known: Surroundings) -> Surroundings:
        """Return ``known``, those of the robot's file, with what is given here.

        Raises UsageError that names the wrong option.
        """
        given = {name: getattr(self, name) for name in KEYS if getattr(self, name) is not None}
        return surroundings_from_plain(given, 'options', known)


@dataclass(frozen=True)
class Request:
    """A design that is asked for: kind and its family, its own options, common options."""

    kind: str
    family: Family
    options: Any
    common: DesignOptions


def validation_request(request: Request, attempt: int = 0) -> Request | None:
    """Return the request of the motion by which a model fitted to another one is judged.

    Every ``attempt`` gives another one. None where none is asked for, or the kind has none. Within
    what the other motion reaches one start is enough.
    """
    common, validation = request.common, request.family.validation
    if validation is None or common.purpose != FIT or not common.validation:
        return None
    options = validation(request.options, attempt)
    generator = np.random.default_rng((common.seed, attempt))
    seed = int(generator.integers(2**31))
    return options and replace(request, options=options, common=replace(
        common, seed=seed, scale=1.0, starts=1, accuracy=float('inf'), purpose=VALIDATION))


def checked_request(
    families: Mapping[str, Family], kind: str, options: Mapping[str, Any] | None
) -> Request:
    """Return the request of a kind in ``families``; segments of a composite are requests, too.

    Raises UsageError naming the wrong kind or option.
    """
    if not isinstance(kind, str) or kind not in families:
        raise UsageError(f"unknown excitation type {shown(kind)}; known: {', '.join(families)}")
    given = {} if options is None else options
    if not isinstance(given, Mapping):
        raise UsageError('options must be a mapping such as {duration: 20, harmonics: 5}')
    family = families[kind]
    own_names = {f.name for f in fields(family.options)}
    common_fields = [f for f in fields(DesignOptions) if f.name not in own_names]
    known = {f.name: f for f in (*fields(family.options), *common_fields)}
    for name in given:
        if name == 'validation' and given[name] and family.validation is None:
            raise UsageError(f"option 'validation' has no effect on {kind}; design the motion to "
                             "judge by with another type and the option 'purpose: validation'")
        if name in SEARCH and family.basis is None and name not in own_names:
            raise UsageError(f"option '{name}' has no effect on {kind}, which is planned, not "
                             'searched for; leave it out')
        if name not in known:
            raise UsageError(f"unknown option '{name}' of {kind}; known: {', '.join(known)}")
    ranges = {**settings_of(DesignOptions), **settings_of(family.options)}
    values = {name: ranges[name].read(value, f"option '{name}'") if name in ranges else value
              for name, value in given.items()}
    common = DesignOptions(**{f.name: values[f.name] for f in common_fields if f.name in values})
    own = {f.name: values[f.name] for f in fields(family.options) if f.name in values}
    for name, value in own.items():
        if known[name].type == SEGMENTS:
            own[name] = _segments(families, value, common.seed)
    return Request(kind, family, family.options(**own), common)


def _segments(families: Mapping[str, Family], given: Any, seed: int) -> tuple[Request, ...]:
    """Return the checked request of every segment, whose seeds follow from that of the whole.

    Raises UsageError naming the segment.
    """
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise UsageError("option 'segments' must be a list such as "
                         '[{type: fourier, duration: 20}, {type: static-poses}]')
    if len(given) > MOST_REQUESTED:
        raise UsageError(f"option 'segments' lists {len(given)}, at most {MOST_REQUESTED}")
    generator = np.random.default_rng(seed)
    found = []
    for number, segment in enumerate(given, start=1):
        if not isinstance(segment, Mapping) or not isinstance(segment.get('type'), str):
            raise UsageError(f"segment {number}: must be a mapping with a 'type', got "
                             f'{shown(segment)}')
        own = {name: value for name, value in segment.items() if name != 'type'}
        shared = [name for name in own if name in KEYS]
        if shared:
            raise UsageError(f"segment {number}: option '{shared[0]}' holds for the whole: "
                             'give it beside segments')
        options = {'seed': int(generator.integers(2**31)), 'scale': 1.0, **own}
        try:
            found.append(checked_request(families, segment['type'], options))
        except UsageError as error:
            raise UsageError(f'segment {number}: {error}') from error
    return tuple(found)
