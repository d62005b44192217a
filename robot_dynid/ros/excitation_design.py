"""What the excitation node does in the background: design, sample, write the message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trajectory_msgs.msg import JointTrajectory

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import Design, Progress, design_within, parse_request
from robot_dynid.excitation.guards import GuardSettings, JointStates
from robot_dynid.excitation.judge import robot_judge
from robot_dynid.excitation.limits import MotionLimits, motion_limits
from robot_dynid.excitation.plan import move_to_start
from robot_dynid.excitation.sampled import faults, sampled
from robot_dynid.excitation.watch import Rules, Segment
from robot_dynid.model.robot import RobotModel
from robot_dynid.ros.controller_client import trajectory_message
from robot_dynid.ros.excitation_settings import ExcitationSettings, rules
from robot_dynid.types import frozen

Asked = tuple[str, Mapping[str, Any] | None]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A design ready to be sent: its points, its message, the robot it is for."""

    robot: RobotModel
    design: Design
    reach: MotionLimits
    segment: Segment
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
             ) -> tuple[Rules, tuple[Segment, ...]]:
        """Return rules and segments from where the robot stands now.

        Raises DynIdError when it is not known where that is, or when it is outside the limits.
        """
        missing = states.missing('position')
        if missing:
            raise DynIdError(f"no joint states with a finite position of joint '{missing[0]}' "
                             'were received; is the joint state broadcaster active?')
        how = (settings.approach_scale, settings.trajectory_rate, settings.lead_in)
        approach = move_to_start(
            frozen(states.position), self.segment, how, self.reach)
        return rules(settings, guards, self.robot, self.segment.limits), (approach, self.segment)


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
    result = design_within(limits, request, robot_judge(robot, progress))
    points = sampled(result.trajectory, settings.trajectory_rate, settings.lead_in)
    found = faults(points, limits, settings.longest)
    if found:
        raise DynIdError('; '.join(found) + '; a higher trajectory_rate or a smaller scale helps')
    segment = Segment('excitation', points, limits)
    return Prepared(robot, result, _reach(robot, full), segment, trajectory_message(points))


def _reach(robot: RobotModel, limits: MotionLimits) -> MotionLimits:
    """Return limits with the robot's own position range, NaN where it has none."""
    return replace(limits, lower=robot.limits.lower, upper=robot.limits.upper)
