"""Parameters of the excitation node, and the derived settings for a given robot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import GuardSettings, Tolerances
from robot_dynid.execution.pace import Pacing
from robot_dynid.execution.plan import LEAD_IN, RATE, SCALE, WARM_UP, PlanOptions
from robot_dynid.execution.watchdog import Rules
from robot_dynid.numbers import NumberRange
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.ros.common.described_robot import RobotParameters
from robot_dynid.ros.common.files_directory import FileParameters
from robot_dynid.settings import require_allowed, setting
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
    """Settings of the node, except those of the guards (`GuardSettings`)."""

    controller: str = setting('joint_trajectory_controller', text='name of the controller')
    face: str = setting('action', FACES, 'how the controller is commanded')
    recording_directory: str = setting(
        'recordings', text='folder that receives one bag per execution')
    trajectory_rate: float = setting(50.0, RATE, 'points per second sent to the controller')
    lead_in: float = setting(0.2, LEAD_IN, 'time to blend into the first point of a goal, s')
    lookahead: float = setting(
        1.0, LOOKAHEAD, 'time in which the robot comes to rest on its path if this node dies, '
        's: motions are sent in pieces of this length; 0: as a whole')
    approach_scale: float = setting(
        0.2, SCALE, 'share of the velocity limits (squared: of the acceleration limits) that the '
        'move to the start pose uses')
    speed_scale: float = setting(
        1.0, SCALE, 'share of the velocity limits (squared: of the acceleration limits) that '
        'excitations use')
    first_pass_scale: float = setting(
        0.3, SCALE, 'speed of the first pass relative to the excitation; 1: none', live=True)
    warm_up: int = setting(
        1, WARM_UP, 'periods at full speed before a periodic excitation, without a stop in '
        'between', live=True)
    return_to_start: bool = setting(
        True, text='whether to return to the initial position', live=True)
    validation: bool = setting(
        True, text='whether a design includes a distinct validation motion, executed after it '
        'into a separate bag; the option validation of a goal takes precedence', live=True)
    require_collision_check: bool = setting(
        False, text='whether a motion is refused when collisions cannot be checked')
    emergency_stop_type: str = setting(
        'std_msgs/msg/Bool', text='type of the topic emergency_stop')
    emergency_stop_field: str = setting(
        'data', text='its field with the state of the emergency stop, such as e_stopped.val')
    emergency_stop_released: tuple[int, ...] = setting(
        (0,), kind=int, text='values of that field with which the robot may move; false is 0')
    longest: float = setting(600.0, LONGEST, 'longest motion allowed, s')
    controller_wait: float = setting(3.0, WAIT, 'how long to wait for the controller to appear, s')
    start_tolerance: float = setting(
        0.02, TOLERANCE, 'allowed distance from the start of a goal, rad')
    tracking_tolerance: float = setting(
        0.15, TOLERANCE, 'tracking error at which motion stops, rad')
    path_tolerance: float = setting(0.3, TOLERANCE, 'path tolerance of controller goals, rad')
    goal_tolerance: float = setting(0.05, TOLERANCE, 'goal tolerance of controller goals, rad')
    start_tolerance_prismatic: float = setting(0.005, TOLERANCE, 'as above, prismatic joints, m')
    tracking_tolerance_prismatic: float = setting(0.03, TOLERANCE, 'as above, prismatic joints, m')
    path_tolerance_prismatic: float = setting(0.06, TOLERANCE, 'as above, prismatic joints, m')
    goal_tolerance_prismatic: float = setting(0.01, TOLERANCE, 'as above, prismatic joints, m')
    goal_time: float = setting(1.0, GOAL_TIME, 'time tolerance of controller goals, s')

    def __post_init__(self) -> None:
        if not (self.robot or self.robot_description):
            raise UsageError("parameter robot is empty: give a robot's name, robot YAML or URDF, "
                             'as in `ros2 launch robot_dynid excite.launch.py robot:=my_arm.yaml`')
        require_allowed(self, 'parameter {}')

    @property
    def plan(self) -> PlanOptions:
        """Settings of the moves before and after the excitation."""
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

    If the joint states carry currents, the effort limits become limits of the current.
    """
    effort = limits.effort / np.abs(robot.torque_factors)
    pacing = Pacing(settings.trajectory_rate, guards.join_time, settings.lead_in, guards.stop_time,
                    settings.lookahead)
    return Rules(replace(limits, effort=frozen(effort)), guards, tolerances(settings, robot),
                 settings.longest / settings.first_pass_scale, settings.face == FACES[0], pacing)
