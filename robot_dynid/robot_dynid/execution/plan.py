"""Segments of an execution: approach, first pass, warm-up, excitation, return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.execution.pace import stretched
from robot_dynid.execution.sampled import SampledTrajectory, sampled
from robot_dynid.execution.segment import Segment
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.trajectories.composite import Composite
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import MotionLimits, quintic_move
from robot_dynid.trajectories.trajectory import QuinticMove, Trajectory
from robot_dynid.types import FloatArray, frozen

#: consecutive moves from a start to a goal, (n,) rad (m) each, within limits
Ways = Callable[[FloatArray, FloatArray, MotionLimits], tuple[QuinticMove, ...]]
SAME_PLACE = 1e-6  # rad (m)


RATE = NumberRange(1.0, 1e4, 'Hz')
LEAD_IN = NumberRange(0.0, 60.0, 's')
SCALE = NumberRange(1e-3, 1.0, note='it is a part of the limits')
WARM_UP = NumberRange(0, 100, 'periods', whole=True)


@dataclass(frozen=True)
class PlanOptions:
    """Settings of an execution.

    ``rate`` points per second; ``lead_in`` s before the first point of a segment;
    ``approach_scale`` share of the velocity limits (squared: of the acceleration limits) for moves
    to the start and back. ``first_pass_scale``: a first pass at this share of the speed, 1: none.
    ``warm_up`` periods precede a periodic motion without a stop. ``return_to_start`` moves back to
    the initial pose.
    """

    rate: float = setting(50.0, RATE)
    lead_in: float = setting(0.2, LEAD_IN)
    approach_scale: float = setting(0.2, SCALE)
    first_pass_scale: float = setting(1.0, SCALE)
    warm_up: int = setting(0, WARM_UP)
    return_to_start: bool = False

    def __post_init__(self) -> None:
        require_allowed(self, 'parameter {}')


def straight(start: FloatArray, goal: FloatArray, limits: MotionLimits
             ) -> tuple[QuinticMove, ...]:
    """Return the straight move from ``start`` (n,) to ``goal`` (n,) rad (m), unchecked."""
    return (quintic_move(limits.joints, (start, goal), limits),)


def excitation_segments(trajectory: Trajectory, limits: MotionLimits, options: PlanOptions
                        ) -> tuple[Segment, ...]:
    """Return the slow first pass, if any, and the excitation with its warm-up."""
    once, points = trajectory, sampled(trajectory, options.rate, options.lead_in)
    parts: tuple[tuple[str, float], ...] = ()
    if isinstance(trajectory, FourierTrajectory):
        once = replace(trajectory, periods=1)
        if options.warm_up:
            end = options.lead_in + options.warm_up * once.duration
            points, parts = _warmed_up(points, once, options), (('warm_up', end),)
    segments = [Segment('excitation', points, limits, parts)]
    if options.first_pass_scale < 1.0:
        slow = stretched(sampled(once, options.rate, options.lead_in), options.first_pass_scale)
        segments.insert(0, Segment('first_pass', slow, limits))
    return tuple(segments)


def _warmed_up(
    points: SampledTrajectory, once: FourierTrajectory, options: PlanOptions
) -> SampledTrajectory:
    """Return the points with periods ahead of them."""
    period = sampled(once, options.rate)
    delays = options.lead_in + once.duration * np.arange(options.warm_up)
    time = [*(delay + period.time[:-1] for delay in delays),
            points.time + options.warm_up * once.duration]
    motion = (np.concatenate([*(getattr(period, name)[:-1],) * options.warm_up,
                              getattr(points, name)])
              for name in ('position', 'velocity', 'acceleration'))
    return SampledTrajectory(
        points.joints, frozen(np.concatenate(time)), *(frozen(values) for values in motion))


def outside_limits(position: FloatArray, reach: MotionLimits) -> str:
    """Return the joint of ``position`` (n,) rad (m) outside ``reach`` as a sentence, or ''."""
    outside = np.maximum(position - reach.upper, reach.lower - position)
    i = int(np.argmax(outside))
    if not outside[i] > 0.0:
        return ''
    return (f"joint '{reach.joints[i]}' stands at {position[i]:.4g}, outside its limits "
            f'{reach.lower[i]:.4g} to {reach.upper[i]:.4g}: jog it back, or move it by hand')


def with_moves(
    position: FloatArray, segments: tuple[Segment, ...], reach: MotionLimits,
    options: PlanOptions, ways: Ways = straight,
) -> tuple[Segment, ...]:
    """Add slow moves from the measured ``position`` (n,) rad (m) to the segments and back.

    The robot may start outside the limits of the excitation, but not outside ``reach``, its own.
    Raises DynIdError for a joint that does, and the errors of ``ways``.
    """
    outside = outside_limits(position, reach)
    if outside:
        raise DynIdError(outside)
    planned: list[Segment] = []
    at = position
    for segment in segments:
        goal = segment.points.position[0]
        if not planned or np.any(np.abs(goal - at) > SAME_PLACE):
            planned.append(_move('move_to_start', (at, goal), segment.limits, options, ways))
        planned.append(segment)
        at = segment.points.position[-1]
    if options.return_to_start:
        planned.append(_move('return', (at, position), segments[-1].limits, options, ways))
    return tuple(planned)


def total_duration(segments: tuple[Segment, ...]) -> float:
    """Return the duration of all segments, s."""
    return sum(segment.points.duration for segment in segments)


def announcement(duration: float, segments: tuple[Segment, ...]) -> str:
    """Describe the duration of an excitation of ``duration`` s and of its segments."""
    parts = []
    for segment in segments:
        begin = 0.0
        for name, end in (*segment.parts, (segment.name, segment.points.duration)):
            parts.append(f'{name.replace("_", " ")} {end - begin:.1f}')
            begin = end
    return (f'{duration:g} s of excitation, {total_duration(segments):.1f} s in all: '
            f'{", ".join(parts)}')


def _move(name: str, ends: tuple[FloatArray, FloatArray], allowed: MotionLimits,
          options: PlanOptions, ways: Ways) -> Segment:
    limits = replace(allowed, lower=frozen(np.minimum(allowed.lower, np.minimum(*ends))),
                     upper=frozen(np.maximum(allowed.upper, np.maximum(*ends))))
    moves = ways(*ends, limits.scaled(1.0, options.approach_scale))
    move = moves[0] if len(moves) == 1 else Composite(moves)
    return Segment(name, sampled(move, options.rate, options.lead_in), limits)
