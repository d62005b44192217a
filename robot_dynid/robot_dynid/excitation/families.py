"""Registry of the kinds of excitation; a new kind is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.errors import UsageError, reported
from robot_dynid.excitation.design import Design, DesignCriteria, Planned, design_within
from robot_dynid.excitation.planned.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.excitation.planned.sine_sequence import SineSequenceOptions, sine_sequence
from robot_dynid.excitation.planned.static_poses import StaticPosesOptions, plan_static_poses
from robot_dynid.excitation.request import (
    Family,
    Request,
    checked_request,
    validation_request,
)
from robot_dynid.excitation.search.basis import BSplineBasis, FourierBasis
from robot_dynid.trajectories.bspline import BSplineOptions
from robot_dynid.trajectories.fourier import FourierOptions
from robot_dynid.trajectories.limits import MotionLimits, narrow_limits

#: duration of a validation motion in periods of the fit motion: other frequencies, and enough time
#: for its range without its accelerations
LONGER = 1.5


@dataclass(frozen=True)
class CompositeOptions:
    """Settings of a composite: ``segments``, each a type with its own options.

    A segment's ``limits`` narrow those of the whole, its ``scale`` (default 1) is relative to the
    whole, its ``seed`` follows from that of the whole unless given.
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
    """Return the segments, each designed within its own limits, joined by moves.

    Raises what the design of a segment raises.
    """
    designs: list[Design] = []
    for done, request in enumerate(options.segments):
        shared = criteria.part(done, len(options.segments))
        segment_limits = narrow_limits(limits, request.common.limits)
        designs.append(design_within(segment_limits, request, shared))
    trajectory = Planner(criteria, limits).joined([part.trajectory for part in designs])
    stages = tuple(replace(stage, name=f'{number}: {stage.name}')
                   for number, part in enumerate(designs, start=1) for stage in part.stages)
    return Planned(trajectory, stages, tuple(w for part in designs for w in part.warnings),
                   any(part.ended_early for part in designs))


def _segments(options: CompositeOptions, attempt: int) -> CompositeOptions | None:
    """Return a composite of the segments that have a validation motion, None without any."""
    requests = (validation_request(segment, attempt) for segment in options.segments)
    segments = tuple(segment for segment in requests if segment is not None)
    return CompositeOptions(segments) if segments else None


#: everything that can be designed: options, and a basis or a plan
FAMILIES: dict[str, Family] = {
    'fourier': Family(
        FourierOptions, basis=FourierBasis, validation=lambda options, attempt: replace(
            options, duration=LONGER * options.duration / options.periods, periods=1)),
    'bspline': Family(
        BSplineOptions, basis=BSplineBasis, validation=lambda options, attempt: replace(
            options, duration=LONGER * options.duration)),
    'sine-sequence': Family(SineSequenceOptions, plan=sine_sequence),
    'constant-velocity': Family(ConstantVelocityOptions, plan=plan_sweeps),
    'static-poses': Family(StaticPosesOptions, plan=plan_static_poses),
    'composite': Family(CompositeOptions, plan=plan_composite, validation=_segments),
}
DEFAULT = 'fourier'


@reported
def parse_request(kind: str, options: Mapping[str, Any] | None) -> Request:
    """Return the checked request of a ``kind`` in FAMILIES, '' for DEFAULT.

    Raises UsageError naming the wrong kind or option.
    """
    return checked_request(FAMILIES, kind or DEFAULT, options)
