"""Composite excitations: designs of other kinds one after the other, joined by slow moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.excitation.design import Design, DesignCriteria, Planned, design_within
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.excitation.request import Request
from robot_dynid.trajectories.limits import MotionLimits, narrowed


@dataclass(frozen=True)
class CompositeOptions:
    """Settings of a composite: ``segments``, each a type with its own options.

    A segment's ``limits`` narrow those of the whole, its ``scale`` (default 1) is a part of them,
    its ``seed`` follows from that of the whole unless it is given.
    """

    segments: tuple[Request, ...] = ()

    def __post_init__(self) -> None:
        if not self.segments:
            raise UsageError("option 'segments' of a composite must list at least one segment, "
                             'such as {type: fourier, duration: 20}')


def plan_composite(
    criteria: DesignCriteria,
    limits: MotionLimits,
    options: CompositeOptions,
    generator: np.random.Generator,
) -> Planned:
    """Return the segments, each designed within its own limits, with moves in between.

    Raises what the design of a segment raises.
    """
    designs: list[Design] = []
    for done, request in enumerate(options.segments):
        shared = criteria.part(done, len(options.segments))
        own = narrowed(limits, request.common.limits)
        designs.append(design_within(own, request, shared))
    trajectory = Planner(criteria, limits).joined([found.trajectory for found in designs])
    stages = tuple(replace(stage, name=f'{number}: {stage.name}')
                   for number, found in enumerate(designs, start=1) for stage in found.stages)
    return Planned(trajectory, stages, tuple(w for found in designs for w in found.warnings),
                   any(found.ended_early for found in designs))
