"""Parameters of the excitation node and what follows from them for a given robot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import GuardSettings, Tolerances
from robot_dynid.execution.pace import Pacing
from robot_dynid.execution.plan import LEAD_IN, RATE, SCALE, WARM_UP, PlanOptions
from robot_dynid.execution.watchdog import Rules
from robot_dynid.numbers import NumberRange, check_ranges
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.ros.common.described_robot import RobotParameters
from robot_dynid.ros.common.files_directory import FileParameters
from robot_dynid.ros.common.params import parameter
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import frozen

FACES = ('action', 'topic')
LOOKAHEAD = NumberRange(0.0, 60.0, 's')
LONGEST = NumberRange(0.1, 36_000.0, 's')
WAIT = NumberRange(1e-3, 3600.0, 's')
TOLERANCE = NumberRange(1e-9, 10.0, 'rad or m')
GOAL_TIME = NumberRange(1e-3, 3600.0, 's')


@dataclass(frozen=True)
class ExcitationSettings(RobotParameters, FileParameters):
    """Settings of the node; the guards have their own, `GuardSettings`."""

    controller: str = parameter('joint_trajectory_controller', 'name of the controller')
    face: str = parameter('action', 'how the controller is commanded', choices=FACES)
    recording_directory: str = parameter(
        'recordings', 'folder that receives one bag per execution')
    trajectory_rate: float = parameter(
        50.0, 'points per second sent to the controller', allowed=RATE)
    lead_in: float = parameter(
        0.2, 's granted for blending into the first point of a goal', allowed=LEAD_IN)
    lookahead: float = parameter(
        1.0, 's after which the robot has come to rest on its path if this node dies: motions are '
        'sent in pieces of this length; 0: whole', allowed=LOOKAHEAD)
    approach_scale: float = parameter(
        0.2, 'part of velocity limits used by the move to the start pose; its square of '
        'acceleration limits', allowed=SCALE)
    speed_scale: float = parameter(
        1.0, 'part of velocity limits used by excitations; its square of acceleration limits',
        allowed=SCALE)
    first_pass_scale: float = parameter(
        0.3, 'part of its speed at which one pass of the excitation comes first; 1: none does',
        live=True, allowed=SCALE)
    warm_up: int = parameter(
        1, 'periods that run ahead of a periodic excitation, without a stop in between', live=True,
        allowed=WARM_UP)
    return_to_start: bool = parameter(
        True, 'whether to move back to where the robot stood', live=True)
    validation: bool = parameter(
        True, 'whether a design comes with a distinct motion to judge a model by, executed after '
        'it into a bag of its own; the option validation of a goal comes first', live=True)
    require_collision_check: bool = parameter(
        False, 'whether a motion is refused when collisions cannot be checked')
    longest: float = parameter(600.0, 'longest motion allowed, s', allowed=LONGEST)
    controller_wait: float = parameter(
        3.0, 'how long to wait for the controller to appear, s', allowed=WAIT)
    start_tolerance: float = parameter(
        0.02, 'allowed distance from the start of a goal, rad', allowed=TOLERANCE)
    tracking_tolerance: float = parameter(
        0.15, 'tracking error at which motion stops, rad', allowed=TOLERANCE)
    path_tolerance: float = parameter(
        0.3, 'path tolerance asked of the controller, rad', allowed=TOLERANCE)
    goal_tolerance: float = parameter(
        0.05, 'goal tolerance asked of the controller, rad', allowed=TOLERANCE)
    start_tolerance_prismatic: float = parameter(
        0.005, 'as above, prismatic joints, m', allowed=TOLERANCE)
    tracking_tolerance_prismatic: float = parameter(
        0.03, 'as above, prismatic joints, m', allowed=TOLERANCE)
    path_tolerance_prismatic: float = parameter(
        0.06, 'as above, prismatic joints, m', allowed=TOLERANCE)
    goal_tolerance_prismatic: float = parameter(
        0.01, 'as above, prismatic joints, m', allowed=TOLERANCE)
    goal_time: float = parameter(
        1.0, 'goal time tolerance asked of the controller, s', allowed=GOAL_TIME)

    def __post_init__(self) -> None:
        if not (self.robot or self.robot_description):
            raise UsageError("parameter robot is empty: give a robot's name, robot YAML or URDF, "
                             'as in `ros2 launch robot_dynid excite.launch.py robot:=my_arm.yaml`')
        check_ranges(self, 'parameter {}')

    @property
    def plan(self) -> PlanOptions:
        """Moves executed beside the excitation itself."""
        return PlanOptions(self.trajectory_rate, self.lead_in, self.approach_scale,
                           self.first_pass_scale, self.warm_up, self.return_to_start)


def tolerances(settings: ExcitationSettings, robot: RobotModel) -> Tolerances:
    """Return the tolerances of every joint by its type."""
    sliding = np.asarray(robot.types) == PRISMATIC
    start, tracking, path, goal = (
        frozen(np.where(sliding, getattr(settings, f'{name}_tolerance_prismatic'),
                        getattr(settings, f'{name}_tolerance')))
        for name in ('start', 'tracking', 'path', 'goal'))
    return Tolerances(start, tracking, path, goal, settings.goal_time)


def rules(
    settings: ExcitationSettings, guards: GuardSettings, robot: RobotModel, limits: MotionLimits
) -> Rules:
    """Return the rules of an execution within ``limits``.

    Where the joint states carry currents, the effort limits become limits of the current.
    """
    effort = limits.effort / np.abs(robot.torque_factors)
    pacing = Pacing(settings.trajectory_rate, guards.join_time, settings.lead_in, guards.stop_time,
                    settings.lookahead)
    return Rules(replace(limits, effort=frozen(effort)), guards, tolerances(settings, robot),
                 settings.longest / settings.first_pass_scale, settings.face == FACES[0], pacing)
