"""Composite excitations: designs of other kinds one after the other, joined by slow moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.excitation.design import Design, DesignCriteria, Planned, Progress, design_within
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.excitation.request import Request, parse_request
from robot_dynid.robot.surroundings import KEYS
from robot_dynid.trajectories.limits import MotionLimits, narrowed


@dataclass(frozen=True)
class CompositeOptions:
    """Settings of a composite: ``segments``, each a type with its own options.

    A segment's ``limits`` narrow those of the whole, its ``scale`` (default 1) is a part of them,
    its ``seed`` follows from that of the whole unless it is given.
    """

    segments: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        if isinstance(self.segments, (str, Mapping)) or not isinstance(self.segments, Sequence):
            raise UsageError("option 'segments' must be a list such as "
                             '[{type: fourier, duration: 20}, {type: static-poses}]')
        if not self.segments:
            raise UsageError("option 'segments' of a composite must list at least one segment, "
                             'such as {type: fourier, duration: 20}')
        self.requests(np.random.default_rng(0))

    def requests(self, generator: np.random.Generator) -> list[Request]:
        """Return the checked request of every segment; raises UsageError naming the segment."""
        found = []
        for number, segment in enumerate(self.segments, start=1):
            if not isinstance(segment, Mapping) or not isinstance(segment.get('type'), str):
                raise UsageError(f"segment {number}: must be a mapping with a 'type', got "
                                 f'{segment!r}')
            own = {name: value for name, value in segment.items() if name != 'type'}
            shared = [name for name in own if name in KEYS]
            if shared:
                raise UsageError(f"segment {number}: option '{shared[0]}' holds for the whole: "
                                 'give it beside segments')
            seed = int(generator.integers(2**31))
            try:
                found.append(parse_request(segment['type'], {'seed': seed, 'scale': 1.0, **own}))
            except UsageError as error:
                raise UsageError(f'segment {number}: {error}') from error
        return found


def plan_composite(
    criteria: DesignCriteria,
    limits: MotionLimits,
    options: CompositeOptions,
    generator: np.random.Generator,
) -> Planned:
    """Return the segments, each designed within its own limits, with moves in between.

    Raises what the design of a segment raises.
    """
    requests = options.requests(generator)
    designs: list[Design] = []
    for done, request in enumerate(requests):
        shared = replace(criteria, progress=_part(criteria.progress, done, len(requests)),
                         spent=_since(criteria.spent))
        own = narrowed(limits, request.common.limits)
        designs.append(design_within(own, request, shared))
    trajectory = Planner(criteria, limits).joined([found.trajectory for found in designs])
    stages = tuple(replace(stage, name=f'{number}: {stage.name}')
                   for number, found in enumerate(designs, start=1) for stage in found.stages)
    return Planned(trajectory, stages, tuple(w for found in designs for w in found.warnings))


def _since(spent: Callable[[], float] | None) -> Callable[[], float] | None:
    """Return a clock that starts now: the budget of a segment is its own."""
    if spent is None:
        return None
    clock, begun = spent, spent()
    return lambda: clock() - begun


def _part(progress: Progress | None, done: int, count: int) -> Progress | None:
    """Return the progress of one of ``count`` segments as part of the whole."""
    if progress is None:
        return None
    tell = progress
    return lambda stage, fraction: tell(stage, (done + fraction) / count)
