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
#: builds the basis of joints from the options of the family
MakeBasis = Callable[[tuple[str, ...], Any], Basis]
#: type of an option that lists further designs
SEGMENTS = 'tuple[Request, ...]'
MAX_SEGMENTS = 100
SEED = NumberRange(0, 2**63 - 1, whole=True)


@dataclass(frozen=True)
class Family:
    """A kind of excitation: its options class, and either a basis to optimise or a plan.

    ``plan(criteria, limits, options, generator)`` returns a Planned. ``validation(options,
    attempt)`` returns the options of a validation motion, None if there is none; families without
    it have none.
    """

    options: type[Any]
    basis: MakeBasis | None = None
    plan: Callable[..., Any] | None = None
    validation: Callable[[Any, int], Any] | None = None


@dataclass(frozen=True)
class DesignOptions:
    """Settings common to all kinds.

    ``scale`` in (0, 1] is the share of every limit that may be used; ``objective`` is one of
    objective.NAMES, improved from ``starts`` random starts by at most ``iterations`` each: the
    seed then determines the result. After ``time_limit`` seconds the best so far is taken, which
    depends on the machine; ``accuracy`` is the largest allowed standard deviation, relative to
    nominal parameters; ``limits`` (joint -> limit) narrows or completes those of the robot.
    ``floor``, ``keep_out``, ``environment``, ``clearance``, ``ignore_pairs`` and ``ignore_links``
    (Surroundings) replace those of the robot's file unless None. ``purpose`` of the motion is one
    of PURPOSES; with ``validation`` a fit motion comes with a distinct validation motion, if the
    kind has one.
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

    def surroundings(self, robot_surroundings: Surroundings) -> Surroundings:
        """Return ``robot_surroundings`` with the options of this request in their place.

        Raises UsageError that names the wrong option.
        """
        given = {name: getattr(self, name) for name in KEYS if getattr(self, name) is not None}
        return surroundings_from_plain(given, 'options', robot_surroundings)


@dataclass(frozen=True)
class Request:
    """A requested design: kind and its family, its options, common options."""

    kind: str
    family: Family
    options: Any
    common: DesignOptions


def validation_request(request: Request, attempt: int = 0) -> Request | None:
    """Return the request of the validation motion for the motion of ``request``.

    Every ``attempt`` gives another one. None if none is requested, or the kind has none. Within
    what the fit motion reaches, one start is enough.
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
    """Return the request of a kind in ``families``, with those of the segments of a composite.

    Raises UsageError naming the wrong kind or option.
    """
    if not isinstance(kind, str) or kind not in families:
        raise UsageError(f"unknown excitation type {shown(kind)}; choose one of "
                         f"{', '.join(families)}")
    given = {} if options is None else options
    if not isinstance(given, Mapping):
        raise UsageError('options must be a mapping such as {duration: 20, harmonics: 5}')
    family = families[kind]
    own_names = {f.name for f in fields(family.options)}
    common_fields = [f for f in fields(DesignOptions) if f.name not in own_names]
    allowed = {f.name: f for f in (*fields(family.options), *common_fields)}
    for name in given:
        if name == 'validation' and given[name] and family.validation is None:
            raise UsageError(f"option 'validation' has no effect on {kind}: design the validation "
                             "motion with another type and the option 'purpose: validation'")
        if name in SEARCH and family.basis is None and name not in own_names:
            raise UsageError(f"option '{name}' has no effect on {kind}, which is planned, not "
                             'searched for: omit it')
        if name not in allowed:
            raise UsageError(f"unknown option '{name}' of {kind}; choose one of "
                             f"{', '.join(allowed)}")
    ranges = {**settings_of(DesignOptions), **settings_of(family.options)}
    values = {name: ranges[name].read(value, f"option '{name}'") if name in ranges else value
              for name, value in given.items()}
    common = DesignOptions(**{f.name: values[f.name] for f in common_fields if f.name in values})
    options_of_kind = {f.name: values[f.name] for f in fields(family.options)
                       if f.name in values}
    for name, value in options_of_kind.items():
        if allowed[name].type == SEGMENTS:
            options_of_kind[name] = _segments(families, value, common.seed)
    return Request(kind, family, family.options(**options_of_kind), common)


def _segments(families: Mapping[str, Family], given: Any, seed: int) -> tuple[Request, ...]:
    """Return the checked request of every segment, with seeds that follow from that of the whole.

    Raises UsageError naming the segment.
    """
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise UsageError("option 'segments' must be a list such as "
                         '[{type: fourier, duration: 20}, {type: static-poses}]')
    if len(given) > MAX_SEGMENTS:
        raise UsageError(f"option 'segments' lists {len(given)}, more than {MAX_SEGMENTS}")
    generator = np.random.default_rng(seed)
    requests = []
    for number, segment in enumerate(given, start=1):
        if not isinstance(segment, Mapping) or not isinstance(segment.get('type'), str):
            raise UsageError(f"segment {number}: must be a mapping with a 'type', got "
                             f'{shown(segment)}')
        segment_options = {name: value for name, value in segment.items() if name != 'type'}
        shared = [name for name in segment_options if name in KEYS]
        if shared:
            raise UsageError(f"segment {number}: option '{shared[0]}' applies to the whole: "
                             'move it next to segments')
        options = {'seed': int(generator.integers(2**31)), 'scale': 1.0, **segment_options}
        try:
            requests.append(checked_request(families, segment['type'], options))
        except UsageError as error:
            raise UsageError(f'segment {number}: {error}') from error
    return tuple(requests)
