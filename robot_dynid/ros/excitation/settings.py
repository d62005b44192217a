"""Parameters of the excitation node and what follows from them for a given robot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import GuardSettings, Tolerances
from robot_dynid.execution.pace import Pacing
from robot_dynid.execution.plan import PlanOptions
from robot_dynid.execution.watchdog import Rules
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.ros.common.params import parameter
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import frozen

FACES = ('action', 'topic')


@dataclass(frozen=True)
class ExcitationSettings:
    """Settings of the node; the guards have their own, `GuardSettings`."""

    robot: str = parameter('', 'name of a robot, path of a robot YAML or of a URDF')
    controller: str = parameter('joint_trajectory_controller', 'name of the controller')
    face: str = parameter('action', 'how the controller is commanded', choices=FACES)
    recording_directory: str = parameter(
        'recordings', 'folder that receives one bag per execution')
    files_directory: str = parameter(
        '.', 'folder in which trajectory files named in goals lie')
    trajectory_rate: float = parameter(50.0, 'points per second sent to the controller')
    lead_in: float = parameter(0.2, 's granted for blending into the first point of a goal')
    approach_scale: float = parameter(
        0.2, 'part of velocity limits used by the move to the start pose; its square of '
        'acceleration limits')
    speed_scale: float = parameter(
        1.0, 'part of velocity limits used by excitations; its square of acceleration limits')
    first_pass_scale: float = parameter(
        0.3, 'part of its speed at which one pass of the excitation comes first; 1: none does',
        live=True)
    warm_up: int = parameter(
        1, 'periods that run ahead of a periodic excitation, without a stop in between', live=True)
    return_to_start: bool = parameter(
        True, 'whether to move back to where the robot stood', live=True)
    longest: float = parameter(600.0, 'longest motion allowed, s')
    controller_wait: float = parameter(3.0, 'how long to wait for the controller to appear, s')
    start_tolerance: float = parameter(0.02, 'allowed distance from the start of a goal, rad')
    tracking_tolerance: float = parameter(0.15, 'tracking error at which motion stops, rad')
    path_tolerance: float = parameter(0.3, 'path tolerance asked of the controller, rad')
    goal_tolerance: float = parameter(0.05, 'goal tolerance asked of the controller, rad')
    start_tolerance_prismatic: float = parameter(0.005, 'as above, prismatic joints, m')
    tracking_tolerance_prismatic: float = parameter(0.03, 'as above, prismatic joints, m')
    path_tolerance_prismatic: float = parameter(0.06, 'as above, prismatic joints, m')
    goal_tolerance_prismatic: float = parameter(0.01, 'as above, prismatic joints, m')
    goal_time: float = parameter(1.0, 'goal time tolerance asked of the controller, s')

    def __post_init__(self) -> None:
        if not self.robot:
            raise UsageError("parameter robot is empty: give a robot's name, robot YAML or URDF")
        if not 0.0 < self.speed_scale <= 1.0:
            raise UsageError(f'parameter speed_scale: {self.speed_scale} must be above 0 and at '
                             'most 1')
        for name in ('trajectory_rate', 'longest', 'controller_wait'):
            if not 0.0 < getattr(self, name) < np.inf:
                raise UsageError(f'parameter {name}: {getattr(self, name)} must be positive')
        _ = self.plan

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
    pacing = Pacing(settings.trajectory_rate, guards.join_time, settings.lead_in, guards.stop_time)
    return Rules(replace(limits, effort=frozen(effort)), guards, tolerances(settings, robot),
                 settings.longest / settings.first_pass_scale, settings.face == FACES[0], pacing)
