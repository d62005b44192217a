"""Plans of the excitation node: designed or given, checked, sampled; stored dry runs."""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from control_msgs.action import FollowJointTrajectory
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.collision.roadmap import approach
from robot_dynid.collision.scene import Scene, build_scene
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import (
    Design,
    DesignCriteria,
    MotionRefused,
    Reason,
    SessionOver,
    design_pair,
    review,
)
from robot_dynid.excitation.design_criteria import design_criteria, keeping_clear
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.sine_sequence import ADAPTIVE
from robot_dynid.execution.guards import Code, GuardSettings, JointStates
from robot_dynid.execution.pace import Pacing
from robot_dynid.execution.pieces import in_pieces, shortage
from robot_dynid.execution.plan import excitation_segments, with_moves
from robot_dynid.execution.sampled import check_points, sampled
from robot_dynid.execution.segment import Segment, segment_faults
from robot_dynid.execution.watchdog import Rules
from robot_dynid.io.log import read_recordings
from robot_dynid.io.trajectory_file import load_motion
from robot_dynid.numbers import shown
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.surroundings import Surroundings
from robot_dynid.ros.common.described_robot import differences
from robot_dynid.ros.common.files_directory import RequestedFiles
from robot_dynid.ros.excitation.controller_client import goal_message, trajectory_message
from robot_dynid.ros.excitation.settings import ExcitationSettings, rules
from robot_dynid.trajectories.limits import MotionLimits, motion_limits
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FIT, VALIDATION, Progress, frozen

DesignGoal = tuple[str, Mapping[str, Any] | None]
#: option that lists the recordings so far of an adaptive sequence
DATA = 'data'
#: number of dry runs whose plans the node keeps
DRY_RUNS = 8
REFUSALS = {Reason.JOINTS: Code.JOINTS_DIFFER, Reason.LIMITS: Code.LIMIT_BROKEN,
            Reason.EFFORT: Code.EFFORT_PREDICTED, Reason.CLEARANCE: Code.COLLISION}
IDENTIFIER = re.compile(r'dry-run-[0-9a-f]{16}')


class Refused(DynIdError):
    """A goal is refused before anything is sent; ``code`` is that of the result."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def refusal(error: DynIdError) -> Code:
    """Return the code of a goal that is refused with ``error``."""
    if isinstance(error, Refused):
        return error.code
    if isinstance(error, SessionOver):
        return Code.ACCURACY_MET if error.met else Code.OUT_OF_REACH
    return REFUSALS[error.reason] if isinstance(error, MotionRefused) else Code.INVALID


@dataclass(frozen=True, eq=False)
class ExcitationPlan:
    """A checked excitation and its points; moves to its start and back are added at execution.

    ``settings`` are those of its design; ``reach`` the limits in which the robot may stand;
    ``surroundings`` the obstacles, ``scene`` as last checked. ``purpose`` is that of its
    recording; ``validation`` the plan of the validation motion, if any, which is executed after
    it.
    """

    robot: RobotModel
    design: Design
    settings: ExcitationSettings
    reach: MotionLimits
    surroundings: Surroundings
    scene: Scene
    segments: tuple[Segment, ...]
    purpose: str = FIT
    validation: ExcitationPlan | None = None

    @property
    def motions(self) -> tuple[ExcitationPlan, ...]:
        """The plans of all motions in order of execution."""
        return (self,) if self.validation is None else (self, self.validation)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the design of all motions, each once."""
        return tuple(dict.fromkeys(
            warning for motion in self.motions for warning in motion.design.warnings))

    @property
    def duration(self) -> float:
        """Length of the excitation itself, s."""
        return self.design.trajectory.duration

    @cached_property
    def message(self) -> JointTrajectory:
        """The points of the excitation itself, without first pass and warm-up."""
        return trajectory_message(sampled(
            self.design.trajectory, self.settings.trajectory_rate, self.settings.lead_in))

    @cached_property
    def identifier(self) -> str:
        """Name of the plan as a dry run: the same for the same points, limits and settings."""
        purposes = [motion.purpose for motion in self.motions]
        digest = hashlib.sha256(f'{self.settings} {self.surroundings} {purposes}'.encode())
        for segment in (segment for motion in self.motions for segment in motion.segments):
            digest.update(segment.name.encode())
            for record in (segment.points, segment.limits):
                for value in vars(record).values():
                    digest.update(np.array(value).tobytes())
        return f'dry-run-{digest.hexdigest()[:16]}'

    @property
    def summary(self) -> str:
        """Largest used share of a limit, and condition number, in one sentence."""
        used = {(joint, name): value for joint, uses in self.design.used.items()
                for name, value in uses.items()}
        (joint, name), largest = max(used.items(), key=lambda item: item[1])
        text = f"at most {largest:.0%} of a limit used ({name} of '{joint}')"
        if self.design.score is not None:
            text += f'; condition number {self.design.score.condition_number:.1f}'
        session = self.design.session
        if session is not None:
            text = '; '.join([*(swing.words for swing in session.swings), session.outlook,
                             text])
        return text

    def with_moves(self, states: JointStates) -> tuple[Segment, ...]:
        """Return all segments from the current pose of the robot.

        Moves to the start and back avoid all obstacles. Raises DynIdError if the pose is unknown
        or outside the limits, or if no free path exists.
        """
        missing = states.missing('position')
        if missing:
            raise DynIdError(f"no joint states with a finite position of joint '{missing[0]}' "
                             'were received: activate the joint state broadcaster')
        return _in_pieces(with_moves(
            frozen(states.position.copy()), self.segments, self.reach, self.settings.plan,
            partial(approach, self.scene)), self.settings)

    def goals(self, guards: GuardSettings, states: JointStates
              ) -> tuple[Rules, dict[Segment, FollowJointTrajectory.Goal | None]]:
        """Return rules, and segments with their goals, from the current pose of the robot.

        Segments that are sent in pieces have no goal yet. Raises what `with_moves` raises.
        """
        segments = self.with_moves(states)
        made = rules(self.settings, guards, self.robot, self.segments[-1].limits)
        for segment in segments:
            segment_faults(segment, made.longest)
        return made, {s: goal_message(s.points, made.tolerances) if s.stops is None else None
                      for s in segments}

    def checked_again(
        self, robot: RobotModel, settings: ExcitationSettings, progress: Progress
    ) -> ExcitationPlan:
        """Return this plan after a check of limits, efforts and the current scene.

        ``robot`` as its files describe it now, ``settings`` the parameters. Raises Refused naming
        what changed since the design, or a required check that is impossible, and MotionRefused if
        the plan no longer fits.
        """
        file = settings.robot or robot.name
        changed = [*(f'{name} of the robot {file}' for name in differences(
            self.robot, robot)), *(f'parameter {name}' for name in differences(
                self.settings, settings))]
        if changed:
            raise Refused(Code.UNKNOWN_TRAJECTORY,
                          f"dry run '{self.identifier}' is out of date ({', '.join(changed)} "
                          'changed): request a new dry run')
        progress('check', 0.0)
        scene, criteria = _scene_and_criteria(
            self.robot, self.surroundings, self.settings, progress)
        reviewed = review(self.design.trajectory, self.segments[-1].limits, criteria)
        _check_points(self.segments, self.settings)
        warnings = tuple(dict.fromkeys((*self.design.warnings, *reviewed.warnings)))
        judge = self.validation and self.validation.checked_again(robot, settings, progress)
        return replace(self, scene=scene, validation=judge, design=replace(
            self.design, warnings=warnings, clearance=reviewed.clearance))


