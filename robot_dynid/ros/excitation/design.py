"""What the excitation node does in the background: design, sample, write the message."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from control_msgs.action import FollowJointTrajectory
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.collision.approach import approach
from robot_dynid.collision.scene import Scene, scene_of
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import Design, design_within
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.search.clearance import keeping_clear
from robot_dynid.execution.guards import GuardSettings, JointStates
from robot_dynid.execution.plan import excitation_segments, with_moves
from robot_dynid.execution.sampled import sampled
from robot_dynid.execution.segment import Segment, segment_faults
from robot_dynid.execution.watch import Rules
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.excitation.controller_client import goal_message, trajectory_message
from robot_dynid.ros.excitation.settings import ExcitationSettings, rules
from robot_dynid.trajectories.limits import MotionLimits, motion_limits
from robot_dynid.types import Progress, frozen

Asked = tuple[str, Mapping[str, Any] | None]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A design ready to be sent: its points, its message, the robot it is for."""

    robot: RobotModel
    design: Design
    reach: MotionLimits
    scene: Scene
    segments: tuple[Segment, ...]
    message: JointTrajectory

    @property
    def duration(self) -> float:
        """Length of the excitation itself, s."""
        return self.design.trajectory.duration

    @property
    def summary(self) -> str:
        """What was designed, in one sentence."""
        used = {(joint, name): value for joint, uses in self.design.used.items()
                for name, value in uses.items()}
        (joint, name), largest = max(used.items(), key=lambda item: item[1])
        text = f"{self.duration:g} s; at most {largest:.0%} of a limit used ({name} of '{joint}')"
        if self.design.score is not None:
            text += f'; condition number {self.design.score.condition_number:.1f}'
        return text

    def plan(self, settings: ExcitationSettings, guards: GuardSettings, states: JointStates
             ) -> tuple[Rules, dict[Segment, FollowJointTrajectory.Goal]]:
        """Return rules, and segments with their goals, from where the robot stands now.

        Moves to the start and back keep clear of everything. Raises DynIdError when it is not
        known where the robot stands, when it is outside the limits, or when there is no free way.
        """
        missing = states.missing('position')
        if missing:
            raise DynIdError(f"no joint states with a finite position of joint '{missing[0]}' "
                             'were received; is the joint state broadcaster active?')
        segments = with_moves(frozen(states.position.copy()), self.segments, self.reach,
                              settings.plan, partial(approach, self.scene))
        made = rules(settings, guards, self.robot, self.segments[-1].limits)
        for segment in segments:
            segment_faults(segment, made.longest)
        return made, {s: goal_message(s.points, made.tolerances) for s in segments}


def prepare(
    robot: RobotModel, asked: Asked, settings: ExcitationSettings, progress: Progress
) -> Prepared:
    """Design what is ``asked`` (type, options) and check its points.

    Raises UsageError for wrong options, DynIdError when the limits do not allow it, Cancelled when
    ``progress`` asks to stop.
    """
    progress('design', 0.0)
    request = parse_request(*asked)
    asked_for = float(getattr(request.options, 'duration', 0.0))
    if asked_for > settings.longest:
        raise UsageError(f'the motion takes {asked_for:.6g} s, allowed are {settings.longest:.6g} '
                         's (parameter longest)')
    full = motion_limits(robot, request.common.limits)
    limits = full.scaled(1.0, settings.speed_scale)
    scene = scene_of(robot, request.common.surroundings(robot.surroundings))
    started = time.monotonic()
    criteria = keeping_clear(
        design_criteria(robot, progress, elapsed=lambda: time.monotonic() - started), scene)
    result = design_within(limits, request, criteria)
    segments = excitation_segments(result.trajectory, limits, settings.plan)
    longest = settings.longest / settings.first_pass_scale
    found = [fault for segment in segments for fault in segment_faults(segment, longest)]
    if found:
        raise DynIdError('; '.join(found) + '; a higher trajectory_rate or a smaller scale helps')
    alone = sampled(result.trajectory, settings.trajectory_rate, settings.lead_in)
    return Prepared(robot, result, _reach(robot, full), scene, segments,
                    trajectory_message(alone))


def _reach(robot: RobotModel, limits: MotionLimits) -> MotionLimits:
    """Return limits with the robot's own position range, NaN where it has none."""
    return replace(limits, lower=robot.limits.lower, upper=robot.limits.upper)