def designed(
    robot: RobotModel, goal: DesignGoal, settings: ExcitationSettings, progress: Progress
) -> ExcitationPlan:
    """Design the excitation of ``goal`` (type, options) and check its points.

    The option DATA of an adaptive sequence lists the recordings so far. Raises UsageError for
    wrong options, DynIdError if the limits do not allow it, Refused if a required check is
    impossible, Cancelled when ``progress`` asks to stop.
    """
    progress('design', 0.0)
    kind, options = goal
    data = options.get(DATA) if isinstance(options, Mapping) else None
    if data is not None:
        options = {name: value for name, value in (options or {}).items() if name != DATA}
    if not settings.validation and (options is None or isinstance(options, Mapping)):
        options = {'validation': False, **(options or {})}
    request = parse_request(kind, options)
    if data is not None and getattr(request.options, 'procedure', '') != ADAPTIVE:
        raise UsageError(f"option '{DATA}' is for adaptive sequences only: omit it, or request "
                         f'type sine-sequence with procedure: {ADAPTIVE}')
    _check_length(float(getattr(request.options, 'duration', 0.0)), settings)
    full = motion_limits(robot, request.common.limits)
    around = request.common.surroundings(robot.surroundings)
    started = time.monotonic()
    scene, criteria = _scene_and_criteria(
        robot, around, settings, progress, lambda: time.monotonic() - started)
    if data:
        criteria = replace(criteria, recordings=read_recordings(data, robot))
    fit, judge = design_pair(full.scaled(1.0, settings.speed_scale), request, criteria)
    judged = None if judge is None else replace(
        _planned(robot, judge, settings, full, scene), purpose=VALIDATION)
    return replace(_planned(robot, fit, settings, full, scene), purpose=request.common.purpose,
                   validation=judged)


def given(
    robot: RobotModel, trajectory: Trajectory, settings: ExcitationSettings, progress: Progress,
    purpose: str = FIT,
) -> ExcitationPlan:
    """Check a trajectory that was designed before; it is executed unchanged, or refused.

    ``purpose`` is that of its recording. Raises MotionRefused naming what does not fit the robot,
    its limits and its surroundings, Refused if a required check is impossible, Cancelled when
    ``progress`` asks to stop.
    """
    progress('check', 0.0)
    _check_length(trajectory.duration, settings)
    full = motion_limits(robot)
    scene, criteria = _scene_and_criteria(robot, robot.surroundings, settings, progress)
    try:
        reviewed = review(trajectory, full.scaled(1.0, settings.speed_scale), criteria)
    except MotionRefused as error:
        if error.reason is not Reason.LIMITS or settings.speed_scale == 1.0:
            raise
        raise MotionRefused(error.reason, f'{error} (with the parameter speed_scale '
                            f'{settings.speed_scale:g})') from error
    return replace(_planned(robot, reviewed, settings, full, scene), purpose=purpose)


def with_files(options: Any, files: RequestedFiles) -> Any:
    """Return options of a goal with the paths of the files they name; raises UsageError."""
    if not isinstance(options, Mapping):
        return options
    resolved = dict(options)
    if isinstance(options.get('environment'), str):
        resolved['environment'] = str(files.file(options['environment']))
    if DATA in options:
        names = options[DATA]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UsageError(f"option '{DATA}' must be a list of recordings, is {shown(names)}")
        resolved[DATA] = [files.recording(name) for name in names]
    return resolved


class DryRuns:
    """The plans of the latest dry runs by their identifiers, and trajectory files."""

    def __init__(self, files: RequestedFiles) -> None:
        self._files = files
        self._plans: OrderedDict[str, ExcitationPlan] = OrderedDict()

    def keep(self, plan: ExcitationPlan) -> str:
        """Store a plan and return its identifier; the least recently used one is dropped."""
        self._plans[plan.identifier] = plan
        self._plans.move_to_end(plan.identifier)
        while len(self._plans) > DRY_RUNS:
            self._plans.popitem(last=False)
        return plan.identifier

    def find(self, name: str) -> ExcitationPlan | tuple[Trajectory, str]:
        """Return the plan of a dry run, or the trajectory in a file and its purpose, of a goal.

        Raises Refused.
        """
        plan = self._plans.get(name)
        if plan is not None:
            self._plans.move_to_end(name)
            return plan
        if IDENTIFIER.fullmatch(name):
            raise Refused(
                Code.UNKNOWN_TRAJECTORY,
                f"unknown dry run '{name}' (the node keeps the last {DRY_RUNS}, until it ends): "
                'request a new dry run and give the identifier in its result')
        try:
            return load_motion(self._files.file(name))
        except UsageError as error:
            raise Refused(Code.UNKNOWN_TRAJECTORY, f'trajectory: {error}') from error


def _planned(
    robot: RobotModel, design: Design, settings: ExcitationSettings, full: MotionLimits,
    scene: Scene,
) -> ExcitationPlan:
    _check_length(design.trajectory.duration, settings)
    segments = excitation_segments(design.trajectory, design.limits, settings.plan)
    _check_points(segments, settings)
    segments = _in_pieces(segments, settings)
    reach = replace(full, lower=robot.limits.lower, upper=robot.limits.upper)
    return ExcitationPlan(robot, design, settings, reach, scene.around, scene, segments)


def _scene_and_criteria(
    robot: RobotModel, around: Surroundings, settings: ExcitationSettings, progress: Progress,
    elapsed: Callable[[], float] | None = None,
) -> tuple[Scene, DesignCriteria]:
    """Return the scene, and the criteria of a motion that avoids collisions in it.

    Raises Refused if collisions must be checked and cannot be.
    """
    scene = build_scene(robot, around)
    if settings.require_collision_check and scene.blind:
        raise Refused(Code.NOT_CHECKED, 'a collision check is required (require_collision_check): '
                      f'{"; ".join(scene.blind)}')
    return scene, keeping_clear(design_criteria(robot, progress, elapsed=elapsed), scene)


def _in_pieces(segments: tuple[Segment, ...], settings: ExcitationSettings
               ) -> tuple[Segment, ...]:
    """Return the segments with their stops; raises MotionRefused if there are too few."""
    pacing = Pacing(settings.trajectory_rate, lookahead=settings.lookahead)
    split = tuple(in_pieces(segment, pacing) for segment in segments)
    short = [fault for segment in split if (fault := shortage(segment, pacing)) is not None]
    if short:
        raise MotionRefused(Reason.LIMITS, '; '.join(short))
    return split


def _check_length(duration: float, settings: ExcitationSettings) -> None:
    if duration > settings.longest:
        raise UsageError(f'the motion takes {duration:.6g} s (limit {settings.longest:.6g} s, '
                         'parameter longest)')
    check_points(duration, settings.trajectory_rate)


def _check_points(segments: tuple[Segment, ...], settings: ExcitationSettings) -> None:
    """Raise MotionRefused if the trajectory leaves the limits at its points or between them."""
    longest = settings.longest / settings.first_pass_scale
    faults = [fault for segment in segments for fault in segment_faults(segment, longest)]
    if faults:
        raise MotionRefused(Reason.LIMITS, '; '.join(faults) + '; a higher trajectory_rate or a '
                            'smaller scale helps')
